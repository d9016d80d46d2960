"""The cells of leaf pages: where each row's record lies, how long it is, and its rowid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from nsysmodel.export.pages.database import PADDING, Database, DeclinedError
from nsysmodel.export.pages.tree import LEAF, pointers

if TYPE_CHECKING:
    from nsysmodel.export.pages.database import Bytes, Ints


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
    length, at = varints(data, page * size + local_at, most=4)
    rowid, start = varints(data, at, most=9)
    if len(rowid) > 1 and not (rowid[1:] > rowid[:-1]).all():
        raise DeclinedError("rowids do not ascend")
    local = _local(length, database.usable)
    if len(start) and (start + local > page * size + database.usable).any():
        raise DeclinedError("a record reaches beyond its page")
    return Cells(data, start, length, local, rowid)


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
