"""A comparison as Markdown for a pull request, as JSON, and on a terminal."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from nsysmodel import units
from nsysmodel.comparison.deciding import told
from nsysmodel.comparison.result import Comparison, OpChange
from nsysmodel.errors import OutputError
from nsysmodel.report import compare_tables as tables
from nsysmodel.report.columns import TIME, unit_for
from nsysmodel.report.markdown import BUDGET, code, escape, table
from nsysmodel.report.text import clean

if TYPE_CHECKING:
    from rich.console import Console

ROWS, FOLDED, BAR = 10, 80, 24
TAG = "<!-- nsysmodel compare -->"
"""First line of the comment, by which a workflow finds the one to replace."""
ICONS = {
    "improved": "✅ ", "regressed": "❌ ", "mixed": "⚠️ ", "no_change": "", "not_comparable": "⚠️ ",
}  # fmt: skip


def render_compare_json(comparison: Comparison) -> str:
    """The whole comparison under the schema `nsysmodel.compare/1`.

    Raises:
        OutputError: it holds a number that JSON cannot carry.
    """
    try:
        return json.dumps(comparison.to_dict(), indent=2, allow_nan=False) + "\n"
    except ValueError as error:
        raise OutputError(
            "The comparison holds a number that JSON cannot carry.",
            "Please report this as a fault of nsysmodel.",
        ) from error


def render_compare_markdown(comparison: Comparison) -> str:
    """The comment, below 60,000 bytes: verdict, counts, rows that changed; the rest folded."""
    head = [TAG, *_head(comparison)]
    folded = list(_folded(comparison))
    while folded and len("\n\n".join([*head, *folded]).encode()) > BUDGET - 200:
        folded.pop()
        head[-1] = head[-1].removesuffix(_CUT) + _CUT
    return "\n\n".join([*head, *folded]) + "\n"


_CUT = "\n\n_Some parts were left out to fit a comment; the HTML and JSON have everything._"


def changed(comparison: Comparison) -> list[OpChange]:
    """Rows that are not unchanged, largest first."""
    return [op for op in comparison.ops if op.change != "unchanged"]


def _head(comparison: Comparison) -> Iterator[str]:
    verdict = comparison.verdict
    for item in comparison.diagnostics:
        if item.severity == "warning":
            yield f"> [!WARNING]\n> {escape(item.message)} {escape(item.hint)}".rstrip()
    yield f"### {ICONS[verdict.status]}{escape(verdict.headline, 500)}"
    if comparison.a[0].synthetic:
        yield "**synthetic exports, nothing was measured**"
    if verdict.reasons:
        yield "\n".join(f"- {escape(reason, 400)}" for reason in verdict.reasons[:8])
    yield escape(tables.counts_line(comparison))
    overview = tables.overview_table(comparison)
    if overview is not None:
        yield table(overview, 40)
    rows = changed(comparison)
    if rows:
        yield table(tables.ops_table(comparison, rows, "changed", "Rows that changed"), ROWS)
    yield _waterfall(comparison)


def _waterfall(comparison: Comparison) -> str:
    """From A to B as text: each bar starts where the one before it ended."""
    pair = comparison.pairs[0]
    rows = tables.waterfall(pair, 8)
    largest = max([pair.a_mean_ns, pair.b_mean_ns, *(row.end_ns for row in rows), 1])
    labels = ["A", *(row.label.replace("`", "'") for row in rows), "B"]
    spans = [(0, pair.a_mean_ns), *((row.start_ns, row.end_ns) for row in rows), (0, pair.b_mean_ns)]
    unit = unit_for([float(largest)], TIME)
    shown = [unit.text(pair.a_mean_ns), *(tables.signed(r.difference_ns, unit) for r in rows),
             unit.text(pair.b_mean_ns)]  # fmt: skip
    width = min(max(map(len, labels)), 44)
    lines = []
    for label, (start, end), value in zip(labels, spans, shown, strict=True):
        low, high = sorted((start, end))
        left = min(max(low, 0) * BAR // largest, BAR - 1)
        right = max(high * BAR // largest, left + 1)
        bar = " " * left + ("█" if end >= start else "▒") * (right - left)
        lines.append(f"{clean(label, width):<{width}}  {bar:<{BAR}}  {value:>9}")
    sums = (
        "The parts add up exactly." if tables.closes(pair) else "The parts do not add up: please report this."
    )
    body = "\n".join(lines)
    return f"**From A to B**, {unit.name} of the mean {pair.unit}. {sums}\n\n```text\n{body}\n```"


def _folded(comparison: Comparison) -> Iterator[str]:
    def details(title: str, body: str) -> str:
        return f"<details><summary>{title}</summary>\n\n{body}\n\n</details>"

    yield details("All rows", table(tables.ops_table(comparison, comparison.ops, "ops", "All rows"), FOLDED))
    for pair in comparison.pairs:
        classes = tables.classes_table(pair, f"classes{pair.index}")
        if classes is not None:
            title = (
                "Kernel classes" if len(comparison.pairs) == 1 else f"Kernel classes, device {pair.device}"
            )
            yield details(title, table(classes, FOLDED))
    facts = [table(tables.runs_table(comparison), 40), escape(tables.rule(comparison), 600)]
    notes = [item for item in comparison.diagnostics if item.severity == "info"]
    facts += ["\n".join(f"- {escape(n.message)} {escape(n.hint)}".rstrip() for n in notes)] if notes else []
    if comparison.command:
        facts.append(code(comparison.command, 300))
    yield details("What was compared, and how", "\n\n".join(facts))


def compare_terminal(comparison: Comparison, console: Console, written: str | None) -> None:
    """Verdict, reasons, the rows that changed; every text is plain."""
    from rich.table import Table
    from rich.text import Text

    def line(text: str, style: str = "") -> None:
        console.print(Text(text, style=style), soft_wrap=True)

    for one in (comparison, *comparison.also):
        if comparison.also:
            line(f"{clean(', '.join(run.file for run in one.b), 120)} against A", "dim")
        colour = {"improved": "green", "regressed": "red", "no_change": ""}.get(one.verdict.status, "yellow")
        line(clean(one.verdict.headline, 500), f"bold {colour}".strip())
        for reason in one.verdict.reasons:
            line(f"  {clean(reason)}")
        line(f"  {tables.counts_line(one)}", "dim")
        rows = changed(one)[:ROWS]
        if rows:
            console.print(_rich(one, rows, Table, Text))
        for pair in one.pairs[1:]:
            line(f"  device {pair.device}: a {pair.unit} takes {units.ns(pair.step.a_ns)} in A and "
                 f"{units.ns(pair.step.b_ns)} in B, {told(pair.step)}")  # fmt: skip
        for item in one.diagnostics:
            if item.severity != "info":
                line(f"{item.severity}: {clean(item.message)} {clean(item.hint)}".rstrip(), "yellow")
    if written is not None:
        line(f"Wrote {clean(written)}")


def _rich(comparison: Comparison, ops: Sequence[OpChange], kind: type, text: type) -> object:
    unit = unit_for([v for op in ops for v in (op.measure.a_ns, op.measure.b_ns)], TIME)
    shown = kind(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for index, name in enumerate(("", "  changed", f"A {unit.name}", "B", "change", "%", "why")):
        shown.add_column(name, justify="left" if index in (0, 1, 6) else "right")
    for op in ops:
        m = op.measure
        cells = (f"  {tables.MARKS[op.change]}", tables.name_of(op, 40), unit.text(m.a_ns), unit.text(m.b_ns),
                 tables.signed(m.difference_ns, unit), tables.percent(m), clean(m.reason, 60))  # fmt: skip
        shown.add_row(*(text(cell) for cell in cells))
    return shown
