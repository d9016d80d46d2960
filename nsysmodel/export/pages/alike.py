"""Rows numbered by what some integer columns hold, told from the bytes of these columns alone."""

from __future__ import annotations

import threading
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from nsysmodel.export.pages.cells import Cells
from nsysmodel.export.pages.met import Met
from nsysmodel.export.pages.shapes import BLOB, NULL, REAL, Shapes, size_of
from nsysmodel.export.pages.values import by_shape
from nsysmodel.export.source import NULL as NO_INTEGER

if TYPE_CHECKING:
    from nsysmodel.export.pages.database import Ints, Words

MOST = 20_000
"""Different rows; a table with more of them is not one whose rows are alike."""
_WIDEST = 12
"""Words of a run: fewer than are read behind the pages of a block."""
_CONSTANTS = {NULL: NO_INTEGER, 8: 0, 9: 1}
_MASKS = np.array([(1 << 8 * count) - 1 for count in range(9)], dtype=np.uint64)
"""Words in which the first so many bytes are kept."""


class UnlikeError(Exception):
    """Too many rows differ, or the columns are too many or hold something else than integers."""


class Alike:
    """Rows with equal values in some columns, numbered from 0 on in the order in which they are met.

    Rows of one shape have equal values where their bytes are equal, and columns that are neighbours lie side
    by side: so a row is told from others by its shape and a few words. One value may be stored in several
    ways; what these bytes stand for then tells that the rows are alike.

    Attributes:
        columns: positions in the table.
        values: what each number stands for, in the order of `columns`; `NO_INTEGER` for NULL.
    """

    def __init__(self, columns: tuple[int, ...], shapes: Shapes) -> None:
        self.columns = columns
        self.values: list[tuple[int, ...]] = []
        self._numbers: dict[tuple[int, ...], int] = {}
        self._told = 0
        self._shapes = shapes
        self._places = [shapes.wanted.index(column) for column in columns]
        self._met: dict[tuple[int | None, tuple[int, ...]], tuple[Met, list[int]]] = {}
        self._lock = threading.Lock()
        # Runs of neighbours: the difference of position and rank is the same in all of one.
        ordered = sorted(self._places, key=lambda place: shapes.wanted[place])
        runs = groupby(enumerate(ordered), key=lambda item: shapes.wanted[item[1]] - item[0])
        self._runs = [[place for _, place in run] for _, run in runs]

    def numbers(self, rows: Cells, codes: Ints, shapes: Ints) -> Ints:
        """Number of each row of a block.

        Args:
            rows: the block.
            codes: code of each row's shape, and `shapes` the shape of each code.
            shapes: see `codes`.
        """
        # In a block of one shape, which most are, the shape need not be compared row by row.
        shape = int(shapes[0]) if len(shapes) == 1 else None
        columns: list[Words] = [] if shape is not None else [shapes.astype(np.uint64)[codes]]
        widths = []
        for run in self._runs:
            begin, end = np.array([self._span(shape, run) for shape in shapes.tolist()], dtype=np.int64).T
            widths.append(-(-int((end - begin).max()) // 8))
            if widths[-1] > _WIDEST:
                raise UnlikeError
            words = rows.words(by_shape(begin, codes), "<u8", widths[-1]) if widths[-1] else []
            for i, column in enumerate(words):
                column &= by_shape(_MASKS[np.clip(end - begin - 8 * i, 0, 8)], codes)
            columns += words
        if not columns:
            columns = [np.broadcast_to(np.uint64(0), len(codes))]  # all are NULL or the numbers 0 and 1
        met, numbers = self._of(shape, tuple(widths))
        place = met.places(columns)
        return np.array(numbers, dtype=np.int64)[place]

    def _of(self, shape: int | None, widths: tuple[int, ...]) -> tuple[Met, list[int]]:
        """The rows met so far whose runs take so many words, and the number of each place.

        Args:
            shape: of all rows; None where a word tells that of each, in front of the others.
            widths: words of each run.
        """
        with self._lock:
            if (shape, widths) not in self._met:
                numbers = [-1]
                width = sum(widths) + 1 if shape is None else max(sum(widths), 1)
                self._met[shape, widths] = Met(width, partial(self._tell, shape, widths, numbers)), numbers
            return self._met[shape, widths]

    def _tell(self, shape: int | None, widths: tuple[int, ...], numbers: list[int], key: bytes) -> None:
        """Take up a row with the values that its bytes stand for."""
        at, found = 0, {}
        if shape is None:
            shape, at = int.from_bytes(key[:8], "little"), 8
        for run, width in zip(self._runs, widths, strict=True):
            begin, _ = self._span(shape, run)
            for place in run:
                kind = self._shapes.types[shape][place]
                first = at + self._shapes.offsets[shape][place] - begin
                found[place] = _value(kind, key[first : first + size_of(kind)])
            at += 8 * width
        values = tuple(found[place] for place in self._places)
        with self._lock:
            if self._told >= MOST:
                raise UnlikeError
            self._told += 1
            number = self._numbers.setdefault(values, len(self.values))
            if number == len(self.values):
                self.values.append(values)
            numbers.append(number)

    def _span(self, shape: int, run: list[int]) -> tuple[int, int]:
        """Where a run of columns begins and ends in a record; they lie one behind the other."""
        types, offsets = self._shapes.types[shape], self._shapes.offsets[shape]
        if any(types[place] == REAL or types[place] >= BLOB for place in run):
            raise UnlikeError
        return offsets[run[0]], offsets[run[0]] + sum(size_of(types[place]) for place in run)


def _value(kind: int, raw: bytes) -> int:
    return _CONSTANTS[kind] if kind in _CONSTANTS else int.from_bytes(raw, "big", signed=True)
