"""The ledger: does what was found add up to the model? If not, nothing is judged, and the reason is said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from nsysmodel.hardware.types import Hardware
from nsysmodel.join.beliefs import op_belief
from nsysmodel.join.types import Bools, Ints, Labels, StepWindow
from nsysmodel.model.types import StepModel
from nsysmodel.result import Diagnostic
from nsysmodel.theory.floor import floor_of

LEAST_COVERAGE = 0.5
"""Share of kernel time of the used steps that ops must claim."""
MOST_MISSING = 0.1
"""Share of the step's floor that missing ops may have."""
ANCHOR = 4.0
"""Ops whose absence costs at least this much belief must close (see data/ops.yaml)."""
MAY_LACK = frozenset(
    {"lm_head", "sampling", "final_norm", "embedding", "logits_gather", "embedding_allreduce"}
)
"""Ops of head and tail that a forward pass may end before."""


def expected_counts(model: StepModel) -> dict[str, int]:
    """Executions of each op id that one step is expected to have."""
    counts: dict[str, int] = {}
    for _, op in model.places():
        counts[op.id] = counts.get(op.id, 0) + 1
    return counts


def found_counts(labels: Labels, steps: int) -> dict[str, Ints]:
    """Executions of each op id in each step; a fused label counts for each of its ids."""
    result: dict[str, Ints] = {}
    inside = (labels.step >= 0) & (labels.op >= 0) & (labels.executions > 0)
    for code, label in enumerate(labels.op_labels):
        rows = inside & (labels.op == code)
        number = np.bincount(labels.step[rows], minlength=steps).astype(np.int64)
        for op_id in label.split("+"):
            result[op_id] = result.get(op_id, np.zeros(steps, np.int64)) + number
    return result


def complete_steps(
    labels: Labels, steps: Sequence[StepWindow], model: StepModel
) -> tuple[list[bool], Mapping[str, tuple[float, float]]]:
    """Which steps have every anchor op as often as the others, and per op (expected, found in the median)."""
    expected = expected_counts(model)
    found = found_counts(labels, len(steps))
    whole = np.array([step.layers == len(model.layers) for step in steps], bool)
    anchors = {op.id for _, op in model.places() if op_belief(op).missing >= ANCHOR}
    complete = np.ones(len(steps), bool)
    closure: dict[str, tuple[float, float]] = {}
    for op_id, count in expected.items():
        number = found.get(op_id, np.zeros(len(steps), np.int64))
        usual = float(np.median(number[whole])) if whole.any() else 0.0
        closure[op_id] = (float(count), usual)
        if op_id in anchors:
            complete &= number >= 0.97 * min(usual, count)
    return [bool(flag) for flag in complete], closure


def refusals_of(
    kernels: pd.DataFrame,
    labels: Labels,
    steps: Sequence[StepWindow],
    model: StepModel,
    closure: Mapping[str, tuple[float, float]],
    hardware: Hardware,
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[Diagnostic, ...]]:
    """Why this must not be judged, which ops are missing, and what a reader should know."""
    used = [step.index for step in steps if step.dropped is None]
    missing = tuple(op_id for op_id, (_, found) in closure.items() if found == 0)
    if not steps:
        return (f"No pass of {model.name} was found in the kernels.",), missing, ()
    if not used:
        return (_no_whole_step(steps, model),), missing, ()
    reasons: list[str] = []
    duration = kernels["duration_ns"].to_numpy(np.int64)
    inside: Bools = np.isin(labels.step, used)
    claimed = int(duration[inside & (labels.op >= 0)].sum())
    whole = int(duration[inside].sum())
    if claimed < LEAST_COVERAGE * whole:
        reasons.append(
            f"The model claims only {100 * claimed / max(whole, 1):.0f} % of the kernel time "
            f"(at least {100 * LEAST_COVERAGE:.0f} % is needed)."
        )
    lost, total = 0.0, 0.0
    lost_ids: list[str] = []
    for _, op in model.places():
        floor_ns = floor_of(op.cost, hardware).ns
        total += floor_ns
        if op.id in missing and op.id not in MAY_LACK:
            lost += floor_ns
            if op.id not in lost_ids:
                lost_ids.append(op.id)
    if total and lost > MOST_MISSING * total:
        reasons.append(
            f"Ops with {100 * lost / total:.0f} % of the step's floor have no kernel: {', '.join(lost_ids)}."
        )
    for op_id, (expected, found) in closure.items():
        if op_id in ("attention", "ssm") and found and not np.isclose(found, expected, rtol=0.03, atol=0.5):
            reasons.append(f"{found:g} {op_id} executions a step; {model.name} has {expected:g}.")
    return tuple(reasons), missing, ()


def _no_whole_step(steps: Sequence[StepWindow], model: StepModel) -> str:
    """The sentence for a capture in which no step has the model's number of layers."""
    found = [step.layers for step in steps]
    common = max(set(found), key=found.count)
    if common == len(model.layers):
        return f"No whole step of {model.name} was found: {len(steps)} passes are cut off or lack anchor ops."
    return f"This looks like another model: {common} layers a step, {model.name} has {len(model.layers)}."
