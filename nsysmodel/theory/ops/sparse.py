"""The indexer of sparse attention: it scores every entry to choose a few."""

from __future__ import annotations

from nsysmodel.theory.cost import Cost
from nsysmodel.theory.formats import Format
from nsysmodel.theory.ops.attention import pairs
from nsysmodel.theory.ops.types import OpCost, Setting, number


def block_indexer(at: Setting, *, heads: float, dim: float) -> OpCost:
    """Scores of a block-sparse indexer whose queries and one key head came from the QKV product (MiniMax M3).

    2·heads·dim FLOP per pair; each cached key is `dim` numbers in the KV format, for all heads.

    >>> from nsysmodel.theory.formats import parse
    >>> bf16 = parse("bf16")
    >>> block_indexer(Setting("decode", 1, 1, 1000, bf16, bf16, bf16), heads=4, dim=128).cost.state_read_bytes
    256000.0
    """
    seen = pairs(at.prefix, at.new_tokens) * at.sequences
    keys = (at.length if at.phase == "decode" else at.prefix) * at.sequences
    entry = dim * at.kv.bytes
    cost = Cost(
        {at.engine(): 2 * heads * dim * seen},
        state_read_bytes=keys * entry,
        state_write_bytes=at.tokens * entry,
        act_in_bytes=at.tokens * (heads + 1) * dim * at.activation.bytes,
        act_out_bytes=at.tokens * heads * 4,
    )
    formula = (
        f"2·{number(heads)}·{number(dim)}·{number(seen)} pairs FLOP ({at.engine()}); "
        f"{number(keys)} keys · {number(entry)} B"
    )
    return OpCost(cost, formula, state_bytes=at.length * at.sequences * entry)


def indexer(
    at: Setting,
    *,
    hidden: float,
    q_rank: float,
    heads: float,
    dim: float,
    weight: Format | None = None,
) -> OpCost:
    """Projections, scores and choice of a sparse-attention indexer (DeepSeek V3.2, GLM-5).

    Weights: q_rank·heads·dim (queries), hidden·dim (keys), hidden·heads (head weights, 16 bit).
    Scores: 2·heads·dim FLOP in FP8 per pair; each cached key is `dim` FP8 numbers and a 4-byte scale.
    The indexer is replicated on every tensor-parallel rank.

    >>> from nsysmodel.theory.formats import parse
    >>> bf16 = parse("bf16")
    >>> at = Setting("decode", 1, 1, 1000, bf16, bf16, bf16)
    >>> indexer(at, hidden=7168, q_rank=1536, heads=64, dim=128).cost.state_read_bytes
    132000
    """
    fmt = weight or at.activation
    plain = at.activation.bytes
    weights = fmt.matrix_bytes(heads * dim, q_rank) + fmt.matrix_bytes(dim, hidden) + heads * hidden * plain
    held = heads * dim * q_rank + dim * hidden + heads * hidden + 2 * dim
    seen = pairs(at.prefix, at.new_tokens) * at.sequences
    products = 2 * at.tokens * (heads * dim * q_rank + dim * hidden + heads * hidden)
    flop: dict[str, float] = {at.engine(fmt): products}
    scores = "fp8" if at.engines is None or "fp8" in at.engines else at.engine()
    flop[scores] = flop.get(scores, 0) + 2 * heads * dim * seen
    entry = dim + 4
    keys = at.length if at.phase == "decode" else at.prefix
    read = keys * at.sequences * entry
    cost = Cost(
        flop,
        weights + 2 * dim * plain,
        state_read_bytes=read,
        state_write_bytes=at.tokens * entry,
        act_in_bytes=at.tokens * (q_rank + hidden) * plain,
        act_out_bytes=at.tokens * 4,
    )
    formula = (
        f"2·{number(heads)}·{number(dim)}·{number(seen)} pairs FLOP ({scores}); "
        f"{number(keys * at.sequences)} keys · {number(entry)} B"
    )
    return OpCost(cost, formula, None, held, held, weights, at.length * at.sequences * entry)
