"""Steps where no model says what a step is: engine markers, repeated graph launches, else one window."""

from __future__ import annotations

import numpy as np
import pandas as pd

from nsysmodel.grouping import first_rows
from nsysmodel.join.markers import step_of_launches
from nsysmodel.join.types import Ints, Join, Labels, StepWindow
from nsysmodel.judge.cases import Case


def plain_join(case: Case) -> Join:
    """A join without ops. The windows are those of marked steps or of large graph launches."""
    count = len(case.kernels)
    step, method = _numbers(case)
    windows = _windows(case, step)
    if not windows:
        step, method = np.zeros(count, np.int64), "none"
        windows = [_whole(case)]
    none = np.broadcast_to(np.int64(-1), count)
    zero = np.broadcast_to(np.int64(0), count)
    labels = Labels(step, none, none, zero, zero, ())
    return Join(labels, tuple(windows), method, 0)


def _numbers(case: Case) -> tuple[Ints, str]:
    """Step of each kernel, -1 outside, and how it was found."""
    work = case.work
    if len(work.markers) >= 2:
        return step_of_launches(list(work.markers), work.launch_start_ns), "nvtx"
    graphs = work.graph_launch
    codes, ids = pd.factorize(np.where(graphs >= 0, graphs, -1))
    counts = np.where(ids >= 0, np.bincount(codes, minlength=len(ids)), 0)
    large = counts >= 0.5 * counts.max(initial=0)
    if not counts.any() or np.count_nonzero(large) < 3:
        return np.full(len(graphs), -1, np.int64), "none"
    opening = np.sort(first_rows(codes, len(ids))[large])
    return np.searchsorted(opening, np.arange(len(graphs)), side="right") - 1, "cuda_graph"


def _windows(case: Case, step: Ints) -> list[StepWindow]:
    first = first_rows(step, int(step.max(initial=-1)) + 1)
    first = first[first >= 0]
    if len(first) < 2:
        return []
    # Kernels are in order of start: the first one of a step starts first.
    begins = case.kernels["start_ns"].to_numpy(np.int64)[first].tolist()
    ends = [*begins[1:], int(case.activity.end_ns.max())]
    return [
        StepWindow(index, begin, end, 0) for index, (begin, end) in enumerate(zip(begins, ends, strict=True))
    ]


def _whole(case: Case) -> StepWindow:
    if not len(case.activity):
        return StepWindow(0, 0, 0, 0)
    return StepWindow(0, int(case.activity.start_ns.min()), int(case.activity.end_ns.max()), 0)
