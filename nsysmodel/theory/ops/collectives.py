"""Collectives: bytes over the link per rank and direction. Latency, which rules small ones, is no roof."""

from __future__ import annotations

from nsysmodel.theory.cost import Cost
from nsysmodel.theory.ops.types import OpCost, Setting, number

ALGORITHMS = ("nvls", "ring", "one_shot")


def allreduce(at: Setting, *, numbers: float, ranks: float, algorithm: str = "nvls") -> OpCost:
    """All-reduce of D bytes over N ranks: ring 2·D·(N−1)/N, one-shot D·(N−1), in-switch (NVLS) D·(1+1/N).

    The bound is the least of the three algorithms' bytes that the fabric allows; `nvls` by default.

    >>> from nsysmodel.theory.formats import parse
    >>> bf16 = parse("bf16")
    >>> at = Setting("decode", 1, 1, 4096, bf16, bf16, bf16)
    >>> allreduce(at, numbers=4096, ranks=8, algorithm="ring").cost.link_bytes
    14336.0
    >>> allreduce(at, numbers=4096, ranks=8).cost.link_bytes
    9216.0
    """
    size = numbers * at.activation.bytes
    factors = {"ring": 2 * (ranks - 1) / ranks, "one_shot": ranks - 1, "nvls": 1 + 1 / ranks}
    # two ranks have no use for the switch: a ring of two moves D
    factor = min(factors["ring"], factors[algorithm]) if algorithm == "nvls" else factors[algorithm]
    cost = Cost(link_bytes=size * factor, act_in_bytes=size, act_out_bytes=size)
    return OpCost(cost, f"{number(size)} B over {number(ranks)} ranks · {factor:.3f}")


def allgather(at: Setting, *, numbers: float, ranks: float) -> OpCost:
    """All-gather (or reduce-scatter) of D bytes in total: D·(N−1)/N per rank and direction."""
    size = numbers * at.activation.bytes
    link = size * (ranks - 1) / ranks
    cost = Cost(link_bytes=link, act_in_bytes=size / ranks, act_out_bytes=size)
    return OpCost(cost, f"{number(size)} B · ({number(ranks)}−1)/{number(ranks)}")


def alltoall(
    at: Setting, *, rows: float, width: float, top_k: float, ranks: float, element_bytes: float = 0
) -> OpCost:
    """Dispatch or combine of tokens: one copy per destination rank, R·(1 − (1−1/R)^k) expected copies.

    (R−1)/R of them leave the GPU. Kernels that send one copy per expert move more.
    """
    copies = ranks * (1 - (1 - 1 / ranks) ** top_k)
    one = rows * width * (element_bytes or at.activation.bytes)
    cost = Cost(link_bytes=one * copies * (ranks - 1) / ranks, act_in_bytes=one, act_out_bytes=one * copies)
    return OpCost(cost, f"{number(rows)} tokens · {copies:.3f} copies · ({number(ranks)}−1)/{number(ranks)}")
