"""What stands around the numbers: run line, trust cards, bounds, assumptions and their sources."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nsysmodel import units
from nsysmodel.report.columns import MISSING, unit_for
from nsysmodel.report.tables import Cell, Column, Table, code, text
from nsysmodel.report.text import clean, plural, words
from nsysmodel.result import DeviceResult, Evaluation

_RUN = ("phase", "batch", "context", "tokens", "dtype", "quant", "kv_dtype", "tensor_parallel",
"expert_parallel",
        "data_parallel", "logits")  # fmt: skip
_NAMES = {"tensor_parallel": "TP", "expert_parallel": "EP", "data_parallel": "DP", "kv_dtype": "KV"}
_QUIET = {"quant": ("",), "kv_dtype": ("",), "dtype": ("",), "expert_parallel": (1,), "data_parallel": (1,),
          "tensor_parallel": (1,), "logits": ("last",), "tokens": (1,)}  # fmt: skip
_HARDWARE = (
    "bandwidth_bytes_per_s",
    "pin_bandwidth_bytes_per_s",
    "sm_count",
    "clock_hz",
    "l2_bytes",
    "memory_bytes",
)
_HARDWARE_SOURCE = {
    "bandwidth_bytes_per_s": "bandwidth",
    "pin_bandwidth_bytes_per_s": "pin_bandwidth",
    "clock_hz": "clock",
    "l2_bytes": "l2",
    "memory_bytes": "memory",
}
_HARDWARE_WORDS = {
    "bandwidth_bytes_per_s": "HBM bandwidth of the floors",
    "pin_bandwidth_bytes_per_s": "HBM bandwidth at the pins",
    "sm_count": "SMs", "clock_hz": "SM clock", "l2_bytes": "L2 cache", "memory_bytes": "memory",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of the run line; `assumed` parts are marked wherever they stand."""

    text: str
    assumed: bool = False


@dataclass(frozen=True, slots=True)
class Card:
    """One of the four trust cards: a caption, one number, and lines of what it rests on."""

    caption: str
    value: str
    lines: tuple[str, ...]


def run_line(evaluation: Evaluation) -> tuple[Piece, ...]:
    """Model, workload and device, in the order in which people name a run; what is assumed never hides."""
    pieces = []
    if evaluation.model is not None:
        pieces.append(Piece(clean(evaluation.model.get("name", ""), 80)))
    for key in _RUN:
        entry = evaluation.workload.get(key)
        if not isinstance(entry, Mapping):
            continue
        value, assumed = entry.get("value"), entry.get("source") == "assumed"
        if value is None or value == "" or (value in _QUIET.get(key, ()) and not assumed):
            continue
        shown = f"{value:,}" if isinstance(value, int) else clean(value, 40)
        pieces.append(
            Piece(shown if key in ("phase", "dtype") else f"{_NAMES.get(key, words(key))} {shown}", assumed)
        )
    device = evaluation.hardware.get("name") or (evaluation.devices[0].name if evaluation.devices else "")
    if device:
        pieces.append(Piece(clean(device, 80)))
    return tuple(_merged(pieces))


def _merged(pieces: list[Piece]) -> list[Piece]:
    """Assumed sizes of parallelism share one mark."""
    sizes = [piece for piece in pieces if piece.assumed and piece.text[:3] in ("TP ", "EP ", "DP ")]
    if len(sizes) < 2:
        return pieces
    joint = Piece(" ".join(piece.text for piece in sizes), True)
    return [
        joint if piece is sizes[0] else piece for piece in pieces if piece is sizes[0] or piece not in sizes
    ]


def cards(evaluation: Evaluation, device: DeviceResult, *, judged: bool) -> tuple[Card, ...]:
    """Measured, bound, modeled, steps."""
    steps, step = device.steps, device.step
    modeled, found = _modeled_card(evaluation, device), _steps_card(evaluation, device)
    if not steps.used:
        whole = Card("Measured, whole window", units.ns(step.measured_ns), ("no step could be used",))
        return (whole, _bound_card(evaluation, device, judged), modeled, found)
    unit = unit_for([steps.p95_ns])
    low, middle, high = (unit.text(value) for value in (steps.p05_ns, steps.median_ns, steps.p95_ns))
    spread = f"p5 {low} · p50 {middle} · p95 {high} {unit.name}"
    first = [*_tokens(step.tokens_per_s.get("measured"), "measured"), spread]
    measured = Card(
        f"Measured, mean of {plural(steps.used, 'step')}", units.ns(step.measured_ns), tuple(first)
    )
    return (
        measured,
        _bound_card(evaluation, device, judged),
        modeled,
        found,
    )


def _tokens(rate: float | None, word: str) -> list[str]:
    return [] if rate is None else [f"{units.significant(rate)} tokens/s {word}"]


def _bound_card(evaluation: Evaluation, device: DeviceResult, judged: bool) -> Card:
    step = device.step
    if evaluation.model is None:
        return Card("Device busy, mean per step", units.ns(step.busy_ns), ("no model given: no floor",))
    if not judged or step.floor_ns is None:
        return Card("Floor", "withheld", ("the model does not fit what was measured",))
    lines = [f"{units.percent(step.fraction_of_roofline)} of the roofline"]
    lines += _tokens(step.tokens_per_s.get("bound"), "at most")
    lines.append(f"peaks: {clean(evaluation.hardware.get('source', 'unknown'), 40)}")
    return Card("Floor of the model", units.ns(step.floor_ns), tuple(lines))


def _modeled_card(evaluation: Evaluation, device: DeviceResult) -> Card:
    export = evaluation.export
    if evaluation.model is None:
        facts = (
            f"{plural(len(device.kernels), 'name')} and launch shapes",
            f"graphs: {words(export.graph_mode)}",
        )
        return Card("Kernels in the export", f"{export.kernels:,}", facts)
    lines = [plural(len(device.unmodeled), "kernel") + " unmodeled"]
    if device.missing:
        lines.append(plural(len(device.missing), "op") + " of the model served by no kernel")
    return Card(
        "Kernel time that ops claim", units.percent(device.coverage.kernel_time_modeled), tuple(lines)
    )


def _steps_card(evaluation: Evaluation, device: DeviceResult) -> Card:
    steps = device.steps
    reasons: dict[str, int] = {}
    for dropped in steps.dropped:
        reasons[dropped.reason] = reasons.get(dropped.reason, 0) + 1
    lines = []
    if reasons:
        lines.append(
            "dropped: " + ", ".join(f"{count:,} {words(reason)}" for reason, count in reasons.items())
        )
    if steps.method:
        lines.append(f"found by {clean(words(steps.method), 60)}")
    if steps.layers:
        lines.append(plural(steps.layers, "layer") + " per step")
    caption = "Steps judged" if evaluation.model is not None else "Steps used"
    return Card(caption, f"{steps.used:,} of {steps.found:,}", tuple(lines))


def bounds(device: DeviceResult, *, judged: bool) -> tuple[tuple[str, str], ...]:
    """From the loosest bound to the measured time: a check of the whole model in one line."""
    step = device.step
    if not judged or step.floor_ns is None:
        return ()
    read = f" ({units.bytes_(step.weights_once_bytes)})" if step.weights_once_bytes else ""
    entries = [
        (f"every weight once{read}", step.weights_once_ns),
        ("max(ΣF/P, ΣB/W)", step.max_sum_bound_ns),
        ("Σ floors", step.floor_ns),
        ("Σ floors with activations", step.floor_strict_ns),
        ("busy", step.busy_ns),
        ("measured", step.measured_ns),
    ]
    return tuple((name, units.ns(value)) for name, value in entries if value is not None)


def workload(evaluation: Evaluation) -> Table | None:
    """Every workload parameter with where it comes from."""
    if not evaluation.workload:
        return None
    rows = []
    for key, entry in evaluation.workload.items():
        value, source = (
            (entry.get("value"), entry.get("source", "")) if isinstance(entry, Mapping) else (entry, "")
        )
        shown = (
            "as the model says"
            if value == ""
            else f"{value:,}"
            if isinstance(value, int)
            else clean(value, 80)
        )
        style = "assumed" if source == "assumed" else ""
        rows.append((text(words(key)), Cell(shown, style=style), Cell(clean(source, 40), style=style)))
    columns = (Column("Workload", wide=True), Column("Value", wide=True), Column("Source", wide=True))
    return Table("workload", "What one step works on", columns, tuple(rows))


def hardware(evaluation: Evaluation) -> Table:
    """Peaks and bandwidths with where they come from: the kind of source, and the sentence about it."""
    facts = evaluation.hardware
    sentences = {str(key): str(value) for key, value in (facts.get("sources") or {}).items()}
    kinds = facts.get("peak_sources") or {}
    rows = []

    def add(key: str, name: str, shown: str, kind: object = "") -> None:
        sentence = clean(sentences.pop(key, ""), 200)
        origin = ": ".join(part for part in (clean(kind, 40), sentence) if part) or clean(
            facts.get("source", ""), 60
        )
        rows.append(
            (text(name), Cell(shown), Cell(origin, style="assumed" if origin == "assumed" else "prose"))
        )

    add("name", "device", clean(facts.get("name", ""), 80) or MISSING)
    for dtype, peak in (facts.get("peak_flop_per_s") or {}).items():
        name = f"{clean(words(str(dtype)), 20)} peak, dense"
        add(f"peak.{dtype}", name, units.flops(_float(peak)), kinds.get(dtype, ""))
    for key in _HARDWARE:
        if facts.get(key):
            kind = facts.get("bandwidth_source", "") if key == "bandwidth_bytes_per_s" else ""
            add(
                _HARDWARE_SOURCE.get(key, key), _HARDWARE_WORDS[key], _quantity(key, _float(facts[key])), kind
            )
    for link, rate in (facts.get("links") or {}).items():
        add(f"link.{link}", f"{clean(link, 20)}, one direction", units.bandwidth(_float(rate)))
    for key, sentence in sorted(sentences.items()):
        rows.append((text(words(key)), Cell(""), Cell(clean(sentence, 200), style="prose")))
    columns = (Column("Hardware", wide=True), Column("Value", wide=True), Column("Source", wide=True))
    return Table("hardware", "Peaks that the floors use", columns, tuple(rows))


def parameters(evaluation: Evaluation) -> Table | None:
    """What the model says of itself: size, bytes, architecture."""
    model = evaluation.model or {}
    rows = []
    for key, value in model.items():
        if isinstance(value, Mapping):
            rows += [(text(words(str(name))), code(_scalar(item), width=120)) for name, item in value.items()]
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            if value:
                shown = units.bytes_(value) if key.endswith("_bytes") else units.count(value)
                rows.append((text(words(key.removesuffix("_bytes"))), Cell(shown, sort=float(value))))
        elif isinstance(value, str) and value:
            rows.append((text(words(key)), code(value, width=120)))
    if not rows:
        return None
    columns = (Column("Model", wide=True), Column("Value", wide=True))
    return Table("parameters", "The model", columns, tuple(rows))


def made(evaluation: Evaluation) -> Table:
    """How this was made: the export, and the command."""
    export = evaluation.export
    entries = [
        ("export", export.file),
        ("made with", "synthetic: built by a script, nothing was measured" if export.synthetic else ""),
        ("nsys", export.product_version), ("schema", export.schema_version),
        ("completeness", words(export.completeness)), ("CUDA graphs", words(export.graph_mode)),
        ("kernels", f"{export.kernels:,}"), ("copies", f"{export.copies:,}"), ("memsets",
        f"{export.memsets:,}"),
        ("API calls", f"{export.api_calls:,}"), ("traced graphs", f"{export.graph_traces:,}"),
        ("NVTX ranges", f"{export.nvtx_ranges:,}"), ("span",
        units.ns(export.span_ns) if export.span_ns else ""),
        ("processes, devices", f"{export.processes:,}, {export.devices:,}" if export.devices else ""),
        ("nsysmodel", evaluation.version), ("command", evaluation.command),
    ]  # fmt: skip
    rows = tuple(
        (text(name), code(value, width=200) if name in ("export", "command") else text(value))
        for name, value in entries
        if value
    )
    return Table(
        "made", "How this report was made", (Column("Fact", wide=True), Column("Value", wide=True)), rows
    )


def _quantity(key: str, value: float) -> str:
    if key.endswith("bytes_per_s"):
        return units.bandwidth(value)
    if key.endswith("_hz"):
        return units.clock(value)
    return units.bytes_(value) if key.endswith("_bytes") else units.count(value)


def _float(value: Any) -> float:
    if isinstance(value, Mapping):
        value = value.get("value")
    return float(value) if isinstance(value, (int, float)) else float("nan")


def _scalar(value: Any) -> str:
    return (
        str(value) if isinstance(value, (str, int, float)) else json.dumps(value, default=str, sort_keys=True)
    )
