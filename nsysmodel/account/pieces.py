"""Gaps cut into pieces of one cause each, and what a gap's causes add up to."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nsysmodel.account.types import Rows, index_type
from nsysmodel.intervals import Ints, Pieces, Spans
from nsysmodel.result import GAP_CAUSES

Causes = NDArray[np.int8]
"""Indices into GAP_CAUSES."""

SMALL_PIECE_NS: Final = 20_000
SMALL_PIECE_PARTS: Final = 4
"""A piece joins the largest one of its gap when it is at most this long and at most 1/4 of the gap."""


class CausePieces(NamedTuple):
    """Gaps cut into pieces, sorted by time; `gap` is the index of the gap, `cause` that in GAP_CAUSES."""

    start: Ints
    end: Ints
    gap: Rows
    cause: Causes


class Shares:
    """How much of each gap has which cause, looked up from the pieces, which are in order of their gaps."""

    def __init__(self, pieces: CausePieces, count: int) -> None:
        self._pieces = pieces
        again = pieces.gap[1:] == pieces.gap[:-1]
        self.whole = pieces.gap.size == count and not again.any()
        """True where every gap is one piece."""
        self.cut = np.unique(pieces.gap[1:][again])
        """The gaps of several pieces."""
        self._count = count

    def pieces_of(self, gaps: Ints) -> tuple[Ints, Ints]:
        """The pieces of these gaps, and the place in `gaps` that each belongs to."""
        first = np.searchsorted(self._pieces.gap, gaps, side="left")
        count = np.searchsorted(self._pieces.gap, gaps, side="right") - first
        place = np.repeat(np.arange(gaps.size, dtype=np.int64), count)
        return np.arange(place.size) - np.repeat(np.cumsum(count) - count - first, count), place

    def length(self, gaps: Ints) -> Ints:
        """Length of these gaps in ns, where every gap is one piece."""
        return self._pieces.end[gaps] - self._pieces.start[gaps]

    def are_whole(self, parts: Pieces) -> bool:
        """Whether these parts of gaps, in order of time, are neighbouring whole gaps of one piece each."""
        if not self.whole or not parts.start.size:
            return False
        low = int(parts.part_of[0])
        rows = slice(low, low + parts.start.size)
        # Gaps are apart, so equal times are those of the same gap.
        return np.array_equal(self._pieces.start[rows], parts.start) and np.array_equal(
            self._pieces.end[rows], parts.end
        )

    def of(self, gaps: Ints) -> Ints:
        """Time by gap and cause, in ns."""
        rows, place = self.pieces_of(gaps)
        total = np.zeros(gaps.size * len(GAP_CAUSES), dtype=np.int64)
        length = self._pieces.end[rows] - self._pieces.start[rows]
        np.add.at(total, place * len(GAP_CAUSES) + self._pieces.cause[rows], length)
        return total.reshape(-1, len(GAP_CAUSES))

    def main(self) -> Causes:
        """The cause of most of each gap."""
        if self.whole:
            return self._pieces.cause
        found = np.zeros(self._count, dtype=np.int8)
        # Backwards: of several pieces the first one stays.
        found[self._pieces.gap[::-1]] = self._pieces.cause[::-1]
        found[self.cut] = self.of(self.cut).argmax(axis=1)
        return found


def whole_or_cut(gaps: Spans, cause: Causes, rows: Ints, cut: CausePieces) -> CausePieces:
    """Gaps of one cause each, but those of `rows` as they were cut.

    Args:
        gaps: all gaps, sorted and disjoint.
        cause: the cause of each that is not cut.
        rows: the gaps that are cut, ascending.
        cut: their pieces; `cut.gap` is a place in `rows`.
    """
    number: Rows = np.arange(gaps.start.size, dtype=index_type(gaps.start.size))
    if not rows.size:
        return CausePieces(gaps.start, gaps.end, number, cause)
    count = np.ones(gaps.start.size, dtype=np.int64)
    count[rows] = np.bincount(cut.gap, minlength=rows.size)
    gap = np.repeat(number, count)
    mixed = np.zeros(gaps.start.size, dtype=np.bool_)
    mixed[rows] = True
    at = np.flatnonzero(mixed[gap])
    start, end, causes = gaps.start[gap], gaps.end[gap], cause[gap]
    start[at], end[at], causes[at] = cut.start, cut.end, cut.cause
    return CausePieces(start, end, gap, causes)


def join_small(pieces: CausePieces, count: int) -> CausePieces:
    """Small pieces take the cause of the largest share of their gap, and neighbours of one cause merge."""
    shares = Shares(pieces, count)
    cut = shares.cut
    length = shares.of(cut)
    total = length.sum(axis=1, keepdims=True)
    small = (length <= SMALL_PIECE_NS) & (length * SMALL_PIECE_PARTS <= total)
    largest = length.argmax(axis=1)[:, np.newaxis]
    chosen = np.where(small, largest, np.arange(len(GAP_CAUSES)))
    rows, gap = shares.pieces_of(cut)
    cause = pieces.cause.copy()
    cause[rows] = chosen[gap, cause[rows]]
    first = np.ones(cause.size, dtype=bool)
    first[1:] = (pieces.gap[1:] != pieces.gap[:-1]) | (cause[1:] != cause[:-1])
    last = np.append(first[1:], True)[: cause.size]
    return CausePieces(pieces.start[first], pieces.end[last], pieces.gap[first], cause[first])
