"""A SQLite file as numbered pages: a header that must be understood, and reads that stay inside the file."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    Bytes = np.ndarray[Any, np.dtype[np.uint8]]
    Ints = np.ndarray[Any, np.dtype[np.int64]]
    Words = np.ndarray[Any, np.dtype[np.uint64]]

MAGIC = b"SQLite format 3\x00"
PADDING = 160
"""Zeros after the pages of a block, so that a word may be read at any byte of them."""
_UTF8 = 1
_LOCK_BYTE = 1 << 30
_LEAST_USABLE = 480


class DeclinedError(Exception):
    """The pages hold something that this reader does not understand. SQLite itself must read the table."""


class Database:
    """The pages of a file.

    Pages are read, not mapped into memory: a file that is cut off while it is read must end in an error and
    not in a signal, and mapped pages would count as memory of the program.

    Raises:
        DeclinedError: the header is not one of a finished UTF-8 database with sound page sizes.
    """

    def __init__(self, path: Path) -> None:
        for suffix in ("-wal", "-journal"):
            side = path.with_name(path.name + suffix)
            if side.is_file() and side.stat().st_size:
                raise DeclinedError(f"there is content in {suffix}")
        self._lock = threading.Lock()
        self._stream = path.open("rb", buffering=0)
        try:
            self._understand(self._stream.read(100), path.stat().st_size)
        except BaseException:
            self._stream.close()
            raise

    def _understand(self, head: bytes, size: int) -> None:
        if len(head) < 100 or not head.startswith(MAGIC):
            raise DeclinedError("the header is not one of SQLite 3")
        stored = int.from_bytes(head[16:18], "big")
        self.page_size = 65536 if stored == 1 else stored
        if self.page_size < 512 or self.page_size & (self.page_size - 1):
            raise DeclinedError(f"pages have {stored} bytes")
        self.usable = self.page_size - head[20]
        if self.usable < _LEAST_USABLE:
            raise DeclinedError(f"only {self.usable} bytes of a page are in use")
        if head[18] not in (1, 2) or head[19] not in (1, 2) or head[21:24] != b"\x40\x20\x20":
            raise DeclinedError("the file format is unknown")
        if not 1 <= int.from_bytes(head[44:48], "big") <= 4:
            raise DeclinedError("the schema format is unknown")
        if int.from_bytes(head[56:60], "big") != _UTF8:
            raise DeclinedError("texts are not UTF-8")
        if size % self.page_size:
            raise DeclinedError("the last page is not whole")
        self.page_count = size // self.page_size
        self.lock_page = _LOCK_BYTE // self.page_size + 1

    def close(self) -> None:
        """Close the file."""
        self._stream.close()

    def read(self, numbers: Ints) -> Bytes:
        """Pages one behind the other in the order of `numbers` (which count from 1), then `PADDING` zeros.

        Raises:
            DeclinedError: a number is outside the file, or the file became shorter.
        """
        import numpy as np

        if len(numbers) and not (int(numbers.min()) > 1 and int(numbers.max()) <= self.page_count):
            raise DeclinedError("a page number is outside the file")
        size = self.page_size
        # Not zeroed as a whole: every byte but the padding is read from the file.
        data = np.empty(len(numbers) * size + PADDING, dtype=np.uint8)
        data[-PADDING:] = 0
        view = memoryview(data.data)
        breaks = np.flatnonzero(np.diff(numbers) != 1) + 1
        firsts = [0, *breaks.tolist()] if len(numbers) else []
        for first, last in zip(firsts, [*firsts[1:], len(numbers)], strict=True):
            self._fill(view[first * size : last * size], (int(numbers[first]) - 1) * size)
        return data

    def _fill(self, room: memoryview, at: int) -> None:
        while len(room):
            got = self._readinto(room, at)
            if not got:
                raise DeclinedError("the file became shorter")
            room, at = room[got:], at + got

    def _readinto(self, room: memoryview, at: int) -> int:
        """As many bytes of the file as one call of the system reads, by several threads at a time."""
        if hasattr(os, "preadv"):
            return os.preadv(self._stream.fileno(), [room], at)
        with self._lock:
            self._stream.seek(at)
            return self._stream.readinto(room) or 0
