"""Matrix products: dense, per head, and grouped by expert."""

from __future__ import annotations

import math

from nsysmodel.theory.cost import Cost
from nsysmodel.theory.formats import Format
from nsysmodel.theory.ops.types import OpCost, Setting, number


def _input_bytes(at: Setting, weight: Format, rows: float, columns: float) -> float:
    """Bytes of the activations as the product reads them, scales included."""
    engine = weight.engine(at.engines)
    if not weight.activation_bytes or engine == at.engine():
        return rows * columns * at.activation.bytes
    scales = rows * columns / weight.activation_group * 4 if weight.activation_group else 0
    return rows * columns * weight.activation_bytes + scales


def gemm(
    at: Setting,
    *,
    m: float,
    n: float,
    k: float,
    weight: Format | None = None,
    bias: float = 0,
    out_bytes: float = 0,
    cache_bytes: float = 0,
) -> OpCost:
    """Y[m, n] = X[m, k] Wᵀ[k, n]: 2·m·n·k FLOP; bytes of W, X and Y, each in its own format.

    Args:
        at: formats of the step.
        m, n, k: rows (tokens), outputs, inputs.
        weight: format of W; the model's own where None.
        bias: 1 where a bias of n numbers is added.
        out_bytes: bytes of one output; the activation format's where 0.
        cache_bytes: fast memory in bytes. Where given, at least 2·m·n·k/√S elements cross DRAM
            (S = cache_bytes / activation bytes), which exceeds the compulsory bytes only for very big cubes.

    >>> from nsysmodel.theory.formats import parse
    >>> bf16 = parse("bf16")
    >>> at = Setting("decode", 1, 1, 4096, bf16, bf16, bf16)
    >>> cost = gemm(at, m=1, n=5120, k=2048).cost
    >>> cost.total_flop, cost.weight_bytes, cost.act_bytes
    (20971520, 20971520.0, 14336.0)
    """
    fmt = weight or at.activation
    weights = fmt.matrix_bytes(n, k) + (n * at.activation.bytes if bias else 0)
    flop = 2 * m * n * k + (m * n if bias else 0)
    act_in = _input_bytes(at, fmt, m, k)
    act_out = m * n * (out_bytes or at.activation.bytes)
    if cache_bytes:
        element = at.activation.bytes
        act_in += max(0.0, communication_bytes(m, n, k, cache_bytes, element) - weights - act_in - act_out)
    formula = (
        f"2·{number(m)}·{number(n)}·{number(k)} FLOP ({fmt.engine(at.engines)}); "
        f"{number(n)}·{number(k)}·{_width(fmt)} B weights"
    )
    cost = Cost({fmt.engine(at.engines): flop}, weights, act_in_bytes=act_in, act_out_bytes=act_out)
    held = n * k + (n if bias else 0)
    return OpCost(cost, formula, None, held, held, weights)


def communication_bytes(m: float, n: float, k: float, cache_bytes: float, element_bytes: float) -> float:
    """Least bytes between DRAM and a cache for a product: 2·m·n·k/√S elements, S = elements in the cache.

    Source: Smith, Lowery, Langou, van de Geijn, arXiv 1702.02017 (asymptotic).

    >>> round(communication_bytes(16384, 16384, 16384, 50 * 2**20, 2) / 1e9, 2)
    3.44
    """
    return 2 * m * n * k / math.sqrt(cache_bytes / element_bytes) * element_bytes


def head_gemm(
    at: Setting, *, m: float, n: float, k: float, heads: float, weight: Format | None = None
) -> OpCost:
    """One product per head with weights of its own (the absorbed matrices of MLA): heads · 2·m·n·k FLOP."""
    fmt = weight or at.activation
    engine = fmt.engine(at.engines)
    weights = heads * fmt.matrix_bytes(n, k)
    width = at.activation.bytes
    cost = Cost(
        {engine: 2 * heads * m * n * k},
        weights,
        act_in_bytes=heads * _input_bytes(at, fmt, m, k),
        act_out_bytes=heads * m * n * width,
    )
    formula = (
        f"{number(heads)} heads · 2·{number(m)}·{number(n)}·{number(k)} FLOP ({engine}); "
        f"{number(heads)}·{number(n)}·{number(k)}·{_width(fmt)} B weights"
    )
    return OpCost(cost, formula, None, heads * n * k, heads * n * k, weights)


def distinct_experts(experts: float, top_k: float, tokens: float) -> float:
    """Expected number of distinct experts that `tokens` tokens use: E·(1 − (1 − k/E)^T).

    Uniform routing; skewed or correlated tokens use fewer, never more on average.

    >>> round(distinct_experts(128, 8, 16), 1), distinct_experts(128, 8, 1)
    (82.4, 8.0)
    """
    if tokens <= 0 or experts <= 0:
        return 0.0
    if top_k >= experts:
        return float(experts)
    # expm1/log1p: the plain form loses digits for one token
    return -experts * math.expm1(tokens * math.log1p(-top_k / experts)) if tokens != 1 else float(top_k)


def moe_gemm(
    at: Setting,
    *,
    tokens: float,
    top_k: float,
    experts: float,
    n: float,
    k: float,
    rows_in: float = 0,
    weight: Format | None = None,
    bias: float = 0,
    ranks: float = 1,
    distinct: float = 0,
) -> OpCost:
    """Grouped product over the experts of this rank: rows·2·n·k FLOP, weights of the distinct experts.

    Args:
        at: formats of the step.
        tokens: tokens that are routed over all ranks.
        top_k: experts per token.
        experts: experts over all ranks.
        n, k: outputs and inputs of one expert on this rank.
        rows_in: input rows read; tokens · top_k / ranks where 0 (each token was permuted to its experts).
        weight: format of the expert weights.
        bias: 1 where each expert adds a bias.
        ranks: ranks that the experts are spread over (EP).
        distinct: measured number of distinct experts on this rank; 0 for the expectation.

    >>> from nsysmodel.theory.formats import parse
    >>> bf16 = parse("bf16")
    >>> at = Setting("decode", 1, 1, 4096, bf16, bf16, bf16)
    >>> moe_gemm(at, tokens=1, top_k=8, experts=128, n=1536, k=2048, rows_in=1).cost.weight_bytes
    50331648.0
    """
    fmt = weight or at.activation
    engine = fmt.engine(at.engines)
    local = experts / ranks
    used = min(local, distinct) if distinct else distinct_experts(experts, top_k, tokens) / ranks
    least = min(used, max(0.0, top_k - (experts - local))) if tokens else 0.0
    rows = tokens * top_k / ranks
    one = fmt.matrix_bytes(n, k) + (n * at.activation.bytes if bias else 0)
    act_in = _input_bytes(at, fmt, rows_in or rows, k)
    act_out = rows * n * at.activation.bytes
    flop = {engine: rows * (2 * n * k + (n if bias else 0))}
    held = n * k + (n if bias else 0)
    formula = (
        f"{number(rows)} rows · 2·{number(n)}·{number(k)} FLOP ({engine}); "
        f"{number(used)} distinct experts · {number(n)}·{number(k)}·{_width(fmt)} B weights"
    )
    cost = Cost(flop, used * one, act_in_bytes=act_in, act_out_bytes=act_out)
    bound = Cost(flop, least * one, act_in_bytes=act_in, act_out_bytes=act_out)
    exact = bool(distinct) or used == least
    return OpCost(cost, formula, None if exact else bound, local * held, top_k / ranks * held, local * one)


def _width(fmt: Format) -> str:
    """Bytes of one weight for a formula, with a word where scales come on top."""
    plain = number(fmt.bytes) if fmt.bytes == int(fmt.bytes) else f"{fmt.bytes:g}"
    return f"{plain} (+ scales)" if fmt.scale_bytes else plain
