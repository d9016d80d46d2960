"""Softmax attention: decode, verify, prefill and chunked prefill with one set of formulas.

With n new tokens after a prefix of p entries, token j sees p + j entries (causal), so a sequence has
n·p + n(n+1)/2 pairs. Decode is n = 1 and p = context − 1: exactly `context` pairs.
"""

from __future__ import annotations

from nsysmodel.theory.cost import Cost
from nsysmodel.theory.formats import Format
from nsysmodel.theory.ops.types import OpCost, Setting, number


def pairs(prefix: int, new: int, window: int = 0, chunk: int = 0) -> int:
    """Query-key pairs of one causal sequence.

    Args:
        prefix: entries before the first new token.
        new: new tokens.
        window: each token sees at most this many entries (itself included); 0 for all.
        chunk: each token sees its own chunk of positions only; 0 for all.

    >>> pairs(4095, 1), pairs(0, 4), pairs(0, 4, window=2), pairs(8192, 1, chunk=8192)
    (4096, 10, 7, 1)
    """
    if chunk:
        return _chunk_sum(prefix + new, chunk) - _chunk_sum(prefix, chunk)
    if not window:
        return new * prefix + new * (new + 1) // 2
    growing = max(0, min(new, window - prefix))
    return growing * prefix + growing * (growing + 1) // 2 + (new - growing) * window


def _chunk_sum(length: int, chunk: int) -> int:
    """Pairs of the first `length` positions with chunks of `chunk`."""
    whole, rest = divmod(length, chunk)
    return whole * (chunk * (chunk + 1) // 2) + rest * (rest + 1) // 2


def entries(prefix: int, new: int, window: int = 0, chunk: int = 0) -> int:
    """Old KV entries of one sequence that any of the new tokens sees."""
    if chunk:
        return min(prefix, prefix % chunk)
    return min(prefix, window - 1) if window else prefix


def attention(
    at: Setting,
    *,
    heads: float,
    kv_heads: float,
    d_qk: float,
    d_v: float = 0,
    window: float = 0,
    chunk: float = 0,
    sinks: float = 0,
    shared_kv: float = 0,
    top_k: float = 0,
) -> OpCost:
    """Attention of one step: 2·heads·(d_qk + d_v)·pairs FLOP; each KV entry read once per group of heads.

    Args:
        at: workload and formats.
        heads, kv_heads: query and KV heads on this rank.
        d_qk, d_v: widths of a key and of a value (`d_qk` where 0).
        window, chunk: see `pairs`.
        sinks: 1 where each head has a sink logit.
        shared_kv: 1 where keys are values too (stored and read once).
        top_k: entries that a sparse indexer leaves for each token and KV head; 0 for all.

    In decode the whole KV length comes from the cache (new entries were just written); in prefill the
    prefix does, and new keys and values are activations.

    >>> from nsysmodel.theory.formats import parse
    >>> bf16 = parse("bf16")
    >>> cost = attention(Setting("decode", 1, 1, 4096, bf16, bf16, bf16), heads=32, kv_heads=4, d_qk=128).cost
    >>> cost.total_flop, cost.state_read_bytes, cost.act_bytes
    (67108864, 8388608.0, 16384.0)
    """
    d_v = d_v or d_qk
    window, chunk = int(window), int(chunk)
    limit = int(top_k) or window
    seen = pairs(at.prefix, at.new_tokens, limit, chunk)
    flop = 2 * heads * (d_qk + d_v) * seen * at.sequences
    width = at.activation.bytes
    entry = kv_heads * (d_qk if shared_kv else d_qk + d_v)
    old = entries(at.prefix, at.new_tokens, limit, chunk)
    cached = old + at.new_tokens if at.phase == "decode" else old
    state = cached * at.sequences * entry * at.kv.bytes
    act_in = at.tokens * heads * d_qk * width
    if at.phase == "prefill":
        act_in += at.tokens * kv_heads * (d_qk + d_v) * width
    weights = heads * width if sinks else 0
    cost = Cost(
        {at.engine(): flop},
        weights,
        state_read_bytes=state,
        act_in_bytes=act_in,
        act_out_bytes=at.tokens * heads * d_v * width,
    )
    formula = (
        f"2·{number(heads)}·({number(d_qk)}+{number(d_v)})·{number(seen * at.sequences)} pairs FLOP "
        f"({at.engine()}); {number(cached * at.sequences)} KV entries · {number(entry)}·{at.kv.bytes:g} B"
    )
    kept = min(at.length, window) if window else min(at.length, chunk) if chunk else at.length
    held = heads if sinks else 0
    return OpCost(
        cost, formula, None, held, held, weights, state_bytes=kept * at.sequences * entry * at.kv.bytes
    )


def latent_attention(
    at: Setting,
    *,
    heads: float,
    rank: float,
    rope: float,
    top_k: float = 0,
    entry_bytes: float = 0,
) -> OpCost:
    """Absorbed MLA core: 2·heads·((rank + rope) + rank)·pairs FLOP; the latent entry is read once.

    Values are the first `rank` numbers of the same cache row: they are not counted again.

    Args:
        at: workload and formats.
        heads: query heads on this rank.
        rank, rope: widths of the latent and of the rotated part.
        top_k: entries that a sparse indexer leaves for each token; 0 for all.
        entry_bytes: bytes of one cache row; (rank + rope) in the KV format where 0.

    >>> from nsysmodel.theory.formats import parse
    >>> bf16 = parse("bf16")
    >>> at = Setting("decode", 1, 1, 1000, bf16, bf16, bf16)
    >>> cost = latent_attention(at, heads=16, rank=512, rope=64).cost
    >>> cost.total_flop == 2176 * 16 * 1000, cost.state_read_bytes
    (True, 1152000.0)
    """
    entry = entry_bytes or latent_entry_bytes(at.kv, rank, rope)
    window = int(top_k)
    seen = pairs(at.prefix, at.new_tokens, window)
    # a sparse kernel may read other entries for each new token: the union is at least one token's share
    stored = at.length if at.phase == "decode" else at.prefix
    cached = min(stored, window) if window else stored
    state = cached * at.sequences * entry
    width = at.activation.bytes
    cost = Cost(
        {at.engine(): 2 * heads * (2 * rank + rope) * seen * at.sequences},
        state_read_bytes=state,
        act_in_bytes=at.tokens * heads * (rank + rope) * width,
        act_out_bytes=at.tokens * heads * rank * width,
    )
    formula = (
        f"2·{number(heads)}·({number(rank + rope)}+{number(rank)})·{number(seen * at.sequences)} pairs FLOP "
        f"({at.engine()}); {number(cached * at.sequences)} latent entries · {number(entry)} B"
    )
    return OpCost(cost, formula, state_bytes=at.length * at.sequences * entry)


def latent_entry_bytes(kv: Format, rank: float, rope: float) -> float:
    """Bytes of one MLA cache row; in FP8 the latent has a scale per 128 and the rope part stays 16 bit.

    >>> from nsysmodel.theory.formats import parse
    >>> latent_entry_bytes(parse("bf16"), 512, 64), latent_entry_bytes(parse("fp8"), 512, 64)
    (1152.0, 656.0)
    """
    if kv.bits == 8:
        return rank + rank / 128 * 4 + rope * 2
    return (rank + rope) * kv.bytes


def expanded_attention(
    at: Setting, *, heads: float, d_qk: float, d_v: float, rank: float, rope: float
) -> OpCost:
    """MLA prefill on keys and values expanded from the latent: 2·heads·(d_qk + d_v)·pairs FLOP.

    Keys and values of all heads pass as activations; the latent of the prefix was read by `kv_b_proj`.
    """
    seen = pairs(at.prefix, at.new_tokens) * at.sequences
    width = at.activation.bytes
    keys = at.length * at.sequences
    cost = Cost(
        {at.engine(): 2 * heads * (d_qk + d_v) * seen},
        act_in_bytes=(at.tokens * heads * d_qk + keys * heads * (d_qk + d_v)) * width,
        act_out_bytes=at.tokens * heads * d_v * width,
    )
    formula = f"2·{number(heads)}·({number(d_qk)}+{number(d_v)})·{number(seen)} pairs FLOP ({at.engine()})"
    held = keys * latent_entry_bytes(at.kv, rank, rope)
    return OpCost(cost, formula, state_bytes=held)
