"""Assumptions and sources: workload, hardware, model, export, each value with where it comes from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from nsysmodel import units
from nsysmodel.report.columns import MISSING
from nsysmodel.report.tables import Cell, Column, Table, code, text
from nsysmodel.report.text import clean, words
from nsysmodel.result import Evaluation

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
    entries[1:1] = [("export", other.file) for other in evaluation.exports[1:]]
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
