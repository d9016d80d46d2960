"""Durations of all kernels and what each was, in a few bytes a kernel: for statistics of millions of them.

A table is taken in block by block and needs neither frames nor pandas. Only for exports that are as they
should be; whatever is missing or odd there is for the frames, which say so.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nsysmodel.errors import ExportError
from nsysmodel.export.gpu_frames import KERNEL
from nsysmodel.export.pages import UnlikeError
from nsysmodel.export.reader import all_sound
from nsysmodel.export.source import NULL, Rows
from nsysmodel.export.sqlite_source import SqliteSource

if TYPE_CHECKING:
    from nsysmodel.export.reader import Ints
    from nsysmodel.export.source import Source


class _OddError(Exception):
    """There are rows that only the frames know how to take."""


@dataclass(frozen=True, slots=True)
class Durations:
    """Kernels in the order of the export.

    Attributes:
        blocks: kernels that were read at once: the duration of each in ns, and which of the identities it
            has, from 0 on; in the narrowest integers that hold a block.
        identity: columns of the kernel table, a value for each code, none of them NULL.
        first: first kernel of each code.
        count: kernels of each code.
    """

    blocks: list[tuple[Ints, Ints]]
    identity: dict[str, Ints]
    first: Ints
    count: Ints


def durations(source: Source, columns: Iterable[str]) -> Durations | None:
    """Durations by the distinct values of some integer columns of the kernel table.

    Returns:
        None where the export has no kernels, or is not one of which every row can be taken as it is.
    """
    import numpy as np

    names = tuple(columns)
    if not isinstance(source, SqliteSource):
        return None

    def narrow(rows: Rows, code: Ints) -> tuple[Ints, Ints]:
        start, end = rows["start"], rows["end"]
        if not all_sound(start, end):
            raise _OddError
        return _narrowed(end - start), _narrowed(code)

    try:
        found = source.mapped(KERNEL, {"start": "int", "end": "int"}, names, narrow)
    except (ExportError, UnlikeError, _OddError):
        return None
    if found is None or not found[0]:
        return None
    blocks, known = found
    values = np.array(known, dtype=np.int64).reshape(len(known), len(names))
    if (values == NULL).any():
        return None
    identity = {name: values[:, i] for i, name in enumerate(names)}
    first, count = _first_and_count([codes for _, codes in blocks], len(known))
    return Durations(blocks, identity, first, count)


def _narrowed(values: Ints) -> Ints:
    """The same numbers, none of them negative, in fewer bytes each where they fit."""
    import numpy as np

    most = int(values.max())
    for dtype in (np.uint16, np.uint32):
        if most <= np.iinfo(dtype).max:
            return values.astype(dtype)
    return values


def _first_and_count(codes: list[Ints], count: int) -> tuple[Ints, Ints]:
    """The first row of each code, and how many rows have it."""
    import numpy as np

    first, total = np.full(count, -1, dtype=np.int64), np.zeros(count, dtype=np.int64)
    row = 0
    for block in codes:
        here = np.bincount(block, minlength=count)
        if (here[first < 0] > 0).any():
            values, at = np.unique(block, return_index=True)
            new = first[values] < 0
            first[values[new]] = row + at[new]
        total += here
        row += len(block)
    return first, total
