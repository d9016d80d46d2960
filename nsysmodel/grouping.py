"""Groups of rows by several columns of whole numbers, and the values of each group in order.

A table of millions of rows with few groups: columns are packed into one number a row, groups are laid side
by side by sorting 16-bit codes (which takes two passes), and each group is sorted by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

_ROOM = 1 << 62
_NARROW = 1 << 16


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


def first_rows(codes: Ints, count: int) -> Ints:
    """The first row of each code below `count`; -1 for a code without rows."""
    first = np.full(count, -1, dtype=np.int64)
    # Backwards: of equal codes the first one stays.
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    return first


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
    if count > 1:
        narrow = codes.astype(np.uint16) if count <= _NARROW else codes
        values = values[np.argsort(narrow, kind="stable")]
    else:
        values = values.copy()
    for low, high in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        _sort(values[low:high])
    return Ordered(values, edges)


def _sort(values: Ints) -> None:
    """Sort in place; numbers that lie close together are sorted as 16-bit ones, which is much quicker."""
    if values.size < _NARROW // 16:
        values.sort()
        return
    low = int(values.min())
    if int(values.max()) - low >= _NARROW:
        values.sort()
        return
    near = (values - low).astype(np.uint16)
    near.sort(kind="stable")
    np.add(near, np.int64(low), out=values, dtype=np.int64)
