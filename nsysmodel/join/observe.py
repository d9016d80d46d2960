"""What the kernels' launch shapes say of the workload: token-parallel kernels launch one block per token."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from nsysmodel.join.sequence import Sequence
from nsysmodel.join.types import Ints

TOKEN_PARALLEL = ("kv_write", "norm", "embedding")
"""Classes whose common kernels have one block per token in x; two of them must agree, or a KV write alone."""
MOST_DECODE_TOKENS = 512
"""Engines capture decode graphs up to this batch; a step of more tokens is taken for prefill."""


@dataclass(frozen=True, slots=True)
class Observation:
    """Tokens of a step as its grids show them, and the kernels that say so."""

    tokens: int
    phase: str
    evidence: str


def observe_step(kernels: pd.DataFrame, sequence: Sequence, rows: Ints) -> Observation | None:
    """Tokens of the step made of `rows`; None where its grids do not say."""
    if not len(rows):
        return None
    classes = np.array([identity.kernel_class.kernel_class for identity in sequence.identities])
    traits = [identity.kernel_class.traits for identity in sequence.identities]
    eager = np.array(
        [bool(t & {"pow", "mean", "rsqrt"}) and c != "norm" for t, c in zip(traits, classes, strict=True)]
    )
    per_head = np.array(["qk_norm" in t for t in traits])
    own = classes[sequence.identity[rows]]
    usable = ~(eager | per_head)[sequence.identity[rows]]
    grid = kernels["grid_x"].to_numpy(np.int64)[rows]
    others = kernels["grid_y"].to_numpy(np.int64)[rows] * kernels["grid_z"].to_numpy(np.int64)[rows]
    modes: dict[str, int] = {}
    for name in TOKEN_PARALLEL:
        chosen = grid[(own == name) & usable & (others == 1)]
        if len(chosen):
            values, counts = np.unique(chosen, return_counts=True)
            if counts.max() * 2 > len(chosen):
                modes[name] = int(values[counts.argmax()])
    tokens = modes.get("kv_write")
    agreeing = [name for name, value in modes.items() if value == tokens]
    if tokens is None:
        values, counts = np.unique(list(modes.values()) or [0], return_counts=True)
        if counts.max() < 2:
            return None
        tokens = int(values[counts.argmax()])
        agreeing = [name for name, value in modes.items() if value == tokens]
    prefill = bool(np.isin(own, ["attention_prefill"]).any() and not np.isin(own, ["attention_decode"]).any())
    phase = "prefill" if tokens > MOST_DECODE_TOKENS or (prefill and tokens > 64) else "decode"
    return Observation(tokens, phase, f"grids of {' and '.join(agreeing)} kernels: {tokens} blocks")
