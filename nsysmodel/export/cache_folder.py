"""Where decoded columns are kept between runs, how much there is, and how it stays within its limit."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

FOLDER_VARIABLE = "NSYSMODEL_CACHE_DIR"
LIMIT_VARIABLE = "NSYSMODEL_CACHE_LIMIT"
LIMIT_BYTES = 10_000_000_000
_TAG = "CACHEDIR.TAG"
_TAG_TEXT = "Signature: 8a477f597d28d172789f06886806bc55\n# Decoded exports of nsysmodel; may be deleted.\n"


BESIDE = ".nsysmodel-cache"
"""Name of the folder beside an export that keeps its columns where that was asked for."""

Place = Literal["user", "beside"]
_place: ContextVar[Place | Path | None] = ContextVar("place", default=None)


@contextmanager
def caching(place: Place | Path | None) -> Iterator[None]:
    """Keep the decoded columns of every export that is opened inside.

    Args:
        place: `user` for the user's folder for caches, `beside` for a folder beside each export, a folder, or
            None for no cache.
    """
    token = _place.set(place)
    try:
        yield
    finally:
        _place.reset(token)


def cache_of(export: Path) -> Path | None:
    """The folder that keeps the columns of this export; None where no cache was asked for."""
    place = _place.get()
    if place == "user":
        return user_folder()
    if place == "beside":
        return export.resolve().parent / BESIDE
    return place


@dataclass(frozen=True, slots=True)
class Entry:
    """The columns of one export. `used` is the time of the last use, seconds since 1970."""

    key: str
    bytes: int
    used: float


def user_folder() -> Path:
    """The folder of `NSYSMODEL_CACHE_DIR`, else the user's own for caches on this system."""
    named = os.environ.get(FOLDER_VARIABLE)
    if named:
        return Path(named)
    if sys.platform == "win32":
        return (
            Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "nsysmodel" / "Cache"
        )
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "nsysmodel"
    base = os.environ.get("XDG_CACHE_HOME", "")
    # The rules of XDG: a relative path is to be ignored.
    return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "nsysmodel"


def limit_bytes() -> int:
    """The most that a folder may hold: `NSYSMODEL_CACHE_LIMIT` in bytes, else 10 GB."""
    try:
        return max(0, int(os.environ.get(LIMIT_VARIABLE, "")))
    except ValueError:
        return LIMIT_BYTES


def prepare(folder: Path) -> None:
    """Make the folder, marked as one that backups leave out.

    Raises:
        OSError: the system refuses.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    tag = folder / _TAG
    if not tag.exists():
        tag.write_text(_TAG_TEXT, encoding="ascii")


def entries(folder: Path) -> list[Entry]:
    """What a folder holds, the longest unused first."""
    found = []
    for path in _own(folder):
        try:
            size = sum(file.stat().st_size for file in path.iterdir())
            found.append(Entry(path.name, size, path.stat().st_mtime))
        except OSError:
            # Another run removes it just now.
            continue
    return sorted(found, key=lambda entry: entry.used)


def _own(folder: Path) -> list[Path]:
    """Folders that this module made: nothing else in a folder is ever touched."""
    try:
        return [path for path in folder.iterdir() if path.is_dir() and _is_key(path.name)]
    except OSError:
        return []


def _is_key(name: str) -> bool:
    return len(name) == 64 and set(name) <= set("0123456789abcdef")


def shrink(folder: Path, limit: int, keep: str = "") -> int:
    """Remove the longest unused entries until the limit holds; returns the bytes removed.

    `keep` is the key of an entry that is in use, which goes last.
    """
    held = entries(folder)
    whole, removed = sum(entry.bytes for entry in held), 0
    for entry in sorted(held, key=lambda entry: (entry.key == keep, entry.used)):
        if whole - removed <= limit:
            break
        shutil.rmtree(folder / entry.key, ignore_errors=True)
        removed += entry.bytes
    return removed


def clear(folder: Path) -> int:
    """Remove all entries; returns the bytes removed."""
    return shrink(folder, -1)
