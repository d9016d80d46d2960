"""The cheapest path of a kernel sequence through a template: a Viterbi pass with three kinds of moves.

A kernel enters the next slot (or the first slots of the next group), stays at the slot of the kernel before
it (a split product, an eager region), or is extra and serves nothing.

A decode repeats itself, and so do the states of the pass: what follows a state depends on the next kernel
alone. Each state is held once, each move from it is computed once, forwards and back.
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


@dataclass(frozen=True, slots=True)
class _Move:
    """How one kernel got to a cell (group, slot), and the cell before it; `served` is False for an extra."""

    served: bool
    stayed: bool
    entered: bool
    came_from: int
    group: int
    slot: int


def best_path(template: Template, costs: Costs, sequence: Ints) -> Path:
    """The cheapest path.

    Args:
        template: groups and their transitions.
        costs: belief costs by identity.
        sequence: identity of each kernel, in execution order.
    """
    chain = sequence.tolist()
    moves = _Moves(template, costs)
    known: dict[tuple[int, int], tuple[int, float]] = {}
    states, lows = [0], [0.0]
    state = 0
    for identity in chain:
        key = (state, identity)
        found = known.get(key)
        if found is None:
            found = known[key] = moves.forward(state, identity)
        state, low = found
        states.append(state)
        lows.append(low)
    final = moves.final(state)
    # Added one by one, as in a pass without memory.
    cost = float(np.cumsum(np.array(lows))[-1] + final.min())
    return _trace(moves, chain, states, int(final.argmin()), cost)


def _trace(moves: _Moves, chain: list[int], states: list[int], end: int, cost: float) -> Path:
    """Walk back from cell `end`, choosing at each kernel the move that the forward pass took."""
    count = len(chain)
    group, slot = np.full(count, -1, np.int64), np.full(count, -1, np.int64)
    entered, stayed = np.zeros(count, bool), np.zeros(count, bool)
    came_from = np.full(count, -1, np.int64)
    known: dict[tuple[int, int, int, int], _Move] = {}
    g, w = divmod(end, moves.width)
    for i in range(count - 1, -1, -1):
        key = (states[i], chain[i], g, w)
        move = known.get(key)
        if move is None:
            move = known[key] = moves.back(*key)
        if move.served:
            group[i], slot[i] = g, w
            stayed[i], entered[i], came_from[i] = move.stayed, move.entered, move.came_from
        g, w = move.group, move.slot
    return Path(group, slot, entered, stayed, came_from, cost)


class _Moves:
    """The states of a pass, numbered, and the moves between them.

    A state is the cost of the best path to each cell [groups, width], less the least of them. State 0 stands
    before the first kernel: only entering a group is possible there.
    """

    def __init__(self, template: Template, costs: Costs) -> None:
        groups, self.width = template.slot_op.shape
        before = np.concatenate([np.zeros((groups, 1)), np.cumsum(template.skip, axis=1)], axis=1)
        self.template, self.costs = template, costs
        self.pre, self.after = before[:, :-1], before[:, 1:]
        self.rest = before[:, -1:] - self.after
        self.padding = np.where(template.slot_op < 0, FORBIDDEN, 0.0)
        # A capture may begin in the middle of a layer: then the slots before are not missing.
        self.outside_share = template.outside[:, None]
        self.outside = np.minimum(template.start[:, None] + self.pre, template.ragged)
        self._values: list[Floats] = [np.full((groups, self.width), FORBIDDEN) + self.padding]
        self._rounded: dict[int, npt.NDArray[np.float32]] = {}
        self._number: dict[bytes, int] = {}
        self._reach = np.empty((groups, self.width))
        self._joint = (costs.opening != np.arange(self.width)).any(axis=(1, 2))

    def forward(self, state: int, identity: int) -> tuple[int, float]:
        """The state after one more kernel, and by how much the least cost rises."""
        value, costs = self._values[state], self.costs
        new = self._entered(value) if state else self.outside.copy()
        if self._joint[identity]:
            np.minimum(new, np.take_along_axis(new, costs.opening[identity], axis=1), out=new)
        new += costs.enter[identity]
        np.minimum(new, value + costs.stay[identity], out=new)
        extra = costs.extra[identity] * self.outside_share
        np.minimum(new, value + extra, out=new)
        new += self.padding
        if not state:
            np.minimum(new, self.outside + extra + 0.5, out=new)
        low = new.min()
        new -= low
        np.minimum(new, FORBIDDEN, out=new)
        return self._numbered(new), float(low)

    def _entered(self, value: Floats) -> Floats:
        """Costs of entering each cell, before the costs of the kernel."""
        template, reach, after, pre = self.template, self._reach, self.after, self.pre
        leave = (value + self.rest).min(axis=1)
        entry = (leave[:, None] + template.transition).min(axis=0)
        entry[0] = min(entry[0], value.min() + template.cut)
        reach[:, 0] = entry
        np.subtract(value[:, :-1], after[:, :-1], out=reach[:, 1:])
        for g, origin, target, cost in template.loops:
            back = value[g, origin] + cost - pre[g, target]
            if back < reach[g, target]:
                reach[g, target] = back
        np.minimum.accumulate(reach, axis=1, out=reach)
        result: Floats = reach + pre
        return result

    def _numbered(self, value: Floats) -> int:
        """The number of a state; the text of its numbers is its key and, as `frombuffer`, its value."""
        key = value.tobytes()
        number = self._number.get(key)
        if number is None:
            number = self._number[key] = len(self._values)
            self._values.append(np.frombuffer(key).reshape(value.shape))
        return number

    def final(self, state: int) -> Floats:
        """Cost of ending in each cell after this state."""
        finish = self.rest + self.template.finish[:, None]
        result: Floats = self._values[state] + np.minimum(finish, self.template.ragged)
        return result

    def _history(self, state: int) -> npt.NDArray[np.float32]:
        """A state as the way back sees it: ties are decided among costs of single precision."""
        found = self._rounded.get(state)
        if found is None:
            found = self._rounded[state] = self._values[state].astype(np.float32)
        return found

    def back(self, state: int, identity: int, g: int, w: int) -> _Move:
        """The move that led from a state to the cell (g, w) with this kernel."""
        template, costs, pre = self.template, self.costs, self.pre
        previous = self._history(state)
        stay = previous[g, w] + costs.stay[identity, g, w]
        extra = previous[g, w] + costs.extra[identity] * template.outside[g]
        broken, leave, entry = False, np.empty(0), np.inf
        if not state:
            outside = float(min(template.start[g], template.ragged - pre[g, w]))
            extra = outside + pre[g, w] + costs.extra[identity] * template.outside[g] + 0.5
        else:
            leave = (previous + self.rest).min(axis=1) + template.transition[:, g]
            entry = float(leave.min())
            broken = g == 0 and float(previous.min()) + template.cut < entry
            if broken:
                entry = float(previous.min()) + template.cut
        source, reached, inside = self._reached(state, identity, g, w, entry)
        enter = reached + costs.enter[identity, g, w]
        if extra <= enter and extra <= stay:
            return _Move(False, False, False, -1, g, w)
        if stay <= enter:
            return _Move(True, True, False, -1, g, w)
        if inside:
            return _Move(True, False, False, source, g, source)
        if not state:
            return _Move(True, False, True, -1, g, w)
        if broken:
            return _Move(True, False, True, -1, *divmod(int(previous.argmin()), self.width))
        origin = int(leave.argmin())
        return _Move(True, False, True, -1, origin, int((previous[origin] + self.rest[origin]).argmin()))

    def _reached(self, state: int, identity: int, g: int, w: int, entry: float) -> tuple[int, float, bool]:
        """The slot that the cell (g, w) is best entered from, the cost, and whether in the same pass.

        A kernel that does several ops comes from before the first of them, or from one of them.
        """
        template, pre = self.template, self.pre
        best = (-1, np.inf, False)
        for first in dict.fromkeys((w, int(self.costs.opening[identity, g, w]))):
            source, within = self._within(self._history(state), g, first, loops=bool(state))
            opening = entry if state else float(min(template.start[g], template.ragged - pre[g, first]))
            reached = min(opening, float(within)) + float(pre[g, first])
            if reached < best[1]:
                best = (source, reached, bool(within <= opening))
        return best

    def _within(
        self, previous: npt.NDArray[np.float32], g: int, w: int, *, loops: bool
    ) -> tuple[int, np.floating]:
        """The slot of the same pass that the cell (g, w) is best entered from, and its cost."""
        inside = previous[g, :w] - self.after[g, :w]
        source = int(inside.argmin()) if w else -1
        within: np.floating = inside[source] if w else np.float64(np.inf)
        if loops:
            for at, origin, target, cost_back in self.template.loops:
                if at == g and target <= w:
                    back = previous[g, origin] + cost_back - self.pre[g, target]
                    if back < within:
                        source, within = origin, back
        return source, within
