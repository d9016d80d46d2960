"""Why the device ran dry: the causes of gaps. The rules are written down in `docs/account.md`.

Each gap is judged by what ended it: the next activity and the API call that launched it. A gap may be
split into pieces of different causes; the pieces of a gap always sum to the gap.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from nsysmodel import intervals
from nsysmodel.account.build import BLOCKING_COPY, name_matches
from nsysmodel.account.launched import Launches, judge_launches
from nsysmodel.account.pieces import CausePieces, join_small, whole_or_cut
from nsysmodel.account.types import Activity, Bools, Rows
from nsysmodel.export.joins import match
from nsysmodel.export.reader import distinct
from nsysmodel.intervals import Ints, Spans
from nsysmodel.result import GAP_CAUSES

if TYPE_CHECKING:
    import pandas as pd

INSIDE_GRAPH, LAUNCH_STARVED, SYNC, DEPENDENCY, PROFILER, UNKNOWN = range(len(GAP_CAUSES))

WAITING = r"Synchronize"
"""API calls in which the host waits for the device."""

_THREAD_BITS: Final = 0xFFFFFF


@dataclass(frozen=True, slots=True)
class HostWaits:
    """Time that host threads spent waiting for the device; thread -1 where the export does not say."""

    start_ns: Ints
    end_ns: Ints
    thread: Ints

    def of_thread(self, thread: int) -> Spans:
        """The set of waits that kept this thread, those of unknown threads included."""
        mine = (self.thread == thread) | (self.thread == -1)
        return intervals.union(self.start_ns[mine], self.end_ns[mine])


def host_waits(api_calls: pd.DataFrame, syncs: pd.DataFrame) -> HostWaits:
    """Synchronise and blocking copy calls, and recorded host waits (not those of streams for events)."""
    waiting = api_calls[name_matches(api_calls["name"], f"{WAITING}|{BLOCKING_COPY}")]
    host = syncs[~name_matches(syncs["kind"], "wait")]
    call = match(host, api_calls)
    thread = np.full(len(host), -1, dtype=np.int64)
    thread[call >= 0] = api_calls["global_tid"].to_numpy(np.int64)[call[call >= 0]]
    return HostWaits(
        np.concatenate([waiting["start_ns"].to_numpy(np.int64), host["start_ns"].to_numpy(np.int64)]),
        np.concatenate([waiting["end_ns"].to_numpy(np.int64), host["end_ns"].to_numpy(np.int64)]),
        np.concatenate([waiting["global_tid"].to_numpy(np.int64), thread]),
    )


class Neighbours(NamedTuple):
    """Rows of the activities before and after each gap; -1 for none."""

    before: Rows
    after: Rows


def neighbours(activity: Activity, gaps: Spans) -> Neighbours:
    """What ended last before each gap, and what started first after it.

    Of several that start together, the one that was launched first: it alone would have ended the gap.
    """
    rows = np.flatnonzero(activity.end_ns > activity.start_ns)
    if rows.size == 0:
        none = np.full(gaps.start.size, -1, dtype=np.int64)
        return Neighbours(none, none)
    by_end = rows[np.lexsort((activity.start_ns[rows], activity.end_ns[rows]))]
    launched = activity.launch_start_ns[rows]
    unknown_last = np.where(launched == -1, np.iinfo(np.int64).max, launched)
    by_start = rows[np.lexsort((unknown_last, activity.start_ns[rows]))]
    place = np.searchsorted(activity.end_ns[by_end], gaps.start, side="right") - 1
    before = np.where(place >= 0, by_end[np.maximum(place, 0)], -1)
    place = np.searchsorted(activity.start_ns[by_start], gaps.end, side="left")
    after = np.where(place < rows.size, by_start[np.minimum(place, rows.size - 1)], -1)
    return Neighbours(before, after)


def graph_runs(activity: Activity) -> Spans:
    """The set of times from the first to the last node of each graph launch."""
    rows = np.flatnonzero(activity.in_graph & (activity.correlation_id > 0))
    if rows.size == 0:
        return Spans(np.empty(0, np.int64), np.empty(0, np.int64))
    _, launch = np.unique(activity.correlation_id[rows], return_inverse=True)
    order = np.argsort(launch, kind="stable")
    edges = np.flatnonzero(np.diff(launch[order], prepend=-1))
    first = np.minimum.reduceat(activity.start_ns[rows][order], edges)
    last = np.maximum.reduceat(activity.end_ns[rows][order], edges)
    return intervals.union(first, last)


def find_causes(
    activity: Activity,
    gaps: Spans,
    waits: HostWaits,
    overhead: pd.DataFrame,
    around: Neighbours | None = None,
) -> CausePieces:
    """Cut gaps (sorted, disjoint, no activity inside) into pieces by cause.

    Most gaps lie in no wait and no overhead and so have one cause; only the others are cut.
    `around` is what `neighbours` gives of them, where that is known already.
    """
    after = (neighbours(activity, gaps) if around is None else around).after
    inside = _inside(activity, gaps)
    launch = judge_launches(activity, gaps, after, inside)
    cause = np.full(gaps.start.size, DEPENDENCY, dtype=np.int8)
    for code, mask in (
        (LAUNCH_STARVED, launch.starved),
        (SYNC, launch.blocked),
        (UNKNOWN, launch.unknown),
        (INSIDE_GRAPH, inside),
    ):
        cause[mask] = code
    mixed = launch.starved & (touched(gaps, waits.start_ns, waits.end_ns) | (launch.late_ns < gaps.end))
    mixed |= touched(gaps, *(overhead[name].to_numpy(np.int64) for name in ("start_ns", "end_ns")))
    rows = np.flatnonzero(mixed)
    some, launch = _take(gaps, rows), launch.take(rows)
    cut = join_small(_cut(some, _sets(activity, some, inside[rows], launch, waits, overhead)), rows.size)
    return whole_or_cut(gaps, cause, rows, cut)


def touched(gaps: Spans, start: Ints, end: Ints) -> Bools:
    """Gaps that any of the spans reaches into."""
    change = np.zeros(gaps.start.size + 1, dtype=np.int64)
    first = np.searchsorted(gaps.end, start, side="right")
    behind = np.maximum(np.searchsorted(gaps.start, end, side="left"), first)
    np.add.at(change, first, 1)
    np.subtract.at(change, behind, 1)
    return np.asarray(np.cumsum(change)[:-1] > 0)


def _inside(activity: Activity, gaps: Spans) -> Bools:
    """Gaps that lie between nodes of one graph launch."""
    runs = graph_runs(activity)
    if not runs.start.size:
        return np.zeros(gaps.start.size, dtype=np.bool_)
    return np.asarray(intervals.covered(gaps.start, gaps.end, runs) == gaps.end - gaps.start)


def _sets(
    activity: Activity,
    gaps: Spans,
    inside: Bools,
    launch: Launches,
    waits: HostWaits,
    overhead: pd.DataFrame,
) -> dict[int, Spans]:
    """The time of the gaps by cause."""
    outside = _take(gaps, ~inside)
    profiler = intervals.intersect(_overhead(activity, outside, overhead), outside)
    sync = intervals.subtract(_synchronised(gaps, launch, waits), profiler)
    starved = _take(gaps, launch.starved)
    waited = Spans(launch.late_ns[launch.starved], gaps.end[launch.starved])
    in_time = ~(inside | launch.starved | launch.blocked | launch.unknown)
    tails = intervals.union(waited.start, waited.end)
    claimed = _merge(profiler, sync, tails)
    return {
        INSIDE_GRAPH: _take(gaps, inside),
        LAUNCH_STARVED: intervals.subtract(starved, claimed),
        SYNC: sync,
        DEPENDENCY: intervals.subtract(_merge(_take(gaps, in_time), tails), profiler),
        PROFILER: profiler,
        UNKNOWN: intervals.subtract(_take(gaps, launch.unknown), profiler),
    }


def _take(gaps: Spans, rows: Bools | Ints) -> Spans:
    return Spans(gaps.start[rows], gaps.end[rows])


def _merge(*sets: Spans) -> Spans:
    """The union of sets."""
    return intervals.union(np.concatenate([s.start for s in sets]), np.concatenate([s.end for s in sets]))


def _synchronised(gaps: Spans, launch: Launches, waits: HostWaits) -> Spans:
    """Parts of gaps in which the thread that launched next sat in a wait before it launched."""
    parts = [_take(gaps, launch.blocked)]
    host_end = np.minimum(launch.start, gaps.end)
    for thread in np.unique(launch.thread[launch.starved]):
        mine = launch.starved & (launch.thread == thread) & (host_end > gaps.start)
        host = Spans(gaps.start[mine], host_end[mine])
        parts.append(intervals.intersect(waits.of_thread(int(thread)), host))
    return _merge(*parts)


def _overhead(activity: Activity, gaps: Spans, overhead: pd.DataFrame) -> Spans:
    """Profiler work that kept the device idle.

    On a thread that launches work every overlap counts. On another thread (the profiler flushes its
    buffers on its own) only where gap and overhead coincide: each covers at least half of the other.
    """
    start = overhead["start_ns"].to_numpy(np.int64)
    end = overhead["end_ns"].to_numpy(np.int64)
    thread = np.zeros(start.size, dtype=np.int64)
    if "global_tid" in overhead:
        thread = overhead["global_tid"].to_numpy(np.int64)
    launching = distinct(activity.launch_thread)
    launching = launching[launching > 0]
    ours = np.isin(thread & ~_THREAD_BITS, launching & ~_THREAD_BITS) | (thread <= 0) | (launching.size == 0)
    direct = ours & (np.isin(thread, launching) | (thread <= 0) | (launching.size == 0))
    foreign = Spans(start[ours & ~direct], end[ours & ~direct])
    cut = intervals.clip(foreign, gaps)
    common = 2 * (cut.end - cut.start)
    both = (common >= (foreign.end - foreign.start)[cut.part_of]) & (
        common >= (gaps.end - gaps.start)[cut.within]
    )
    return intervals.union(
        np.concatenate([start[direct], cut.start[both]]), np.concatenate([end[direct], cut.end[both]])
    )


def _cut(gaps: Spans, sets: dict[int, Spans]) -> CausePieces:
    """The sets as pieces of the gaps, sorted by time."""
    columns: tuple[list[Any], ...] = ([], [], [], [])
    for cause in sets:
        piece = intervals.clip(sets[cause], gaps)
        code = np.full(piece.start.size, cause, dtype=np.int8)
        for column, values in zip(columns, (piece.start, piece.end, piece.within, code), strict=True):
            column.append(values)
    start, end, gap, causes = (np.concatenate(column) for column in columns)
    order = np.argsort(start, kind="stable")
    return CausePieces(start[order], end[order], gap[order], causes[order])
