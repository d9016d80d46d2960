"""How well a kernel fits an op, as costs: its class, its name, the words in it, and what physics allows.

A cost of 0 is a clean match. Nothing here looks at the order of kernels; that is the aligner's part.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from typing import Any

import numpy as np

from nsysmodel.join.template import FORBIDDEN, Orders, Template
from nsysmodel.join.types import Floats
from nsysmodel.join.viterbi import Costs
from nsysmodel.join.vocabulary import KernelClass
from nsysmodel.model.types import Op

EAGER_CLASSES = frozenset(
    {"elementwise", "reduce", "copy_cast", "memcpy_memset", "sampling", "router_topk"}
    | {"embedding", "activation", "other"}
)
GENERIC_CLASSES = frozenset({"elementwise", "reduce", "copy_cast"})
GEMM_CLASSES = frozenset({"gemm", "moe_gemm"})
ATTENTION_CLASSES = frozenset({"attention_decode", "attention_prefill"})
DENSE_TWIN = {"gate_up_proj": "moe_gate_up", "act": "moe_act", "down_proj": "moe_down"}
"""Names that speak of experts are used for dense layers, too."""
COLLECTIVE_CLASSES = frozenset({"allreduce", "allgather", "alltoall"})
SCATTERS = frozenset({"moe_combine", "attn_allreduce", "mlp_allreduce"})
"""Collective ops that a reduce-scatter may serve; an all-gather serves the others."""
OPAQUE_CLASSES = frozenset({"other"})
ASIDE = 0.2
"""Cost of not finding in the main chain what may run on a side stream."""
LATER = 0.001
"""Preference of a further kernel for a later op, where all else is equal."""
MISFIT = 14.0
"""Cost of a kernel of a plainly different kind; above any `extra`, so it is never the cheapest."""


@dataclass(frozen=True, slots=True)
class OpBelief:
    """What `data/ops.yaml` says of one op id; see there."""

    missing: float
    split: float
    eager: frozenset[str]
    needs: frozenset[str]
    generic: str
    family: str
    beside: bool
    opens: Mapping[str, float]
    goes_on: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Identity:
    """A launch identity: kernel name with its launch shape, and how long it typically runs."""

    kernel_class: KernelClass
    name: str
    median_ns: float
    count: int


@functools.cache
def _table() -> dict[str, Any]:
    import yaml

    text = (resources.files("nsysmodel.join") / "data" / "ops.yaml").read_text("utf-8")
    table: dict[str, Any] = yaml.safe_load(text)
    return table


def orders(ids: Collection[str]) -> tuple[Orders, ...]:
    """The orders in which engines may run the ops `ids`, the model's own first; from `data/ops.yaml`."""
    table = _table()
    loops = tuple((str(loop["from"]), str(loop["to"])) for loop in table["loops"])
    found = [Orders(loops=loops, loop_cost=float(table["loop_cost"]))]
    for entry in table["alternatives"]:
        moved = frozenset(entry["ops"])
        if moved & set(ids):
            found += [replace(found[0], moved=moved, before=b) for b in entry["before"] if b in ids]
    return tuple(found)


def op_belief(op: Op) -> OpBelief:
    """The beliefs about an op; by its id, else by what it costs."""
    table = _table()
    heavy = op.cost.weight_bytes > 1e5 or not op.optional
    fallback = table["defaults"]["heavy" if heavy else "small"]
    entry = {**fallback, **table["ops"].get(op.id, {})}
    missing = float(entry["missing"])
    if op.optional:
        missing = min(missing, float(table["defaults"]["optional"]["missing"]) * 2)
    return OpBelief(
        missing=missing,
        split=float(entry["split"]),
        eager=frozenset(entry.get("eager", ())),
        needs=frozenset(entry.get("needs", ())),
        generic=str(entry.get("generic", "")),
        family=str(entry.get("family", "")),
        beside=bool(entry.get("beside", False)),
        opens=entry.get("opens", {}),
        goes_on=entry.get("goes_on", {}),
    )


def skip_costs(ops: Iterable[Op], *, side_streams: bool = False) -> dict[str, float]:
    """Cost of leaving each op unserved, by op id; little for what may run on a side stream."""
    beliefs = {op.id: op_belief(op) for op in ops}
    return {
        op_id: min(belief.missing, ASIDE) if side_streams and belief.beside else belief.missing
        for op_id, belief in beliefs.items()
    }


def extra_cost(kernel: KernelClass) -> float:
    """Cost of taking a kernel as serving nothing in the model."""
    table = _table()["extra"]
    return float(table.get(kernel.kernel_class, table["default"]))


def class_cost(kernel: KernelClass, op: Op, belief: OpBelief, *, eager_attention: bool = True) -> float:
    """Cost of a kernel of this class opening an op, before physics.

    `eager_attention` allows products and element-wise kernels to be attention: only where the capture has no
    attention kernel.
    """
    if _covers(kernel, op, belief):
        return 0.0
    if _covers_others(kernel, op, belief):
        return MISFIT if kernel.confidence >= 0.7 else 2.0
    found = kernel.kernel_class
    if found in COLLECTIVE_CLASSES and COLLECTIVE_CLASSES & set(op.classes):
        return _collective_fit(kernel, op)
    if _speaks_against(kernel, belief):
        return MISFIT
    if found in op.classes:
        return 0.1 * op.classes.index(found) + _norm_fit(kernel, op, belief)
    if found in ATTENTION_CLASSES and ATTENTION_CLASSES & set(op.classes):
        return 0.5
    if found in GEMM_CLASSES and GEMM_CLASSES & set(op.classes):
        # A grouped product is hardly a plain one; the other way round the op lists both classes.
        return 3.0 if found == "moe_gemm" else 1.2
    if _eager(kernel, belief) and not belief.needs:
        return max((belief.opens.get(word, 0.5) for word in kernel.traits & belief.eager), default=0.5)
    if belief.needs and found in belief.needs and eager_attention:
        return 1.5
    if "opaque" in kernel.traits or found in OPAQUE_CLASSES:
        return _opaque_cost(kernel, op)
    return MISFIT


def stay_cost(kernel: KernelClass, op: Op, belief: OpBelief, *, eager_attention: bool = True) -> float:
    """Cost of a kernel being a further kernel of the op that the kernel before it served."""
    found = kernel.kernel_class
    if belief.needs and not eager_attention and found in GEMM_CLASSES:
        return MISFIT
    if _covers_others(kernel, op, belief):
        return MISFIT
    if _eager(kernel, belief):
        return max((belief.goes_on.get(word, 0.08) for word in kernel.traits & belief.eager), default=0.08)
    if _covers(kernel, op, belief):
        return belief.split
    if found == "attention_combine" and ATTENTION_CLASSES & set(op.classes):
        return 0.0
    if _speaks_against(kernel, belief):
        return MISFIT
    if found in op.classes:
        return belief.split + 0.1 * op.classes.index(found)
    if found in belief.needs:
        return belief.split
    if unnamed(kernel) and op.optional and not GEMM_CLASSES & set(op.classes):
        return 0.3
    if found in GEMM_CLASSES and GEMM_CLASSES & set(op.classes):
        return belief.split + 1.2
    return MISFIT


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
    grouped = any(identity.kernel_class.kernel_class == "moe_gemm" for identity in identities)
    norms = [i.kernel_class for i in identities if i.kernel_class.kernel_class == "norm"]
    fused_norms, residual = bool(norms), any({"residual", "add"} & norm.traits for norm in norms)
    for k, op in enumerate(template.ops):
        floor_ns, hard_ns = floors.get(k, (0.0, 0.0))
        for i, identity in enumerate(identities):
            cost = class_cost(identity.kernel_class, op, beliefs[k], eager_attention=eager)
            if op.pattern:
                cost = 0.0 if re.search(op.pattern, identity.name) else cost + 1.5
            if fused_norms and beliefs[k].generic == "norm" and _prepares(identity.kernel_class, residual):
                cost = MISFIT
            if grouped and _one_of_many(identity, op):
                cost = MISFIT
            if _cannot_be(identity, hard_ns):
                cost = MISFIT
            fused = len(identity.kernel_class.covers) > 1
            if cost < MISFIT and not fused and not _one_of_many(identity, op):
                cost += physics_cost(identity.median_ns, floor_ns, hard_ns)
            enter[i, k] = cost
            stay[i, k] = stay_cost(identity.kernel_class, op, beliefs[k], eager_attention=eager)
    enter_slots, stay_slots = enter[:, template.slot_op], stay[:, template.slot_op]
    # Between two equally good places of a run the later op begins early.
    stay_slots -= LATER * np.arange(template.slot_op.shape[1])
    _refund_fused(template, identities, beliefs, enter_slots)
    return Costs(enter_slots, stay_slots, extra)


def _refund_fused(
    template: Template, identities: Sequence[Identity], beliefs: Sequence[OpBelief], enter: Floats
) -> None:
    """A kernel that does a, b and c enters at c; the skipped a and b are not missing.

    The refund is the skip cost of the slots it covers, and it is given only where they stand right before.
    """
    fused = [i for i, identity in enumerate(identities) if len(identity.kernel_class.covers) > 1]
    for g, group in enumerate(template.groups):
        for w in range(1, len(group.ops)):
            for i in fused:
                kernel = identities[i].kernel_class
                here = group.ops[w]
                if not _covers(kernel, here, beliefs[template.slot_op[g, w]]):
                    continue
                refund, back = 0.0, w - 1
                while back >= 0 and (
                    _covers(kernel, group.ops[back], beliefs[template.slot_op[g, back]])
                    or template.skip[g, back] == 0
                ):
                    refund += template.skip[g, back]
                    back -= 1
                enter[i, g, w] -= refund


def covers_op(kernel: KernelClass, op: Op) -> bool:
    """True where the vocabulary says that this kernel does this op."""
    return _covers(kernel, op, op_belief(op))


def _eager(kernel: KernelClass, belief: OpBelief) -> bool:
    """An element-wise kernel that computes part of the op."""
    return kernel.kernel_class in EAGER_CLASSES and bool(kernel.traits & belief.eager)


def _prepares(kernel: KernelClass, residual_norms: bool) -> bool:
    """Element-wise work that is no part of a norm where norms are single kernels.

    A residual add is, unless the norm kernels add the residual themselves.
    """
    return kernel.kernel_class in EAGER_CLASSES and (residual_norms or "add" not in kernel.traits)


def _covers_others(kernel: KernelClass, op: Op, belief: OpBelief) -> bool:
    """The vocabulary says what this kernel does, and it is not this op."""
    if not kernel.covers or kernel.kernel_class in GEMM_CLASSES:
        return False
    placed = bool(belief.generic) and belief.generic in kernel.covers
    if kernel.covers[0] in ("norm", "act") and kernel.kernel_class in op.classes:
        return False
    return not placed and not _covers(kernel, op, belief)


def _speaks_against(kernel: KernelClass, belief: OpBelief) -> bool:
    """An element-wise kernel says what it computes; an op that never computes that is not served by it."""
    if kernel.kernel_class not in GENERIC_CLASSES or "opaque" in kernel.traits:
        return False
    return bool(kernel.traits) and bool(belief.eager) and not kernel.traits & belief.eager


def _covers(kernel: KernelClass, op: Op, belief: OpBelief) -> bool:
    """True where the vocabulary says that this kernel does this op."""
    if op.id in kernel.covers or DENSE_TWIN.get(op.id) in kernel.covers:
        return True
    return bool(belief.generic) and op.id != "qk_norm" and belief.generic in kernel.covers


def _norm_fit(kernel: KernelClass, op: Op, belief: OpBelief) -> float:
    """A q/k norm and a layer norm share a class; their traits tell them apart."""
    if belief.generic != "norm":
        return 0.0
    if op.id == "qk_norm":
        return 0.0 if "qk_norm" in kernel.traits else (2.5 if "residual" in kernel.traits else 0.8)
    return 2.5 if "qk_norm" in kernel.traits else 0.0


def _cannot_be(identity: Identity, hard_ns: float) -> bool:
    """An unknown kernel far below an op's hard floor is not that op; a known product may be."""
    return identity.kernel_class.kernel_class in OPAQUE_CLASSES and identity.median_ns < 0.5 * hard_ns


def _one_of_many(identity: Identity, op: Op) -> bool:
    """A plain product in place of a grouped one is one expert of many: the op's floor says nothing of it."""
    return "moe_gemm" in op.classes and identity.kernel_class.kernel_class == "gemm"


def _collective_fit(kernel: KernelClass, op: Op) -> float:
    """An all-reduce may be split into a reduce-scatter before and an all-gather after other work."""
    if kernel.kernel_class == "allreduce":
        return 0.0 if "allreduce" in op.classes else 1.5
    scatter = "reduce_scatter" in kernel.traits
    if scatter:
        return 0.1 if op.id == "moe_combine" else (0.3 if op.id in SCATTERS else 2.0)
    return 0.2 if op.id not in SCATTERS else 2.0


def unnamed(kernel: KernelClass) -> bool:
    """True for a compiler's kernel whose name tells nothing (`triton_poi_fused_3`): some small op."""
    return "opaque" in kernel.traits and kernel.engine in ("inductor", "triton")


def _opaque_cost(kernel: KernelClass, op: Op) -> float:
    """A name that says nothing: a compiler's kernel is a small op, any other may be a heavy one.

    An unknown kernel is never taken for a small op: a debug check would then hide under its name.
    """
    heavy = bool((GEMM_CLASSES | ATTENTION_CLASSES | {"ssm"}) & set(op.classes))
    if unnamed(kernel):
        return MISFIT if heavy else 0.6
    return 1.5 if heavy else MISFIT
