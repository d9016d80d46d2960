"""A table as columns, block of pages by block of pages, on several threads."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from nsysmodel.export.pages.alike import Alike, UnlikeError
from nsysmodel.export.pages.cells import Cells, cells, counts
from nsysmodel.export.pages.column import Column
from nsysmodel.export.pages.database import Database, DeclinedError
from nsysmodel.export.pages.shapes import Layout, Shapes, shaped
from nsysmodel.export.pages.tree import leaves
from nsysmodel.export.pages.values import Place, decode
from nsysmodel.export.source import Kind, Rows

if TYPE_CHECKING:
    from nsysmodel.export.pages.database import Bytes, Ints

_BLOCK_BYTES = 1 << 21
"""About what a cache of a core holds: the pages of a block are visited once a column."""
_MOST_THREADS = 8
_NUMBER = ""
"""Among the columns of a block, which all have names, stands for the numbers of its rows."""

T = TypeVar("T")
Put = Callable[[int, int, Rows], None]
"""Called by a worker thread with the first row of a block, the row behind its last, and its columns."""
Progress = Callable[[int, int], None]
"""Called with the rows or pages that are done and their total."""


def read(
    database: Database, layout: Layout, want: Mapping[str, Kind], progress: Progress | None = None
) -> Rows:
    """Columns of a table, in order of rowid.

    Args:
        database: the file.
        layout: of the table.
        want: kind by name; each name is one of the layout's columns, in any case.
        progress: told of pages after each block.

    Raises:
        DeclinedError: something in the table is not understood.
    """
    reading = _Reading(database, layout, dict(want), leaves(database, layout.root), progress)
    room = reading.capacity()
    columns = {name: Column(room, kind) for name, kind in want.items()}

    def put(first: int, until: int, rows: Rows) -> None:
        for name, values in rows.items():
            columns[name].put(first, until, values)

    reading.run(room, put)
    return {name: column.whole(reading.rows) for name, column in columns.items()}


def mapped(
    database: Database,
    layout: Layout,
    want: Mapping[str, Kind],
    alike: tuple[str, ...],
    make: Callable[[Rows, Ints], T],
    progress: Progress | None = None,
) -> tuple[list[T], list[tuple[int, ...]]]:
    """What `make` makes of each block of rows, in order of rowid, on several threads.

    The columns of a block are dropped when it has been made into something: a table of millions of rows
    need not be in memory.

    Args:
        database, layout, want, progress: as in `read`.
        alike: columns of integers; rows with equal values in them get one number, from 0 on.
        make: called with the wanted columns of a block, and the number of each row.

    Returns:
        What `make` returned, and for each number the values of the columns in `alike`, NULL as in `read`.

    Raises:
        DeclinedError: as in `read`.
        UnlikeError: too many rows differ in `alike`, or it names something else than integers.
    """
    places = tuple(layout.columns[name.lower()] for name in alike)
    reading = _Reading(database, layout, dict(want), leaves(database, layout.root), progress, places)
    made: dict[int, T] = {}

    def put(first: int, until: int, rows: Rows) -> None:
        made[first] = make(rows, rows.pop(_NUMBER))

    reading.run(reading.capacity(), put)
    known = reading.alike.values if reading.alike is not None else []
    return [made[first] for first in sorted(made)], known


def count(database: Database, layout: Layout) -> int:
    """Rows of a table, from the heads of its leaf pages.

    Raises:
        DeclinedError: something in the table is not understood.
    """
    blocks = list(_blocks(database, leaves(database, layout.root)))

    def rows(block: Ints) -> int:
        return int(counts(database, database.read(block)).sum())

    threads = min(_threads(), len(blocks))
    if threads < 2:
        return sum(map(rows, blocks))
    with ThreadPoolExecutor(threads) as pool:
        return sum(pool.map(rows, blocks))


def _blocks(database: Database, pages: Ints) -> Iterator[Ints]:
    step = max(1, _BLOCK_BYTES // database.page_size)
    for first in range(0, len(pages), step):
        yield pages[first : first + step]


@dataclass(slots=True)
class _Reading:
    database: Database
    layout: Layout
    want: dict[str, Kind]
    pages: Ints
    progress: Progress | None
    numbered: tuple[int, ...] = ()
    alike: Alike | None = None
    rows: int = 0
    pages_done: int = 0
    stopped: bool = False
    bounds: list[tuple[int, int, int]] = field(default_factory=list)
    counted: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)
    turn: threading.Condition = field(default_factory=threading.Condition)

    def run(self, room: int, put: Put) -> None:
        """Hand all blocks to `put`, on several threads; raise where there are more than `room` rows."""
        wanted = tuple(self.layout.columns[name.lower()] for name in self.want)
        shapes = Shapes(self.layout, wanted + self.numbered)
        if self.numbered:
            if self.layout.rowid_alias in self.numbered:
                raise UnlikeError
            self.alike = Alike(self.numbered, shapes)
        blocks = list(_blocks(self.database, self.pages))
        source = iter(enumerate(blocks))
        threads = min(_threads(), len(blocks))

        def work() -> None:
            try:
                while (taken := self._next(source, room)) is not None:
                    first, data, count = taken
                    rows = cells(self.database, data, count, shapes.ahead)
                    self._block(rows, first, shapes, put)
                    self._done(len(count))
            except BaseException:  # whatever it is: the other threads must not read on
                with self.turn:
                    self.stopped = True
                    self.turn.notify_all()
                raise

        if threads < 2:
            work()
        else:
            with ThreadPoolExecutor(threads) as pool:
                for future in [pool.submit(work) for _ in range(threads)]:
                    future.result()
        self._check()

    def capacity(self) -> int:
        """No fewer rows than the table has: rowids ascend, and a page holds only so many cells."""
        if self.layout.first is None or self.layout.last is None:
            return 0
        cells_of_a_page = (self.database.usable - 8) // 6
        return min(self.layout.last - self.layout.first + 1, len(self.pages) * cells_of_a_page)

    def _next(self, source: Iterator[tuple[int, Ints]], room: int) -> tuple[int, Bytes, Ints] | None:
        """The next block, and the row that it begins at."""
        with self.turn:
            number, pages = next(source, (0, None))
        if pages is None:
            return None
        data = self.database.read(pages)
        count = counts(self.database, data)
        if not count.all() and len(self.pages) > 1:
            raise DeclinedError("a page is empty")
        with self.turn:
            # Threads read at the same time, but rows count on from one block to the next.
            self.turn.wait_for(lambda: self.stopped or self.counted == number)
            if self.stopped:
                return None
            first = self.rows
            self.rows += int(count.sum())
            self.counted += 1
            self.turn.notify_all()
        if self.rows > room:
            raise DeclinedError("there are more rows than rowids")
        return first, data, count

    def _block(self, rows: Cells, first: int, shapes: Shapes, put: Put) -> None:
        import numpy as np

        if not len(rows.start):
            return
        codes, numbers = shaped(rows, shapes)
        types = np.array([shapes.types[i] for i in numbers.tolist()], dtype=np.int64)
        offsets = np.array([shapes.offsets[i] for i in numbers.tolist()], dtype=np.int64)
        alias = self.layout.rowid_alias
        found: Rows = {}
        for i, (name, kind) in enumerate(self.want.items()):
            place = Place(rows, codes, types[:, i], offsets[:, i])
            found[name] = decode(place, kind, is_rowid=shapes.wanted[i] == alias)
        if self.alike is not None:
            found[_NUMBER] = self.alike.numbers(rows, codes, numbers)
        put(first, first + len(codes), found)
        with self.lock:
            self.bounds.append((first, *rows.ends))

    def _done(self, pages: int) -> None:
        with self.lock:
            self.pages_done += pages
            if self.progress is not None:
                self.progress(self.pages_done, len(self.pages))

    def _check(self) -> None:
        """Rowids ascend from block to block, from the first to the last that SQLite finds."""
        self.bounds.sort()
        ends = [last for _, _, last in self.bounds]
        starts = [first for _, first, _ in self.bounds]
        if any(start <= end for start, end in zip(starts[1:], ends, strict=False)):
            raise DeclinedError("rowids do not ascend")
        found = (starts[0], ends[-1]) if starts else (None, None)
        if found != (self.layout.first, self.layout.last):
            raise DeclinedError("the first or last row is not where SQLite finds it")


def _threads() -> int:
    return min(_MOST_THREADS, _processors())


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
