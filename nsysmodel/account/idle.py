"""Where the device runs nothing, and what ran before and after, in one pass over the activities."""

from __future__ import annotations

import numpy as np

from nsysmodel.account.types import Activity, Bools, Rows, index_type
from nsysmodel.intervals import Ints, Spans

_LAST_NS = np.iinfo(np.int64).max


def idle(activity: Activity, windows: Spans) -> tuple[Spans, Rows, Rows]:
    """Whole gaps, from the earliest to the latest time that activity or windows reach.

    Returns:
        The gaps in order of time, ns; for each the row of what ended last before it, and the row of what
        started first after it (see `nsysmodel.account.causes.neighbours`), -1 for none.
    """
    start, end, rows = _not_empty(activity)
    if not start.size:
        return _without_activity(windows)
    reach, holder = _reach(end)
    apart = start[1:] > reach[:-1]
    before: Rows
    after: Rows
    if apart.all():
        number = np.arange(start.size, dtype=index_type(start.size))
        before, after = number[:-1], number[1:]
        low, high = reach[:-1], start[1:]
    else:
        at = np.flatnonzero(apart).astype(index_type(start.size))
        before, after = at if holder is None else holder[at], at + 1
        low, high = reach[at], start[at + 1]
    if windows.start.size and windows.start[0] < start[0]:
        low, high = np.append(windows.start[0], low), np.append(start[0], high)
        before, after = np.append(-1, before), np.append(0, after)
    if windows.end.size and windows.end[-1] > reach[-1]:
        low, high = np.append(low, reach[-1]), np.append(high, windows.end[-1])
        before, after = (
            np.append(before, start.size - 1 if holder is None else holder[-1]),
            np.append(after, -1),
        )
    after = _launched_first(activity, start, rows, after)
    if rows is not None:
        before, after = _rows_of(rows, before), _rows_of(rows, after)
    return Spans(low, high), before, after


def _not_empty(activity: Activity) -> tuple[Ints, Ints, Ints | None]:
    """Start and end of what takes time, and the rows of it; None for all rows."""
    taken: Bools = activity.end_ns > activity.start_ns
    if taken.all():
        return activity.start_ns, activity.end_ns, None
    rows = np.flatnonzero(taken)
    return activity.start_ns[rows], activity.end_ns[rows], rows


def _without_activity(windows: Spans) -> tuple[Spans, Rows, Rows]:
    none = np.full(min(windows.start.size, 1), -1, dtype=np.int64)
    found = Spans(windows.start[:1], windows.end[-1:])
    if found.length_ns <= 0:
        return Spans(none[:0], none[:0]), none[:0], none[:0]
    return found, none, none


def _reach(end: Ints) -> tuple[Ints, Rows | None]:
    """The latest end so far, and who reaches it, the last one of several; None where each one does."""
    if (end[1:] >= end[:-1]).all():
        return end, None
    reach = np.maximum.accumulate(end)
    number = np.arange(end.size, dtype=index_type(end.size))
    number[end != reach] = 0
    return reach, np.maximum.accumulate(number)


def _launched_first(activity: Activity, start: Ints, rows: Ints | None, after: Rows) -> Rows:
    """Of activities that start together the one that was launched first, an unknown launch last."""
    shared = np.append(start[1:] == start[:-1], False)
    if not shared.any():
        return after
    gaps = np.flatnonzero((after >= 0) & shared[after])
    first = after[gaps]
    count = np.searchsorted(start, start[first], side="right") - first
    place = np.repeat(np.arange(gaps.size), count)
    candidate = np.repeat(first - (np.cumsum(count) - count), count) + np.arange(place.size)
    launched = activity.launch_start_ns[candidate if rows is None else rows[candidate]]
    order = np.lexsort((np.where(launched == -1, _LAST_NS, launched), place))
    after = after.copy()
    after[gaps] = candidate[order[np.cumsum(count) - count]]
    return after


def _rows_of(rows: Ints, at: Rows) -> Rows:
    """Rows of the activity from places among those that take time; -1 stays -1."""
    return np.where(at >= 0, rows[at], -1)
