"""`nsysmodel kernels`: kernel time by group, or one row per instance."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import click

from nsysmodel.cli.options import (
    chosen_format,
    hardware_options,
    output_options,
    selection_options,
    workload_options,
)
from nsysmodel.cli.reading import reading_options
from nsysmodel.request import HardwareRequest, Selection
from nsysmodel.workload import WorkloadRequest

if TYPE_CHECKING:
    import pandas as pd

    from nsysmodel.export.run import Run
    from nsysmodel.export.summary import Table

_OF_COLUMNS = ("table", "csv", "markdown")
"""Formats that are written without a frame."""
GROUPS = ("name", "short", "grid", "op", "stream", "device", "nvtx")
_ASCENDING = (
    "start_ns",
    "end_ns",
    "name",
    "op",
    "grid",
    "block",
    "process",
    "device",
    "stream",
    "step",
    "layer",
)


@dataclasses.dataclass(frozen=True, slots=True)
class _Asked:
    """What the kernels are joined with, and which of them count."""

    model: str | None
    workload: WorkloadRequest
    hardware: HardwareRequest
    selection: Selection


@click.command()
@click.argument("export", type=click.Path())
@click.option("--by", type=click.Choice(GROUPS), help="What a row stands for; by default, a kernel name.")
@click.option(
    "--sort", metavar="COLUMN", help="Order by this column: numbers descending, the rest ascending."
)
@click.option("--top", type=click.IntRange(min=1), metavar="N", help="Only the first N rows.")
@click.option("--instances", is_flag=True, help="One row per kernel instance, in order of start.")
@click.option(
    "-m", "--model", metavar="MODEL", help="Join with this model: adds step, layer, op, confidence."
)
@workload_options
@hardware_options
@selection_options
@output_options("table", "csv", "json", "markdown", "parquet", default="table")
@reading_options
def command(
    export: str,
    by: str | None,
    sort: str | None,
    top: int | None,
    instances: bool,
    model: str | None,
    workload: WorkloadRequest,
    hardware: HardwareRequest,
    selection: Selection,
    output_format: str | None,
    output: str | None,
    force: bool,
) -> None:
    """List the kernels of EXPORT with their statistics.

    Columns and numbers are those of nsys stats --report cuda_gpu_kern_sum: percentage of the time of all
    kernels, total, instances, mean, median, shortest, longest, sample standard deviation, in ns.

    \b
    nsysmodel kernels trace.sqlite --top 10
    nsysmodel kernels trace.sqlite --by grid -f csv -o kernels.csv
    nsysmodel kernels trace.sqlite --model qwen3-30b --instances -o instances.parquet
    """
    if by == "op" and model is None:
        raise click.UsageError("--by op needs --model: ops come from a model.")
    if by is not None and instances:
        raise click.UsageError("--by groups kernels and --instances lists them one by one; give one of them.")
    if selection.steps is not None and model is None:
        raise click.UsageError("--steps needs --model: steps are found by the join with a model.")

    from nsysmodel.cli.frames import reads_terminal, render
    from nsysmodel.cli.output import check_writable, write_output
    from nsysmodel.export.quick import quick_summary
    from nsysmodel.export.run import open_run

    wanted = chosen_format(output_format, output, "table")
    terminal = reads_terminal(output)
    if wanted == "parquet" and terminal:
        raise click.UsageError("Parquet is binary; name a file with -o.")
    check_writable(output, force=force, named=output is not None)
    group = by or "name"
    with open_run(export) as run:
        plain = model is None and not instances and selection == Selection() and wanted in _OF_COLUMNS
        table: pd.DataFrame | Table | None = quick_summary(run, group) if plain else None
        if table is None:
            table = _frame(run, group, instances, wanted, _Asked(model, workload, hardware, selection))
        table = _first(_ordered(table, sort), top)
        head = _head(run, "instance" if instances else group) if wanted == "json" else {}
        write_output(output, render(table, wanted, to_terminal=terminal, **head), force=force)
        _warn(run)


def _frame(run: Run, by: str, instances: bool, wanted: str, asked: _Asked) -> pd.DataFrame:
    """What is asked for, of the frame of all kernels or, where they are enough, of few of its columns."""
    if asked.model is None and not instances and asked.selection.nvtx is None and wanted != "json":
        rows = _few(run, by, asked.selection)
    else:
        _need(run, run.kernels())
        rows = _rows(run, asked)
    return _listed(rows) if instances else _summary(run, by, rows)


def _few(run: Run, by: str, selection: Selection) -> pd.DataFrame:
    """The selected kernels with the columns that a summary needs: most of a large table is not read."""
    from nsysmodel.export.selecting import select
    from nsysmodel.export.summary import needed_columns

    wanted = ["duration_ns", *needed_columns(by)]
    wanted += ["process"] if selection.process is not None else []
    wanted += ["device"] if selection.device is not None else []
    rows = run.some_kernels(wanted)
    _need(run, rows)
    return select(
        run, rows, process=selection.process, device=selection.device, time_range=selection.time_range
    )


def _need(run: Run, rows: pd.DataFrame) -> None:
    """Raise where there is nothing to list, with the finding that says why."""
    from nsysmodel.errors import ExportError

    if len(rows):
        return
    for found in run.diagnostics:
        if found.severity == "error":
            raise ExportError(found.message, found.hint)
    raise ExportError(f"{run.path_name} has no kernels.", "nsysmodel inspect says what it has.")


def _rows(run: Run, asked: _Asked) -> pd.DataFrame:
    """The selected kernels; with a model, joined with it."""
    from nsysmodel.export.selecting import select

    selection = asked.selection
    if asked.model is not None:
        from nsysmodel import analyze

        joined: pd.DataFrame = analyze.instances(
            run,
            model=asked.model,
            workload=asked.workload,
            hardware=asked.hardware,
            selection=selection,
        )
        return joined
    return select(
        run,
        run.kernels(),
        process=selection.process,
        device=selection.device,
        time_range=selection.time_range,
        nvtx=selection.nvtx,
    )


def _summary(run: Run, by: str, rows: pd.DataFrame) -> pd.DataFrame:
    from nsysmodel.export.summary import kernel_summary

    return kernel_summary(run, by, rows)  # type: ignore[arg-type]


def _listed(rows: pd.DataFrame) -> pd.DataFrame:
    """The contract's columns first, then whatever else is known of an instance."""
    import pandas as pd

    rows = rows.copy(deep=False)
    for name in ("step", "layer"):
        if name not in rows:
            rows[name] = pd.array([None] * len(rows), dtype="Int64")
    if "op" not in rows:
        rows["op"] = pd.Categorical([None] * len(rows))
    if "confidence" not in rows:
        rows["confidence"] = float("nan")
    first = ["start_ns", "end_ns", "duration_ns", "process", "device", "stream", "name"]
    first += ["step", "layer", "op", "confidence"]
    return rows[first + [name for name in rows.columns if name not in first]]


def _ordered(table: pd.DataFrame | Table, column: str | None) -> pd.DataFrame | Table:
    if column is None:
        return table
    if column not in table:
        raise click.UsageError(
            f"--sort {column}: there is no such column; there are {', '.join(map(str, table))}."
        )
    ascending = column in _ASCENDING
    if isinstance(table, dict):
        values = table[column] if ascending else -table[column]
        places = values.argsort(kind="stable")
        return {name: values[places] for name, values in table.items()}
    key = table[column].astype(str) if table[column].dtype == "category" else table[column]
    order = key.reset_index(drop=True).sort_values(ascending=ascending, kind="stable").index
    return table.iloc[order].reset_index(drop=True)


def _first(table: pd.DataFrame | Table, top: int | None) -> pd.DataFrame | Table:
    if isinstance(table, dict):
        return {name: values[:top] for name, values in table.items()}
    return table if top is None else table.head(top)


def _head(run: Run, by: str) -> dict[str, Any]:
    return {
        "schema": "nsysmodel.kernels/1",
        "export": dataclasses.asdict(run.facts),
        "by": by,
        "diagnostics": [dataclasses.asdict(found) for found in run.diagnostics],
    }


def _warn(run: Run) -> None:
    """What makes the list incomplete, on standard error."""
    for found in run.recording_diagnostics:
        if found.severity != "info":
            click.echo(f"Note: {found.message}", err=True)
