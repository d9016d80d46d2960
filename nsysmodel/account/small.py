"""Small kernels: the fixed cost of a launch, what small kernels add up to, what fusing them would save."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from nsysmodel.account.gaps import GapAccount
from nsysmodel.account.types import KERNEL, MEMSET, Activity, Bools, Rows, Window, index_type, window_spans
from nsysmodel.export.reader import is_one
from nsysmodel.grouping import codes_of, first_rows
from nsysmodel.intervals import Ints
from nsysmodel.result import GAP_CAUSES

SHORT_NS: Final = 10_000
FEWEST: Final = 10
LONGEST_T0_NS: Final = 4_000
"""An empty kernel takes 1 to 3 µs; where the shortest ones take longer than this, they do work."""
PERCENTILE: Final = 5
SMALL_FACTOR: Final = 3
MOST_RUNS: Final = 10


def t0_ns(durations: Ints) -> int | None:
    """The fixed cost of a kernel: the 5th percentile of the kernels shorter than 10 µs.

    None where fewer than ten kernels are that short, or the value is above 4 µs: then all of them do work,
    and the export does not show it.

    >>> t0_ns(np.array([1_400] * 5 + [2_000] * 15 + [800_000] * 80))
    1400
    """
    number = np.bincount(durations[(durations > 0) & (durations < SHORT_NS)])
    count = int(number.sum())
    if count < FEWEST:
        return None
    # The value at this place among all in order.
    found = int(np.searchsorted(np.cumsum(number), (count - 1) * PERCENTILE // 100, side="right"))
    return found if found <= LONGEST_T0_NS else None


@dataclass(frozen=True, slots=True)
class SmallRun:
    """Small kernels that follow each other on a stream, again and again.

    Attributes:
        labels: ops, or names where no op claims them, in order.
        count: how often the run occurs in the windows.
        total_ns: time of its kernels.
        saving_ns: upper bound of what one fused kernel in their place would save: Σ − longest.
    """

    labels: tuple[str, ...]
    count: int
    total_ns: int
    saving_ns: int


@dataclass(frozen=True, slots=True)
class SmallKernels:
    """Small kernels in the windows.

    Attributes:
        t0_ns: fixed cost of a kernel.
        limit_ns: a kernel of at most this is small.
        count, total_ns: small kernels over all windows.
        windows: number of windows, for means per step.
        fusion_saving_ns: upper bound over all runs.
        runs: the runs that would save most.
    """

    t0_ns: int
    limit_ns: int
    count: int
    total_ns: int
    windows: int
    fusion_saving_ns: int
    runs: tuple[SmallRun, ...]


def small_kernels(
    activity: Activity, windows: Sequence[Window], op_labels: Sequence[str], names: Sequence[str]
) -> SmallKernels | None:
    """What small kernels cost; None where the export does not show T0."""
    kernels = activity.kind == KERNEL
    duration = activity.end_ns - activity.start_ns
    cost = t0_ns(duration[kernels & (duration < SHORT_NS)].astype(np.int16))
    if cost is None:
        return None
    limit = SMALL_FACTOR * cost
    inside = started_in(activity.start_ns, windows)
    small = kernels & (duration <= limit) & (inside >= 0)
    total = int(duration[small].sum())
    del duration
    rows: Rows = np.flatnonzero(kernels).astype(index_type(kernels.size))
    if not is_one(activity.stream):
        # By stream; within a stream they stay in order of start.
        rows = rows[np.argsort(activity.stream[rows], kind="stable")]
    runs, saving = _runs(activity, rows, small, inside, [*op_labels, *names], len(op_labels))
    return SmallKernels(
        t0_ns=cost,
        limit_ns=limit,
        count=int(np.count_nonzero(small)),
        total_ns=total,
        windows=len(windows),
        fusion_saving_ns=saving,
        runs=runs,
    )


def started_in(start_ns: Ints, windows: Sequence[Window]) -> Rows:
    """Place of the window in which each activity starts; -1 for none."""
    spans = window_spans(windows)
    narrow = index_type(max(len(windows), start_ns.size))
    if not windows:
        return np.full(start_ns.size, -1, dtype=narrow)
    if not (start_ns[1:] >= start_ns[:-1]).all():
        last = np.searchsorted(spans.start, start_ns, side="right").astype(np.int64) - 1
        return np.where((last >= 0) & (start_ns < spans.end[np.maximum(last, 0)]), last, -1)
    first = np.searchsorted(start_ns, spans.start, side="left")
    behind = np.searchsorted(start_ns, spans.end, side="left")
    count = np.maximum(behind - first, 0)
    within = np.repeat(np.arange(len(windows), dtype=narrow), count)
    if within.size == start_ns.size:
        return within
    place = np.full(start_ns.size, -1, dtype=narrow)
    place[np.repeat(first - (np.cumsum(count) - count), count) + np.arange(within.size)] = within
    return place


def _runs(
    activity: Activity, kernels: Rows, small: Bools, inside: Rows, texts: Sequence[str], ops: int
) -> tuple[tuple[SmallRun, ...], int]:
    """Runs of small kernels that would save most, and the saving of all.

    A run is of neighbours on their stream, within one window. `kernels` are rows of the activity by stream,
    `small` and `inside` stand for all its rows.
    """
    place = np.flatnonzero(small[kernels])
    if place.size == 0:
        return (), 0
    rows = kernels[place]
    first = np.ones(rows.size, dtype=bool)
    first[1:] = np.diff(place) != 1
    for column in (activity.stream[rows], inside[rows]):
        first[1:] |= column[1:] != column[:-1]
    begin = np.flatnonzero(first)
    length = np.diff(np.append(begin, rows.size))
    duration = activity.end_ns[rows] - activity.start_ns[rows]
    total = np.add.reduceat(duration, begin)
    saving = total - np.maximum.reduceat(duration, begin)
    op = activity.op[rows]
    label = np.where(op >= 0, op, activity.name[rows] + ops)
    # Equal runs have equal length, ends and weighted sum of labels; good enough to group by.
    weight = np.arange(1, rows.size + 1, dtype=np.int64)
    weight -= np.repeat(begin, length)
    weight *= label
    mark = np.add.reduceat(weight, begin)
    del weight
    group = codes_of([length, label[begin], label[begin + length - 1], mark])
    example = first_rows(group, int(group.max()) + 1)
    values = np.zeros((3, example.size), dtype=np.int64)
    for column, added in zip(values, (np.ones_like(total), total, saving), strict=True):
        np.add.at(column, group, added)
    # A lone small kernel has no neighbour to fuse with, and saves nothing.
    best = np.lexsort((example, -values[2]))[:MOST_RUNS]
    found = []
    for code in best[values[2, best] > 0].tolist():
        at = int(example[code])
        named = tuple(texts[text] for text in label[begin[at] : begin[at] + length[at]].tolist())
        found.append(SmallRun(named, *values[:, code].tolist()))
    return tuple(found), int(saving.sum())


@dataclass(frozen=True, slots=True)
class LaunchCost:
    """What launching costs the windows.

    Attributes:
        starved_ns: idle time because the launch came late.
        launches: launch calls whose work starts in the windows.
        in_graphs: share of kernels in the windows that CUDA graphs run.
        graph_saving_ns: upper bound of what CUDA graphs would save: the part of `starved_ns` that a kernel or
            memset outside every graph ended. A late graph launch or a late copy of inputs stays late.
    """

    starved_ns: int
    launches: int
    in_graphs: float
    graph_saving_ns: int


def _different(ids: Ints) -> int:
    """How many different ids there are; most exports number calls in order, without large holes."""
    if not ids.size:
        return 0
    most = int(ids.max())
    if int(ids.min()) >= 0 and most < _TABLE_PER_ID * ids.size:
        seen = np.zeros(most + 1, dtype=np.bool_)
        seen[ids] = True
        return int(np.count_nonzero(seen))
    in_order = np.sort(ids)
    return int(np.count_nonzero(in_order[1:] != in_order[:-1])) + 1


_TABLE_PER_ID = 16
"""A table of all ids is used up to this many of its places for an id."""


def launch_cost(activity: Activity, windows: Sequence[Window], gaps: GapAccount) -> LaunchCost:
    """What launching costs, and the most that CUDA graphs could save of it."""
    inside = started_in(activity.start_ns, windows) >= 0
    starved = int(gaps.by_window[:, GAP_CAUSES.index("launch_starved")].sum())
    launched = activity.correlation_id[inside & (activity.correlation_id > 0)]
    kernels = activity.in_graph[inside & (activity.kind == KERNEL)]
    late = np.flatnonzero(gaps.frame["cause"] == "launch_starved")
    starts, ends = (gaps.frame[name].to_numpy(np.int64)[late] for name in ("start_ns", "end_ns"))
    after = np.searchsorted(activity.start_ns, ends, side="left")
    eager = ~activity.in_graph & ((activity.kind == KERNEL) | (activity.kind == MEMSET))
    saved = np.append(eager, False)[after]
    return LaunchCost(
        starved_ns=starved,
        launches=_different(launched),
        in_graphs=float(kernels.mean()) if kernels.size else 0.0,
        graph_saving_ns=int((ends - starts)[saved].sum()),
    )
