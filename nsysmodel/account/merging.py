"""Tables in order of time laid into one: each row goes straight to its place among those of the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nsysmodel.export.reader import is_one
from nsysmodel.intervals import Ints

_FEW = 8
"""The rows of all other tables together are looked up in the first where it has this many times more."""


class Merge:
    """Rows of several tables by start, then end; of equal times those of the earlier table first.

    Attributes:
        start, end: times of all rows in that order, ns.
    """

    def __init__(self, starts: Sequence[Ints], ends: Sequence[Ints]) -> None:
        alone = sum(map(len, starts)) == len(starts[0])
        self._places = None if alone else _by_start(starts)
        self.start, self.end = self.of(starts), self.of(ends)
        if not ordered(self.start, self.end):
            del self.start, self.end
            order = np.lexsort((np.concatenate(ends), np.concatenate(starts)))
            self._places = _inverse(order, starts)
            self.start, self.end = self.of(starts), self.of(ends)

    def of(self, parts: Sequence[NDArray[Any]], kind: type[np.generic] = np.int64) -> NDArray[Any]:
        """One column of all tables in that order; one value for all rows stays one value."""
        filled = [part for part in parts if len(part)]
        count = sum(map(len, parts))
        if filled and all(is_one(part) and part[0] == filled[0][0] for part in filled):
            return np.broadcast_to(filled[0][:1].astype(kind)[0], count)
        if self._places is None:
            return parts[0].astype(kind, copy=False)
        result = np.empty(count, dtype=kind)
        for part, place in zip(parts, self._places, strict=True):
            result[place] = part
        return result


def ordered(start: Ints, end: Ints) -> bool:
    """Whether rows are in order of start, and those of equal starts in order of end."""
    later = start[1:] > start[:-1]
    if later.all():
        return True
    rows = np.flatnonzero(~later)
    return bool(((start[rows + 1] == start[rows]) & (end[rows + 1] >= end[rows])).all())


def _by_start(starts: Sequence[Ints]) -> list[Ints]:
    """Places of each table's rows in a stable order of all starts."""
    first, rest = starts[0], np.concatenate(starts[1:])
    if len(rest) * _FEW > len(first) or bool((first[1:] < first[:-1]).any()):
        return _inverse(np.argsort(np.concatenate(starts), kind="stable"), starts)
    order = np.argsort(rest, kind="stable")
    place = np.empty(len(rest), dtype=np.int64)
    place[order] = np.searchsorted(first, rest[order], side="right") + np.arange(len(rest))
    free = np.ones(len(first) + len(rest), dtype=bool)
    free[place] = False
    return [np.flatnonzero(free), *_split(place, starts[1:])]


def _inverse(order: Ints, tables: Sequence[Ints]) -> list[Ints]:
    """Places of each table's rows, from the rows in order."""
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    return _split(place, tables)


def _split(place: Ints, tables: Sequence[Ints]) -> list[Ints]:
    return np.split(place, np.cumsum([len(table) for table in tables[:-1]]))
