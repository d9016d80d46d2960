"""The folder of a batch: what is in it, what may be written, and the manifest that remembers it."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nsysmodel.batch.naming import is_safe
from nsysmodel.batch.types import BatchError, RunRow
from nsysmodel.batch.work import SUFFIXES
from nsysmodel.errors import OutputError

MANIFEST = "manifest.json"
MANIFEST_SCHEMA = "nsysmodel.batch-manifest/1"
RUNS = "runs"
_SQLITE = b"SQLite format 3\0"


@dataclass(frozen=True, slots=True)
class Entry:
    """A finished run: the key of its result, its row, and the digest of each of its files by suffix."""

    key: str
    row: RunRow
    files: Mapping[str, str] = field(default_factory=dict)


class BatchFolder:
    """A folder that holds a batch. Every file in it is replaced as a whole, by one process."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.entries: dict[str, Entry] = {}

    def open(self, *, force: bool = False) -> None:
        """Make the folder, or read what an earlier batch left in it.

        Args:
            force: write into a folder with files of someone else; they stay, but for equal names.

        Raises:
            OutputError: the folder holds files that no batch wrote, or cannot be made or read.
        """
        if self.path.exists() and not self.path.is_dir():
            raise OutputError(f"{self.path} is not a folder.", "Name a folder with -o.")
        if is_batch(self.path):
            self.entries = _entries(self.path / MANIFEST)
        else:
            if self.path.is_dir() and any(self.path.iterdir()) and not force:
                raise OutputError(
                    f"{self.path} holds files that no batch wrote.",
                    "Name another folder with -o, or use --force; files of other names stay as they are.",
                )
            try:
                (self.path / RUNS).mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise OutputError(f"{self.path} cannot be made: {error.strerror}.") from error
            # From here on the folder is known as a batch's, however this call ends.
            self.save()

    def good_key(self, name: str) -> str:
        """Key of a run whose files are there and as they were written; empty where they are not."""
        entry = self.entries.get(name)
        if entry is None or set(entry.files) != set(SUFFIXES):
            return ""
        for suffix, digest in entry.files.items():
            try:
                if hashlib.sha256(self.read(name, suffix)).hexdigest() != digest:
                    return ""
            except OSError:
                return ""
        return entry.key

    def store(self, key: str, row: RunRow, files: Mapping[str, bytes]) -> None:
        """Keep a finished run: its files, then its entry."""
        for suffix, data in files.items():
            self.write(f"{RUNS}/{row.name}{suffix}", data)
        digests = {suffix: hashlib.sha256(data).hexdigest() for suffix, data in files.items()}
        self.entries[row.name] = Entry(key, row, digests)

    def read(self, name: str, suffix: str) -> bytes:
        """A file of a run."""
        return (self.path / RUNS / f"{name}{suffix}").read_bytes()

    def remove(self, name: str) -> None:
        """Forget a run and remove its files."""
        entry = self.entries.pop(name)
        for suffix in set(entry.files) & set(SUFFIXES):
            (self.path / RUNS / f"{name}{suffix}").unlink(missing_ok=True)

    def write(self, relative: str, data: bytes) -> bool:
        """Replace a file whole; one that holds these bytes already is left alone. True where it was written.

        Raises:
            OutputError: the disk refuses, or the file is a capture.
        """
        target = self.path / relative
        try:
            if target.is_file():
                old = target.read_bytes()
                if old == data:
                    return False
                if old.startswith(_SQLITE):
                    raise OutputError(f"{target} is a SQLite file; a result is never written over one.")
            target.parent.mkdir(exist_ok=True)
            handle, temporary = tempfile.mkstemp(prefix=".nsysmodel-", dir=target.parent)
            try:
                with os.fdopen(handle, "wb") as stream:
                    stream.write(data)
                os.chmod(temporary, 0o666 & ~_umask())
                os.replace(temporary, target)
            except BaseException:
                os.unlink(temporary)
                raise
        except OSError as error:
            raise OutputError(f"{target} cannot be written: {error.strerror}.") from error
        return True

    def save(self) -> None:
        """Write the manifest."""
        runs = {
            name: {"key": entry.key, "files": dict(entry.files), "row": entry.row.to_dict()}
            for name, entry in self.entries.items()
        }
        text = json.dumps({"schema": MANIFEST_SCHEMA, "runs": runs}, indent=1, allow_nan=False)
        self.write(MANIFEST, (text + "\n").encode("utf-8"))


def is_batch(path: Path) -> bool:
    """True for a folder that a batch has written."""
    try:
        with (path / MANIFEST).open("rb") as stream:
            return MANIFEST_SCHEMA.encode() in stream.read(200)
    except OSError:
        return False


def _entries(path: Path) -> dict[str, Entry]:
    """The finished runs of a manifest. Entries that make no sense are left out: their runs are done again.

    Raises:
        BatchError: the manifest is not JSON.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        runs = data["runs"].items()
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise BatchError(
            f"{path} is damaged.", "Remove the file and use --force; every run is then done again."
        ) from error
    entries = {}
    for name, item in runs:
        entry = _entry(name, item)
        if entry is not None:
            entries[name] = entry
    return entries


def _entry(name: str, item: Any) -> Entry | None:
    try:
        row = RunRow.from_dict(item["row"])
        files = {suffix: str(digest) for suffix, digest in item["files"].items()}
        # A name is a path: what is no name of ours must not lead out of the folder.
        return Entry(str(item["key"]), row, files) if is_safe(name) and row.name == name else None
    except (KeyError, TypeError, AttributeError, ValueError):
        return None


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
