"""`nsysmodel batch`: many exports, a report each, one index page and one table of all ops."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from nsysmodel.cli.options import hardware_options, selection_options, workload_options
from nsysmodel.cli.reading import cache_options, place_of
from nsysmodel.request import HardwareRequest, Selection
from nsysmodel.workload import WorkloadRequest

if TYPE_CHECKING:
    from rich.console import Console

    from nsysmodel.batch.run import Finished
    from nsysmodel.batch.types import Batch, Request


@click.command()
@click.argument("exports", nargs=-1, required=True, metavar="EXPORT...", type=click.Path())
@click.option(
    "-m", "--model", metavar="NAME|FILE", help="Bundled model, model file (YAML), or a config.json."
)
@click.option("-o", "--output", required=True, metavar="DIR", help="Folder for everything that is written.")
@click.option("--force", is_flag=True, help="Write into a folder with files that no batch wrote.")
@click.option("-j", "--jobs", type=click.IntRange(min=0), default=1, help="Processes; 0 for one per CPU.")
@click.option("--dask", metavar="ADDRESS", help="Work on this Dask cluster instead: tcp://host:8786.")
@click.option("--label", "labels", multiple=True, metavar="KEY=VALUE", help="A label of all runs.")
@click.option(
    "--label-from",
    multiple=True,
    metavar="REGEX",
    help="Labels from the path of each export: (?P<commit>[0-9a-f]{7}).",
)
@click.option(
    "--workload-from",
    multiple=True,
    metavar="REGEX",
    help="Workload flags from the path of each export: tp(?P<tp>[0-9]+)-b(?P<batch>[0-9]+).",
)
@click.option("--group-by", multiple=True, metavar="KEY", help="A fact or label to group runs by; or none.")
@click.option("--keep", is_flag=True, help="Keep the runs of earlier calls on the page.")
@click.option("--prune", is_flag=True, help="Remove the results of runs that are not named now.")
@click.option("--allow-failures", is_flag=True, help="Exit with 0 if at least one export gave a result.")
@workload_options
@hardware_options
@selection_options
@cache_options
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but failures.")
@click.pass_context
def command(
    ctx: click.Context,
    exports: tuple[str, ...],
    model: str | None,
    output: str,
    force: bool,
    jobs: int,
    dask: str | None,
    labels: tuple[str, ...],
    label_from: tuple[str, ...],
    workload_from: tuple[str, ...],
    group_by: tuple[str, ...],
    keep: bool,
    prune: bool,
    allow_failures: bool,
    workload: WorkloadRequest,
    hardware: HardwareRequest,
    selection: Selection,
    cache: bool,
    cache_beside: bool,
    quiet: bool,
) -> None:
    """Judge every EXPORT and write a report for each, an index page and a table of all ops.

    EXPORT is a file, a glob, a folder, or @FILE with one of them a line. What is done already is not done
    again. Exit code 1 if any export gave no result; the others are judged all the same.

    \b
    Examples:
      nsysmodel batch captures/*.sqlite --model qwen3-30b -o out
      nsysmodel batch captures/ -m qwen3-30b -o out -j 8 --label-from '(?P<commit>[0-9a-f]{7})'
      nsysmodel batch @list.txt -m my-model.yaml -o out --dask tcp://10.0.0.5:8786
    """
    from nsysmodel.batch.labels import parse_labels
    from nsysmodel.batch.plan import plan
    from nsysmodel.batch.run import run_batch

    request = replace(_checked(model, hardware, selection), cache=place_of(cache, cache_beside))
    runs = plan(
        exports,
        workload=workload,
        labels=parse_labels(labels),
        label_from=label_from,
        workload_from=workload_from,
    )
    with _progress(len(runs), quiet, ctx.color) as tell:
        batch = run_batch(
            runs, output, request, jobs=jobs or os.cpu_count() or 1, dask=dask, keep=keep, prune=prune,
            force=force, group_by=group_by, tell=tell,
        )  # fmt: skip
    if not quiet:
        _summary(batch, output)
    if batch.failed and not (allow_failures and len(batch.failed) < len(batch.rows)):
        ctx.exit(1)


def _checked(model: str | None, hardware: HardwareRequest, selection: Selection) -> Request:
    """Model and hardware, read once: what is wrong with them is said before any export is opened."""
    from nsysmodel.batch.types import Request
    from nsysmodel.hardware.catalogue import load_catalogue
    from nsysmodel.hardware.resolve import Overrides
    from nsysmodel.model import load

    Overrides.parse(bandwidth=hardware.bandwidth, peaks=hardware.peaks, clock=hardware.clock)
    catalogue = load_catalogue(hardware.files)
    if hardware.gpu is not None:
        catalogue.find(hardware.gpu)
    return Request(load(model) if model is not None else None, model, hardware, selection)


@contextmanager
def _progress(total: int, quiet: bool, color: bool | None) -> Iterator[Callable[[Finished], None]]:
    """A bar with the time left on a terminal; a line per run elsewhere. Failures are always told."""
    from rich.console import Console

    console = Console(stderr=True, highlight=False, force_terminal=color if color else None)
    if quiet or not console.is_terminal:
        yield lambda finished: _line(console, finished, quiet)
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(compact=True),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        whole = bar.add_task("Judging", total=total)

        def tell(finished: Finished) -> None:
            bar.update(whole, advance=1)
            if finished.row.status == "failed":
                _line(console, finished, quiet)

        yield tell


def _line(console: Console, finished: Finished, quiet: bool) -> None:
    """One run on one line."""
    from nsysmodel import units
    from nsysmodel.report.text import clean

    row = finished.row
    if quiet and row.status != "failed":
        return
    head = f"[{finished.done}/{finished.total}] {clean(row.name, 120)}: "
    if row.status == "failed":
        said = f"failed: {clean(row.headline, 300)}"
    elif row.step_ns is None:
        said = "no step found"
    else:
        said = f"{units.ns(row.step_ns)} a step"
    if row.fraction_of_roofline is not None:
        said += f", {units.percent(row.fraction_of_roofline)} of the roofline"
    elif row.status == "cannot_judge":
        said += f"; {clean(row.headline, 200)}"
    said += " (unchanged)" if finished.unchanged else ""
    console.print(head + said, markup=False, soft_wrap=True)
    if finished.trace:
        import logging

        logging.getLogger("nsysmodel.batch").debug("%s", finished.trace)


def _summary(batch: Batch, output: str) -> None:
    """What this call did, on standard output."""
    from nsysmodel.report.text import plural

    parts = [f"{len(batch.evaluated):,} judged anew", f"{len(batch.unchanged):,} unchanged"]
    if batch.failed:
        parts.append(f"{len(batch.failed):,} failed")
    click.echo(batch.headline)
    click.echo(f"{', '.join(parts)}. Wrote {os.path.join(output, 'index.html')}")
    if batch.hidden:
        click.echo(
            f"In the folder but not on the page: {plural(len(batch.hidden), 'earlier run')}. "
            "--keep shows them, --prune removes them."
        )
