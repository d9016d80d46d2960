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
    snippet,
    text,
    times,
)
from nsysmodel.report.text import clean, words
from nsysmodel.result import (
    GAP_SIZES,
    Coverage,
    DeviceResult,
    Gaps,
    KernelUse,
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
            code(kernel.name, width=64), text(kernel.grid), plain(kernel.stream), op,
            *numbers([kernel.median_ns], unit, bars=False),
            Cell(f"{kernel.confidence:.2f}" if kernel.op else MISSING, kernel.confidence,
            style="low" if low else ""),
        ]  # fmt: skip
        if judged:
            cells.insert(5, numbers([kernel.floor_ns], unit)[0])
        rows.append(cells)
    place = f", layer {layer.layer}" if layer.layer is not None else ""
    caption = f"Kind {clean(layer.kind, 40)}{place}: kernels in launch order"
    return limited(ident, caption, columns, rows, limit, "kernels")


def layers(items: tuple[LayerHeat, ...], ident: str, *, judged: bool, limit: int) -> Table:
    """The numbers of the heat strip."""
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
    """Idle time by cause, mean per step and whole."""
    causes = sorted(gaps.by_cause.items(), key=lambda item: (-item[1], item[0]))
    unit, means = times([total / max(steps, 1) for _, total in causes], bars=True)
    rows = tuple(
        (text(words(cause)), mean, plain(total)) for (cause, total), mean in zip(causes, means, strict=True)
    )
    columns = (
        Column("Cause", wide=True),
        Column("Mean per step", unit),
        Column("All steps", "ns", minor=True),
    )
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
    return Table(ident, "By length of the gap, all judged steps", columns, rows)


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
        (code(place.after, width=40), code(place.before, width=40), text(words(place.cause)),
        plain(place.count),
         median, total, text(place.explanation, width=160, style="prose"))
        for place, median, total in zip(gaps.places, medians, totals, strict=True)
    ]  # fmt: skip
    return limited(ident, "By place in the step", columns, rows, limit, "places", sorted_by=5)


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
        Column("Ratio"),
    )  # fmt: skip
    rows: list[tuple[Cell, ...]] = [
        (text(item.kind), text(item.memory), plain(item.count), numbers([item.bytes], size)[0], total, open_,
         numbers([item.bytes_per_s], rate)[0], text(item.link or MISSING), numbers([item.link_bytes_per_s],
         rate)[0],
         plain(item.ratio, units.ratio(item.ratio)))
        for item, total, open_ in zip(items, totals, exposed, strict=True)
    ]  # fmt: skip
    if not judged:
        columns, rows = columns[:-1], [row[:-1] for row in rows]
    return limited(
        ident, "Copies and memsets of all judged steps", columns, rows, limit, "kinds", sorted_by=4
    )


def unmodeled(device: DeviceResult, ident: str, limit: int) -> Table | None:
    """Kernels that no op claims, with a model line to paste."""
    rows = sorted(device.unmodeled, key=lambda row: (-row.total_ns, row.name))
    if not rows:
        return None
    unit, totals = times([float(row.total_ns) for row in rows[:limit]], bars=True)
    columns = (
        Column("Kernel", wide=True), Column("Class", wide=True, minor=True), Column("Instances"),
        Column("Time", unit), Column("Share", "%"), Column("Line for the model file", wide=True),
    )  # fmt: skip
    cells = [
        (code(row.name, width=60), text(row.kernel_class, width=30), plain(row.instances), total,
         Cell(f"{row.share * 100:.2f}", row.share), snippet(row.model_line) if row.model_line else Cell(""))
        for row, total in zip(rows, totals, strict=False)
    ]  # fmt: skip
    table = limited(ident, "All judged steps", columns, cells, limit, "kernels", searchable=True, sorted_by=3)
    return _with_rest(table, len(rows), limit, "kernels")


def kernels(device: DeviceResult, ident: str, limit: int, *, modeled: bool) -> Table | None:
    """Every kernel by name and launch shape."""
    uses = sorted(device.kernels, key=lambda use: (-use.total_ns, use.name, use.grid, use.op or ""))
    if not uses:
        return None
    unit, totals = times([float(use.total_ns) for use in uses[:limit]], bars=True)
    small, medians = times([float(use.median_ns) for use in uses[:limit]])
    columns = [
        Column("Kernel", wide=True), Column("Grid", wide=True, minor=True), Column("Block", wide=True,
        minor=True),
        Column("Class", wide=True, minor=True), Column("Instances"), Column("Median", small),
        Column("Time", unit), Column("Share", "%"),
    ]  # fmt: skip
    if modeled:
        columns.insert(4, Column("Op", wide=True))
    rows = []
    for use, total, median in zip(uses, totals, medians, strict=False):
        cells = [
            code(use.name, width=56), text(use.grid), text(use.block), text(use.kernel_class, width=30),
            plain(use.instances), median, total, Cell(f"{use.share * 100:.2f}", use.share),
        ]  # fmt: skip
        if modeled:
            cells.insert(4, code(use.op, width=30) if use.op else text(MISSING))
        rows.append(cells)
    table = limited(ident, "All judged steps, by name and launch shape", columns, rows, limit, "kernels",
                    searchable=True, sorted_by=len(columns) - 2)  # fmt: skip
    return _with_rest(table, len(uses), limit, "kernels")


def classes(device: DeviceResult, ident: str) -> Table | None:
    """Kernel time by class of kernel: what there is to see before a model is given."""
    grouped: dict[str, list[KernelUse]] = {}
    for use in device.kernels:
        grouped.setdefault(use.kernel_class or "unknown", []).append(use)
    if not grouped:
        return None
    order = sorted(grouped.items(), key=lambda item: (-sum(use.total_ns for use in item[1]), item[0]))
    unit, totals = times([float(sum(use.total_ns for use in uses)) for _, uses in order], bars=True)
    columns = (
        Column("Class", wide=True),
        Column("Time", unit),
        Column("Share", "%"),
        Column("Instances"),
        Column("Kernels", hint="names and launch shapes"),
        Column("Largest", wide=True, minor=True),
    )
    rows = []
    for (name, uses), total in zip(order, totals, strict=True):
        share, largest = sum(use.share for use in uses), max(uses, key=lambda use: use.total_ns)
        rows.append(
            (text(words(name), width=40), total, Cell(f"{share * 100:.1f}", share),
             plain(sum(use.instances for use in uses)), plain(len(uses)), code(largest.name, width=56))
        )  # fmt: skip
    return limited(ident, "All steps together", columns, rows, 100, "classes", sorted_by=1)


def small(device: DeviceResult, ident: str, limit: int) -> Table | None:
    """Kernels about as short as a launch: fusing them or using CUDA graphs is what helps."""
    t0 = device.step.t0_ns
    uses = [use for use in device.kernels if t0 and use.median_ns <= 2 * t0]
    if not uses or t0 is None:
        return None
    uses.sort(key=lambda use: (-use.instances, use.name))
    unit, totals = times([float(use.total_ns) for use in uses], bars=True)
    short, medians = times([float(use.median_ns) for use in uses])
    columns = (
        Column("Kernel", wide=True),
        Column("Instances"),
        Column("Median", short),
        Column("Time", unit),
    )
    rows = [
        (code(use.name, width=64), plain(use.instances), median, total)
        for use, median, total in zip(uses, medians, totals, strict=True)
    ]
    caption = f"Kernels of at most twice the shortest launch ({units.ns(t0)}), most frequent first"
    return limited(ident, caption, columns, rows, limit, "kernels", sorted_by=1)


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
    return limited(ident, "Expected by the model, served by no kernel", columns, lines, 200, "ops")


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


def _with_rest(table: Table, total: int, limit: int, what: str) -> Table:
    """`table` with a remark where rows were cut before cells were made of them."""
    if total <= limit:
        return table
    remark = (
        f"Showing {limit:,} of {total:,} {what}, by time; the JSON, CSV and Parquet outputs hold all of them."
    )
    return Table(
        table.ident, table.caption, table.columns, table.rows, remark, table.sorted_by, table.searchable
    )
