"""Collectives: how much of their time moves data, how much waits for peers, how much nothing hides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from nsysmodel import intervals
from nsysmodel.account.small import started_in
from nsysmodel.account.types import KERNEL, Activity, Window, window_spans
from nsysmodel.export.reader import is_one
from nsysmodel.intervals import Ints, Spans
from nsysmodel.result_account import WaitSource

FEWEST_STEPS: Final = 3
"""With fewer steps the shortest time at a place says nothing about waiting."""
ABSENT: Final = -1
"""Duration of an instance that a peer does not have."""


class Waits(NamedTuple):
    """Time of each instance, split: the two sum to its duration."""

    transfer_ns: Ints
    wait_ns: Ints


def waits_by_ranks(durations: Sequence[Ints], rank: int = 0) -> Waits:
    """Split the instances of one rank by those of all.

    A collective ends everywhere when its last rank has come. The rank that came last waited for nobody, so
    the shortest time over the ranks is what moving the data took.

    Args:
        durations: for each rank, the durations of the same instances in the same order; `ABSENT` where a
            peer has none.
        rank: the rank to split.

    Raises:
        ValueError: the ranks have different numbers of instances.

    >>> waits_by_ranks([np.array([30, 10]), np.array([12, 11])])
    Waits(transfer_ns=array([12, 10]), wait_ns=array([18,  0]))
    """
    if len({values.size for values in durations}) != 1:
        counts = ", ".join(str(values.size) for values in durations)
        raise ValueError(f"the ranks have different numbers of collectives: {counts}")
    stacked = np.stack(durations)
    transfer = np.where(stacked == ABSENT, np.iinfo(np.int64).max, stacked).min(axis=0)
    return Waits(transfer, durations[rank] - transfer)


def waits_by_steps(durations: Ints, place: Ints) -> Waits:
    """Split the instances of one rank by the shortest one at the same place of a step: an estimate.

    Waiting that every step has stays hidden in the transfer.

    Args:
        durations: durations of all instances.
        place: for each, its place in the step (how many of its op ran before it in that step).

    >>> waits_by_steps(np.array([30, 10, 12, 11]), np.array([0, 1, 0, 1]))
    Waits(transfer_ns=array([12, 10, 12, 10]), wait_ns=array([18,  0,  0,  1]))
    """
    if durations.size == 0:
        return Waits(durations, durations)
    places, code = np.unique(place, return_inverse=True)
    shortest = np.full(places.size, np.iinfo(np.int64).max, dtype=np.int64)
    np.minimum.at(shortest, code, durations)
    transfer = shortest[code]
    return Waits(transfer, durations - transfer)


@dataclass(frozen=True, slots=True)
class CollectiveRow:
    """Collectives of one op over the windows.

    Attributes:
        op: the op.
        count: instances that start in the windows.
        total_ns: their time; `transfer_ns` + `wait_ns`.
        transfer_ns: time that moving the data took; None where nothing shows it.
        wait_ns: the rest: waiting for peers.
        wait_source: `ranks` (measured against the peers), `steps` (estimated from this rank alone) or `none`.
        exposed_ns: what nothing else on the device hides.
        link_bytes: bytes per rank and direction over the link; None where the model does not say.
        bus_bytes_per_s: link bytes / transfer time.
    """

    op: str
    count: int
    total_ns: int
    transfer_ns: int | None
    wait_ns: int | None
    wait_source: WaitSource
    exposed_ns: int
    link_bytes: float | None
    bus_bytes_per_s: float | None


def instances(activity: Activity, windows: Sequence[Window], code: int) -> tuple[Ints, Ints]:
    """Rows of one op that start in the windows, and the place of each among the op's rows of its window."""
    if is_one(activity.op) and activity.op[0] != code:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    rows = np.flatnonzero((activity.kind == KERNEL) & (activity.op == code))
    window = started_in(activity.start_ns[rows], windows)
    rows, window = rows[window >= 0], window[window >= 0]
    first = np.searchsorted(window, window, side="left")
    return rows, np.arange(rows.size, dtype=np.int64) - first


def collectives(
    activity: Activity,
    windows: Sequence[Window],
    op_labels: Sequence[str],
    link_bytes: Mapping[str, float | None],
    peers: Mapping[str, Sequence[Ints]] | None = None,
) -> tuple[CollectiveRow, ...]:
    """One row per collective op, most time first.

    Args:
        activity: everything that ran on the device.
        windows: the windows of the used steps.
        op_labels: the ops that `activity.op` indexes.
        link_bytes: the collective ops, each with its bytes per instance, rank and direction.
        peers: for each op, the durations of the same instances on the other ranks, as `instances` orders.
            An op whose count differs between ranks is estimated from the steps, given enough of them.
    """
    rows = []
    spans = window_spans(windows)
    for code, op in enumerate(op_labels):
        if op not in link_bytes:
            continue
        mine, place = instances(activity, windows, code)
        if not mine.size:
            continue
        duration = activity.end_ns[mine] - activity.start_ns[mine]
        others = list((peers or {}).get(op, ()))
        if any(values.size != duration.size for values in others):
            others = []
        source: WaitSource = "ranks" if others else "steps" if len(windows) >= FEWEST_STEPS else "none"
        split = waits_by_ranks([duration, *others]) if others else waits_by_steps(duration, place)
        known = source != "none"
        transfer = int(split.transfer_ns.sum()) if known else None
        moved = link_bytes[op]
        total_bytes = None if moved is None else moved * mine.size
        rows.append(
            CollectiveRow(
                op=op,
                count=int(mine.size),
                total_ns=int(duration.sum()),
                transfer_ns=transfer,
                wait_ns=int(split.wait_ns.sum()) if known else None,
                wait_source=source,
                exposed_ns=_exposed(activity, code, spans),
                link_bytes=total_bytes,
                bus_bytes_per_s=total_bytes / transfer * 1e9 if total_bytes and transfer else None,
            )
        )
    return tuple(sorted(rows, key=lambda row: (-row.total_ns, row.op)))


def _exposed(activity: Activity, code: int, windows: Spans) -> int:
    """Time in the windows in which the op runs and nothing else does."""
    own = (activity.kind == KERNEL) & (activity.op == code)
    mine = intervals.union(activity.start_ns[own], activity.end_ns[own])
    others = intervals.union(activity.start_ns[~own], activity.end_ns[~own])
    alone = intervals.subtract(mine, others)
    return intervals.clip(alone, windows).spans.length_ns
