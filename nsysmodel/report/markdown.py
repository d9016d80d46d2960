"""The report as GitHub Markdown: verdict, account, ten rows, the rest folded; below the comment limit."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from nsysmodel import units
from nsysmodel.report import account, costs, facts, kernels, ops, sections, sources
from nsysmodel.report.tables import Table
from nsysmodel.report.text import clean, plural
from nsysmodel.report.view import is_judged
from nsysmodel.result import DeviceResult, Evaluation

BUDGET = 60_000
"""Bytes; GitHub takes 65,536 characters in a comment."""

ROWS, FOLDED_ROWS, BAR = 10, 20, 32
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~&!])")
_NO_BREAK = "\u200b"


def render_markdown(evaluation: Evaluation) -> str:
    """The comment. Folded parts are left out from the end where the whole would exceed 60,000 bytes."""
    judged = is_judged(evaluation)
    head = "\n\n".join(_head(evaluation, judged))
    folded = list(_folded(evaluation, judged))
    dropped = 0
    while folded and len(_whole(head, folded, dropped).encode()) > BUDGET:
        folded.pop()
        dropped += 1
    return _whole(head, folded, dropped)


def _whole(head: str, folded: Sequence[str], dropped: int) -> str:
    parts = [head, *folded]
    if dropped:
        parts.append(
            f"_{plural(dropped, 'part')} left out to fit a comment; the HTML report has everything._"
        )
    return "\n\n".join(parts) + "\n"


def escape(text: object, limit: int = 300) -> str:
    r"""Untrusted text as words: nothing in it is markup, a link or a mention.

    >>> escape("a_b <i> @me")
    'a\\_b \\<i\\> @\u200bme'
    """
    plain = clean(text, limit)
    return _SPECIAL.sub(r"\\\1", plain).replace("@", "@" + _NO_BREAK).replace("://", ":" + _NO_BREAK + "//")


def code(text: object, limit: int = 80) -> str:
    """Untrusted text as a code span that also holds inside a table.

    >>> code("a|b"), code("x`y")
    ('`a\\\\|b`', '`` x`y ``')
    """
    plain = clean(text, limit).replace("|", "\\|")
    if not plain.strip():
        return ""
    longest = max((len(run) for run in re.findall("`+", plain)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if longest else ""
    return f"{fence}{pad}{plain}{pad}{fence}"


def _head(evaluation: Evaluation, judged: bool) -> Iterator[str]:
    for item in evaluation.diagnostics:
        if item.severity != "info":
            kind = "CAUTION" if item.severity == "error" else "WARNING"
            hint = f" {escape(item.hint)}" if item.hint else ""
            yield f"> [!{kind}]\n> {escape(item.message)}{hint}"
    yield f"### {escape(evaluation.verdict.headline, 400)}"
    run = " · ".join(
        escape(piece.text, 80) + (" _(assumed)_" if piece.assumed else "")
        for piece in facts.run_line(evaluation)
    )
    synthetic = " · **synthetic export, nothing was measured**" if evaluation.export.synthetic else ""
    if run or synthetic:
        yield run + synthetic
    if evaluation.verdict.reasons:
        yield "\n".join(f"- {escape(reason, 400)}" for reason in evaluation.verdict.reasons[:8])
    if evaluation.fits:
        names = ", ".join(code(fit.get("name", "")) for fit in evaluation.fits[:6])
        yield f"Bundled models whose structure fits: {names}"
    for index, device in enumerate(evaluation.devices[:8]):
        yield from _device(evaluation, device, judged, whole=index == 0)
    if len(evaluation.devices) > 8:
        yield f"_{len(evaluation.devices) - 8} more devices in the HTML report._"


def _device(evaluation: Evaluation, device: DeviceResult, judged: bool, *, whole: bool) -> Iterator[str]:
    if len(evaluation.devices) > 1:
        yield f"**{escape(device.name, 80)}, device {device.device} of process {device.process}**"
    cards = facts.cards(evaluation, device, judged=judged)
    lines = ["| " + " | ".join(escape(card.caption) for card in cards) + " |", "|" + "---|" * len(cards)]
    lines.append("| " + " | ".join(f"**{escape(card.value)}**" for card in cards) + " |")
    lines.append("| " + " | ".join("<br>".join(escape(line) for line in card.lines) for card in cards) + " |")
    yield "\n".join(lines)
    if not whole:
        return
    yield _waterfall(device, judged)
    if judged and device.step.floor_ns is not None:
        yield "Check of the whole model: " + " · ".join(
            f"{escape(name)} **{escape(value)}**" for name, value in facts.bounds(device, judged=judged)
        )
    built = ops.build(device, judged=judged, ident="ops", details=False)
    if built is not None:
        title = "**What to fix, largest gain first**" if judged else "**Ops as the kernels were matched**"
        yield title + "\n\n" + table(built.table, ROWS)


def _waterfall(device: DeviceResult, judged: bool) -> str:
    """The account as text: a bar per part, starting where the one before it ended."""
    water = account.waterfall(device, judged=judged)
    rows = [*((row.label, row.mean_ns, row.start_ns, row.end_ns) for row in water.rows)]
    rows.append(("measured", water.mean_ns, 0, water.total_ns))
    labels = [clean(label, 36).replace("`", "'") for label, *_ in rows]
    width = max(map(len, labels))
    lines = []
    for label, (_, mean, start, end) in zip(labels, rows, strict=True):
        low, high = sorted((start, end))
        left = min(max(low, 0) * BAR // water.largest_ns, BAR - 1)
        right = max(high * BAR // water.largest_ns, left + 1)
        bar = " " * left + ("█" if end >= start else "▒") * (right - left)
        lines.append(f"{label:<{width}}  {bar:<{BAR}}  {units.ns(mean):>9}")
    closes = "The parts add up exactly." if water.closes else "The parts do not add up: please report this."
    steps = plural(water.steps, "judged step")
    return (
        f"**Where the step time goes**, mean of {steps}. {closes}\n\n```text\n" + "\n".join(lines) + "\n```"
    )


def _folded(evaluation: Evaluation, judged: bool) -> Iterator[str]:
    for device in evaluation.devices[:1]:
        modeled = evaluation.model is not None
        built = ops.build(device, judged=judged, ident="ops", details=False)
        if built is not None and len(built.table.rows) > ROWS:
            yield _details("All ops", table(built.table, 60))
        parts = [
            (
                "Idle time",
                sections.gap_causes(device.gaps, device.steps.used, "g") if device.gaps.by_cause else None,
            ),
            ("Where the device idles", sections.gap_places(device.gaps, "p", FOLDED_ROWS)),
            ("Small kernels side by side", costs.small_runs(device, "r", FOLDED_ROWS)),
            ("Collectives", costs.collectives(device, "c")),
            ("Unmodeled kernels", kernels.unmodeled(device, "u", FOLDED_ROWS) if modeled else None),
            ("Missing ops", sections.missing(device.missing, "m", judged=judged)),
            ("Transfers", sections.transfers(device, "t", FOLDED_ROWS, judged=judged)),
            ("Kinds of steps", sections.clusters(device.steps.clusters, "c", judged=judged)),
            ("Kernels", None if modeled else kernels.kernels(device, "k", FOLDED_ROWS, modeled=False)),
        ]
        sentences = costs.notes(device)
        if sentences:
            yield _details("Launches", "\n".join(f"- {escape(sentence)}" for sentence in sentences))
        for title, found in parts:
            if found is not None and found.rows:
                yield _details(title, table(found, FOLDED_ROWS))
    assumptions = [
        table(found, 60) for found in (sources.workload(evaluation), sources.hardware(evaluation)) if found
    ]
    notes = [f"- {escape(note)}" for note in ((evaluation.model or {}).get("notes") or ())[:20]]
    notes += [f"- {escape(item.message)}" for item in evaluation.diagnostics if item.severity == "info"][:20]
    if notes:
        assumptions.append("\n".join(notes))
    yield _details("Assumptions and sources", "\n\n".join(assumptions))
    yield _details("How this was made", table(sources.made(evaluation), 40))


def _details(title: str, body: str) -> str:
    return f"<details><summary>{title}</summary>\n\n{body}\n\n</details>"


def table(found: Table, limit: int) -> str:
    """A table as Markdown with at most `limit` rows."""
    heads = [f"{column.name} ({column.unit})" if column.unit else column.name for column in found.columns]
    rule = [":---" if column.wide or index == 0 else "---:" for index, column in enumerate(found.columns)]
    lines = ["| " + " | ".join(escape(head) for head in heads) + " |", "|" + "|".join(rule) + "|"]
    for row in found.rows[:limit]:
        cells = [code(cell.text) if cell.style == "code" else escape(cell.text) for cell in row]
        marked = [
            f"{text} _assumed_" if cell.style == "assumed" and cell.text != "assumed" else text
            for text, cell in zip(cells, row, strict=True)
        ]
        lines.append("| " + " | ".join(marked) + " |")
    if len(found.rows) > limit:
        lines.append(f"\n_{limit} of {len(found.rows):,} rows; the HTML report has the rest._")
    elif found.left_out:
        lines.append(f"\n_{escape(found.left_out)}_")
    return "\n".join(lines)
