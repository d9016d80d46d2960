"""From paired series to rows: medians, intervals, noise, and what each row says."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from nsysmodel import units
from nsysmodel.comparison.result import Change, Measure, Thresholds
from nsysmodel.comparison.statistics import difference, holm, locate, noise_ns
from nsysmodel.intervals import Ints

Series = Sequence[Ints]
"""One series of steps for each run of a side; empty where the side lacks the part."""
LEAST_STEPS = 3
"""Steps of a side below which nothing is said to have changed."""


def measure(a: Series, b: Series, thresholds: Thresholds) -> Measure:
    """What two sides say of one part, before the correction for the number of rows looked at."""
    if not len(a) or not len(b):
        side = a or b
        value = locate(side).ns
        change: Change = "only_a" if len(a) else "only_b"
        return Measure(
            value if len(a) else None, None if len(a) else value, None, None, None, None, None, None,
            noise_ns([side]), 0.0, change, f"only in {'A' if len(a) else 'B'}",
        )  # fmt: skip
    one, other = locate(a), locate(b)
    found = difference(one, other, thresholds.confidence)
    known = math.isfinite(found.low_ns)
    return Measure(
        a_ns=one.ns,
        b_ns=other.ns,
        difference_ns=found.ns,
        change_ratio=found.ns / one.ns if one.ns else None,
        low_ns=found.low_ns if known else None,
        high_ns=found.high_ns if known else None,
        p=found.p if known else None,
        p_adjusted=None,
        noise_ns=noise_ns([a, b]),
        threshold_ns=max(thresholds.absolute_ns, thresholds.relative * abs(one.ns)),
        change="unchanged",
        reason=_untested(a, b, max(one.ns, other.ns), thresholds),
    )


def _untested(a: Series, b: Series, largest_ns: float, thresholds: Thresholds) -> str:
    """Why a part is not tested; empty where it is. What cannot reach the threshold costs no test."""
    if min(_steps(a), _steps(b)) < LEAST_STEPS:
        return "too few steps to tell"
    if largest_ns < thresholds.absolute_ns:
        return f"shorter than the threshold of {units.ns(thresholds.absolute_ns)}"
    return ""


def _steps(side: Series) -> int:
    return sum(len(run) for run in side)


def decided(measures: Sequence[Measure], thresholds: Thresholds) -> list[Measure]:
    """The same measures with their verdicts, adjusted for how many of them there are.

    A change must exceed both thresholds and the noise of the runs, and its adjusted probability must be
    below 1 - confidence.
    """
    tested = [k for k, m in enumerate(measures) if m.p is not None and not m.reason]
    adjusted = dict(zip(tested, holm([measures[k].p or 0.0 for k in tested]), strict=True))
    result = list(measures)
    for index, value in adjusted.items():
        change, reason = _verdict(measures[index], value, len(tested), 1 - thresholds.confidence)
        result[index] = replace(measures[index], p_adjusted=value, change=change, reason=reason)
    return result


def _verdict(measured: Measure, p: float, rows: int, alpha: float) -> tuple[Change, str]:
    size = abs(measured.difference_ns or 0.0)
    if size < measured.threshold_ns:
        return "unchanged", f"below the threshold of {units.ns(measured.threshold_ns)}"
    if size <= measured.noise_ns:
        return "unchanged", f"within the noise of the runs, {units.ns(measured.noise_ns)}"
    if p >= alpha:
        return "unchanged", f"may be chance: p = {p:.2g} among {rows} rows"
    times = size / measured.noise_ns if measured.noise_ns else math.inf
    shown = f"{times:.1f} times the noise" if times < 100 else "far above the noise"
    change: Change = "regressed" if (measured.difference_ns or 0.0) > 0 else "improved"
    return change, shown


@dataclass(frozen=True, slots=True)
class Means:
    """Mean per step of each row, in integers that add up to the mean window."""

    rows: tuple[int, ...]
    total: int


def means(rows: Sequence[Series], windows: Series) -> Means:
    """Totals of the rows over the number of steps, rounded so that nothing is lost.

    Row k is the growth of floor(cumulative total / steps): each is less than one ns off, and they sum to
    floor(total / steps) exactly.

    >>> import numpy as np
    >>> steps = [np.array([10, 11, 12])]
    >>> means([[np.array([3, 4, 4])], [np.array([7, 7, 8])]], steps)
    Means(rows=(3, 8), total=11)
    """
    steps = _steps(windows)
    if not steps:
        return Means((0,) * len(rows), 0)
    seen, values = 0, []
    for row in rows:
        before = seen // steps
        seen += sum(int(run.sum()) for run in row)
        values.append(seen // steps - before)
    return Means(tuple(values), sum(int(run.sum()) for run in windows) // steps)
