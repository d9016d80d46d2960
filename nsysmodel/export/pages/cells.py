"""The cells of leaf pages: where each row's record lies, how long it is, and its rowid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nsysmodel.export.pages.database import PADDING, Database, DeclinedError
from nsysmodel.export.pages.tree import LEAF, pointers

if TYPE_CHECKING:
    import numpy as np

    from nsysmodel.export.pages.database import Bytes, Ints, Words

_LONGEST_NEAR = PADDING - 56
"""Bytes from the start of a cell, which may be one of the last bytes of a page."""


@dataclass(frozen=True, slots=True)
class Near:
    """The first bytes of all cells of a block, copied side by side.

    Numpy takes as long to gather a word from each cell as to gather many bytes; from here on, a word that
    lies at one place in all cells is a column, and read several times faster.

    Attributes:
        raw: bytes of the cells, one cell behind the other.
        width: bytes of each cell.
        skipped: bytes in front of each record.
    """

    raw: Bytes
    width: int
    skipped: int

    def words(self, offset: int, dtype: str) -> np.ndarray[Any, Any] | None:
        """The eight bytes at this offset of each record; None where they are not held."""
        import numpy as np

        at = self.skipped + offset
        if not 0 <= at <= self.width - 8:
            return None
        rows = len(self.raw) // self.width
        found: np.ndarray[Any, Any] = np.ndarray(
            (rows,), dtype=dtype, buffer=self.raw, offset=at, strides=(self.width,)
        )
        return found


@dataclass(frozen=True, slots=True)
class Cells:
    """Rows of a block of pages, in order.

    Attributes:
        data: the pages, and padding.
        start: position in `data` of each record.
        size: bytes of each record.
        local: bytes of it that lie in the page; the rest is on overflow pages.
        keys: rowids, or words that end with the bytes of these; ascending within the block.
        key_bytes: how many bytes of each of these words; 0 where they are the rowids themselves.
        near: the first bytes of the rows; None where records start at different places of their cells.
    """

    data: Bytes
    start: Ints
    size: Ints
    local: Ints
    keys: Ints
    key_bytes: int = 0
    near: Near | None = None

    @property
    def rowid(self) -> Ints:
        """Rowid of each row."""
        return self._rowids(self.keys)

    @property
    def ends(self) -> tuple[int, int]:
        """The first and the last rowid."""
        first, last = self._rowids(self.keys[[0, -1]]).tolist()
        return first, last

    def _rowids(self, keys: Ints) -> Ints:
        return _cut(keys.view("u8"), self.key_bytes) if self.key_bytes else keys

    def words(self, offset: Any, dtype: str, count: int = 1) -> list[np.ndarray[Any, Any]]:
        """Words of eight bytes from an offset of each record on, as numbers in the order of the machine.

        Args:
            offset: one for all rows, or one for each.
            dtype: how the bytes are to be read.
            count: how many words, one column each.
        """
        import numpy as np

        native = np.dtype(dtype).newbyteorder("=")
        if self.near is not None and not np.ndim(offset):
            columns = [self.near.words(int(offset) + 8 * i, dtype) for i in range(count)]
            if columns[-1] is not None:
                return [column.astype(native) for column in columns if column is not None]
        width = 8 * count
        raw = np.ndarray((len(self.data) - width + 1,), dtype=f"V{width}", buffer=self.data, strides=(1,))
        words = raw[self.start + offset].view(dtype).reshape(-1, count)
        return [words[:, i].astype(native, copy=False) for i in range(count)]


def counts(database: Database, data: Bytes) -> Ints:
    """Rows of each leaf page of a block.

    Raises:
        DeclinedError: a page is no leaf of a table.
    """
    import numpy as np

    pages = data[:-PADDING].reshape(-1, database.page_size)
    if (pages[:, 0] != LEAF).any():
        raise DeclinedError("leaves lie at different depths")
    return pages[:, 3].astype(np.int64) << 8 | pages[:, 4]


def cells(database: Database, data: Bytes, count: Ints, ahead: int = 0) -> Cells:
    """The rows of a block of leaf pages.

    Args:
        database: the file.
        data: the pages.
        count: rows of each.
        ahead: bytes of each record that will be asked for, as far as is known.

    Raises:
        DeclinedError: a cell lies outside its page, or rowids do not ascend.
    """
    size = database.page_size
    local_at, page = pointers(data[:-PADDING].reshape(-1, size), count, 8, database.usable)
    at = page + local_at
    near: Near | None = None
    prefixes = _alike_prefixes(_gathered(data, at, ahead))
    if prefixes is None:
        length, behind = varints(data, at, most=4)
        keys, start = varints(data, behind, most=9)
        key_bytes = 0
    else:
        length, keys, key_bytes, near = prefixes
        start = at + near.skipped
    if len(keys) > 1 and not (keys[1:] > keys[:-1]).all():
        raise DeclinedError("rowids do not ascend")
    local = _local(length, database.usable)
    if len(start) and int((start - page + local).max()) > database.usable:
        raise DeclinedError("a record reaches beyond its page")
    return Cells(data, start, length, local, keys, key_bytes, near)


def _gathered(data: Bytes, at: Ints, ahead: int) -> Near:
    """The first bytes of the cells at these positions."""
    import numpy as np

    # A word for the numbers in front of the record, and one that begins at the last byte asked for.
    width = min(8 * (2 + -(-ahead // 8)), _LONGEST_NEAR)
    raw = np.ndarray((len(data) - width + 1,), dtype=f"V{width}", buffer=data, strides=(1,))[at]
    return Near(raw.view(np.uint8), width, 0)


def _alike_prefixes(near: Near) -> tuple[Ints, Ints, int, Near] | None:
    """Length of cells, words that end with the bytes of the rowids, and how many bytes these have.

    None where the two numbers do not have as many bytes in all cells, as they have in nearly all blocks.
    """
    import numpy as np

    column = near.words(0, ">u8")
    if column is None or not len(column):
        return None
    words = column.astype(np.uint64)
    first = int(words[0]).to_bytes(8, "big")
    ends = [i for i, byte in enumerate(first) if byte < 0x80]
    if len(ends) < 2 or ends[0] > 3:
        return None
    # The high bits of the two numbers' bytes tell whether another byte follows: they are those of the
    # first cell where no cell differs from another in them.
    high = int.from_bytes(b"\x80" * (ends[1] + 1) + bytes(7 - ends[1]), "big")
    if (int(np.bitwise_or.reduce(words)) ^ int(np.bitwise_and.reduce(words))) & high:
        return None
    length = _cut(words >> np.uint64(8 * (7 - ends[0])), ends[0] + 1)
    # Numbers of as many bytes are in the order of these bytes: hardly anyone asks for the numbers.
    words <<= np.uint64(8 * (ends[0] + 1))
    words >>= np.uint64(8 * (7 - ends[1] + ends[0] + 1))
    return length, words.view(np.int64), ends[1] - ends[0], Near(near.raw, near.width, ends[1] + 1)


def _cut(words: Words, size: int) -> Ints:
    """The integers in the last so many bytes of words, seven bits of each byte."""
    import numpy as np

    value = words & np.uint64(0x7F)
    for place in range(1, size):
        value |= words >> np.uint64(place) & np.uint64(0x7F << 7 * place)
    return value.view(np.int64)


def _local(length: Ints, usable: int) -> Ints:
    """Bytes of a record that are stored in the leaf: all, or what the file format leaves there."""
    import numpy as np

    most = usable - 35
    if not len(length) or int(length.max()) <= most:
        return length
    least = (usable - 12) * 32 // 255 - 23
    kept = least + (length - least) % (usable - 4)
    # Behind the part in the page stands the number of the overflow page.
    return np.where(length <= most, length, np.where(kept <= most, kept, least) + 4)


def varints(data: Bytes, at: Ints, *, most: int) -> tuple[Ints, Ints]:
    """Variable-length integers at the positions `at`, and the positions behind them.

    Seven bits a byte, the high bit set where another byte follows; a ninth byte has eight bits.

    Raises:
        DeclinedError: an integer has more than `most` bytes.
    """
    import numpy as np

    byte = data[at].astype(np.int64)
    value, at = byte & 0x7F, at + 1
    going = byte > 0x7F
    for place in range(2, most + 1):
        if not going.any():
            return value, at
        byte = data[at].astype(np.int64)
        longer = value << 8 | byte if place == 9 else value << 7 | (byte & 0x7F)
        if going.all():
            value, at = longer, at + 1
        else:
            value, at = np.where(going, longer, value), at + going
        going &= byte > 0x7F
    if most < 9 and going.any():
        raise DeclinedError("a record is longer than any sound one")
    return value, at
