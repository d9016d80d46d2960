"""Steps where nothing marks them: the kernels repeat themselves, and each repetition is one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from nsysmodel.intervals import Ints
from nsysmodel.join.types import Join, StepWindow
from nsysmodel.join.windows import judge
from nsysmodel.judge.cases import Case
from nsysmodel.judge.plainsteps import plain_join

LEAST_REPETITIONS = 3
LEAST_AGREEMENT = 0.98
"""Share of kernels that must equal the one a period later."""
SLACK = 0.002
"""A shorter period is taken when it agrees nearly as well: twice a period is a period, too."""
LOOKED_AT = 50_000
"""Kernels from which the period is read."""


def unmarked_join(case: Case) -> tuple[Join, str]:
    """A join without ops, and what its windows are: `step`, `repetition` or `window`.

    Marked steps and graph launches come first; else the sequence of kernels is cut where it repeats itself;
    else all is one window. Warm-up, odd and open-ended windows are dropped as those of a model are.
    """
    join = plain_join(case)
    unit = "step"
    if join.method == "none":
        steps = repetitions(case)
        if not steps:
            return join, "window"
        number = np.searchsorted([s.start_ns for s in steps], _starts(case), side="right") - 1
        join, unit = replace(join, steps=steps, labels=replace(join.labels, step=number)), "repetition"
    return replace(join, steps=tuple(_judged(case, join))), unit


def repetitions(case: Case) -> tuple[StepWindow, ...]:
    """One window per repetition of the kernel sequence, prefix and rest included; empty without a period.

    The cuts are made at a kernel that runs once in a period; of those, before the one that the device waits
    longest for.
    """
    codes = _identities(case.kernels)
    period = find_period(codes)
    if period is None:
        return ()
    starts = _starts(case)
    ends = case.kernels["end_ns"].to_numpy(np.int64)
    waits = np.diff(starts, prepend=starts[0]) if len(starts) < 2 else np.concatenate(
        ([0], starts[1:] - np.maximum.accumulate(ends)[:-1])
    )  # fmt: skip
    expected = len(codes) / period
    best: tuple[float, int] | None = None
    for code, count in enumerate(np.bincount(codes).tolist()):
        if count >= LEAST_REPETITIONS and abs(count - expected) <= 1:
            wait = float(np.median(waits[codes == code]))
            if best is None or wait > best[0]:
                best = wait, code
    cuts = np.flatnonzero(codes == best[1]) if best else np.arange(0, len(codes), period)
    begins = starts[cuts].tolist()
    ends_of = [*begins[1:], int(case.activity.end_ns.max())]
    return tuple(StepWindow(i, b, e, 0) for i, (b, e) in enumerate(zip(begins, ends_of, strict=True)))


def find_period(codes: Ints) -> int | None:
    """The shortest period of a sequence, in elements; None where it does not repeat at least three times.

    >>> find_period(np.array([1, 2, 2, 1, 2, 2, 1, 2, 2, 1]))
    3
    >>> find_period(np.arange(50)) is None
    True
    """
    codes = codes[:LOOKED_AT]
    longest = len(codes) // LEAST_REPETITIONS
    if longest < 1:
        return None
    agreement = np.array([float((codes[p:] == codes[:-p]).mean()) for p in range(1, longest + 1)])
    best = float(agreement.max())
    if best < LEAST_AGREEMENT:
        return None
    return int(np.flatnonzero(agreement >= best - SLACK)[0]) + 1


def _identities(kernels: pd.DataFrame) -> Ints:
    """A number for each kernel: equal where name and grid are."""
    keys = [kernels["name"].astype("category").cat.codes, kernels["grid_x"], kernels["grid_y"]]
    frame = pd.DataFrame({str(k): np.asarray(key, np.int64) for k, key in enumerate(keys)})
    return np.asarray(frame.groupby(list(frame.columns), sort=False).ngroup(), np.int64)


def _starts(case: Case) -> Ints:
    starts: Ints = case.kernels["start_ns"].to_numpy(np.int64)
    return starts


def _judged(case: Case, join: Join) -> list[StepWindow]:
    starts, duration = _starts(case), case.kernels["duration_ns"].to_numpy(np.int64)
    begins = np.array([step.start_ns for step in join.steps], np.int64)
    place = np.searchsorted(begins, starts, side="right") - 1
    times = np.zeros(len(begins), np.int64)
    np.add.at(times, place[place >= 0], duration[place >= 0])
    return judge(join.steps, times, 0, [True] * len(join.steps))
