"""The index of a batch as values: what stands where. The template prints them and decides nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from markupsafe import Markup

from nsysmodel import units
from nsysmodel.batch.grouping import WORDS, title
from nsysmodel.batch.types import Batch, Group, RunRow, Scaling
from nsysmodel.report import batch_trend
from nsysmodel.report.columns import MISSING, Unit, unit_for
from nsysmodel.report.facts import Card, Piece
from nsysmodel.report.tables import Cell, Column, Table, numbers, plain, text, times
from nsysmodel.report.text import clean, plural, unbroken

MOST_ROWS = 2_000
STATUS = {"ok": "", "cannot_judge": "cannot judge", "no_model": "no model", "failed": "failed"}
PERCENT = Unit(0.01, "%", 1)
TIMES = Unit(1.0, "×", 2)
FOLDED_GROUPS = 4
"""So many trends stand open; those of further groups are folded."""


@dataclass(frozen=True, slots=True)
class Run:
    """The first cell of a row: the name and where its report is."""

    name: str
    href: str
    file: str
    chip: str


@dataclass(frozen=True, slots=True)
class Trend:
    """A group of runs and its drawing."""

    title: str
    line: str
    drawing: Markup | None


@dataclass(frozen=True, slots=True)
class Law:
    """A scaling law: a sentence, a table, a drawing, and what limits it."""

    title: str
    sentence: str
    table: Table
    drawing: Markup
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BatchView:
    """The whole page."""

    title: str
    headline: str
    common: tuple[Piece, ...]
    cards: tuple[Card, ...]
    failed: Table | None
    runs: tuple[Run, ...]
    table: Table
    overview: Table | None
    trends: tuple[Trend, ...]
    laws: tuple[Law, ...]
    synthetic: bool
    data_file: str
    ops_file: str
    version: str
    data: dict[str, Any]


def page(batch: Batch, folder: str, data_file: str, ops_file: str) -> BatchView:
    """The view of a batch whose runs lie in `folder` beside the page."""
    readable = [row for row in batch.rows if row.status != "failed"]
    by_name = {row.name: row for row in readable}
    return BatchView(
        title=clean(batch.headline, 120),
        headline=unbroken(clean(batch.headline, 300)),
        common=_common(batch, readable),
        cards=_cards(batch, readable),
        failed=_failures(batch.failed),
        runs=tuple(_run(row, folder) for row in readable[:MOST_ROWS]),
        table=_table(readable, batch.varying),
        overview=_groups(batch.groups),
        trends=tuple(
            _trend(group, [by_name[name] for name in group.runs], f"trend{k}")
            for k, group in enumerate(batch.groups)
            if len(group.runs) > 1
        ),
        laws=tuple(_law(scaling, f"law{k}") for k, scaling in enumerate(batch.scaling)),
        synthetic=False,
        data_file=data_file,
        ops_file=ops_file,
        version=clean(batch.version, 40),
        data=_data(batch),
    )


_QUIET = {"tokens": 1, "tp": 1, "ep": 1, "dp": 1, "gpus": 1, "devices": 1, "graphs": "none"}


def _common(batch: Batch, rows: Sequence[RunRow]) -> tuple[Piece, ...]:
    """What all runs share; what is assumed never hides; sizes of parallelism share a mark."""
    assumed = {key for row in rows for key in row.assumed if key not in row.labels}
    pieces = []
    sizes = [key for key in ("tp", "ep", "dp") if key in assumed and key in batch.common]
    for key, value in batch.common.items():
        if key in sizes:
            if key == sizes[0]:
                pieces.append(Piece(clean(" ".join(title({k: batch.common[k]}) for k in sizes), 80), True))
        elif key in assumed or _QUIET.get(key) != value:
            pieces.append(Piece(clean(title({key: value}), 160), key in assumed))
    return tuple(pieces)


def _cards(batch: Batch, readable: Sequence[RunRow]) -> tuple[Card, ...]:
    judged = [row for row in readable if row.fraction_of_roofline is not None]
    covered = [row for row in judged or readable if row.coverage is not None]
    idle = [row for row in readable if row.idle_ns is not None and row.step_ns]
    counts = [
        f"{sum(row.status == status for row in batch.rows):,} {words}"
        for status, words in (("cannot_judge", "cannot be judged"), ("no_model", "without a model"),
                              ("failed", "failed"))
        if any(row.status == status for row in batch.rows)
    ]  # fmt: skip
    cards = [Card("Runs judged", f"{len(judged):,} of {len(batch.rows):,}", tuple(counts))]
    if judged:
        worst = min(judged, key=lambda row: row.fraction_of_roofline or 0.0)
        best = max(judged, key=lambda row: row.fraction_of_roofline or 0.0)
        cards.append(_named("Farthest from the roofline", worst, worst.fraction_of_roofline))
        cards.append(_named("Closest to the roofline", best, best.fraction_of_roofline))
    if covered:
        least = min(covered, key=lambda row: row.coverage or 0.0)
        cards.append(_named("Lowest coverage", least, least.coverage))
    if idle and len(cards) < 4:
        most = max(idle, key=lambda row: _share(row) or 0.0)
        cards.append(_named("Most idle", most, _share(most)))
    return tuple(cards[:4])


def _named(caption: str, row: RunRow, value: float | None) -> Card:
    return Card(caption, units.percent(value), (clean(row.name, 60),))


def _share(row: RunRow) -> float | None:
    return row.idle_ns / row.step_ns if row.idle_ns is not None and row.step_ns else None


def _run(row: RunRow, folder: str) -> Run:
    return Run(
        clean(row.name, 110), f"{folder}/{quote(row.name)}.html", clean(row.file, 160), STATUS[row.status]
    )


def _table(rows: Sequence[RunRow], varying: Sequence[str]) -> Table:
    """A row per readable run: what differs, then the numbers."""
    left_out = ""
    if len(rows) > MOST_ROWS:
        left_out = f"Showing {MOST_ROWS:,} of {len(rows):,} runs; index.json holds all of them."
        rows = rows[:MOST_ROWS]
    unit = unit_for([row.step_ns for row in rows])
    labels = [key for key in varying if any(key in row.labels for row in rows)]
    facts = [key for key in varying if key not in labels]
    gap_unit, gap = times([row.gap_ns for row in rows], bars=True)
    columns = [
        Column("Run", wide=True),
        *(_fact_column(rows, key) for key in labels),
        Column("Step", unit.name, hint="Mean of the used steps."),
        Column("Floor", unit.name),
        Column("Roofline", "%", hint="Floor over step."),
        Column("Coverage", "%", hint="Share of kernel time that ops of the model claim."),
        Column("Biggest gap", wide=True, hint="The op with the largest excess per step."),
        Column("Excess", gap_unit, hint="Measured minus floor of that op, per step."),
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
        [Cell(clean(row.gap_op, 40) or MISSING, style="code" if row.gap_op else "") for row in rows],
        gap,
        numbers([row.gap_ratio for row in rows], TIMES),
        numbers([_share(row) for row in rows], PERCENT),
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


def _failures(rows: Sequence[RunRow]) -> Table | None:
    if not rows:
        return None
    columns = (Column("Export", wide=True), Column("Why", wide=True), Column("What to do", wide=True))
    cells = tuple(
        (text(row.name if row.name != row.file else row.file, width=110), text(row.headline, width=400,
         style="prose"), text(row.hint, width=400, style="prose"))
        for row in rows[:MOST_ROWS]
    )  # fmt: skip
    return Table("failed", f"{plural(len(rows), 'export')} gave no result", columns, cells)


def _groups(groups: Sequence[Group]) -> Table | None:
    if len(groups) < 2:
        return None
    unit = unit_for([group.most_ns for group in groups])
    columns = (
        Column("Runs with", wide=True),
        Column("Runs"),
        Column("Least", unit.name),
        Column("Median", unit.name),
        Column("Most", unit.name),
    )
    rows = zip(
        [text(group.title or "all", width=160) for group in groups],
        [plain(len(group.runs)) for group in groups],
        numbers([group.least_ns for group in groups], unit),
        numbers([group.median_ns for group in groups], unit, bars=True),
        numbers([group.most_ns for group in groups], unit),
        strict=True,
    )
    return Table("groups", "Step times of runs that may be compared with each other", columns, tuple(rows))


def _trend(group: Group, rows: Sequence[RunRow], ident: str) -> Trend:
    line = ""
    if group.median_ns is not None and group.least_ns is not None and group.most_ns is not None:
        line = (
            f"{plural(len(rows), 'run')}: {units.ns(group.least_ns)} to {units.ns(group.most_ns)}, "
            f"median {units.ns(group.median_ns)}"
        )
    return Trend(clean(group.title, 200), line, batch_trend.trend(rows, ident))


def _law(scaling: Scaling, ident: str) -> Law:
    fit = scaling.fit
    unit, measured = times([point.step_ns for point in scaling.points])
    fitted_unit, fitted = times([point.fitted_ns for point in scaling.points])
    columns = (
        Column("GPUs"), Column("Runs"), Column("Step", unit, hint="Median of the runs."),
        Column("Fitted", fitted_unit), Column("Speed-up", "×"), Column("Efficiency", "%"),
    )  # fmt: skip
    rows = zip(
        [plain(point.gpus) for point in scaling.points],
        [plain(len(point.runs)) for point in scaling.points],
        measured,
        fitted,
        numbers([point.speedup for point in scaling.points], TIMES),
        numbers([point.efficiency for point in scaling.points], PERCENT),
        strict=True,
    )
    best = fit.best_devices
    sentence = (
        f"T(N) = {units.ns(fit.serial_ns)} + {units.ns(fit.parallel_ns)} / N + "
        f"{units.ns(fit.per_device_ns)} · (N − 1); {units.percent(fit.parallel_fraction)} of one GPU's time "
        f"divides; relative error {units.percent(fit.residual)} (root mean square)."
    )
    if best != float("inf"):
        sentence += f" By this law the step is shortest at {units.significant(best)} GPUs."
    return Law(
        clean(scaling.title, 200),
        sentence,
        Table(ident, f"Against {plural(scaling.base, 'GPU')}", columns, tuple(rows)),
        batch_trend.law(scaling, ident + "-fig"),
        scaling.notes,
    )


def _data(batch: Batch) -> dict[str, Any]:
    """What a reader's own tools find in the page; all of it is in the JSON beside."""
    keys = ("name", "status", "step_ns", "floor_ns", "fraction_of_roofline", "coverage")
    runs = [{key: getattr(row, key) for key in keys} for row in batch.rows]
    return {"schema": "nsysmodel.batch-page/1", "runs": runs}
