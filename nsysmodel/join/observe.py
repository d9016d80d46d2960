"""What the kernels' launch shapes say of the workload: some kernels launch one block per token."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

import numpy as np
import pandas as pd

from nsysmodel.bundled import bundled_yaml
from nsysmodel.join.sequence import Sequence
from nsysmodel.join.types import Ints

MOST_DECODE_TOKENS = 512
"""Engines capture decode graphs up to this batch; a step of more tokens is taken for prefill."""
FEW = 64
"""Up to so many tokens a step is decode even where its attention kernel is one that prefill uses, too."""


@dataclass(frozen=True, slots=True)
class Observation:
    """Tokens of a step as its grids show them, and the kernels that say so."""

    tokens: int
    phase: str
    evidence: str


@functools.cache
def _patterns() -> list[tuple[str, re.Pattern[str]]]:
    grids = bundled_yaml("nsysmodel.join", "data", "steps.yaml")["token_grids"]
    return [(entry["kind"], re.compile(entry["pattern"])) for entry in grids]


def token_kinds(sequence: Sequence) -> tuple[str, ...]:
    """Per identity the kind of token-parallel kernel that it is (`kv_write`, `norm`), empty for others."""
    return tuple(
        next(
            (
                kind
                for kind, pattern in _patterns()
                if pattern.search(identity.name) and "qk_norm" not in identity.kernel_class.traits
            ),
            "",
        )
        for identity in sequence.identities
    )


def observe_step(
    kernels: pd.DataFrame, sequence: Sequence, rows: Ints, kinds: tuple[str, ...] | None = None
) -> Observation | None:
    """Tokens of the step made of `rows`; None where its grids do not say, or disagree."""
    if not len(rows):
        return None
    own = np.array(kinds if kinds is not None else token_kinds(sequence))[sequence.identity[rows]]
    grid = kernels["grid_x"].to_numpy(np.int64)[rows]
    others = kernels["grid_y"].to_numpy(np.int64)[rows] * kernels["grid_z"].to_numpy(np.int64)[rows]
    found: dict[str, int] = {}
    for kind in ("kv_write", "norm"):
        chosen = grid[(own == kind) & (others == 1) & (grid > 0)]
        if not len(chosen):
            continue
        values, counts = np.unique(chosen, return_counts=True)
        # Per-head norms of the same kernel launch rows x heads: the smallest common grid is the tokens'.
        common = values[counts * 4 > len(chosen)]
        if len(common):
            found[kind] = int(common.min())
    tokens = found.get("kv_write", found.get("norm"))
    if tokens is None or len(set(found.values())) > 1:
        return None
    told = " and ".join("KV-write" if kind == "kv_write" else kind for kind in found)
    phase = _phase(sequence, rows, tokens)
    plural = "blocks" if tokens != 1 else "block"
    return Observation(tokens, phase, f"the grids of {told} kernels have {tokens} {plural}, one per token")


def _phase(sequence: Sequence, rows: Ints, tokens: int) -> str:
    """Decode or prefill, by the number of tokens and the attention kernels."""
    classes = np.array([identity.kernel_class.kernel_class for identity in sequence.identities])
    own = classes[sequence.identity[rows]]
    prefill = bool((own == "attention_prefill").any() and not (own == "attention_decode").any())
    return "prefill" if tokens > MOST_DECODE_TOKENS or (prefill and tokens > FEW) else "decode"
