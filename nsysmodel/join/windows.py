"""Where one step ends and the next begins, and which steps are judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from nsysmodel.join.types import Ints, StepWindow

WARM_UP = 1.03
"""A first step whose kernels take this much more time than the median of the others is a warm-up."""
OUTLIER = 1.25
"""A step is odd when its window differs from the median by this factor and by five deviations."""
REST = 0.1
"""Idle time, as a share of the last step, after which activity is no longer taken for its own."""
ENOUGH = 3
"""Steps that must remain before a complete last step is left out for having no successor."""


def boundaries(
    start_ns: Ints, end_ns: Ints, last_of: Sequence[int] | Ints, first_of: Sequence[int] | Ints
) -> list[int]:
    """The activity that opens each step after the first one.

    Between the last kernel that step i is known to own and the first that step i+1 owns there may be copies
    and kernels of neither. The step is cut at the longest idle gap among them; where the same number of
    activities lies between in most steps, all are cut at the place that most of them agree on.

    Args:
        start_ns, end_ns: all activities of the device by start.
        last_of: per boundary, row of the last activity owned by the step before it.
        first_of: per boundary, row of the first activity owned by the step after it.
    """
    firsts, lasts = np.asarray(first_of, np.int64), np.asarray(last_of, np.int64)
    if not len(firsts):
        return []
    busy_until = np.maximum.accumulate(end_ns)
    # Steps that overlap (a straggler beside the next one's start) are cut at the start of the next one.
    low = np.minimum(lasts + 1, firsts)
    count = firsts - low + 1
    begin = np.cumsum(count) - count
    candidates = np.arange(int(count.sum())) + np.repeat(low - begin, count)
    idle = start_ns[candidates] - busy_until[np.maximum(candidates - 1, 0)]
    longest = np.flatnonzero(idle == np.repeat(np.maximum.reduceat(idle, begin), count))
    offset = firsts - candidates[longest[np.searchsorted(longest, begin)]]
    result: list[int] = (firsts - _agreed(offset, firsts - lasts)).tolist()
    return result


def _agreed(offset: Ints, span: Ints) -> Ints:
    """The offset that most boundaries of the same span have, where most of them have one; else their own."""
    _, code = np.unique(span, return_inverse=True)
    pairs, number = np.unique(np.stack([code, offset], axis=1), axis=0, return_counts=True)
    usual = number * 2 > np.bincount(code)[pairs[:, 0]]
    common = np.full(int(code.max()) + 1, -1, np.int64)
    common[pairs[usual, 0]] = pairs[usual, 1]
    return np.where(common[code] >= 0, common[code], offset)


def last_end(start_ns: Ints, end_ns: Ints, first: int, last: int) -> int:
    """End of a step that no other one follows: activities count as its own until the device rests for long.

    Args:
        start_ns, end_ns: all activities of the device by start.
        first: row of the first activity that the step owns.
        last: row of the last one.
    """
    until = np.maximum.accumulate(end_ns[first:])
    longest = REST * (int(until[last - first]) - int(start_ns[first]))
    idle = start_ns[last + 1 :] - until[last - first : -1]
    far = np.flatnonzero(idle > longest)
    return int(until[last - first + int(far[0])] if len(far) else until[-1])


def judge(
    steps: Sequence[StepWindow], kernel_ns: Ints, layers: int, complete: Sequence[bool]
) -> list[StepWindow]:
    """Drop warm-up, partial, odd and open-ended steps, with the reason.

    Args:
        steps: all steps in order.
        kernel_ns: kernel time of each.
        layers: layers that a whole step has.
        complete: per step, whether every op that cannot be missing was found.
    """
    result = list(steps)
    for index, step in enumerate(result):
        if step.dropped is None and (step.layers != layers or not complete[index]):
            result[index] = replace(step, dropped="partial")
    _drop_warm_up(result, kernel_ns)
    _drop_odd(result)
    used = [index for index, step in enumerate(result) if step.dropped is None]
    if used and used[-1] == len(result) - 1 and len(used) > ENOUGH:
        result[used[-1]] = replace(result[used[-1]], dropped="open_end")
    return result


def _drop_warm_up(steps: list[StepWindow], kernel_ns: Ints) -> None:
    used = [index for index, step in enumerate(steps) if step.dropped is None]
    if len(used) < 3 or used[0] > 1:
        return
    others = float(np.median(kernel_ns[used[1:]]))
    if kernel_ns[used[0]] > WARM_UP * others:
        steps[used[0]] = replace(steps[used[0]], dropped="warm_up")


def _drop_odd(steps: list[StepWindow]) -> None:
    used = [index for index, step in enumerate(steps) if step.dropped is None]
    closed = [index for index in used if index != len(steps) - 1]
    if len(closed) < 4:
        return
    window = np.array([steps[index].end_ns - steps[index].start_ns for index in closed], float)
    median = float(np.median(window))
    deviation = 1.4826 * float(np.median(np.abs(window - median)))
    far = (np.abs(window - median) > 5 * deviation) & (
        (window > OUTLIER * median) | (window < median / OUTLIER)
    )
    if far.sum() * 3 > len(closed):
        return
    for index, odd in zip(closed, far, strict=True):
        if odd:
            steps[index] = replace(steps[index], dropped="outlier")
