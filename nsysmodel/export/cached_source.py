"""A source whose columns are kept in a folder: what was decoded once is not decoded again.

The folder is named by the content of the export, so it cannot be stale: every use hashes the whole file.
Columns are Arrow files, one each. Whatever is missing or damaged there is read from the export.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import tempfile
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nsysmodel.errors import ExportError
from nsysmodel.export import cache_folder
from nsysmodel.export.source import Kind, Rows, Source
from nsysmodel.progress import tell

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa  # type: ignore[import-untyped]

    Values = np.ndarray[Any, np.dtype[Any]]

_LOG = logging.getLogger("nsysmodel")
_FORMAT = b"nsysmodel columns 1\n"
_CHUNK = 1 << 24
_ABOUT = "about.json"


def content_key(path: Path) -> str:
    """What names the content of a file: a SHA-256 of the SHA-256s of its parts of 16 MiB, as 64 hex digits.

    Parts are hashed on several threads.
    """
    size = path.stat().st_size
    whole = hashlib.sha256(_FORMAT + size.to_bytes(8, "little"))

    def part(first: int) -> bytes:
        with path.open("rb") as stream:
            stream.seek(first)
            return hashlib.sha256(stream.read(_CHUNK)).digest()

    with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
        for number, digest in enumerate(pool.map(part, range(0, size, _CHUNK))):
            tell("looking for it in the cache", min((number + 1) * _CHUNK, size), size)
            whole.update(digest)
    return whole.hexdigest()


class CachedSource:
    """The source that `make` opens, which happens only for what the folder does not hold.

    Args:
        folder: where the columns of all exports are kept.
        path: the export; its content names the entry.
        make: opens it.

    Raises:
        ExportError: the export was changed while it was read.
    """

    def __init__(self, folder: Path, path: Path, make: Callable[[], Source]) -> None:
        self._root, self._path, self._state = folder, path, _state(path)
        self._key = key = content_key(path)
        self._folder = folder / key
        self._make = make
        self._source: Source | None = None
        self._written = False
        about = self._about() or self._look()
        self.size: int = about["size"]
        self.cut_off: bool = about["cut_off"]
        self._columns: dict[str, list[str]] = about["columns"]
        self._counts: dict[str, int] = about["counts"]

    def _about(self) -> dict[str, Any] | None:
        try:
            about: dict[str, Any] = json.loads((self._folder / _ABOUT).read_text("utf-8"))
            # The time of the folder is that of its last use.
            os.utime(self._folder)
        except (OSError, ValueError):
            return None
        return about if about.keys() >= {"size", "cut_off", "columns", "counts"} else None

    def _look(self) -> dict[str, Any]:
        source = self._opened()
        about = {
            "size": source.size,
            "cut_off": source.cut_off,
            "columns": {name: list(source.columns(name)) for name in source.tables()},
            "counts": {},
        }
        self._write(_ABOUT, json.dumps(about).encode())
        return about

    def _opened(self) -> Source:
        if self._source is None:
            self._source = self._make()
            if _state(self._path) != self._state:
                self._source.close()
                raise ExportError(
                    f"{self._path.name} was changed while it was read.",
                    "Wait until it is written, and retry.",
                )
        return self._source

    def tables(self) -> tuple[str, ...]:
        """Names of the tables as the file spells them."""
        return tuple(self._columns)

    def _name(self, table: str) -> str | None:
        return next((name for name in self._columns if name.upper() == table.upper()), None)

    def columns(self, table: str) -> tuple[str, ...]:
        """Column names of a table; empty for a table that is absent."""
        name = self._name(table)
        return () if name is None else tuple(self._columns[name])

    def count(self, table: str) -> int:
        """Rows of a table; 0 for a table that is absent."""
        name = self._name(table)
        if name is None:
            return 0
        if name not in self._counts:
            self._counts[name] = self._opened().count(name)
            about = {"size": self.size, "cut_off": self.cut_off, "columns": self._columns}
            self._write(_ABOUT, json.dumps({**about, "counts": self._counts}).encode())
        return self._counts[name]

    def read(self, table: str, want: Mapping[str, Kind]) -> Rows:
        """The wanted columns that exist, all of one length; see `Source.read`."""
        name = self._name(table)
        declared = {column.lower() for column in self.columns(table)}
        found = {column: kind for column, kind in want.items() if column.lower() in declared}
        if name is None or not found:
            return {}
        rows = {column: self._load(name, column, kind) for column, kind in found.items()}
        lengths = {len(values) for values in rows.values() if values is not None}
        if len(lengths) == 1 and all(values is not None for values in rows.values()):
            return {column: values for column, values in rows.items() if values is not None}
        missing = {c: kind for c, kind in found.items() if rows[c] is None or len(lengths) != 1}
        fresh = self._opened().read(name, missing)
        if _state(self._path) == self._state:
            for column, values in fresh.items():
                self._store(name, column, found[column], values)
        return {column: fresh[column] if column in fresh else self._held(rows[column]) for column in found}

    @staticmethod
    def _held(values: Values | None) -> Values:
        assert values is not None
        return values

    def _file(self, table: str, column: str, kind: Kind) -> str:
        # Names of an untrusted file do not become names of files.
        return hashlib.sha256(f"{table}\0{column.lower()}\0{kind}".encode()).hexdigest()[:32] + ".arrow"

    def _load(self, table: str, column: str, kind: Kind) -> Values | None:
        import pyarrow as pa

        path = self._folder / self._file(table, column, kind)
        if not path.exists():
            return None
        try:
            with pa.OSFile(str(path), "rb") as stream:
                return _unpacked(pa.ipc.open_file(stream).read_all(), kind)
        except (pa.ArrowException, OSError, ValueError, KeyError) as error:
            _LOG.debug("A column of the cache is damaged: %s", error)
            return None

    def _store(self, table: str, column: str, kind: Kind, values: Values) -> None:
        import pyarrow as pa

        packed = _packed(values, kind)
        sink = pa.BufferOutputStream()
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        with pa.ipc.new_file(sink, packed.schema, options=options) as writer:
            writer.write_table(packed)
        self._write(self._file(table, column, kind), sink.getvalue())

    def _write(self, name: str, data: Any) -> None:
        """A file of the folder, whole or not at all; a disk that refuses costs only time."""
        temporary = None
        try:
            cache_folder.prepare(self._root)
            self._folder.mkdir(exist_ok=True, mode=0o700)
            handle, temporary = tempfile.mkstemp(dir=self._folder)
            with os.fdopen(handle, "wb") as stream:
                stream.write(data)
            os.replace(temporary, self._folder / name)
            self._written = True
        except OSError as error:
            _LOG.debug("The cache cannot be written: %s", error.strerror)
            if temporary is not None:
                with contextlib.suppress(OSError):
                    os.unlink(temporary)

    def close(self) -> None:
        """Close the export, and keep the folder within its limit."""
        if self._source is not None:
            self._source.close()
        if self._written:
            cache_folder.shrink(self._root, cache_folder.limit_bytes(), self._key)


def _state(path: Path) -> tuple[int, int, int]:
    """What shows that a file was written to or replaced."""
    about = path.stat()
    return about.st_size, about.st_mtime_ns, about.st_ino


def _packed(values: Values, kind: Kind) -> pa.Table:
    """A column as a table of one row with its length where it has one value, else of all rows."""
    import pyarrow as pa

    one = kind != "text" and len(values) > 0 and values.strides == (0,)
    column = pa.array(values[:1] if one else values, pa.large_string() if kind == "text" else None)
    if kind == "text":
        column = column.dictionary_encode()
    table = pa.table({"value": column})
    return table.replace_schema_metadata({"rows": str(len(values)), "one": "1" if one else ""})


def _unpacked(table: pa.Table, kind: Kind) -> Values:
    """The column of `_packed`.

    Raises:
        ValueError: it does not have as many rows as it says.
    """
    import numpy as np

    rows, one = int(table.schema.metadata[b"rows"]), bool(table.schema.metadata[b"one"])
    column = table.column("value").combine_chunks()
    if len(column) != (1 if one else rows):
        raise ValueError("a column has lost rows")
    if kind == "text":
        texts = np.array([*column.dictionary.to_pylist(), None], dtype=object)
        found: Values = texts[np.asarray(column.indices.fill_null(len(texts) - 1))]
        return found
    values: Values = column.to_numpy(zero_copy_only=False)
    if values.dtype != (np.int64 if kind == "int" else np.float64):
        raise ValueError("a column has another type")
    return np.broadcast_to(values[0], rows) if one else values
