"""Gaps, what ran before and after them, and their causes: the quick way against the obvious one."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from nsysmodel import intervals
from nsysmodel.account.causes import HostWaits, Neighbours, find_causes, neighbours
from nsysmodel.account.idle import idle
from nsysmodel.account.types import KERNEL, Activity
from nsysmodel.intervals import Ints, Spans
from nsysmodel.result import GAP_CAUSES

US = 1_000
row = st.tuples(st.integers(0, 60), st.integers(0, 12), st.integers(-1, 4))
span = st.tuples(st.integers(-10, 80), st.integers(0, 30), st.integers(1, 2))
window = st.lists(st.tuples(st.integers(-20, 40), st.integers(0, 60)), max_size=1)


def activity_of(rows: list[tuple[int, int, int]], scale: int = 1) -> Activity:
    """Activities from (start, length, start of the launch before it), -1 for no launch."""
    start, length, launch = (
        np.array(column, dtype=np.int64) for column in (zip(*sorted(rows), strict=True) if rows else [[]] * 3)
    )
    launched = np.where(launch < 0, -1, (start - 3 * launch + 500) * scale)
    none = np.full(start.size, -1, dtype=np.int64)
    return Activity(
        start_ns=(start + 500) * scale,
        end_ns=(start + length + 500) * scale,
        kind=np.full(start.size, KERNEL, dtype=np.int8),
        op=none.astype(np.int32),
        stream=none,
        correlation_id=none,
        name=np.zeros(start.size, dtype=np.int32),
        in_graph=np.zeros(start.size, dtype=np.bool_),
        launch_start_ns=launched,
        launch_end_ns=np.where(launch < 0, -1, launched + 2 * scale),
        launch_thread=np.where(launch < 0, -1, 1 + (start % 2)),
    )


def gaps_of(activity: Activity, windows: Spans) -> Spans:
    """Gaps as the complement of the union of all activities."""
    busy = intervals.union(activity.start_ns, activity.end_ns)
    edges = np.concatenate([busy.start[:1], windows.start[:1], busy.end[-1:], windows.end[-1:]])
    if not edges.size:
        return busy
    return intervals.complement(busy, Spans(edges.min(keepdims=True), edges.max(keepdims=True))).spans


@given(st.lists(row, max_size=14), window)
def test_gaps_and_their_neighbours(rows: list[tuple[int, int, int]], cut: list[tuple[int, int]]) -> None:
    activity = activity_of(rows)
    low, high = ([start + 500 for start, _ in cut], [start + length + 500 for start, length in cut])
    windows = Spans(np.array(low, dtype=np.int64), np.array(high, dtype=np.int64))
    gaps, before, after = idle(activity, windows)
    expected = gaps_of(activity, windows)
    assert gaps.start.tolist() == expected.start.tolist()
    assert gaps.end.tolist() == expected.end.tolist()
    around = neighbours(activity, expected)
    assert before.tolist() == around.before.tolist()
    assert after.tolist() == around.after.tolist()


def columns(spans: list[tuple[int, int, int]]) -> tuple[Ints, Ints, Ints]:
    found = np.array(spans, dtype=np.int64).reshape(-1, 3)
    start = (found[:, 0] + 500) * US
    return start, start + found[:, 1] * US, found[:, 2]


@given(st.lists(row, min_size=1, max_size=14), st.lists(span, max_size=3), st.lists(span, max_size=3))
def test_cause_of_a_gap_is_the_same_whatever_is_asked_beside_it(
    rows: list[tuple[int, int, int]], waits: list[tuple[int, int, int]], held: list[tuple[int, int, int]]
) -> None:
    """A wait and an overhead in every gap, too short to matter, make every gap one that is cut by sets."""
    activity = activity_of(rows, US)
    gaps = gaps_of(activity, Spans(np.zeros(0, np.int64), np.zeros(0, np.int64)))
    around = neighbours(activity, gaps)
    start, end, thread = columns(held)
    foreign = np.full(gaps.start.size, 1 << 40)
    overhead, everywhere = (
        pd.DataFrame({"start_ns": s, "end_ns": e, "global_tid": t})
        for s, e, t in (
            (start, end, thread),
            (np.append(start, gaps.start), np.append(end, gaps.start + 1), np.append(thread, foreign)),
        )
    )
    few = find_causes(activity, gaps, HostWaits(*columns(waits)), overhead, around)
    all_cut = find_causes(activity, gaps, HostWaits(*columns(waits)), everywhere, around)
    for name in ("start", "end", "gap", "cause"):
        assert getattr(few, name).tolist() == getattr(all_cut, name).tolist(), name
    length = np.zeros(gaps.start.size, dtype=np.int64)
    np.add.at(length, few.gap, few.end - few.start)
    assert length.tolist() == (gaps.end - gaps.start).tolist()
    assert set(few.cause.tolist()) <= set(range(len(GAP_CAUSES)))


def test_neighbours_are_found_where_they_are_not_given() -> None:
    activity = activity_of([(0, 5, 1), (9, 2, 1), (9, 4, 3)], US)
    gaps, before, after = idle(activity, Spans(np.zeros(0, np.int64), np.zeros(0, np.int64)))
    nothing = HostWaits(*(np.zeros(0, np.int64) for _ in dataclasses.fields(HostWaits)))
    overhead = pd.DataFrame({"start_ns": [], "end_ns": []}, dtype="int64")
    given_ = find_causes(activity, gaps, nothing, overhead, Neighbours(before, after))
    assert given_.cause.tolist() == find_causes(activity, gaps, nothing, overhead).cause.tolist()
    assert after.tolist() == [2]
