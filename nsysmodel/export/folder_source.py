"""Tables of an export in one file each: `nsys export --type parquetdir` and `--type arrowdir`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nsysmodel.errors import ExportError
from nsysmodel.export.source import NULL, Kind, Rows

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa  # type: ignore[import-untyped]

PARQUET = (".parquet", ".pq")
ARROW = (".arrow", ".arrows", ".feather", ".ipc")
HINT = "Export it again: nsys export --type parquetdir --force-overwrite true REPORT.nsys-rep"


def table_files(folder: Path) -> dict[str, Path]:
    """The table files of a folder, by table name."""
    return {
        path.stem: path
        for path in sorted(folder.iterdir())
        if path.suffix.lower() in PARQUET + ARROW and path.is_file()
    }


class FolderSource:
    """A folder with one Parquet or Arrow file per table."""

    def __init__(self, folder: Path, shown: str) -> None:
        self._shown = shown
        self._files = {name.upper(): (name, path) for name, path in table_files(folder).items()}
        self.size = sum(path.stat().st_size for _, path in self._files.values())
        self.cut_off = False
        self._arrow: dict[str, pa.Table] = {}
        self._columns: dict[str, tuple[str, ...]] = {}

    def tables(self) -> tuple[str, ...]:
        """Names of the tables as the file names spell them."""
        return tuple(name for name, _ in self._files.values())

    def columns(self, table: str) -> tuple[str, ...]:
        """Column names of a table; empty for a table that is absent."""
        key = table.upper()
        if key not in self._files:
            return ()
        if key not in self._columns:
            path = self._files[key][1]
            with self._guard(table):
                if path.suffix.lower() in PARQUET:
                    import pyarrow.parquet as pq  # type: ignore[import-untyped]

                    self._columns[key] = tuple(pq.read_schema(path).names)
                else:
                    self._columns[key] = tuple(self._arrow_table(key).column_names)
        return self._columns[key]

    def count(self, table: str) -> int:
        """Rows of a table; 0 for a table that is absent."""
        key = table.upper()
        if key not in self._files:
            return 0
        path = self._files[key][1]
        with self._guard(table):
            if path.suffix.lower() in PARQUET:
                import pyarrow.parquet as pq

                return int(pq.read_metadata(path).num_rows)
            return int(self._arrow_table(key).num_rows)

    def read(self, table: str, want: Mapping[str, Kind]) -> Rows:
        """The wanted columns that exist, all of one length; see `Source.read`."""
        declared = {column.lower(): column for column in self.columns(table)}
        found = {column: kind for column, kind in want.items() if column.lower() in declared}
        if not found:
            return {}
        key = table.upper()
        names = [declared[column.lower()] for column in found]
        with self._guard(table):
            data = self._load(key, names)
            return {
                column: _array(data.column(name), kind)
                for (column, kind), name in zip(found.items(), names, strict=True)
            }

    def _load(self, key: str, names: list[str]) -> pa.Table:
        path = self._files[key][1]
        if path.suffix.lower() not in PARQUET:
            return self._arrow_table(key)
        import pyarrow.parquet as pq

        # A single file, not a dataset: a folder named `x=1` above it must not become a column.
        return pq.ParquetFile(path).read(columns=names)

    def _arrow_table(self, key: str) -> pa.Table:
        """One IPC file, in the file or the stream form."""
        if key not in self._arrow:
            import pyarrow as pa

            path = self._files[key][1]
            with pa.OSFile(str(path), "rb") as stream:
                magic = stream.read(6)
            with pa.OSFile(str(path), "rb") as stream:
                opened = pa.ipc.open_file(stream) if magic == b"ARROW1" else pa.ipc.open_stream(stream)
                self._arrow[key] = opened.read_all()
        return self._arrow[key]

    @contextmanager
    def _guard(self, table: str) -> Iterator[None]:
        import pyarrow as pa

        try:
            yield
        except (pa.ArrowException, OSError, ValueError, KeyError, OverflowError, MemoryError) as error:
            reason = str(error).split("\n")[0].split(": '")[0][:120] or type(error).__name__
            raise ExportError(f"{self._shown} is damaged in {table}: {reason}", HINT) from error

    def close(self) -> None:
        """Forget what was read."""
        self._arrow.clear()


def _array(column: pa.ChunkedArray, kind: Kind) -> np.ndarray[Any, Any]:
    """A column as numpy, with `NULL`, NaN or None where it has no value."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc  # type: ignore[import-untyped]

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if kind == "text":
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            # nsys declares raw bytes as text; going through bytes keeps a bad one from failing the column.
            column = column.cast(pa.large_binary())
        elif not (pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type)):
            column = column.cast(pa.string()).cast(pa.large_binary())
        result = np.empty(len(column), dtype=object)
        result[:] = [None if raw is None else raw.decode("utf-8", "replace") for raw in column.to_pylist()]
        return result
    if kind == "real":
        return np.asarray(pc.cast(column, pa.float64(), safe=False).to_numpy(), dtype=np.float64)
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        column = pc.cast(column, pa.int64())
    whole = pc.cast(column, pa.int64(), safe=False)
    return np.asarray(pc.fill_null(whole, NULL).to_numpy(), dtype=np.int64)
