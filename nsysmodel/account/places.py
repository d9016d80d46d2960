"""Places: where in the step the device idles again and again, and a sentence that says why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pandas as pd

from nsysmodel import units
from nsysmodel.account import causes as rules
from nsysmodel.account.build import BLOCKING_COPY
from nsysmodel.account.causes import Neighbours
from nsysmodel.account.host_calls import HostCalls
from nsysmodel.account.launched import lower_median
from nsysmodel.account.pieces import Causes, Shares
from nsysmodel.account.types import Activity, Codes, Rows, index_type
from nsysmodel.export.reader import distinct, is_one
from nsysmodel.intervals import Ints, Pieces, Spans
from nsysmodel.result import GAP_CAUSES, GapPlace

MOST_PLACES: Final = 20
NEXT_STEP: Final = "next step"
START: Final = "start of the export"
END: Final = "end of the export"


def find_places(
    activity: Activity,
    parts: Pieces,
    around: Neighbours,
    windows: Spans,
    shares: Shares,
    op_labels: Sequence[str],
    names: Sequence[str],
    api_calls: pd.DataFrame,
) -> tuple[GapPlace, ...]:
    """The places of the most idle time, largest first.

    Args:
        activity: everything that ran on the device.
        parts: the gaps clipped to the windows.
        around: neighbours of each whole gap.
        windows: the windows.
        shares: the causes of the whole gaps.
        op_labels, names: texts for `activity.op` and `activity.name`.
        api_calls: what the host did.
    """
    if parts.start.size == 0:
        return ()
    texts = [*op_labels, *names, NEXT_STEP, START, END]
    key = _keys(activity, parts, around, windows, shares.main(), len(op_labels), len(texts))
    length, uncut = parts.end - parts.start, shares.are_whole(parts)
    found, place, total = _totals(key, length, len(texts) ** 2 * len(GAP_CAUSES))
    largest = np.lexsort((found, -total))[:MOST_PLACES]
    host = HostCalls(activity, api_calls)
    result = []
    # One byte a part, as all of them are searched for each place.
    number = np.full(found.size, -1, dtype=np.int8)
    number[largest] = np.arange(largest.size)
    shown = number[place]
    for rank, code in enumerate(largest.tolist()):
        mine = np.flatnonzero(shown == rank)
        pair, cause = divmod(int(found[code]), len(GAP_CAUSES))
        gap, middle = parts.part_of[mine], lower_median(length[mine])
        median = _medians(shares, gap, cause, middle if uncut else None)
        result.append(
            GapPlace(
                after=texts[pair // len(texts)],
                before=texts[pair % len(texts)],
                cause=GAP_CAUSES[cause],
                count=int(mine.size),
                total_ns=int(total[code]),
                median_ns=middle,
                explanation=_explain(activity, parts, mine, median, around, host),
            )
        )
    return tuple(result)


def _keys(
    activity: Activity,
    parts: Pieces,
    around: Neighbours,
    windows: Spans,
    cause: Causes,
    ops: int,
    texts: int,
) -> Rows:
    """For each part of a gap one number for the texts before and after it, and its cause."""
    wide = index_type(texts**2 * len(GAP_CAUSES))
    key: Rows = _labels(activity, around.before[parts.part_of], ops, texts - 2).astype(wide, copy=False)
    key *= texts
    rows = around.after[parts.part_of]
    before = _labels(activity, rows, ops, texts - 1)
    # The next step's first activity ends a window; a gap that ends at it is the idle time between steps.
    at_edge = parts.end == windows.end[parts.within]
    before[at_edge & (rows >= 0)] = texts - 3
    key += before
    key *= len(GAP_CAUSES)
    key += cause[parts.part_of]
    return key


def _totals(key: Rows, length: Ints, keys: int) -> tuple[Ints, Rows, Ints]:
    """The keys that occur, ascending, the place of each part's key among them, and its total length."""
    place: Rows
    if keys > _TABLE:
        place, found = pd.factorize(key, sort=True)
    else:
        number = np.zeros(keys, dtype=np.int32)
        number[key] = 1
        found = np.flatnonzero(number > 0)
        number[found] = np.arange(found.size)
        place = number[key]
    total = np.zeros(len(found), dtype=np.int64)
    np.add.at(total, place, length)
    return np.asarray(found, dtype=np.int64), place, total


_TABLE = 1 << 22
"""A table of all keys is used up to this many of them."""


def _labels(activity: Activity, rows: Rows, ops: int, missing: int) -> Codes:
    """Index into the texts for each row: its op, else its name; `missing` where there is no row."""
    if len(activity) == 0:
        return np.full(rows.size, missing, dtype=np.int32)
    label: Codes = activity.name[rows]
    label += ops
    if ops:
        op = activity.op[rows]
        label = np.where(op >= 0, op, label)
    label[rows < 0] = missing
    return label


def _medians(shares: Shares, gaps: Ints, main: int, whole: int | None) -> list[int]:
    """Lower median of the time that each cause has of these gaps, whose main cause is `main`.

    `whole` is that of their lengths, where they are known to be of that cause alone.
    """
    if shares.whole:
        found = [0] * len(GAP_CAUSES)
        found[main] = lower_median(shares.length(gaps)) if whole is None else whole
        return found
    by_cause = shares.of(gaps)
    return [lower_median(by_cause[:, code]) for code in range(len(GAP_CAUSES))]


def _explain(
    activity: Activity,
    parts: Pieces,
    mine: Ints,
    median: Sequence[int],
    around: Neighbours,
    host: HostCalls,
) -> str:
    """What happened during these parts of gaps, whose causes have these median times."""
    gap = parts.part_of[mine]
    row = around.after[gap]
    known = row >= 0
    threads = _threads(activity, row if known.all() else row[known])
    said = []
    if median[rules.PROFILER]:
        said.append(f"the profiler's own work for {units.ns(median[rules.PROFILER])}")
    if median[rules.SYNC]:
        call = host.busiest(_spans(parts, mine), threads, f"{rules.WAITING}|{BLOCKING_COPY}")
        said.append(f"host in {call or 'a synchronise call'} for {units.ns(median[rules.SYNC])}")
    if median[rules.LAUNCH_STARVED]:
        spans = _spans(parts, mine)
        late = lower_median(np.maximum(activity.launch_start_ns[row[known]] - spans.start[known], 0))
        call = host.busiest(spans, threads, "Launch|Memcpy|Memset")
        what = f"{call} came {units.ns(late)} after the device ran dry" if call else "the launch came late"
        said.append(f"{units.ns(median[rules.LAUNCH_STARVED])} of launch ({what})")
    if median[rules.DEPENDENCY]:
        said.append(f"{_dependency(activity, around, gap)} for {units.ns(median[rules.DEPENDENCY])}")
    if median[rules.INSIDE_GRAPH]:
        said.append(f"between nodes of one CUDA graph for {units.ns(median[rules.INSIDE_GRAPH])}")
    if median[rules.UNKNOWN]:
        said.append(f"no launch call is recorded for what ended it ({units.ns(median[rules.UNKNOWN])})")
    return ", then ".join(said)


def _spans(parts: Pieces, mine: Ints) -> Spans:
    return Spans(parts.start[mine], parts.end[mine])


def _threads(activity: Activity, rows: Ints) -> Ints:
    """The threads that launched these activities."""
    threads = activity.launch_thread
    return distinct(threads[:1] if is_one(threads) and rows.size else threads[rows])


def _dependency(activity: Activity, around: Neighbours, gap: Ints) -> str:
    """What something that was launched in time can have waited for."""
    before, after = around.before[gap], around.after[gap]
    both = (before >= 0) & (after >= 0)
    if not both.all():
        before, after = before[both], after[both]
    stream = activity.stream
    if after.size and activity.in_graph[after[0]] and activity.in_graph[after].all():
        return "launched in time, a CUDA graph starts here"
    if is_one(stream) or (stream[before] == stream[after]).all():
        return "launched in time, waited behind the kernel before it on its stream"
    return "launched in time, waited for another stream or an event"
