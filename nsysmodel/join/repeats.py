"""Long captures repeat themselves: each distinct step is aligned once, and what it says holds for its copies.

A first part of the capture tells how steps begin. There the whole sequence is cut; cuts with the same
launches are one. Nothing is assumed of what lies between two cuts, so a step that differs in one kernel is
aligned on its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from nsysmodel.join.labels import Chain, chain_labels
from nsysmodel.join.sequence import Sequence, align
from nsysmodel.join.template import Template
from nsysmodel.join.types import Ints
from nsysmodel.join.viterbi import Costs, Path

LONG = 40_000
"""Kernels up to which everything is aligned in one go."""
FIRST = 20_000
"""Kernels of the part from which the beginnings of steps are learned."""
MOST_UNLIKE = 400_000
"""Kernels of distinct steps that are aligned at most; a capture of more is cut off there."""


@dataclass(frozen=True, slots=True)
class Aligned:
    """The alignment of a main chain.

    Attributes:
        path, chain: by kernel of the chain.
        costs: belief costs of the first pass.
        aligned: kernels that were aligned, repeats left out.
    """

    path: Path
    chain: Chain
    costs: Costs
    aligned: int


def align_chain(
    template: Template, sequence: Sequence, rows: Ints, floors: Mapping[int, tuple[float, float]]
) -> Aligned:
    """Align the kernels `rows` with a template, distinct steps once."""
    if len(rows) <= LONG:
        return _whole(template, sequence, rows, floors)
    starts = _cuts(template, sequence, rows, floors)
    if len(starts) < 3:
        part = _whole(template, sequence, rows[:MOST_UNLIKE], floors)
        return _padded(part, len(rows))
    return _distinct(template, sequence, rows, floors, starts)


def _whole(
    template: Template, sequence: Sequence, rows: Ints, floors: Mapping[int, tuple[float, float]]
) -> Aligned:
    path, costs, unlearned = align(template, sequence, rows, floors)
    chain = chain_labels(template, path, costs, sequence.identity[rows], sequence.identities)
    return Aligned(path, chain, unlearned, len(rows))


def _cuts(
    template: Template, sequence: Sequence, rows: Ints, floors: Mapping[int, tuple[float, float]]
) -> Ints:
    """Places at which steps begin, by the two launches around the beginnings in the first part."""
    first = _whole(template, sequence, rows[:FIRST], floors).chain
    begins = np.flatnonzero(np.diff(first.step) > 0) + 1
    if not len(begins):
        return begins
    launch = sequence.launch[rows]
    pair = launch[:-1] * (int(launch.max()) + 1) + launch[1:]
    values, counts = np.unique(pair[begins - 1], return_counts=True)
    usual = values[counts * 4 >= counts.max()]
    # A pair that also stands inside steps would only cut them into pieces that repeat as well.
    found = np.flatnonzero(np.isin(pair, usual)) + 1
    return np.concatenate(([0], found)).astype(np.int64)


def _distinct(
    template: Template,
    sequence: Sequence,
    rows: Ints,
    floors: Mapping[int, tuple[float, float]],
    starts: Ints,
) -> Aligned:
    """Align one copy of each distinct piece, in order of appearance, and spread what it says."""
    count = len(rows)
    lengths = np.diff(np.append(starts, count))
    of_piece, representative = _pieces(sequence.launch[rows], starts, lengths)
    kept = np.cumsum(lengths[representative])
    limit = int(np.searchsorted(kept, MOST_UNLIKE)) + 1
    chosen = representative[:limit]
    local = np.concatenate([np.arange(starts[p], starts[p] + lengths[p]) for p in chosen])
    part = _whole(template, sequence, rows[local], floors)
    offsets = np.concatenate(([0], np.cumsum(lengths[chosen])))
    known = of_piece < len(chosen)
    source = np.repeat(np.where(known, offsets[np.minimum(of_piece, len(chosen) - 1)] - starts, -1), lengths)
    index = np.where(np.repeat(known, lengths), source + np.arange(count), -1)
    path = _spread_path(part.path, index)
    chain = _spread_chain(part.chain, index, starts, lengths, of_piece, offsets)
    return Aligned(path, chain, part.costs, len(local))


def _pieces(launch: Ints, starts: Ints, lengths: Ints) -> tuple[Ints, Ints]:
    """(number of the distinct piece of each piece, first piece of each number), numbered by appearance."""
    rng = np.random.default_rng(20260101)
    value = rng.integers(1, 2**63, size=int(launch.max()) + 1, dtype=np.uint64) | np.uint64(1)
    weight = rng.integers(1, 2**63, size=int(lengths.max()), dtype=np.uint64) | np.uint64(1)
    place = np.arange(len(launch)) - np.repeat(starts, lengths)
    with np.errstate(over="ignore"):
        mixed = (value[launch] ^ (value[launch] >> np.uint64(29))) * weight[place]
        digest = np.add.reduceat(mixed, starts) ^ (lengths.astype(np.uint64) << np.uint64(40))
    _, first, inverse = np.unique(digest, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return rank[inverse.reshape(-1)], first[order]


def _spread(values: np.ndarray, index: Ints) -> np.ndarray:
    """Values of the copies; -1 (or False) where a piece was not aligned."""
    fill = False if values.dtype == bool else -1
    result: np.ndarray = np.where(index >= 0, values[np.maximum(index, 0)], fill).astype(values.dtype)
    return result


def _spread_path(part: Path, index: Ints) -> Path:
    return Path(
        group=_spread(part.group, index),
        slot=_spread(part.slot, index),
        entered=_spread(part.entered, index),
        stayed=_spread(part.stayed, index),
        came_from=_spread(part.came_from, index),
        cost=part.cost,
    )


def _spread_chain(
    part: Chain, index: Ints, starts: Ints, lengths: Ints, of_piece: Ints, offsets: Ints
) -> Chain:
    """The chain of all pieces; steps are numbered on from piece to piece."""
    step = _spread(part.step, index)
    low = np.minimum.reduceat(np.where(step >= 0, step, np.iinfo(np.int64).max), starts)
    high = np.maximum.reduceat(step, starts)
    passes = np.where(high >= 0, high - low + 1, 0)
    base = np.cumsum(passes) - passes
    numbered = np.where(step >= 0, step - np.repeat(low, lengths) + np.repeat(base, lengths), -1)
    return replace(
        part,
        op=_spread(part.op, index),
        layer=_spread(part.layer, index),
        step=numbered,
        first=_spread(part.first, index),
        confidence=np.where(index >= 0, part.confidence[np.maximum(index, 0)], 0.0),
        bundle=_spread(part.bundle, index),
        group=_spread(part.group, index),
    )


def _padded(part: Aligned, count: int) -> Aligned:
    """An alignment of the first kernels, the others served by nothing."""
    index = np.full(count, -1, np.int64)
    index[: len(part.path.slot)] = np.arange(len(part.path.slot))
    path = _spread_path(part.path, index)
    one = np.zeros(1, np.int64)
    chain = _spread_chain(part.chain, index, one, np.array([count]), one, one)
    return Aligned(path, chain, part.costs, part.aligned)
