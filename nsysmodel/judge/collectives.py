"""Collectives of a device: what they move, what waits, what other work hides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from nsysmodel import units
from nsysmodel.account.collectives import ABSENT, CollectiveRow, collectives, instances
from nsysmodel.account.types import KERNEL, Activity, Window
from nsysmodel.hardware.types import Hardware, Link
from nsysmodel.join.types import Ints
from nsysmodel.join.vocabulary import Vocabulary
from nsysmodel.judge.ops import Priced
from nsysmodel.result_account import CollectiveSummary

CLASSES = ("allreduce", "allgather", "alltoall")
"""Kernel classes of collectives."""


@dataclass(frozen=True, slots=True)
class Work:
    """What a device ran, and the used steps of it.

    Attributes:
        labels, names: texts of `activity.op` and `activity.name`.
        layers: layers of the model; 0 without one.
        stepped: False where no step was found and everything is one window.
    """

    activity: Activity
    windows: Sequence[Window]
    labels: Sequence[str]
    names: Sequence[str]
    layers: int = 0
    stepped: bool = True

    @property
    def window_ns(self) -> int:
        """Length of all windows."""
        return sum(window.duration_ns for window in self.windows)


Durations = Mapping[tuple[str, int, int], int]
"""Time of each instance by op, step and place within the step."""


def is_collective(priced: Priced) -> bool:
    """Whether an op's kernels talk to peers (and so wait for them)."""
    over_link = priced.cost.link_bytes > 0 and priced.op.kind not in ("copy", "zero_copy")
    return over_link or bool(set(priced.op.classes) & set(CLASSES))


def with_unclaimed(work: Work, vocabulary: Vocabulary) -> Work:
    """The same work, but collectives that no op claims carry the name of their kind as op."""
    activity, names, labels = work.activity, work.names, work.labels
    kinds = np.array(
        [
            CLASSES.index(found) if (found := vocabulary.classify(name).kernel_class) in CLASSES else -1
            for name in names
        ],
        np.int32,
    )
    texts = (*labels, *(f"{kind} (no op claims it)" for kind in CLASSES))
    if not (kinds >= 0).any():
        return replace(work, labels=texts)
    free = (activity.kind == KERNEL) & (activity.op < 0)
    kind = np.where(free, kinds[activity.name], -1)
    op = np.where(kind >= 0, kind + len(labels), activity.op).astype(np.int32)
    return replace(work, activity=replace(activity, op=op), labels=texts)


def durations_of(work: Work) -> Durations:
    """Time of every kernel of the ops by op, step and place, for the peers of other ranks."""
    activity, windows = work.activity, work.windows
    found: dict[tuple[str, int, int], int] = {}
    for code, label in enumerate(work.labels):
        rows, places = instances(activity, windows, code)
        steps = _steps_of(places, activity, rows, windows)
        length = (activity.end_ns - activity.start_ns)[rows].tolist()
        found.update(
            ((label, step, place), value)
            for step, place, value in zip(steps, places.tolist(), length, strict=True)
        )
    return found


def _steps_of(places: Ints, activity: Activity, rows: Ints, windows: Sequence[Window]) -> list[int]:
    starts = np.array([window.start_ns for window in windows], np.int64)
    at = np.searchsorted(starts, activity.start_ns[rows], side="right") - 1
    return [windows[place].index for place in at.tolist()]


def summaries(
    work: Work,
    priced: Mapping[str, Priced],
    hardware: Hardware | None,
    t0_ns: float,
    peers: Sequence[Durations] = (),
) -> tuple[CollectiveSummary, ...]:
    """One row per collective, most time first.

    Args:
        work: as `with_unclaimed` gives it.
        priced: floors of the ops; those of `is_collective` and unclaimed collectives are listed.
        hardware: for the link's rate.
        t0_ns: fixed cost of a launch.
        peers: `durations_of` of the other ranks.
    """
    activity, windows, labels = work.activity, work.windows, work.labels
    moved: dict[str, float | None] = {}
    others: dict[str, list[Ints]] = {}
    for code, label in enumerate(labels):
        cost = priced.get(label)
        unclaimed = code >= len(labels) - len(CLASSES)
        if not unclaimed and (cost is None or not is_collective(cost)):
            continue
        rows, places = instances(activity, windows, code)
        known = cost is not None and cost.cost.link_bytes > 0 and len(rows)
        moved[label] = cost.cost.link_bytes / len(rows) if cost is not None and known else None
        steps = _steps_of(places, activity, rows, windows)
        keys = [(label, step, place) for step, place in zip(steps, places.tolist(), strict=True)]
        found = [np.array([peer.get(key, ABSENT) for key in keys], np.int64) for peer in peers]
        others[label] = [values for values in found if (values != ABSENT).any()]
    rows_found = collectives(activity, windows, labels, moved, others)
    return tuple(_summary(row, len(others[row.op]) + 1, len(windows), hardware, t0_ns) for row in rows_found)


def _summary(
    row: CollectiveRow, ranks: int, steps: int, hardware: Hardware | None, t0_ns: float
) -> CollectiveSummary:
    link = _link(hardware)
    floor = row.link_bytes / link.bytes_per_s * 1e9 if link and row.link_bytes else None
    latency = row.count * t0_ns
    return CollectiveSummary(
        op=row.op,
        count=row.count,
        ranks=ranks,
        total_ns=row.total_ns,
        transfer_ns=row.transfer_ns,
        wait_ns=row.wait_ns,
        wait_source=row.wait_source,
        exposed_ns=row.exposed_ns,
        overlapped_ns=max(row.total_ns - row.exposed_ns, 0),
        per_step_ns=row.total_ns / steps,
        exposed_per_step_ns=row.exposed_ns / steps,
        bytes=row.link_bytes,
        bytes_per_s=row.bus_bytes_per_s,
        link=link.name if link else "",
        link_bytes_per_s=link.bytes_per_s if link else None,
        floor_ns=floor,
        latency_floor_ns=latency,
        bound="unknown" if floor is None else "link" if floor >= latency else "latency",
        explanation=_explained(row, ranks),
    )


def _link(hardware: Hardware | None) -> Link | None:
    """The link between peers: NVLink, else PCIe."""
    if hardware is None:
        return None
    return hardware.links.get("nvlink") or hardware.links.get("pcie")


def _explained(row: CollectiveRow, ranks: int) -> str:
    if row.wait_ns is None or row.transfer_ns is None:
        return (
            "How much of it is waiting for peers cannot be told from one rank and so few steps; "
            "give the exports of several ranks together."
        )
    mean = units.ns(row.wait_ns / max(row.count, 1))
    if row.wait_source == "ranks":
        return f"Against {ranks} ranks, {mean} of each is waiting for the last rank to arrive."
    return (
        f"Estimated from this rank alone (shortest time at the same place of a step): {mean} of each is "
        "waiting, and more where every step waits. The exports of all ranks together would measure it."
    )
