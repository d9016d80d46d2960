"""The tables behind the main one: learned layers, layers, gaps, transfers, unmodeled, missing, kernels."""

from __future__ import annotations

from collections.abc import Mapping

from nsysmodel import units
from nsysmodel.report.columns import BANDWIDTH, MISSING, SIZE, unit_for
from nsysmodel.report.tables import (
    Cell,
    Column,
    Table,
    code,
    limited,
    numbers,
    plain,
    text,
    times,
    without_empty,
)
from nsysmodel.report.tables import kernel as kernel_cell
from nsysmodel.report.text import clean, plural, unbroken, words
from nsysmodel.result import (
    GAP_SIZES,
    Coverage,
    DeviceResult,
    GapPlace,
    Gaps,
    LayerHeat,
    LearnedLayer,
    MissingRow,
    StepCluster,
)

_SIZE_WORDS = {"<1us": "below 1 µs", "1-5us": "1 to 5 µs", "5-50us": "5 to 50 µs", "50-500us": "50 to 500 µs",
               ">500us": "above 500 µs"}  # fmt: skip


def learned(layer: LearnedLayer, ranks: Mapping[str, int], ident: str, *, judged: bool, limit: int) -> Table:
    """One layer in launch order, as the join understood it."""
    unit = unit_for([float(kernel.median_ns) for kernel in layer.kernels])
    columns = [
        Column("Kernel", wide=True), Column("Grid", wide=True, minor=True), Column("Stream", minor=True),
        Column("Taken for", wide=True), Column("Median", unit.name), Column("Confidence"),
    ]  # fmt: skip
    if judged:
        columns.insert(5, Column("Floor", unit.name))
    rows = []
    for kernel in layer.kernels:
        if kernel.op is None:
            op = Cell("unmodeled", style="flag")
        else:
            op = code(kernel.op, width=40, mark=str(ranks.get(kernel.op, 0)))
        low = kernel.op is not None and kernel.confidence < 0.8
        cells = [
            kernel_cell(kernel.name, width=64), text(kernel.grid), plain(kernel.stream), op,
            *numbers([kernel.median_ns], unit, bars=False),
            Cell(f"{kernel.confidence:.2f}" if kernel.op else MISSING, kernel.confidence,
            style="low" if low else ""),
        ]  # fmt: skip
        if judged:
            cells.insert(5, numbers([kernel.floor_ns], unit)[0])
        rows.append(cells)
    caption = f"{_place(layer)}: {plural(len(layer.kernels), 'kernel')} in launch order"
    return limited(ident, caption, columns, rows, limit, "kernels")


def _place(layer: LearnedLayer) -> str:
    """Which layer it is, or which end of the step."""
    if layer.layer is not None:
        return f"Layer {layer.layer}, of kind {clean(layer.kind, 40)}"
    ends = {"head": "Before the first layer", "tail": "After the last layer"}
    return ends.get(layer.kind, clean(layer.kind, 40))


def layers(items: tuple[LayerHeat, ...], ident: str, *, judged: bool, limit: int) -> Table | None:
    """The numbers of the heat strip."""
    if not items:
        return None
    unit, measured = times([layer.measured_ns for layer in items], bars=True)
    columns = [Column("Layer"), Column("Kind", wide=True), Column("Measured", unit)]
    if judged:
        columns.append(Column("Floor", unit))
    floor_unit = unit_for([layer.measured_ns for layer in items])
    rows = []
    for layer, cell in zip(items, measured, strict=True):
        cells = [plain(layer.layer), text(layer.kind, width=40), cell]
        if judged:
            cells.append(numbers([layer.floor_ns], floor_unit)[0])
        rows.append(cells)
    return limited(ident, "Mean per step of each layer", columns, rows, limit, "layers")


def gap_causes(gaps: Gaps, steps: int, ident: str) -> Table:
    """Idle time by cause: mean per step and whole, or whole alone where there are no steps."""
    causes = sorted(gaps.by_cause.items(), key=lambda item: (-item[1], item[0]))
    causes = [item for item in causes if item[1]] or causes[:1]
    unit, means = times([total / max(steps, 1) for _, total in causes], bars=True)
    rows = tuple(
        (text(words(cause)), mean, plain(total)) for (cause, total), mean in zip(causes, means, strict=True)
    )
    name, whole = ("Mean per step", "All steps") if steps else ("Time", "Time")
    columns = (Column("Cause", wide=True), Column(name, unit), Column(whole, "ns", minor=True))
    return Table(ident, "By cause", columns, rows)


def gap_sizes(gaps: Gaps, ident: str) -> Table:
    """Idle time by the length of the gap."""
    sizes = [(size, gaps.by_size[size]) for size in GAP_SIZES if size in gaps.by_size]
    unit, totals = times([float(bucket.total_ns) for _, bucket in sizes], bars=True)
    rows = tuple(
        (text(_SIZE_WORDS[size]), plain(bucket.count), total)
        for (size, bucket), total in zip(sizes, totals, strict=True)
    )
    columns = (Column("Length", wide=True), Column("Gaps"), Column("Together", unit))
    return Table(ident, "By length of the gap, all used steps", columns, rows)


def gap_places(gaps: Gaps, ident: str, limit: int) -> Table | None:
    """Where in the step the device idles again and again."""
    if not gaps.places:
        return None
    unit, totals = times([float(place.total_ns) for place in gaps.places], bars=True)
    small, medians = times([float(place.median_ns) for place in gaps.places])
    columns = (
        Column("After", wide=True), Column("Before", wide=True), Column("Cause", wide=True), Column("Gaps"),
        Column("Median", small), Column("Together", unit), Column("Why", wide=True, minor=True),
    )  # fmt: skip
    rows = [
        (kernel_cell(place.after, width=30), kernel_cell(place.before, width=30), text(words(place.cause)),
        plain(place.count),
         median, total, _why(place))
        for place, median, total in zip(gaps.places, medians, totals, strict=True)
    ]  # fmt: skip
    return without_empty(
        limited(ident, "By place, all used steps together", columns, rows, limit, "places", sorted_by=5)
    )


def _why(place: GapPlace) -> Cell:
    """The evidence; inside a graph there is none but the cause itself."""
    told = "" if place.cause == "inside_graph" else place.explanation
    return Cell(unbroken(clean(told, 160)), style="prose")


def transfers(device: DeviceResult, ident: str, limit: int, *, judged: bool) -> Table | None:
    """Copies and collectives: bytes, rate, and what of them no kernel hides."""
    items = device.transfers
    if not items:
        return None
    unit, totals = times([float(item.total_ns) for item in items], bars=True)
    _, exposed = unit, numbers([float(item.exposed_ns) for item in items],
                               unit_for([float(item.total_ns) for item in items]))  # fmt: skip
    rate = unit_for([item.bytes_per_s for item in items], BANDWIDTH)
    size = unit_for([float(item.bytes) for item in items], SIZE)
    columns: tuple[Column, ...] = (
        Column("Kind", wide=True), Column("Memory", wide=True), Column("Count"), Column("Size", size.name),
        Column("Time", unit), Column("Exposed", unit, hint="not hidden behind a kernel"),
        Column("Achieved", rate.name), Column("Link", wide=True), Column("Link peak", rate.name),
        Column("Ratio"), Column("Note", wide=True, minor=True),
    )  # fmt: skip
    rows: list[tuple[Cell, ...]] = [
        (text(item.kind), text(item.memory), plain(item.count), numbers([item.bytes], size)[0], total, open_,
         numbers([item.bytes_per_s], rate)[0], text(item.link or MISSING), numbers([item.link_bytes_per_s],
         rate)[0],
         plain(item.ratio, units.ratio(item.ratio)) if judged else Cell(""),
         Cell(unbroken(clean(item.explanation, 200)), style="prose"))
        for item, total, open_ in zip(items, totals, exposed, strict=True)
    ]  # fmt: skip
    caption = "Copies and memsets of all used steps" if device.steps.used else "Copies and memsets"
    return without_empty(limited(ident, caption, columns, rows, limit, "kinds", sorted_by=4))


def missing(rows: tuple[MissingRow, ...], ident: str, *, judged: bool) -> Table | None:
    """Ops that the model expects and no kernel serves."""
    if not rows:
        return None
    columns = [Column("Op", wide=True), Column("Expected per step"), Column("May be inside", wide=True)]
    unit, floors = times([row.floor_ns for row in rows])
    if judged:
        columns.insert(2, Column("Floor", unit))
    lines = []
    for row, floor in zip(rows, floors, strict=True):
        cells = [code(row.op, width=40), plain(row.expected), code(row.fused_into, width=40)]
        if judged:
            cells.insert(2, floor)
        lines.append(cells)
    return without_empty(
        limited(ident, "Expected by the model, served by no kernel", columns, lines, 200, "ops")
    )


def closure(coverage: Coverage, ident: str) -> Table | None:
    """Expected and found counts of each op."""
    if not coverage.closure:
        return None
    columns = (
        Column("Op", wide=True),
        Column("Expected per step"),
        Column("Found per step"),
        Column("Closes", wide=True),
    )
    rows = [
        (code(str(item.get("op", "")), width=40), _count(item.get("expected")), _count(item.get("found")),
         Cell("yes" if item.get("closes") else "no", style="" if item.get("closes") else "flag"))
        for item in coverage.closure
    ]  # fmt: skip
    return limited(ident, "Count of each op, expected and found", columns, rows, 400, "ops")


def devices(items: tuple[DeviceResult, ...], files: tuple[str, ...], *, judged: bool) -> Table | None:
    """One row per process and device, where there are several; with its export where there are several."""
    if len(items) < 2:
        return None
    each = "mean per step" if any(item.steps.used for item in items) else "the whole window"
    caption = f"Every process and device, {each}"
    unit, measured = times([item.step.measured_ns for item in items], bars=True)
    scale = unit_for([item.step.measured_ns for item in items])
    columns = [
        Column("Device", wide=True), Column("Process"), Column("Steps used"), Column("Measured", unit),
        Column("Busy", unit),
    ]  # fmt: skip
    if judged:
        columns += [Column("Floor", unit), Column("Roofline", "%"), Column("Kernel time claimed", "%")]
    if len(files) > 1:
        columns.append(Column("Export", wide=True))
    rows = []
    for index, (item, cell) in enumerate(zip(items, measured, strict=True)):
        step = item.step
        cells = [
            Cell(f"{item.device}: {clean(item.name, 60)}", link=f"d{index}"),
            Cell(str(item.process), float(item.process)),
            plain(item.steps.used), cell, *numbers([step.busy_ns], scale),
        ]  # fmt: skip
        if judged:
            cells += numbers([step.floor_ns], scale)
            for share in (step.fraction_of_roofline, item.coverage.kernel_time_modeled):
                cells.append(Cell(MISSING) if share is None else Cell(f"{share * 100:.1f}", share))
        if len(files) > 1:
            cells.append(text(files[item.export_index] if item.export_index < len(files) else "", width=60))
        rows.append(cells)
    return limited("devices", caption, columns, rows, 256, "devices", sorted_by=3)


def clusters(items: tuple[StepCluster, ...], ident: str, *, judged: bool) -> Table | None:
    """Steps by phase and batch, where there is more than one kind."""
    if len(items) < 2:
        return None
    unit, medians = times([float(item.median_ns) for item in items])
    columns = [
        Column("Phase", wide=True), Column("Batch"), Column("Tokens"), Column("Known from", wide=True),
        Column("Steps"), Column("Median", unit), Column("Judged", wide=True),
    ]  # fmt: skip
    if judged:
        columns.insert(6, Column("Floor", unit))
    rows = []
    for item, median in zip(items, medians, strict=True):
        cells = [text(item.phase), plain(item.batch), plain(item.tokens), text(item.source),
        plain(item.steps),
                 median, Cell("yes" if item.used else "no")]  # fmt: skip
        if judged:
            cells.insert(6, numbers([item.floor_ns], unit_for([float(i.median_ns) for i in items]))[0])
        rows.append(cells)
    return limited(ident, "Kinds of steps that were found", columns, rows, 100, "kinds")


def _count(value: object) -> Cell:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return Cell(units.significant(float(value), 6), sort=float(value))
    return Cell(MISSING)
