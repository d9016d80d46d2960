"""What stands around the numbers: run line, trust cards, the check of the whole model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from nsysmodel import units
from nsysmodel.report.columns import unit_for
from nsysmodel.report.text import clean, plural, words
from nsysmodel.result import DeviceResult, Evaluation

_RUN = ("phase", "batch", "context", "tokens", "dtype", "quant", "kv_dtype", "tensor_parallel",
"expert_parallel",
        "data_parallel", "logits")  # fmt: skip
_NAMES = {"tensor_parallel": "TP", "expert_parallel": "EP", "data_parallel": "DP", "kv_dtype": "KV"}
_QUIET = {"quant": ("",), "kv_dtype": ("",), "dtype": ("",), "expert_parallel": (1,), "data_parallel": (1,),
          "tensor_parallel": (1,), "logits": ("last",), "tokens": (1,)}  # fmt: skip


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
    else:
        pieces.append(Piece(clean(evaluation.export.file, 80)))
    for key in _RUN:
        entry = evaluation.workload.get(key)
        if not isinstance(entry, Mapping):
            continue
        value, assumed = entry.get("value"), entry.get("source") == "assumed"
        if value is None or value == "" or (value in _QUIET.get(key, ()) and not assumed):
            continue
        if key == "dtype" and entry.get("source") == "model":
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
        whole = Card(
            "Measured, whole window",
            units.ns(step.measured_ns),
            ("no step could be used",) if steps.found else (),
        )
        return (whole, _bound_card(evaluation, device, judged), modeled, found)
    unit = unit_for([steps.p95_ns])
    low, middle, high = (unit.text(value) for value in (steps.p05_ns, steps.median_ns, steps.p95_ns))
    spread = f"p5 {low} · p50 {middle} · p95 {high} {unit.name}"
    first = [*_tokens(evaluation, step.tokens_per_s.get("measured"), "measured"), spread]
    measured = Card(
        f"Measured, mean of {plural(steps.used, 'step')}", units.ns(step.measured_ns), tuple(first)
    )
    return (
        measured,
        _bound_card(evaluation, device, judged),
        modeled,
        found,
    )


def rate_unit(evaluation: Evaluation) -> str:
    """What a step produces: tokens, or, where it verifies a draft, tokens of which some are rejected."""
    values = {name: entry.get("value") for name, entry in evaluation.workload.items()}
    verifies = values.get("phase") == "decode" and (values.get("tokens") or 1) > 1
    return "verified tokens/s" if verifies else "tokens/s"


def _tokens(evaluation: Evaluation, rate: float | None, word: str) -> list[str]:
    return [] if rate is None else [f"{units.significant(rate)} {rate_unit(evaluation)} {word}"]


def _bound_card(evaluation: Evaluation, device: DeviceResult, judged: bool) -> Card:
    step = device.step
    if evaluation.model is None:
        caption = "Device busy, mean per step" if device.steps.used else "Device busy"
        return Card(caption, units.ns(step.busy_ns), ("no model given: no floor",))
    if not judged or step.floor_ns is None:
        return Card("Floor", "withheld", ("nothing is judged: see the verdict",))
    lines = [f"{units.percent(step.fraction_of_roofline)} of the roofline"]
    lines += _tokens(evaluation, step.tokens_per_s.get("bound"), "at most")
    lines.append(f"peaks: {clean(evaluation.hardware.get('source', 'unknown'), 40)}")
    return Card("Floor of the model", units.ns(step.floor_ns), tuple(lines))


def _modeled_card(evaluation: Evaluation, device: DeviceResult) -> Card:
    export = evaluation.export
    if evaluation.model is None or not device.ops:
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
    if not steps.found:
        return Card("Steps", "none found", ("the whole window is shown",))
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
        ("Σ floors with every activation", step.floor_strict_ns),
        ("busy", step.busy_ns),
    ]
    return tuple((name, units.ns(value)) for name, value in entries if value is not None)
