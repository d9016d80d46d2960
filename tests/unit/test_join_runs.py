"""What is said of runs of equal numbers is what a look at each number says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsysmodel.grouping import first_rows, last_rows, openings
from nsysmodel.join.markers import Marker, step_of_launches
from nsysmodel.join.placing import _window_of
from nsysmodel.join.runs import most, narrow, present
from nsysmodel.join.windows import boundaries

CODES = st.lists(st.tuples(st.integers(-1, 4), st.integers(-1, 9)), max_size=40)


@given(CODES)
def test_runs_say_of_each_code_what_its_rows_say(pairs: list[tuple[int, int]]) -> None:
    codes, values = np.array(pairs, np.int16).reshape(-1, 2).T
    for code in range(5):
        rows = np.flatnonzero(codes == code)
        assert first_rows(codes, 5)[code] == (rows[0] if len(rows) else -1)
        assert last_rows(codes, 5)[code] == (rows[-1] if len(rows) else -1)
        assert present(codes, 5)[code] == bool(len(rows))
        assert most(codes, values, 5)[code] == values[rows].max(initial=-1)
    changes = [i for i in range(len(pairs)) if i == 0 or pairs[i] != pairs[i - 1]]
    assert openings(codes, values).tolist() == changes


@pytest.mark.parametrize(
    ("high", "kind"), [(126, "int8"), (127, "int16"), (32767, "int32"), (1 << 31, "int64")]
)
def test_narrow_leaves_room_for_the_next_number(high: int, kind: str) -> None:
    values = np.array([-1, high])
    assert narrow(values).dtype == kind
    assert narrow(values[:1], high).dtype == kind
    assert (narrow(values).astype(np.int64) + 1 == values + 1).all()


@given(st.lists(st.integers(0, 30), min_size=1, max_size=8), st.lists(st.integers(-2, 32), max_size=20))
def test_the_window_of_a_start_is_the_last_one_that_began(begins: list[int], starts: list[int]) -> None:
    starts = sorted(starts)
    found = _window_of(np.array(starts, np.int64), np.array(sorted(begins)), 31)
    for start, window in zip(starts, found.tolist(), strict=True):
        expected = sum(begin <= start for begin in begins) - 1
        assert window == (expected if start < 31 else -1)


@given(st.lists(st.integers(0, 30), min_size=1, max_size=6, unique=True), st.lists(st.integers(-1, 32)))
def test_launches_in_order_get_the_marker_that_any_order_gives(
    begins: list[int], launches: list[int]
) -> None:
    markers = [Marker(begin, begin + 1, 0, None, None, None, "") for begin in sorted(begins)]
    step = step_of_launches(markers, np.array(sorted(launches), np.int64))
    for launch, found in zip(sorted(launches), step.tolist(), strict=True):
        assert found == (sum(begin <= launch for begin in begins) - 1 if launch >= 0 else -1)


def _one_by_one(start: list[int], end: list[int], last_of: list[int], first_of: list[int]) -> list[int]:
    busy = np.maximum.accumulate(end)
    offsets = []
    for last, first in zip(last_of, first_of, strict=True):
        rows = range(min(last + 1, first), first + 1)
        offsets.append(first - max(rows, key=lambda row: (start[row] - busy[max(row - 1, 0)], -row)))
    spans = [first - last for last, first in zip(last_of, first_of, strict=True)]
    result = []
    for offset, first, span in zip(offsets, first_of, spans, strict=True):
        alike = [o for o, s in zip(offsets, spans, strict=True) if s == span]
        common = max(set(alike), key=alike.count)
        result.append(first - (common if alike.count(common) * 2 > len(alike) else offset))
    return result


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(1, 9)), min_size=12, max_size=40),
    st.lists(st.tuples(st.integers(-1, 4), st.integers(0, 4)), max_size=8),
)
def test_steps_are_cut_where_each_boundary_says(
    activity: list[tuple[int, int]], bounds: list[tuple[int, int]]
) -> None:
    start = np.cumsum([pause for pause, _ in activity])
    end = start + np.array([length for _, length in activity])
    first_of = [min(4 + 4 * i + more, len(start) - 1) for i, (_, more) in enumerate(bounds)]
    last_of = [first - back for first, (back, _) in zip(first_of, bounds, strict=True)]
    found = boundaries(start, end, last_of, first_of)
    assert found == _one_by_one(start.tolist(), end.tolist(), last_of, first_of)
