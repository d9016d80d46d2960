"""From a path to a source of tables: what kind of file it is, and what to do where it is not an export."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Iterable
from pathlib import Path

from nsysmodel.errors import ExportError
from nsysmodel.export.cache_folder import cache_of
from nsysmodel.export.convert import decompress, from_report
from nsysmodel.export.folder_source import FolderSource, table_files
from nsysmodel.export.source import Source
from nsysmodel.export.sqlite_source import SqliteSource

SQLITE_MAGIC = b"SQLite format 3\x00"
_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
_JOURNAL_MAGIC = b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7"
_WAL_MAGICS = (b"\x37\x7f\x06\x82", b"\x37\x7f\x06\x83")
_REPORTS = (".nsys-rep", ".qdrep")

EXPORT_COMMAND = "nsys export --type sqlite --output {stem}.sqlite {name}"


class Opened:
    """A source with the temporary folder that it may live in. Closing removes both."""

    def __init__(self, path: Path) -> None:
        self.name = path.name
        self._temporary: Path | None = None
        try:
            self.source: Source = self._open(path)
        except BaseException:
            self._remove()
            raise

    def _open(self, path: Path) -> Source:
        if path.is_dir():
            return _open_folder(path)
        head = _head(path)
        folder = cache_of(path)
        if folder is None or _pending(path) or not _can_be_export(path, head):
            return self._open_file(path, head)
        from nsysmodel.export.cached_source import CachedSource

        return CachedSource(folder, path, lambda: self._open_later(path, head))

    def _open_later(self, path: Path, head: bytes) -> Source:
        try:
            return self._open_file(path, head)
        except OSError as error:
            raise _unreadable(path, error) from error

    def _open_file(self, path: Path, head: bytes) -> Source:
        if path.suffix.lower() in _REPORTS and not head.startswith(SQLITE_MAGIC):
            path = from_report(path, self._folder())
        elif head.startswith((_GZIP, _ZSTD)):
            path = decompress(path, self._folder(), gzipped=head.startswith(_GZIP))
        elif not head.startswith(SQLITE_MAGIC):
            raise _not_sqlite(path, head)
        return self._open_sqlite(path)

    def _open_sqlite(self, path: Path) -> Source:
        pending = _pending(path)
        if pending:
            # SQLite would make files beside the export, or fail on a read-only disk; in a copy it may.
            path = _copy_with(path, pending, self._folder())
            _settle(path)
        source = SqliteSource(path, self.name)
        try:
            _check_kind(self.name, source.tables())
        except BaseException:
            source.close()
            raise
        return source

    def _folder(self) -> Path:
        if self._temporary is None:
            self._temporary = Path(tempfile.mkdtemp(prefix="nsysmodel-"))
            # A run that nobody closes must not leave gigabytes behind.
            weakref.finalize(self, shutil.rmtree, self._temporary, ignore_errors=True)
        return self._temporary

    def _remove(self) -> None:
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)
            self._temporary = None

    def close(self) -> None:
        """Close the source and remove temporary files."""
        self.source.close()
        self._remove()


def open_source(path: str | os.PathLike[str]) -> Opened:
    """Open an export of any form.

    Raises:
        ExportError: there is no such file, or it is not an export; the hint says what to do.
    """
    target = Path(path)
    try:
        if not target.exists():
            raise ExportError(f"There is no file {target.name}.", "Check the path.")
        return Opened(target)
    except OSError as error:
        raise _unreadable(target, error) from error
    except ValueError as error:
        raise ExportError("The path of the export is not a path.", "Check the path.") from error


def _unreadable(path: Path, error: OSError) -> ExportError:
    reason = (error.strerror or "the file system refuses").lower()
    return ExportError(f"{path.name} cannot be read: {reason}.", "Check the path and permissions.")


def _can_be_export(path: Path, head: bytes) -> bool:
    return head.startswith((SQLITE_MAGIC, _GZIP, _ZSTD)) or path.suffix.lower() in _REPORTS


def _head(path: Path) -> bytes:
    if not path.is_file():
        raise ExportError(f"{path.name} is not a regular file.", "Give the path of an exported file.")
    with path.open("rb") as stream:
        return stream.read(512)


def _open_folder(path: Path) -> Source:
    files = table_files(path)
    if files:
        _check_kind(path.name, files)
        return FolderSource(path, path.name)
    exports = sorted(p.name for p in path.iterdir() if p.suffix.lower() in (".sqlite", ".sqlite3", *_REPORTS))
    hint = "Give the path of an exported file, or of a folder of nsys export --type parquetdir or arrowdir."
    if exports:
        hint = f"Give one file of it, for example {exports[0]}."
    raise ExportError(f"{path.name or path} is a folder without the tables of an export.", hint)


def _not_sqlite(path: Path, head: bytes) -> ExportError:
    """What the file is, as far as its first bytes tell."""
    name, stem = path.name, path.stem
    again = "Export it again: " + EXPORT_COMMAND.format(stem=stem, name=f"{stem}.nsys-rep")
    if not head:
        return ExportError(f"{name} is empty.", again)
    if head.startswith(b"version https://git-lfs"):
        return ExportError(
            f"{name} is a Git LFS pointer, not the export itself.", f"git lfs pull --include {name}"
        )
    if path.suffix.lower() in (".parquet", ".pq", ".arrow", ".arrows"):
        return ExportError(f"{name} is one table of an export.", "Give the folder that holds all its tables.")
    if head.startswith(b"PK\x03\x04"):
        return ExportError(f"{name} is a zip archive.", "Unpack it and give the .sqlite file in it.")
    if all(32 <= byte < 127 or byte in b"\t\r\n\x1b" for byte in head):
        return ExportError(f"{name} is text, not an export.", again)
    return ExportError(
        f"{name} is not a SQLite file.",
        "If it is an Nsight Systems report: " + EXPORT_COMMAND.format(stem=stem, name=name),
    )


def _check_kind(name: str, tables: Iterable[str]) -> None:
    """Raise where the tables are those of another program."""
    names = {table.upper() for table in tables}
    if "STRINGTABLE" in names or "CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL" in names:
        raise ExportError(
            f"{name} was written by nvprof, not by Nsight Systems.",
            "Capture with nsys profile, then nsys export --type sqlite.",
        )
    known = ("TARGET_INFO_", "CUPTI_ACTIVITY_KIND_", "NVTX_EVENTS", "META_DATA_EXPORT", "EXPORT_META_DATA")
    if any(table.startswith(known) for table in names):
        return
    if not names:
        raise ExportError(f"{name} holds no tables.", "Export it again; the export may have been cut off.")
    raise ExportError(
        f"{name} is not an Nsight Systems export: it has none of the tables of one.",
        "Write one with nsys export --type sqlite REPORT.nsys-rep.",
    )


def _pending(path: Path) -> list[Path]:
    """Side files with content that SQLite would have to play back."""
    found = []
    for suffix, magics in (("-wal", _WAL_MAGICS), ("-journal", (_JOURNAL_MAGIC,))):
        side = path.with_name(path.name + suffix)
        if side.is_file():
            with side.open("rb") as stream:
                if stream.read(8).startswith(magics):
                    found.append(side)
    return found


def _copy_with(path: Path, pending: list[Path], folder: Path) -> Path:
    target = folder / path.name
    shutil.copyfile(path, target)
    for side in pending:
        shutil.copyfile(side, folder / side.name)
    return target


def _settle(path: Path) -> None:
    """Play the side files of a copy back into it."""
    import sqlite3

    try:
        connection = sqlite3.connect(path)
        try:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            connection.execute("SELECT count(*) FROM sqlite_master").fetchall()
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise ExportError(
            f"{path.name} has unfinished changes beside it that cannot be played back.",
            "Wait until the export has finished, or export it again.",
        ) from error
