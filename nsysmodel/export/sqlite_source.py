"""Tables of a SQLite file that nobody vouches for: read-only, bounded in time and memory, never written."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from nsysmodel.errors import ExportError
from nsysmodel.export import pages
from nsysmodel.export.source import Kind, Rows
from nsysmodel.progress import counter

if TYPE_CHECKING:
    import numpy as np

    from nsysmodel.export.pages.database import Ints

T = TypeVar("T")
_LOG = logging.getLogger("nsysmodel")
_OPCODES_PER_TICK = 100_000
_CHUNK = 50_000
_LEAST_ROW_BYTES = 6
_SQLITE_LIMIT_LENGTH = 0
# -9223372036854775808 is no integer literal of SQLite, so it is computed.
_NULL_SQL = "-9223372036854775807 - 1"

DAMAGED = "Export it again: nsys export --type sqlite --force-overwrite true REPORT.nsys-rep"


class SqliteSource:
    """One SQLite database, opened read-only.

    Tables are decoded from their pages (`nsysmodel.export.pages`); what that does not understand, SQLite
    reads row by row.

    A damaged b-tree can loop or repeat rows without end; SQLite does not notice. So each query may run a
    number of steps, and return a number of rows, that a sound file of this size could not exceed.
    """

    def __init__(self, path: Path, shown: str, *, immutable: bool = True) -> None:
        self._shown = shown
        self.size = path.stat().st_size
        self.cut_off = self.size < _stated_size(path)
        flags = "mode=ro&immutable=1" if immutable else "mode=ro"
        self._budget = 0
        self._columns: dict[str, tuple[str, ...]] = {}
        self._whole: set[tuple[str, str]] = set()
        self._rows_of: dict[str, int] = {}
        self._path = path
        self._pages: pages.Database | None = None
        with self._guard("cannot be opened"):
            self._connection = sqlite3.connect(
                f"{path.resolve().as_uri()}?{flags}", uri=True, isolation_level=None, check_same_thread=False
            )
        try:
            self._prepare()
            self._names = self._read_names()
        except BaseException:
            self._connection.close()
            raise

    def _prepare(self) -> None:
        connection = self._connection
        connection.text_factory = _decode
        connection.set_progress_handler(self._tick, _OPCODES_PER_TICK)
        if hasattr(connection, "setlimit"):
            connection.setlimit(_SQLITE_LIMIT_LENGTH, max(self.size, 1_000_000))
        with self._guard("cannot be opened"):
            for pragma in ("query_only=ON", "trusted_schema=OFF", "cell_size_check=ON"):
                connection.execute(f"PRAGMA {pragma}")

    def _read_names(self) -> dict[str, str]:
        sql = "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
        with self._guard("is damaged"):
            rows = list(islice(self._connection.execute(sql), 10_000))
        return {str(name).upper(): str(name) for (name,) in rows}

    def _tick(self) -> int:
        self._budget -= _OPCODES_PER_TICK
        return self._budget < 0

    @contextmanager
    def _guard(self, what: str) -> Iterator[None]:
        """Turn every error of SQLite into one sentence of ours; give a query its budget of steps."""
        self._budget = 50 * self.size + 20_000_000
        try:
            yield
        except (sqlite3.Error, sqlite3.Warning, OverflowError, MemoryError, UnicodeError) as error:
            raise ExportError(f"{self._shown} {what}: {_reason(error)}.", DAMAGED) from error

    def tables(self) -> tuple[str, ...]:
        """Names of the tables as the file spells them."""
        return tuple(self._names.values())

    def columns(self, table: str) -> tuple[str, ...]:
        """Column names of a table as the file spells them; empty for a table that is absent."""
        name = self._names.get(table.upper())
        if name is None:
            return ()
        if name not in self._columns:
            with self._guard(f"is damaged in {table}"):
                rows = self._connection.execute(f"PRAGMA table_info({_quote(name)})").fetchall()
            self._columns[name] = tuple(str(row[1]) for row in rows)
            self._whole |= {
                (name, str(row[1])) for row in rows if row[3] and str(row[2]).upper() == "INTEGER"
            }
        return self._columns[name]

    def count(self, table: str) -> int:
        """Rows of a table; 0 for a table that is absent."""
        name = self._names.get(table.upper())
        if name is None:
            return 0
        if name not in self._rows_of:
            counted = self._decoded(name, lambda database, layout: pages.count(database, layout))
            self._rows_of[name] = self._stepped(table, name) if counted is None else counted
        return self._rows_of[name]

    def _stepped(self, table: str, name: str) -> int:
        """Rows of a table as SQLite steps over them."""
        # A plain count(*) is one step of SQLite however many pages it visits, so no budget would end it.
        sql = f"SELECT count(*) FROM (SELECT 1 FROM {_quote(name)} LIMIT {self._most_rows() + 1})"
        with self._guard(f"is damaged in {table}"):
            rows = int(self._connection.execute(sql).fetchone()[0])
        if rows > self._most_rows():
            raise ExportError(f"{self._shown} is damaged in {table}: its rows repeat.", DAMAGED)
        return rows

    def read(self, table: str, want: Mapping[str, Kind]) -> Rows:
        """The wanted columns that exist, all of one length; see `Source.read`."""
        declared = {column.lower(): column for column in self.columns(table)}
        found = {column: kind for column, kind in want.items() if column.lower() in declared}
        if not found:
            return {}
        name = self._names[table.upper()]
        watch = counter(f"reading {name}")
        stored = self._decoded(name, lambda database, layout: pages.read(database, layout, found, watch))
        if stored is not None:
            self._rows_of[name] = len(next(iter(stored.values())))
            return stored
        with self._guard(f"is damaged in {table}"):
            rows = self._trusting(table, found, declared) or self._casting(table, found, declared)
        if len(next(iter(rows.values()))) > self._most_rows():
            raise ExportError(f"{self._shown} is damaged in {table}: its rows repeat.", DAMAGED)
        return rows

    def mapped(
        self, table: str, want: Mapping[str, Kind], alike: tuple[str, ...], make: Callable[[Rows, Ints], T]
    ) -> tuple[list[T], list[tuple[int, ...]]] | None:
        """See `pages.mapped`; None where a column is absent or the pages are not understood."""
        known = {column.lower() for column in self.columns(table)}
        if not {column.lower() for column in (*want, *alike)} <= known:
            return None
        name = self._names[table.upper()]
        watch = counter(f"reading {name}")

        def counted(rows: Rows, numbers: Ints) -> tuple[int, T]:
            return len(numbers), make(rows, numbers)

        made = self._decoded(
            name, lambda database, layout: pages.mapped(database, layout, want, alike, counted, watch)
        )
        if made is None:
            return None
        self._rows_of[name] = sum(rows for rows, _ in made[0])
        return [result for _, result in made[0]], made[1]

    def _decoded(self, name: str, make: Callable[[pages.Database, pages.Layout], T]) -> T | None:
        """What the pages of a table give; None where SQLite must read it."""
        try:
            if self._pages is None:
                self._pages = pages.Database(self._path)
            with self._guard(f"is damaged in {name}"):
                layout = pages.layout(self._connection, name)
            return make(self._pages, layout)
        except (pages.DeclinedError, ExportError, OSError, MemoryError) as error:
            _LOG.debug("SQLite reads %s: %s", name, error)
            return None

    def _trusting(self, table: str, found: Mapping[str, Kind], declared: Mapping[str, str]) -> Rows | None:
        """Integer columns as they are stored, a fifth faster; None where a value is no integer after all."""
        if any(kind != "int" for kind in found.values()):
            return None
        name = self._names[table.upper()]
        parts = [
            _quote(column) if (name, column) in self._whole else f"IFNULL({_quote(column)}, {_NULL_SQL})"
            for column in (declared[wanted.lower()] for wanted in found)
        ]
        try:
            return _integers(self._rows(table, parts), tuple(found))
        except (TypeError, ValueError, OverflowError):
            return None

    def _casting(self, table: str, found: Mapping[str, Kind], declared: Mapping[str, str]) -> Rows:
        """Any columns, each value made into the asked type."""
        parts = [_expression(declared[column.lower()], kind) for column, kind in found.items()]
        rows = self._rows(table, parts)
        if all(kind == "int" for kind in found.values()):
            return _integers(rows, tuple(found))
        return _mixed(rows, found)

    def _rows(self, table: str, parts: list[str]) -> Iterator[tuple[Any, ...]]:
        """Rows of a table, one more than a sound file could hold at the most."""
        sql = f"SELECT {', '.join(parts)} FROM {_quote(self._names[table.upper()])}"
        with self._guard(f"is damaged in {table}"):
            yield from islice(self._connection.execute(sql), self._most_rows() + 1)

    def _most_rows(self) -> int:
        return self.size // _LEAST_ROW_BYTES + 1000

    def close(self) -> None:
        """Close the connection and the file."""
        self._connection.close()
        if self._pages is not None:
            self._pages.close()


def _stated_size(path: Path) -> int:
    """Page size times page count of the header; 0 where the count is stale, which the header tells."""
    with path.open("rb") as stream:
        head = stream.read(100)
    page = int.from_bytes(head[16:18], "big")
    if len(head) < 100 or head[24:28] != head[92:96]:
        return 0
    return (65536 if page == 1 else page) * int.from_bytes(head[28:32], "big")


def _decode(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _expression(column: str, kind: Kind) -> str:
    """SQL that gives the asked type whatever is stored; exports have integers as text, text as blobs."""
    quoted = _quote(column)
    if kind == "int":
        return f"IFNULL(CAST({quoted} AS INTEGER), {_NULL_SQL})"
    return f"CAST({quoted} AS {'TEXT' if kind == 'text' else 'REAL'})"


def _integers(rows: Iterable[tuple[int, ...]], names: tuple[str, ...]) -> Rows:
    """Integer rows as columns, without a Python list of rows between."""
    import numpy as np

    flat = np.fromiter(chain.from_iterable(rows), dtype=np.int64)
    table = flat.reshape(-1, len(names))
    return {name: np.ascontiguousarray(table[:, i]) for i, name in enumerate(names)}


def _mixed(rows: Iterator[tuple[Any, ...]], kinds: Mapping[str, Kind]) -> Rows:
    """Rows with text as columns, chunk by chunk, so that at most one chunk of rows exists at a time."""
    import numpy as np

    chunks: dict[str, list[np.ndarray[Any, Any]]] = {name: [] for name in kinds}
    while part := list(islice(rows, _CHUNK)):
        for (name, kind), values in zip(kinds.items(), zip(*part, strict=True), strict=True):
            chunks[name].append(_array(values, kind))
    return {
        name: np.concatenate(chunks[name]) if chunks[name] else _array((), kind)
        for name, kind in kinds.items()
    }


def _array(values: tuple[Any, ...], kind: Kind) -> np.ndarray[Any, Any]:
    import numpy as np

    if kind == "int":
        return np.array(values, dtype=np.int64)
    if kind == "real":
        return np.array(values, dtype=np.float64)
    result = np.empty(len(values), dtype=object)
    result[:] = values
    return result


def _reason(error: Exception) -> str:
    """What SQLite says, in a few words and without the path."""
    if isinstance(error, UnicodeError):
        return "its schema is not text"
    text = str(error).lower()
    reasons: dict[str, str] = {
        "interrupted": "it took more steps than a sound file of this size can need",
        "malformed": "its pages do not fit together",
        "not a database": "it is not a database, or its first page is damaged",
        "locked": "another program has locked it",
        "too big": "a value is longer than the file",
        "disk i/o": "it cannot be read to the end",
        "unsupported file format": "its schema has a format that SQLite does not know",
    }
    return next((reason for word, reason in reasons.items() if word in text), text or type(error).__name__)
