"""Attention over a window and over compressed entries (DeepSeek V4).

Every `ratio` tokens make one compressed entry. A token sees the last `window` entries and, of the
compressed ones before it, all or the `top_k` that an indexer chose. Keys are values: an entry is stored
and read once.
"""

from __future__ import annotations

from nsysmodel.theory.cost import Cost
from nsysmodel.theory.formats import Format
from nsysmodel.theory.ops.attention import entries, latent_entry_bytes, pairs
from nsysmodel.theory.ops.types import OpCost, Setting, number


def compressed_pairs(prefix: int, new: int, ratio: int, top_k: int = 0) -> int:
    """Pairs of `new` tokens after `prefix` with compressed entries: Σ min(top_k, ⌊position / ratio⌋).

    >>> compressed_pairs(0, 8, 4), compressed_pairs(4095, 1, 4), compressed_pairs(4095, 1, 4, 512)
    (6, 1024, 512)
    """
    return _compressed_sum(prefix + new, ratio, top_k) - _compressed_sum(prefix, ratio, top_k)


def _compressed_sum(length: int, ratio: int, top_k: int) -> int:
    """Σ over positions 1..length of min(top_k, ⌊position / ratio⌋)."""
    if top_k and length >= top_k * ratio:
        full = length - top_k * ratio + 1
        return _compressed_sum(top_k * ratio - 1, ratio, 0) + full * top_k
    whole, rest = divmod(length, ratio)
    return ratio * whole * (whole - 1) // 2 + whole * (rest + 1)


def compressed_attention(
    at: Setting,
    *,
    heads: float,
    dim: float,
    rope: float,
    window: float,
    ratio: float = 0,
    top_k: float = 0,
) -> OpCost:
    """Attention of one step: 4·heads·dim·pairs FLOP; each entry read once for all heads.

    Args:
        at: workload and formats.
        heads: query heads on this rank (the one KV head is on every rank).
        dim: width of a head and of an entry; its last `rope` numbers are rotated.
        rope: numbers that stay 16 bit in an FP8 cache.
        window: entries of the sliding window.
        ratio: tokens per compressed entry; 0 for none.
        top_k: compressed entries that the indexer leaves; 0 for all.

    >>> from nsysmodel.theory.formats import parse
    >>> bf16 = parse("bf16")
    >>> at = Setting("decode", 1, 1, 4096, bf16, bf16, bf16)
    >>> cost = compressed_attention(at, heads=64, dim=512, rope=64, window=128, ratio=4, top_k=512).cost
    >>> cost.total_flop == 4 * 64 * 512 * (128 + 512), cost.state_read_bytes
    (True, 655360.0)
    """
    window, ratio, top_k = int(window), int(ratio), int(top_k)
    seen = pairs(at.prefix, at.new_tokens, window)
    near = entries(at.prefix, at.new_tokens, window)
    stored = at.length if at.phase == "decode" else at.prefix
    if at.phase == "decode":
        near += at.new_tokens
    far = kept = 0
    if ratio:
        seen += compressed_pairs(at.prefix, at.new_tokens, ratio, top_k)
        far = min(stored // ratio, top_k) if top_k else stored // ratio
        kept = at.length // ratio
    entry = latent_entry_bytes(at.kv, dim - rope, rope)
    width = at.activation.bytes
    act_in = at.tokens * heads * dim * width
    if at.phase == "prefill":
        act_in += at.tokens * dim * width
    cost = Cost(
        {at.engine(): 4 * heads * dim * seen * at.sequences},
        heads * 4,
        state_read_bytes=(near + far) * at.sequences * entry,
        act_in_bytes=act_in,
        act_out_bytes=at.tokens * heads * dim * width,
    )
    formula = (
        f"4·{number(heads)}·{number(dim)}·{number(seen * at.sequences)} pairs FLOP ({at.engine()}); "
        f"({near} + {far} compressed)·{at.sequences} entries · {number(entry)} B"
    )
    state = (min(at.length, window) + kept) * at.sequences * entry
    return OpCost(cost, formula, None, heads, heads, heads * 4, state)


def compressed_indexer(
    at: Setting,
    *,
    hidden: float,
    q_rank: float,
    heads: float,
    dim: float,
    ratio: float,
    weight: Format | None = None,
) -> OpCost:
    """Indexer over compressed keys: as `sparse.indexer`, with a compressor of its own in 16 bit.

    The compressor has 4·dim outputs (two overlapping series of keys and gates).
    """
    fmt = weight or at.activation
    plain = at.activation.bytes
    own = hidden * (4 * dim + heads)
    held = heads * dim * q_rank + own + (2 * ratio + 1) * dim
    weights = fmt.matrix_bytes(heads * dim, q_rank) + own * plain
    seen = compressed_pairs(at.prefix, at.new_tokens, int(ratio)) * at.sequences
    flop: dict[str, float] = {at.engine(fmt): 2 * at.tokens * heads * dim * q_rank}
    flop[at.engine()] = flop.get(at.engine(), 0) + 2 * at.tokens * own
    scores = "fp8" if at.engines is None or "fp8" in at.engines else at.engine()
    flop[scores] = flop.get(scores, 0) + 2 * heads * dim * seen
    entry = dim + 4
    keys = (at.length if at.phase == "decode" else at.prefix) // int(ratio) * at.sequences
    cost = Cost(
        flop,
        weights,
        state_read_bytes=keys * entry,
        state_write_bytes=at.tokens / ratio * entry,
        act_in_bytes=at.tokens * (q_rank + hidden) * plain,
        act_out_bytes=at.tokens * 4,
    )
    formula = (
        f"2·{number(heads)}·{number(dim)}·{number(seen)} pairs FLOP ({scores}); "
        f"{number(keys)} keys · {number(entry)} B"
    )
    return OpCost(cost, formula, None, held, held, weights, at.length // int(ratio) * at.sequences * entry)
