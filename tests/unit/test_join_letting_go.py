"""Helpers that run before other ops of a step, against a loop over them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nsysmodel.join.placing import _let_go

UNCLAIMED = 9
ROW = st.tuples(st.booleans(), st.integers(-1, 2), st.integers(0, 3), st.integers(-1, 2), st.booleans())


def by_loop(table: np.ndarray, chain: Any, helps: np.ndarray) -> np.ndarray:
    """The columns step, layer, op and belief of each kernel afterwards."""
    result = table.copy()
    for row in np.flatnonzero(helps > np.arange(len(helps))).tolist():
        place = int((helps[:row] < 0).sum())
        following = next((at for at in range(place, len(chain.op)) if chain.op[at] >= 0), None)
        if following is not None and chain.step[following] < table[row, 0]:
            result[row] = chain.step[following], chain.layer[following], -1, UNCLAIMED
    return result


@given(st.lists(ROW, min_size=1, max_size=30), st.randoms())
def test_helpers_let_go_are_those_of_the_loop(rows: list[tuple[Any, ...]], random: Any) -> None:
    helps = np.array([random.randrange(len(rows)) if row[0] else -1 for row in rows])
    helps[helps == np.arange(len(rows))] = -1
    own = np.flatnonzero(helps < 0)
    op, step, layer = (np.array([row[at] for row in rows])[own] for at in (1, 2, 3))
    chain: Any = SimpleNamespace(op=op, step=step, layer=layer)
    table = np.array([[row[2], row[3], row[1], 0] for row in rows])
    columns = [table[:, at].copy() for at in range(4)]
    _let_go(*columns, cast(Any, chain), helps, UNCLAIMED)
    assert np.stack(columns, axis=1).tolist() == by_loop(table, chain, helps).tolist()
