"""Helper kernels: what only exists for another kernel carries the op of that one.

A split-K reduction follows its GEMM on the GEMM's stream, an attention combine its attention; a workspace
fill and scheduling metadata come before the kernel that they prepare.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from nsysmodel.join.sequence import Sequence
from nsysmodel.join.types import Codes

BACKWARD = {"reduction": ("gemm", "moe_gemm"), "combine": ("attention_decode", "attention_prefill")}
FORWARD = {
    "workspace": ("gemm", "moe_gemm", "attention_decode", "attention_prefill"),
    "metadata": ("attention_decode", "attention_prefill"),
}
REACH = {"reduction": 2, "combine": 3, "workspace": 1, "metadata": 12}
"""How many kernels of the same stream may lie between a helper and its kernel."""


def attach_helpers(kernels: pd.DataFrame, sequence: Sequence) -> Codes:
    """Per kernel the row of the kernel that it helps; -1 for kernels that stand for themselves."""
    count = len(kernels)
    target = np.full(count, -1, np.int32)
    classes = [identity.kernel_class for identity in sequence.identities]
    kinds = [kind for kind in (*BACKWARD, *FORWARD) if any(found.helper == kind for found in classes)]
    if not kinds:
        return target
    streams = kernels["stream"].to_numpy(np.int64)
    by_stream = np.argsort(streams, kind="stable")
    streams, own = streams[by_stream], sequence.identity[by_stream]
    for kind in kinds:
        wanted = BACKWARD.get(kind) or FORWARD[kind]
        is_helper = np.array([found.helper == kind for found in classes])
        is_helped = np.array([found.helper == "" and found.kernel_class in wanted for found in classes])
        rows = np.flatnonzero(is_helper[own])
        direction = -1 if kind in BACKWARD else 1
        for distance in range(1, REACH[kind] + 1):
            there = rows + direction * distance
            inside = (there >= 0) & (there < count)
            there = np.clip(there, 0, count - 1)
            fits = inside & (streams[there] == streams[rows]) & is_helped[own[there]]
            target[by_stream[rows[fits]]] = by_stream[there[fits]]
            rows = rows[~fits]
    return target
