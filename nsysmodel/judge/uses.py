"""Kernels by name and launch shape, and where in the capture a profiler finds one such launch."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from nsysmodel.grouping import ordered
from nsysmodel.join.shapes import SHAPE
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
    earlier: Mapping[int, int] | None = None,
    known: tuple[Codes, Ints] | None = None,
) -> tuple[KernelUse, ...]:
    """Kernels by name and launch shape, most time first.

    `earlier` as `earlier_launches` gives it; `known` as `Shapes.of` gives it for these kernels.
    """
    own = np.flatnonzero(mask) if mask.dtype == bool else mask
    if not len(own):
        return ()
    codes, examples = known or case.work.shapes.of(own)
    groups = ordered(codes, case.kernels["duration_ns"].to_numpy(np.int64)[own], len(examples))
    first, last, size = groups.edges[:-1], groups.edges[1:] - 1, groups.size
    total, median = np.add.reduceat(groups.values, first), groups.median()
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
            launch_skip=earlier[int(examples[code])] if earlier is not None else None,
        )
        for key, code in zip(keys, best.tolist(), strict=True)
    )


def earlier_launches(case: Case, rows: Ints) -> Mapping[int, int]:
    """For each of these kernels, how many of the same name the process launched before it, by start.

    A profiler that filters by name and skips that many launches stops at this very one.

    Args:
        rows: of the case's kernels, few beside all of them.
    """
    names = case.kernels["name"].astype("category").cat
    codes, count = names.codes.to_numpy(), np.zeros(len(names.categories), np.int64)
    result: dict[int, int] = {}
    low = 0
    for row in np.unique(rows).tolist():
        # Kernels are in order of start: those before a row are those before it in time.
        count += np.bincount(codes[low:row], minlength=len(count))
        result[row], low = int(count[codes[row]]), row
    return result
