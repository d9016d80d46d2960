"""Which call launched what, and inside which NVTX range.

A correlation id is an id within a process, so every join is by process and id. Ranges belong to the
thread that launches: kernels run later, and comparing their own times with a range's means nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from nsysmodel.export.columns import conform
from nsysmodel.export.nesting import innermost, outermost
from nsysmodel.export.reader import distinct, each, is_one

if TYPE_CHECKING:
    import pandas as pd

    from nsysmodel.export.reader import Ints
    from nsysmodel.export.run import Run

_CORRELATION_BITS = 40
_TABLE_PER_ROW = 4
"""A table of all ids is used up to this many of its places for a row that is joined."""
_FEW = 16
"""Rows that are this many times fewer than the calls are searched, without a table."""


def launches(run: Run, rows: pd.DataFrame | None = None) -> pd.DataFrame:
    """The call that launched each row, aligned with `rows` row by row.

    Args:
        run: the export.
        rows: kernels, copies, memsets or graph traces of the run; its kernels where None.

    Returns:
        `launch_row` (row of `run.api_calls()`), `launch_start_ns`, `launch_end_ns`, `launch_thread` (the
        whole thread key), `launch_name`; −1, 0 and missing where there is no such call.
    """
    import numpy as np

    rows = run.kernels() if rows is None else rows
    calls = run.api_calls()
    if not len(calls):
        return _no_launches(len(rows))
    found = match(rows, calls)
    none = found < 0
    at = np.where(none, 0, found)
    names = calls["name"].array.take(found, allow_fill=True)
    every = not none.any()

    def taken(column: str, missing: int) -> Ints:
        values = calls[column].to_numpy()
        if every and is_one(values):
            return np.broadcast_to(values[0], len(found))
        return values[at] if every else np.where(none, missing, values[at])

    return conform(
        "launches",
        {
            "launch_row": found,
            "launch_start_ns": taken("start_ns", -1),
            "launch_end_ns": taken("end_ns", -1),
            "launch_thread": taken("global_tid", 0),
            "launch_name": names,
        },
    )


def match(rows: pd.DataFrame, calls: pd.DataFrame) -> Ints:
    """Row number in `calls` of the call with the same process and correlation id; −1 for none."""
    import numpy as np

    if not len(rows) or not len(calls):
        return np.full(len(rows), -1, dtype=np.int64)
    wanted, offered = _keys(rows, calls)
    size = int(offered.max(initial=-1)) + 1
    if len(wanted) < len(offered) // _FEW and bool((offered[1:] > offered[:-1]).all()):
        return _searched(wanted, offered)
    if size <= _TABLE_PER_ROW * (len(wanted) + len(offered)):
        return _looked_up(wanted, offered, size)
    order = np.argsort(offered, kind="stable")
    found = _searched(wanted, offered[order])
    return np.where(found >= 0, order[found], -1).astype(np.int64)


def _searched(wanted: Ints, offered: Ints) -> Ints:
    """Position in `offered`, which ascends, of each wanted number; of equal ones the first."""
    import numpy as np

    at = np.searchsorted(offered, wanted)
    at[at == len(offered)] = 0
    return np.where((offered[at] == wanted) & (wanted >= 0), at, -1).astype(np.int64)


def _looked_up(wanted: Ints, offered: Ints, size: int) -> Ints:
    """Position in `offered` of each wanted number, by a table of all numbers below `size`."""
    import numpy as np

    narrow = np.int32 if len(offered) <= np.iinfo(np.int32).max else np.int64
    # One place more, always empty, for all that is not offered.
    table = np.full(size + 1, -1, dtype=narrow)
    # Backwards: of equal numbers the first one stays.
    table[offered[::-1]] = np.arange(len(offered) - 1, -1, -1, dtype=narrow)
    table[-1] = -1
    possible = (wanted >= 0) & (wanted < size)
    return table[wanted if possible.all() else np.where(possible, wanted, size)].astype(np.int64)


def _keys(rows: pd.DataFrame, calls: pd.DataFrame) -> tuple[Ints, Ints]:
    """One number per process and correlation id, the same numbering in both frames; −1 for no id."""
    import numpy as np

    left, right = rows["global_pid"].to_numpy(), calls["global_pid"].to_numpy()
    known_left, known_right = distinct(left), distinct(right)
    processes = np.unique(np.concatenate([known_left, known_right]))
    if len(known_left) == len(known_right) == 1 and 0 in (known_left[0], known_right[0]):
        # One side does not say which process; there is only one that it can be.
        processes = processes[:1]
    frames = [rows["correlation_id"].to_numpy(), calls["correlation_id"].to_numpy()]
    most = max(int(ids.max(initial=0)) for ids in frames)
    # Ids of one process close together where they are small, so that a table may hold them all.
    factor = min(most + 1, 1 << _CORRELATION_BITS)

    def key(process: Ints, ids: Ints) -> Ints:
        if len(processes) > 1:
            ids_of = each(process, lambda pids: np.searchsorted(processes, pids) * factor) + ids
        else:
            ids_of = ids
        sound = (ids > 0) & (ids < 1 << _CORRELATION_BITS)
        return ids_of if sound.all() else np.where(sound, ids_of, -1)

    return key(left, frames[0]), key(right, frames[1])


def _no_launches(length: int) -> pd.DataFrame:
    import numpy as np

    from nsysmodel.export.reader import categories

    none = np.full(length, -1, dtype=np.int64)
    return conform(
        "launches",
        {
            "launch_row": none,
            "launch_start_ns": none,
            "launch_end_ns": none,
            "launch_thread": np.zeros(length, dtype=np.int64),
            "launch_name": categories(none, []),
        },
    )


def nvtx_rows_of(run: Run, kernels: pd.DataFrame | None = None) -> Ints:
    """Row of `run.nvtx()` with the deepest push/pop range around each kernel's launch; −1 for none.

    A kernel of a CUDA graph belongs to the range in which its node was captured, where the export tells;
    otherwise to the range around the launch of the graph.
    """
    import numpy as np

    kernels = run.kernels() if kernels is None else kernels
    ranges = run.nvtx()
    launch = _launch_points(run, kernels)
    result = innermost(ranges[ranges["kind"] == "push_pop"], *launch)
    captured = _capture_points(run, kernels)
    if captured is not None:
        inside = innermost(ranges[ranges["kind"] == "push_pop"], *captured)
        result = np.where(inside >= 0, inside, result)
    return result


def nvtx_of(run: Run, kernels: pd.DataFrame | None = None) -> pd.Series[Any]:
    """Text of the deepest push/pop range around each kernel's launch, missing where there is none."""
    import pandas as pd

    kernels = run.kernels() if kernels is None else kernels
    rows = nvtx_rows_of(run, kernels)
    text = run.nvtx()["text"].array
    taken = text.take(rows, allow_fill=True) if len(text) else _missing(len(rows))
    return pd.Series(taken, index=kernels.index, name="nvtx")


def ranges_of(
    run: Run,
    kernels: pd.DataFrame | None,
    text_regex: str,
    *,
    threads: Literal["launching", "any"] = "launching",
) -> Ints:
    """Row of `run.nvtx()` with the outermost range whose text matches, for each kernel; −1 for none.

    The range must lie around the launching call. Kernels of a CUDA graph whose launch lies in no such
    range are looked up by the capture of their node.

    Args:
        run: the export.
        kernels: rows of `run.kernels()`, or of copies or memsets; all kernels where None.
        text_regex: regular expression, searched in the text of push/pop and start/end ranges.
        threads: `any` accepts ranges of other threads of the same process (autograd launches from its own).

    Raises:
        re.error: the expression is none.
    """
    import re

    import numpy as np

    kernels = run.kernels() if kernels is None else kernels
    pattern = re.compile(text_regex)
    ranges = run.nvtx()
    texts = [text for text in ranges["text"].cat.categories if pattern.search(str(text))]
    ranges = ranges[ranges["text"].isin(texts) & (ranges["kind"] != "mark")]
    result = outermost(ranges, *_launch_points(run, kernels), threads=threads)
    captured = _capture_points(run, kernels)
    if captured is not None:
        result = np.where(result >= 0, result, outermost(ranges, *captured, threads=threads))
    return result


Points = tuple["Ints", "Ints", "Ints"]
"""Thread key, start and end of what must lie inside a range; thread 0 for none."""


def _launch_points(run: Run, rows: pd.DataFrame) -> Points:
    found = run.launches() if rows is run.kernels() else launches(run, rows)
    return (
        found["launch_thread"].to_numpy(),
        found["launch_start_ns"].to_numpy(),
        found["launch_end_ns"].to_numpy(),
    )


def _capture_points(run: Run, rows: pd.DataFrame) -> Points | None:
    """Where the nodes of graphs were captured; None where nothing is known."""
    import numpy as np

    nodes = run.graph_nodes()
    if not len(nodes) or "graph_node_id" not in rows or not (rows["graph_node_id"] >= 0).any():
        return None
    made = _node_rows(nodes, rows["graph_node_id"].to_numpy(), rows["global_pid"].to_numpy())
    known = made >= 0
    at = np.where(known, made, 0)
    thread = np.where(known, nodes["global_tid"].to_numpy()[at], 0)
    start = nodes["start_ns"].to_numpy()[at]
    return thread, start, start


def _node_rows(nodes: pd.DataFrame, node: Ints, process: Ints) -> Ints:
    """Row of `nodes` at which each node was first captured, through every clone of it; −1 for none."""
    import numpy as np
    import pandas as pd

    first = nodes.drop_duplicates(["global_pid", "graph_node_id"])
    index = pd.MultiIndex.from_arrays([first["global_pid"], first["graph_node_id"]])
    rows = first.index.to_numpy()

    def find(process: Ints, node: Ints) -> Ints:
        at = index.get_indexer(pd.MultiIndex.from_arrays([process, node]))
        return np.where(at >= 0, rows[np.where(at >= 0, at, 0)], -1)

    original, owner = nodes["original_graph_node_id"].to_numpy(), nodes["global_pid"].to_numpy()
    parent = find(owner, original)
    parent = np.where(original >= 0, parent, -1)
    root = np.where(parent >= 0, parent, np.arange(len(nodes)))
    for _ in range(6):
        # Pointer doubling: six rounds follow chains of 64 clones, and a ring ends too.
        root = root[root]
    return np.where((found := find(process, node)) >= 0, root[np.where(found >= 0, found, 0)], -1)


def _missing(length: int) -> pd.Categorical:
    import numpy as np

    from nsysmodel.export.reader import categories

    return categories(np.full(length, -1, dtype=np.int64), [])
