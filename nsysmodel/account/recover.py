"""Recoverable time: what the steps would gain if one op ran at its target, given what runs beside it.

Shortening an op gains nothing where something else runs at the same time. So an op recovers at most the
time in which it alone is active, and at most its excess:

    R = max(0, min(measured − target, exclusive time))

The target is the floor; for an op bound by launches, launches × the fixed cost; for a collective its floor
beside the time that it waits for peers, which no kernel of this rank can shorten. Exclusive times of
different ops do not overlap: the values of all ops add up to at most the busy time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nsysmodel import intervals
from nsysmodel.account.types import KERNEL, Activity, Window, window_spans


@dataclass(frozen=True, slots=True)
class Recoverable:
    """One op, over all windows.

    Attributes:
        op: the op.
        total_ns, floor_total_ns: measured, and the target without waiting.
        exclusive_ns: time in which this op alone is active.
        recoverable_ns: gain if it ran at its target.
        recoverable_80_ns: gain if it ran at 80 % of the target's rate.
        ceiling: how many times faster the steps would be at most, T / (T − R).
    """

    op: str
    total_ns: int
    floor_total_ns: int
    exclusive_ns: int
    recoverable_ns: int
    recoverable_80_ns: int
    ceiling: float


def recoverable(
    activity: Activity,
    windows: Sequence[Window],
    op_labels: Sequence[str],
    floor_total_ns: Mapping[str, int | None],
    waiting_total_ns: Mapping[str, int] | None = None,
) -> tuple[Recoverable, ...]:
    """Ops with a judged target, ranked by what the steps would gain.

    Args:
        activity: everything that ran on the device.
        windows: the windows of the used steps.
        op_labels: the ops that `activity.op` indexes.
        floor_total_ns: target of each op over all windows; None where it was not judged.
        waiting_total_ns: time of an op that is not its own to shorten: waiting for peers.
    """
    pieces = intervals.clip(activity.spans, window_spans(windows))
    # Group 0 is everything that no op claims: it hides the ops that it overlaps with.
    group = np.where(activity.kind == KERNEL, activity.op, np.int32(-1))[pieces.part_of] + np.int32(1)
    total_by = np.zeros(len(op_labels) + 1, dtype=np.int64)
    np.add.at(total_by, group, pieces.end - pieces.start)
    measured = total_by[1:]
    alone = intervals.exclusive(pieces.start, pieces.end, group, groups=len(op_labels) + 1)[1:].tolist()
    whole = sum(window.duration_ns for window in windows)
    rows = []
    for code, label in enumerate(op_labels):
        floor, total = floor_total_ns.get(label), int(measured[code])
        if floor is None or not total:
            continue
        own = total - (waiting_total_ns or {}).get(label, 0)
        gain, gain_80 = (max(0, min(own - at, alone[code])) for at in (floor, -(-floor * 5 // 4)))
        rows.append(Recoverable(label, total, floor, alone[code], gain, gain_80, ceiling(whole, gain)))
    return tuple(sorted(rows, key=lambda row: (-row.recoverable_ns, row.op)))


def ceiling(total_ns: int, recoverable_ns: int) -> float:
    """How many times faster the steps would be: T / (T − R); infinite if nothing were left.

    >>> ceiling(1_000, 200)
    1.25
    """
    rest = total_ns - recoverable_ns
    return total_ns / rest if rest > 0 else float("inf")
