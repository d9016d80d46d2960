"""A flat model: each kernel is judged by the first entry whose pattern its name matches."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np

from nsysmodel.hardware.types import Hardware
from nsysmodel.join.types import Bools, Floats, Ints, Join, Labels, StepWindow
from nsysmodel.judge.cases import Case
from nsysmodel.judge.ops import Priced
from nsysmodel.model.flat import evaluate, in_flight
from nsysmodel.model.types import ExpectedKernel, FlatModel, Op
from nsysmodel.theory.cost import Cost, total
from nsysmodel.theory.floor import floor_of
from nsysmodel.theory.ops.links import zero_copy_cost

LAUNCH = ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z")


def flat_join(case: Case, model: FlatModel) -> Join:
    """Assign kernels to entries by name; the whole activity is one window."""
    kernels = case.kernels
    names = kernels["name"].astype("category")
    patterns = [re.compile(entry.pattern) for entry in model.kernels]
    by_code = np.array(
        [
            next((index for index, pattern in enumerate(patterns) if pattern.search(str(text))), -1)
            for text in names.cat.categories
        ],
        np.int64,
    )
    op: Ints = by_code[names.cat.codes.to_numpy()] if len(kernels) else np.zeros(0, np.int64)
    count = len(kernels)
    labels = Labels(
        step=np.zeros(count, np.int64),
        layer=np.full(count, -1, np.int64),
        op=op,
        belief=(op >= 0).astype(np.int8),
        executions=(op >= 0).astype(np.int64),
        op_labels=tuple(entry.name for entry in model.kernels),
        beliefs=np.array([0.0, 1.0]),
    )
    missing = tuple(entry.name for index, entry in enumerate(model.kernels) if not (op == index).any())
    whole = StepWindow(0, int(case.activity.start_ns.min()), int(case.activity.end_ns.max()), 0)
    refusals = () if (op >= 0).any() else (f"No kernel matches an entry of {model.name}.",)
    return Join(labels, (whole,), "none", 0, {}, missing, refusals)


def flat_price(case: Case, model: FlatModel, join: Join, hardware: Hardware) -> dict[str, Priced]:
    """Floors of each entry, summed over its launches.

    Raises:
        ModelError: an expression has no value for a launch.
        HardwareError: the device has no peak for an entry's number format.
    """
    result: dict[str, Priced] = {}
    for index, entry in enumerate(model.kernels):
        rows: Bools = join.labels.op == index
        if not rows.any():
            continue
        launch = {name: case.kernels[name].to_numpy(np.int64)[rows].astype(float) for name in LAUNCH}
        result[entry.name] = _priced(model, entry, launch, int(rows.sum()), hardware)
    return result


def _priced(
    model: FlatModel, entry: ExpectedKernel, launch: dict[str, Floats], number: int, hardware: Hardware
) -> Priced:
    """Floors of one entry; launches of the same work are priced once."""
    values = [*evaluate(model, entry, launch)]
    if entry.kind:
        values += in_flight(model, entry, launch)
    columns = [np.broadcast_to(np.asarray(value, float), (number,)) for value in values]
    distinct, counts = np.unique(np.stack(columns, axis=1), axis=0, return_counts=True)
    ops = [_op(entry, row) for row in distinct.tolist()]
    floors = [floor_of(op.cost, hardware) for op in ops]
    usual = int(counts.argmax())
    ns = sum(floor.ns * int(n) for floor, n in zip(floors, counts, strict=True))
    whole = total(op.cost * int(n) for op, n in zip(ops, counts, strict=True))
    parts = tuple((floor.ns, int(n)) for floor, n in zip(floors, counts, strict=True))
    return Priced(ns, ns, ns, whole, floors[usual], ops[usual], number, True, parts)


def _op(entry: ExpectedKernel, values: list[float]) -> Op:
    """The entry as an op, with the values of its expressions for one launch."""
    if entry.kind:
        flop, moved, flight, latency = values
        made = zero_copy_cost(moved, flight, latency, entry.link)
        cost = replace(made.cost, flop={entry.dtype: flop})
        return Op(entry.name, entry.kind, cost, (), made.formula, in_flight=made.in_flight)
    flop, moved = values
    return Op(
        entry.name, "flat", Cost({entry.dtype: flop}, moved), (), f"FLOP: {entry.flop}; bytes: {entry.bytes}"
    )
