"""`nsysmodel inspect`: what is in an export, what is missing, and how to capture it better."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

import click

from nsysmodel.cli.options import chosen_format, output_options
from nsysmodel.cli.reading import reading_options

_WIDTH = 100
_GRAPH_MODES = {
    "none": "none",
    "node": "traced node by node",
    "graph": "traced as a whole: their kernels are not in the export",
    "mixed": "some traced node by node, some as a whole",
}
_MAPPINGS = {
    "device_table": "",
    "cuda_device": " (by the ordinal on the unmasked host: a guess)",
    "adapter": " (by the adapter's number: a guess)",
    "only_gpu": " (the only one in the export)",
}
_SEVERITIES = {"error": "ERROR", "warning": "WARNING", "info": "note"}


@click.command()
@click.argument("export", type=click.Path())
@output_options("table", "json", default="table")
@reading_options
def command(export: str, output_format: str | None, output: str | None, force: bool) -> None:
    """Show what is in EXPORT, what is missing, what that means and what to do.

    Host, user, path and environment values of the export are never shown.
    """
    from nsysmodel.cli.output import check_writable, write_output
    from nsysmodel.export.inspection import inspection
    from nsysmodel.export.run import open_run

    check_writable(output, force=force, named=output is not None)
    with open_run(export) as run:
        found = inspection(run)
    if chosen_format(output_format, output, "table") == "json":
        text = json.dumps(found, ensure_ascii=False, indent=1, allow_nan=False) + "\n"
    else:
        text = "\n".join(_lines(found)) + "\n"
    write_output(output, text, force=force)


def _lines(found: Mapping[str, Any]) -> Iterator[str]:
    yield from _export(found)
    yield from _gpus(found)
    yield from _devices(found)
    yield from _host(found)
    yield from _tables(found)
    yield from _findings(found)


def _many(number: int, what: str) -> str:
    from nsysmodel.units import count

    return f"{count(number)} {what}" + ("" if number == 1 else "s")


def _row(label: str, text: str) -> str:
    return f"{label:<16}{text}"


def _export(found: Mapping[str, Any]) -> Iterator[str]:
    from nsysmodel.cli.frames import clean
    from nsysmodel.units import count, ns

    facts, time = found["export"], found["time"]
    product = facts["product_version"] or "unknown"
    yield _row("export", clean(facts["file"]) + (" (synthetic)" if facts["synthetic"] else ""))
    schema = facts["schema_version"] or "not stated (before 2022)"
    yield _row("written by", clean(f"nsys {product}, schema {schema}"))
    yield _row("kernels", f"{count(facts['kernels'])}, {ns(facts['kernel_time_ns'])} in all")
    yield _row("CUDA graphs", _GRAPH_MODES[facts["graph_mode"]])
    yield _row("completeness", facts["completeness"].replace("_", " "))
    if time["first_ns"] is not None:
        span = f"{ns(time['last_ns'] - time['first_ns'])}, from {time['first_ns'] / 1e9:.3f} s"
        yield _row("GPU activity", f"{span} to {time['last_ns'] / 1e9:.3f} s of the session")


def _gpus(found: Mapping[str, Any]) -> Iterator[str]:
    from nsysmodel.cli.frames import clean
    from nsysmodel.units import bandwidth, bytes_, clock

    yield ""
    if not found["gpus"]:
        yield _row("GPUs", "the export does not say")
    for gpu in found["gpus"]:
        numbers = [f"{gpu['sm_count']} SMs", f"up to {clock(gpu['clock_hz'])}"]
        if gpu["bandwidth_bytes_per_s"]:
            numbers.append(f"pin rate {bandwidth(gpu['bandwidth_bytes_per_s'])}")
        numbers += [f"{bytes_(gpu['memory_bytes'])} memory", f"{bytes_(gpu['l2_bytes'])} L2"]
        if gpu["compute_capability"]:
            numbers.append(f"compute capability {gpu['compute_capability']}")
        yield _row(f"GPU {gpu['id']}", clean(gpu["name"]))
        yield _row("", ", ".join(numbers))
        if gpu["mig"]:
            yield _row("", "MIG instance: every number is that of the instance")


def _devices(found: Mapping[str, Any]) -> Iterator[str]:
    from nsysmodel.cli.frames import clean
    from nsysmodel.units import count, ns

    yield ""
    for device in found["devices"]:
        gpu = clean(device["gpu"]) + _MAPPINGS[device["mapping"]] if device["gpu"] else "unknown GPU"
        yield _row(f"process {device['process']}", f"device {device['device']}: {gpu}")
        parts = [f"{_many(device['kernels'], 'kernel')} on {_many(device['streams'], 'stream')}"]
        parts += [
            f"{count(device[n])} {n.replace('_', ' ')}"
            for n in ("copies", "memsets", "graph_traces")
            if device[n]
        ]
        yield _row("", ", ".join(parts))
        busy = f"busy {ns(device['busy_ns'])}, with kernels {ns(device['kernel_busy_ns'])}"
        overlap = device["kernel_time_ns"] - device["kernel_busy_ns"]
        yield _row("", busy + (f"; kernels overlap by {ns(overlap)}" if overlap else ""))


def _host(found: Mapping[str, Any]) -> Iterator[str]:
    from nsysmodel.cli.frames import clean, cut_middle
    from nsysmodel.units import clock, count, ns

    api, nvtx, nccl = found["api"], found["nvtx"], found["nccl"]
    yield ""
    launches = f"{count(api['launches'])} kernel launches, {count(api['graph_launches'])} graph launches"
    yield _row("API calls", f"{count(api['calls'])} on {_many(api['threads'], 'thread')}: {launches}")
    domains = ", ".join(f"{clean(name) or 'default'} ({count(n)})" for name, n in nvtx["domains"].items())
    yield _row(
        "NVTX",
        f"{count(nvtx['ranges'])} ranges, {count(nvtx['marks'])} marks"
        + (f"; domains: {domains}" if domains else ""),
    )
    for text, number in nvtx["texts"].items():
        yield _row("", f"{count(number):>8} × {cut_middle(clean(text), 70)}")
    if nccl["kernels"] or nccl["ranges"]:
        yield _row(
            "NCCL",
            f"{count(nccl['kernels'])} kernels, {ns(nccl['kernel_time_ns'])}; {count(nccl['ranges'])} ranges",
        )
    for sampled in found["clock_samples"]:
        span = (
            f"{clock(sampled['min_hz'])} to {clock(sampled['max_hz'])}, median {clock(sampled['median_hz'])}"
        )
        yield _row("SM clock", f"GPU {sampled['gpu']}: {span} ({count(sampled['samples'])} samples)")


def _tables(found: Mapping[str, Any]) -> Iterator[str]:
    from nsysmodel.cli.frames import clean
    from nsysmodel.units import count

    yield ""
    rows = [f"{clean(name)} {count(number)}" for name, number in found["tables"].items() if number]
    wrapped = textwrap.wrap(", ".join(rows), _WIDTH - 16, break_on_hyphens=False) or ["none"]
    yield _row("rows", wrapped[0])
    yield from (_row("", line) for line in wrapped[1:])


def _findings(found: Mapping[str, Any]) -> Iterator[str]:
    from nsysmodel.cli.frames import clean

    yield ""
    if not found["findings"]:
        yield "Nothing is missing."
    for finding in found["findings"]:
        head = f"{_SEVERITIES[finding['severity']]} {finding['code']}: "
        yield from textwrap.wrap(head + clean(finding["message"]), _WIDTH, subsequent_indent="    ")
        if finding["hint"]:
            # Not wrapped: it holds commands to copy.
            yield f"    → {clean(finding['hint'])}"
