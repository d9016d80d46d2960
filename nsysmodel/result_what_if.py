"""Floors of other workloads and bandwidths, computed beforehand: a page shows them without a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class WhatIfOp:
    """What the step gains when one op reaches another share of its roof.

    At a share e, the step gains max(0, min(measured − best / e, alone)): `best_ns` is the floor of the op, or
    launches times their fixed cost where these are longer; `alone_ns` is the most that shortening the op can
    give, since other work runs beside the rest of it. Means per step.
    """

    op: str
    measured_ns: float
    best_ns: float
    alone_ns: float


@dataclass(frozen=True, slots=True)
class WhatIf:
    """Floors of a step on a grid of workloads and bandwidths.

    `floors_ns[batch][length][bandwidth]` is the sum of floors of a step; None where the model has no such
    step. `lengths` are contexts (decode) or new tokens per sequence (prefill), as `axis` says. `bandwidths`
    are factors of the bandwidth that was judged. `here` are the places of what was judged on the three axes.
    """

    batches: tuple[int, ...]
    lengths: tuple[int, ...]
    bandwidths: tuple[float, ...]
    axis: Literal["context", "tokens"]
    here: tuple[int, int, int]
    tokens: tuple[tuple[int, ...], ...]
    """New tokens of a step for each batch and length."""
    floors_ns: tuple[tuple[tuple[float | None, ...], ...], ...]
    ops: tuple[WhatIfOp, ...] = ()
