"""The places of a step that kernels can take: a model's ops laid out as slots in groups.

A group is a run of slots that is passed through in order: the head, one layer kind (or one layer), the tail.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nsysmodel.join.types import Floats, Ints
from nsysmodel.model.types import Op, StepModel
from nsysmodel.theory.cost import ZERO

FORBIDDEN = 1e6
"""Cost of what must not happen; finite, so that sums stay ordered."""


DRAFT = Op("draft", "draft", ZERO, (), optional=True)
"""What speculative decoding runs after the sampler: passes of a draft, which no model lists."""

OUTSIDE = 0.4
"""An extra kernel outside the layers costs this share of one inside."""


@dataclass(frozen=True, slots=True)
class Group:
    """A run of slots. `layer` is its layer number, or -1; `kind` is `head`, `tail` or a layer kind.

    `positions` are the places of `ops` in the model, whose order may be another.
    """

    kind: str
    layer: int
    ops: tuple[Op, ...]
    positions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Template:
    """Groups and the cost of going from one to another.

    Attributes:
        groups: head, layers or layer kinds, tail.
        ops: the distinct ops of all slots.
        slot_op: [groups, width] index into `ops`; -1 pads short groups.
        skip: [groups, width] cost of leaving a slot unserved; 0 in the padding.
        transition: [groups, groups] cost of entering a group after leaving another.
        start: [groups] cost of entering a group first.
        finish: [groups] cost of ending in a group.
        loops: (group, from slot, to slot, cost) of ways back inside a group.
        outside: [groups] share of its cost that an extra kernel has there: between steps engines prepare
            inputs and tables.
        ragged: cost of beginning or ending in the middle of a group.
        cut: cost of breaking off anywhere and beginning anew in the head (a capture with a hole, a forward
            that was stopped).
    """

    groups: tuple[Group, ...]
    ops: tuple[Op, ...]
    slot_op: Ints
    skip: Floats
    transition: Floats
    start: Floats
    finish: Floats
    loops: tuple[tuple[int, int, int, float], ...]
    outside: Floats
    ragged: float
    cut: float

    @property
    def missing(self) -> Floats:
        """Cost of leaving out each whole group."""
        total: Floats = self.skip.sum(axis=1)
        return total


@dataclass(frozen=True, slots=True)
class Orders:
    """One order in which an engine may run the ops of a layer; see `data/ops.yaml`.

    Attributes:
        loops: (from, to): ways back from one op to an earlier one, each for `loop_cost`.
        moved, before: ops that run earlier than in the model, before the op `before`.
    """

    loops: tuple[tuple[str, str], ...] = ()
    loop_cost: float = 0.0
    moved: frozenset[str] = frozenset()
    before: str = ""

    def group(self, kind: str, layer: int, ops: Sequence[Op]) -> Group:
        """A group with the moved ops at their other place, where the group has that place."""
        slots = list(range(len(ops)))
        target = next((w for w, op in enumerate(ops) if op.id == self.before), None)
        if target is not None:
            late = [w for w in slots if ops[w].id in self.moved and w > target]
            slots = (
                [w for w in slots if w < target] + late + [w for w in slots if w >= target and w not in late]
            )
        return Group(kind, layer, tuple(ops[w] for w in slots), tuple(slots))

    def ways_back(self, groups: Sequence[Group]) -> tuple[tuple[int, int, int, float], ...]:
        """Every loop of every group: from the last slot of one op to the first of another."""
        found = []
        for g, group in enumerate(groups):
            ids = [op.id for op in group.ops]
            for origin, target in self.loops:
                if origin in ids and target in ids and ids.index(target) < len(ids) - 1:
                    last = len(ids) - 1 - ids[::-1].index(origin)
                    if ids.index(target) < last:
                        found.append((g, last, ids.index(target), self.loop_cost))
        return tuple(found)


def cyclic(
    model: StepModel, skip_cost: dict[str, float], orders: Orders, *, whole_steps: bool = False
) -> Template:
    """One group per layer *structure*; the layers are counted, not prescribed.

    Layer kinds with the same op ids share a group: they differ in cost, not in what runs. A path that goes
    through the head begins a new step.

    With `whole_steps` a step may not end early: the capture was seen to run to its LM head, so what looks
    like a forward that broke off is a stray kernel.
    """
    kinds: dict[tuple[str, ...], Group] = {}
    sequence: list[tuple[str, ...]] = []
    for name in model.layers:
        ops = model.kinds[name]
        key = tuple(op.id for op in ops)
        kinds.setdefault(key, orders.group(name, 0, ops))
        sequence.append(key)
    order = list(kinds)
    groups = (orders.group("head", -1, model.head), *kinds.values(), orders.group("tail", -1, _tail(model)))
    count = len(groups)
    slot_op, ops, skip = _slots(groups, skip_cost)
    missing = skip.sum(axis=1)
    transition = np.full((count, count), 12.0)
    position = {key: index + 1 for index, key in enumerate(order)}
    for first, second in itertools.pairwise(sequence):
        transition[position[first], position[second]] = 0.0
    last, tail = position[sequence[-1]], count - 1
    entry = position[sequence[0]]
    transition[0, entry] = 0.0
    transition[last, tail] = 0.0
    transition[tail, 0] = 0.0
    transition[tail, entry] = missing[0]
    # A forward may end before its LM head; whether it does is not worth guessing more than once a step.
    transition[last, 0] = (missing[tail] if whole_steps else min(missing[tail], 2.5)) + 1.0
    for index in range(1, tail):
        transition[index, tail] = min(transition[index, tail], 8.0)
    transition[0, 0] = transition[tail, tail] = FORBIDDEN
    return Template(
        groups,
        ops,
        slot_op,
        skip,
        transition,
        np.concatenate(([0.0], np.full(count - 1, 2.0))),
        np.zeros(count),
        orders.ways_back(groups),
        _outside(groups),
        4.0,
        7.0,
    )


def linear(model: StepModel, skip_cost: dict[str, float], orders: Orders) -> Template:
    """Every layer as a group of its own, in order, once."""
    layers = tuple(orders.group(kind, index, model.kinds[kind]) for index, kind in enumerate(model.layers))
    groups = (orders.group("head", -1, model.head), *layers, orders.group("tail", -1, _tail(model)))
    slot_op, ops, skip = _slots(groups, skip_cost)
    missing = skip.sum(axis=1)
    before = np.concatenate(([0.0], np.cumsum(missing)))
    # Going from group g to group h leaves out the groups between them.
    transition = before[None, :-1] - before[1:, None]
    transition[np.tril_indices(len(groups))] = FORBIDDEN
    start = before[:-1].copy()
    finish = before[-1] - before[1:]
    return Template(
        groups,
        ops,
        slot_op,
        skip,
        transition,
        start,
        finish,
        orders.ways_back(groups),
        _outside(groups),
        FORBIDDEN,
        FORBIDDEN,
    )


def _tail(model: StepModel) -> tuple[Op, ...]:
    """Ops after the layers; a step that verifies several tokens per sequence ends with its draft passes."""
    workload = model.workload
    verifies = workload.phase.value == "decode" and workload.tokens.value > 1
    return (*model.tail, DRAFT) if verifies else model.tail


def _outside(groups: Sequence[Group]) -> Floats:
    """Share of the cost of an extra kernel in each group."""
    return np.array([1.0 if group.layer >= 0 else OUTSIDE for group in groups])


def _slots(groups: Sequence[Group], skip_cost: dict[str, float]) -> tuple[Ints, tuple[Op, ...], Floats]:
    """Slot table, distinct ops and skip costs of the groups. Kinds may share an op id with other costs."""
    width = max(1, *(len(group.ops) for group in groups))
    slot_op = np.full((len(groups), width), -1, dtype=np.int64)
    skip = np.zeros((len(groups), width))
    ops: list[Op] = []
    seen: dict[int, int] = {}
    for g, group in enumerate(groups):
        for w, op in enumerate(group.ops):
            if id(op) not in seen:
                seen[id(op)] = len(ops)
                ops.append(op)
            slot_op[g, w] = seen[id(op)]
            skip[g, w] = 0.0 if op is DRAFT else skip_cost[op.id]
    return slot_op, tuple(ops), skip
