"""Values of neighbouring kernels that are equal, taken together: steps and layers hold many kernels each.

A sequence of millions of kernels has thousands of steps; what is asked of each step is asked of its runs.
Numbers may be of any integer type, and -1 stands for none.
"""

from __future__ import annotations

import numpy as np

from nsysmodel.grouping import first_rows, openings
from nsysmodel.join.types import Bools, Codes, Ints


def present(codes: Codes, count: int) -> Bools:
    """Which codes below `count` have a row.

    >>> present(np.array([0, 0, 2, -1]), 4).tolist()
    [True, False, True, False]
    """
    return first_rows(codes, count) >= 0


def most(codes: Codes, values: Codes, count: int) -> Ints:
    """Largest value of the rows of each code; -1 for a code without rows or above -1.

    >>> most(np.array([0, 0, 2, -1]), np.array([3, 5, -1, 9]), 3).tolist()
    [5, -1, -1]
    """
    result = np.full(count, -1, np.int64)
    opening = openings(codes)
    if not len(opening):
        return result
    inside = codes[opening] >= 0
    highest = np.maximum.reduceat(values, opening).astype(np.int64)
    np.maximum.at(result, codes[opening][inside].astype(np.int64), highest[inside])
    return result


def narrow(values: Codes, high: int | None = None) -> Codes:
    """The same numbers, from -1 on, in the least type that holds them and the next one.

    Args:
        high: the largest number that must find room, where it is not among the values.

    >>> narrow(np.array([-1, 3])).dtype, narrow(np.array([127])).dtype, narrow(np.array([3]), 70_000).dtype
    (dtype('int8'), dtype('int16'), dtype('int32'))
    """
    high = max(int(values.max(initial=-1)), -1 if high is None else high)
    kinds = (np.int8, np.int16, np.int32, np.int64)
    return values.astype(next(kind for kind in kinds if high < np.iinfo(kind).max), copy=False)
