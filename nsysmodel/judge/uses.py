"""Kernels by name and launch shape, and where in the capture a profiler finds one such launch."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from nsysmodel.grouping import codes_of, first_rows, ordered
from nsysmodel.join.types import Bools, Codes, Ints
from nsysmodel.judge.cases import Case
from nsysmodel.result import KernelUse


def kernel_uses(
    case: Case,
    mask: Bools | Codes,
    *,
    op: str | None = None,
    limit: int | None = None,
    classes: Mapping[str, str] | None = None,
    earlier: Codes | None = None,
    known: tuple[Codes, Ints] | None = None,
) -> tuple[KernelUse, ...]:
    """Kernels by name and launch shape, most time first.

    `earlier` as `earlier_launches` gives it; `known` as `shapes` gives it for these kernels.
    """
    own = np.flatnonzero(mask) if mask.dtype == bool else mask
    if not len(own):
        return ()
    codes, examples = known or shapes(case.kernels, own)
    groups = ordered(codes, case.kernels["duration_ns"].to_numpy(np.int64)[own], len(examples))
    first, last, size = groups.edges[:-1], groups.edges[1:] - 1, groups.size
    total, median = np.add.reduceat(groups.values, first), groups.median()
    skips = earlier[examples] if earlier is not None else None
    whole = int(total.sum())
    best = np.lexsort((-size, -total))[:limit]
    keys = case.kernels.iloc[examples[best]][SHAPE].itertuples(index=False, name=None)
    return tuple(
        KernelUse(
            name=str(key[0]),
            grid="×".join(str(n) for n in key[1:4]),
            block="×".join(str(n) for n in key[4:7]),
            instances=int(size[code]),
            total_ns=int(total[code]),
            median_ns=int(median[code]),
            min_ns=int(groups.values[first[code]]),
            max_ns=int(groups.values[last[code]]),
            kernel_class=(classes or {}).get(str(key[0]), ""),
            op=op,
            share=int(total[code]) / whole if whole else 0.0,
            launch_skip=int(skips[code]) if skips is not None else None,
        )
        for key, code in zip(keys, best.tolist(), strict=True)
    )


SHAPE = ["name", "grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z"]
"""What tells one use of a kernel from another."""


def shapes(kernels: pd.DataFrame, rows: Codes) -> tuple[Ints, Ints]:
    """Code of each row's name and launch shape, in order of first rows, and those rows of `kernels`."""
    columns = []
    for column in SHAPE:
        values = kernels[column]
        plain = values.cat.codes.to_numpy() if values.dtype == "category" else values.to_numpy()
        if plain.strides != (0,):
            columns.append(plain if len(rows) == len(kernels) else plain[rows])
    codes = codes_of(columns) if columns else np.zeros(len(rows), np.int64)
    return codes, rows[first_rows(codes, int(codes.max()) + 1)]


def earlier_launches(case: Case) -> Codes:
    """For each kernel, how many of the same name the process launched before it, in the order of start.

    A profiler that filters by name and skips that many launches stops at this very one.
    """
    codes = case.kernels["name"].astype("category").cat.codes.to_numpy()
    # Kernels are in order of start, and a stable sort leaves those of one name in it.
    order = np.argsort(codes, kind="stable")
    counts = np.bincount(codes)
    result = np.empty(len(codes), np.int32)
    result[order] = np.arange(len(codes)) - np.repeat(np.cumsum(counts) - counts, counts)
    return result
