"""Matrix products of growing size in an export, and the GPU that ran them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from nsysmodel.cli.measurements import MeasurementError
from nsysmodel.theory.roofline import Shape
from nsysmodel.units import ns

if TYPE_CHECKING:
    import pandas as pd

    from nsysmodel.hardware.match import GpuFactsLike

_IDENTITY = ["name", "grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z"]


def gpu_of(path: str) -> GpuFactsLike | None:
    """What the export says of the device of its first kernel; None where it says nothing."""
    from nsysmodel.export.run import open_run

    with open_run(path) as run:
        kernels = run.kernels()
        if not len(kernels):
            return None
        first = kernels.iloc[0]
        return run.gpu_for(int(first["global_pid"]), int(first["device"]))


def sweep(path: str, pattern: str, shapes: Sequence[Shape]) -> list[tuple[Shape, float]]:
    """Median time in ns of each size: kernels of one name, grid and block are one size, in order of time.

    Raises:
        MeasurementError: the pattern is wrong, no kernel fits it, or there are more or fewer sizes.
    """
    from nsysmodel.export.run import open_run

    try:
        wanted = re.compile(pattern)
    except re.error as error:
        raise MeasurementError(
            f"'{pattern}' is not a regular expression: {error}.", "Check --kernel."
        ) from error
    with open_run(path) as run:
        kernels = run.kernels()
    names = kernels["name"].astype(str)
    found = kernels[names.map(lambda name: wanted.search(name) is not None).astype(bool)]
    if not len(found):
        raise MeasurementError(
            f"No kernel of the export fits '{pattern}'.", "See its names with `nsysmodel kernels`."
        )
    groups = _groups(found)
    if len(groups) != len(shapes):
        listed = "; ".join(f"{count} × {ns(median)}" for count, median in groups[:8])
        raise MeasurementError(
            f"The kernels have {len(groups)} different launches ({listed}), but {len(shapes)} --gemm.",
            "Give one --gemm for each, in order of time, or a narrower --kernel.",
        )
    return [(shape, median) for shape, (_, median) in zip(shapes, groups, strict=True)]


def _groups(kernels: pd.DataFrame) -> list[tuple[int, float]]:
    """Number and median time of each identity, in order of first start."""
    grouped = kernels.astype({"name": str}).groupby(_IDENTITY, sort=False)["duration_ns"]
    return [(len(durations), float(durations.median())) for _, durations in grouped]
