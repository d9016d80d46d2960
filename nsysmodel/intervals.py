"""Interval algebra on integer nanoseconds, vectorised.

An interval is half open: it holds `start`, …, `end - 1`, so its length is `end - start` and one that starts
where another ends neither overlaps it nor leaves a gap. Zero-length (and reversed) intervals hold nothing.
Everything is int64 from end to end, and every function is O(n log n) in the number of intervals, however
many of them overlap.

A *set* below is a `Spans` that is sorted, disjoint and without touching neighbours, as `union` returns it.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nsysmodel.cutting import cut_set, is_set

Ints = NDArray[np.int64]


class Spans(NamedTuple):
    """Intervals as two arrays of equal length, in ns."""

    start: Ints
    end: Ints

    @property
    def length_ns(self) -> int:
        """Sum of the lengths: of a set, the time that it covers."""
        return int((self.end - self.start).sum())


class Pieces(NamedTuple):
    """Parts of intervals: `part_of` is the index of the interval, `within` that of what it was cut by."""

    start: Ints
    end: Ints
    part_of: Ints
    within: Ints

    @property
    def spans(self) -> Spans:
        """The pieces without their origin."""
        return Spans(self.start, self.end)


def spans(start: ArrayLike, end: ArrayLike) -> Spans:
    """Intervals from anything array-like; empty and reversed ones are left out.

    Raises:
        TypeError: the times are not integers (ns never pass through float).
        ValueError: the two differ in length.
    """
    starts, ends = _ints(start), _ints(end)
    if starts.shape != ends.shape or starts.ndim != 1:
        raise ValueError(f"starts and ends differ in shape: {starts.shape} and {ends.shape}")
    keep = ends > starts
    return Spans(starts, ends) if keep.all() else Spans(starts[keep], ends[keep])


def _ints(values: ArrayLike) -> Ints:
    array = np.asarray(values)
    if array.size == 0:
        return np.empty(0, dtype=np.int64)
    if array.dtype.kind not in "iu":
        raise TypeError(f"times are integers in ns, not {array.dtype}")
    return array.astype(np.int64, copy=False)


def union(start: ArrayLike, end: ArrayLike) -> Spans:
    """The set that intervals cover together.

    >>> union([0, 5, 20], [10, 12, 30])
    Spans(start=array([ 0, 20]), end=array([12, 30]))
    """
    starts, ends = spans(start, end)
    if starts.size == 0:
        return Spans(starts, ends)
    if not _ascends(starts):
        order = np.argsort(starts, kind="stable")
        starts, ends = starts[order], ends[order]
    if (starts[1:] > ends[:-1]).all():
        return Spans(starts, ends)
    reach = np.maximum.accumulate(ends)
    first = np.ones(starts.size, dtype=bool)
    first[1:] = starts[1:] > reach[:-1]
    last = np.append(first[1:], True)
    return Spans(starts[first], reach[last])


def _ascends(times: Ints) -> bool:
    return bool((times[1:] >= times[:-1]).all())


def _places(sorted_times: Ints, queries: Ints, side: Literal["left", "right"]) -> Ints:
    """`np.searchsorted`; for many queries in order of time in one pass over them."""
    if queries.size <= 4 * sorted_times.size or not _ascends(queries):
        return np.searchsorted(sorted_times, queries, side=side)
    # How many of the times lie before each query: each time counts from the first query behind it.
    first = np.searchsorted(queries, sorted_times, side="left" if side == "right" else "right")
    return np.cumsum(np.bincount(first, minlength=queries.size + 1)[: queries.size])


def union_length(start: ArrayLike, end: ArrayLike) -> int:
    """Time in which at least one interval is active.

    >>> union_length([0, 5, 20], [10, 12, 30])
    22
    """
    return union(start, end).length_ns


def intersect(left: Spans, right: Spans) -> Spans:
    """What two sets have in common, as a set."""
    pieces = clip(left, right)
    return union(pieces.start, pieces.end)


def subtract(left: Spans, right: Spans) -> Spans:
    """What of the first set is not in the second, as a set.

    >>> subtract(union([0], [10]), union([2, 6], [4, 7]))
    Spans(start=array([0, 4, 7]), end=array([ 2,  6, 10]))
    """
    if left.start.size == 0:
        return left
    return complement(right, left).spans


def complement(inside: Spans, windows: Spans) -> Pieces:
    """The gaps that a set leaves in each window: `within` is the window, `part_of` counts the gaps.

    Windows must be sorted and disjoint (they may touch: a gap never crosses a window's edge).

    >>> complement(union([2, 6], [4, 7]), spans([0, 7], [7, 9])).spans
    Spans(start=array([0, 4, 7]), end=array([2, 6, 9]))
    """
    check_windows(windows)
    cut = clip(inside, windows)
    count = windows.start.size
    # Each window's pieces in order, framed by its own edges: the gaps lie between neighbours.
    each = np.bincount(cut.within, minlength=count)
    after = np.cumsum(each)
    starts = np.insert(cut.end, after - each, windows.start)
    stops = np.insert(cut.start, after, windows.end)
    owner = np.repeat(np.arange(count, dtype=np.int64), each + 1)
    keep = stops > starts
    found = int(keep.sum())
    return Pieces(starts[keep], stops[keep], np.arange(found, dtype=np.int64), owner[keep])


def check_windows(windows: Spans) -> None:
    """Refuse windows that are reversed, unsorted or overlapping.

    Raises:
        ValueError: they are.
    """
    if (windows.end < windows.start).any() or (windows.start[1:] < windows.end[:-1]).any():
        raise ValueError("windows must be sorted and must not overlap")


def clip(intervals: Spans, windows: Spans) -> Pieces:
    """Every interval cut to every window that it touches; intervals may overlap, windows must not.

    >>> pieces = clip(spans([3, 4], [12, 5]), spans([0, 10], [10, 20]))
    >>> pieces.start, pieces.end
    (array([ 3, 10,  4]), array([10, 12,  5]))
    >>> pieces.part_of, pieces.within
    (array([0, 0, 1]), array([0, 1, 0]))
    """
    check_windows(windows)
    starts, ends = intervals
    if is_set(starts, ends):
        return Pieces(*cut_set(starts, ends, *windows))
    first = _places(windows.end, starts, "right")
    touched = _places(windows.start, ends, "left") - first
    touched[(ends <= starts) | (touched < 0)] = 0
    if touched.max(initial=0) <= 1:
        part_of = np.flatnonzero(touched)
        within = first[part_of].astype(np.int64)
    else:
        part_of = np.repeat(np.arange(starts.size, dtype=np.int64), touched)
        offset = np.arange(part_of.size, dtype=np.int64) - np.repeat(np.cumsum(touched) - touched, touched)
        within = first[part_of].astype(np.int64) + offset
    if not (touched == 1).all():
        starts, ends = starts[part_of], ends[part_of]
    low, high = np.maximum(starts, windows.start[within]), np.minimum(ends, windows.end[within])
    keep = high > low
    found = Pieces(low, high, part_of, within)
    return found if keep.all() else Pieces(*(column[keep] for column in found))


def covered(start: Ints, end: Ints, inside: Spans) -> Ints:
    """For each query interval, how much of it a set covers, in ns.

    >>> covered(np.array([0, 3]), np.array([10, 5]), union([2, 6], [4, 7]))
    array([3, 1])
    """
    if inside.start.size == 1:
        found: Ints = np.minimum(end, inside.end[0]) - np.maximum(start, inside.start[0])
        return np.maximum(found, 0)
    return _covered_before(end, inside) - _covered_before(np.minimum(start, end), inside)


def _covered_before(time: Ints, inside: Spans) -> Ints:
    """Time that a set covers before each given time."""
    lengths = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(inside.end - inside.start)])
    whole = _places(inside.start, time, "right")
    if inside.start.size == 0:
        return np.zeros(time.shape, dtype=np.int64)
    previous = np.maximum(whole - 1, 0)
    beyond = np.maximum(inside.end[previous] - np.maximum(time, inside.start[previous]), 0)
    return lengths[whole] - np.where(whole > 0, beyond, 0)


def union_by_group(start: ArrayLike, end: ArrayLike, group: ArrayLike) -> Pieces:
    """The set of each group; `part_of` is the group, ascending, and so is `within`."""
    starts, ends, groups = _ints(start), _ints(end), _ints(group)
    keep = ends > starts
    if not keep.all():
        starts, ends, groups = starts[keep], ends[keep], groups[keep]
    if starts.size == 0:
        return Pieces(starts, ends, groups, groups)
    labels, code = _coded(groups)
    low, high = int(starts.min()), int(ends.max())
    if (high - low + 1) * labels.size < _ROOM:
        apart = high - low + 1
        shift = code * apart - low
        merged = union(starts + shift, ends + shift)
        at = merged.start // apart
        back = low - at * apart
        owner = labels[at]
        return Pieces(merged.start + back, merged.end + back, owner, owner)
    # Ranks instead of times, so that laying the groups one behind the other cannot overflow.
    times, rank = np.unique(np.concatenate([starts, ends]), return_inverse=True)
    shift = code * (times.size + 1)
    merged = union(rank[: starts.size] + shift, rank[starts.size :] + shift)
    owner = labels[merged.start // (times.size + 1)]
    first = times[merged.start % (times.size + 1)]
    last = times[merged.end % (times.size + 1)]
    return Pieces(first, last, owner, owner)


_ROOM = 1 << 62


def _coded(groups: Ints) -> tuple[Ints, Ints]:
    """The groups, ascending, and the place among them of each given one."""
    if not _ascends(groups):
        labels, code = np.unique(groups, return_inverse=True)
        return labels, code.astype(np.int64)
    first = np.append(True, groups[1:] != groups[:-1])
    return groups[first], np.cumsum(first) - 1


def exclusive(start: ArrayLike, end: ArrayLike, group: ArrayLike, *, groups: int) -> Ints:
    """For each group 0 … `groups` - 1, the time in which only its own intervals are active.

    What a union would lose without the group; the values of all groups sum to at most the union.

    >>> exclusive([0, 5, 11], [10, 12, 20], [0, 1, 1], groups=2)
    array([ 5, 10])
    """
    total = np.zeros(groups, dtype=np.int64)
    starts, ends, owner = _ints(start), _ints(end), np.asarray(group)
    if not starts.size:
        return total
    if (starts[1:] < starts[:-1]).any():
        order = np.argsort(starts, kind="stable")
        starts, ends, owner = starts[order], ends[order], owner[order]
    shared = np.zeros(starts.size, dtype=bool)
    np.less(starts[1:], np.maximum.accumulate(ends)[:-1], out=shared[1:])
    # What reaches into a later interval also reaches into the next one. All others are alone.
    shared[:-1] |= shared[1:]
    np.add.at(total, owner, ends - starts)
    if shared.any():
        starts, ends, owner = starts[shared], ends[shared], owner[shared]
        np.subtract.at(total, owner, ends - starts)
        alone = exclusive_spans(starts, ends, owner)
        np.add.at(total, alone.part_of, alone.end - alone.start)
    return total


def exclusive_spans(start: ArrayLike, end: ArrayLike, group: ArrayLike) -> Pieces:
    """The intervals in which one group alone is active; `part_of` is the group."""
    sets = union_by_group(start, end, group)
    times, slot = np.unique(np.concatenate([sets.start, sets.end]), return_inverse=True)
    active = np.zeros(times.size, dtype=np.int64)
    label = np.zeros(times.size, dtype=np.int64)
    count = sets.start.size
    np.add.at(active, slot[:count], 1)
    np.subtract.at(active, slot[count:], 1)
    # Where exactly one group is active, the running sum of the labels is that group's own label.
    np.add.at(label, slot[:count], sets.part_of)
    np.subtract.at(label, slot[count:], sets.part_of)
    alone = np.cumsum(active)[:-1] == 1
    owner = np.cumsum(label)[:-1][alone]
    return Pieces(times[:-1][alone], times[1:][alone], owner, owner)
