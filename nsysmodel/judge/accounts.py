"""The account of a device beside its waterfall: what could be gained, small kernels, launches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from nsysmodel import units
from nsysmodel.account.build import relabelled
from nsysmodel.account.gaps import GapAccount
from nsysmodel.account.recover import Recoverable, ceiling, recoverable
from nsysmodel.account.small import launch_cost, small_kernels
from nsysmodel.account.types import Window
from nsysmodel.account.waterfall import Waterfall
from nsysmodel.join.types import Join
from nsysmodel.judge.cases import Case
from nsysmodel.judge.collectives import Work, is_collective
from nsysmodel.judge.ops import Priced
from nsysmodel.result import MedianStep, OpRow
from nsysmodel.result_account import (
    CollectiveSummary,
    LaunchSummary,
    RecoverableRow,
    SmallRunRow,
    SmallSummary,
)


def work_of(case: Case, join: Join, *, judged: bool, layers: int = 0) -> Work:
    """What a device ran with the labels of the join; without labels where the join must not be judged.

    Without used steps everything is one window.
    """
    op = join.labels.op if judged else np.broadcast_to(np.int64(-1), len(case.kernels))
    activity, names = relabelled(case.activity, case.kernels, op), case.names
    windows = [Window(step.index, step.start_ns, step.end_ns) for step in join.used]
    if not windows and len(activity):
        windows = [Window(0, int(activity.start_ns.min()), int(activity.end_ns.max()))]
    labels = join.labels.op_labels if judged else ()
    return Work(activity, windows, labels, names, layers, join.method != "none" and bool(join.used))


def gains(
    work: Work,
    ops: Sequence[OpRow],
    priced: Mapping[str, Priced],
    collectives: Sequence[CollectiveSummary],
) -> dict[str, Recoverable]:
    """What the steps gain if an op runs at its target, for each judged op."""
    steps = max(len(work.windows), 1)
    waiting = {row.op: row.wait_ns or 0 for row in collectives}
    target: dict[str, int | None] = {}
    for row in ops:
        if not priced[row.op].judged:
            continue
        latency = row.latency_floor_ns
        target[row.op] = round(latency * steps) if latency is not None else row.floor_total_ns
    found = recoverable(work.activity, work.windows, work.labels, target, waiting)
    return {row.op: row for row in found}


def recoverable_rows(
    work: Work, ops: Sequence[OpRow], priced: Mapping[str, Priced], found: Mapping[str, Recoverable]
) -> tuple[RecoverableRow, ...]:
    """Ops by what a step would gain, most first."""
    steps, whole = max(len(work.windows), 1), work.window_ns
    bounds = {row.op: row.bound for row in ops}
    return tuple(
        RecoverableRow(
            op=row.op,
            recoverable_ns=row.recoverable_ns / steps,
            recoverable_80_ns=row.recoverable_80_ns / steps,
            exclusive_ns=row.exclusive_ns / steps,
            ceiling=_ceiling(whole, row.recoverable_ns),
            ceiling_80=_ceiling(whole, row.recoverable_80_ns),
            share=row.recoverable_ns / whole if whole else 0.0,
            target="transfer"
            if is_collective(priced[row.op])
            else "latency"
            if bounds[row.op] == "latency"
            else "floor",
            total_ns=row.recoverable_ns,
        )
        for row in found.values()
    )


def _ceiling(whole: int, gain: float) -> float | None:
    found = ceiling(whole, round(gain))
    return found if found != float("inf") else None


def small_summary(work: Work) -> SmallSummary | None:
    """Small kernels of the used steps; None where the export does not show T0."""
    found = small_kernels(work.activity, work.windows, work.labels, work.names)
    if found is None or not work.windows:
        return None
    steps = len(work.windows)
    count = found.count / steps
    mean = found.total_ns / found.count if found.count else 0.0
    total = units.ns(found.total_ns / steps)
    layered = f" ({count / work.layers:.3g} a layer)" if work.layers else ""
    each = _each(work)
    text = (
        f"{units.significant(count)} small kernels{each}{layered} at {units.ns(mean)}: {total}{each}. "
        f"Fusing every run of neighbours into one kernel would save at most "
        f"{units.ns(found.fusion_saving_ns / steps)}{each}."
    )
    return SmallSummary(
        t0_ns=found.t0_ns,
        limit_ns=found.limit_ns,
        count=found.count,
        total_ns=found.total_ns,
        count_per_step=count,
        per_step_ns=found.total_ns / steps,
        saving_ns=found.fusion_saving_ns / steps,
        ceiling=_ceiling(work.window_ns, found.fusion_saving_ns),
        explanation=text,
        runs=tuple(
            SmallRunRow(run.labels, run.count, run.total_ns, run.total_ns / steps, run.saving_ns / steps)
            for run in found.runs
        ),
    )


def _each(work: Work) -> str:
    return " a step" if work.stepped else " in all"


def launch_summary(work: Work, gaps: GapAccount) -> LaunchSummary | None:
    """What late launches cost a step; None without windows."""
    if not work.windows:
        return None
    found = launch_cost(work.activity, work.windows, gaps)
    steps = len(work.windows)
    starved, saved = found.starved_ns / steps, found.graph_saving_ns / steps
    text = f"The device waits {units.ns(starved)}{_each(work)} for launches that come late."
    if found.graph_saving_ns:
        text += f" CUDA graphs would save at most {units.ns(saved)} of it."
    elif found.starved_ns:
        text += " CUDA graphs would save none of it: what came late is a graph launch or a copy."
    return LaunchSummary(
        launches_per_step=found.launches / steps,
        share_in_graphs=found.in_graphs,
        total_ns=found.starved_ns,
        per_step_ns=starved,
        saving_ns=saved,
        ceiling=_ceiling(work.window_ns, found.graph_saving_ns),
        explanation=text,
    )


def median_step(account: Waterfall) -> MedianStep | None:
    """The account of the step of median length, parts that it does not have left out."""
    place = account.median_place()
    if place is None:
        return None
    window = account.windows[place]
    parts = tuple(part for part in account.of_window(place) if part.total_ns)
    return MedianStep(window.index, window.duration_ns, parts)
