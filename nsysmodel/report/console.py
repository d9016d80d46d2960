"""What a terminal shows: the verdict, the three largest excesses, what to know, and where the file went."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysmodel import units
from nsysmodel.report import facts
from nsysmodel.report.ops import largest_excesses
from nsysmodel.report.text import clean
from nsysmodel.report.view import is_judged
from nsysmodel.result import DeviceResult, Evaluation

if TYPE_CHECKING:
    from rich.console import Console

SHOWN = 3


def terminal(evaluation: Evaluation, console: Console, written: str | None) -> None:
    """Print a summary; every text is plain, so that no name can style or move anything."""
    from rich.text import Text

    # A person's terminal gets lines that break between words; a pipe gets whole ones.
    def line(text: str, style: str = "") -> None:
        console.print(Text(text, style=style), soft_wrap=not console.is_terminal)

    judged = is_judged(evaluation)
    run = " · ".join(
        piece.text + (" (assumed)" if piece.assumed else "") for piece in facts.run_line(evaluation)
    )
    if evaluation.export.synthetic:
        run += " · synthetic export, nothing was measured"
    if run:
        line(run, "dim")
    style = "bold" if evaluation.verdict.status == "ok" else "bold yellow"
    line(clean(evaluation.verdict.headline), style)
    for reason in evaluation.verdict.reasons:
        line(f"  {clean(reason)}")
    for device in evaluation.devices:
        unit = facts.rate_unit(evaluation)
        _device(device, judged, console, unit, many=len(evaluation.devices) > 1)
    for fit in evaluation.fits[:SHOWN]:
        line(f"  fits: --model {clean(fit.get('name', ''), 80)}")
    for item in evaluation.diagnostics:
        if item.severity != "info":
            colour = "red" if item.severity == "error" else "yellow"
            line(
                f"{item.severity}: {clean(item.message)}" + (f" {clean(item.hint)}" if item.hint else ""),
                colour,
            )
    if written is not None:
        line(f"Wrote {clean(written)}")


def _device(device: DeviceResult, judged: bool, console: Console, unit: str, *, many: bool) -> None:
    from rich.table import Table
    from rich.text import Text

    if many:
        step = "a step takes " if device.steps.used else ""
        title = f"{clean(device.name, 60)}, device {device.device} of process {device.process}"
        times = f": {step}{units.ns(device.step.measured_ns)}, busy {units.ns(device.step.busy_ns)}"
        console.print(Text(title, style="bold") + Text(times), soft_wrap=not console.is_terminal)
    rates = device.step.tokens_per_s
    if rates.get("measured") is not None:
        text = f"  {units.significant(rates['measured'])} {unit} measured"
        if judged and rates.get("bound") is not None:
            text += f", {units.significant(rates['bound'])} {unit} at most"
        console.print(Text(text), soft_wrap=True)
    if not judged:
        return
    rows = largest_excesses(device)[:SHOWN]
    if not rows:
        return
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("  largest excesses")
    for name in ("excess", "recoverable", "measured", "floor", "ratio"):
        table.add_column(name, justify="right")
    table.add_column("bound")
    for row in rows:
        cells = (
            f"  {clean(row.op, 40)}",
            *map(units.ns, (row.excess_ns, row.recoverable_ns, row.measured_ns, row.floor_ns)),
            units.ratio(row.ratio),
            row.bound,
        )
        table.add_row(*(Text(cell) for cell in cells))
    console.print(table)
