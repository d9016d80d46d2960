"""Interval algebra against a brute-force grid of single nanoseconds."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsysmodel import intervals
from nsysmodel.intervals import Spans

GRID = 60

Pair = tuple[int, int]


@st.composite
def pairs(draw: st.DrawFn, most: int = 12, low: int = 0) -> list[Pair]:
    """Intervals on the grid: equal starts, zero lengths and full overlaps all occur."""
    raw = draw(st.lists(st.tuples(st.integers(low, GRID), st.integers(0, 20)), max_size=most))
    return [(start, min(start + length, GRID)) for start, length in raw]


@st.composite
def windows(draw: st.DrawFn) -> list[Pair]:
    """Sorted windows without overlap; touching ones and empty ones occur."""
    edges = sorted(draw(st.lists(st.integers(0, GRID), min_size=2, max_size=8)))
    kept = [pair for pair in pairwise(edges) if draw(st.booleans())]
    return kept or [(edges[0], edges[-1])]


def columns(found: list[Pair]) -> tuple[list[int], list[int]]:
    return [start for start, _ in found], [end for _, end in found]


def as_spans(found: list[Pair]) -> Spans:
    starts, ends = columns(found)
    return Spans(np.array(starts, dtype=np.int64), np.array(ends, dtype=np.int64))


def grid(found: list[Pair]) -> set[int]:
    return {ns for start, end in found for ns in range(start, end)}


def grid_of(found: Spans) -> set[int]:
    return grid(list(zip(found.start.tolist(), found.end.tolist(), strict=True)))


def assert_is_a_set(found: Spans) -> None:
    assert (found.end > found.start).all()
    assert (found.start[1:] > found.end[:-1]).all()
    assert found.start.dtype == found.end.dtype == np.int64


@given(pairs())
def test_union_covers_the_grid(found: list[Pair]) -> None:
    merged = intervals.union(*columns(found))
    assert_is_a_set(merged)
    assert grid_of(merged) == grid(found)
    assert intervals.union_length(*columns(found)) == len(grid(found))


@given(pairs(), pairs())
def test_subtract_and_intersect_on_the_grid(left: list[Pair], right: list[Pair]) -> None:
    first, second = intervals.union(*columns(left)), intervals.union(*columns(right))
    without, common = intervals.subtract(first, second), intervals.intersect(first, second)
    assert_is_a_set(common)
    assert grid_of(without) == grid(left) - grid(right)
    assert grid_of(common) == grid(left) & grid(right)
    assert without.length_ns + common.length_ns == first.length_ns


@given(pairs(), windows())
def test_clip_cuts_each_interval_to_each_window(found: list[Pair], cut: list[Pair]) -> None:
    pieces = intervals.clip(as_spans(found), as_spans(cut))
    expected = {
        (index, place): grid([interval]) & grid([window])
        for index, interval in enumerate(found)
        for place, window in enumerate(cut)
    }
    seen = {
        (index, place): set(range(start, end))
        for start, end, index, place in zip(*(column.tolist() for column in pieces), strict=True)
    }
    assert seen == {key: value for key, value in expected.items() if value}


@given(pairs(), windows())
def test_set_is_cut_as_intervals_are(found: list[Pair], cut: list[Pair]) -> None:
    whole = intervals.union(*columns(found))
    pieces = intervals.clip(whole, as_spans(cut))
    expected = [
        (max(start, low), min(end, high), index, place)
        for index, (start, end) in enumerate(zip(whole.start.tolist(), whole.end.tolist(), strict=True))
        for place, (low, high) in enumerate(cut)
        if max(start, low) < min(end, high)
    ]
    assert list(zip(*(column.tolist() for column in pieces), strict=True)) == expected


@given(pairs(), windows())
def test_complement_is_what_is_left_of_each_window(found: list[Pair], cut: list[Pair]) -> None:
    gaps = intervals.complement(intervals.union(*columns(found)), as_spans(cut))
    for place, window in enumerate(cut):
        mine = gaps.within == place
        inside = Spans(gaps.start[mine], gaps.end[mine])
        assert_is_a_set(inside)
        assert grid_of(inside) == grid([window]) - grid(found)


@given(pairs(), pairs(most=6))
def test_covered_counts_the_grid(found: list[Pair], queries: list[Pair]) -> None:
    asked = as_spans(queries)
    lengths = intervals.covered(asked.start, asked.end, intervals.union(*columns(found)))
    assert lengths.tolist() == [len(grid([query]) & grid(found)) for query in queries]


@given(pairs(), st.lists(st.integers(0, 3), min_size=12, max_size=12))
def test_exclusive_time_of_groups(found: list[Pair], labels: list[int]) -> None:
    groups = labels[: len(found)]
    alone = intervals.exclusive(*columns(found), groups, groups=4)
    for group in range(4):
        mine = grid([pair for pair, label in zip(found, groups, strict=True) if label == group])
        others = grid([pair for pair, label in zip(found, groups, strict=True) if label != group])
        assert alone[group] == len(mine - others)


@given(pairs(), st.lists(st.integers(0, 3), min_size=12, max_size=12))
def test_exclusive_time_where_nothing_overlaps(found: list[Pair], labels: list[int]) -> None:
    apart = intervals.union(*columns(found))
    groups = np.array(labels[: apart.start.size], dtype=np.int64)
    expected = np.zeros(4, dtype=np.int64)
    pieces = intervals.exclusive_spans(*apart, groups)
    np.add.at(expected, pieces.part_of, pieces.end - pieces.start)
    assert intervals.exclusive(*apart, groups, groups=4).tolist() == expected.tolist()


@given(pairs(), st.lists(st.integers(-2, 2), min_size=12, max_size=12))
def test_union_of_each_group(found: list[Pair], labels: list[int]) -> None:
    groups = labels[: len(found)]
    sets = intervals.union_by_group(*columns(found), groups)
    for group in range(-2, 3):
        mine = sets.part_of == group
        inside = Spans(sets.start[mine], sets.end[mine])
        assert_is_a_set(inside)
        assert grid_of(inside) == grid([p for p, label in zip(found, groups, strict=True) if label == group])


def test_thousands_of_streams_far_from_zero() -> None:
    """Normalised exports count from 1970: 1.7e18 ns leaves float far behind, and int64 without headroom."""
    origin = 1_700_000_000_000_000_001
    index = np.arange(5000, dtype=np.int64)
    start, end = origin + index, origin + index + 5000
    assert intervals.union_length(start, end) == 9999
    assert intervals.exclusive(start, end, index, groups=5000).sum() == 2
    sets = intervals.union_by_group(start, end, index)
    assert (sets.start == start).all()
    assert (sets.end == end).all()


def test_floats_are_refused() -> None:
    with pytest.raises(TypeError, match="integers in ns"):
        intervals.union([0.0], [1.5])


def test_overlapping_windows_are_refused() -> None:
    with pytest.raises(ValueError, match="must not overlap"):
        intervals.clip(as_spans([(0, 5)]), as_spans([(0, 4), (3, 6)]))
