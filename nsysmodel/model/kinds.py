"""The op kinds that model files may name, with their parameters and kernel classes."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass

from nsysmodel.theory.ops import attention, collectives, compressed, gemm, links, recurrent, small, sparse
from nsysmodel.theory.ops.types import OpCost, Setting


def _latent_write(at: Setting, *, rank: float, rope: float) -> OpCost:
    """KV write of MLA: one latent row per token."""
    return small.kv_write(
        at, numbers=rank + rope, entry_bytes=attention.latent_entry_bytes(at.kv, rank, rope)
    )


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of op.

    Attributes:
        cost: cost function: (setting, **parameters) -> OpCost.
        classes: kernel classes that may serve it, most likely first.
        numbers: parameters that are expressions, with True where required.
        takes_weight: True where it has a weight format.
        takes_algorithm: True for collectives with a choice of algorithm.
        takes_link: True where `link` names a link.
    """

    cost: Callable[..., OpCost]
    classes: tuple[str, ...]
    numbers: dict[str, bool]
    takes_weight: bool
    takes_algorithm: bool
    takes_link: bool = False


def _kind(cost: Callable[..., OpCost], *classes: str) -> Kind:
    signature = inspect.signature(cost).parameters
    given = {name: item for name, item in signature.items() if name != "at"}
    numbers = {
        name: item.default is inspect.Parameter.empty
        for name, item in given.items()
        if name not in ("weight", "algorithm", "link") or item.annotation == "float"
    }
    takes_weight = "weight" in given and "weight" not in numbers
    takes_link = "link" in given and "link" not in numbers
    return Kind(cost, classes, numbers, takes_weight, "algorithm" in given, takes_link)


_ATTENTION = ("attention_decode", "attention_prefill", "attention_combine")

KINDS: dict[str, Kind] = {
    "gemm": _kind(gemm.gemm, "gemm"),
    "head_gemm": _kind(gemm.head_gemm, "gemm"),
    "moe_gemm": _kind(gemm.moe_gemm, "moe_gemm", "gemm"),
    "attention": _kind(attention.attention, *_ATTENTION),
    "latent_attention": _kind(attention.latent_attention, *_ATTENTION),
    "expanded_attention": _kind(attention.expanded_attention, "attention_prefill", "attention_decode"),
    "compressed_attention": _kind(compressed.compressed_attention, *_ATTENTION),
    "compressed_indexer": _kind(
        compressed.compressed_indexer, "gemm", "attention_decode", "router_topk", "quantize", "elementwise"
    ),
    "block_indexer": _kind(sparse.block_indexer, "attention_decode", "router_topk", "gemm", "elementwise"),
    "indexer": _kind(sparse.indexer, "gemm", "attention_decode", "router_topk", "quantize", "elementwise"),
    "norm": _kind(small.norm, "norm"),
    "qk_norm": _kind(small.qk_norm, "norm", "rope", "elementwise"),
    "rope": _kind(small.rope, "rope", "elementwise"),
    "kv_write": _kind(small.kv_write, "kv_write", "copy_cast"),
    "latent_write": _kind(_latent_write, "kv_write", "copy_cast"),
    "activation": _kind(small.activation, "activation", "elementwise"),
    "topk": _kind(small.topk, "router_topk"),
    "permute": _kind(small.permute, "moe_permute"),
    "weighted_sum": _kind(small.weighted_sum, "reduce", "moe_permute", "elementwise"),
    "embedding": _kind(small.embedding, "embedding", "elementwise"),
    "sampling": _kind(small.sampling, "sampling", "reduce"),
    "quantize": _kind(small.quantize, "quantize"),
    "elementwise": _kind(small.elementwise, "elementwise", "activation"),
    "copy": _kind(small.copy, "copy_cast", "memcpy_memset"),
    "zero_copy": _kind(links.zero_copy, "copy_cast", "embedding", "elementwise"),
    "conv": _kind(recurrent.conv, "conv", "ssm"),
    "delta_net": _kind(recurrent.delta_net, "ssm"),
    "mamba2": _kind(recurrent.mamba2, "ssm"),
    "allreduce": _kind(collectives.allreduce, "allreduce"),
    "allgather": _kind(collectives.allgather, "allgather"),
    "alltoall": _kind(collectives.alltoall, "alltoall", "allgather"),
}

CLASSES = (
    "gemm",
    "moe_gemm",
    "attention_decode",
    "attention_prefill",
    "attention_combine",
    "norm",
    "rope",
    "kv_write",
    "activation",
    "router_topk",
    "moe_permute",
    "allreduce",
    "allgather",
    "alltoall",
    "embedding",
    "sampling",
    "quantize",
    "conv",
    "ssm",
    "elementwise",
    "reduce",
    "copy_cast",
    "memcpy_memset",
    "other",
)
