"""`nsysmodel model`: list, show, check and start model files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from nsysmodel import units
from nsysmodel.cli.options import chosen_format, output_options, workload_options
from nsysmodel.cli.output import check_writable, write_output
from nsysmodel.cli.rows import Column, as_csv, as_json, as_table
from nsysmodel.workload import WorkloadRequest

if TYPE_CHECKING:
    from nsysmodel.model import FlatSpec
    from nsysmodel.model.types import StepModel


@click.group()
def command() -> None:
    """List, show, check and start model files."""


_LIST = [
    Column("name", "name", right=False),
    Column("layers", "layers"),
    Column("parameters", "parameters", lambda value: units.count(value, 4)),
    Column("active_parameters", "per token", lambda value: units.count(value, 4)),
    Column("weights", "weights", right=False),
    Column("kinds", "layer kinds", right=False),
    Column("aliases", "also called", right=False),
]


@command.command("list")
@output_options("table", "json", "csv", default="table")
def list_(output_format: str | None, output: str | None, force: bool) -> None:
    """List the bundled models."""
    from nsysmodel.model import aliases, bundled

    check_writable(output, force=force, named=True)
    names: dict[str, list[str]] = {}
    for alias, name in aliases().items():
        names.setdefault(name, []).append(alias)
    rows = [_summary(name, names.get(name, [])) for name in bundled()]
    kind = chosen_format(output_format, output, "table")
    if kind == "json":
        text = as_json({"schema": "nsysmodel.model-list/1", "models": rows})
    elif kind == "csv":
        text = as_csv(_LIST, rows)
    else:
        short = [
            {**row, "aliases": " ".join(a for a in row["aliases"].split() if "/" not in a)} for row in rows
        ]
        text = as_table(_LIST, short, foot="A model file or a config.json is named by its path.")
    write_output(output, text, force=force, named=True)


def _summary(name: str, also: list[str]) -> dict[str, Any]:
    from nsysmodel.model import load

    spec: Any = load(name)
    parameters, active = spec.counts
    rules = spec.quantization
    return {
        "name": name,
        "layers": len(spec.layers),
        "parameters": parameters,
        "active_parameters": active,
        "weights": rules.format or ("mixed" if rules.modules else spec.dtype),
        "kinds": " ".join(spec.kinds),
        "aliases": " ".join(also),
    }


_OPS = [
    Column("place", "place", right=False),
    Column("op", "op", right=False),
    Column("kind", "kind", right=False),
    Column("optional", "", right=False),
    Column("hbm_bytes", "HBM bytes", units.bytes_),
    Column("classes", "kernel classes", right=False),
    Column("formula", "work", right=False),
]


@command.command()
@click.argument("name")
@workload_options
@output_options("table", "json", "csv", default="table")
def show(
    name: str, workload: WorkloadRequest, output_format: str | None, output: str | None, force: bool
) -> None:
    """Show the ops of a model for a workload: place, kind, work, kernel classes."""
    from nsysmodel.model import FlatSpec, load, resolve_workload

    check_writable(output, force=force, named=True)
    spec = load(name)
    kind = chosen_format(output_format, output, "table")
    if isinstance(spec, FlatSpec):
        columns, rows, document, title, foot = _flat(spec)
    else:
        columns, rows, document, title, foot = _layered(spec.build(resolve_workload(workload, spec)))
    if kind == "json":
        text = as_json(document)
    elif kind == "csv":
        text = as_csv([Column(column.key, column.key) for column in columns], rows)
    else:
        text = as_table(columns, rows, title=title, foot=foot)
    write_output(output, text, force=force, named=True)


_Shown = tuple[list[Column], list[dict[str, Any]], dict[str, Any], str, str]


def _flat(spec: FlatSpec) -> _Shown:
    """Columns, rows, document, title and last lines of a flat model."""
    columns = [Column(key, key, right=False) for key in ("op", "pattern", "flop", "bytes", "dtype")]
    rows = [
        {"op": k.name, "pattern": k.pattern, "flop": k.flop, "bytes": k.bytes, "dtype": k.dtype}
        for k in spec.model.kernels
    ]
    document = {"schema": "nsysmodel.model/1", "name": spec.name, "form": "flat", "kernels": rows}
    return columns, rows, document, f"{spec.name}: a flat list of kernels", ""


def _layered(step: StepModel) -> _Shown:
    """Columns, rows, document, title and last lines of a layered model."""
    rows = _places(step)
    document = {
        "schema": "nsysmodel.model/1",
        "name": step.name,
        "form": "layered",
        "layers": list(step.layers),
        "parameters": step.parameters,
        "active_parameters": step.active_parameters,
        "notes": list(step.notes),
        "ops": rows,
    }
    runs = ", ".join(f"{step.layers.count(kind)} × {kind}" for kind in step.kinds)
    title = (
        f"{step.name}: {len(step.layers)} layers ({runs}), {units.count(step.parameters, 4)} parameters, "
        f"{units.count(step.active_parameters, 4)} per token"
    )
    return _OPS, rows, document, title, "\n".join(f"Note: {note}" for note in step.notes)


def _places(step: StepModel) -> list[dict[str, Any]]:
    """One row per op of head, each layer kind, and tail."""
    places = [("head", step.head), *step.kinds.items(), ("tail", step.tail)]
    return [
        {
            "place": place,
            "op": op.id,
            "kind": op.kind,
            "optional": "optional" if op.optional else "",
            "flop": op.cost.total_flop,
            "hbm_bytes": op.cost.hbm_bytes,
            "act_bytes": op.cost.act_bytes,
            "classes": " ".join(op.classes),
            "formula": op.formula,
        }
        for place, ops in places
        for op in ops
    ]


@command.command()
@click.argument("file", type=click.Path())
def check(file: str) -> None:
    """Check a model file or a config.json; exit 1 with file, line and field where it is wrong."""
    from nsysmodel.model import FlatSpec, load, resolve_workload

    spec = load(file)
    if isinstance(spec, FlatSpec):
        click.echo(f"{file}: a flat model with {len(spec.model.kernels)} kernels; nothing is wrong.")
        return
    step = spec.build(resolve_workload(WorkloadRequest(), spec))
    click.echo(
        f"{file}: {len(step.layers)} layers, {units.count(step.parameters, 4)} parameters "
        f"({units.count(step.active_parameters, 4)} per token); nothing is wrong."
    )
    for note in step.notes:
        click.echo(f"Note: {note}")


@command.command()
@click.option("--flat", is_flag=True, help="A list of expected kernels in place of layers.")
@click.option(
    "-o", "--output", default="model.yaml", metavar="FILE", help="Where to write; - is standard output."
)
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
def init(flat: bool, output: str, force: bool) -> None:
    """Write a commented model file to start from."""
    import importlib.resources

    name = "flat.yaml" if flat else "layered.yaml"
    text = importlib.resources.files("nsysmodel.model").joinpath("examples", name).read_text("utf-8")
    check_writable(output, force=force, named=False)
    write_output(output, text, force=force, named=False)
    if output != "-":
        click.echo(f"Wrote {output}; nsysmodel model check {output} checks it.", err=True)
