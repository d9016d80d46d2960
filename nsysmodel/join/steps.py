"""Which step each kernel belongs to: the engine's markers first, then graph launches, then the sequence."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from nsysmodel.join.labels import Chain
from nsysmodel.join.markers import step_of_launches
from nsysmodel.join.types import Ints

if TYPE_CHECKING:
    from nsysmodel.join.join import DeviceWork

AGREE = 0.9
"""Share of boundaries that must coincide for two ways of finding steps to count as agreeing."""


def number_steps(work: DeviceWork, chain: Chain, order: Ints) -> tuple[Chain, str]:
    """Number the steps of a chain, and say how they were found: `nvtx`, `cuda_graph` or `sequence`.

    The sequence itself always says where passes begin. Markers, where they cover the kernels, decide instead;
    graph launches confirm (one large graph a step) and so name the method.
    """
    chain = _without_empty(chain)
    if len(work.markers) >= 2:
        marked = step_of_launches(list(work.markers), work.launch_start_ns[order])
        served = chain.op >= 0
        if (marked[served] >= 0).mean() > 0.5:
            return _renumber(chain, marked), "nvtx"
    if _one_graph_per_step(work.graph_launch[order], chain):
        return chain, "cuda_graph"
    return chain, "sequence"


def _without_empty(chain: Chain) -> Chain:
    """Passes that reach no layer are no steps: what prepares the first one belongs to it."""
    inside = chain.step >= 0
    if not inside.any():
        return chain
    reached = np.zeros(int(chain.step.max()) + 1, bool)
    reached[chain.step[inside & (chain.layer >= 0)]] = True
    if reached.all() or not reached.any():
        return chain
    # The number of a pass is that of the next one that reaches a layer; the last passes join the last such.
    number = np.minimum(np.cumsum(reached) - reached, reached.sum() - 1)
    return replace(chain, step=np.where(inside, number[np.maximum(chain.step, 0)], -1))


def _renumber(chain: Chain, step: Ints) -> Chain:
    """The chain with other step numbers; layers are counted anew inside each step."""
    served = np.flatnonzero((chain.op >= 0) & (chain.layer >= 0) & (step >= 0))
    layer = chain.layer.copy()
    if len(served):
        # A layer begins where the chain's own (step, layer) changes, or where a new marked step begins.
        key = np.stack([chain.step[served], chain.layer[served], step[served]], axis=1)
        change = np.concatenate(([True], (np.diff(key, axis=0) != 0).any(axis=1)))
        number = np.cumsum(change)
        new_step = np.concatenate(([True], np.diff(step[served]) != 0))
        base = np.maximum.accumulate(np.where(new_step, number, 0))
        depth = number - base
        mapping = np.full(len(layer), -1, np.int64)
        mapping[served] = depth
        holder = np.full(len(layer), -1, np.int64)
        holder[served] = np.arange(len(served))
        last = np.maximum.accumulate(holder)
        inner = (chain.layer >= 0) & (last >= 0)
        layer = np.where(inner, mapping[served[np.maximum(last, 0)]], -1)
    return replace(chain, step=step, layer=layer)


def _one_graph_per_step(graph_launch: Ints, chain: Chain) -> bool:
    """True where most kernels of each step come from one graph launch of its own."""
    served = (chain.op >= 0) & (chain.step >= 0)
    if not served.any() or (graph_launch[served] >= 0).mean() < 0.5:
        return False
    rows = np.flatnonzero(served & (graph_launch >= 0))
    if not len(rows):
        return False
    graph, step = np.unique(graph_launch[rows], return_inverse=True)[1], chain.step[rows]
    key, counts = np.unique(step * (int(graph.max()) + 1) + graph, return_counts=True)
    steps = key // (int(graph.max()) + 1)
    first = np.flatnonzero(np.diff(steps, prepend=-1))
    whole, most = np.add.reduceat(counts, first), np.maximum.reduceat(counts, first)
    mostly_one = most > AGREE * whole
    total = len(np.unique(chain.step[served]))
    return bool(mostly_one.sum() >= AGREE * total and len(np.unique(graph)) >= AGREE * total)
