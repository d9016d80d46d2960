"""The tables of a batch's index: runs, exports without a result, groups."""

from __future__ import annotations

from collections.abc import Sequence

from nsysmodel.batch.grouping import WORDS
from nsysmodel.batch.types import Group, RunRow
from nsysmodel.report.columns import MISSING, Unit, unit_for
from nsysmodel.report.tables import Cell, Column, Table, numbers, plain, text, times
from nsysmodel.report.text import clean, plural

MOST_ROWS = 2_000
PERCENT = Unit(0.01, "%", 1)
TIMES = Unit(1.0, "×", 2)


def share(row: RunRow) -> float | None:
    """Idle share of the step of a run."""
    return row.idle_ns / row.step_ns if row.idle_ns is not None and row.step_ns else None


def runs(rows: Sequence[RunRow], varying: Sequence[str]) -> Table:
    """A row per readable run: what differs, then the numbers."""
    left_out = ""
    if len(rows) > MOST_ROWS:
        left_out = f"Showing {MOST_ROWS:,} of {len(rows):,} runs; index.json holds all of them."
        rows = rows[:MOST_ROWS]
    unit = unit_for([row.step_ns for row in rows])
    labels = [key for key in varying if any(key in row.labels for row in rows)]
    facts = [key for key in varying if key not in labels]
    excess_unit, excess = times([row.excess_ns for row in rows], bars=True)
    columns = [
        Column("Run", wide=True),
        *(_fact_column(rows, key) for key in labels),
        Column("Step", unit.name, hint="Mean of the used steps."),
        Column("Floor", unit.name),
        Column("Roofline", "%", hint="Floor over step."),
        Column("Coverage", "%", hint="Share of kernel time that ops of the model claim."),
        Column("Largest excess", wide=True, hint="The op with the largest excess per step."),
        Column("Excess", excess_unit, hint="Measured minus floor of that op, per step."),
        Column("Ratio", "×", hint="Measured over floor of that op."),
        Column("Idle", "%", hint="Share of the step in which the device runs nothing."),
        *(_fact_column(rows, key) for key in facts),
        Column("Steps", minor=True),
        Column("Warnings", minor=True),
    ]
    cells = [
        [text(row.name, width=110) for row in rows],
        *([_fact(row, key) for row in rows] for key in labels),
        numbers([row.step_ns for row in rows], unit, bars=True),
        numbers([row.floor_ns for row in rows], unit),
        numbers([row.fraction_of_roofline for row in rows], PERCENT, bars=True),
        numbers([row.coverage for row in rows], PERCENT),
        [Cell(clean(row.excess_op, 40) or MISSING, style="code" if row.excess_op else "") for row in rows],
        excess,
        numbers([row.excess_ratio for row in rows], TIMES),
        numbers([share(row) for row in rows], PERCENT),
        *([_fact(row, key) for row in rows] for key in facts),
        [plain(row.steps) for row in rows],
        [plain(row.warnings) for row in rows],
    ]
    caption = f"{plural(len(rows), 'run')}, in their order"
    return Table(
        "runs", caption, tuple(columns), tuple(zip(*cells, strict=True)), left_out,
        searchable=len(rows) > 12,
    )  # fmt: skip


def _fact_column(rows: Sequence[RunRow], key: str) -> Column:
    return Column(WORDS.get(key, key.replace("_", " ")), wide=not _numeric(rows, key))


def _numeric(rows: Sequence[RunRow], key: str) -> bool:
    values = [value for row in rows if (value := row.value(key)) is not None]
    return bool(values) and all(isinstance(value, int) or value.isdecimal() for value in values)


def _fact(row: RunRow, key: str) -> Cell:
    value = row.value(key)
    if value is None:
        return Cell(MISSING)
    style = "assumed" if key in row.assumed and key not in row.labels else ""
    if isinstance(value, int) or value.isdecimal():
        shown = f"{value:,}" if isinstance(value, int) else clean(value, 40)
        return Cell(shown, sort=float(value) if len(str(value)) < 16 else None, style=style)
    return text(value, width=48, style=style)


def failures(rows: Sequence[RunRow]) -> Table | None:
    """Exports without a result, each with its error; None where there is none."""
    if not rows:
        return None
    columns = (Column("Export", wide=True), Column("Why", wide=True), Column("What to do", wide=True))
    cells = tuple(
        (text(row.name if row.name != row.file else row.file, width=110), text(row.headline, width=400,
         style="prose"), text(row.hint, width=400, style="prose"))
        for row in rows[:MOST_ROWS]
    )  # fmt: skip
    return Table("failed", f"{plural(len(rows), 'export')} gave no result", columns, cells)


def groups(found: Sequence[Group]) -> Table | None:
    """A row per group; None for a single one."""
    if len(found) < 2:
        return None
    unit = unit_for([group.most_ns for group in found])
    columns = (
        Column("Runs with", wide=True),
        Column("Runs"),
        Column("Least", unit.name),
        Column("Median", unit.name),
        Column("Most", unit.name),
    )
    rows = zip(
        [text(group.title or "all", width=160) for group in found],
        [plain(len(group.runs)) for group in found],
        numbers([group.least_ns for group in found], unit),
        numbers([group.median_ns for group in found], unit, bars=True),
        numbers([group.most_ns for group in found], unit),
        strict=True,
    )
    return Table("groups", "Step times of runs that may be compared with each other", columns, tuple(rows))
