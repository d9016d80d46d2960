"""Output names: safe on every file system, unique in a batch, the same for the same exports."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from pathlib import PurePath

from nsysmodel.batch.inputs import stem_of

LONGEST = 100
_RESERVED = re.compile(r"(?i)(con|prn|aux|nul|com\d|lpt\d)(\..*)?")
_UNSAFE = re.compile(r"[^\w.+=@-]+")


def safe(text: str) -> str:
    """`text` as a file name that no file system refuses; long ones keep a digest of the whole.

    >>> safe("a b/c.d"), safe("../x"), safe("nul"), safe("…")
    ('a_b_c.d', 'x', '_nul', 'run')
    """
    name = _UNSAFE.sub("_", unicodedata.normalize("NFC", text)).strip("._-") or "run"
    if _RESERVED.fullmatch(name):
        name = "_" + name
    if len(name.encode()) > LONGEST:
        digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:8]
        short = name.encode()[: LONGEST - 9].decode("utf-8", "ignore")
        name = f"{short.rstrip('._-')}-{digest}"
    return name


def is_safe(name: object) -> bool:
    """True for what `safe` may return: never a way out of a folder."""
    return isinstance(name, str) and bool(name) and safe(name) == name


def unique_names(paths: Sequence[str]) -> list[str]:
    """A name for each path: its stem; where several share one, as many folders before it as tell them apart.

    Names that differ in case only count as the same. What folders cannot tell apart (`a.sqlite`, `a.db`) is
    numbered in the order of the paths.

    >>> unique_names(["/x/new/run.sqlite", "/x/old/run.sqlite", "/x/other.db"])
    ['new-run', 'old-run', 'other']
    >>> unique_names(["/x/a.sqlite", "/x/a.db"])
    ['a-2', 'a']
    """
    names = [_named(path, 0) for path in paths]
    for depth in range(1, max((len(PurePath(path).parts) for path in paths), default=1)):
        clashes = _clashes(names)
        if not clashes:
            return names
        names = [
            _named(path, depth) if name.casefold() in clashes else name
            for path, name in zip(paths, names, strict=True)
        ]
    return _numbered(paths, names)


def _named(path: str, depth: int) -> str:
    parts = PurePath(path).parts
    folders = [part for part in parts[max(len(parts) - 1 - depth, 0) : -1] if part != PurePath(path).anchor]
    return safe("-".join([*folders, stem_of(parts[-1] if parts else "")]))


def _clashes(names: Sequence[str]) -> set[str]:
    return {name for name, count in Counter(name.casefold() for name in names).items() if count > 1}


def _numbered(paths: Sequence[str], names: list[str]) -> list[str]:
    shared = _clashes(names)
    taken = {name.casefold() for name in names if name.casefold() not in shared}
    chosen = list(names)
    for index in sorted(range(len(names)), key=lambda k: paths[k]):
        candidate, number = names[index], 1
        if candidate.casefold() in shared:
            # Back to the stem: folders did not help, so they only make the name long.
            base = candidate = _named(paths[index], 0)
            while candidate.casefold() in taken:
                number += 1
                candidate = f"{base}-{number}"
            taken.add(candidate.casefold())
        chosen[index] = candidate
    return chosen
