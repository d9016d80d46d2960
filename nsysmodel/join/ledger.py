"""The ledger: does what was found add up to the model? If not, nothing is judged, and the reason is said."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Sequence as Seq

import numpy as np
import pandas as pd

from nsysmodel.grouping import openings
from nsysmodel.hardware.types import Hardware
from nsysmodel.join.knowledge import op_belief
from nsysmodel.join.labels import Chain
from nsysmodel.join.runs import most, present
from nsysmodel.join.sequence import Sequence
from nsysmodel.join.template import Template
from nsysmodel.join.types import Bools, Ints, Labels, StepWindow
from nsysmodel.model.types import Op, StepModel
from nsysmodel.result import Diagnostic
from nsysmodel.theory.floor import floor_of

LEAST_COVERAGE = 0.5
"""Share of kernel time of the used steps that ops must claim."""
MOST_MISSING = 0.1
"""Share of the step's floor that missing ops may have; found in less than half its places is missing."""
FEWEST_LAYERS = 2
"""Up to so many layers a pass is no pass of a smaller model but a mere coincidence."""
MOST_SHORT = 0.5
"""Share of the floor of the layers' ops whose ops may be found less often than the model has them."""
FOREIGN = ("gemm", "moe_gemm", "attention_decode", "attention_prefill", "ssm")
"""Classes of kernels that a model cannot lack about once a layer."""
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
    inside = np.flatnonzero((labels.step >= 0) & (labels.op >= 0) & (labels.executions > 0))
    cells = labels.op[inside].astype(np.int64) * steps + labels.step[inside]
    table = np.bincount(cells, minlength=len(labels.op_labels) * steps).reshape(len(labels.op_labels), steps)
    result: dict[str, Ints] = {}
    for number, label in zip(table, labels.op_labels, strict=True):
        for op_id in label.split("+"):
            result[op_id] = result.get(op_id, np.zeros(steps, np.int64)) + number
    return result


def complete_steps(
    labels: Labels, steps: Seq[StepWindow], model: StepModel
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
    steps: Seq[StepWindow],
    model: StepModel,
    closure: Mapping[str, tuple[float, float]],
    hardware: Hardware,
    sequence: Sequence,
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
        expected, found = closure[op.id]
        if found < 0.5 * expected and op.id not in MAY_LACK:
            lost += floor_ns
            if op.id not in lost_ids:
                lost_ids.append(op.id)
    if total and lost > MOST_MISSING * total:
        reasons.append(
            f"Ops with {100 * lost / total:.0f} % of the step's floor have no kernel, "
            f"or in few layers only: {', '.join(lost_ids)}."
        )
    reasons += _short_of_layers(model, closure, hardware)
    for op_id, (expected, found) in closure.items():
        if op_id in ("attention", "ssm") and found and not np.isclose(found, expected, rtol=0.03, atol=0.5):
            reasons.append(f"{found:g} {op_id} executions a step; {model.name} has {expected:g}.")
    reasons += _foreign(labels, sequence, used, len(model.layers), model.name)
    return tuple(reasons), missing, ()


def _short_of_layers(
    model: StepModel, closure: Mapping[str, tuple[float, float]], hardware: Hardware
) -> list[str]:
    """That most of the layers' work runs less often than the model has layers: another, shallower model."""
    floors: dict[str, float] = {}
    for layer, op in model.places():
        if layer is not None:
            floors[op.id] = floors.get(op.id, 0.0) + floor_of(op.cost, hardware).ns
    # An op that has no kernel of its own is fused into another one; it says nothing about layers.
    served = {op_id: floor for op_id, floor in floors.items() if closure[op_id][1] > 0}
    short = {op_id: floor for op_id, floor in served.items() if closure[op_id][1] <= closure[op_id][0] - 0.75}
    if not short or sum(short.values()) <= MOST_SHORT * sum(served.values()):
        return []
    widest = max(short, key=lambda op_id: short[op_id])
    expected, found = closure[widest]
    return [f"This looks like another model: {found:g} {widest} a step; {model.name} has {expected:g}."]


def _foreign(labels: Labels, sequence: Sequence, used: list[int], layers: int, name: str) -> list[str]:
    """Products or attention kernels that run about once a layer and serve nothing in the model."""
    classes = np.array([identity.kernel_class.kernel_class for identity in sequence.identities])
    heavy = np.isin(classes, FOREIGN)[sequence.identity]
    rows = np.isin(labels.step, used) & (labels.op < 0) & (labels.layer >= 0) & heavy
    per_step = np.bincount(sequence.identity[rows], minlength=len(classes)) / max(len(used), 1)
    number = int(np.round(per_step[per_step >= 0.5 * layers].sum() / max(layers, 1)))
    if not number:
        return []
    return [f"{number} matrix products or attention kernels a layer serve no op of {name}: another model?"]


def other_kinds(template: Template, model: StepModel, chain: Chain) -> tuple[str, ...]:
    """The layers whose kind is plainly not the model's, in most steps; nothing where the count is off."""
    expected = np.array([_group_of(template, model.kinds[kind]) for kind in model.layers])
    if len(set(expected.tolist())) < 2:
        return ()
    inside = (chain.layer >= 0) & (chain.layer < len(expected))
    served = np.flatnonzero((chain.group >= 0) & inside & (chain.step >= 0))
    served = served[openings(chain.step[served], chain.layer[served])]
    key = chain.step[served].astype(np.int64) * len(expected) + chain.layer[served]
    _, first = np.unique(key, return_index=True)
    layer, group = chain.layer[served][first], chain.group[served][first]
    seen = np.bincount(layer, minlength=len(expected))
    odd = np.bincount(layer, weights=(group != expected[layer]).astype(float), minlength=len(expected))
    deepest = most(chain.step, chain.layer, int(chain.step.max(initial=-1)) + 1) + 1
    depth = deepest[present(chain.step, len(deepest))]
    if not len(depth) or np.median(depth) != len(expected):
        return ()
    wrong = np.flatnonzero((seen > 0) & (odd > 0.5 * seen))
    if not len(wrong):
        return ()
    first_wrong = int(wrong[0])
    kind = template.groups[int(group[layer == first_wrong][0])].kind
    return (
        f"{len(wrong)} layers are of another kind than in {model.name} (layer {first_wrong} looks like "
        f"{kind}, the model says {model.layers[first_wrong]}).",
    )


def _group_of(template: Template, ops: Seq[Op]) -> int:
    """The group that holds the slots of a layer kind."""
    wanted = {op.id for op in ops}
    return next(
        g
        for g, group in enumerate(template.groups)
        if group.layer >= 0
        and {op.id for op in group.ops} == wanted
        and len(set(group.positions)) == len(ops)
    )


def _no_whole_step(steps: Seq[StepWindow], model: StepModel) -> str:
    """The sentence for a capture in which no step has the model's number of layers."""
    found = [step.layers for step in steps]
    common = max(set(found), key=found.count)
    if common == len(model.layers):
        return f"No whole step of {model.name} was found: {len(steps)} passes are cut off or lack anchor ops."
    if common <= FEWEST_LAYERS:
        return (
            f"No pass of {model.name} was recognised: the kernels fit neither its order nor the times of "
            "this workload (--batch, --tokens, --dtype, --quant)."
        )
    return f"This looks like another model: {common} layers a step, {model.name} has {len(model.layers)}."
