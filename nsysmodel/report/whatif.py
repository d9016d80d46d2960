"""The what-if panel: choices and their floors as text, and the same numbers as data for the script."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nsysmodel import units
from nsysmodel.report.facts import rate_unit
from nsysmodel.report.tables import Cell, Column, Table, plain
from nsysmodel.report.text import clean
from nsysmodel.result import Evaluation


@dataclass(frozen=True, slots=True)
class Choice:
    """One control: what it changes, its values as text, and which of them was judged."""

    name: str
    label: str
    values: tuple[str, ...]
    here: int


@dataclass(frozen=True, slots=True)
class Panel:
    """The panel. `table` has the floors at the judged bandwidth, for readers without script."""

    choices: tuple[Choice, ...]
    ops: tuple[str, ...]
    table: Table
    data: dict[str, Any]


def panel(evaluation: Evaluation) -> Panel | None:
    """The panel of the first device; None where there are no floors of other workloads."""
    found = evaluation.what_if
    step = evaluation.devices[0].step if evaluation.devices else None
    if found is None or step is None or step.floor_ns is None:
        return None
    bandwidth = evaluation.hardware.get("bandwidth_bytes_per_s") or 0.0
    choices = (
        Choice("batch", "Batch", tuple(f"{value:,}" for value in found.batches), found.here[0]),
        Choice(
            "reach",
            "Context" if found.axis == "context" else "New tokens per sequence",
            tuple(f"{value:,}" for value in found.lengths),
            found.here[1],
        ),
        Choice(
            "bandwidth",
            "HBM bandwidth",
            tuple(f"×{factor:g} = {units.bandwidth(factor * bandwidth)}" for factor in found.bandwidths),
            found.here[2],
        ),
    )
    data = {
        "floors": [[list(cell) for cell in row] for row in found.floors_ns],
        "tokens": [list(row) for row in found.tokens],
        "here": list(found.here),
        "measured": step.measured_ns,
        "unit": rate_unit(evaluation),
        "floor": step.floor_ns,
        "ops": [[op.measured_ns, op.best_ns, op.alone_ns] for op in found.ops],
    }
    return Panel(choices, tuple(clean(op.op, 60) for op in found.ops), _grid(evaluation), data)


def _grid(evaluation: Evaluation) -> Table:
    """Floors at the judged bandwidth: a row per batch, a column per length."""
    found = evaluation.what_if
    assert found is not None
    name = "context" if found.axis == "context" else "tokens"
    columns = (Column("Batch"), *(Column(f"{name} {length:,}") for length in found.lengths))
    rows = []
    for place, batch in enumerate(found.batches):
        cells = [plain(batch)]
        for column in range(len(found.lengths)):
            floor = found.floors_ns[place][column][found.here[2]]
            judged = (place, column) == found.here[:2]
            cells.append(Cell(units.ns(floor), sort=floor, style="here" if judged else ""))
        rows.append(tuple(cells))
    return Table("what-if-floors", "Floor of a step by batch and " + name, columns, tuple(rows))
