"""How well a kernel fits an op by its class and its name, as a cost: 0 is a clean match.

Nothing here looks at the order of kernels or at their durations.
"""

from __future__ import annotations

from nsysmodel.join.knowledge import OpBelief, op_belief
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
MISFIT = 14.0
"""Cost of a kernel of a plainly different kind; above any `extra`, so it is never the cheapest."""


def class_cost(kernel: KernelClass, op: Op, belief: OpBelief, *, eager_attention: bool = True) -> float:
    """Cost of a kernel of this class opening an op, before physics.

    `eager_attention` allows products and element-wise kernels to be attention: only where the capture has no
    attention kernel.
    """
    if covers(kernel, op, belief):
        return 0.0
    if _covers_others(kernel, op, belief):
        return MISFIT if kernel.confidence >= 0.7 else 2.0
    found = kernel.kernel_class
    if found in COLLECTIVE_CLASSES and COLLECTIVE_CLASSES & set(op.classes):
        return _collective_fit(kernel, op)
    if _speaks_against(kernel, belief):
        return MISFIT
    if found in op.classes:
        return max(0.1 * op.classes.index(found), _opening(kernel, belief)) + _norm_fit(kernel, op, belief)
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
    if covers(kernel, op, belief):
        return belief.split
    if found == "attention_combine" and ATTENTION_CLASSES & set(op.classes):
        return 0.0
    if _speaks_against(kernel, belief):
        return MISFIT
    if found in op.classes:
        split = belief.split_grouped if found == "moe_gemm" else belief.split
        return split + 0.1 * op.classes.index(found)
    if found in belief.needs:
        return belief.split
    if unnamed(kernel) and op.optional and not GEMM_CLASSES & set(op.classes):
        return 0.3
    if found in GEMM_CLASSES and GEMM_CLASSES & set(op.classes):
        return belief.split + 1.2
    return MISFIT


def covers_op(kernel: KernelClass, op: Op) -> bool:
    """True where the vocabulary says that this kernel does this op."""
    return covers(kernel, op, op_belief(op))


def _eager(kernel: KernelClass, belief: OpBelief) -> bool:
    """An element-wise kernel that computes part of the op; a table look-up is only part of an embedding."""
    if kernel.kernel_class == "embedding" and "embedding" not in belief.eager:
        return False
    return kernel.kernel_class in EAGER_CLASSES and bool(kernel.traits & belief.eager)


def _covers_others(kernel: KernelClass, op: Op, belief: OpBelief) -> bool:
    """The vocabulary says what this kernel does, and it is not this op."""
    if not kernel.covers or kernel.kernel_class in GEMM_CLASSES:
        return False
    placed = bool(belief.generic) and belief.generic in kernel.covers
    if kernel.covers[0] in ("norm", "act") and kernel.kernel_class in op.classes:
        return False
    return not placed and not covers(kernel, op, belief)


def _speaks_against(kernel: KernelClass, belief: OpBelief) -> bool:
    """An element-wise kernel says what it computes; an op that never computes that is not served by it."""
    if kernel.kernel_class not in GENERIC_CLASSES or "opaque" in kernel.traits:
        return False
    return bool(kernel.traits) and bool(belief.eager) and not kernel.traits & belief.eager


def covers(kernel: KernelClass, op: Op, belief: OpBelief) -> bool:
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


def _opening(kernel: KernelClass, belief: OpBelief) -> float:
    """What the data says of opening the op with an element-wise kernel of this word."""
    if kernel.kernel_class not in GENERIC_CLASSES:
        return 0.0
    return max((belief.opens[word] for word in kernel.traits & belief.opens.keys()), default=0.0)


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
