"""Recurrent mixers: in decode the traffic of the state decides."""

from __future__ import annotations

from dataclasses import replace

from nsysmodel.theory.cost import Cost
from nsysmodel.theory.ops.types import OpCost, Setting, number


def conv(at: Setting, *, channels: float, kernel: float, bias: float = 0) -> OpCost:
    """Causal convolution along the sequence: keeps kernel − 1 inputs per channel and sequence.

    The weights are read once, not per token; FLOP 2·tokens·channels·kernel on the CUDA cores.
    """
    width = at.activation.bytes
    held = channels * kernel + (channels if bias else 0)
    state = at.sequences * channels * (kernel - 1) * width
    fresh = at.prefix == 0 and at.phase == "prefill"
    moved = at.tokens * channels * width
    cost = Cost(
        {"fp32": 2 * at.tokens * channels * kernel},
        held * width,
        state_read_bytes=0 if fresh else state,
        state_write_bytes=state,
        act_in_bytes=moved,
        act_out_bytes=moved,
    )
    formula = f"{at.tokens} tokens · {number(channels)} channels · {number(kernel)} taps"
    return OpCost(cost, formula, None, held, held, held * width, state)


def delta_net(
    at: Setting,
    *,
    key_heads: float,
    value_heads: float,
    key_dim: float,
    value_dim: float,
    chunk: float = 64,
) -> OpCost:
    """Gated delta rule: 7·dk·dv FLOP per token and value head; the state is read and written once.

    Prefill works in chunks: per token and head about 2·chunk·(3·dk + 2·dv) + 6·dk·dv FLOP on the tensor
    cores (the kernel decides), and the state stays on the chip between chunks at best.

    >>> from nsysmodel.theory.formats import parse
    >>> at = Setting("decode", 1, 1, 4096, parse("bf16"), parse("bf16"), parse("fp32"))
    >>> cost = delta_net(at, key_heads=16, value_heads=32, key_dim=128, value_dim=128).cost
    >>> cost.hbm_bytes, cost.act_bytes
    (4194304.0, 24704.0)
    """
    size = value_heads * key_dim * value_dim
    state = at.sequences * size * at.state.bytes
    width = at.activation.bytes
    act_in = at.tokens * (2 * key_heads * key_dim + value_heads * value_dim + 2 * value_heads) * width
    act_out = at.tokens * value_heads * value_dim * width
    held = 2 * value_heads
    if at.phase == "prefill":
        per_head = 2 * chunk * (3 * key_dim + 2 * value_dim) + 6 * key_dim * value_dim
        flop = {at.engine(): at.tokens * value_heads * per_head}
    else:
        flop = {"fp32": 7 * at.tokens * size}
    fresh = at.prefix == 0 and at.phase == "prefill"
    # speculative verify keeps one state per draft token
    writes = at.new_tokens if at.phase == "decode" else 1
    cost = Cost(
        flop,
        state_read_bytes=0 if fresh else state,
        state_write_bytes=state * writes,
        act_in_bytes=act_in,
        act_out_bytes=act_out,
    )
    formula = (
        f"{at.sequences} sequences · {number(value_heads)}·{number(key_dim)}·{number(value_dim)}"
        f"·{at.state.bytes:g} B of state, read and written"
    )
    return OpCost(cost, formula, _least(at, cost), held, held, held * 4, state)


def mamba2(
    at: Setting, *, heads: float, head_dim: float, groups: float, state: float, chunk: float = 256
) -> OpCost:
    """Mamba-2: about 6·heads·head_dim·state FLOP per token in decode; the state is read and written once.

    Prefill works in chunks C: 2·T·G·C·N + 2·T·H·C·P + 4·T·H·N·P FLOP on the tensor cores.

    >>> from nsysmodel.theory.formats import parse
    >>> at = Setting("decode", 1, 1, 4096, parse("bf16"), parse("bf16"), parse("fp32"))
    >>> mamba2(at, heads=128, head_dim=64, groups=8, state=128).cost.hbm_bytes
    8388608.0
    """
    size = heads * head_dim * state
    kept = at.sequences * size * at.state.bytes
    width = at.activation.bytes
    act_in = at.tokens * (2 * heads * head_dim + 2 * groups * state + heads) * width
    if at.phase == "prefill":
        per_token = 2 * groups * chunk * state + 2 * heads * chunk * head_dim + 4 * size
        flop = {at.engine(): at.tokens * per_token}
    else:
        flop = {"fp32": 6 * at.tokens * size}
    fresh = at.prefix == 0 and at.phase == "prefill"
    writes = at.new_tokens if at.phase == "decode" else 1
    held = 3 * heads
    cost = Cost(
        flop,
        state_read_bytes=0 if fresh else kept,
        state_write_bytes=kept * writes,
        act_in_bytes=act_in,
        act_out_bytes=at.tokens * heads * head_dim * width,
    )
    formula = (
        f"{at.sequences} sequences · {number(heads)}·{number(head_dim)}·{number(state)}"
        f"·{at.state.bytes:g} B of state, read and written"
    )
    return OpCost(cost, formula, _least(at, cost), held, held, held * 4, kept)


def _least(at: Setting, cost: Cost) -> Cost:
    """The hard bound: the state read once in 16 bit.

    An engine may keep states in 16 bit whatever the configuration says, and a kernel need not wait until
    what it wrote has left the cache.
    """
    return replace(
        cost, state_read_bytes=cost.state_read_bytes * min(1.0, 2 / at.state.bytes), state_write_bytes=0
    )
