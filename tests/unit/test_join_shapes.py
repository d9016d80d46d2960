"""Kernels by name and launch shape, against pandas; and how many of a name came before."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from nsysmodel.join.shapes import SHAPE, shapes_of
from nsysmodel.judge.uses import earlier_launches

KERNEL = st.tuples(st.sampled_from("abc"), *(st.integers(1, 2) for _ in SHAPE[1:]))


def frame_of(rows: list[tuple[Any, ...]]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=SHAPE).astype({"name": "category"})


@given(st.lists(KERNEL, min_size=1, max_size=40), st.lists(st.booleans(), min_size=40, max_size=40))
def test_shapes_are_groups_of_pandas(rows: list[tuple[Any, ...]], chosen: list[bool]) -> None:
    frame = frame_of(rows)
    found = shapes_of(frame)
    for taken in (np.arange(len(rows)), np.flatnonzero(chosen[: len(rows)])):
        code, examples = found.of(taken)
        part = frame.iloc[taken]
        expected = part.groupby(SHAPE, sort=False, observed=True).ngroup()
        assert code.tolist() == expected.tolist()
        assert examples.tolist() == taken[~part.duplicated(SHAPE).to_numpy()].tolist()


@given(st.lists(KERNEL, min_size=1, max_size=40), st.sets(st.integers(0, 39)))
def test_earlier_launches_are_those_of_the_same_name(rows: list[tuple[Any, ...]], asked: set[int]) -> None:
    frame = frame_of(rows)
    wanted = np.array([row for row in sorted(asked) if row < len(rows)], dtype=np.int64)
    found = earlier_launches(cast(Any, SimpleNamespace(kernels=frame)), wanted)
    names = [row[0] for row in rows]
    assert found == {row: names[:row].count(names[row]) for row in wanted.tolist()}
