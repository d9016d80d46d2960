"""Values of neighbouring kernels that are equal, taken together: steps and layers hold many kernels each.

A sequence of millions of kernels has thousands of steps; what is asked of each step is asked of its runs.
Numbers may be of any integer type, and -1 stands for none.
"""

from __future__ import annotations

import numpy as np

from nsysmodel.join.types import Bools, Codes, Ints


def openings(*columns: Codes) -> Ints:
    """Rows at which a column differs from the row before; the first row is one.

    >>> openings(np.array([4, 4, 4, 7]), np.array([0, 0, 1, 1])).tolist()
    [0, 2, 3]
    """
    new = np.ones(len(columns[0]), bool)
    new[1:] = False
    for column in columns:
        new[1:] |= column[1:] != column[:-1]
    return np.flatnonzero(new)


def first_rows(codes: Codes, count: int) -> Ints:
    """First row of each code below `count`; -1 for a code without rows.

    >>> first_rows(np.array([0, 0, 2, -1, 0]), 4).tolist()
    [0, -1, 2, -1]
    """
    return _rows_of(codes, count, last=False)


def last_rows(codes: Codes, count: int) -> Ints:
    """Last row of each code below `count`; -1 for a code without rows.

    >>> last_rows(np.array([0, 0, 2, -1, 0]), 4).tolist()
    [4, -1, 2, -1]
    """
    return _rows_of(codes, count, last=True)


def _rows_of(codes: Codes, count: int, *, last: bool) -> Ints:
    found = np.full(count, -1, np.int64)
    opening = openings(codes)
    if not len(opening):
        return found
    rows = np.append(opening[1:], len(codes)) - 1 if last else opening[::-1]
    known = rows[codes[rows] >= 0]
    # Of several rows of one code the last that is written stays.
    found[codes[known]] = known
    return found


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
