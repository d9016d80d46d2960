"""From the frames of an export to the activity of one process and device."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from nsysmodel.account.merging import Merge, ordered
from nsysmodel.account.types import COPY, GRAPH, KERNEL, MEMSET, Activity, Bools, Codes, Looked, Rows
from nsysmodel.export.joins import match
from nsysmodel.export.reader import is_one
from nsysmodel.intervals import Ints

BLOCKING_COPY = r"^(cudaMemcpy|cuMemcpy)(?!.*Async)"
"""Calls that copy and return only when the copy is done."""


def relabelled(activity: Activity, kernels: pd.DataFrame, op: Codes | Ints) -> Activity:
    """The same activity with the ops of its kernels, given for each row of `kernels`, -1 for none."""
    if is_one(op) and op[0] < 0:
        return replace(activity, op=np.broadcast_to(np.int32(-1), len(activity)))
    rows = np.flatnonzero(activity.kind == KERNEL)
    order = _time_order(kernels["start_ns"].to_numpy(np.int64), kernels["end_ns"].to_numpy(np.int64))
    ops = np.full(len(activity), -1, dtype=np.int32)
    ops[rows] = op if order is None else np.asarray(op)[order]
    return replace(activity, op=ops)


def _time_order(start: Ints, end: Ints) -> Ints | None:
    """Rows by start, then end; None where they are in that order."""
    return None if ordered(start, end) else np.lexsort((end, start))


def build_activity(
    kernels: pd.DataFrame,
    copies: pd.DataFrame,
    memsets: pd.DataFrame,
    graph_traces: pd.DataFrame,
    api_calls: pd.DataFrame,
    op: Codes | Ints | None = None,
    *,
    calls: Ints | None = None,
) -> tuple[Activity, tuple[str, ...]]:
    """Everything that one process ran on one device, and the list of names that `Activity.name` indexes.

    Args:
        kernels, copies, memsets, graph_traces: rows of this process and device, columns as in
            `export.columns`.
        api_calls: API calls of this process (rows of others do no harm: threads are told apart by key).
        op: for each row of `kernels`, the index of the op that claims it, -1 for none.
        calls: for each row of `kernels`, the row of `api_calls` that launched it, where it is known already.
    """
    frames = [kernels, copies, memsets, graph_traces]
    counts = [len(frame) for frame in frames]
    merged = Merge(_columns(frames, "start_ns", 0), _columns(frames, "end_ns", 0))
    codes, names = _names(frames)
    ops = [np.broadcast_to(np.int32(-1), count) for count in counts]
    if op is not None:
        ops[0] = np.asarray(op)
    kinds = [np.broadcast_to(np.int8(kind), count) for kind, count in zip(_KINDS, counts, strict=True)]
    kind = merged.of(kinds, np.int8)
    in_graph = merged.of(_split(_shared(frames), counts), np.bool_)
    nodes = merged.of(_columns(frames, "graph_node_id", -1))
    in_graph = in_graph | (nodes > 0) | (kind == GRAPH)
    del nodes
    rows = _calls(frames, api_calls, calls)
    ids = _columns(frames, "correlation_id", -1)
    launch = _launches(merged.of(rows, _narrow(rows)), api_calls)
    in_graph |= launch.graph
    return Activity(
        start_ns=merged.start,
        end_ns=merged.end,
        kind=kind,
        op=merged.of(ops, np.int32),
        stream=merged.of(_columns(frames, "stream", -1)),
        correlation_id=merged.of(ids, _narrow(ids)),
        name=merged.of(codes, np.int32),
        in_graph=in_graph,
        launch_start_ns=launch.start,
        launch_end_ns=launch.end,
        launch_thread=launch.thread,
        launch_blocks=launch.blocks,
    ), names


_KINDS = (KERNEL, COPY, MEMSET, GRAPH)


def _columns(frames: Sequence[pd.DataFrame], column: str, missing: int) -> list[Ints]:
    """One column of all frames."""
    return [
        frame[column].to_numpy(dtype=np.int64)
        if column in frame
        else np.broadcast_to(np.int64(missing), len(frame))
        for frame in frames
    ]


def _joined(frames: Sequence[pd.DataFrame], column: str, missing: int) -> Ints:
    """One column of all frames, one behind the other; one value for all rows stays one value."""
    parts = _columns(frames, column, missing)
    filled = [part for part in parts if len(part)]
    if filled and all(is_one(part) and part[0] == filled[0][0] for part in filled):
        return np.broadcast_to(filled[0][0], sum(map(len, filled)))
    return np.concatenate(parts)


def _narrow(parts: Sequence[Ints]) -> type[np.int32] | type[np.int64]:
    """The type of ids: those that fit into 32 bits take half the memory."""
    filled = [part for part in parts if len(part)]
    if all(map(is_one, filled)):
        return np.int64
    fits = all(int(ids.max()) <= np.iinfo(np.int32).max and int(ids.min()) >= -1 for ids in filled)
    return np.int32 if fits else np.int64


def _split(values: NDArray[Any], counts: Sequence[int]) -> list[NDArray[Any]]:
    return np.split(values, np.cumsum(counts[:-1]))


def _names(frames: Sequence[pd.DataFrame]) -> tuple[list[Ints], tuple[str, ...]]:
    """A code for each row of each frame and the text of each code."""
    kernels, copies, memsets, graphs = frames
    column = "short_name" if "short_name" in kernels else "name"
    kernel_codes, kernel_names = pd.factorize(kernels[column])
    copy_codes, copy_kinds = pd.factorize(copies["kind"])
    texts = [str(name) for name in kernel_names]
    texts += [f"copy {kind}" for kind in copy_kinds]
    texts += ["memset", "CUDA graph"]
    codes = [
        kernel_codes,
        copy_codes + len(kernel_names),
        np.full(len(memsets), len(texts) - 2),
        np.full(len(graphs), len(texts) - 1),
    ]
    return codes, tuple(texts)


def _calls(frames: Sequence[pd.DataFrame], api_calls: pd.DataFrame, known: Ints | None) -> list[Ints]:
    """For each row of each frame the row of the call that launched it, -1 for none."""
    kernels = match(frames[0], api_calls) if known is None else known
    return [kernels, *(match(frame, api_calls) for frame in frames[1:])]


class _Launches(NamedTuple):
    """The calls that launched activities: times, thread, whether they block, whether they launch graphs."""

    start: Ints | Looked
    end: Ints | Looked
    thread: Ints
    blocks: Bools
    graph: Bools


def _launches(row: Rows, api_calls: pd.DataFrame) -> _Launches:
    """The launching call of each activity, by its row in `api_calls`."""
    if len(api_calls) == 0:
        no = np.zeros(row.size, dtype=np.bool_)
        return _Launches(row, row, row, no, no)
    missing = row < 0
    every = not missing.any()
    start, end, thread = (
        api_calls[column].to_numpy(dtype=np.int64) for column in ("start_ns", "end_ns", "global_tid")
    )
    one = every and is_one(thread)
    thread = np.broadcast_to(thread[0], row.size) if one else Looked(thread, row)[:]

    def matching(pattern: str) -> Bools:
        hits = name_matches(api_calls["name"], pattern)
        if not hits.any():
            return np.zeros(row.size, dtype=np.bool_)
        return hits[row] if every else hits[row] & ~missing

    blocks, graph = matching(BLOCKING_COPY), matching(r"GraphLaunch")
    return _Launches(Looked(start, row), Looked(end, row), thread, blocks, graph)


def _shared(frames: Sequence[pd.DataFrame]) -> Bools:
    """Rows whose launch caused other rows too: only a graph launch does that."""
    ids = [frame["correlation_id"].to_numpy(np.int64) for frame in frames if len(frame)]
    if len(ids) <= 2 and all(map(_ascends, ids)):
        # No id more than once in either, and so at most twice in all.
        return np.zeros(sum(map(len, ids)), dtype=np.bool_)
    correlation, global_pid = _joined(frames, "correlation_id", -1), _joined(frames, "global_pid", 0)
    pid_code, known = (0, [0]) if is_one(global_pid) else pd.factorize(global_pid)
    key = np.maximum(correlation, 0) * max(len(known), 1) + pid_code
    if int(key.max(initial=0)) < _TABLE_PER_ROW * key.size:
        return np.asarray((np.bincount(key)[key] > MOST_OF_A_LAUNCH) & (correlation > 0))
    ordered = np.sort(key)
    many = pd.unique(ordered[2:][ordered[2:] == ordered[:-2]])
    return np.asarray(np.isin(key, many) & (correlation > 0))


MOST_OF_A_LAUNCH = 2
"""Rows that one launch call may cause without being that of a graph."""
_TABLE_PER_ROW = 4
"""A table of all keys is used up to this many of its places for a row."""


def _ascends(ids: Ints) -> bool:
    """Whether each id is larger than the one before it; negative ones are none."""
    known = ids if int(ids.min()) >= 0 else ids[ids >= 0]
    return bool((known[1:] > known[:-1]).all())


def name_matches(names: pd.Series, pattern: str) -> Bools:
    """Which names match a regular expression; each distinct name is searched once."""
    if isinstance(names.dtype, pd.CategoricalDtype):
        codes, texts = names.cat.codes.to_numpy(), names.cat.categories
    else:
        codes, texts = pd.factorize(names)
    hit = np.array([bool(re.search(pattern, str(text))) for text in texts] + [False])
    return np.asarray(hit[codes], dtype=np.bool_)
