"""Helper kernels: what only exists for another kernel carries the op of that one.

A split-K reduction follows its GEMM on the GEMM's stream, an attention combine its attention; a workspace
fill and scheduling metadata come before the kernel that they prepare.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from nsysmodel.join.sequence import Sequence
from nsysmodel.join.types import Ints

BACKWARD = {"reduction": ("gemm", "moe_gemm"), "combine": ("attention_decode", "attention_prefill")}
FORWARD = {
    "workspace": ("gemm", "moe_gemm", "attention_decode", "attention_prefill"),
    "metadata": ("attention_decode", "attention_prefill"),
}
REACH = {"reduction": 2, "combine": 3, "workspace": 1, "metadata": 12}
"""How many kernels of the same stream may lie between a helper and its kernel."""


def attach_helpers(kernels: pd.DataFrame, sequence: Sequence) -> Ints:
    """Per kernel the row of the kernel that it helps; -1 for kernels that stand for themselves."""
    count = len(kernels)
    target = np.full(count, -1, np.int64)
    helper = np.array([identity.kernel_class.helper for identity in sequence.identities], dtype=object)
    classes = np.array([identity.kernel_class.kernel_class for identity in sequence.identities], dtype=object)
    own_helper, own_class = helper[sequence.identity], classes[sequence.identity]
    streams = kernels["stream"].to_numpy(np.int64)
    by_stream = np.lexsort((np.arange(count), streams))
    for kind, wanted in (*BACKWARD.items(), *FORWARD.items()):
        rows = np.flatnonzero(own_helper[by_stream] == kind)
        if not len(rows):
            continue
        direction = -1 if kind in BACKWARD else 1
        open_rows = np.ones(len(rows), bool)
        for distance in range(1, REACH[kind] + 1):
            there = rows + direction * distance
            inside = open_rows & (there >= 0) & (there < count)
            there = np.clip(there, 0, count - 1)
            inside &= streams[by_stream[there]] == streams[by_stream[rows]]
            fits = (
                inside & np.isin(own_class[by_stream[there]], wanted) & (own_helper[by_stream[there]] == "")
            )
            target[by_stream[rows[fits]]] = by_stream[there[fits]]
            open_rows &= ~fits
    return target
