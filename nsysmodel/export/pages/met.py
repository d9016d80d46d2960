"""Numbering rows of integers: a table that finds the number of a row met before, block after block."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from nsysmodel.export.pages.database import DeclinedError

if TYPE_CHECKING:
    from nsysmodel.export.pages.database import Ints, Words

_MIX = 0x9E3779B97F4A7C15
_SLOT_BITS = 12


class Met:
    """Different rows of words met so far, each with a place from 1 on.

    A hash leads to a slot, and the slot to the row that came there first. Every row is compared with the
    one that it leads to, so a hash decides nothing. Several threads may ask: slots and rows only grow.

    Args:
        width: words of a row.
        tell: called with the bytes of each new row, in order of their places; may refuse it by raising.
    """

    def __init__(self, width: int, tell: Callable[[bytes], object] = bytes) -> None:
        import numpy as np

        self._tell = tell
        self._lock = threading.Lock()
        self._known: dict[bytes, int] = {}
        self._keys: list[bytes] = []
        # Place 0 is where an empty slot leads.
        self._slots = np.zeros(1 << _SLOT_BITS, dtype=np.int64)
        self._rows = np.zeros((1, width), dtype=np.uint64)

    @property
    def rows(self) -> Words:
        """The rows in order of their places, without the one that stands for none."""
        return self._rows[1:]

    def places(self, columns: Sequence[Words]) -> Ints:
        """Place of each row of a block; of stride 0 where all rows are equal.

        Raises:
            DeclinedError: two different rows have one hash.
        """
        import numpy as np

        if all(column.strides == (0,) or bool((column == column[0]).all()) for column in columns):
            known = self._known.get(b"".join(column[:1].tobytes() for column in columns))
            one = self._learned([column[:1] for column in columns]) if known is None else np.int64(known)
            return np.broadcast_to(one, len(columns[0]))
        rows = self._rows
        place: Ints = self._slots[_hash(columns) >> np.uint64(64 - _SLOT_BITS)]
        if int(place.max()) >= len(rows):
            # Another thread has added what a slot leads to since the rows were looked up.
            place[place >= len(rows)] = 0
        strange = place == 0
        for i, column in enumerate(columns):
            strange |= rows[:, i][place] != column
        if strange.any():
            at = np.flatnonzero(strange)
            place[at] = self._learned([column[at] for column in columns])
        return place

    def _learned(self, columns: Sequence[Words]) -> Ints:
        """Places of rows, new ones added."""
        import numpy as np

        distinct, first, inverse = np.unique(_hash(columns), return_index=True, return_inverse=True)
        found = np.stack([column[first] for column in columns], axis=1)
        if any((found[:, i][inverse] != column).any() for i, column in enumerate(columns)):
            raise DeclinedError("rows differ that have one hash")
        slots = (distinct >> np.uint64(64 - _SLOT_BITS)).tolist()
        with self._lock:
            places = [self._place(row.tobytes(), slot) for row, slot in zip(found, slots, strict=True)]
            new = self._keys[len(self._rows) - 1 :]
            if new:
                added = np.frombuffer(b"".join(new), dtype=np.uint64).reshape(len(new), -1)
                self._rows = np.concatenate([self._rows, added])
        return np.array(places, dtype=np.int64)[inverse]

    def _place(self, key: bytes, slot: int) -> int:
        if key not in self._known:
            self._tell(key)
            self._keys.append(key)
            self._known[key] = len(self._keys)
            if self._slots[slot] == 0:
                self._slots[slot] = len(self._keys)
        return self._known[key]


def _hash(columns: Sequence[Words]) -> Words:
    import numpy as np

    mixed: Words = columns[0] * np.uint64(_MIX)
    for column in columns[1:]:
        mixed ^= mixed >> np.uint64(29)
        mixed += column
        mixed *= np.uint64(_MIX)
    return mixed
