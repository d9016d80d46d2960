"""Belief costs of launch identities at the slots of a template: classes, names, and what physics allows."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nsysmodel.join.beliefs import (
    ATTENTION_CLASSES,
    EAGER_CLASSES,
    MISFIT,
    OPAQUE_CLASSES,
    class_cost,
    covers,
    stay_cost,
    unnamed,
)
from nsysmodel.join.knowledge import OpBelief, extra_cost, op_belief
from nsysmodel.join.template import DRAFT, FORBIDDEN, Template
from nsysmodel.join.types import Floats, Ints
from nsysmodel.join.viterbi import Costs
from nsysmodel.join.vocabulary import KernelClass
from nsysmodel.model.types import Op

LATER = 0.001
"""Preference of a further kernel for a later op, where all else is equal."""
DRAFT_BEGINS, DRAFT_GOES_ON = 2.0, 0.25
"""Costs of kernels of a draft pass, whatever they are: less than those of kernels that nothing explains."""
PARTLY = 0.1
"""Cost of a kernel doing less than its name says: of two that name an op, the first does it."""


@dataclass(frozen=True, slots=True)
class Identity:
    """A launch identity: kernel name with its launch shape, and how long it typically runs."""

    kernel_class: KernelClass
    name: str
    median_ns: float
    count: int


def physics_cost(median_ns: float, floor_ns: float, hard_floor_ns: float) -> float:
    """Cost of an op of this floor taking this long; nothing below a few µs, where launches decide.

    A kernel that would beat the hard floor is unlikely to be this op; one that is many times slower is a
    little less likely than a close one. The logarithm of measured / (1.4 floor) has no unit.
    """
    if floor_ns < 1500 and median_ns < 25_000:
        return 0.0
    ratio = median_ns / max(floor_ns, 1500.0)
    cost = min(2.5, 0.6 * abs(math.log(max(ratio, 1e-3) / 1.4)))
    if hard_floor_ns > 3000 and median_ns < 0.6 * hard_floor_ns:
        cost += 2.5
    return cost


def costs_of(
    template: Template, identities: Sequence[Identity], floors: Mapping[int, tuple[float, float]]
) -> Costs:
    """Belief costs of every identity at every slot.

    Args:
        template: the slots.
        identities: launch identities of the sequence.
        floors: by index into `template.ops`: (floor, hard floor) in ns.
    """
    beliefs = [op_belief(op) for op in template.ops]
    count, slots = len(identities), len(template.ops)
    enter = np.full((count, slots + 1), FORBIDDEN)
    stay = np.full((count, slots + 1), FORBIDDEN)
    extra = np.array([extra_cost(identity.kernel_class) for identity in identities])
    eager = not any(identity.kernel_class.kernel_class in ATTENTION_CLASSES for identity in identities)
    grouped = _grouped(identities)
    norms = [i.kernel_class for i in identities if i.kernel_class.kernel_class == "norm"]
    fused_norms, residual = bool(norms), any({"residual", "add"} & norm.traits for norm in norms)
    for k, op in enumerate(template.ops):
        if op is DRAFT:
            enter[:, k], stay[:, k] = DRAFT_BEGINS, DRAFT_GOES_ON
            continue
        floor_ns, hard_ns = floors.get(k, (0.0, 0.0))
        for i, identity in enumerate(identities):
            cost = class_cost(identity.kernel_class, op, beliefs[k], eager_attention=eager)
            named = bool(op.pattern and re.search(op.pattern, identity.name))
            if op.pattern:
                cost = 0.0 if named else cost + 1.5
            if fused_norms and beliefs[k].generic == "norm" and _prepares(identity.kernel_class, residual):
                cost = MISFIT
            if grouped and _one_of_many(identity, op):
                cost = MISFIT
            if _cannot_be(identity, hard_ns):
                cost = MISFIT
            fused = len(identity.kernel_class.covers) > 1
            if cost < MISFIT and not fused and not named and not _one_of_many(identity, op):
                cost += physics_cost(identity.median_ns, floor_ns, hard_ns)
            enter[i, k] = cost
            stay[i, k] = stay_cost(identity.kernel_class, op, beliefs[k], eager_attention=eager)
    enter_slots, stay_slots = enter[:, template.slot_op], stay[:, template.slot_op]
    # Between two equally good places of a run the later op begins early.
    stay_slots -= LATER * np.arange(template.slot_op.shape[1])
    return Costs(enter_slots, stay_slots, extra, _openings(template, identities, beliefs, enter_slots))


def _openings(
    template: Template, identities: Sequence[Identity], beliefs: Sequence[OpBelief], enter: Floats
) -> Ints:
    """First slot that each identity serves when it enters a slot: [identities, groups, width].

    A kernel that does a, b and c enters at c; a and b are served with it where they stand right before,
    apart from what costs nothing to leave out. Entering at a or b is made a little dearer in `enter`.
    """
    width = template.slot_op.shape[1]
    opening = np.tile(np.arange(width), (len(identities), len(template.groups), 1))
    fused = [i for i, identity in enumerate(identities) if len(identity.kernel_class.covers) > 1]
    for g, group in enumerate(template.groups):
        ops = [beliefs[template.slot_op[g, w]] for w in range(len(group.ops))]
        for i in fused:
            kernel = identities[i].kernel_class
            does = [covers(kernel, op, belief) for op, belief in zip(group.ops, ops, strict=True)]
            free = template.skip[g] == 0
            for w in np.flatnonzero(does):
                back = w
                while back > 0 and (does[back - 1] or free[back - 1]):
                    back -= 1
                opening[i, g, w] = back
            more = [w for w, (here, after) in enumerate(itertools.pairwise(does)) if here and after]
            enter[i, g, more] += PARTLY
    return opening


def _prepares(kernel: KernelClass, residual_norms: bool) -> bool:
    """Element-wise work that is no part of a norm where norms are single kernels.

    A residual add is, unless the norm kernels add the residual themselves.
    """
    if kernel.kernel_class not in EAGER_CLASSES or unnamed(kernel):
        return False
    return residual_norms or "add" not in kernel.traits


def _cannot_be(identity: Identity, hard_ns: float) -> bool:
    """An unknown kernel far below an op's hard floor is not that op; a known product may be."""
    return identity.kernel_class.kernel_class in OPAQUE_CLASSES and identity.median_ns < 0.5 * hard_ns


def _grouped(identities: Sequence[Identity]) -> bool:
    """Grouped products run both halves of the experts: then a plain product is none of theirs."""
    count = {"moe_gemm": 0, "router_topk": 0}
    for identity in identities:
        found = identity.kernel_class.kernel_class
        if found in count and not identity.kernel_class.helper:
            count[found] += identity.count
    return count["moe_gemm"] > 1.5 * count["router_topk"]


def _one_of_many(identity: Identity, op: Op) -> bool:
    """A plain product in place of a grouped one is one expert of many: the op's floor says nothing of it."""
    return "moe_gemm" in op.classes and identity.kernel_class.kernel_class == "gemm"
