"""The page as values: what stands where. Templates print these and decide nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from nsysmodel.report import account, charts, costs, facts, kernels, ops, sections, sources, timeline, whatif
from nsysmodel.report.columns import unit_for
from nsysmodel.report.tables import Table
from nsysmodel.report.text import clean, unbroken
from nsysmodel.result import DeviceResult, Diagnostic, Evaluation


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of each part fits on the page."""

    kernels: int = 1000
    unmodeled: int = 300
    places: int = 60
    learned: int = 250
    layers: int = 200
    bars: int = 3000


@dataclass(frozen=True, slots=True)
class DeviceView:
    """One device of one process."""

    ident: str
    title: str
    cards: tuple[facts.Card, ...]
    bounds: tuple[tuple[str, str], ...]
    waterfall: tuple[account.WaterRow, ...]
    waterfall_unit: str
    waterfall_total: tuple[str, str, str]
    waterfall_closes: bool
    steps: int
    ops: ops.Ops | None
    learned: tuple[Table, ...]
    roofline: Markup | None
    strip: Markup | None
    heat: Markup | None
    outliers: str
    layers: Table | None
    timeline: timeline.Drawn | None
    timeline_step: int
    gap_causes: Table | None
    gap_sizes: Table | None
    gap_places: Table | None
    transfers: Table | None
    collectives: Table | None
    cost_notes: tuple[str, ...]
    runs: Table | None
    clock: tuple[str, str]
    unmodeled: Table | None
    missing: Table | None
    closure: Table | None
    clusters: Table | None
    kernels: Table | None
    classes: Table | None
    small: Table | None


@dataclass(frozen=True, slots=True)
class PageView:
    """The whole page."""

    title: str
    run: tuple[facts.Piece, ...]
    assumed: tuple[str, ...]
    headline: str
    reasons: tuple[str, ...]
    status: str
    judged: bool
    has_model: bool
    synthetic: bool
    warnings: tuple[Diagnostic, ...]
    notes: tuple[Diagnostic, ...]
    fits: tuple[tuple[str, str, str], ...]
    devices: tuple[DeviceView, ...]
    overview: Table | None
    workload: Table | None
    hardware: Table
    parameters: Table | None
    model_notes: tuple[str, ...]
    made: Table
    what_if: whatif.Panel | None
    first_of: str
    version: str
    data: dict[str, Any]


def page(evaluation: Evaluation, limits: Limits) -> PageView:
    """The view of an evaluation."""
    judged = is_judged(evaluation)
    devices = tuple(
        _device(evaluation, device, limits, f"d{index}", judged)
        for index, device in enumerate(evaluation.devices)
    )
    run = facts.run_line(evaluation)
    panel = whatif.panel(evaluation) if judged else None
    worst_first = sorted(
        evaluation.diagnostics, key=lambda item: {"error": 0, "warning": 1}.get(item.severity, 2)
    )
    cleaned = [Diagnostic(d.code, d.severity, clean(d.message, 500), clean(d.hint, 500)) for d in worst_first]
    return PageView(
        title=clean(evaluation.verdict.headline, 120),
        run=run,
        assumed=tuple(piece.text for piece in run if piece.assumed),
        headline=unbroken(clean(evaluation.verdict.headline, 400)),
        reasons=tuple(unbroken(clean(reason, 400)) for reason in evaluation.verdict.reasons),
        status=evaluation.verdict.status,
        judged=judged,
        has_model=evaluation.model is not None,
        synthetic=evaluation.export.synthetic,
        warnings=tuple(
            item
            for item in cleaned
            # What the verdict itself says needs no second place.
            if item.severity != "info" and item.message not in evaluation.verdict.reasons
        ),
        notes=tuple(item for item in cleaned if item.severity == "info"),
        fits=tuple(_fit(fit) for fit in evaluation.fits),
        devices=devices,
        overview=sections.devices(
            evaluation.devices, tuple(export.file for export in evaluation.exports), judged=judged
        ),
        workload=sources.workload(evaluation),
        hardware=sources.hardware(evaluation),
        parameters=sources.parameters(evaluation),
        model_notes=tuple(clean(note, 500) for note in (evaluation.model or {}).get("notes") or ()),
        made=sources.made(evaluation),
        what_if=panel,
        first_of=devices[0].title if len(devices) > 1 else "",
        version=clean(evaluation.version, 40),
        data=_data(evaluation, devices, judged) | ({"what_if": panel.data} if panel else {}),
    )


def is_judged(evaluation: Evaluation) -> bool:
    """True where floors and ratios may be shown."""
    return evaluation.model is not None and evaluation.verdict.status == "ok"


def _fit(fit: Any) -> tuple[str, str, str]:
    score = fit.get("score")
    shown = f"{score:.2f}" if isinstance(score, (int, float)) else ""
    reason = fit.get("reason") or fit.get("why") or ""
    return clean(fit.get("name", ""), 80), shown, clean(reason, 200)


def _device(
    evaluation: Evaluation, device: DeviceResult, limits: Limits, ident: str, judged: bool
) -> DeviceView:
    order = ops.ranked(device, judged=judged)
    ranks = ops.ranks(order)
    water = account.waterfall(device, judged=judged)
    unit = account.fine(water.mean_ns)
    heat = charts.heat(device.layers, judged=judged, ident=f"{ident}-heat")
    modeled = evaluation.model is not None and bool(device.ops)
    drawn = None
    if device.timeline is not None and device.timeline.bars:
        drawn = timeline.draw(device.timeline, ranks, limits.bars, f"{ident}-tl", modeled=modeled)
    gaps = device.gaps
    return DeviceView(
        ident=ident,
        title=_title(evaluation, device),
        cards=facts.cards(evaluation, device, judged=judged),
        bounds=facts.bounds(device, judged=judged),
        waterfall=tuple(account.shown(row, water, unit, ranks) for row in water.rows),
        waterfall_unit=unit.name,
        waterfall_total=account.total(water, unit),
        waterfall_closes=water.closes,
        steps=device.steps.used,
        ops=ops.build(device, judged=judged, ident=f"{ident}-ops"),
        learned=tuple(
            sections.learned(layer, ranks, f"{ident}-learned-{k}", judged=judged, limit=limits.learned)
            for k, layer in enumerate(device.learned)
        ),
        roofline=_roofline(evaluation, order, ranks, ident) if judged else None,
        strip=charts.strip(order, ranks, f"{ident}-strip") if judged else None,
        heat=heat[0] if heat else None,
        outliers=_outliers(device, heat[1]) if heat else "",
        layers=sections.layers(device.layers, f"{ident}-layers", judged=judged, limit=limits.layers),
        timeline=drawn,
        timeline_step=device.timeline.step if device.timeline else 0,
        gap_causes=sections.gap_causes(gaps, device.steps.used, f"{ident}-causes") if gaps.by_cause else None,
        gap_sizes=sections.gap_sizes(gaps, f"{ident}-sizes") if gaps.by_size else None,
        gap_places=sections.gap_places(gaps, f"{ident}-places", limits.places),
        transfers=sections.transfers(device, f"{ident}-transfers", 200, judged=judged),
        collectives=costs.collectives(device, f"{ident}-collectives"),
        cost_notes=costs.notes(device),
        runs=costs.small_runs(device, f"{ident}-runs", 12),
        clock=costs.clock(device),
        unmodeled=kernels.unmodeled(device, f"{ident}-unmodeled", limits.unmodeled) if modeled else None,
        missing=sections.missing(device.missing, f"{ident}-missing", judged=judged),
        closure=sections.closure(device.coverage, f"{ident}-closure"),
        clusters=sections.clusters(device.steps.clusters, f"{ident}-clusters", judged=judged),
        kernels=kernels.kernels(device, f"{ident}-kernels", limits.kernels, modeled=modeled),
        classes=None if modeled else kernels.classes(device, f"{ident}-classes"),
        small=None if modeled else kernels.small(device, f"{ident}-small", 12),
    )


def _title(evaluation: Evaluation, device: DeviceResult) -> str:
    """GPU, ordinal and process; with the export where there are several."""
    title = f"{clean(device.name, 80)}, device {device.device} of process {device.process}"
    exports = evaluation.exports
    if len(exports) > 1 and device.export_index < len(exports):
        title += f" in {clean(exports[device.export_index].file, 80)}"
    return title


def _roofline(evaluation: Evaluation, order: Any, ranks: dict[str, int], ident: str) -> Markup | None:
    peaks = evaluation.hardware.get("peak_flop_per_s") or {}
    used = {row.dtype for row in order if row.dtype}
    roofs = [
        (name, float(peak)) for name, peak in peaks.items() if name in used and isinstance(peak, (int, float))
    ]
    bandwidth = evaluation.hardware.get("bandwidth_bytes_per_s") or 0.0
    return charts.roofline(order, ranks, float(bandwidth), sorted(roofs, key=lambda r: r[1]), f"{ident}-roof")


def _outliers(device: DeviceResult, indices: tuple[int, ...]) -> str:
    """Layers far from the median of their kind, the first eight by number."""
    unit = unit_for([layer.measured_ns for layer in device.layers])
    chosen = [device.layers[index] for index in indices[:8]]
    told = ", ".join(f"layer {layer.layer}: {unit.text(layer.measured_ns)} {unit.name}" for layer in chosen)
    return f"{told} and {len(indices) - 8} more" if len(indices) > 8 else told


def _data(evaluation: Evaluation, devices: tuple[DeviceView, ...], judged: bool) -> dict[str, Any]:
    """What the script and a reader's own tools find in the page: totals, waterfall, ops, timeline."""
    entries = []
    for device, shown in zip(evaluation.devices, devices, strict=True):
        ops_data = [
            {"op": clean(row.op, 160), "measured_ns": row.measured_ns, "total_ns": row.total_ns,
             **({"floor_ns": row.floor_ns, "excess_ns": row.excess_ns, "ratio": row.ratio} if judged else {})}
            for row in ops.ranked(device, judged=judged)
        ]  # fmt: skip
        entries.append({
            "process": device.process, "device": device.device, "window_total_ns": device.window_total_ns,
            "steps_used": device.steps.used, "measured_ns": device.step.measured_ns,
            **({"floor_ns": device.step.floor_ns} if judged else {}),
            "waterfall": [{"kind": row.kind, "total_ns": row.total_ns}
                          for row in account.waterfall(device, judged=judged).rows],
            "ops": ops_data, "timeline": shown.timeline.data if shown.timeline else None,
        })  # fmt: skip
    return {"schema": "nsysmodel.page/1", "status": evaluation.verdict.status, "devices": entries}
