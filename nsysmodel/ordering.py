"""Durations in order of group and length: counted where few differ, sorted otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nsysmodel.export.reader import Ints

_ROWS_A_BIN = 4
"""Durations are counted instead of sorted where there are as many rows for each one that is possible."""


def by_group(blocks: Sequence[tuple[Ints, Ints]], group: Ints, groups: int) -> Ints:
    """Durations in order of group and length.

    Args:
        blocks: of rows: the duration of each in ns, and its code.
        group: of each code, counted from 0.
        groups: how many there are.
    """
    import numpy as np

    bits = max(*(int(duration.max()) for duration, _ in blocks), 1).bit_length()
    if min(int(duration.min()) for duration, _ in blocks) < 0 or bits + groups.bit_length() > 62:
        duration, code = (np.concatenate(columns) for columns in zip(*blocks, strict=True))
        return duration[np.lexsort((duration, group[code]))]
    # Clocks of some devices tick every 32 ns, so that no duration has the lowest bits.
    some = int(np.bitwise_or.reduce([int(np.bitwise_or.reduce(duration)) for duration, _ in blocks]))
    unused = (some & -some).bit_length() - 1 if some else 0
    if groups << bits - unused <= sum(len(code) for _, code in blocks) // _ROWS_A_BIN:
        return _counted(blocks, group, groups, bits, unused)
    return _sorted(blocks, group, groups, bits)


def _counted(blocks: Sequence[tuple[Ints, Ints]], group: Ints, groups: int, bits: int, unused: int) -> Ints:
    """Durations in order where few differ: how often there is each, many times faster than sorting.

    Args:
        blocks, group, groups: as of `by_group`.
        bits: of the longest duration.
        unused: lowest bits that are 0 in all.
    """
    import numpy as np

    held = np.zeros(groups << bits - unused, dtype=np.int64)
    above = group << bits - unused
    for duration, code in blocks:
        np.add.at(held, above[code] | duration >> unused, 1)
    which = np.flatnonzero(held)
    length = (which << unused & (1 << bits) - 1).astype(np.uint32 if bits <= 32 else np.int64)
    return np.repeat(length, held[which])


def _sorted(blocks: Sequence[tuple[Ints, Ints]], group: Ints, groups: int, bits: int) -> Ints:
    """Durations in order; for `bits` see `_counted`."""
    import numpy as np

    # Group and duration in one number: sorting numbers is several times faster than sorting rows, and
    # sorting short ones faster still. Put together block by block: large arrays between would cost more
    # than the work on them, for the system clears all memory that it hands out.
    above = (group << bits).astype(np.uint32 if bits + groups.bit_length() <= 32 else np.int64)
    packed: Ints = np.empty(sum(len(code) for _, code in blocks), dtype=above.dtype)
    first = 0
    for duration, code in blocks:
        piece = packed[first : first + len(code)]
        np.take(above, code, out=piece, mode="clip")  # clipping nothing; other modes copy
        np.bitwise_or(piece, duration, out=piece, casting="unsafe")
        first += len(code)
    packed.sort()
    np.bitwise_and(packed, (1 << bits) - 1, out=packed)
    return packed
