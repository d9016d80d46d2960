"""`nsysmodel baseline`: keep the results of a run, and hold another one against them."""

from __future__ import annotations

from pathlib import Path

import click

from nsysmodel.cli.options import hardware_options, selection_options, workload_options
from nsysmodel.cli.output import check_writable, write_output
from nsysmodel.cli.reading import reading_options
from nsysmodel.cli.thresholds import threshold_options, thresholds_of
from nsysmodel.request import HardwareRequest, Selection
from nsysmodel.workload import WorkloadRequest


@click.group()
def command() -> None:
    """Keep the results of a run in a small file, and hold other runs against it."""


@command.command()
@click.argument("export", type=click.Path())
@click.option("-m", "--model", metavar="NAME|FILE", help="As in nsysmodel report.")
@workload_options
@hardware_options
@selection_options
@reading_options
@click.option("-o", "--output", metavar="FILE", help="Where to write; by default <export>.baseline.json.")
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
def save(
    export: str,
    model: str | None,
    workload: WorkloadRequest,
    hardware: HardwareRequest,
    selection: Selection,
    output: str | None,
    force: bool,
) -> None:
    """Write what compare and gate need of EXPORT; a few tens of kB."""
    target = output or f"{Path(export).name.removesuffix('.sqlite')}.baseline.json"
    check_writable(target, force=force, named=output is not None)
    from nsysmodel.comparison.snapshot import render_snapshot
    from nsysmodel.comparison.taking import Asked, snapshot

    taken = snapshot(export, Asked(model, workload, hardware, selection))
    if model is not None and not taken.judged:
        from nsysmodel.errors import ModelError

        raise ModelError(
            f"No baseline of a run that cannot be judged. {taken.headline}",
            "Name the model that ran, or save without --model to compare by kernel name.",
        )
    text = render_snapshot(taken)
    write_output(target, text, force=force, named=output is not None)
    if target != "-":
        steps = len(taken.devices[0].steps)
        click.echo(f"Wrote {target} ({len(text) / 1000:.0f} kB, {steps} steps).")


@command.command()
@click.argument("export", type=click.Path())
@click.argument("baseline", type=click.Path())
@click.option("-m", "--model", metavar="NAME|FILE", help="By default the model of the baseline, if bundled.")
@threshold_options
@workload_options
@hardware_options
@selection_options
@reading_options
@click.option("--junit", metavar="FILE", help="Write JUnit XML.")
@click.option("--github", is_flag=True, help="Also print annotations for GitHub Actions.")
@click.pass_context
def check(
    ctx: click.Context,
    export: str,
    baseline: str,
    model: str | None,
    threshold: str,
    min_change: str,
    confidence: float,
    workload: WorkloadRequest,
    hardware: HardwareRequest,
    selection: Selection,
    junit: str | None,
    github: bool,
) -> None:
    """Hold EXPORT against a BASELINE file; exit 3 where it is slower, 4 where that cannot be judged."""
    check_writable(junit, force=False, named=True)
    from nsysmodel.cli.gate import report
    from nsysmodel.comparison import compare
    from nsysmodel.gate.baseline import model_of
    from nsysmodel.gate.checks import check_comparison

    comparison = compare(
        baseline, export, model=model_of(baseline, model), workload=workload, hardware=hardware,
        selection=selection, thresholds=thresholds_of(threshold, min_change, confidence),
    )  # fmt: skip
    report(ctx, list(check_comparison(comparison)), export, "text", None, junit, False, github)
