"""What is no op's own time: collectives and their waiting, runs of small kernels, launches, the clock."""

from __future__ import annotations

from nsysmodel import units
from nsysmodel.report.columns import BANDWIDTH, SIZE, unit_for
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
from nsysmodel.report.text import clean, kernel_name, unbroken
from nsysmodel.result import DeviceResult

_WAITS = {
    "ranks": "measured against the other ranks",
    "steps": "estimated from the steps of this rank alone",
}


def collectives(device: DeviceResult, ident: str) -> Table | None:
    """Collectives of all used steps: moving data, waiting for peers, and what nothing else hides."""
    items = device.collectives
    if not items:
        return None
    time, totals = times([item.per_step_ns for item in items], bars=True)
    steps = max(device.steps.used, 1)
    size = unit_for([item.bytes for item in items], SIZE)
    rate = unit_for(
        [item.bytes_per_s for item in items] + [item.link_bytes_per_s for item in items], BANDWIDTH
    )
    short = unit_for([item.per_step_ns for item in items])
    columns = (
        Column("Collective", wide=True),
        Column("Count", hint="in all used steps"),
        Column("Time", time),
        Column("Exposed", time, hint="not hidden behind other work"),
        Column("Moving", time, hint="time that moving the data took"),
        Column("Waiting", time, hint="waiting for the other ranks"),
        Column("Size", size.name, hint="a rank and direction, all steps"),
        Column("Achieved", rate.name),
        Column("Link peak", rate.name),
        Column("Bound", wide=True),
    )
    sources = sorted({_WAITS[item.wait_source] for item in items if item.wait_source in _WAITS})
    split_from = f"; moving and waiting are {', or '.join(sources)}" if sources else ""
    caption = f"Mean per step{split_from}"
    rows = []
    for item, total in zip(items, totals, strict=True):
        split = [None if ns is None else ns / steps for ns in (item.transfer_ns, item.wait_ns)]
        rows.append(
            (
                code(item.op, width=40),
                plain(item.count),
                total,
                *numbers([item.exposed_per_step_ns, *split], short),
                *numbers([item.bytes or None], size),
                *numbers([item.bytes_per_s, item.link_bytes_per_s], rate),
                text(item.bound),
            )
        )

    return without_empty(limited(ident, caption, columns, rows, 60, "collectives", sorted_by=2))


def notes(device: DeviceResult) -> tuple[str, ...]:
    """Sentences on launches, small kernels and the clock, as the account words them."""
    found = [part.explanation for part in (device.launch, device.small) if part is not None]
    return tuple(unbroken(clean(sentence, 600)) for sentence in found if sentence)


def clock(device: DeviceResult) -> tuple[str, str]:
    """The sentence on the SM clock and a command that records it; empty where nothing is known."""
    facts = device.clock
    if facts is None:
        return "", ""
    return unbroken(clean(facts.explanation, 600)), clean(facts.command, 300)


def small_runs(device: DeviceResult, ident: str, limit: int) -> Table | None:
    """Neighbours that one fused kernel could replace, and the most that this would save."""
    small = device.small
    if small is None or not small.runs:
        return None
    time, savings = times([run.saving_ns for run in small.runs], bars=True)
    unit = unit_for([run.saving_ns for run in small.runs])
    columns = (
        Column("Kernels that follow each other", wide=True),
        Column("Count", hint="in all used steps"),
        Column("Time", time, hint="mean per step"),
        Column("Saving, at most", time, hint="sum minus the longest"),
    )
    rows = [
        (_run(run.labels), plain(run.count), *numbers([run.per_step_ns], unit), saving)
        for run, saving in zip(small.runs, savings, strict=True)
    ]
    caption = f"Kernels of at most {units.ns(small.limit_ns)} side by side; mean per step"
    return limited(ident, caption, columns, rows, limit, "runs", sorted_by=3)


def _run(labels: tuple[str, ...]) -> Cell:
    """Names of a run joined by arrows; a repeated one is counted."""
    parts: list[list[str | int]] = []
    for label in labels:
        shown = kernel_name(label, 40)
        if parts and parts[-1][0] == shown:
            parts[-1][1] = int(parts[-1][1]) + 1
        else:
            parts.append([shown, 1])
    told = [f"{name} ×{count}" if int(count) > 1 else str(name) for name, count in parts]
    whole = " → ".join(told)
    shown = whole if len(told) <= 5 else " → ".join([*told[:3], "…", told[-1]])
    return Cell(clean(shown, 140), style="code", title=clean(whole, 400) if shown != whole else "")
