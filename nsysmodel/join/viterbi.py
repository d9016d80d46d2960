"""The cheapest way through a template that explains a sequence of kernels.

Each kernel either serves a slot or is extra. A path goes forward through the slots of a group; leaving a
slot unserved costs its `skip`, staying in a slot for a further kernel costs `stay`, an extra kernel costs
`extra`. This is dynamic programming over all slots at once, so the work is one small vector operation per
kernel whatever the number of strays, missing ops or fusions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nsysmodel.join.template import FORBIDDEN, Template
from nsysmodel.join.types import Bools, Floats, Ints


@dataclass(frozen=True, slots=True)
class Path:
    """For each kernel: the group and slot it serves (-1: extra), and how it got there.

    `entered`: the kernel is the first of a pass through its group. `stayed`: it continues the slot of the
    kernel before it. `came_from`: the slot that was served before it in the same pass, -1 at a pass's start.
    """

    group: Ints
    slot: Ints
    entered: Bools
    stayed: Bools
    came_from: Ints
    cost: float


@dataclass(frozen=True, slots=True)
class Costs:
    """Belief costs by kernel identity.

    `enter` and `stay` are [identities, groups, width]; `extra` is [identities]. `opening` is [identities,
    groups, width]: the first of the slots that a kernel known to do several ops serves when it enters a slot;
    those from there on are served, not left out. Mostly the slot itself.
    """

    enter: Floats
    stay: Floats
    extra: Floats
    opening: Ints


def best_path(template: Template, costs: Costs, sequence: Ints) -> Path:
    """The cheapest path.

    Args:
        template: groups and their transitions.
        costs: belief costs by identity.
        sequence: identity of each kernel, in execution order.
    """
    groups, width = template.slot_op.shape
    count = len(sequence)
    before = np.concatenate([np.zeros((groups, 1)), np.cumsum(template.skip, axis=1)], axis=1)
    pre, after = before[:, :-1], before[:, 1:]
    rest = before[:, -1:] - after
    padding = np.where(template.slot_op < 0, FORBIDDEN, 0.0)
    history = np.empty((count + 1, groups, width), dtype=np.float32)
    offsets = np.zeros(count + 1)
    # The state before the first kernel stands outside: only entering a group is possible.
    value = np.full((groups, width), FORBIDDEN) + padding
    # A capture may begin in the middle of a layer: then the slots before are not missing.
    outside_share = template.outside[:, None]
    outside = np.minimum(template.start[:, None] + pre, template.ragged)
    history[0] = value
    reach = np.empty((groups, width))
    joint = (costs.opening != np.arange(width)).any(axis=(1, 2))
    for i in range(count):
        identity = sequence[i]
        if i:
            leave = (value + rest).min(axis=1)
            entry = (leave[:, None] + template.transition).min(axis=0)
            entry[0] = min(entry[0], value.min() + template.cut)
            reach[:, 0] = entry
            np.subtract(value[:, :-1], after[:, :-1], out=reach[:, 1:])
            for g, origin, target, cost in template.loops:
                back = value[g, origin] + cost - pre[g, target]
                if back < reach[g, target]:
                    reach[g, target] = back
            np.minimum.accumulate(reach, axis=1, out=reach)
            new = reach + pre
        else:
            new = outside.copy()
        if joint[identity]:
            np.minimum(new, np.take_along_axis(new, costs.opening[identity], axis=1), out=new)
        new += costs.enter[identity]
        np.minimum(new, value + costs.stay[identity], out=new)
        np.minimum(new, value + costs.extra[identity] * outside_share, out=new)
        new += padding
        if i == 0:
            np.minimum(new, outside + costs.extra[identity] * outside_share + 0.5, out=new)
        low = new.min()
        offsets[i + 1] = offsets[i] + low
        value = np.minimum(new - low, FORBIDDEN)
        history[i + 1] = value
    final = value + np.minimum(rest + template.finish[:, None], template.ragged)
    end = int(final.argmin())
    return _trace(template, costs, sequence, history, end, float(offsets[-1] + final.min()), pre, after, rest)


def _trace(
    template: Template,
    costs: Costs,
    sequence: Ints,
    history: npt.NDArray[np.float32],
    end: int,
    cost: float,
    pre: Floats,
    after: Floats,
    rest: Floats,
) -> Path:
    """Walk back from slot `end`, choosing at each kernel the move that the forward pass took."""
    count = len(sequence)
    width = template.slot_op.shape[1]
    group, slot = np.full(count, -1, np.int64), np.full(count, -1, np.int64)
    entered, stayed = np.zeros(count, bool), np.zeros(count, bool)
    came_from = np.full(count, -1, np.int64)
    g, w = divmod(end, width)
    for i in range(count - 1, -1, -1):
        identity = sequence[i]
        previous = history[i]
        stay = previous[g, w] + costs.stay[identity, g, w]
        extra = previous[g, w] + costs.extra[identity] * template.outside[g]
        if i == 0:
            entry = float(min(template.start[g], template.ragged - pre[g, w]))
            extra = entry + pre[g, w] + costs.extra[identity] * template.outside[g] + 0.5
        else:
            leave = (previous + rest).min(axis=1) + template.transition[:, g]
            entry = float(leave.min())
            broken = g == 0 and float(previous.min()) + template.cut < entry
            if broken:
                entry = float(previous.min()) + template.cut
        # A kernel that does several ops comes from before the first of them, or from one of them.
        reached = np.inf
        for first in {w, int(costs.opening[identity, g, w])}:
            inside = previous[g, :first] - after[g, :first]
            best = int(inside.argmin()) if first else -1
            least = float(inside[best]) if first else np.inf
            for at, origin, target, cost_back in template.loops:
                if at == g and target <= first and i:
                    back = previous[g, origin] + cost_back - pre[g, target]
                    if back < least:
                        best, least = origin, back
            open_at = float(min(template.start[g], template.ragged - pre[g, first])) if i == 0 else entry
            if min(open_at, least) + pre[g, first] < reached:
                reached = min(open_at, least) + pre[g, first]
                source, within, opened = best, least, open_at
        enter = reached + costs.enter[identity, g, w]
        if extra <= enter and extra <= stay:
            continue
        group[i], slot[i] = g, w
        if stay <= enter:
            stayed[i] = True
        elif within <= opened:
            came_from[i] = source
            w = source
        else:
            entered[i] = True
            if i == 0:
                break
            if broken:
                g, w = divmod(int(previous.argmin()), width)
                continue
            origin = int(leave.argmin())
            g, w = origin, int((previous[origin] + rest[origin]).argmin())
    return Path(group, slot, entered, stayed, came_from, cost)
