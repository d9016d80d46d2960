"""From what a user names to a list of exports: files, globs, folders and lists."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from nsysmodel.batch.types import BatchError

SUFFIXES = (".sqlite", ".sqlite3", ".db", ".nsys-rep", ".qdrep")
PACKED = (".gz", ".zst")
_REPORTS = (".nsys-rep", ".qdrep")

Named = tuple[str, str]
"""An export as it was named, and the rest of its line in a list (labels)."""


def expand(named: Sequence[str], *, skip: Callable[[Path], bool] = lambda _: False) -> list[Named]:
    """Every export that the arguments name, each once, in their order; within one argument by name.

    `@FILE` holds one argument a line, `#` starts a comment, labels may follow after a tab; relative paths in
    it are relative to its folder. A folder gives the exports in it and below; a report beside its own export
    is left out. A name that no file bears is kept, so that the batch can say so.

    Args:
        named: files, globs, folders and `@` lists.
        skip: folders that are not searched, such as the one that the batch writes to.

    Raises:
        BatchError: a glob or folder holds no export, or a list cannot be read.
    """
    seen: dict[str, Named] = {}
    for path, rest in _arguments(named):
        for found in _found(path, skip):
            # Two ways to the same file are one run; a link to it is one, too.
            seen.setdefault(os.path.realpath(found), (found, rest))
    return list(seen.values())


def stem_of(name: str) -> str:
    """A file name without what says that it is an export.

    >>> stem_of("run.sqlite.gz"), stem_of("a.b.nsys-rep"), stem_of("folder")
    ('run', 'a.b', 'folder')
    """
    for suffix in (*PACKED, *SUFFIXES):
        if name.lower().endswith(suffix) and len(name) > len(suffix):
            name = name[: -len(suffix)]
    return name


def natural(text: str) -> list[tuple[int, int, str]]:
    """A sort key that counts: `run2` before `run10`.

    >>> sorted(["run10", "run2", "run"], key=natural)
    ['run', 'run2', 'run10']
    """
    return [
        (0, int(part), "") if part.isdecimal() else (1, 0, part.casefold())
        for part in re.split(r"(\d+)", text)
        if part
    ]


def _arguments(named: Sequence[str]) -> Iterator[Named]:
    for argument in named:
        if argument.startswith("@") and len(argument) > 1 and not os.path.exists(argument):
            yield from _listed(Path(argument[1:]))
        else:
            yield argument, ""


def _listed(path: Path) -> Iterator[Named]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise BatchError(
            f"The list {path} cannot be read.", "@FILE names a UTF-8 text file with one export a line."
        ) from error
    for line in text.splitlines():
        entry, _, rest = line.partition("\t")
        if entry.strip() and not entry.lstrip().startswith("#"):
            yield os.path.join(path.parent, entry.strip()), rest


def _found(path: str, skip: Callable[[Path], bool]) -> list[str]:
    if not os.path.exists(path) and glob.has_magic(path):
        return _matched(path, skip)
    if not os.path.isdir(path) or _is_export(Path(path)):
        return [path]
    exports = _without_reports(sorted(map(str, _below(Path(path), skip)), key=natural))
    if not exports:
        kinds = ", ".join(SUFFIXES[:2] + _REPORTS[:1])
        raise BatchError(f"The folder {path} holds no export.", f"Exports end in {kinds}, or are folders.")
    return exports


def _matched(pattern: str, skip: Callable[[Path], bool]) -> list[str]:
    matches = sorted((m for m in glob.glob(pattern, recursive=True) if not skip(Path(m))), key=natural)
    exports = []
    for match in matches:
        if _is_export(Path(match)):
            exports.append(match)
        elif os.path.isdir(match):
            exports += sorted(map(str, _below(Path(match), skip)), key=natural)
    exports = _without_reports(exports)
    if not exports:
        raise BatchError(f"No export matches {pattern}.", "Check the pattern; ** goes into folders.")
    return exports


def _below(folder: Path, skip: Callable[[Path], bool]) -> Iterator[Path]:
    for root, folders, files in os.walk(folder):
        here = Path(root)
        inside = []
        for name in folders:
            child = here / name
            if name.startswith(".") or skip(child):
                continue
            if _is_export(child):
                yield child
            else:
                inside.append(name)
        folders[:] = inside
        yield from (here / name for name in files if not name.startswith(".") and _is_export(here / name))


def _is_export(path: Path) -> bool:
    """By its name for a file, by the tables in it for a folder."""
    if path.is_dir():
        return any(table.stem.upper().startswith(_TABLES) for table in _table_files(path))
    name = path.name.lower()
    for suffix in PACKED:
        name = name.removesuffix(suffix)
    return name.endswith(SUFFIXES)


_TABLES = ("CUPTI_ACTIVITY_KIND_", "TARGET_INFO_", "META_DATA_EXPORT", "NVTX_EVENTS")


def _table_files(folder: Path) -> Iterable[Path]:
    from nsysmodel.export.folder_source import table_files

    try:
        return table_files(folder).values()
    except OSError:
        return ()


def _without_reports(paths: list[str]) -> list[str]:
    """Without the `.nsys-rep` files whose export is there too: they are the same capture."""
    exported = {stem_of(path) for path in paths if not path.lower().endswith(_REPORTS)}
    return [p for p in paths if not (p.lower().endswith(_REPORTS) and stem_of(p) in exported)]
