"""A comparison as one offline HTML page, under the same policy as the report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from nsysmodel import units
from nsysmodel.comparison.deciding import uncertainty
from nsysmodel.comparison.result import Comparison, DevicePair, Measure, OpChange
from nsysmodel.report import compare_tables as tables
from nsysmodel.report import palette
from nsysmodel.report.columns import MISSING, Unit
from nsysmodel.report.html import BUDGET, environment, page_script, page_style, script_hash, template_text
from nsysmodel.report.tables import Table
from nsysmodel.report.text import clean, unbroken, words
from nsysmodel.result import Diagnostic

ROWS = (2_000, 400, 100, 30)
"""Rows of the table of ops; fewer until the page keeps its budget."""


def render_compare_html(comparison: Comparison) -> str:
    """The comparison as one HTML file of at most 1.5 MB.

    Raises:
        OutputError: the templates are not installed.
    """
    html = ""
    for rows in ROWS:
        html = _render(comparison, rows)
        if len(html.encode()) <= BUDGET:
            break
    return html


@dataclass(frozen=True, slots=True)
class OpRow:
    """A row of the main table. `side` is where its bar grows to, `width` its length in percent."""

    op: OpChange
    mark: str
    name: str
    full: str
    a: str
    b: str
    change: str
    percent: str
    side: str
    width: str
    interval: str
    ratios: tuple[str, str] | None
    reason: str
    paired: str
    device: str
    kernels_a: tuple[str, ...]
    kernels_b: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Bar:
    """A row of the difference waterfall with its bar in percent of the longest."""

    label: str
    kind: str
    value: str
    exact: str
    left: str
    width: str


@dataclass(frozen=True, slots=True)
class PairView:
    """One pair of devices."""

    ident: str
    title: str
    unit: str
    cards: tuple[tuple[str, str, tuple[str, ...]], ...]
    waterfall: tuple[Bar, ...]
    waterfall_unit: str
    closes: bool
    classes: Table | None


@dataclass(frozen=True, slots=True)
class View:
    """One comparison of the page; there are several where several exports were set against A."""

    ident: str
    title: str
    status: str
    headline: str
    reasons: tuple[str, ...]
    counts: tuple[tuple[str, str, int], ...]
    pairs: tuple[PairView, ...]
    rows: tuple[OpRow, ...]
    left_out: str
    unit: str
    modeled: bool
    many: bool
    runs: Table
    warnings: tuple[Diagnostic, ...]
    notes: tuple[Diagnostic, ...]


def _render(comparison: Comparison, rows: int) -> str:
    script = page_script()
    views = [_view(one, f"c{k}", rows) for k, one in enumerate((comparison, *comparison.also))]
    return (
        environment()
        .get_template("compare.html.j2")
        .render(
            views=views,
            overview=tables.overview_table(comparison),
            model=clean((comparison.model or {}).get("name", ""), 80),
            synthetic=comparison.a[0].synthetic,
            rule=unbroken(tables.rule(comparison)),
            command=clean(comparison.command, 400),
            version=clean(comparison.version, 40),
            title=clean(comparison.verdict.headline, 120),
            style=Markup(palette.css() + page_style() + _compare_style()),
            script=Markup(script),
            script_hash=script_hash(script),
            data=_data(comparison),
        )
    )


def _compare_style() -> str:
    lines = (line.strip() for line in template_text("compare.css").splitlines())
    return "".join(line for line in lines if line and not line.startswith("/*"))


def _view(comparison: Comparison, ident: str, most: int) -> View:
    verdict = comparison.verdict
    shown = comparison.ops[:most]
    unit = tables.fine([value for op in shown for value in (op.measure.a_ns, op.measure.b_ns)])
    modeled = any(op.a_floor_ns is not None or op.b_floor_ns is not None for op in shown)
    largest = max((abs(op.measure.difference_ns or 0.0) for op in shown), default=0.0) or 1.0
    cleaned = [
        Diagnostic(d.code, d.severity, clean(d.message, 500), clean(d.hint, 500))
        for d in comparison.diagnostics
    ]
    left_out = (
        f"Showing {most:,} of {len(comparison.ops):,} rows; the JSON has all."
        if len(shown) < len(comparison.ops)
        else ""
    )
    return View(
        ident=ident,
        title=clean(", ".join(run.file for run in comparison.b), 120),
        status=verdict.status,
        headline=unbroken(clean(verdict.headline, 500)),
        reasons=tuple(unbroken(clean(reason, 500)) for reason in verdict.reasons),
        counts=tuple((mark, words(key), verdict.counts.get(key, 0)) for key, mark in tables.MARKS.items()),
        pairs=tuple(_pair(pair, f"{ident}-p{pair.index}") for pair in comparison.pairs),
        rows=tuple(_row(comparison, op, unit, largest, modeled) for op in shown),
        left_out=left_out,
        unit=unit.name,
        modeled=modeled,
        many=len(comparison.pairs) > 1,
        runs=tables.runs_table(comparison),
        warnings=tuple(item for item in cleaned if item.severity != "info"),
        notes=tuple(item for item in cleaned if item.severity == "info"),
    )


def _row(comparison: Comparison, op: OpChange, unit: Unit, largest: float, modeled: bool) -> OpRow:
    m = op.measure
    ratios = None
    if modeled:
        one, other = (MISSING if r is None else units.ratio(r) for r in (op.a_ratio, op.b_ratio))
        ratios = (one, other)
    return OpRow(
        op=op,
        mark=tables.MARKS[op.change],
        name=tables.name_of(op),
        full=clean(op.op),
        a=unit.text(m.a_ns),
        b=unit.text(m.b_ns),
        change=tables.signed(m.difference_ns, unit),
        percent=tables.percent(m),
        side="more" if (m.difference_ns or 0) > 0 else "less",
        width=f"{50 * abs(m.difference_ns or 0.0) / largest:.2f}%",
        interval=tables.interval(m, unit),
        ratios=ratios,
        reason=clean(m.reason, 80),
        paired=tables.paired(op),
        device=str(comparison.pairs[op.pair].device),
        kernels_a=tuple(clean(name, 160) for name in op.a_kernels[:6]),
        kernels_b=tuple(clean(name, 160) for name in op.b_kernels[:6]),
    )


def _pair(pair: DevicePair, ident: str) -> PairView:
    rows = tables.waterfall(pair)
    edges = [edge for row in rows for edge in (row.start_ns, row.end_ns)]
    largest = max([pair.a_mean_ns, pair.b_mean_ns, *edges, 1])
    unit = Unit(1e6, "ms", 3) if largest >= 3e6 else Unit(1e3, "µs", 2)

    def bar(label: str, kind: str, value: str, exact: int, start: int, end: int) -> Bar:
        low, high = sorted((start, end))
        width = f"{max(100 * (high - low) / largest, 0.15):.2f}%"
        return Bar(label, kind, value, f"{exact:,}".replace("-", "−"), f"{100 * low / largest:.2f}%", width)

    bars = [bar("A", "total", unit.text(pair.a_mean_ns), pair.a_mean_ns, 0, pair.a_mean_ns)]
    for row in rows:
        kind = "more" if row.difference_ns > 0 else "less" if row.difference_ns else "none"
        value = tables.signed(row.difference_ns, unit)
        bars.append(bar(row.label, kind, value, row.difference_ns, row.start_ns, row.end_ns))
    bars.append(bar("B", "total", unit.text(pair.b_mean_ns), pair.b_mean_ns, 0, pair.b_mean_ns))
    gpu = clean(pair.gpu_b or pair.gpu_a or "unknown GPU", 60)
    return PairView(
        ident=ident,
        title=f"{gpu}, device {pair.device}",
        unit=pair.unit,
        cards=_cards(pair),
        waterfall=tuple(bars),
        waterfall_unit=unit.name,
        closes=tables.closes(pair),
        classes=tables.classes_table(pair, f"{ident}-classes"),
    )


def _cards(pair: DevicePair) -> tuple[tuple[str, str, tuple[str, ...]], ...]:
    def side(name: str, value: float | None, steps: tuple[int, ...]) -> tuple[str, str, tuple[str, ...]]:
        runs = f"{len(steps)} runs of " if len(steps) > 1 else ""
        shown = f"{runs}{', '.join(map(str, steps))} {pair.unit}s, median"
        return f"{name}, a {pair.unit}", unbroken(units.ns(value)), (shown,)

    def change(name: str, m: Measure) -> tuple[str, str, tuple[str, ...]]:
        return name, unbroken(tables.percent(m)), (unbroken(uncertainty(m)), m.reason)

    return (
        side("A", pair.step.a_ns, pair.steps_a),
        side("B", pair.step.b_ns, pair.steps_b),
        change(f"Change of the {pair.unit}", pair.step),
        change("Change of what both sides run", pair.common),
    )


def _data(comparison: Comparison) -> dict[str, Any]:
    """What a reader's own tools find in the page: the verdict, the waterfalls, every row's change."""
    found = []
    for one in (comparison, *comparison.also):
        found.append({
            "status": one.verdict.status,
            "pairs": [{"a_mean_ns": pair.a_mean_ns, "b_mean_ns": pair.b_mean_ns,
                       "waterfall": [part.difference_ns for part in pair.waterfall]} for pair in one.pairs],
            "ops": [{"op": clean(op.op, 160), "change": op.change, "difference_ns": op.measure.difference_ns}
                    for op in one.ops[:ROWS[0]]],
        })  # fmt: skip
    return {"schema": "nsysmodel.compare-page/1", "devices": [], "comparisons": found}
