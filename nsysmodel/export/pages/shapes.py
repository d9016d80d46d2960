"""Record headers: rows with equal headers have each column at the same place, so a header is read once.

As SQLite itself does, a header is read no further than to the last column that is asked for.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from nsysmodel.export.pages.cells import Cells
from nsysmodel.export.pages.database import DeclinedError
from nsysmodel.export.pages.headers import header_words
from nsysmodel.export.pages.met import Met

if TYPE_CHECKING:
    from nsysmodel.export.pages.database import Ints, Words

NULL, REAL, BLOB = 0, 7, 12
"""Serial types of the file format. 1 to 6 are integers, 8 and 9 the numbers 0 and 1; from 12 on even ones
are blobs, odd ones texts."""
_INTEGER_SIZES = (0, 1, 2, 3, 4, 6, 8)
MOST_SHAPES = 20_000
"""Distinct headers of a table; sound exports have tens. Each one is parsed by itself."""


@dataclass(frozen=True, slots=True)
class Layout:
    """How rows of a table are stored.

    Attributes:
        root: page of the root of the table.
        columns: position in the record of each column, by its name in lower case.
        rowid_alias: position of the column that is the rowid itself; None without one.
        filled: positions of columns that rows written before them take from a default.
        first, last: rowids as SQLite finds them; None for a table without rows.
    """

    root: int
    columns: dict[str, int]
    rowid_alias: int | None
    filled: frozenset[int]
    first: int | None
    last: int | None


@dataclass(slots=True)
class Shapes:
    """The distinct headers of a table's rows, as far as they were met.

    Attributes:
        wanted: positions of the columns to read.
        size: bytes of the record, by shape; of no meaning where the header is not read to its end.
        reach: bytes of the record up to the end of the last wanted column, by shape.
        farthest: the longest of these.
        types, offsets: serial type and place in the record of each wanted column, by shape.
    """

    layout: Layout
    wanted: tuple[int, ...]
    size: list[int] = field(default_factory=list)
    reach: list[int] = field(default_factory=list)
    types: list[list[int]] = field(default_factory=list)
    offsets: list[list[int]] = field(default_factory=list)
    farthest: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)
    _met: dict[tuple[int, bool], tuple[Met, list[int]]] = field(default_factory=dict)

    @property
    def depth(self) -> int:
        """Bytes of a header up to the type of the last wanted column, where each type is one byte."""
        return 2 + max(self.wanted)

    @property
    def ahead(self) -> int:
        """Bytes of a record that are of use, as far as the shapes met so far tell."""
        return max(self.depth, self.farthest)

    def places(self, words: list[Words], whole: bool) -> tuple[Ints, list[int]]:
        """Place of each of these headers among those met, from 1 on, and the shape of each place.

        Args:
            words: columns of headers that are read to their end or to `depth`.
            whole: which of both.
        """
        width = len(words)
        with self.lock:
            if (width, whole) not in self._met:
                numbers = [0]
                tell = partial(self._tell, numbers, whole)
                self._met[width, whole] = Met(width, tell), numbers
            met, numbers = self._met[width, whole]
        return met.places(words), numbers

    def _tell(self, numbers: list[int], whole: bool, raw: bytes) -> None:
        numbers.append(self.add(raw[: raw[0] if whole else self.depth]))

    def add(self, header: bytes) -> int:
        """Number of the shape with this header, which may end behind the last wanted column.

        Raises:
            DeclinedError: the header is not one of this table.
        """
        with self.lock:
            if len(self.size) >= MOST_SHAPES:
                raise DeclinedError("rows have too many different headers")
            types, whole = _types(header), len(header) == header[0]
            if len(types) > len(self.layout.columns):
                raise DeclinedError("a row has more columns than its table")
            offset, offsets = header[0], []
            for kind in types:
                offsets.append(offset)
                offset += size_of(kind)
            missing = range(len(types), len(self.layout.columns)) if whole else ()
            if self.layout.filled.intersection(missing):
                raise DeclinedError("rows lack a column that has a default")
            # A column that was added later is NULL in the rows before it.
            types += [NULL] * len(missing)
            offsets += [0] * len(missing)
            self.types.append([types[i] for i in self.wanted])
            self.offsets.append([offsets[i] for i in self.wanted])
            ends = [offsets[i] + size_of(types[i]) for i in self.wanted]
            self.reach.append(max(header[0], *ends))
            self.farthest = max(self.farthest, self.reach[-1])
            self.size.append(offset if whole else 0)
            return len(self.size) - 1


def size_of(kind: int) -> int:
    """Bytes of a value of a serial type.

    >>> [size_of(kind) for kind in (0, 1, 5, 6, 7, 9, 12, 19)]
    [0, 1, 6, 8, 8, 0, 0, 3]
    """
    if kind >= BLOB:
        return (kind - BLOB) // 2
    return _INTEGER_SIZES[kind] if kind < REAL else 8 if kind == REAL else 0


def _types(header: bytes) -> list[int]:
    """Serial types of a header, whose first byte is its own length."""
    types, at = [], 1
    while at < len(header):
        value = 0
        for _ in range(9):
            if at >= len(header):
                raise DeclinedError("a header ends inside a type")
            byte = header[at]
            at += 1
            value = value << 7 | byte & 0x7F
            if byte < 0x80:
                break
        if value in (10, 11) or value > 1 << 40:
            raise DeclinedError("a value has an unknown type")
        types.append(value)
    return types


def shaped(cells: Cells, shapes: Shapes) -> tuple[Ints, Ints]:
    """Code of each row's shape within the block, and the shape of each code.

    Raises:
        DeclinedError: a header is longer than 127 bytes or does not fit its record.
    """
    import numpy as np

    words, whole = header_words(cells, shapes.depth)
    codes, numbers = _present(*shapes.places(words, whole))
    reach = np.array([shapes.reach[i] for i in numbers.tolist()], dtype=np.int64)
    sizes = np.array([shapes.size[i] for i in numbers.tolist()], dtype=np.int64)
    if whole and (cells.size != sizes[codes]).any():
        raise DeclinedError("a record is not as long as its header says")
    # Records with overflow pages are fine where no wanted column lies on one.
    held = cells.local
    if cells.local is not cells.size:
        held = np.where(cells.local == cells.size, cells.size, cells.local - 4)
    if int(reach.max()) > int(held.min()) and (reach[codes] > held).any():
        raise DeclinedError("a wanted column lies on overflow pages or beyond its record")
    return codes, numbers


def _present(place: Ints, numbers: list[int]) -> tuple[Ints, Ints]:
    """Places as codes of those that occur, and the number of each code."""
    import numpy as np

    if place.strides == (0,):
        return np.broadcast_to(np.int64(0), len(place)), np.array([numbers[int(place[0])]])
    seen = np.bincount(place)
    present = np.flatnonzero(seen)
    seen[present] = np.arange(len(present))
    return seen[place], np.array(numbers)[present]
