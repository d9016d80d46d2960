"""Groups of rows by several columns of whole numbers, and the values of each group in order.

A table of millions of rows with few groups: columns are packed into one number a row, and what is asked of a
group is asked of the runs of its rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nsysmodel.ordering import by_group

Ints = NDArray[np.int64]

_ROOM = 1 << 62


def codes_of(columns: Sequence[NDArray[Any]]) -> Ints:
    """For each row the number of its combination of values, in the order in which they first occur.

    >>> codes_of([np.array([7, 7, 3, 7]), np.array([1, 2, 1, 1])])
    array([0, 1, 2, 0])
    """
    import pandas as pd

    rows = len(columns[0])
    packed, room = np.zeros(rows, dtype=np.int64), 1
    for values in columns:
        if not rows or values.strides == (0,):
            continue
        low = int(values.min())
        span = int(values.max()) - low + 1
        if span == 1:
            continue
        if room * span > _ROOM:
            codes, known = pd.factorize(packed)
            packed, room = codes.astype(np.int64), len(known)
        if room * span > _ROOM:
            codes, known = pd.factorize(values)
            values, low, span = codes, 0, len(known)
        packed *= span
        packed += values
        packed -= low
        room *= span
    return packed if room == 1 else numbered(packed, room)[0]


def numbered(values: NDArray[Any], room: int) -> tuple[Ints, Ints]:
    """What `pd.factorize` gives of whole numbers from 0 to below `room`: codes, and what they stand for.

    Where the numbers are small, a table of all of them is looked into, which is quicker than hashing.

    >>> numbered(np.array([7, 3, 7]), 8)
    (array([0, 1, 0]), array([7, 3]))
    """
    import pandas as pd

    if room > max(_TABLE, 2 * len(values)) or not len(values):
        codes, found = pd.factorize(values)
        return codes.astype(np.int64, copy=False), np.asarray(found, dtype=np.int64)
    table = np.full(room, -1, dtype=np.int32)
    codes = np.empty(len(values), dtype=np.int64)
    known: list[Ints] = []
    count = 0
    for low in range(0, len(values), _AT_ONCE):
        part = values[low : low + _AT_ONCE]
        own = table[part]
        if (own < 0).any():
            fresh = pd.unique(part[own < 0])
            table[fresh] = np.arange(count, count + len(fresh))
            count += len(fresh)
            known.append(np.asarray(fresh, dtype=np.int64))
            own = table[part]
        codes[low : low + _AT_ONCE] = own
    return codes, np.concatenate(known)


_TABLE = 1 << 20
"""A table of all numbers is used up to this many of them, or to two for each row."""
_AT_ONCE = 1 << 16
"""Rows that are looked up at once: what is made of them fits into a cache."""


def openings(*columns: NDArray[Any]) -> Ints:
    """Rows at which a column differs from the row before; the first row is one.

    >>> openings(np.array([4, 4, 4, 7]), np.array([0, 0, 1, 1])).tolist()
    [0, 2, 3]
    """
    new = np.ones(len(columns[0]), bool)
    new[1:] = False
    for column in columns:
        new[1:] |= column[1:] != column[:-1]
    return np.flatnonzero(new)


def first_rows(codes: NDArray[Any], count: int) -> Ints:
    """First row of each code below `count`; -1 for a code without rows.

    >>> first_rows(np.array([0, 0, 2, -1, 0]), 4).tolist()
    [0, -1, 2, -1]
    """
    return _rows_of(codes, count, last=False)


def last_rows(codes: NDArray[Any], count: int) -> Ints:
    """Last row of each code below `count`; -1 for a code without rows.

    >>> last_rows(np.array([0, 0, 2, -1, 0]), 4).tolist()
    [4, -1, 2, -1]
    """
    return _rows_of(codes, count, last=True)


def _rows_of(codes: NDArray[Any], count: int, *, last: bool) -> Ints:
    found = np.full(count, -1, np.int64)
    opening = openings(codes)
    if not len(opening):
        return found
    rows = np.append(opening[1:], len(codes)) - 1 if last else opening[::-1]
    known = rows[codes[rows] >= 0]
    # Of several rows of one code the last that is written stays.
    found[codes[known]] = known
    return found


@dataclass(frozen=True, slots=True)
class Ordered:
    """Values in groups, ascending within each.

    Attributes:
        values: those of group 0, then those of group 1, ….
        edges: where each group begins in `values`, and the end.
    """

    values: Ints
    edges: Ints

    def of(self, group: int) -> Ints:
        """The values of one group."""
        return self.values[self.edges[group] : self.edges[group + 1]]

    @property
    def size(self) -> Ints:
        """Rows of each group."""
        return np.diff(self.edges)

    def median(self) -> NDArray[np.float64]:
        """Median of each group, none of them empty: of an even number the mean of the middle two."""
        low, high = self.edges[:-1] + (self.size - 1) // 2, self.edges[:-1] + self.size // 2
        return np.asarray((self.values[low] + self.values[high]) / 2)


def ordered(codes: Ints, values: Ints, count: int) -> Ordered:
    """The values by group.

    Args:
        codes: group of each row, 0 … `count` - 1.
        values: what is ordered.
        count: number of groups.
    """
    edges = np.zeros(count + 1, dtype=np.int64)
    np.cumsum(np.bincount(codes, minlength=count), out=edges[1:])
    if not len(values):
        return Ordered(values, edges)
    return Ordered(by_group([(values, codes)], np.arange(count), count).astype(np.int64, copy=False), edges)
