"""Record headers: rows with equal headers have each column at the same place, so a header is read once."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from nsysmodel.export.pages.cells import Cells
from nsysmodel.export.pages.database import PADDING, DeclinedError

if TYPE_CHECKING:
    import numpy as np

    from nsysmodel.export.pages.database import Ints

    Words = np.ndarray[Any, np.dtype[np.uint64]]

NULL, REAL, BLOB = 0, 7, 12
"""Serial types of the file format. 1 to 6 are integers, 8 and 9 the numbers 0 and 1; from 12 on even ones
are blobs, odd ones texts."""
_INTEGER_SIZES = (0, 1, 2, 3, 4, 6, 8)
_MIX = 0x9E3779B97F4A7C15
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
        size: bytes of the record, by shape.
        reach: bytes of the record up to the end of the last wanted column, by shape.
        types, offsets: serial type and place in the record of each wanted column, by shape.
    """

    layout: Layout
    wanted: tuple[int, ...]
    known: dict[bytes, int] = field(default_factory=dict)
    size: list[int] = field(default_factory=list)
    reach: list[int] = field(default_factory=list)
    types: list[list[int]] = field(default_factory=list)
    offsets: list[list[int]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, header: bytes) -> int:
        """Number of the shape with this header.

        Raises:
            DeclinedError: the header is not one of this table.
        """
        with self.lock:
            if header in self.known:
                return self.known[header]
            if len(self.known) >= MOST_SHAPES:
                raise DeclinedError("rows have too many different headers")
            types = _types(header)
            if len(types) > len(self.layout.columns):
                raise DeclinedError("a row has more columns than its table")
            offset, offsets = len(header), []
            for kind in types:
                offsets.append(offset)
                offset += size_of(kind)
            missing = range(len(types), len(self.layout.columns))
            if self.layout.filled.intersection(missing):
                raise DeclinedError("rows lack a column that has a default")
            # A column that was added later is NULL in the rows before it.
            types += [NULL] * len(missing)
            offsets += [0] * len(missing)
            self.types.append([types[i] for i in self.wanted])
            self.offsets.append([offsets[i] for i in self.wanted])
            ends = [offsets[i] + size_of(types[i]) for i in self.wanted]
            self.reach.append(max(len(header), *ends))
            self.size.append(offset)
            self.known[header] = len(self.known)
            return self.known[header]


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
    import pandas as pd

    length = cells.data[cells.start].astype(np.int64)
    if int(length.max()) > PADDING - 33 or int(length.min()) < 1 or (length > cells.local).any():
        raise DeclinedError("a header is too long")
    words = _words(cells, length)
    mixed = words[:, 0].copy()
    for i in range(1, words.shape[1]):
        mixed ^= mixed >> np.uint64(29)
        mixed *= np.uint64(_MIX)
        mixed += words[:, i]
    codes, uniques = pd.factorize(mixed)
    first = np.empty(len(uniques), dtype=np.int64)
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    # Equal hashes are not yet equal headers.
    if not (words[first][codes] == words).all():
        raise DeclinedError("headers differ that have one hash")
    data = cells.data
    headers = [
        data[at : at + size].tobytes()
        for at, size in zip(cells.start[first].tolist(), length[first].tolist(), strict=True)
    ]
    numbers = np.array([shapes.add(header) for header in headers], dtype=np.int64)
    sizes = np.array(shapes.size)[numbers]
    reach = np.array(shapes.reach)[numbers]
    whole = cells.size if cells.local is cells.size else np.where(cells.local == cells.size, cells.size, -1)
    if (whole != sizes[codes]).any():
        _check_long(cells, sizes[codes], reach[codes])
    return codes, numbers


def _check_long(cells: Cells, size: Ints, reach: Ints) -> None:
    """Records with overflow pages are fine where no wanted column lies on one."""
    long = cells.local != cells.size
    if (cells.size != size).any():
        raise DeclinedError("a record is not as long as its header says")
    if (reach[long] > cells.local[long] - 4).any():
        raise DeclinedError("a wanted column lies on overflow pages")


def _words(cells: Cells, length: Ints) -> Words:
    """Headers as rows of words, zero behind each header's end."""
    import numpy as np

    longest = int(length.max())
    width = -(-longest // 8)
    raw = np.ndarray(
        (len(cells.data) - 8 * width + 1,), dtype=f"V{8 * width}", buffer=cells.data, strides=(1,)
    )
    words = raw[cells.start].view("<u8").reshape(-1, width)
    masks = np.array([(1 << 8 * i) - 1 for i in range(9)], dtype=np.uint64)
    shortest = int(length.min())
    for i in range(shortest // 8, width):
        if shortest == longest:
            words[:, i] &= masks[min(longest - 8 * i, 8)]
        else:
            words[:, i] &= masks[np.clip(length - 8 * i, 0, 8)]
    return words
