"""Two runs side by side: aligned by what kernels do, with what is known of the noise."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from nsysmodel.request import HardwareRequest, Selection
from nsysmodel.workload import WorkloadRequest

if TYPE_CHECKING:
    from nsysmodel.comparison.result import Comparison, Thresholds
    from nsysmodel.comparison.snapshot import Snapshot
    from nsysmodel.export.run import Run
    from nsysmodel.model import ModelSpec

    One = str | os.PathLike[str] | Run | Snapshot

__all__ = ["compare"]


def compare(
    a: One | Sequence[One],
    b: One | Sequence[One],
    *others: One | Sequence[One],
    model: str | ModelSpec | None = None,
    workload: WorkloadRequest | None = None,
    hardware: HardwareRequest | None = None,
    selection: Selection | None = None,
    thresholds: Thresholds | None = None,
    command: str = "",
) -> Comparison:
    """Set B, and each of `others`, against A.

    Args:
        a, b, others: an export (path or opened run), a baseline file, a snapshot, or several of them that are
            runs of the same thing.
        model: as in `evaluate`; without one, kernels are paired by name, place and grid.
        workload, hardware, selection: as in `evaluate`, for every run.
        thresholds: what a change must exceed to be one.
        command: the command line, for the output's own account.

    Raises:
        ExportError, ModelError, HardwareError: as `evaluate`; also where the runs have no device in common.
    """
    from nsysmodel.comparison.build import build
    from nsysmodel.comparison.comparable import run_reasons
    from nsysmodel.comparison.result import Thresholds
    from nsysmodel.comparison.taking import Asked, snapshot

    asked = Asked(
        model, workload or WorkloadRequest(), hardware or HardwareRequest(), selection or Selection()
    )
    given = [_list(side) for side in (a, b, *others)]
    sides = [[snapshot(one, asked) for one in side] for side in given]
    limits = thresholds or Thresholds()
    results = []
    for place, other in enumerate(sides[1:], start=1):
        against = tuple(dict.fromkeys(run_reasons(sides[0], other)))
        facts = sides[0][0].model
        mine, theirs = sides[0], other
        if model is not None and not all(run.judged for run in (*mine, *theirs)):
            # What the model cannot judge on both sides is shown by kernel name on both.
            bare = replace(asked, model=None)
            mine, theirs = ([snapshot(one, bare) for one in given[k]] for k in (0, place))
        results.append(build(mine, theirs, limits, command, against=against, model=facts))
    return replace(results[0], also=tuple(results[1:]))


def _list(side: One | Sequence[One]) -> Sequence[One]:
    if isinstance(side, (list, tuple)):
        return side
    return [side]  # type: ignore[list-item]
