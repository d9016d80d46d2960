"""Kernels by name and launch shape, and where in the capture a profiler finds one such launch."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from nsysmodel.export.summary import statistics
from nsysmodel.join.types import Bools, Ints
from nsysmodel.judge.cases import Case
from nsysmodel.result import KernelUse


def kernel_uses(
    case: Case,
    mask: Bools | Ints,
    *,
    op: str | None = None,
    limit: int | None = None,
    classes: Mapping[str, str] | None = None,
    earlier: Ints | None = None,
) -> tuple[KernelUse, ...]:
    """Kernels by name and launch shape, most time first; `earlier` as `earlier_launches` gives it."""
    own = np.arange(len(case.kernels))[mask]
    if not len(own):
        return ()
    codes, examples = shapes(case.kernels, own)
    durations = case.kernels["duration_ns"].to_numpy()[own]
    count = np.bincount(codes)
    found = statistics(codes, durations, count)
    order = np.lexsort((-count, -found["total_ns"]))[:limit]
    skips = _least(earlier[own], codes, count)[order].tolist() if earlier is not None else [None] * len(order)
    whole = int(durations.sum())
    columns = [case.kernels[column].iloc[examples[order]].tolist() for column in SHAPE]
    numbers = [found[column][order].tolist() for column in ("total_ns", "med_ns", "min_ns", "max_ns")]
    return tuple(
        KernelUse(
            name=str(key[0]),
            grid="×".join(str(n) for n in key[1:4]),
            block="×".join(str(n) for n in key[4:7]),
            instances=instances,
            total_ns=total_ns,
            median_ns=int(median_ns),
            min_ns=min_ns,
            max_ns=max_ns,
            kernel_class=(classes or {}).get(str(key[0]), ""),
            op=op,
            share=total_ns / whole if whole else 0.0,
            launch_skip=skip,
        )
        for key, instances, total_ns, median_ns, min_ns, max_ns, skip in zip(
            zip(*columns, strict=True), count[order].tolist(), *numbers, skips, strict=True
        )
    )


SHAPE = ["name", "grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z"]
"""What tells one use of a kernel from another."""


def _least(values: Ints, codes: Ints, count: Ints) -> Ints:
    """The least value of each code, none of which has no rows."""
    starts = np.cumsum(count) - count
    least: Ints = np.minimum.reduceat(values[np.argsort(codes, kind="stable")], starts)
    return least


def shapes(kernels: pd.DataFrame, rows: Ints) -> tuple[Ints, Ints]:
    """Code of each row's name and launch shape, in order of first rows, and those rows of `kernels`."""
    codes = np.zeros(len(rows), np.int64)
    for column in SHAPE:
        values = kernels[column]
        plain = values.cat.codes.to_numpy() if values.dtype == "category" else values.to_numpy()
        if plain.strides == (0,):
            continue
        part, known = pd.factorize(plain[rows])
        if len(known) > 1:
            # Both counts are at most that of the rows, so their product fits.
            codes = pd.factorize(codes * len(known) + part)[0]
    first = np.empty(int(codes.max()) + 1, np.int64)
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    return codes, rows[first]


def earlier_launches(case: Case) -> Ints:
    """For each kernel, how many of the same name the process launched before it, in the order of start.

    A profiler that filters by name and skips that many launches stops at this very one.
    """
    codes = case.kernels["name"].astype("category").cat.codes.to_numpy(np.int64)
    order = np.lexsort((case.kernels["start_ns"].to_numpy(np.int64), codes))
    grouped = codes[order]
    result = np.empty(len(codes), np.int64)
    result[order] = np.arange(len(codes)) - np.searchsorted(grouped, grouped, side="left")
    return result
