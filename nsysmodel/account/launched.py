"""Whether what ended a gap was launched in time. The rules are written down in `docs/account.md`."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from nsysmodel.account.types import Activity, Bools, Looked, Rows
from nsysmodel.export.reader import is_one
from nsysmodel.intervals import Ints, Spans

LONGEST_LATENCY_NS: Final = 20_000
"""From the launch call to the start on an idle device; what exceeds it waited for something else."""


class Launches(NamedTuple):
    """The launch of what ended each gap, judged: masks over gaps and the lag after the call."""

    start: Ints
    end: Ints
    thread: Ints
    starved: Bools
    blocked: Bools
    unknown: Bools
    late_ns: Ints
    """Time at which the launch should have taken effect; what follows it waited for something else."""

    def take(self, rows: Ints) -> Launches:
        """Those of some gaps."""
        times = self.start[rows], self.end[rows], self.thread[rows]
        return Launches(
            *times, self.starved[rows], self.blocked[rows], self.unknown[rows], self.late_ns[rows]
        )


def judge_launches(activity: Activity, gaps: Spans, after: Rows, inside: Bools) -> Launches:
    """Whether what ended each gap was launched in time."""
    row = after if not after.size or int(after.min()) >= 0 else np.maximum(after, 0)
    start, end, thread = (_at(activity, name, row) for name in _LAUNCH) if len(activity) else [after] * 3
    known = (after >= 0) & (start != -1)
    if not known.any():
        none, no = np.full(after.size, -1, dtype=np.int64), np.zeros(after.size, dtype=np.bool_)
        return Launches(none, none, none, no, no, ~known & ~inside, gaps.end)
    known &= start <= gaps.end
    blocking = activity.launch_blocks
    blocks = known & (start < gaps.start) & (False if blocking is None else blocking[row])
    del row
    judged = known & ~inside & ~blocks
    surely = np.flatnonzero(judged & (start >= gaps.start))
    # From call to start, where the device was idle all the while: the latency of a launch.
    latency = min(lower_median(gaps.end[surely] - start[surely]), LONGEST_LATENCY_NS)
    tail = lower_median(np.maximum(gaps.end[surely] - end[surely], 0))
    just_missed = (start > gaps.start - latency) & (gaps.end - start <= 2 * latency)
    starved = judged & ((end > gaps.start) | just_missed)
    late = _late(gaps, end, np.flatnonzero(starved), tail)
    return Launches(start, end, thread, starved, blocks & ~inside, ~known & ~inside, late)


def _late(gaps: Spans, end: Ints, starved: Ints, tail: int) -> Ints:
    """When the launches of the starved gaps should have taken effect; elsewhere the end of the gap."""
    patience = max(4 * tail, LONGEST_LATENCY_NS)
    late = starved[gaps.end[starved] - end[starved] > patience]
    if not late.size:
        return gaps.end
    found = gaps.end.copy()
    expected = end[late] + min(tail, LONGEST_LATENCY_NS)
    found[late] = np.clip(expected, gaps.start[late], gaps.end[late])
    return found


_LAUNCH = ("launch_start_ns", "launch_end_ns", "launch_thread")


def _at(activity: Activity, column: str, rows: Rows) -> Ints:
    """A column at these rows; one value for all rows stays one value."""
    values: Ints | Looked = getattr(activity, column)
    if not isinstance(values, Looked) and is_one(values):
        return np.broadcast_to(values[0], rows.size)
    return values[rows]


def lower_median(values: Ints) -> int:
    """Lower median; 0 of nothing."""
    middle = (values.size - 1) // 2
    return int(np.partition(values, middle)[middle]) if values.size else 0
