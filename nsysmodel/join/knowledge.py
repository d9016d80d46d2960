"""What `data/ops.yaml` knows of each op id: how it looks, and what it costs to believe that it is absent."""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from nsysmodel.bundled import bundled_yaml
from nsysmodel.join.template import Orders
from nsysmodel.join.vocabulary import KernelClass
from nsysmodel.model.types import Op

ASIDE = 0.2
"""Cost of not finding in the main chain what may run on a side stream."""


@dataclass(frozen=True, slots=True)
class OpBelief:
    """What `data/ops.yaml` says of one op id; see there."""

    missing: float
    split: float
    split_grouped: float
    eager: frozenset[str]
    needs: frozenset[str]
    generic: str
    family: str
    beside: bool
    opens: Mapping[str, float]
    goes_on: Mapping[str, float]


@functools.cache
def _table() -> dict[str, Any]:
    table: dict[str, Any] = bundled_yaml("nsysmodel.join", "data", "ops.yaml")
    return table


def orders(ids: Collection[str]) -> tuple[Orders, ...]:
    """The orders in which engines may run the ops `ids`, the model's own first; from `data/ops.yaml`."""
    table = _table()
    loops = tuple((str(loop["from"]), str(loop["to"])) for loop in table["loops"])
    found = [Orders(loops=loops, loop_cost=float(table["loop_cost"]))]
    for entry in table["alternatives"]:
        moved = frozenset(entry["ops"])
        if moved & set(ids):
            found += [replace(found[0], moved=moved, before=b) for b in entry["before"] if b in ids]
    return tuple(found)


def op_belief(op: Op) -> OpBelief:
    """The beliefs about an op; by its id, else by what it costs."""
    table = _table()
    heavy = op.cost.weight_bytes > 1e5 or not op.optional
    fallback = table["defaults"]["heavy" if heavy else "small"]
    entry = {**fallback, **table["ops"].get(op.id, {})}
    missing = float(entry["missing"])
    if op.optional:
        missing = min(missing, float(table["defaults"]["optional"]["missing"]) * 2)
    return OpBelief(
        missing=missing,
        split=float(entry["split"]),
        split_grouped=float(entry.get("split_grouped", entry["split"])),
        eager=frozenset(entry.get("eager", ())),
        needs=frozenset(entry.get("needs", ())),
        generic=str(entry.get("generic", "")),
        family=str(entry.get("family", "")),
        beside=bool(entry.get("beside", False)),
        opens=entry.get("opens", {}),
        goes_on=entry.get("goes_on", {}),
    )


def skip_costs(ops: Iterable[Op], *, side_streams: bool = False) -> dict[str, float]:
    """Cost of leaving each op unserved, by op id; little for what may run on a side stream."""
    beliefs = {op.id: op_belief(op) for op in ops}
    return {
        op_id: min(belief.missing, ASIDE) if side_streams and belief.beside else belief.missing
        for op_id, belief in beliefs.items()
    }


def extra_cost(kernel: KernelClass) -> float:
    """Cost of taking a kernel as serving nothing in the model."""
    table = _table()["extra"]
    return float(table.get(kernel.kernel_class, table["default"]))
