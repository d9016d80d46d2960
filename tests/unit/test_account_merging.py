"""Tables laid into one by time, against a sort of all rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsysmodel.account.merging import Merge

TABLE = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 4)), max_size=12)


@given(st.lists(TABLE, min_size=1, max_size=4), st.integers(0, 60), st.booleans())
def test_rows_are_those_of_a_sort(tables: list[list[tuple[int, int]]], more: int, by_start: bool) -> None:
    tables[0] = [*tables[0], *((at // 2, at % 3) for at in range(more))]
    if by_start:
        tables = [sorted(table) for table in tables]
    starts = [np.array([start for start, _ in table], dtype=np.int64) for table in tables]
    ends = [np.array([start + length for start, length in table], dtype=np.int64) for table in tables]
    start, end = np.concatenate(starts), np.concatenate(ends)
    order = np.lexsort((end, start))
    merged = Merge(starts, ends)
    assert merged.start.tolist() == start[order].tolist()
    assert merged.end.tolist() == end[order].tolist()
    numbers = np.split(np.arange(len(start)), np.cumsum([len(table) for table in tables[:-1]]))
    assert merged.of(numbers, np.int32).tolist() == order.tolist()
    assert merged.of(numbers, np.int32).dtype == np.int32


@pytest.mark.parametrize("values", [(5, 5), (5, 6)])
def test_one_value_stays_one_value(values: tuple[int, int]) -> None:
    times = [np.array([1, 3]), np.array([2])]
    parts = [np.broadcast_to(np.int64(value), len(part)) for value, part in zip(values, times, strict=True)]
    column = Merge(times, times).of(parts, np.int8)
    assert column.tolist() == [5, values[1], 5]
    assert column.dtype == np.int8
    assert (column.strides == (0,)) == (values[0] == values[1])
