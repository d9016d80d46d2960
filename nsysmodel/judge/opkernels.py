"""The kernels of each op label by launch shape: sorted and numbered once, for all that is said of an op."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nsysmodel.intervals import covered, union
from nsysmodel.join.runs import narrow
from nsysmodel.join.shapes import Shapes, renumbered
from nsysmodel.join.types import Bools, Codes, Ints, Join
from nsysmodel.judge.cases import Case


@dataclass(frozen=True, slots=True)
class OpKernels:
    """Kernels of an op label in the used steps.

    Attributes:
        rows: rows of the case's kernels, ascending.
        shape: number of each one's name and launch shape, in order of first rows.
        examples: the first row of each shape.
    """

    rows: Codes
    shape: Codes
    examples: Ints

    def inside(self, mask: Bools) -> OpKernels:
        """Those of them that a mask of all kernels holds."""
        kept = mask[self.rows]
        if kept.all():
            return self
        rows = self.rows[kept]
        if not len(rows):
            return NONE
        shape, examples = renumbered(self.shape[kept], rows)
        return OpKernels(rows, shape, examples)


NONE = OpKernels(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64))


def used_rows(join: Join) -> Bools:
    """Kernels of the steps that are judged."""
    used = np.zeros(int(join.labels.step.max(initial=-1)) + 2, bool)
    for step in join.used:
        used[step.index : step.index + 1] = True
    used[-1] = False
    return used[join.labels.step]


def kernels_by_op(shapes: Shapes, join: Join) -> Mapping[str, OpKernels]:
    """The kernels of each op label that has some in the steps that are judged."""
    labels = join.labels
    op = narrow(np.where(used_rows(join), labels.op, -1))
    order = np.argsort(op, kind="stable").astype(np.int32)
    edges = np.cumsum(np.bincount(op + 1, minlength=len(labels.op_labels) + 1))
    claimed = order[edges[0] :]
    if not len(claimed):
        return {}
    code = shapes.code[claimed]
    result: dict[str, OpKernels] = {}
    for label, low, high in zip(labels.op_labels, edges[:-1] - edges[0], edges[1:] - edges[0], strict=True):
        if low < high:
            rows = claimed[low:high]
            result[label] = OpKernels(rows, *renumbered(code[low:high], rows))
    return result


def measured_by_op(case: Case, join: Join, windows: Sequence[tuple[int, int]]) -> dict[str, int]:
    """Kernel time of each op label inside the windows, kernels clipped to them."""
    start = case.kernels["start_ns"].to_numpy(np.int64)
    end = case.kernels["end_ns"].to_numpy(np.int64)
    total = covered(start, end, union([low for low, _ in windows], [high for _, high in windows]))
    claimed = join.labels.op >= 0
    measured = np.zeros(len(join.labels.op_labels), np.int64)
    np.add.at(measured, join.labels.op[claimed], total[claimed])
    return {label: time for label, time in zip(join.labels.op_labels, measured.tolist(), strict=True) if time}
