"""Kernels by name and launch shape, and where in the capture a profiler finds one such launch."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

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
    values = {"code": codes, "duration_ns": case.kernels["duration_ns"].to_numpy()[own]}
    groups = pd.DataFrame(values, copy=False).groupby("code", sort=True)
    table = groups["duration_ns"].agg(["size", "sum", "median", "min", "max"])
    keys = case.kernels.iloc[examples][SHAPE].itertuples(index=False, name=None)
    table.index = pd.Index([(str(key[0]), *key[1:]) for key in keys], tupleize_cols=False)
    skips = dict(zip(table.index, earlier[examples], strict=True)) if earlier is not None else {}
    whole = int(values["duration_ns"].sum())
    table = table.sort_values(["sum", "size"], ascending=False, kind="stable")
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


SHAPE = ["name", "grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z"]
"""What tells one use of a kernel from another."""


def shapes(kernels: pd.DataFrame, rows: Codes) -> tuple[Ints, Ints]:
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
