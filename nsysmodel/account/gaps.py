"""Gaps: time in the windows in which the device runs nothing, by cause, by size and by place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from nsysmodel import intervals
from nsysmodel.account.causes import Neighbours, find_causes, host_waits
from nsysmodel.account.idle import idle
from nsysmodel.account.pieces import CausePieces, Causes, Shares
from nsysmodel.account.places import find_places
from nsysmodel.account.types import Activity, Window, index_type, window_spans
from nsysmodel.cutting import cut_set
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
    gaps, before, after = idle(activity, spans)
    around = Neighbours(before, after)
    causes = find_causes(activity, gaps, host_waits(api_calls, syncs), overhead, around)
    narrow = index_type(max(gaps.start.size, len(windows) * len(GAP_CAUSES)))
    parts = Pieces(*cut_set(*gaps, *spans, index=narrow))
    shares = Shares(causes, gaps.start.size)
    places = find_places(activity, parts, around, spans, shares, op_labels, names, api_calls)
    sizes = _by_size(parts)
    del around, before, after
    pieces = parts if shares.whole else intervals.clip(Spans(causes.start, causes.end), spans)
    cause = causes.cause[pieces.part_of]
    by_window = np.zeros((len(windows), len(GAP_CAUSES)), dtype=np.int64)
    np.add.at(by_window.reshape(-1), pieces.within * len(GAP_CAUSES) + cause, pieces.end - pieces.start)
    totals = by_window.sum(axis=0).tolist()
    return GapAccount(
        gaps=Gaps(dict(zip(GAP_CAUSES, totals, strict=True)), sizes, places),
        frame=_frame(pieces, cause, causes, shares.whole),
        by_window=by_window,
    )


def _by_size(parts: Pieces) -> dict[str, GapBucket]:
    """Count and time of the gaps of each size class."""
    length = parts.end - parts.start
    size = np.zeros(length.size, dtype=np.int8)
    for edge in SIZE_EDGES_NS:
        size += length >= edge
    total = np.zeros(len(GAP_SIZES), dtype=np.int64)
    np.add.at(total, size, length)
    count = np.bincount(size, minlength=len(GAP_SIZES))
    return {label: GapBucket(int(count[code]), int(total[code])) for code, label in enumerate(GAP_SIZES)}


def _frame(pieces: Pieces, cause: Causes, causes: CausePieces, whole: bool) -> pd.DataFrame:
    """The pieces as rows; `whole` where every gap is one piece, so that its number is that of the piece."""
    import pandas as pd

    return pd.DataFrame(
        {
            "start_ns": pieces.start,
            "end_ns": pieces.end,
            "cause": pd.Categorical.from_codes(cause, dtype=pd.CategoricalDtype(list(GAP_CAUSES))),
            "window": pieces.within,
            "gap": pieces.part_of if whole else causes.gap[pieces.part_of],
        },
        copy=False,
    )
