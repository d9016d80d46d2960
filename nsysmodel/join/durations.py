"""Launches that run in clearly separate durations: one kernel at one grid that serves two products."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nsysmodel.grouping import Ordered, ordered
from nsysmodel.join.runs import narrow
from nsysmodel.join.types import Codes, Floats, Ints

SEPARATE = 0.55
"""Logarithm of the least ratio between two groups of durations of one launch (a factor of 1.73)."""
SPLIT_FROM_NS = 4000
"""Durations below which nothing is split: small kernels jitter by more than that."""
FEWEST, LEAST_SHARE = 4, 0.02
"""Instances, and share of its launch, below which a group of durations is none of its own."""


@dataclass(frozen=True, slots=True)
class Split:
    """Launches told apart by duration.

    Attributes:
        identity: of each kernel; those of one launch follow each other, shorter durations first.
        median_ns: of each identity.
        count: kernels of each identity.
        launch: of each identity.
    """

    identity: Codes
    median_ns: Floats
    count: Ints
    launch: Ints


def split_by_duration(launch: Codes, duration: Ints) -> Split:
    """Identities of launches, those that run in clearly separate durations split.

    One kernel at one grid may serve two products of the same width and very different depth; their durations
    then form two groups with nothing between. Few stragglers make no group of their own.

    Args:
        launch: number of the launch of each kernel, from 0 without a gap.
        duration: ns of each kernel.
    """
    launches = int(launch.max(initial=-1)) + 1
    by_launch = ordered(launch, duration, launches)
    median, count = by_launch.median().tolist(), by_launch.size.tolist()
    first = np.arange(launches, dtype=np.int64)
    parts: dict[int, list[tuple[float, int]]] = {}
    where: dict[int, tuple[Ints, Ints]] = {}
    for number in _suspects(by_launch):
        values = by_launch.of(number)
        cuts = _cuts(values)
        if not len(cuts):
            continue
        home = _homes(np.diff(cuts, prepend=0, append=len(values)))
        kept, place = np.unique(home, return_inverse=True)
        pieces = np.split(values, cuts)
        groups = [np.concatenate([p for p, h in zip(pieces, home, strict=True) if h == k]) for k in kept]
        parts[number] = [(float(np.median(group)), len(group)) for group in groups]
        where[number] = (values[cuts], place)
        first[number + 1 :] += len(groups) - 1
    found = [(n, *pair) for n in range(launches) for pair in parts.get(n, [(median[n], count[n])])]
    identity = narrow(first, len(found))[launch] if where else launch
    for number, (threshold, place) in where.items():
        rows = np.flatnonzero(launch == number)
        identity[rows] += place[np.searchsorted(threshold, duration[rows], side="right")]
    return Split(
        identity,
        np.array([m for _, m, _ in found], dtype=np.float64),
        np.array([c for _, _, c in found], dtype=np.int64),
        np.array([n for n, _, _ in found], dtype=np.int64),
    )


def _suspects(by_launch: Ordered) -> list[int]:
    """Launches with a step between neighbouring durations that may be one between two groups."""
    values, edges = by_launch.values, by_launch.edges
    at = np.flatnonzero((values[1:] > SPLIT_FROM_NS) & (values[1:] > 1.5 * values[:-1])) + 1
    at = at[~np.isin(at, edges)]
    return [int(number) for number in np.unique(np.searchsorted(edges, at, side="right") - 1)]


def _cuts(values: Ints) -> Ints:
    """Places of ascending durations at which another group begins."""
    log = np.log(np.maximum(values, 1).astype(float))
    return np.flatnonzero((np.diff(log) > SEPARATE) & (values[1:] > SPLIT_FROM_NS)) + 1


def _homes(size: Ints) -> Ints:
    """The group that each group belongs to: small ones to the largest, of several the slowest."""
    largest = len(size) - 1 - int(np.argmax(size[::-1]))
    small = size < max(FEWEST, LEAST_SHARE * int(size.sum()))
    return np.where(small, largest, np.arange(len(size)))
