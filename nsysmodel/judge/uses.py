"""Kernels by name and launch shape, and where in the capture a profiler finds one such launch."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

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
    frame = case.kernels[mask]
    if not len(frame):
        return ()
    if earlier is not None:
        frame = frame.assign(earlier=earlier[mask])
    shape = ["name", "grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z"]
    groups = frame.groupby(shape, observed=True, sort=False)
    skips = groups["earlier"].min().to_dict() if earlier is not None else {}
    table = (
        groups["duration_ns"]
        .agg(["size", "sum", "median", "min", "max"])
        .sort_values(["sum", "size"], ascending=False, kind="stable")
    )
    whole = int(frame["duration_ns"].sum())
    rows = table.head(limit) if limit else table
    return tuple(
        KernelUse(
            name=str(key[0]),
            grid="×".join(str(n) for n in key[1:4]),
            block="×".join(str(n) for n in key[4:7]),
            instances=int(row["size"]),
            total_ns=int(row["sum"]),
            median_ns=int(row["median"]),
            min_ns=int(row["min"]),
            max_ns=int(row["max"]),
            kernel_class=(classes or {}).get(str(key[0]), ""),
            op=op,
            share=int(row["sum"]) / whole if whole else 0.0,
            launch_skip=int(skips[key]) if key in skips else None,
        )
        for key, row in zip(rows.index, rows.to_dict("records"), strict=True)
    )


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
