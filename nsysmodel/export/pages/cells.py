"""The cells of leaf pages: where each row's record lies, how long it is, and its rowid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from nsysmodel.export.pages.database import PADDING, Database, DeclinedError
from nsysmodel.export.pages.tree import LEAF, pointers

if TYPE_CHECKING:
    from nsysmodel.export.pages.database import Bytes, Ints, Words


@dataclass(frozen=True, slots=True)
class Cells:
    """Rows of a block of pages, in order.

    Attributes:
        data: the pages, and padding.
        start: position in `data` of each record.
        size: bytes of each record.
        local: bytes of it that lie in the page; the rest is on overflow pages.
        rowid: ascending within the block.
    """

    data: Bytes
    start: Ints
    size: Ints
    local: Ints
    rowid: Ints


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


def cells(database: Database, data: Bytes, count: Ints) -> Cells:
    """The rows of a block of leaf pages.

    Raises:
        DeclinedError: a cell lies outside its page, or rowids do not ascend.
    """
    size = database.page_size
    local_at, page = pointers(data[:-PADDING].reshape(-1, size), count, 8, database.usable)
    length, rowid, start = _prefixes(data, page * size + local_at)
    if len(rowid) > 1 and not (rowid[1:] > rowid[:-1]).all():
        raise DeclinedError("rowids do not ascend")
    local = _local(length, database.usable)
    if len(start) and (start + local > page * size + database.usable).any():
        raise DeclinedError("a record reaches beyond its page")
    return Cells(data, start, length, local, rowid)


def _prefixes(data: Bytes, at: Ints) -> tuple[Ints, Ints, Ints]:
    """Length and rowid of the cells at these positions, and where their records start.

    Both numbers have as many bytes in nearly all cells of a block, so they are cut out of one word each.
    """
    import numpy as np

    if len(at):
        words = np.ndarray((len(data) - 7,), dtype=">u8", buffer=data, strides=(1,))[at].astype(np.uint64)
        first = int(words[0]).to_bytes(8, "big")
        ends = [i for i, byte in enumerate(first) if byte < 0x80]
        if len(ends) > 1 and ends[0] < 4:
            # The high bits of the two numbers' bytes, which tell whether another byte follows, are those of
            # the first cell where no cell differs from another in them.
            high = int.from_bytes(b"\x80" * (ends[1] + 1) + bytes(7 - ends[1]), "big")
            if not (int(np.bitwise_or.reduce(words)) ^ int(np.bitwise_and.reduce(words))) & high:
                length, rowid = _cut(words, 0, ends[0]), _cut(words, ends[0] + 1, ends[1])
                return length, rowid, at + (ends[1] + 1)
    length, behind = varints(data, at, most=4)
    return length, *varints(data, behind, most=9)


def _cut(words: Words, first: int, last: int) -> Ints:
    """The integer in the bytes from `first` to `last` of big-endian words, seven bits of each."""
    import numpy as np

    value = words >> np.uint64(8 * (7 - last)) & np.uint64(0x7F)
    for place in range(last - 1, first - 1, -1):
        shift = 8 * (7 - place) - 7 * (last - place)
        value |= words >> np.uint64(shift) & np.uint64(0x7F << 7 * (last - place))
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
