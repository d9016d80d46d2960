"""NVTX ranges and marks, with their domains and texts resolved."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from nsysmodel.export.columns import conform, empty
from nsysmodel.export.reader import (
    PROCESS_MASK,
    Reader,
    Wanted,
    by_start,
    categories,
    ints,
    or_default,
    process_of,
    text_categories,
)
from nsysmodel.export.source import NULL, Rows

if TYPE_CHECKING:
    import pandas as pd

NVTX = "NVTX_EVENTS"
_MARK, _PUSH_POP, _START_END, _DOMAIN = 34, 59, 60, 75
_TEXT_PUSH_POP, _TEXT_START_END = 70, 71
_KINDS = {_PUSH_POP: 0, _TEXT_PUSH_POP: 0, _START_END: 1, _TEXT_START_END: 1, _MARK: 2}


def nvtx(reader: Reader, last_ns: Callable[[], int]) -> pd.DataFrame:
    """Ranges and marks.

    Args:
        reader: the export.
        last_ns: end of the session, asked only where a range has no end.
    """
    import numpy as np

    columns = (
        *ints("textId", "domainId", always=("start", "end", "eventType", "globalTid")),
        Wanted("text", "text"),
    )
    rows, length = reader.rows(NVTX, columns)
    if not length:
        return empty("nvtx")
    domain = _domains(reader, rows)
    start, end, event = rows["start"], rows["end"], rows["eventType"]
    mark = event == _MARK
    is_open = (end == NULL) & ~mark
    end = np.where(mark & (end == NULL), start, end)
    listed = np.isin(event, tuple(_KINDS)) & (start != NULL)
    if (is_open & listed).any():
        end = np.where(is_open, np.maximum(start, last_ns()), end)
    times = {"start": np.where(listed, start, 1), "end": np.where(listed, end, 1)}
    kept = listed & reader.sound(times, "NVTX ranges")
    thread = or_default(rows["globalTid"], 0)[kept]
    kind = np.where(mark, 2, np.where((event == _START_END) | (event == _TEXT_START_END), 1, 0))
    data = {
        "start_ns": start[kept],
        "end_ns": end[kept],
        "duration_ns": end[kept] - start[kept],
        "process": process_of(thread),
        "global_pid": thread & PROCESS_MASK,
        "global_tid": thread,
        "thread": thread & 0xFFFFFF,
        "text": _texts(reader, rows)[kept],
        "domain": domain[kept],
        "kind": categories(kind[kept], ["push_pop", "start_end", "mark"]),
        "open": is_open[kept],
    }
    return by_start(conform("nvtx", data))


def _texts(reader: Reader, rows: Rows) -> pd.Categorical:
    """The registered text where there is one, else the inline text, else an empty one."""
    import numpy as np

    inline = text_categories(rows["text"], missing="")
    registered = rows["textId"] != NULL
    if not registered.any():
        return inline
    named = reader.names(rows["textId"], missing="")
    offset = len(named.categories)
    codes = np.where(registered, named.codes.astype(np.int64), inline.codes.astype(np.int64) + offset)
    return categories(codes, [*named.categories, *inline.categories])


def _domains(reader: Reader, rows: Rows) -> pd.Categorical:
    """Names of the domains. Ids are numbered per process; 0 is the default domain and has no name."""
    from nsysmodel.grouping import codes_of, first_rows

    domain = or_default(rows["domainId"], 0)
    process = or_default(rows["globalTid"], 0) & PROCESS_MASK
    created = rows["eventType"] == _DOMAIN
    made = _texts(reader, {name: values[created] for name, values in rows.items()})
    names = dict(
        zip(zip(process[created].tolist(), domain[created].tolist(), strict=True), made, strict=True)
    )
    codes = codes_of([process, domain])
    first = first_rows(codes, int(codes.max(initial=-1)) + 1)
    texts: list[str | None] = [
        str(names.get((p, d), "" if d == 0 else f"<domain {d}>"))
        for p, d in zip(process[first].tolist(), domain[first].tolist(), strict=True)
    ]
    return categories(codes, texts)
