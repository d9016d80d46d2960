"""Which step each kernel belongs to: the engine's markers first, then graph launches, then the sequence."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from nsysmodel.grouping import openings
from nsysmodel.join.labels import Chain
from nsysmodel.join.markers import step_of_launches
from nsysmodel.join.runs import most, narrow, present
from nsysmodel.join.types import Codes, Ints

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
    count = int(chain.step.max(initial=-1)) + 1
    reached = most(chain.step, chain.layer, count) >= 0
    if reached.all() or not reached.any():
        return chain
    # The number of a pass is that of the next one that reaches a layer; the last passes join the last such.
    number = np.minimum(np.cumsum(reached) - reached, reached.sum() - 1)
    return replace(chain, step=np.append(number, -1).astype(np.int32)[chain.step])


def _renumber(chain: Chain, step: Codes) -> Chain:
    """The chain with other step numbers; layers are counted anew inside each step."""
    served = np.flatnonzero((chain.op >= 0) & (chain.layer >= 0) & (step >= 0))
    layer = chain.layer
    if len(served):
        marked = step[served]
        # A layer begins where the chain's own (step, layer) changes, or where a new marked step begins.
        opening = openings(chain.step[served], chain.layer[served], marked)
        new_step = openings(marked[opening])
        depth = np.arange(len(opening)) - np.repeat(new_step, np.diff(new_step, append=len(opening)))
        # Each kernel takes the layer of the last served one before it.
        rows = served[opening]
        layer = np.repeat(narrow(np.append(-1, depth)), np.diff(rows, prepend=0, append=len(layer)))
        layer[chain.layer < 0] = -1
    return replace(chain, step=step, layer=layer)


def _one_graph_per_step(graph_launch: Ints, chain: Chain) -> bool:
    """True where most kernels of each step come from one graph launch of its own."""
    served = (chain.op >= 0) & (chain.step >= 0)
    if not served.any() or (graph_launch[served] >= 0).mean() < 0.5:
        return False
    rows = np.flatnonzero(served & (graph_launch >= 0))
    # Kernels of one launch follow each other: their runs are few.
    opening = openings(chain.step[rows], graph_launch[rows])
    length, rows = np.diff(opening, append=len(rows)), rows[opening]
    _, graph = np.unique(graph_launch[rows], return_inverse=True)
    graphs = int(graph.max()) + 1
    key, run = np.unique(chain.step[rows].astype(np.int64) * graphs + graph, return_inverse=True)
    counts = np.bincount(run, weights=length)
    first = openings(key // graphs)
    whole, most_alike = np.add.reduceat(counts, first), np.maximum.reduceat(counts, first)
    mostly_one = most_alike > AGREE * whole
    total = int(present(np.where(served, chain.step, -1), int(chain.step.max()) + 1).sum())
    return bool(mostly_one.sum() >= AGREE * total and graphs >= AGREE * total)
