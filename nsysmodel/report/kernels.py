"""Tables of kernels: unmodeled ones with lines for the model, all of them, by class, and the small ones."""

from __future__ import annotations

from nsysmodel import units
from nsysmodel.report.columns import MISSING
from nsysmodel.report.tables import (
    Cell,
    Column,
    Table,
    code,
    limited,
    plain,
    snippet,
    text,
    times,
)
from nsysmodel.report.tables import kernel as kernel_cell
from nsysmodel.report.text import words
from nsysmodel.result import (
    DeviceResult,
    KernelUse,
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
        (kernel_cell(row.name, width=44), text(row.kernel_class, width=30), plain(row.instances), total,
         Cell(f"{row.share * 100:.2f}", row.share), snippet(row.model_line) if row.model_line else Cell(""))
        for row, total in zip(rows, totals, strict=False)
    ]  # fmt: skip
    table = limited(ident, "All used steps", columns, cells, limit, "kernels", searchable=True, sorted_by=3)
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
            kernel_cell(use.name, width=56), text(use.grid), text(use.block),
            text(use.kernel_class, width=30),
            plain(use.instances), median, total, Cell(f"{use.share * 100:.2f}", use.share),
        ]  # fmt: skip
        if modeled:
            cells.insert(4, code(use.op, width=30) if use.op else text(MISSING))
        rows.append(cells)
    table = limited(ident, "All used steps, by name and launch shape", columns, rows, limit, "kernels",
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
    caption = "All used steps together" if device.steps.used else "The whole window"
    rows = []
    for (name, uses), total in zip(order, totals, strict=True):
        share, largest = sum(use.share for use in uses), max(uses, key=lambda use: use.total_ns)
        rows.append(
            (text(words(name), width=40), total, Cell(f"{share * 100:.1f}", share),
             plain(sum(use.instances for use in uses)), plain(len(uses)), kernel_cell(largest.name, width=56))
        )  # fmt: skip
    return limited(ident, caption, columns, rows, 100, "classes", sorted_by=1)


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
        (kernel_cell(use.name, width=64), plain(use.instances), median, total)
        for use, median, total in zip(uses, medians, totals, strict=True)
    ]
    caption = f"Kernels of at most twice the shortest launch ({units.ns(t0)}), most frequent first"
    return limited(ident, caption, columns, rows, limit, "kernels", sorted_by=1)


def _with_rest(table: Table, total: int, limit: int, what: str) -> Table:
    """`table` with a remark where rows were cut before cells were made of them."""
    if total <= limit:
        return table
    remark = f"Showing {limit:,} of {total:,} {what}, by time; the JSON and `nsysmodel kernels` have more."
    return Table(
        table.ident, table.caption, table.columns, table.rows, remark, table.sorted_by, table.searchable
    )
