"""Gaps cut into pieces of one cause each, and what a gap's causes add up to."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from nsysmodel.intervals import Ints
from nsysmodel.result import GAP_CAUSES

SMALL_PIECE_NS: Final = 20_000
SMALL_PIECE_PARTS: Final = 4
"""A piece joins the largest one of its gap when it is at most this long and at most 1/4 of the gap."""


class CausePieces(NamedTuple):
    """Gaps cut into pieces, sorted by time; `gap` is the index of the gap, `cause` that in GAP_CAUSES."""

    start: Ints
    end: Ints
    gap: Ints
    cause: Ints


class Shares:
    """How much of each gap has which cause, looked up from the pieces, which are in order of their gaps."""

    def __init__(self, pieces: CausePieces, count: int) -> None:
        self._pieces = pieces
        self._edges = np.zeros(count + 1, dtype=np.int64)
        np.cumsum(np.bincount(pieces.gap, minlength=count), out=self._edges[1:])

    def cut(self) -> Ints:
        """The gaps of several pieces."""
        return np.flatnonzero(np.diff(self._edges) > 1)

    def pieces_of(self, gaps: Ints) -> tuple[Ints, Ints]:
        """The pieces of these gaps, and the place in `gaps` that each belongs to."""
        first, count = self._edges[gaps], self._edges[gaps + 1] - self._edges[gaps]
        place = np.repeat(np.arange(gaps.size, dtype=np.int64), count)
        return np.arange(place.size) - np.repeat(np.cumsum(count) - count - first, count), place

    def of(self, gaps: Ints) -> Ints:
        """Time by gap and cause."""
        rows, place = self.pieces_of(gaps)
        total = np.zeros(gaps.size * len(GAP_CAUSES), dtype=np.int64)
        length = (self._pieces.end - self._pieces.start)[rows]
        np.add.at(total, place * len(GAP_CAUSES) + self._pieces.cause[rows], length)
        return total.reshape(-1, len(GAP_CAUSES))

    def main(self) -> Ints:
        """The cause of most of each gap."""
        if not self._pieces.gap.size:
            return np.zeros(self._edges.size - 1, dtype=np.int64)
        first = self._pieces.cause[np.minimum(self._edges[:-1], self._pieces.gap.size - 1)]
        found = np.where(np.diff(self._edges) > 0, first, 0)
        cut = self.cut()
        found[cut] = self.of(cut).argmax(axis=1)
        return found


def join_small(pieces: CausePieces, count: int) -> CausePieces:
    """Small pieces take the cause of the largest share of their gap, and neighbours of one cause merge."""
    shares = Shares(pieces, count)
    cut = shares.cut()
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
    return CausePieces(
        pieces.start[first], pieces.end[last], pieces.gap[first], cause[first].astype(np.int64)
    )
