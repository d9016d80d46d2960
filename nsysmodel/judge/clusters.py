"""Steps of one phase and batch are judged, others listed: serving runs change their batch all the time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from nsysmodel.grouping import first_rows
from nsysmodel.join.observe import observe_step, token_kinds
from nsysmodel.join.sequence import identify
from nsysmodel.join.types import Join, StepWindow
from nsysmodel.join.vocabulary import Vocabulary
from nsysmodel.judge.cases import Case
from nsysmodel.judge.observed import sequences
from nsysmodel.request import Selection
from nsysmodel.result import StepCluster
from nsysmodel.workload import WorkloadRequest


def describe_steps(
    case: Case, join: Join, vocabulary: Vocabulary, request: WorkloadRequest
) -> tuple[StepWindow, ...]:
    """The steps with phase, batch and tokens, from their markers, else from their own grids.

    Grids show tokens: where the request says that each sequence has several, the batch is a part of them.
    """
    markers = list(case.work.markers)
    if join.method == "nvtx":
        rows = first_rows(join.labels.step, int(join.labels.step.max(initial=-1)) + 1)
        first = {number: row for number, row in enumerate(rows.tolist()) if row >= 0}
        starts = np.array([marker.start_ns for marker in markers])
        described = []
        for step in join.steps:
            opening = first.get(step.index)
            launch = int(case.work.launch_start_ns[opening]) if opening is not None else -1
            number = int(np.searchsorted(starts, launch, side="right")) - 1
            marker = markers[number] if launch >= 0 and number >= 0 else None
            if marker is None:
                described.append(step)
            else:
                described.append(
                    replace(
                        step, phase=marker.phase, batch=marker.batch, tokens=marker.tokens, source="export"
                    )
                )
        return tuple(described)
    sequence = identify(case.kernels, case.work.shapes, vocabulary)
    kinds = token_kinds(sequence)
    # Kernels that no op claims may be those of a draft model, which takes other numbers of tokens.
    claimed = np.flatnonzero(join.labels.op >= 0)
    order = claimed[np.argsort(join.labels.step[claimed], kind="stable")]
    numbers = join.labels.step[order]
    result = []
    for step in join.steps:
        low, high = np.searchsorted(numbers, [step.index, step.index + 1])
        seen = observe_step(case.kernels, sequence, order[low:high], kinds)
        if seen is None:
            result.append(step)
            continue
        batch = sequences(seen.tokens, request) if seen.phase == "decode" else None
        result.append(replace(step, phase=seen.phase, batch=batch, tokens=seen.tokens, source="inferred"))
    return tuple(result)


def select_steps(
    steps: Sequence[StepWindow], request: WorkloadRequest, selection: Selection
) -> tuple[StepWindow, ...]:
    """Drop the steps outside the selection, and those of another phase or batch than the judged cluster.

    The judged cluster is the one that was asked for, else the one with most time.
    """
    chosen = [
        replace(step, dropped="outside_selection")
        if selection.steps is not None
        and step.dropped is None
        and not selection.steps[0] <= step.index <= selection.steps[1]
        else step
        for step in steps
    ]
    time: dict[tuple[str | None, int | None], int] = {}
    for step in chosen:
        if step.dropped is None:
            key = (step.phase, step.batch)
            time[key] = time.get(key, 0) + step.end_ns - step.start_ns
    wanted = {
        key: value
        for key, value in time.items()
        if (request.phase in (None, key[0])) and (request.batch in (None, key[1]))
    }
    if len(time) < 2 or not (wanted or time):
        return tuple(chosen)
    phase, batch = max(wanted or time, key=lambda key: (wanted or time)[key])
    result = []
    for step in chosen:
        if step.dropped is None and step.phase != phase:
            step = replace(step, dropped="other_phase")
        elif step.dropped is None and step.batch != batch:
            step = replace(step, dropped="other_batch")
        result.append(step)
    return tuple(result)


def inside_range(steps: tuple[StepWindow, ...], join: Join, selection: Selection) -> tuple[StepWindow, ...]:
    """The steps without a last one whose tail lies behind the end of the selected span."""
    if selection.time_range is None or "lm_head" not in join.missing or not steps:
        return steps
    cut = steps[-1] if steps[-1].dropped is not None else replace(steps[-1], dropped="outside_selection")
    return (*steps[:-1], cut)


def clusters_of(steps: Sequence[StepWindow]) -> tuple[StepCluster, ...]:
    """Steps by phase and batch, most steps first; cut-off steps count with their cluster."""
    groups: dict[tuple[str | None, int | None, int | None], list[StepWindow]] = {}
    for step in steps:
        groups.setdefault((step.phase, step.batch, step.tokens), []).append(step)
    result = [
        StepCluster(
            phase=phase or "unknown",
            batch=batch,
            tokens=tokens,
            source=members[0].source,
            steps=len(members),
            used=any(step.dropped is None for step in members),
            median_ns=int(np.median([step.end_ns - step.start_ns for step in members])),
        )
        for (phase, batch, tokens), members in groups.items()
    ]
    return tuple(sorted(result, key=lambda cluster: -cluster.steps))
