"""`nsysmodel report`: judge an export and write the report."""

from __future__ import annotations

import sys
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
from nsysmodel.progress import tell
from nsysmodel.request import HardwareRequest, Selection
from nsysmodel.workload import WorkloadRequest

if TYPE_CHECKING:
    from nsysmodel.result import Evaluation

SUFFIX = {"html": ".html", "markdown": ".md", "json": ".json", "csv": ".csv", "parquet": ".parquet"}


@click.command()
@click.argument("exports", metavar="EXPORT...", nargs=-1, required=True, type=click.Path())
@click.option(
    "-m", "--model", metavar="NAME|FILE", help="Bundled model, model file (YAML), or a config.json."
)
@workload_options
@hardware_options
@selection_options
@output_options("html", "markdown", "json", "csv", "parquet", default="html")
@reading_options
@click.option("--json", "json_file", metavar="FILE", help="Write the JSON beside the report, too.")
@click.option(
    "--perfetto",
    metavar="FILE",
    help="Write a trace for ui.perfetto.dev, too: steps, layers, ops, streams, idle. FILE.gz is compressed.",
)
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
@click.pass_context
def command(
    ctx: click.Context,
    exports: tuple[str, ...],
    model: str | None,
    workload: WorkloadRequest,
    hardware: HardwareRequest,
    selection: Selection,
    output_format: str | None,
    output: str | None,
    force: bool,
    json_file: str | None,
    perfetto: str | None,
    quiet: bool,
) -> None:
    """Judge EXPORT against a model and write a report.

    Without --model the report shows what needs no model: gaps, copies, kernels. Several exports are the ranks
    of one run: the time of their collectives is split into transfer and waiting for peers.

    \b
    Examples:
      nsysmodel report trace.sqlite --model qwen3-30b
      nsysmodel report trace.sqlite -m my-model.yaml --batch 8 --context 2048 -o report.md
      nsysmodel report trace.sqlite -m qwen3-30b --format json -o - | jq .verdict
      nsysmodel report rank0.sqlite rank1.sqlite -m llama-3.1-8b --tp 2
    """
    chosen = chosen_format(output_format, output, "html")
    target = output or _default_target(exports[0], chosen)
    check_writable(target, force=force, named=output is not None)
    for beside in (json_file, perfetto):
        if beside is not None:
            check_writable(beside, force=force, named=True)
    from nsysmodel.analyze import evaluate_ranks

    evaluation, cases = evaluate_ranks(
        exports,
        model,
        workload=workload,
        hardware=hardware,
        selection=selection,
        command=_command_line(*exports, model, output, json_file, perfetto, *hardware.files),
    )
    tell("rendering")
    write_output(target, _rendered(evaluation, chosen), force=force, named=output is not None)
    if json_file is not None:
        from nsysmodel.report import render_json

        write_output(json_file, render_json(evaluation), force=force, named=True)
    if perfetto is not None:
        from nsysmodel.analyze import tracks
        from nsysmodel.report.perfetto import TrackSet, render_trace

        sets = [TrackSet(title, rows) for title, rows in tracks(cases)]
        trace = render_trace(sets, compress=perfetto.endswith(".gz"))
        write_output(perfetto, trace, force=force, named=True)
    if not quiet:
        _tell(ctx, evaluation, target)


def _default_target(export: str, chosen: str) -> str:
    """`<export stem>.html` in the current folder."""
    stem = Path(export).name
    for suffix in (".gz", ".zst", ".sqlite", ".sqlite3", ".db", ".nsys-rep"):
        stem = stem.removesuffix(suffix)
    return (stem or "report") + SUFFIX[chosen]


def _command_line(*paths: str | None) -> str:
    """How the report was made, without folders of this machine."""
    words = []
    for word in sys.argv[1:]:
        path = next((path for path in paths if path and word.endswith(path)), "")
        words.append(word[: len(word) - len(path)] + Path(path).name)
    return " ".join(["nsysmodel", *words])


def _rendered(evaluation: Evaluation, chosen: str) -> str | bytes:
    from nsysmodel import report

    if chosen == "html":
        return report.render_html(evaluation)
    if chosen == "markdown":
        return report.render_markdown(evaluation)
    if chosen == "json":
        return report.render_json(evaluation)
    frame = report.ops_frame(evaluation)
    if chosen == "csv":
        return str(frame.to_csv(index=False))
    import io

    buffer = io.BytesIO()
    frame.to_parquet(buffer, index=False)
    return buffer.getvalue()


def _tell(ctx: click.Context, evaluation: Evaluation, target: str) -> None:
    """The verdict on the terminal; on standard error where the report itself went to standard output."""
    from rich.console import Console

    from nsysmodel.report import terminal

    console = Console(
        stderr=target == "-",
        force_terminal=ctx.color,
        highlight=False,
    )
    terminal(evaluation, console, None if target == "-" else target)
