"""The join of one device: helpers, alignment, steps, layers, ledger; on one page."""

from __future__ import annotations

from collections.abc import Sequence as Seq
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

import numpy as np
import pandas as pd

from nsysmodel.grouping import first_rows, last_rows
from nsysmodel.hardware.types import Hardware
from nsysmodel.join.glue import attach_helpers
from nsysmodel.join.knowledge import orders, skip_costs
from nsysmodel.join.labels import Chain, chain_labels
from nsysmodel.join.ledger import complete_steps, other_kinds, refusals_of
from nsysmodel.join.markers import Marker, step_of_launches
from nsysmodel.join.placing import apart, per_step, place_windows, spread
from nsysmodel.join.repeats import align_chain
from nsysmodel.join.runs import most, present
from nsysmodel.join.sequence import Sequence, align, identify, op_floors
from nsysmodel.join.shapes import Shapes, shapes_of
from nsysmodel.join.steps import number_steps
from nsysmodel.join.streams import attach_sides, side_runs
from nsysmodel.join.template import Orders, cyclic, linear
from nsysmodel.join.types import Ints, Join, Labels
from nsysmodel.join.vocabulary import Vocabulary
from nsysmodel.join.windows import judge
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


@dataclass(frozen=True)
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

    @cached_property
    def shapes(self) -> Shapes:
        """Name and launch shape of each kernel."""
        return shapes_of(self.kernels)


def join_device(work: DeviceWork, model: StepModel, hardware: Hardware, vocabulary: Vocabulary) -> Join:
    """Give each kernel of a device its step, layer and op.

    Raises:
        HardwareError: the device has no peak for a number format of the model.
    """
    sequence = identify(work.kernels, work.shapes, vocabulary)
    labels, method, odd_kinds = _labelled(work, model, hardware, sequence)
    labels, steps = place_windows(work, labels)
    kernel_ns, layers_found = per_step(work.kernels, labels, len(steps))
    steps = [replace(step, layers=int(found)) for step, found in zip(steps, layers_found, strict=True)]
    complete, closure = complete_steps(labels, steps, model)
    steps = judge(steps, kernel_ns, len(model.layers), complete)
    refusals, missing, diagnostics = refusals_of(
        work.kernels, labels, steps, model, closure, hardware, sequence
    )
    refusals = (*odd_kinds, *refusals)
    return Join(
        apart(labels), tuple(steps), method, len(model.layers), closure, missing, refusals, diagnostics
    )


def _labelled(
    work: DeviceWork, model: StepModel, hardware: Hardware, sequence: Sequence
) -> tuple[Labels, str, tuple[str, ...]]:
    """Labels before steps get their windows, how steps were found, and layers of another kind."""
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
        order, chain = attach_sides(template, aligned.path(), aligned.costs, sequence, main, sides, chain)
    del aligned, main
    chain, method = number_steps(work, chain, order)
    odd_kinds = other_kinds(template, model, chain)
    chain = _refine(model, hardware, sequence, order, chain, order_of)
    return spread(chain, order, helps), method, odd_kinds


def _breaks_early(chain: Chain, layers: int) -> bool:
    """True where most steps reach an LM head and some that do not have too few layers: strays cut them."""
    count = int(chain.step.max(initial=-1)) + 1
    if not count or "lm_head" not in chain.labels:
        return False
    depth = most(chain.step, chain.layer, count) + 1
    ends = present(chain.step[chain.op == chain.labels.index("lm_head")], count)
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
    count = int(chain.step.max(initial=-1)) + 1
    steps = np.flatnonzero(present(chain.step, count))
    found = np.maximum(most(chain.step, chain.layer, count)[steps] + 1, 0)
    expected = len(model.layers)
    off = steps[(found != expected) & (np.abs(found - expected) <= NEAR)]
    if not len(off):
        return chain
    template = linear(model, skip_costs([op for _, op in model.places()]), order_of)
    floors = op_floors(template, hardware)
    names = list(chain.labels)
    # With room for labels and layers that the chain does not have.
    op, layer, bundle = (values.astype(np.int32) for values in (chain.op, chain.layer, chain.bundle))
    first, confidence = chain.first.copy(), chain.confidence.copy()
    places = list(chain.bundles)
    begins, ends = first_rows(chain.step, count), last_rows(chain.step, count) + 1
    for step in off[:MOST_REFINED]:
        rows = begins[step] + np.flatnonzero(chain.step[begins[step] : ends[step]] == step)
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


__all__ = ["DeviceWork", "join_device", "step_of_launches"]
