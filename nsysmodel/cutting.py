"""Sets cut to windows: both are in order of time, so what a window touches lies side by side.

What `nsysmodel.intervals.clip` does for any intervals, for a set in a few passes over it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


def is_set(start: Ints, end: Ints) -> bool:
    """Whether intervals are in order of time, none empty and none overlapping; they may touch."""
    return bool((end > start).all() and (start[1:] >= end[:-1]).all())


def cut_set(
    start: Ints, end: Ints, window_start: Ints, window_end: Ints, index: type[np.signedinteger] = np.int64
) -> tuple[Ints, Ints, Ints, Ints]:
    """Pieces of a set (as `is_set` tells) in sorted, disjoint windows.

    Returns start and end, ns, interval and window of each (numbers of the type `index`); the times may be
    views of what was given.
    """
    first = np.searchsorted(end, window_start, side="right")
    behind = np.searchsorted(start, window_end, side="left")
    held = np.where(window_end > window_start, np.maximum(behind - first, 0), 0)
    used = np.flatnonzero(held)
    first, behind, held = first[used], behind[used], held[used]
    within = np.repeat(used.astype(index), held)
    if (first[1:] == behind[:-1]).all() and used.size:
        low, high = int(first[0]), int(behind[-1])
        part_of = np.arange(low, high, dtype=index)
        start, end = start[low:high], end[low:high]
    else:
        part_of = np.repeat((first - (np.cumsum(held) - held)).astype(index), held)
        part_of += np.arange(within.size, dtype=index)
        start, end = start[part_of], end[part_of]
    # Only the first and the last interval of a window can reach beyond it.
    last = np.cumsum(held) - 1
    return (
        _changed(start, last + 1 - held, window_start[used], np.maximum),
        _changed(end, last, window_end[used], np.minimum),
        part_of,
        within,
    )


def _changed(times: Ints, rows: Ints, edge: Ints, limit: np.ufunc) -> Ints:
    """The times, limited at these rows; a copy where that changes any."""
    limited = limit(times[rows], edge)
    if (limited == times[rows]).all():
        return times
    times = times.copy()
    times[rows] = limited
    return times
