"""A flat model: each kernel is judged by the first entry whose pattern its name matches."""

from __future__ import annotations

import re

import numpy as np

from nsysmodel.hardware.types import Hardware
from nsysmodel.join.types import Bools, Floats, Ints, Join, Labels, StepWindow
from nsysmodel.judge.cases import Case
from nsysmodel.judge.ops import Priced
from nsysmodel.model.flat import evaluate
from nsysmodel.model.types import FlatModel, Op
from nsysmodel.theory.cost import Cost
from nsysmodel.theory.floor import floor_of

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
        confidence=np.where(op >= 0, 1.0, 0.0),
        executions=(op >= 0).astype(np.int64),
        op_labels=tuple(entry.name for entry in model.kernels),
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
        flop, size = evaluate(model, entry, launch)
        number = int(rows.sum())
        flops: Floats = np.broadcast_to(np.asarray(flop, float), (number,))
        sizes: Floats = np.broadcast_to(np.asarray(size, float), (number,))
        pairs, counts = np.unique(np.stack([flops, sizes], axis=1), axis=0, return_counts=True)
        costs = [Cost({entry.dtype: f}, b) for f, b in pairs.tolist()]
        floors = [floor_of(cost, hardware) for cost in costs]
        total = sum(floor.ns * int(n) for floor, n in zip(floors, counts, strict=True))
        whole = Cost({entry.dtype: float(flops.sum())}, float(sizes.sum()))
        usual = int(counts.argmax())
        op = Op(entry.name, "flat", costs[usual], (), f"FLOP: {entry.flop}; bytes: {entry.bytes}")
        result[entry.name] = Priced(total, total, total, whole, floors[usual], op, number, True)
    return result
