"""Launches split by duration, against a loop over sorted durations."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nsysmodel.join.durations import FEWEST, LEAST_SHARE, SEPARATE, SPLIT_FROM_NS, split_by_duration

NEAR = st.builds(int.__add__, st.sampled_from([0, 3000, 9000, 30_000]), st.integers(0, 900))


def clusters(durations: list[int]) -> list[list[int]]:
    """Durations in order, apart where the next one is much longer."""
    found: list[list[int]] = []
    for ns in sorted(durations):
        before = math.log(max(found[-1][-1], 1)) if found else 0.0
        if found and not (ns > SPLIT_FROM_NS and math.log(max(ns, 1)) - before > SEPARATE):
            found[-1].append(ns)
        else:
            found.append([ns])
    return found


def merged(durations: list[int]) -> list[list[int]]:
    """The same, small ones with the largest one."""
    found = clusters(durations)
    largest = max(range(len(found)), key=lambda at: (len(found[at]), at))
    result: dict[int, list[int]] = {}
    for at, some in enumerate(found):
        small = len(some) < max(FEWEST, LEAST_SHARE * len(durations))
        result.setdefault(largest if small else at, []).extend(some)
    return [sorted(result[at]) for at in sorted(result)]


@given(st.lists(st.tuples(st.integers(0, 2), NEAR), max_size=120))
def test_split_is_that_of_the_loop(rows: list[tuple[int, int]]) -> None:
    present = sorted({launch for launch, _ in rows})
    launch = np.array([present.index(launch) for launch, _ in rows], dtype=np.int64)
    duration = np.array([ns for _, ns in rows], dtype=np.int64)
    found = split_by_duration(launch, duration)
    expected = [group for at in range(len(present)) for group in merged(duration[launch == at].tolist())]
    assert [sorted(duration[found.identity == at].tolist()) for at in range(len(expected))] == expected
    assert found.count.tolist() == [len(group) for group in expected]
    assert found.median_ns.tolist() == [float(np.median(group)) for group in expected]
