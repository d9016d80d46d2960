"""The waterfall: floor, excess, unmodeled, copies, gaps and overlap, which sum to the windows exactly.

    window = Σ floor + Σ excess + Σ unmodeled + Σ copies and memsets + Σ gaps − overlap

Everything is integer ns. Activities are clipped to the windows, so one that crosses an edge counts on each
side with the part that lies there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from nsysmodel import intervals
from nsysmodel.account.gaps import GapAccount
from nsysmodel.account.types import COPY, GRAPH, KERNEL, MEMSET, Activity, Codes, Window, window_spans
from nsysmodel.intervals import Ints, Pieces, Spans
from nsysmodel.result import GAP_CAUSES, WaterfallPart

GRAPH_LABEL = "CUDA graph traced as a whole"
NOT_JUDGED = "floor not judged"
CAUSE_LABELS: Mapping[str, str] = {
    "inside_graph": "gaps inside a CUDA graph",
    "launch_starved": "gaps: launched too late",
    "sync": "gaps: host waited for the device",
    "dependency": "gaps: waited for other work",
    "profiler": "gaps: profiler at work",
    "unknown": "gaps of unknown cause",
}


@dataclass(frozen=True, slots=True)
class Waterfall:
    """The account of all windows together and of each.

    Attributes:
        parts: the parts over all windows; their sum is `window_total_ns`.
        window_total_ns: sum of the windows' lengths.
        busy_ns: time in the windows in which anything ran.
        per_window: for each window, the value of each of `parts`; a row sums to that window's length.
        windows: the windows, in the order of `per_window`.
    """

    parts: tuple[WaterfallPart, ...]
    window_total_ns: int
    busy_ns: int
    per_window: tuple[tuple[int, ...], ...]
    windows: tuple[Window, ...]

    def of_window(self, place: int) -> tuple[WaterfallPart, ...]:
        """The parts of one window, by its place among the windows."""
        values = self.per_window[place]
        return tuple(replace(part, total_ns=value) for part, value in zip(self.parts, values, strict=True))

    def median_place(self) -> int | None:
        """Place of the window of median length (the lower one of two); None without windows."""
        if not self.windows:
            return None
        order = sorted(range(len(self.windows)), key=lambda place: self.windows[place].duration_ns)
        return order[(len(order) - 1) // 2]

    def median(self) -> tuple[WaterfallPart, ...]:
        """The parts of that window; empty without windows."""
        place = self.median_place()
        return self.of_window(place) if place is not None else ()


@dataclass(frozen=True, slots=True)
class _Row:
    """One part with its value in each window."""

    part: WaterfallPart
    values: Ints


def waterfall(
    activity: Activity,
    windows: Sequence[Window],
    op_labels: Sequence[str],
    floor_total_ns: Mapping[str, int | None],
    gaps: GapAccount | None = None,
) -> Waterfall:
    """Say where the time of the windows went.

    Args:
        activity: everything that ran on the device.
        windows: the windows of the used steps, sorted, without overlap.
        op_labels: the ops that `activity.op` indexes.
        floor_total_ns: floor of each op over all windows; None, or no entry, where it was not judged.
        gaps: the gaps of the same windows by cause; without, all idle time is of unknown cause.

    Raises:
        ValueError: windows overlap, or `gaps` belongs to other windows or another activity.
    """
    spans = window_spans(windows)
    count = len(windows)
    busy = _busy(activity, spans, count)
    pieces = intervals.clip(activity.spans, spans)
    length = pieces.end - pieces.start
    groups = _groups(activity, pieces)
    durations = spans.end - spans.start
    gap_values = _gap_values(gaps, durations - busy)
    overlap = busy - _sums(pieces.within, length, count)
    rows = _op_rows(activity, pieces, groups, op_labels, floor_total_ns, count)
    rows += _other_rows(pieces, length, groups, count)
    rows += [
        _row("gap", CAUSE_LABELS[cause], gap_values[:, code], cause=cause)
        for code, cause in enumerate(GAP_CAUSES)
        if gap_values[:, code].any()
    ]
    rows.append(_row("overlap", "overlap of concurrent activities", overlap))
    _check(rows, durations)
    return Waterfall(
        parts=tuple(row.part for row in rows),
        window_total_ns=int(durations.sum()),
        busy_ns=int(busy.sum()),
        per_window=tuple(tuple(values) for values in np.stack([row.values for row in rows], axis=1).tolist()),
        windows=tuple(windows),
    )


def _groups(activity: Activity, pieces: Pieces) -> Codes:
    """For each piece: its op, or -1 - kind where no op claims a kernel or it is none."""
    group = np.where((activity.kind == KERNEL) & (activity.op >= 0), activity.op, -1 - activity.kind)
    return np.asarray(group[pieces.part_of], dtype=np.int32)


def _busy(activity: Activity, windows: Spans, count: int) -> Ints:
    """Busy time of each window."""
    busy = intervals.clip(intervals.union(activity.start_ns, activity.end_ns), windows)
    return _sums(busy.within, busy.end - busy.start, count)


def _sums(place: Ints, values: Ints, count: int) -> Ints:
    total = np.zeros(count, dtype=np.int64)
    np.add.at(total, place, values)
    return total


def _gap_values(gaps: GapAccount | None, idle: Ints) -> Ints:
    """Gap time of each window by cause."""
    if gaps is None:
        values = np.zeros((idle.size, len(GAP_CAUSES)), dtype=np.int64)
        values[:, GAP_CAUSES.index("unknown")] = idle
        return values
    if gaps.by_window.shape[0] != idle.size or (gaps.by_window.sum(axis=1) != idle).any():
        raise ValueError("the gaps are those of other windows or of another activity")
    return gaps.by_window


def _row(kind: str, label: str, values: Ints, *, op: str | None = None, cause: str | None = None) -> _Row:
    part = WaterfallPart(kind, label, int(values.sum()), op, cause)  # type: ignore[arg-type]
    return _Row(part, values)


def _op_rows(
    activity: Activity,
    pieces: Pieces,
    groups: Codes,
    op_labels: Sequence[str],
    floor_total_ns: Mapping[str, int | None],
    count: int,
) -> list[_Row]:
    """Floors of the served ops in the order of the model, then their excesses, largest first."""
    floors: list[_Row] = []
    excesses: list[_Row] = []
    measured_by, started_by = _by_op(activity, pieces, groups, len(op_labels), count)
    for code in np.flatnonzero(measured_by.sum(axis=0)).tolist():
        op = op_labels[code]
        measured, started = measured_by[:, code], started_by[:, code]
        total = floor_total_ns.get(op)
        if total is None:
            excesses.append(_row("excess", f"{op} ({NOT_JUDGED})", measured, op=op))
            continue
        floor = _spread(int(total), started.tolist())
        floors.append(_row("floor", op, floor, op=op))
        excesses.append(_row("excess", op, measured - floor, op=op))
    excesses.sort(key=lambda row: (-row.part.total_ns, row.part.label))
    return floors + excesses


def _by_op(activity: Activity, pieces: Pieces, groups: Codes, ops: int, count: int) -> tuple[Ints, Ints]:
    """Time of each op in each window, and how many of its activities begin there."""
    total, started = np.zeros((2, count, ops), dtype=np.int64)
    if not ops:
        return total, started
    for low in range(0, groups.size, _AT_ONCE):
        some = slice(low, low + _AT_ONCE)
        group, start = groups[some], pieces.start[some]
        mine = slice(None) if (group >= 0).all() else np.flatnonzero(group >= 0)
        place = pieces.within[some][mine] * ops + group[mine]
        np.add.at(total.reshape(-1), place, (pieces.end[some] - start)[mine])
        begins = activity.start_ns[pieces.part_of[some][mine]] == start[mine]
        np.add.at(started.reshape(-1), place if begins.all() else place[begins], 1)
    return total, started


_AT_ONCE = 1 << 17
"""Pieces that are added at once: what is made of them fits into a cache."""


def _spread(total: int, shares: list[int]) -> Ints:
    """An integer total over windows in proportion to their shares; the parts sum to it exactly."""
    whole = sum(shares)
    if not whole:
        shares, whole = [1] * len(shares), len(shares)
    values, seen = [], 0
    for share in shares:
        values.append(total * (seen + share) // whole - total * seen // whole)
        seen += share
    return np.array(values, dtype=np.int64)


def _other_rows(pieces: Pieces, length: Ints, groups: Codes, count: int) -> list[_Row]:
    """Kernels that no op claims, graphs traced as a whole, copies and memsets."""
    free = groups < 0
    place = (
        pieces.within * KINDS - 1 - groups if free.all() else pieces.within[free] * KINDS - 1 - groups[free]
    )
    total = _sums(place, length if free.all() else length[free], count * KINDS).reshape(count, KINDS)
    rows = []
    for code, kind, label in (
        (KERNEL, "unmodeled", "unmodeled kernels"),
        (GRAPH, "unmodeled", GRAPH_LABEL),
        (COPY, "copy", "copies"),
        (MEMSET, "copy", "memsets"),
    ):
        if code == KERNEL or total[:, code].any():
            rows.append(_row(kind, label, total[:, code]))
    return rows


KINDS = 4
"""Kinds of activity."""


def _check(rows: Sequence[_Row], durations: Ints) -> None:
    """The identity, window by window: a report that does not add up must not exist."""
    if (np.sum([row.values for row in rows], axis=0) != durations).any():
        raise ValueError("the parts of the account do not sum to the windows")
