"""The join of one device: helpers, alignment, steps, layers, ledger; on one page."""

from __future__ import annotations

from collections.abc import Sequence as Seq
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import pandas as pd

from nsysmodel.hardware.types import Hardware
from nsysmodel.join.glue import attach_helpers
from nsysmodel.join.knowledge import orders, skip_costs
from nsysmodel.join.labels import Chain, chain_labels
from nsysmodel.join.ledger import complete_steps, other_kinds, refusals_of
from nsysmodel.join.markers import Marker, step_of_launches
from nsysmodel.join.repeats import align_chain
from nsysmodel.join.sequence import Sequence, align, identify, op_floors
from nsysmodel.join.steps import number_steps
from nsysmodel.join.streams import attach_sides, side_runs
from nsysmodel.join.template import Orders, cyclic, linear
from nsysmodel.join.types import Ints, Join, Labels, StepWindow
from nsysmodel.join.vocabulary import Vocabulary
from nsysmodel.join.windows import boundaries, judge, last_end
from nsysmodel.model.types import StepModel

T = TypeVar("T")

SAMPLE = 3000
"""Kernels on which the order of ops is chosen."""
WHOLE = {"lm_head": 6.0}
"""Cost of a step without an LM head, where the capture was seen to have them."""
MOST_REFINED = 64
"""Steps aligned layer by layer at most; more of them mean that the model is another one."""
NEAR = 2
"""Layers by which a step may be off and still be aligned layer by layer."""


@dataclass(frozen=True, slots=True)
class DeviceWork:
    """What the join reads of one process and device.

    Attributes:
        kernels: kernel rows by start (columns of `Run.kernels`).
        activity_start_ns, activity_end_ns: everything that the device runs, by start.
        launch_start_ns: launching call of each kernel, -1 unknown.
        graph_launch: correlation id where a kernel is a node of a CUDA graph, else -1.
        markers: step markers of the process.
    """

    kernels: pd.DataFrame
    activity_start_ns: Ints
    activity_end_ns: Ints
    launch_start_ns: Ints
    graph_launch: Ints
    markers: Seq[Marker] = ()


def join_device(work: DeviceWork, model: StepModel, hardware: Hardware, vocabulary: Vocabulary) -> Join:
    """Give each kernel of a device its step, layer and op.

    Raises:
        HardwareError: the device has no peak for a number format of the model.
    """
    sequence = identify(work.kernels, vocabulary)
    helps = attach_helpers(work.kernels, sequence)
    order = np.flatnonzero(helps < 0)
    main, sides = side_runs(work.kernels, order)
    skips = skip_costs((op for _, op in model.places()), side_streams=bool(sides))
    order_of = _order_of_ops(model, hardware, sequence, main, skips)
    template = cyclic(model, skips, order_of)
    aligned = align_chain(template, sequence, main, op_floors(template, hardware))
    if _breaks_early(aligned.chain, len(model.layers)):
        template = cyclic(model, {**skips, **WHOLE}, order_of, whole_steps=True)
        aligned = align_chain(template, sequence, main, op_floors(template, hardware))
    chain = aligned.chain
    if sides:
        order, chain = attach_sides(template, aligned.path, aligned.costs, sequence, main, sides, chain)
    numbered, method = number_steps(work, chain, order)
    odd_kinds = other_kinds(template, model, numbered)
    chain = _refine(model, hardware, sequence, order, numbered, order_of)
    labels = _spread(chain, order, helps, len(work.kernels))
    steps = _windows(work, labels, chain, order)
    kernel_ns, layers_found = _per_step(work.kernels, labels, len(steps))
    steps = [replace(step, layers=int(found)) for step, found in zip(steps, layers_found, strict=True)]
    complete, closure = complete_steps(labels, steps, model)
    steps = judge(steps, kernel_ns, len(model.layers), complete)
    refusals, missing, diagnostics = refusals_of(
        work.kernels, labels, steps, model, closure, hardware, sequence
    )
    refusals = (*odd_kinds, *refusals)
    return Join(labels, tuple(steps), method, len(model.layers), closure, missing, refusals, diagnostics)


def _breaks_early(chain: Chain, layers: int) -> bool:
    """True where most steps reach an LM head and some that do not have too few layers: strays cut them."""
    inside = chain.step >= 0
    if not inside.any() or "lm_head" not in chain.labels:
        return False
    count = int(chain.step.max()) + 1
    depth, ends = np.zeros(count, np.int64), np.zeros(count, bool)
    np.maximum.at(depth, chain.step[inside], chain.layer[inside] + 1)
    ends[np.unique(chain.step[chain.op == chain.labels.index("lm_head")])] = True
    inner = slice(1, -1)
    return bool(ends.sum() * 2 > count and (~ends[inner] & (depth[inner] < layers)).any())


def _order_of_ops(
    model: StepModel, hardware: Hardware, sequence: Sequence, rows: Ints, skips: dict[str, float]
) -> Orders:
    """The order of ops that explains the kernels best, of those that engines are known to use."""
    options = orders({op.id for _, op in model.places()})
    if len(options) == 1:
        return options[0]
    costs = []
    for option in options:
        template = cyclic(model, skips, option)
        path, _, _ = align(template, sequence, rows[:SAMPLE], op_floors(template, hardware))
        costs.append(path.cost)
    return options[costs.index(min(costs))]


def _refine(
    model: StepModel,
    hardware: Hardware,
    sequence: Sequence,
    order: Ints,
    chain: Chain,
    order_of: Orders,
) -> Chain:
    """Align a step layer by layer where the free count of layers came out a little off."""
    steps = np.unique(chain.step[chain.step >= 0])
    if not len(steps):
        return chain
    depth = np.zeros(int(steps[-1]) + 1, np.int64)
    inside = chain.step >= 0
    np.maximum.at(depth, chain.step[inside], chain.layer[inside] + 1)
    found = depth[steps]
    expected = len(model.layers)
    off = steps[(found != expected) & (np.abs(found - expected) <= NEAR)]
    if not len(off):
        return chain
    template = linear(model, skip_costs([op for _, op in model.places()]), order_of)
    floors = op_floors(template, hardware)
    names = list(chain.labels)
    op, layer = chain.op.copy(), chain.layer.copy()
    first, confidence, bundle = chain.first.copy(), chain.confidence.copy(), chain.bundle.copy()
    places = list(chain.bundles)
    by_step = np.argsort(chain.step, kind="stable")
    numbers = chain.step[by_step]
    for step in off[:MOST_REFINED]:
        low, high = np.searchsorted(numbers, [step, step + 1])
        rows = np.sort(by_step[low:high])
        path, costs, _ = align(template, sequence, order[rows], floors)
        part = chain_labels(template, path, costs, sequence.identity[order[rows]], sequence.identities)
        if len(np.unique(part.layer[part.layer >= 0])) != expected:
            continue
        codes = np.array([_code(names, label) for label in part.labels] or [0], np.int64)
        op[rows] = np.where(part.op >= 0, codes[np.maximum(part.op, 0)], -1)
        known = np.array([_code(places, place) for place in part.bundles] or [0], np.int64)
        bundle[rows] = np.where(part.bundle >= 0, known[np.maximum(part.bundle, 0)], -1)
        layer[rows], first[rows], confidence[rows] = part.layer, part.first, part.confidence
    return Chain(op, layer, chain.step, first, confidence, tuple(names), bundle, tuple(places), chain.group)


def _code(table: list[T], entry: T) -> int:
    if entry not in table:
        table.append(entry)
    return table.index(entry)


def _spread(chain: Chain, order: Ints, helps: Ints, count: int) -> Labels:
    """Labels of all kernels; helpers take those of the kernel they help and execute nothing."""
    step, layer = np.full(count, -1, np.int64), np.full(count, -1, np.int64)
    op, executions = np.full(count, -1, np.int64), np.zeros(count, np.int64)
    confidence, bundle = np.zeros(count), np.full(count, -1, np.int64)
    step[order], layer[order], op[order] = chain.step, chain.layer, chain.op
    executions[order], confidence[order] = chain.first & (chain.op >= 0), chain.confidence
    bundle[order] = np.where(chain.first, chain.bundle, -1)
    helpers = np.flatnonzero(helps >= 0)
    for array in (step, layer, op, confidence):
        array[helpers] = array[helps[helpers]]
    # What is prepared before the first layer belongs to no layer, whatever it is prepared for.
    before = np.searchsorted(order, helpers) - 1
    ahead = (helps[helpers] > helpers) & (layer[helpers] == 0) & (chain.layer[np.maximum(before, 0)] < 0)
    layer[helpers[ahead]] = -1
    return Labels(step, layer, op, confidence, executions, chain.labels, bundle, chain.bundles)


def _windows(work: DeviceWork, labels: Labels, chain: Chain, order: Ints) -> list[StepWindow]:
    """Windows of the numbered steps; kernels between two steps are moved to the step their window holds."""
    starts = work.kernels["start_ns"].to_numpy(np.int64)
    owned = np.flatnonzero((labels.step >= 0) & (labels.op >= 0))
    numbers = np.unique(labels.step[owned])
    if not len(numbers):
        return []
    row_of = np.searchsorted(work.activity_start_ns, starts, side="left")
    number = np.searchsorted(numbers, labels.step[owned])
    low = np.full(len(numbers), len(work.activity_start_ns), np.int64)
    high = np.full(len(numbers), -1, np.int64)
    np.minimum.at(low, number, row_of[owned])
    np.maximum.at(high, number, row_of[owned])
    first, last = low.tolist(), high.tolist()
    cuts = boundaries(work.activity_start_ns, work.activity_end_ns, last[:-1], first[1:])
    opening = [first[0], *cuts]
    begins = [int(work.activity_start_ns[row]) for row in opening]
    ends = [*begins[1:], last_end(work.activity_start_ns, work.activity_end_ns, first[-1], last[-1])]
    window_of = np.searchsorted(np.array(begins), starts, side="right") - 1
    window_of[starts >= ends[-1]] = -1
    labels.step[:] = window_of
    _unlabel_strays(labels)
    return [
        StepWindow(index, begin, end, 0) for index, (begin, end) in enumerate(zip(begins, ends, strict=True))
    ]


def _unlabel_strays(labels: Labels) -> None:
    """What looks like sampling but runs before the first layer of its window prepares this step: unclaimed.

    The same holds for a head op after the last layer.
    """
    regions = np.array([bundle[-1][0] for bundle in labels.bundles] or [""])
    layered = np.flatnonzero((labels.layer >= 0) & (labels.op >= 0) & (labels.step >= 0))
    if not len(layered):
        return
    rows = np.arange(len(labels.step))
    count = int(labels.step.max()) + 1
    low, high = np.full(count, len(rows)), np.full(count, -1)
    np.minimum.at(low, labels.step[layered], layered)
    np.maximum.at(high, labels.step[layered], layered)
    step = np.maximum(labels.step, 0)
    named = np.flatnonzero(labels.bundle >= 0)
    pairs = np.unique(np.stack([labels.op[named], labels.bundle[named]], axis=1), axis=0)
    of_label = [""] * (len(labels.op_labels) + 1)
    for code, bundle in pairs.tolist():
        of_label[code] = str(regions[bundle])
    region = np.array(of_label)[labels.op]
    stray = ((region == "tail") & (rows < low[step])) | ((region == "head") & (rows > high[step]))
    labels.op[stray] = -1
    labels.bundle[stray] = -1
    labels.executions[stray] = 0
    labels.confidence[stray] = 0.0


def _per_step(kernels: pd.DataFrame, labels: Labels, count: int) -> tuple[Ints, Ints]:
    """Kernel time and layers of each step."""
    duration = kernels["duration_ns"].to_numpy(np.int64)
    inside = labels.step >= 0
    kernel_ns, layers = np.zeros(count, np.int64), np.zeros(count, np.int64)
    np.add.at(kernel_ns, labels.step[inside], duration[inside])
    np.maximum.at(layers, labels.step[inside], labels.layer[inside] + 1)
    return kernel_ns, layers


__all__ = ["DeviceWork", "join_device", "step_of_launches"]
