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
from nsysmodel.join.runs import narrow
from nsysmodel.join.sequence import Sequence, align
from nsysmodel.join.template import Template
from nsysmodel.join.types import Codes, Ints
from nsysmodel.join.viterbi import Costs, Path

LONG = 40_000
"""Kernels up to which everything is aligned in one go."""
FIRST = 20_000
"""Kernels of the part from which the beginnings of steps are learned."""
MOST_UNLIKE = 400_000
"""Kernels of distinct steps that are aligned at most; a capture of more is cut off there."""


@dataclass(frozen=True, slots=True)
class Copies:
    """Pieces that together are the whole chain, and the place at which each was aligned.

    Attributes:
        lengths: kernels of each piece.
        aligned_at: first kernel of each piece in the part that was aligned; -1 where it was not aligned.
    """

    lengths: Ints
    aligned_at: Ints

    def index(self) -> Ints:
        """For each kernel of the chain the one of the part, -1 for none."""
        starts = np.cumsum(self.lengths) - self.lengths
        index = np.repeat(self.aligned_at - starts, self.lengths)
        index += np.arange(len(index))
        if (self.aligned_at < 0).any():
            index[np.repeat(self.aligned_at < 0, self.lengths)] = -1
        return index


@dataclass(frozen=True, slots=True)
class Aligned:
    """The alignment of a main chain.

    Attributes:
        chain: by kernel of the chain.
        costs: belief costs of the first pass.
        aligned: kernels that were aligned, repeats left out.
        part: path of what was aligned.
        copies: how it makes up the chain; None where it is the chain.
    """

    chain: Chain
    costs: Costs
    aligned: int
    part: Path
    copies: Copies | None = None

    def path(self) -> Path:
        """The path by kernel of the chain."""
        return self.part if self.copies is None else _spread_path(self.part, self.copies.index())


def align_chain(
    template: Template, sequence: Sequence, rows: Ints, floors: Mapping[int, tuple[float, float]]
) -> Aligned:
    """Align the kernels `rows` with a template, distinct steps once."""
    if len(rows) <= LONG:
        return _whole(template, sequence, rows, floors)
    starts = _cuts(template, sequence, rows, floors)
    if len(starts) < 3:
        part = _whole(template, sequence, rows[:MOST_UNLIKE], floors)
        length = len(part.chain.op)
        return _spread(part, Copies(np.array([length, len(rows) - length]), np.array([0, -1])))
    return _distinct(template, sequence, rows, floors, starts)


def _whole(
    template: Template, sequence: Sequence, rows: Ints, floors: Mapping[int, tuple[float, float]]
) -> Aligned:
    path, costs, unlearned = align(template, sequence, rows, floors)
    chain = chain_labels(template, path, costs, sequence.identity[rows], sequence.identities)
    return Aligned(chain, unlearned, len(rows), path)


def _cuts(
    template: Template, sequence: Sequence, rows: Ints, floors: Mapping[int, tuple[float, float]]
) -> Ints:
    """Places at which steps begin, by the two launches around the beginnings in the first part."""
    first = _whole(template, sequence, rows[:FIRST], floors).chain
    begins = np.flatnonzero(np.diff(first.step) > 0) + 1
    if not len(begins):
        return begins
    launch = sequence.launch[rows]
    left, right = launch[begins - 1], launch[begins]
    pairs, counts = np.unique(np.stack([left, right], axis=1), axis=0, return_counts=True)
    usual = pairs[counts * 4 >= counts.max()]
    # A pair that also stands inside steps would only cut them into pieces that repeat as well.
    count = int(launch.max()) + 1
    ends, opens = np.zeros(count, bool), np.zeros(count, bool)
    ends[usual[:, 0]], opens[usual[:, 1]] = True, True
    likely = np.flatnonzero(ends[launch[:-1]] & opens[launch[1:]])
    number = usual[:, 0].astype(np.int64) * count + usual[:, 1]
    found = likely[np.isin(launch[likely].astype(np.int64) * count + launch[likely + 1], number)]
    return np.concatenate(([0], found + 1)).astype(np.int64)


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
    offsets = np.cumsum(lengths[chosen]) - lengths[chosen]
    known = of_piece < len(chosen)
    return _spread(part, Copies(lengths, np.where(known, offsets[np.minimum(of_piece, len(chosen) - 1)], -1)))


def _pieces(launch: Ints, starts: Ints, lengths: Ints) -> tuple[Ints, Ints]:
    """(number of the distinct piece of each piece, first piece of each number), numbered by appearance."""
    rng = np.random.default_rng(20260101)
    value = rng.integers(1, 2**63, size=int(launch.max()) + 1, dtype=np.uint64) | np.uint64(1)
    weight = rng.integers(1, 2**63, size=int(lengths.max()), dtype=np.uint64) | np.uint64(1)
    place = np.arange(len(launch)) - np.repeat(starts, lengths)
    value ^= value >> np.uint64(29)
    with np.errstate(over="ignore"):
        mixed = value[launch] * weight[place]
        digest = np.add.reduceat(mixed, starts) ^ (lengths.astype(np.uint64) << np.uint64(40))
    _, first, inverse = np.unique(digest, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return rank[inverse.reshape(-1)], first[order]


def _spread(part: Aligned, copies: Copies) -> Aligned:
    """What was aligned, at all places at which it stands; steps are numbered on from piece to piece."""
    index = copies.index()
    chain = part.chain
    low, passes = _passes(chain.step, copies)
    base = np.cumsum(passes) - passes
    step = _take(chain.step.astype(np.int32), index)
    inside = step >= 0
    step += np.repeat((base - low).astype(np.int32), copies.lengths)
    step[~inside] = -1
    chain = replace(
        chain,
        op=_take(narrow(chain.op), index),
        layer=_take(narrow(chain.layer), index),
        step=step,
        first=_take(chain.first, index),
        confidence=_take(chain.confidence, index, 0),
        bundle=_take(narrow(chain.bundle), index),
        group=_take(narrow(chain.group), index),
    )
    return Aligned(chain, part.costs, part.aligned, part.part, copies)


def _passes(step: Codes, copies: Copies) -> tuple[Ints, Ints]:
    """(first step, number of steps) of each piece; no step in a piece without any."""
    count, at = len(step), copies.aligned_at
    pairs = np.unique(np.stack([at, copies.lengths], axis=1)[at >= 0], axis=0)
    # Every second bound ends a piece; what stands beyond the last one belongs to none.
    bounds = np.stack([pairs[:, 0], pairs[:, 0] + pairs[:, 1]], axis=1).reshape(-1)
    high = np.maximum.reduceat(np.append(step, -1), bounds)[::2]
    low = np.minimum.reduceat(np.append(np.where(step >= 0, step, count), count), bounds)[::2]
    piece = np.searchsorted(pairs[:, 0], at)
    piece[at < 0] = -1
    found = np.append(np.where(high >= 0, high - low + 1, 0), 0)
    return np.append(low, 0)[piece], found[piece]


def _take(values: Codes, index: Ints, fill: int = -1) -> Codes:
    """Values of the copies; the filling (or False) where a piece was not aligned."""
    end = False if values.dtype == bool else fill
    result: Codes = np.append(values, np.array([end], values.dtype))[index]
    return result


def _spread_path(part: Path, index: Ints) -> Path:
    return Path(
        group=_take(part.group, index),
        slot=_take(part.slot, index),
        entered=_take(part.entered, index),
        stayed=_take(part.stayed, index),
        came_from=_take(part.came_from, index),
        cost=part.cost,
    )
