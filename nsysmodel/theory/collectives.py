"""Collectives: bytes that each rank sends over its link, per direction, and the time they take.

D is the size of the full tensor in bytes, N the number of ranks. Volumes follow from the algorithms; a
collective of a small tensor is bound by latency, not by these.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from nsysmodel.errors import WorkloadError

AllReduce = Literal["ring", "one_shot", "two_shot", "nvls"]

_ALL_REDUCE: dict[str, Callable[[int], float]] = {
    "ring": lambda n: 2 * (n - 1) / n,
    "two_shot": lambda n: 2 * (n - 1) / n,
    "one_shot": lambda n: n - 1,
    "nvls": lambda n: 1 + 1 / n,
}
_ALL_REDUCE_STEPS: dict[str, Callable[[int], int]] = {
    "ring": lambda n: 2 * (n - 1),
    "two_shot": lambda n: 2,
    "one_shot": lambda n: 1,
    "nvls": lambda n: 1,
}


def all_reduce_bytes(size_bytes: float, ranks: int, algorithm: AllReduce = "ring") -> float:
    """Bytes per rank and direction of an all-reduce.

    ring and two-shot: 2·D·(N−1)/N. one-shot: D·(N−1), every rank reads all others. nvls: D·(1+1/N), the
    NVSwitch reduces and multicasts (derived from the data flow, not measured).

    >>> all_reduce_bytes(1000, 8), all_reduce_bytes(1000, 8, "nvls"), all_reduce_bytes(1000, 8, "one_shot")
    (1750.0, 1125.0, 7000)
    """
    _check(ranks)
    if algorithm not in _ALL_REDUCE:
        raise WorkloadError(f"'{algorithm}' is not an all-reduce.", f"Known: {', '.join(_ALL_REDUCE)}.")
    return size_bytes * _ALL_REDUCE[algorithm](ranks) if ranks > 1 else 0.0


def all_reduce_bound_bytes(size_bytes: float, ranks: int, *, in_switch: bool = True) -> float:
    """The fewest bytes per rank and direction that any algorithm of an all-reduce moves.

    With reductions in the switch that is D·(1+1/N), from three ranks on: a ring of two moves only D.
    A measured all-reduce of 8 ranks may so be 1.56 times faster than the ring's bound.

    >>> all_reduce_bound_bytes(1000, 2), all_reduce_bound_bytes(1000, 8)
    (1000.0, 1125.0)
    """
    ring = all_reduce_bytes(size_bytes, ranks, "ring")
    return min(ring, all_reduce_bytes(size_bytes, ranks, "nvls")) if in_switch else ring


def all_reduce_ns(
    size_bytes: float,
    ranks: int,
    *,
    link_bytes_per_s: float,
    latency_ns: float = 0,
    algorithm: AllReduce = "ring",
) -> float:
    """Time of an all-reduce: bytes over the link, plus the latency of each step.

    Steps: ring 2(N−1), two-shot 2, one-shot and nvls 1. Two bytes x hidden 2048 over 8 ranks at 450 GB/s and
    2 µs a step: 28 µs of latency against 16 ns of bytes.

    >>> round(all_reduce_ns(4096, 8, link_bytes_per_s=450e9, latency_ns=2000))
    28016
    """
    moved = all_reduce_bytes(size_bytes, ranks, algorithm)
    steps = _ALL_REDUCE_STEPS[algorithm](ranks) if ranks > 1 else 0
    return moved / link_bytes_per_s * 1e9 + steps * latency_ns


def all_gather_bytes(size_bytes: float, ranks: int) -> float:
    """Bytes per rank and direction of an all-gather whose result has D bytes: D·(N−1)/N.

    >>> all_gather_bytes(1000, 4)
    750.0
    """
    _check(ranks)
    return size_bytes * (ranks - 1) / ranks


def reduce_scatter_bytes(size_bytes: float, ranks: int) -> float:
    """Bytes per rank and direction of a reduce-scatter of D bytes: D·(N−1)/N.

    >>> reduce_scatter_bytes(1000, 4)
    750.0
    """
    return all_gather_bytes(size_bytes, ranks)


def all_to_all_bytes(sent_bytes: float, ranks: int) -> float:
    """Bytes per rank and direction of an all-to-all: what a rank sends, less what it keeps, D·(N−1)/N.

    >>> all_to_all_bytes(1000, 8)
    875.0
    """
    return all_gather_bytes(sent_bytes, ranks)


def broadcast_bytes(size_bytes: float, ranks: int) -> float:
    """Bytes per rank and direction of a broadcast: D.

    >>> broadcast_bytes(1000, 8)
    1000
    """
    _check(ranks)
    return size_bytes if ranks > 1 else 0


def expected_copies(ranks: int, experts_per_token: int) -> float:
    """Ranks that a token is sent to when one copy serves all of its experts there: R·(1−(1−1/R)^k).

    Uniform routing over the ranks; skew only lowers it. R = 8, k = 8:

    >>> round(expected_copies(8, 8), 2)
    5.25
    """
    _check(ranks)
    return float(ranks * (1 - (1 - 1 / ranks) ** experts_per_token))


def dispatch_bytes(
    tokens: float,
    hidden: int,
    bytes_per_element: float,
    *,
    ranks: int,
    experts_per_token: int,
    copies: Literal["per_rank", "per_expert"] = "per_rank",
) -> float:
    """Bytes per rank and direction of an expert-parallel dispatch (or combine) that leave the GPU.

    T·H·b·copies·(R−1)/R with `expected_copies` for one copy per destination rank, or k copies.

    >>> round(dispatch_bytes(32, 7168, 1, ranks=8, experts_per_token=8))
    1053923
    """
    sent = expected_copies(ranks, experts_per_token) if copies == "per_rank" else experts_per_token
    return all_to_all_bytes(tokens * hidden * bytes_per_element * sent, ranks)


def _check(ranks: int) -> None:
    if ranks < 1:
        raise WorkloadError(f"A collective needs at least 1 rank, not {ranks}.", "Check the number of ranks.")
