"""`nsysmodel estimate`: the floors of a model on a GPU, without any export."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable
from typing import Any

import click

from nsysmodel import units
from nsysmodel.cli.options import chosen_format, hardware_options, output_options
from nsysmodel.cli.output import check_writable, write_output
from nsysmodel.cli.rows import Column, as_csv, as_json, as_table
from nsysmodel.request import HardwareRequest
from nsysmodel.workload import WorkloadRequest

_COUNT = click.IntRange(min=1)
_MAX_POINTS = 400

OPS = [
    Column("op", "op", right=False),
    Column("count", "count", units.count),
    Column("flop", "FLOP", units.flop),
    Column("hbm_bytes", "HBM bytes", units.bytes_),
    Column("each_ns", "floor each", units.ns),
    Column("floor_ns", "floor", units.ns),
    Column("share", "share", lambda value: f"{value:.1%}"),
    Column("bound", "bound", right=False),
    Column("formula", "one execution", right=False),
]
_OPS_KEYS = """op kind count flop weight_bytes state_bytes act_bytes hbm_bytes link_bytes floor_ns
    floor_hbm_ns floor_strict_ns min_floor_ns bound dtype formula"""
_OPS_CSV = [Column(key, key) for key in _OPS_KEYS.split()]
SWEEP = [
    Column("batch", "batch"),
    Column("context", "context"),
    Column("floor_ns", "floor", lambda value: units.ns(value, 4)),
    Column("floor_hbm_ns", "hbm", lambda value: units.ns(value, 4)),
    Column("floor_strict_ns", "strict", lambda value: units.ns(value, 4)),
    Column("weights_once_ns", "weights once", lambda value: units.ns(value, 4)),
    Column("tokens_per_s", "tokens/s", lambda value: units.significant(value, 4)),
    Column("needed_bytes", "memory", units.bytes_),
    Column("fits", "fits", lambda value: "yes" if value else "no", right=False),
]


def values(text: str) -> list[int]:
    """The numbers of a sweep: `4`, `1,2,4`, or `1..64` in powers of two (the end included).

    >>> values("1,3"), values("1..20")
    ([1, 3], [1, 2, 4, 8, 16, 20])
    """
    first, dots, last = text.partition("..")
    if dots:
        start, end = _whole(first), _whole(last)
        if not 0 < start <= end:
            raise click.BadParameter(f"{text!r} is not a range such as 1..64.")
        result = [start]
        while result[-1] < end:
            result.append(min(end, result[-1] * 2))
        return result
    return [_whole(part) for part in text.split(",")]


def _whole(text: str) -> int:
    plain = text.strip().replace("_", "")
    factor = 1
    if plain[-1:] in ("k", "K"):
        plain, factor = plain[:-1], 1024
    if not plain.isdecimal() or len(plain) > 12:
        raise click.BadParameter(f"{text!r} is not a whole number; a sweep is 1..64 or 1,2,4.")
    return int(plain) * factor


def _list(_ctx: click.Context, _param: click.Parameter, value: str | None) -> list[int] | None:
    return None if value is None else values(value)


def _quantity(_ctx: click.Context, _param: click.Parameter, value: str | None) -> float | None:
    return None if value is None else units.parse_count(value)


@click.command()
@click.argument("model", required=False)
@click.option("--phase", type=click.Choice(["decode", "prefill"]), help="Phase of the step.")
@click.option("--batch", callback=_list, metavar="N|A..B", help="Sequences; 1..64 sweeps powers of two.")
@click.option("--context", callback=_list, metavar="N|A..B", help="KV length; in prefill the cached prefix.")
@click.option(
    "--tokens", type=_COUNT, help="New tokens per sequence: prefill, or verify with --phase decode."
)
@click.option(
    "--acceptance", type=click.FloatRange(0, 1), help="Verify: probability that a draft is accepted."
)
@click.option("--dtype", metavar="TYPE", help="Number format: bf16, fp16, fp32, tf32, fp8.")
@click.option("--quant", metavar="TYPE", help="Weight format: fp8, nvfp4, mxfp4, awq, gptq, int4, none.")
@click.option("--kv-dtype", metavar="TYPE", help="Number format of the KV cache.")
@click.option("--tp", type=_COUNT, help="Tensor-parallel size.")
@click.option("--ep", type=_COUNT, help="Expert-parallel size.")
@click.option("--dp", type=_COUNT, help="Data-parallel size of attention; the batch is per rank.")
@click.option("--logits", type=click.Choice(["last", "all"]), help="Rows that the LM head runs on.")
@click.option(
    "--experts", "distinct", type=click.FloatRange(min=1), help="Measured distinct experts per layer."
)
@click.option(
    "--params", callback=_quantity, metavar="N", help="Without MODEL: all parameters, for example 1T."
)
@click.option("--active", callback=_quantity, metavar="N", help="With --params: those that a token uses.")
@click.option("--gpus", type=_COUNT, help="With --params: number of GPUs.")
@hardware_options
@output_options("table", "json", "csv", "markdown", default="table")
def command(
    model: str | None,
    hardware: HardwareRequest,
    output_format: str | None,
    output: str | None,
    force: bool,
    params: float | None,
    active: float | None,
    gpus: int | None,
    distinct: float | None,
    acceptance: float | None,
    batch: list[int] | None,
    context: list[int] | None,
    **flags: Any,
) -> None:
    """Compute the floors of MODEL on a GPU: op by op, and with every weight loaded once.

    MODEL is a bundled name, a model file or a config.json. Without it, --params (and --active) give the
    one-line check.
    """
    if (model is None) == (params is None):
        raise click.UsageError("Name a MODEL, or give --params (and --active).")
    if params is None and (active is not None or gpus is not None):
        raise click.UsageError("--active and --gpus go with --params.")
    if hardware.gpu is None and hardware.bandwidth is None:
        raise click.UsageError("Say which GPU: --gpu NAME (nsysmodel hardware list shows them).")
    check_writable(output, force=force, named=True)
    kind = chosen_format(output_format, output, "table")
    device = _device(hardware)
    if params is not None:
        text = _counts(kind, params, active, gpus, device, flags)
    else:
        request = WorkloadRequest(**flags)
        batches: list[int | None] = [*batch] if batch else [None]
        contexts: list[int | None] = [*context] if context else [None]
        points = list(itertools.product(batches, contexts))
        if len(points) > _MAX_POINTS:
            raise click.UsageError(f"The sweep has {len(points)} points; at most {_MAX_POINTS}.")
        requests = [dataclasses.replace(request, batch=b, context=c) for b, c in points]
        text = _model(kind, str(model), requests, device, distinct, acceptance)
    write_output(output, text, force=force, named=True)


def _device(request: HardwareRequest) -> Any:
    from nsysmodel.hardware.resolve import Overrides, resolve

    overrides = Overrides.parse(
        bandwidth=request.bandwidth, peaks=request.peaks, clock=request.clock, files=request.files
    )
    return resolve(request.gpu, overrides=overrides)


def _model(
    kind: str,
    model: str,
    requests: list[WorkloadRequest],
    device: Any,
    distinct: float | None,
    acceptance: float | None,
) -> str:
    """One estimate, or a sweep."""
    from nsysmodel.estimation import estimate
    from nsysmodel.model import load

    spec = load(model)
    results = [
        estimate(spec, hardware=device, request=one, distinct_experts=distinct, acceptance=acceptance)
        for one in requests
    ]
    if len(results) == 1:
        return _single(kind, results[0])
    documents = [result.to_dict() for result in results]
    if kind == "json":
        return as_json({"schema": "nsysmodel.estimate-sweep/1", "points": documents})
    rows = [_point(document) for document in documents]
    if kind == "csv":
        return as_csv([Column(column.key, column.key) for column in SWEEP], rows)
    title = f"{results[0].model.name} on {device.key or device.name}"
    return _printed(kind, SWEEP, rows, title, "\n".join(results[-1].model.notes))


def _point(document: dict[str, Any]) -> dict[str, Any]:
    """A row of a sweep."""
    return {
        **document,
        "batch": document["workload"]["batch"]["value"],
        "context": document["workload"]["context"]["value"],
        "needed_bytes": document["memory"]["needed_bytes"],
        "fits": document["memory"]["fits"],
    }


def _single(kind: str, result: Any) -> str:
    """The table of ops with the totals."""
    document = result.to_dict()
    if kind == "json":
        return as_json(document)
    if kind == "csv":
        return as_csv(_OPS_CSV, document["ops"])
    whole = result.floor_ns or 1.0
    rows = [
        {**op, "each_ns": op["floor_ns"] / op["count"], "share": op["floor_ns"] / whole}
        for op in document["ops"]
    ]
    return _printed(kind, OPS, rows, result.verdict, _totals(result))


def _totals(result: Any) -> str:
    """The lines below the table of ops."""
    model, device = result.model, result.hardware
    workload = model.workload
    lines = [
        f"Method 1, ops added up: {units.ns(result.floor_hbm_ns, 5)} with weights, KV and state; "
        f"{units.ns(result.floor_strict_ns, 5)} with activations too; "
        f"at most {units.significant(result.tokens_per_s, 4)} tokens/s.",
        f"Method 2, every needed weight once: {units.bytes_(model.weights_once_bytes, 4)}, "
        f"{units.ns(result.weights_once_ns, 5)}.",
        f"If everything overlapped: {units.ns(result.max_sum_ns, 5)}.",
        f"Memory: {units.bytes_(model.memory_bytes)} of weights and KV cache"
        + (f", the GPU has {units.bytes_(device.memory_bytes)}" if device.memory_bytes else "")
        + {True: ": fits.", False: ": does not fit.", None: "."}[result.fits],
        f"Parameters: {units.count(model.parameters, 4)}, "
        f"{units.count(model.active_parameters, 4)} used by one token.",
        "Workload: "
        + ", ".join(
            f"{name} {getattr(workload, name).value} ({getattr(workload, name).source})"
            for name in workload.__dataclass_fields__
            if getattr(workload, name).value != ""
        )
        + ".",
    ]
    return "\n".join([*lines, *(f"Note: {note}" for note in model.notes)])


def _counts(
    kind: str, params: float, active: float | None, gpus: int | None, device: Any, flags: dict[str, Any]
) -> str:
    """The one-line check from two counts."""
    from nsysmodel.estimation import from_counts
    from nsysmodel.theory import formats

    fmt = formats.parse(flags.get("quant") or flags.get("dtype") or "bf16")
    size = fmt.matrix_bytes(8192, 8192) / 8192**2
    result = from_counts(params, hardware=device, bytes_per_parameter=size, active=active, gpus=gpus)
    if kind == "json":
        return as_json({**result, "format": fmt.name})
    shown: list[tuple[str, Any, Callable[[Any], str]]] = [
        ("parameters", "parameters", lambda value: units.count(value, 4)),
        ("active_parameters", "used by one token", lambda value: units.count(value, 4)),
        ("weight_bytes", f"weights in {fmt.name}", units.bytes_),
        ("gpus_needed", "GPUs that hold them", str),
        ("one_gpu_ns", "per token at one GPU's bandwidth", units.ns),
        ("gpus", "GPUs used", str),
        ("ns_per_token", "per token on these", units.ns),
        ("tokens_per_s", "tokens/s, one sequence", units.significant),
    ]
    if kind == "csv":
        return as_csv([Column(key, key) for key, _, _ in shown], [result])
    rows = [
        {"what": label, "value": "unknown" if result[key] is None else show(result[key])}
        for key, label, show in shown
    ]
    columns = [Column("what", "what", right=False), Column("value", "value")]
    return _printed(kind, columns, rows, f"On {device.key or device.name}", "")


def _printed(kind: str, columns: list[Column], rows: list[dict[str, Any]], title: str, foot: str) -> str:
    """A table for people, as text or Markdown."""
    if kind != "markdown":
        return as_table(columns, rows, title=title, foot=foot)
    lines = [
        "| " + " | ".join(column.header for column in columns) + " |",
        "|" + "|".join("---:" if column.right else "---" for column in columns) + "|",
    ]
    for row in rows:
        cells = ("–" if row.get(c.key) is None else c.show(row[c.key]) for c in columns)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    below = "\n".join(f"- {line}" for line in foot.splitlines() if line)
    return "\n\n".join(part for part in (f"**{title}**", "\n".join(lines), below) if part) + "\n"
