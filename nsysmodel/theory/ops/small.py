"""Operations that only move numbers: norms, rotations, activations, routing, gathers, sampling.

Their FLOP run on the CUDA cores (`fp32`) and hardly ever bound them.
"""

from __future__ import annotations

from nsysmodel.theory.cost import Cost
from nsysmodel.theory.formats import Format
from nsysmodel.theory.ops.types import OpCost, Setting, number


def norm(
    at: Setting, *, rows: float, width: float, residual: float = 0, weight: float = 1, gate: float = 0
) -> OpCost:
    """RMS norm of `rows` rows: 5 FLOP per number (6 with a residual add); reads x, writes y, reads the scale.

    Args:
        at: formats of the step.
        rows, width: rows and numbers in each.
        residual: 1 where a residual is added and written back in the same kernel (4·rows·width numbers).
        weight: numbers of the scale as a multiple of `width`; 0 for none (and for a shared one, its share).
        gate: 1 where the output is multiplied by a gate that is read too.

    >>> from nsysmodel.theory.formats import parse
    >>> bf16 = parse("bf16")
    >>> at = Setting("decode", 1, 1, 4096, bf16, bf16, bf16)
    >>> norm(at, rows=1, width=2048, residual=1).cost.strict_bytes
    20480.0
    """
    one = rows * width * at.activation.bytes
    held = width * weight
    flop = rows * width * (5 + (1 if residual else 0) + (2 if gate else 0))
    reads = 1 + (1 if residual else 0) + (1 if gate else 0)
    cost = Cost(
        {"fp32": flop},
        held * at.activation.bytes,
        act_in_bytes=reads * one,
        act_out_bytes=(2 if residual else 1) * one,
    )
    formula = f"{number(rows)}·{number(width)} numbers, {number(cost.act_bytes)} B in and out"
    return OpCost(cost, formula, None, held, held, held * at.activation.bytes)


def qk_norm(at: Setting, *, heads: float, kv_heads: float, head_dim: float, weights: float = 0) -> OpCost:
    """Norm of queries and keys, in place; `weights` numbers of scale (2·head_dim where 0)."""
    count = at.tokens * (heads + kv_heads) * head_dim
    held = weights or 2 * head_dim
    width = at.activation.bytes
    cost = Cost({"fp32": 5 * count}, held * width, act_in_bytes=count * width, act_out_bytes=count * width)
    formula = f"{number(count)} numbers read and written"
    return OpCost(cost, formula, None, held, held, held * width)


def rope(at: Setting, *, heads: float, rotary_dim: float) -> OpCost:
    """Rotation of `heads` heads (queries and keys): 3 FLOP per number; a row of cosines and sines per token.

    The table rows come from DRAM once and count as weights, but are no parameters.
    """
    count = at.tokens * heads * rotary_dim
    width = at.activation.bytes
    table = at.tokens * rotary_dim * width
    cost = Cost({"fp32": 3 * count}, table, act_in_bytes=count * width, act_out_bytes=count * width)
    return OpCost(cost, f"{number(count)} numbers rotated")


def kv_write(at: Setting, *, numbers: float, entry_bytes: float = 0) -> OpCost:
    """Write of the new KV entries: `numbers` numbers per token (`entry_bytes` bytes where given)."""
    written = at.tokens * (entry_bytes or numbers * at.kv.bytes)
    cost = Cost(state_write_bytes=written, act_in_bytes=at.tokens * numbers * at.activation.bytes)
    return OpCost(cost, f"{at.tokens} tokens · {number(written / max(1, at.tokens))} B written")


def activation(at: Setting, *, rows: float, width: float, gated: float = 1) -> OpCost:
    """SwiGLU and the like: reads 2·width numbers a row (width where not gated), writes width; 5 FLOP each."""
    count = rows * width
    one = count * at.activation.bytes
    cost = Cost({"fp32": 5 * count}, act_in_bytes=(2 if gated else 1) * one, act_out_bytes=one)
    return OpCost(cost, f"{number(rows)}·{number(width)} numbers")


def topk(at: Setting, *, rows: float, experts: float, top_k: float) -> OpCost:
    """Scores and choice of experts: reads rows·experts scores, writes rows·top_k weights and numbers."""
    cost = Cost(
        {"fp32": 5 * rows * experts},
        act_in_bytes=rows * experts * at.activation.bytes,
        act_out_bytes=rows * top_k * 8,
    )
    return OpCost(cost, f"{number(rows)}·{number(experts)} scores")


def permute(at: Setting, *, rows: float, top_k: float) -> OpCost:
    """Sorting of tokens by expert: rows·top_k 4-byte numbers in and out."""
    count = rows * top_k * 4
    return OpCost(Cost(act_in_bytes=count, act_out_bytes=count), f"{number(rows * top_k)} indices")


def weighted_sum(at: Setting, *, rows: float, top_k: float, width: float) -> OpCost:
    """Sum of each token's expert outputs: reads rows·top_k·width numbers, writes rows·width."""
    count = rows * top_k * width
    out = rows * width * at.activation.bytes
    cost = Cost({"fp32": 2 * count}, act_in_bytes=count * at.activation.bytes, act_out_bytes=out)
    return OpCost(cost, f"{number(rows)}·{number(top_k)}·{number(width)} numbers added")


def embedding(
    at: Setting, *, vocab: float, width: float, ranks: float = 1, weight: Format | None = None
) -> OpCost:
    """Gather of one table row per token; never the whole table. With `ranks` each rank owns a part."""
    fmt = weight or at.activation
    rows = at.tokens / ranks
    held = vocab * width / ranks
    read = rows * width * fmt.bytes
    cost = Cost(weight_bytes=read, act_out_bytes=at.tokens * width * at.activation.bytes)
    formula = f"{number(rows)} rows · {number(width)}·{fmt.bytes:g} B"
    return OpCost(cost, formula, None, held, held, held * fmt.bytes)


def sampling(at: Setting, *, rows: float, vocab: float) -> OpCost:
    """Greedy choice: one pass over rows·vocab logits. Top-k, top-p and softmax add passes."""
    count = rows * vocab
    cost = Cost({"fp32": count}, act_in_bytes=count * at.activation.bytes, act_out_bytes=rows * 4)
    return OpCost(cost, f"{number(rows)}·{number(vocab)} logits read once")


def quantize(at: Setting, *, rows: float, width: float, weight: Format | None = None) -> OpCost:
    """Conversion of activations to the format that a quantised product reads, with its scales.

    >>> from nsysmodel.theory.formats import parse
    >>> bf16 = parse("bf16")
    >>> at = Setting("decode", 1, 1, 4096, bf16, bf16, bf16)
    >>> quantize(at, rows=1, width=2048, weight=parse("fp8_block")).cost.act_out_bytes
    2112.0
    """
    count = rows * width
    per = weight.activation_bytes if weight else at.activation.bytes
    scales = count / weight.activation_group * 4 if weight and weight.activation_group else 0
    cost = Cost(
        {"fp32": 2 * count},
        act_in_bytes=count * at.activation.bytes,
        act_out_bytes=count * per + scales,
    )
    return OpCost(cost, f"{number(rows)}·{number(width)} numbers converted")


def elementwise(
    at: Setting, *, numbers: float, reads: float = 1, writes: float = 1, flop: float = 1
) -> OpCost:
    """`numbers` results, each from `reads` numbers with `flop` operations, written `writes` times."""
    one = numbers * at.activation.bytes
    cost = Cost({"fp32": flop * numbers}, act_in_bytes=reads * one, act_out_bytes=writes * one)
    return OpCost(cost, f"{number(numbers)} numbers")


def copy(at: Setting, *, bytes: float, link: float = 0) -> OpCost:
    """A copy of `bytes` bytes in device memory, or over a link where `link` is 1."""
    if link:
        return OpCost(Cost(link_bytes=bytes), f"{number(bytes)} B over the link")
    return OpCost(Cost(act_in_bytes=bytes, act_out_bytes=bytes), f"{number(bytes)} B read and written")
