"""Gaps: time in the windows in which the device runs nothing, by cause, by size and by place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from nsysmodel import intervals
from nsysmodel.account.causes import find_causes, host_waits, neighbours
from nsysmodel.account.pieces import CausePieces
from nsysmodel.account.places import find_places
from nsysmodel.account.types import Activity, Window, window_spans
from nsysmodel.intervals import Ints, Pieces, Spans
from nsysmodel.result import GAP_CAUSES, GAP_SIZES, GapBucket, Gaps

if TYPE_CHECKING:
    import pandas as pd

SIZE_EDGES_NS = (1_000, 5_000, 50_000, 500_000)
"""Upper edges of all size classes but the last; a gap of exactly 1 µs is in `1-5us`."""


@dataclass(frozen=True, slots=True)
class GapAccount:
    """The gaps of some windows.

    Attributes:
        gaps: the result that reports show.
        frame: one row per piece: `start_ns`, `end_ns`, `cause`, `window` (place among the windows), `gap`
            (pieces of one gap share the number).
        by_window: ns by window and cause, in the order of GAP_CAUSES.
    """

    gaps: Gaps
    frame: pd.DataFrame
    by_window: Ints


def find_gaps(
    activity: Activity,
    windows: Sequence[Window],
    op_labels: Sequence[str],
    api_calls: pd.DataFrame,
    syncs: pd.DataFrame,
    overhead: pd.DataFrame,
    names: Sequence[str] = (),
) -> GapAccount:
    """Find every gap of the windows and what caused it.

    Args:
        activity: everything that ran on the device, outside the windows too.
        windows: the windows of the used steps, sorted, without overlap.
        op_labels: the ops that `activity.op` indexes.
        api_calls, syncs, overhead: frames of this process, columns as in `export.columns`.
        names: the names that `activity.name` indexes, for the places.
    """
    spans = window_spans(windows)
    idle = _idle(activity, spans)
    waits = host_waits(api_calls, syncs)
    around = neighbours(activity, idle)
    causes = find_causes(activity, idle, waits, overhead, around)
    parts = intervals.clip(idle, spans)
    places = find_places(activity, parts, around, spans, causes, op_labels, names, api_calls)
    sizes = _by_size(parts)
    del idle, around, parts
    pieces = intervals.clip(Spans(causes.start, causes.end), spans)
    cause = causes.cause[pieces.part_of]
    by_window = np.zeros((len(windows), len(GAP_CAUSES)), dtype=np.int64)
    np.add.at(by_window.reshape(-1), pieces.within * len(GAP_CAUSES) + cause, pieces.end - pieces.start)
    totals = by_window.sum(axis=0).tolist()
    return GapAccount(
        gaps=Gaps(dict(zip(GAP_CAUSES, totals, strict=True)), sizes, places),
        frame=_frame(pieces, cause, causes),
        by_window=by_window,
    )


def _idle(activity: Activity, windows: Spans) -> Spans:
    """Whole gaps, from the earliest to the latest time that activity or windows reach."""
    busy = intervals.union(activity.start_ns, activity.end_ns)
    low = np.concatenate([busy.start[:1], windows.start[:1]])
    high = np.concatenate([busy.end[-1:], windows.end[-1:]])
    if low.size == 0:
        return busy
    extent = Spans(low.min(keepdims=True), high.max(keepdims=True))
    return intervals.complement(busy, extent).spans


def _by_size(parts: Pieces) -> dict[str, GapBucket]:
    """Count and time of the gaps of each size class."""
    length = parts.end - parts.start
    size = np.searchsorted(np.array(SIZE_EDGES_NS), length, side="right")
    return {
        label: GapBucket(int((size == code).sum()), int(length[size == code].sum()))
        for code, label in enumerate(GAP_SIZES)
    }


def _frame(pieces: Pieces, cause: Ints, causes: CausePieces) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(
        {
            "start_ns": pieces.start,
            "end_ns": pieces.end,
            "cause": pd.Categorical.from_codes(cause, dtype=pd.CategoricalDtype(list(GAP_CAUSES))),
            "window": pieces.within,
            "gap": causes.gap[pieces.part_of],
        }
    )
