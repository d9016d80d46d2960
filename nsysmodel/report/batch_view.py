"""The index of a batch as values: what stands where. The template prints them and decides nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from markupsafe import Markup

from nsysmodel import units
from nsysmodel.batch.grouping import title
from nsysmodel.batch.types import Batch, Group, RunRow, Scaling
from nsysmodel.report import batch_tables, batch_trend
from nsysmodel.report.facts import Card, Piece
from nsysmodel.report.tables import Column, Table, numbers, plain, times
from nsysmodel.report.text import clean, plural, unbroken

STATUS = {"ok": "", "cannot_judge": "cannot judge", "no_model": "no model", "failed": "failed"}


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
        failed=batch_tables.failures(batch.failed),
        runs=tuple(_run(row, folder) for row in readable[: batch_tables.MOST_ROWS]),
        table=batch_tables.runs(readable, batch.varying),
        overview=batch_tables.groups(batch.groups),
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
        most = max(idle, key=lambda row: batch_tables.share(row) or 0.0)
        cards.append(_named("Most idle", most, batch_tables.share(most)))
    return tuple(cards[:4])


def _named(caption: str, row: RunRow, value: float | None) -> Card:
    return Card(caption, units.percent(value), (clean(row.name, 60),))


def _run(row: RunRow, folder: str) -> Run:
    return Run(
        clean(row.name, 110), f"{folder}/{quote(row.name)}.html", clean(row.file, 160), STATUS[row.status]
    )


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
        numbers([point.speedup for point in scaling.points], batch_tables.TIMES),
        numbers([point.efficiency for point in scaling.points], batch_tables.PERCENT),
        strict=True,
    )
    best = fit.best_devices
    sentence = (
        f"T(N) = {units.ns(fit.serial_ns)} + {units.ns(fit.parallel_ns)} / N + "
        f"{units.ns(fit.per_device_ns)} · (N − 1); {units.percent(fit.parallel_fraction)} of one GPU's time "
        f"divides; relative error {units.percent(fit.residual)} (root mean square)."
    )
    if best != float("inf"):
        sentence += f" By this law the step is shortest at N = {units.significant(best)}."
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
