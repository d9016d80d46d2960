"""The median used step as bars: lanes per stream, gaps marked by cause, tiny bars merged."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from nsysmodel.account.types import Activity, Window
from nsysmodel.result import Timeline, TimelineBar

KINDS = ("kernel", "copy", "memset", "graph")
DRAWN = 2500
"""Bars of a timeline; beyond that neighbours of a lane are merged, finest first."""


def timeline_of(
    activity: Activity,
    names: Sequence[str],
    op_labels: Sequence[str],
    windows: Sequence[Window],
    gaps: pd.DataFrame,
) -> Timeline | None:
    """Bars of the window of median length (the lower one of two); None without windows."""
    if not windows:
        return None
    order = sorted(range(len(windows)), key=lambda place: windows[place].duration_ns)
    place = order[(len(order) - 1) // 2]
    window = windows[place]
    rows = np.flatnonzero((activity.start_ns < window.end_ns) & (activity.end_ns > window.start_ns))
    start = np.maximum(activity.start_ns[rows], window.start_ns) - window.start_ns
    end = np.minimum(activity.end_ns[rows], window.end_ns) - window.start_ns
    stream, kind, op = activity.stream[rows], activity.kind[rows], activity.op[rows]
    by_lane = np.lexsort((start, stream))
    group = _merged(start[by_lane], end[by_lane], stream[by_lane], window.duration_ns)
    bars = []
    for members in np.split(by_lane, np.flatnonzero(np.diff(group)) + 1) if len(by_lane) else []:
        longest = members[int((end[members] - start[members]).argmax())]
        code = int(op[longest])
        low = int(start[members].min())
        bars.append(
            TimelineBar(
                start_ns=low,
                duration_ns=int(end[members].max()) - low,
                lane=f"stream {int(stream[longest])}",
                label=names[int(activity.name[rows[longest]])],
                op=op_labels[code] if code >= 0 else None,
                kind=KINDS[int(kind[longest])],  # type: ignore[arg-type]
                merged=len(members),
            )
        )
    bars.sort(key=lambda bar: (bar.start_ns, bar.lane))
    return Timeline(window.index, window.duration_ns, (*bars, *_gap_bars(gaps, place, window)))


def _merged(start: np.ndarray, end: np.ndarray, lane: np.ndarray, window_ns: int) -> np.ndarray:
    """Group numbers: neighbours of a lane that are closer and shorter than a growing grain share one."""
    grain = 0
    count = len(start)
    while True:
        short = end - start <= grain
        joined = (lane[1:] == lane[:-1]) & (start[1:] - end[:-1] <= grain) & short[1:] & short[:-1]
        group: np.ndarray = np.concatenate(([0], np.cumsum(~joined))) if count else np.zeros(0, int)
        if not count or group[-1] < DRAWN or grain > window_ns:
            return group
        grain = max(window_ns // 4000, grain * 2)


def _gap_bars(gaps: pd.DataFrame, place: int, window: Window) -> list[TimelineBar]:
    """Gaps of the window, the longest ones first to be kept."""
    own = gaps[gaps["window"] == place]
    lengths = (own["end_ns"] - own["start_ns"]).sort_values(ascending=False, kind="stable")
    own = own.loc[lengths.index[: DRAWN // 5]].sort_values("start_ns")
    return [
        TimelineBar(
            start_ns=int(row["start_ns"]) - window.start_ns,
            duration_ns=int(row["end_ns"]) - int(row["start_ns"]),
            lane="gap",
            label=str(row["cause"]),
            op=None,
            kind="gap",
            cause=str(row["cause"]),
        )
        for row in own.to_dict("records")
    ]
