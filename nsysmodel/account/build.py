"""From the frames of an export to the activity of one process and device."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from nsysmodel.account.types import COPY, GRAPH, KERNEL, MEMSET, Activity, Bools, Codes
from nsysmodel.export.joins import match
from nsysmodel.export.reader import is_one
from nsysmodel.intervals import Ints

BLOCKING_COPY = r"^(cudaMemcpy|cuMemcpy)(?!.*Async)"
"""Calls that copy and return only when the copy is done."""


def relabelled(activity: Activity, kernels: pd.DataFrame, op: Codes | Ints) -> Activity:
    """The same activity with the ops of its kernels, given for each row of `kernels`, -1 for none."""
    rows = np.flatnonzero(activity.kind == KERNEL)
    order = _time_order(kernels["start_ns"].to_numpy(np.int64), kernels["end_ns"].to_numpy(np.int64))
    ops = np.full(len(activity), -1, dtype=np.int32)
    ops[rows] = op if order is None else np.asarray(op)[order]
    return replace(activity, op=ops)


def _time_order(start: Ints, end: Ints) -> Ints | None:
    """Rows by start, then end; None where they are in that order."""
    if _ordered(start, end):
        return None
    # A few sorted runs are merged quickly by start alone; only where ends disagree are both sorted.
    order = np.argsort(start, kind="stable")
    return order if _ordered(start[order], end[order]) else np.lexsort((end, start))


def _ordered(start: Ints, end: Ints) -> bool:
    later = start[1:] > start[:-1]
    return bool((later | ((start[1:] == start[:-1]) & (end[1:] >= end[:-1]))).all())


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
    kinds = [KERNEL, COPY, MEMSET, GRAPH]
    counts = [len(frame) for frame in frames]
    codes, names = _names(frames)
    correlation = _joined(frames, "correlation_id", -1)
    global_pid = _joined(frames, "global_pid", 0)
    launch_start, launch_end, thread, blocks, graph_call = _launches(frames, api_calls, calls)
    kind = np.repeat(np.array(kinds, dtype=np.int8), counts)
    node = _joined(frames, "graph_node_id", -1)
    ops = np.full(sum(counts), -1, dtype=np.int32)
    if op is not None:
        ops[: counts[0]] = op
    start, end = _joined(frames, "start_ns", 0), _joined(frames, "end_ns", 0)
    order = _time_order(start, end)

    def sort(values: NDArray[Any]) -> NDArray[Any]:
        return values if order is None or is_one(values) else values[order]

    return Activity(
        start_ns=sort(start),
        end_ns=sort(end),
        kind=sort(kind),
        op=sort(ops),
        stream=sort(_joined(frames, "stream", -1)),
        correlation_id=sort(correlation),
        name=sort(codes),
        bytes=sort(_joined(frames, "bytes", 0)),
        in_graph=sort((node > 0) | (kind == GRAPH) | graph_call | _shared(correlation, global_pid)),
        launch_start_ns=sort(launch_start),
        launch_end_ns=sort(launch_end),
        launch_thread=sort(thread),
        launch_blocks=sort(blocks),
    ), names


def _joined(frames: Sequence[pd.DataFrame], column: str, missing: int) -> Ints:
    """One column of all frames, one behind the other."""
    parts = [
        frame[column].to_numpy(dtype=np.int64)
        if column in frame
        else np.broadcast_to(np.int64(missing), len(frame))
        for frame in frames
    ]
    return _in_a_row(parts)


def _in_a_row(parts: Sequence[Ints]) -> Ints:
    """Parts one behind the other; one value for all rows stays one value."""
    filled = [part for part in parts if len(part)]
    if filled and all(is_one(part) and part[0] == filled[0][0] for part in filled):
        return np.broadcast_to(filled[0][0], sum(map(len, filled)))
    return np.concatenate(parts)


def _names(frames: Sequence[pd.DataFrame]) -> tuple[Codes, tuple[str, ...]]:
    """A code for each row and the text of each code."""
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
    return np.concatenate(codes).astype(np.int32), tuple(texts)


def _launches(
    frames: Sequence[pd.DataFrame], api_calls: pd.DataFrame, calls: Ints | None
) -> tuple[Ints, Ints, Ints, Bools, Bools]:
    """Start, end, thread of the call that launched each row; whether it blocks, whether a graph's."""
    kernels = match(frames[0], api_calls) if calls is None else calls
    row = np.concatenate([kernels, *(match(frame, api_calls) for frame in frames[1:])])
    if len(api_calls) == 0:
        no = np.zeros(row.size, dtype=np.bool_)
        return row, row, row, no, no
    found = row >= 0
    at = np.where(found, row, 0)
    columns = ("start_ns", "end_ns", "global_tid")
    start, end, thread = (_taken(api_calls[column].to_numpy(dtype=np.int64), at, found) for column in columns)
    blocks = name_matches(api_calls["name"], BLOCKING_COPY)
    graph = name_matches(api_calls["name"], r"GraphLaunch")
    return start, end, thread, found & blocks[at], found & graph[at]


def _taken(values: Ints, at: Ints, found: Bools) -> Ints:
    if not found.all():
        return np.where(found, values[at], -1)
    return np.broadcast_to(values[0], at.size) if is_one(values) else values[at]


def _shared(correlation: Ints, global_pid: Ints) -> Bools:
    """Rows whose launch caused other rows too: only a graph launch does that."""
    pid_code, known = pd.factorize(global_pid)
    key = np.maximum(correlation, 0) * max(len(known), 1) + pid_code
    ordered = np.sort(key)
    many = pd.unique(ordered[2:][ordered[2:] == ordered[:-2]])
    return np.isin(key, many) & (correlation > 0)


def name_matches(names: pd.Series, pattern: str) -> Bools:
    """Which names match a regular expression; each distinct name is searched once."""
    codes, texts = pd.factorize(names)
    hit = np.array([bool(re.search(pattern, str(text))) for text in texts] + [False])
    return np.asarray(hit[codes], dtype=np.bool_)
