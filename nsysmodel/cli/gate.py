"""`nsysmodel gate`: exit 3 where a budget is broken or a run got slower than its baseline."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from nsysmodel.cli.options import (
    chosen_format,
    hardware_options,
    output_options,
    selection_options,
    workload_options,
)
from nsysmodel.cli.output import check_writable, write_output
from nsysmodel.cli.reading import reading_options
from nsysmodel.cli.thresholds import threshold_options, thresholds_of
from nsysmodel.request import HardwareRequest, Selection
from nsysmodel.workload import WorkloadRequest

if TYPE_CHECKING:
    from nsysmodel.gate.checks import Check


@click.command(
    epilog="Exit codes: 0 every limit is kept, 1 the input is at fault, 2 usage, 3 a limit is broken, "
    "4 none is broken and at least one cannot be judged."
)
@click.argument("export", type=click.Path())
@click.option("--budget", "budget_file", metavar="FILE", help="Limits of the step and of ops (YAML).")
@click.option(
    "--baseline", metavar="FILE", help="A baseline file or an export that EXPORT must not be slower than."
)
@click.option("-m", "--model", metavar="NAME|FILE", help="As in nsysmodel report.")
@threshold_options
@workload_options
@hardware_options
@selection_options
@reading_options
@output_options("text", "markdown", "json", default="text")
@click.option("--all", "every", is_flag=True, help="Also name the limits that are kept.")
@click.option("--junit", metavar="FILE", help="Write JUnit XML.")
@click.option("--github", is_flag=True, help="Also print annotations for GitHub Actions.")
@click.pass_context
def command(
    ctx: click.Context,
    export: str,
    budget_file: str | None,
    baseline: str | None,
    model: str | None,
    threshold: str,
    min_change: str,
    confidence: float,
    workload: WorkloadRequest,
    hardware: HardwareRequest,
    selection: Selection,
    output_format: str | None,
    output: str | None,
    force: bool,
    every: bool,
    junit: str | None,
    github: bool,
) -> None:
    """Hold EXPORT against a budget, a baseline, or both.

    \b
    nsysmodel gate trace.sqlite -m qwen3-30b --budget budget.yaml
    nsysmodel gate trace.sqlite -m qwen3-30b --baseline main.json --threshold 2%
    """
    if budget_file is None and baseline is None:
        raise click.UsageError("Nothing to hold the export against: give --budget, --baseline, or both.")
    for path in (output, junit):
        check_writable(path, force=force, named=True)
    limits = thresholds_of(threshold, min_change, confidence)
    checks: list[Check] = []
    if budget_file is not None:
        from nsysmodel.analyze import evaluate
        from nsysmodel.gate.budget import load_budget
        from nsysmodel.gate.checks import check_budget

        budget = load_budget(Path(budget_file))
        evaluation = evaluate(export, model, workload=workload, hardware=hardware, selection=selection)
        checks += check_budget(evaluation, budget)
    if baseline is not None:
        from nsysmodel.comparison import compare
        from nsysmodel.gate.baseline import model_of
        from nsysmodel.gate.checks import check_comparison

        wanted = model_of(baseline, model)
        comparison = compare(
            baseline, export, model=wanted, workload=workload, hardware=hardware, selection=selection,
            thresholds=limits,
        )  # fmt: skip
        checks += check_comparison(comparison)
    report(ctx, checks, export, chosen_format(output_format, output, "text"), output, junit, every, github)


def report(
    ctx: click.Context,
    checks: list[Check],
    export: str,
    chosen: str,
    output: str | None,
    junit: str | None,
    every: bool,
    github: bool,
) -> None:
    """Print and write the checks, and leave with their exit code."""
    from nsysmodel.gate import output as shown
    from nsysmodel.gate.checks import exit_code

    if chosen == "text":
        text = shown.render_text(checks, every=every)
    else:
        text = (shown.render_json if chosen == "json" else shown.render_markdown)(checks)
    write_output(output, text)
    if output not in (None, "-"):
        click.echo(shown.summary(checks))
    if junit is not None:
        write_output(junit, shown.render_junit(checks, Path(export).name))
    if github:
        click.echo(shown.render_github(checks), nl=False, err=output == "-" or chosen != "text")
    ctx.exit(exit_code(checks))
