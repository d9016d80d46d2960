"""The waterfall closes exactly, on any timeline, against a brute-force count of nanoseconds."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from account_cases import Case
from hypothesis import given
from hypothesis import strategies as st

from nsysmodel.account.types import COPY, GRAPH, KERNEL, MEMSET, Activity, Window
from nsysmodel.account.waterfall import waterfall

OPS = ("qkv_proj", "attention", "moe_down")


def activity_of(rows: list[tuple[int, int, int, int]]) -> Activity:
    """Activities from (start, length, kind, op)."""
    rows = sorted(rows)
    start, length, kind, op = (
        np.array(column, dtype=np.int64) for column in (zip(*rows, strict=True) if rows else [[]] * 4)
    )
    none = np.full(start.size, -1, dtype=np.int64)
    return Activity(
        start_ns=start,
        end_ns=start + length,
        kind=kind.astype(np.int8),
        op=op.astype(np.int32),
        stream=none,
        correlation_id=none,
        name=np.zeros(start.size, dtype=np.int32),
        in_graph=np.zeros(start.size, dtype=np.bool_),
        launch_start_ns=none,
        launch_end_ns=none,
        launch_thread=none,
    )


row = st.tuples(
    st.integers(-20, 100),
    st.integers(0, 30),
    st.sampled_from([KERNEL, COPY, MEMSET, GRAPH]),
    st.integers(-1, 2),
)


@st.composite
def window_lists(draw: st.DrawFn) -> list[Window]:
    edges = sorted(draw(st.lists(st.integers(-10, 120), min_size=2, max_size=7)))
    pairs = [pair for pair in pairwise(edges) if draw(st.booleans())] or [(edges[0], edges[-1])]
    return [Window(index, start, end) for index, (start, end) in enumerate(pairs)]


@given(
    st.lists(row, max_size=15),
    window_lists(),
    st.dictionaries(st.sampled_from(OPS), st.one_of(st.none(), st.integers(0, 10**15)), max_size=3),
)
def test_identity_closes_on_the_grid(
    rows: list[tuple[int, int, int, int]], windows: list[Window], floors: dict[str, int | None]
) -> None:
    found = waterfall(activity_of(rows), windows, OPS, floors)
    assert sum(part.total_ns for part in found.parts) == found.window_total_ns
    assert found.window_total_ns == sum(window.duration_ns for window in windows)
    for window, values in zip(windows, found.per_window, strict=True):
        assert sum(values) == window.duration_ns

    measured: Counter[str] = Counter()
    busy = set()
    for start, length, kind, op in rows:
        for window in windows:
            inside = range(max(start, window.start_ns), min(start + length, window.end_ns))
            busy |= set(inside)
            key = (
                OPS[op]
                if kind == KERNEL and op >= 0
                else {0: "unmodeled", 1: "copy", 2: "copy", 3: "unmodeled"}[kind]
            )
            measured[key] += len(inside)
    totals: Counter[str] = Counter()
    for part in found.parts:
        totals[part.op or part.kind] += part.total_ns
    for key in (*OPS, "unmodeled", "copy"):
        assert totals[key] == measured[key]
    assert found.busy_ns == len(busy)
    assert totals["gap"] == found.window_total_ns - len(busy)
    assert totals["overlap"] == len(busy) - sum(measured.values())
    for part in found.parts:
        if part.kind == "floor":
            assert part.total_ns == floors[part.op or ""]


def test_order_and_labels_of_the_parts() -> None:
    rows = [
        (0, 10, KERNEL, 0),
        (10, 50, KERNEL, 1),
        (60, 5, KERNEL, -1),
        (65, 5, COPY, -1),
        (70, 5, MEMSET, -1),
    ]
    rows += [(75, 5, GRAPH, -1), (75, 15, KERNEL, 2), (95, 5, KERNEL, 0)]
    floors = {"qkv_proj": 12, "attention": 20, "lm_head": 1000}
    found = waterfall(activity_of(rows), [Window(0, 0, 100)], OPS, floors)
    assert [(part.kind, part.label, part.total_ns) for part in found.parts] == [
        ("floor", "qkv_proj", 12),
        ("floor", "attention", 20),
        ("excess", "attention", 30),
        ("excess", "moe_down (floor not judged)", 15),
        ("excess", "qkv_proj", 3),
        ("unmodeled", "unmodeled kernels", 5),
        ("unmodeled", "CUDA graph traced as a whole", 5),
        ("copy", "copies", 5),
        ("copy", "memsets", 5),
        ("gap", "gaps of unknown cause", 5),
        ("overlap", "overlap of concurrent activities", -5),
    ]
    assert found.busy_ns == 95


def test_floor_is_spread_over_windows_by_what_started_there() -> None:
    rows = [(0, 10, KERNEL, 0), (20, 10, KERNEL, 0), (40, 10, KERNEL, 0)]
    windows = [Window(0, 0, 35), Window(1, 35, 60)]
    found = waterfall(activity_of(rows), windows, OPS, {"qkv_proj": 10})
    floors = [values[0] for values in found.per_window]
    assert floors == [6, 4]
    assert [part.total_ns for part in found.of_window(1)][:2] == [4, 6]


def test_median_window_and_no_windows() -> None:
    rows = [(0, 10, KERNEL, 0), (20, 10, KERNEL, 0), (50, 10, KERNEL, 0)]
    windows = [Window(3, 0, 20), Window(4, 20, 50), Window(5, 50, 60)]
    found = waterfall(activity_of(rows), windows, OPS, {"qkv_proj": 30})
    assert sum(part.total_ns for part in found.median()) == 20
    empty = waterfall(activity_of(rows), [], OPS, {})
    assert (empty.window_total_ns, empty.median()) == (0, ())


def test_gaps_by_cause_take_part() -> None:
    case = Case()
    case.kernel(0, 10_000, (-8_000, -4_000), op=0)
    case.kernel(50_000, 60_000, (44_000, 48_000), op=0)
    activity, _ = case.activity()
    gaps = case.gaps((0, 60_000))
    found = waterfall(activity, [Window(0, 0, 60_000)], OPS, {"qkv_proj": 15_000}, gaps)
    assert [(part.cause, part.total_ns) for part in found.parts if part.kind == "gap"] == [
        ("launch_starved", 40_000)
    ]
    with pytest.raises(ValueError, match="other windows"):
        waterfall(activity, [Window(0, 0, 61_000)], OPS, {}, gaps)


@given(st.lists(row, max_size=12), window_lists())
def test_gaps_of_any_timeline_close(rows: list[tuple[int, int, int, int]], windows: list[Window]) -> None:
    """Random kernels with random calls, waits and overheads: pieces sum to the idle time of each window."""
    case = Case()
    for start, length, kind, op in rows:
        if kind == KERNEL:
            case.kernel(start, start + length, (start - 7 * op, start - 3 * op + 2), op=op)
        elif kind == COPY:
            case.copy(start, start + length, (start - 5, start + length), name="cudaMemcpy")
        elif kind == MEMSET:
            case.sync(start, start + length)
        else:
            case.overhead(start, start + length)
    activity, _ = case.activity()
    gaps = case.gaps(*((window.start_ns, window.end_ns) for window in windows))
    found = waterfall(activity, windows, OPS, {"qkv_proj": 7}, gaps)
    assert sum(part.total_ns for part in found.parts) == found.window_total_ns
    assert sum(gaps.gaps.by_cause.values()) == found.window_total_ns - found.busy_ns
    assert (
        sum(bucket.total_ns for bucket in gaps.gaps.by_size.values()) == found.window_total_ns - found.busy_ns
    )
    assert int((gaps.frame["end_ns"] - gaps.frame["start_ns"]).sum()) == found.window_total_ns - found.busy_ns
