"""Steps where no model says what a step is: engine markers, repeated graph launches, else one window."""

from __future__ import annotations

import numpy as np

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
    labels = Labels(
        step,
        np.full(count, -1, np.int64),
        np.full(count, -1, np.int64),
        np.zeros(count),
        np.zeros(count, np.int64),
        (),
    )
    return Join(labels, tuple(windows), method, 0)


def _numbers(case: Case) -> tuple[Ints, str]:
    """Step of each kernel, -1 outside, and how it was found."""
    work = case.work
    if len(work.markers) >= 2:
        return step_of_launches(list(work.markers), work.launch_start_ns), "nvtx"
    graphs = work.graph_launch
    ids, counts = np.unique(graphs[graphs >= 0], return_counts=True)
    if not len(ids):
        return np.full(len(graphs), -1, np.int64), "none"
    large = ids[counts >= 0.5 * counts.max()]
    if len(large) < 3:
        return np.full(len(graphs), -1, np.int64), "none"
    first = {int(i): int(np.flatnonzero(graphs == i)[0]) for i in large}
    opening = np.array(sorted(first.values()), np.int64)
    return np.searchsorted(opening, np.arange(len(graphs)), side="right") - 1, "cuda_graph"


def _windows(case: Case, step: Ints) -> list[StepWindow]:
    numbers = np.unique(step[step >= 0])
    if len(numbers) < 2:
        return []
    starts = case.kernels["start_ns"].to_numpy(np.int64)
    begins = [int(starts[step == number].min()) for number in numbers]
    ends = [*begins[1:], int(case.activity.end_ns.max())]
    return [
        StepWindow(index, begin, end, 0) for index, (begin, end) in enumerate(zip(begins, ends, strict=True))
    ]


def _whole(case: Case) -> StepWindow:
    if not len(case.activity):
        return StepWindow(0, 0, 0, 0)
    return StepWindow(0, int(case.activity.start_ns.min()), int(case.activity.end_ns.max()), 0)
