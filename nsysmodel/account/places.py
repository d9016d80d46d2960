"""Places: where in the step the device idles again and again, and a sentence that says why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pandas as pd

from nsysmodel import intervals, units
from nsysmodel.account import causes as rules
from nsysmodel.account.build import BLOCKING_COPY, name_matches
from nsysmodel.account.causes import Neighbours
from nsysmodel.account.pieces import CausePieces, Shares
from nsysmodel.account.types import Activity
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
    causes: CausePieces,
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
        causes: the pieces of the whole gaps.
        op_labels, names: texts for `activity.op` and `activity.name`.
        api_calls: what the host did.
    """
    if parts.start.size == 0:
        return ()
    texts = [*op_labels, *names, NEXT_STEP, START, END]
    after = _labels(activity, around.before[parts.part_of], len(op_labels), len(texts) - 2)
    before = _labels(activity, around.after[parts.part_of], len(op_labels), len(texts) - 1)
    # The next step's first activity ends a window; a gap that ends at it is the idle time between steps.
    at_edge = parts.end == windows.end[parts.within]
    before = np.where(at_edge & (around.after[parts.part_of] >= 0), len(texts) - 3, before)
    shares = Shares(causes, around.before.size)
    key = (after * len(texts) + before) * len(GAP_CAUSES) + shares.main()[parts.part_of]
    place, found = pd.factorize(key, sort=True)
    total = np.zeros(len(found), dtype=np.int64)
    np.add.at(total, place, parts.end - parts.start)
    largest = np.lexsort((np.arange(total.size), -total))[:MOST_PLACES]
    host = _Host(activity, api_calls)
    result = []
    for code in largest.tolist():
        mine = np.flatnonzero(place == code)
        pair, cause = divmod(int(found[code]), len(GAP_CAUSES))
        gap = parts.part_of[mine]
        length = parts.end[mine] - parts.start[mine]
        result.append(
            GapPlace(
                after=texts[pair // len(texts)],
                before=texts[pair % len(texts)],
                cause=GAP_CAUSES[cause],
                count=int(mine.size),
                total_ns=int(total[code]),
                median_ns=_median(length),
                explanation=_explain(
                    activity, parts.start[mine], parts.end[mine], shares.of(gap), around, gap, host
                ),
            )
        )
    return tuple(result)


def _labels(activity: Activity, rows: Ints, ops: int, missing: int) -> Ints:
    """Index into the texts for each row: its op, else its name; `missing` where there is no row."""
    if len(activity) == 0:
        return np.full(rows.size, missing, dtype=np.int64)
    at = np.maximum(rows, 0)
    op = activity.op[at].astype(np.int64)
    return np.where(rows < 0, missing, np.where(op >= 0, op, activity.name[at] + ops))


def _median(values: Ints) -> int:
    """Lower median."""
    return int(np.sort(values)[(values.size - 1) // 2])


class _Host:
    """What the launching threads did, looked up by time."""

    def __init__(self, activity: Activity, api_calls: pd.DataFrame) -> None:
        self.activity = activity
        self.start = api_calls["start_ns"].to_numpy(np.int64)
        self.end = api_calls["end_ns"].to_numpy(np.int64)
        self.thread = api_calls["global_tid"].to_numpy(np.int64)
        self.name = api_calls["name"]

    def busiest(self, spans: Spans, threads: Ints, pattern: str) -> str:
        """The API call of this pattern that took most of these times, empty where there is none."""
        wanted = name_matches(self.name, pattern) & np.isin(self.thread, threads)
        rows = np.flatnonzero(wanted)
        if rows.size == 0 or spans.start.size == 0:
            return ""
        merged = intervals.union(spans.start, spans.end)
        taken = intervals.covered(self.start[rows], self.end[rows], merged)
        if not taken.any():
            return ""
        by_name: dict[str, int] = {}
        hit = rows[taken > 0]
        for name, time in zip(self.name.iloc[hit].astype(str), taken[taken > 0].tolist(), strict=True):
            by_name[name] = by_name.get(name, 0) + time
        return max(sorted(by_name), key=lambda name: by_name[name])


def _explain(
    activity: Activity,
    start: Ints,
    end: Ints,
    by_cause: Ints,
    around: Neighbours,
    gap: Ints,
    host: _Host,
) -> str:
    """What happened during these gaps, with median times."""
    row = around.after[gap]
    known = row >= 0
    threads = np.unique(activity.launch_thread[row[known]]) if known.any() else np.empty(0, np.int64)
    median = [_median(by_cause[:, code]) for code in range(len(GAP_CAUSES))]
    said = []
    if median[rules.PROFILER]:
        said.append(f"the profiler's own work for {units.ns(median[rules.PROFILER])}")
    if median[rules.SYNC]:
        call = host.busiest(Spans(start, end), threads, f"{rules.WAITING}|{BLOCKING_COPY}")
        said.append(f"host in {call or 'a synchronise call'} for {units.ns(median[rules.SYNC])}")
    if median[rules.LAUNCH_STARVED]:
        late = _median(np.maximum(activity.launch_start_ns[row[known]] - start[known], 0))
        call = host.busiest(Spans(start, end), threads, "Launch|Memcpy|Memset")
        what = f"{call} came {units.ns(late)} after the device ran dry" if call else "the launch came late"
        said.append(f"{units.ns(median[rules.LAUNCH_STARVED])} of launch ({what})")
    if median[rules.DEPENDENCY]:
        said.append(f"{_dependency(activity, around, gap)} for {units.ns(median[rules.DEPENDENCY])}")
    if median[rules.INSIDE_GRAPH]:
        said.append(f"between nodes of one CUDA graph for {units.ns(median[rules.INSIDE_GRAPH])}")
    if median[rules.UNKNOWN]:
        said.append(f"no launch call is recorded for what ended it ({units.ns(median[rules.UNKNOWN])})")
    return ", then ".join(said)


def _dependency(activity: Activity, around: Neighbours, gap: Ints) -> str:
    """What something that was launched in time can have waited for."""
    before, after = around.before[gap], around.after[gap]
    both = (before >= 0) & (after >= 0)
    if activity.in_graph[after[both]].all() and both.any():
        return "launched in time, a CUDA graph starts here"
    same = activity.stream[before[both]] == activity.stream[after[both]]
    if same.all():
        return "launched in time, waited behind the kernel before it on its stream"
    return "launched in time, waited for another stream or an event"
