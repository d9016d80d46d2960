"""The leaf pages of a table, in order of rowid: a walk that visits no page twice."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysmodel.export.pages.database import PADDING, Database, DeclinedError

if TYPE_CHECKING:
    from nsysmodel.export.pages.database import Bytes, Ints

LEAF, INTERIOR = 0x0D, 0x05
_DEEPEST = 20
_AT_ONCE = 1 << 22
_LEAST_CELL = 6
"""Bytes of the smallest cell with its pointer."""


def leaves(database: Database, root: int) -> Ints:
    """Numbers of the leaf pages below `root`.

    A b-tree has all its leaves at one depth, so each level is one list of pages.

    Raises:
        DeclinedError: a page is of another kind, lies outside the file or is reached twice.
    """
    import numpy as np

    level = np.array([root], dtype=np.int64)
    seen = np.zeros(database.page_count + 1, dtype=bool)
    for _ in range(_DEEPEST):
        _visit(level, seen, database)
        kind = int(database.read(level[:1])[0])
        if kind == LEAF:
            return level
        if kind != INTERIOR:
            raise DeclinedError(f"page {int(level[0])} is no page of a table with rowids")
        step = max(1, _AT_ONCE // database.page_size)
        level = np.concatenate(
            [_children(database, level[i : i + step]) for i in range(0, len(level), step)],
        )
    raise DeclinedError("the tree is too deep")


def _visit(level: Ints, seen: Bytes, database: Database) -> None:
    import numpy as np

    if not (int(level.min()) > 1 and int(level.max()) <= database.page_count):
        raise DeclinedError("a page number is outside the file")
    before = np.count_nonzero(seen)
    seen[level] = True
    if (
        np.count_nonzero(seen) != before + len(level)
        or seen[database.lock_page : database.lock_page + 1].any()
    ):
        raise DeclinedError("a page is used twice")


def _children(database: Database, level: Ints) -> Ints:
    """Child pages of interior pages of one level: those of the cells, then the right-most one."""
    import numpy as np

    data = database.read(level)
    size = database.page_size
    pages = data[:-PADDING].reshape(-1, size)
    if (pages[:, 0] != INTERIOR).any():
        raise DeclinedError("leaves lie at different depths")
    count = pages[:, 3].astype(np.int64) << 8 | pages[:, 4]
    if not count.all():
        raise DeclinedError("a page is empty")
    local, page = pointers(pages, count, 12, database.usable)
    words = np.ndarray((len(data) - 3,), dtype=">u4", buffer=data, strides=(1,))
    child = words[page + local].astype(np.int64)
    right = words[np.arange(len(pages)) * size + 8].astype(np.int64)
    return np.insert(child, np.cumsum(count), right)


def pointers(pages: Bytes, count: Ints, head: int, usable: int) -> tuple[Ints, Ints]:
    """Offsets of all cells within their pages, and the position in `pages` at which each page begins.

    Args:
        pages: one page a row.
        count: cells of each page.
        head: bytes of the page's head, behind which the pointers stand.
        usable: bytes of a page that are in use.

    Raises:
        DeclinedError: a pointer does not lie between the pointers and the end of its page.
    """
    import numpy as np

    most = int(count.max(initial=0))
    if most > (usable - 8) // _LEAST_CELL:
        raise DeclinedError("a page has more cells than fit")
    listed = np.ascontiguousarray(pages[:, head : head + 2 * most]).view(">u2")
    local = listed[np.arange(most) < count[:, None]].astype(np.int64)
    page = np.repeat(np.arange(len(pages), dtype=np.int64) * pages.shape[1], count)
    last = usable - (4 if head == 8 else 5)
    if len(local) and int(local.max()) > last:
        raise DeclinedError("a cell lies outside its page")
    # Cells fill a page from its end: hardly ever is one as near to its head as the longest list reaches.
    if (
        len(local)
        and int(local.min()) < head + 2 * most
        and (local < np.repeat(head + 2 * count, count)).any()
    ):
        raise DeclinedError("a cell lies outside its page")
    return local, page
