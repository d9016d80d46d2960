"""The tables of a comparison as values; page, comment and terminal print them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nsysmodel import units
from nsysmodel.comparison.result import Comparison, DevicePair, Measure, OpChange
from nsysmodel.report.columns import MISSING, TIME, Unit, unit_for
from nsysmodel.report.tables import Cell, Column, Table
from nsysmodel.report.text import clean, kernel_name, plural, words

MARKS = {"improved": "−", "regressed": "+", "unchanged": "=", "only_a": "A", "only_b": "B"}
"""The sign beside the colour: less time, more time, the same, on one side only."""
PARTS = 12
OTHERS = "everything else"


def fine(values: Sequence[float | None]) -> Unit:
    """A unit in which small rows do not vanish beside large ones: µs below a tenth of a second.

    >>> fine([8_019_325.0, 2_100.0]).name, fine([2e9]).name
    ('µs', 'ms')
    """
    largest = max((abs(value) for value in values if value is not None), default=0.0)
    if largest < 1e5:
        return Unit(1e3, "µs", 2)
    return Unit(1e3, "µs", 1) if largest < 1e8 else Unit(1e6, "ms", 2)


def signed(value: float | None, unit: Unit) -> str:
    """A difference with its sign."""
    if value is None:
        return MISSING
    shown = unit.text(value)
    return f"+{shown}" if value > 0 and any(c in "123456789" for c in shown) else shown


def percent(measure: Measure) -> str:
    """The change in percent of A, with its sign.

    >>> from nsysmodel.comparison.result import Measure
    >>> percent(Measure(100, 103, 3, 0.03, 1, 5, 0, 0, 0, 0, "regressed", ""))
    '+3.0 %'
    """
    if measure.change_ratio is None:
        return MISSING
    value = 100 * measure.change_ratio
    return f"{'+' if value >= 0.05 else '−' if value <= -0.05 else ''}{abs(value):.1f} %"


def interval(measure: Measure, unit: Unit) -> str:
    """The confidence interval of the difference."""
    if measure.low_ns is None or measure.high_ns is None:
        return MISSING
    return f"{signed(measure.low_ns, unit)} … {signed(measure.high_ns, unit)}"


def name_of(op: OpChange, width: int = 60) -> str:
    """What a row is called: its op, its kernel, or what was replaced by what."""
    if op.kind == "op":
        return clean(op.op, width)
    if op.how == "replaced":
        return f"{_several(op.a_parts)} → {_several(op.b_parts)}"
    if op.how == "renamed":
        return f"{kernel_name(op.a_parts[0], width)} → {kernel_name(op.b_parts[0], width)}"
    return kernel_name(op.op, width)


def _several(names: Sequence[str], most: int = 3) -> str:
    more = f" + {len(names) - most} more" if len(names) > most else ""
    return " + ".join(kernel_name(name, 40) for name in names[:most]) + more


def paired(op: OpChange) -> str:
    """How the two sides of a row were found to be one thing."""
    told = {
        "op": "same op",
        "name": "same name",
        "renamed": "same place and grid",
        "replaced": "same place, other kernels",
    }
    if op.change == "only_a" or op.change == "only_b":
        return "no partner"
    if op.kind == "op" and op.a_parts != op.b_parts:
        return "same ops, fused differently"
    return told.get(op.how, op.how)


def ops_table(comparison: Comparison, ops: Sequence[OpChange], ident: str, caption: str) -> Table:
    """Rows of ops and kernels: both times, the change with its interval, and why it counts or not."""
    unit = fine([value for op in ops for value in (op.measure.a_ns, op.measure.b_ns)])
    modeled = any(op.a_floor_ns is not None or op.b_floor_ns is not None for op in ops)
    many = len(comparison.pairs) > 1
    columns = [
        Column("", wide=True),
        Column("Op or kernel", wide=True),
        Column("A", unit.name),
        Column("B", unit.name),
        Column("Change", unit.name),
        Column("Change", "% of A"),
        Column("Interval", unit.name, minor=True),
        *([Column("A / floor"), Column("B / floor")] if modeled else []),
        Column("Why", wide=True),
        Column("Paired by", wide=True, minor=True),
        *([Column("Device", minor=True)] if many else []),
    ]
    rows = []
    for op in ops:
        m = op.measure
        style = "code" if op.kind == "kernel" else ""
        ratios = [_ratio(op.a_ratio), _ratio(op.b_ratio)] if modeled else []
        rows.append(
            (
                Cell(MARKS[op.change], title=words(op.change)),
                Cell(name_of(op), style=style, title=clean(op.op)),
                Cell(unit.text(m.a_ns), sort=m.a_ns),
                Cell(unit.text(m.b_ns), sort=m.b_ns),
                Cell(signed(m.difference_ns, unit), sort=m.difference_ns),
                Cell(percent(m), sort=m.change_ratio),
                Cell(interval(m, unit)),
                *ratios,
                Cell(clean(m.reason, 80), style="prose"),
                Cell(paired(op), style="prose"),
                *([Cell(str(comparison.pairs[op.pair].device))] if many else []),
            )
        )
    return Table(ident, caption, tuple(columns), tuple(rows), searchable=len(rows) > 12)


def _ratio(value: float | None) -> Cell:
    return Cell(MISSING) if value is None else Cell(units.ratio(value), sort=value)


@dataclass(frozen=True, slots=True)
class WaterRow:
    """A part of the difference waterfall. `start_ns` and `end_ns` are where its bar lies."""

    label: str
    kind: str
    a_ns: int
    b_ns: int
    difference_ns: int
    start_ns: int
    end_ns: int


def waterfall(pair: DevicePair, most: int = PARTS) -> tuple[WaterRow, ...]:
    """The largest parts from A to B, the rest in one row; integers that end at B exactly."""
    shown = [part for part in pair.waterfall if part.difference_ns][:most]
    rest = [part for part in pair.waterfall if part not in shown]
    rows, position = [], pair.a_mean_ns
    for part in shown:
        end = position + part.difference_ns
        label = f"idle: {words(part.label)}" if part.kind == "gap" else part.label
        label = kernel_name(label, 60) if part.kind == "kernel" else clean(label, 60)
        rows.append(WaterRow(label, part.kind, part.a_ns, part.b_ns, part.difference_ns, position, end))
        position = end
    if rest:
        a, b = sum(part.a_ns for part in rest), sum(part.b_ns for part in rest)
        rows.append(
            WaterRow(
                f"{OTHERS} ({plural(len(rest), 'part')})", "rest", a, b, b - a, position, position + b - a
            )
        )
    return tuple(rows)


def closes(pair: DevicePair) -> bool:
    """True where the waterfall leads from A to B exactly."""
    return pair.a_mean_ns + sum(part.difference_ns for part in pair.waterfall) == pair.b_mean_ns


def runs_table(comparison: Comparison) -> Table:
    """The runs of both sides."""
    columns = (
        Column("Side", wide=True),
        Column("Export", wide=True),
        Column("GPU", wide=True),
        Column("Steps"),
        Column("Modeled"),
        Column("Workload", wide=True),
    )
    rows = []
    for side, runs in (("A", comparison.a), ("B", comparison.b)):
        for run in runs:
            work = ", ".join(f"{words(key)} {value}" for key, value in run.workload.items() if key in SHOWN)
            covered = units.percent(run.coverage) if run.coverage is not None else MISSING
            synthetic = " (synthetic)" if run.synthetic else ""
            rows.append(
                (
                    Cell(side),
                    Cell(clean(run.file, 80) + synthetic, style="code"),
                    Cell(clean(run.gpu, 60) or "unknown"),
                    Cell(f"{run.steps:,}", sort=run.steps),
                    Cell(covered),
                    Cell(clean(work, 120) or MISSING),
                )
            )
    return Table("runs", "What was compared", columns, tuple(rows))


SHOWN = ("phase", "batch", "context", "tokens", "tensor_parallel")


def classes_table(pair: DevicePair, ident: str) -> Table | None:
    """Kernel time by class of the kernels that no op claims."""
    if not pair.classes:
        return None
    unit = unit_for([float(v) for row in pair.classes for v in (row.a_ns, row.b_ns)], TIME)
    columns = (Column("Class", wide=True), Column("A", unit.name), Column("B", unit.name),
               Column("Change", unit.name))  # fmt: skip
    rows = tuple(
        (
            Cell(words(row.name)),
            Cell(unit.text(row.a_ns), sort=row.a_ns),
            Cell(unit.text(row.b_ns), sort=row.b_ns),
            Cell(signed(row.difference_ns, unit), sort=row.difference_ns),
        )
        for row in pair.classes
    )
    return Table(ident, f"Mean kernel time of a {pair.unit} by class", columns, rows)


def overview_table(comparison: Comparison) -> Table | None:
    """One row per export that was set against A; None for a single one."""
    if not comparison.also:
        return None
    every = (comparison, *comparison.also)
    unit = unit_for([one.pairs[0].step.b_ns for one in every], TIME)
    columns = (Column("Against A", wide=True), Column("Verdict", wide=True), Column("Step", unit.name),
               Column("Change", "% of A"))  # fmt: skip
    rows = tuple(
        (
            Cell(clean(", ".join(run.file for run in one.b), 80), style="code"),
            Cell(words(one.verdict.status)),
            Cell(unit.text(one.pairs[0].step.b_ns), sort=one.pairs[0].step.b_ns),
            Cell(percent(one.pairs[0].step), sort=one.pairs[0].step.change_ratio),
        )
        for one in every
    )
    return Table("overview", "Each export against A", columns, rows)


def counts_line(comparison: Comparison) -> str:
    """The five counts.

    Every row stands in exactly one of them.
    """
    counts = comparison.verdict.counts
    names = {"only_a": "only in A", "only_b": "only in B"}
    return ", ".join(f"{counts.get(key, 0):,} {names.get(key, key)}" for key in MARKS)


def rule(comparison: Comparison) -> str:
    """What a change must exceed, in one sentence."""
    limits = comparison.thresholds
    return (
        f"A row has changed when its median moved by more than {units.percent(limits.relative)} of A, more "
        f"than {units.ns(limits.absolute_ns)}, more than the runs shift by themselves, and more than chance "
        f"explains ({units.percent(limits.confidence)} over all rows together; block bootstrap over steps, "
        "Holm). Intervals are for a row on its own."
    )
