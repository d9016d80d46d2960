"""A column that fills up block by block, and takes no memory while all its values are one."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from nsysmodel.export.source import Kind

if TYPE_CHECKING:
    import numpy as np

    Values = np.ndarray[Any, np.dtype[Any]]

_SLACK = 1.2
"""Room for this many times the rows is kept rather than copied: untouched memory costs nothing."""


class Column:
    """A column in the making. Blocks may arrive in any order and from several threads."""

    def __init__(self, room: int, kind: Kind) -> None:
        import numpy as np

        self._dtype: type = {"int": np.int64, "real": np.float64, "text": object}[kind]
        self._room = room
        self._out: Values = np.empty(room if kind == "text" else 0, dtype=self._dtype)
        self._lock = threading.Lock()
        self._value: Any = None
        self._held: list[tuple[int, int]] = []
        self._varies = kind == "text"

    def put(self, first: int, until: int, values: Values) -> None:
        """The values of the rows from `first` to before `until`."""
        if not self._varies and self._one(first, until, values):
            return
        self._out[first:until] = values

    def _one(self, first: int, until: int, values: Values) -> bool:
        """Whether the block holds but the value of all blocks so far; the first other value ends that."""
        with self._lock:
            if self._varies:
                return False
            if not self._held:
                self._value = values[0]
            if values[-1] == self._value and bool((values == self._value).all()):
                self._held.append((first, until))
                return True
            # Not before: memory that was used before would count although nothing is written to it.
            self._out = self._empty()
            self._varies = True
            for start, stop in self._held:
                self._out[start:stop] = self._value
            return False

    def _empty(self) -> Values:
        import numpy as np

        return np.empty(self._room, dtype=self._dtype)

    def whole(self, rows: int) -> Values:
        """The column, of this many rows."""
        import numpy as np

        if not self._varies and rows:
            return np.broadcast_to(self._value, rows)
        found = self._out[:rows]
        return found if len(self._out) <= _SLACK * rows else found.copy()
