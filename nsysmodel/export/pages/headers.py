"""The headers of rows as words, so that they can be compared at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysmodel.export.pages.cells import Cells
from nsysmodel.export.pages.database import PADDING, DeclinedError

if TYPE_CHECKING:
    import numpy as np

    from nsysmodel.export.pages.database import Words

_HIGH_BITS = 0x8080808080808080


def header_words(cells: Cells, depth: int) -> tuple[list[Words], bool]:
    """Headers as columns of words, zero behind the end of each.

    Args:
        cells: the rows.
        depth: bytes of a header that hold its own length and the types of all wanted columns, if each type
            is a single byte, as those of numbers are.

    Returns:
        The first `depth` bytes of each header and False; the whole headers and True where some header is
        shorter, or has a type of several bytes among the first.

    Raises:
        DeclinedError: a header is longer than 127 bytes or than its record.
    """
    import numpy as np

    length = cells.data[cells.start]
    longest, shortest = int(length.max()), int(length.min())
    too_long = longest > int(cells.local.min()) and (length > cells.local).any()
    if longest > PADDING - 33 or shortest < 1 or too_long:
        raise DeclinedError("a header is too long")
    if shortest >= depth:
        words = cells.words(0, "<u8", -(-depth // 8))
        words[-1] &= _mask(depth - 8 * (len(words) - 1))
        high = [np.bitwise_or.reduce(column) for column in words]
        if not (np.bitwise_or.reduce(high) & np.uint64(_HIGH_BITS)):
            return words, False
    words = cells.words(0, "<u8", -(-longest // 8))
    masks = np.array([_mask(i) for i in range(9)], dtype=np.uint64)
    for i in range(shortest // 8, len(words)):
        if shortest == longest:
            words[i] &= masks[min(longest - 8 * i, 8)]
        else:
            words[i] &= masks[np.clip(length.astype(np.int64) - 8 * i, 0, 8)]
    return words, True


def _mask(count: int) -> np.uint64:
    """A word in which the first `count` bytes are kept."""
    import numpy as np

    return np.uint64((1 << 8 * count) - 1)
