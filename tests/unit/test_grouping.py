"""Groups of rows and their ordered values, against pandas."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsysmodel import grouping
from nsysmodel.grouping import codes_of, first_rows, numbered, ordered

LARGE = st.one_of(st.integers(0, 3), st.integers(-(1 << 61), 1 << 61))


@given(st.lists(st.tuples(LARGE, LARGE, LARGE), max_size=40))
def test_codes_are_those_of_pandas(rows: list[tuple[int, int, int]]) -> None:
    columns = [np.array([row[at] for row in rows], dtype=np.int64) for at in range(3)]
    codes = codes_of(columns)
    frame = pd.DataFrame(dict(enumerate(columns)))
    assert codes.tolist() == frame.groupby([0, 1, 2], sort=False).ngroup().tolist()
    first = first_rows(codes, int(codes.max(initial=-1)) + 1)
    assert first.tolist() == np.flatnonzero(~frame.duplicated()).tolist()


@pytest.mark.parametrize("spread", [50, 60_000, 10_000_000])
@pytest.mark.parametrize("groups", [1, 3, 500])
def test_values_in_order_of_their_group(spread: int, groups: int) -> None:
    random = np.random.default_rng(spread + groups)
    codes = np.concatenate([np.arange(groups), random.integers(0, groups, 20_000) ** 2 // groups])
    values = random.integers(0, spread, len(codes)) + 200_000
    found = ordered(codes, values, groups)
    series = pd.Series(values).groupby(codes)
    assert found.size.tolist() == series.size().tolist()
    assert found.median().tolist() == series.median().tolist()
    order = np.lexsort((values, codes))
    assert found.values.tolist() == values[order].tolist()
    assert found.of(groups - 1).tolist() == np.sort(values[codes == groups - 1]).tolist()


@given(st.lists(st.one_of(st.integers(0, 5), st.integers(0, 1 << 40)), max_size=60), st.integers(1, 7))
def test_numbers_are_those_of_pandas(values: list[int], at_once: int) -> None:
    for kept in (values, [value for value in values if value < 1000]):
        column = np.array(kept, dtype=np.int64)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(grouping, "_AT_ONCE", at_once)
            codes, known = numbered(column, max(kept, default=0) + 1)
        expected, texts = pd.factorize(column)
        assert codes.tolist() == expected.tolist()
        assert known.tolist() == texts.tolist()
