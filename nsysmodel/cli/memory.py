"""`nsysmodel memory`: copies and memsets by kind."""

from __future__ import annotations

import dataclasses

import click

from nsysmodel.cli.options import chosen_format, output_options
from nsysmodel.cli.reading import reading_options


@click.command()
@click.argument("export", type=click.Path())
@click.option(
    "--by", type=click.Choice(["kind", "device", "stream"]), default="kind", help="What a row stands for."
)
@click.option("--top", type=click.IntRange(min=1), metavar="N", help="Only the first N rows.")
@reading_options
@output_options("table", "csv", "json", "markdown", "parquet", default="table")
def command(
    export: str, by: str, top: int | None, output_format: str | None, output: str | None, force: bool
) -> None:
    """List the copies and memsets of EXPORT: count, bytes, time, effective bandwidth.

    The bandwidth is bytes over the summed time of the operations; where several share a link at a time, the
    link carries more. Migrations of unified memory are kinds of their own.
    """
    from nsysmodel.cli.frames import reads_terminal, render
    from nsysmodel.cli.output import check_writable, write_output
    from nsysmodel.export.run import open_run
    from nsysmodel.export.summary import memory_summary

    wanted = chosen_format(output_format, output, "table")
    terminal = reads_terminal(output)
    if wanted == "parquet" and terminal:
        raise click.UsageError("Parquet is binary; name a file with -o.")
    check_writable(output, force=force, named=output is not None)
    with open_run(export) as run:
        table = memory_summary(run, by)  # type: ignore[arg-type]
        if not len(table) and wanted == "table":
            click.echo("The export has no copies and no memsets.", err=True)
        head = {
            "schema": "nsysmodel.memory/1",
            "export": dataclasses.asdict(run.facts),
            "by": by,
            "diagnostics": [dataclasses.asdict(found) for found in run.diagnostics],
        }
        shown = table if top is None else table.head(top)
        write_output(output, render(shown, wanted, to_terminal=terminal, **head), force=force)
