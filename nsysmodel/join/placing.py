"""From the chain to all kernels of a device: labels, windows of steps, and what lies between two steps."""

from __future__ import annotations

import mmap
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from nsysmodel.grouping import first_rows, last_rows
from nsysmodel.join.labels import Chain
from nsysmodel.join.runs import most, narrow
from nsysmodel.join.types import Codes, Ints, Labels, StepWindow
from nsysmodel.join.windows import boundaries, last_end

if TYPE_CHECKING:
    from nsysmodel.join.join import DeviceWork


def spread(chain: Chain, order: Ints, helps: Codes) -> Labels:
    """Labels of all kernels; helpers take those of the kernel they help and execute nothing.

    Args:
        order: rows of the kernels of the chain.
        helps: per kernel the row of the one that it helps, -1 for those of the chain.
    """
    belief, beliefs = pd.factorize(np.append(chain.confidence, 0.0))
    unclaimed = int(belief[-1])
    columns = (chain.step, chain.layer, chain.op, belief[:-1], np.where(chain.first, chain.bundle, -1))
    step, layer, op, belief, bundle = map(narrow, columns)
    executions = (chain.first & (chain.op >= 0)).view(np.int8)
    if len(order) < len(helps):

        def placed(values: Codes) -> Codes:
            result = np.full(len(helps), -1, values.dtype)
            result[order] = values
            return result

        step, layer, op, belief, bundle = map(placed, (step, layer, op, belief, bundle))
        executions = np.maximum(placed(executions), 0)
        _help(step, layer, op, belief, chain, helps)
        _let_go(step, layer, op, belief, chain, helps, unclaimed)
    return Labels(step, layer, op, belief, executions, chain.labels, bundle, chain.bundles, beliefs)


def _help(step: Codes, layer: Codes, op: Codes, belief: Codes, chain: Chain, helps: Codes) -> None:
    """Helpers take the labels of the kernel that they help."""
    helpers = np.flatnonzero(helps >= 0)
    helped = helps[helpers]
    for array in (step, layer, op, belief):
        array[helpers] = array[helped]
    # What is prepared before the first layer belongs to no layer, whatever it is prepared for.
    before = helpers - np.arange(len(helpers)) - 1
    ahead = (helped > helpers) & (layer[helpers] == 0) & (chain.layer[np.maximum(before, 0)] < 0)
    layer[helpers[ahead]] = -1


def _let_go(
    step: Codes, layer: Codes, op: Codes, belief: Codes, chain: Chain, helps: Codes, unclaimed: int
) -> None:
    """What runs before other ops of a step prepares nothing of the next one: no op claims it.

    A scan kernel among the last kernels of a step looks like the schedule of the next attention, and would
    begin the next step too early.
    """
    helpers = np.flatnonzero(helps >= 0)
    after = helpers - np.arange(len(helpers))
    prepares = helps[helpers] > helpers
    helpers, after = helpers[prepares], after[prepares]
    # The next kernel of the chain that an op claims; most often it is the next one at all.
    end = len(chain.op)
    free = np.flatnonzero(np.append(chain.op, -1)[after] < 0)
    served = np.append(np.flatnonzero(chain.op >= 0), end) if len(free) else free
    after[free] = served[np.searchsorted(served, after[free])]
    helpers, after = helpers[after < end], after[after < end]
    cross = chain.step[after] < step[helpers]
    rows, following = helpers[cross], after[cross]
    step[rows], layer[rows] = chain.step[following], chain.layer[following]
    op[rows], belief[rows] = -1, unclaimed


def place_windows(work: DeviceWork, labels: Labels) -> tuple[Labels, list[StepWindow]]:
    """Windows of the numbered steps; kernels between two steps are moved to the step their window holds."""
    starts = work.kernels["start_ns"].to_numpy(np.int64)
    owner = np.where(labels.op >= 0, labels.step, -1)
    count = int(owner.max(initial=-1)) + 1
    first, last = first_rows(owner, count), last_rows(owner, count)
    first, last = first[first >= 0], last[last >= 0]
    if not len(first):
        return labels, []
    # Kernels are in order of start, and so are their rows among all activities.
    first, last = (
        np.searchsorted(work.activity_start_ns, starts[rows], side="left") for rows in (first, last)
    )
    cuts = boundaries(work.activity_start_ns, work.activity_end_ns, last[:-1], first[1:])
    begins = work.activity_start_ns[[int(first[0]), *cuts]]
    until = last_end(work.activity_start_ns, work.activity_end_ns, int(first[-1]), int(last[-1]))
    ends = [*begins[1:].tolist(), until]
    labels = replace(labels, step=_window_of(starts, begins, until))
    _unlabel_strays(labels)
    windows = zip(begins.tolist(), ends, strict=True)
    return labels, [StepWindow(index, begin, end, 0) for index, (begin, end) in enumerate(windows)]


def _window_of(starts: Ints, begins: Ints, until: int) -> Codes:
    """Window that each start lies in; -1 before the first one and from `until` on.

    Args:
        starts: ascending.
        begins: first instant of each window; where windows are out of order, the search decides.
    """
    if (begins[1:] >= begins[:-1]).all():
        counts = np.diff(np.searchsorted(starts, begins), prepend=0, append=len(starts))
        result = np.repeat(narrow(np.arange(-1, len(begins))), counts)
    else:
        result = narrow(np.searchsorted(begins, starts, side="right") - 1)
    result[np.searchsorted(starts, until) :] = -1
    return result


def _unlabel_strays(labels: Labels) -> None:
    """What looks like sampling but runs before the first layer of its window prepares this step: unclaimed.

    The same holds for a head op after the last layer.
    """
    count = int(labels.step.max(initial=-1)) + 1
    layered = np.where((labels.layer >= 0) & (labels.op >= 0), labels.step, -1)
    low, high = first_rows(layered, count), last_rows(layered, count)
    if not (low >= 0).any():
        return
    low[low < 0] = len(labels.step)
    regions = _regions(labels)
    head, tail = ((regions == region)[labels.op] for region in ("head", "tail"))
    rows = np.flatnonzero(head | tail)
    step = np.maximum(labels.step[rows], 0)
    stray = rows[(tail[rows] & (rows < low[step])) | (head[rows] & (rows > high[step]))]
    labels.op[stray] = -1
    labels.bundle[stray] = -1
    labels.executions[stray] = 0
    labels.belief[stray] = np.flatnonzero(labels.beliefs == 0.0)[0]


def _regions(labels: Labels) -> np.ndarray:
    """The region of each op label, by its last bundle; the last entry is that of no op."""
    bundles = len(labels.bundles)
    last = np.full(len(labels.op_labels) + 1, -1, np.int64)
    named = np.flatnonzero((labels.bundle >= 0) & (labels.op >= 0))
    places = labels.op[named].astype(np.int64) * bundles + labels.bundle[named]
    # In order of their bundles: the last one of an op stays.
    seen = np.flatnonzero(np.bincount(places, minlength=1)) if len(places) else places
    last[seen // max(bundles, 1)] = seen % max(bundles, 1)
    texts = np.array([*(bundle[-1][0] for bundle in labels.bundles), ""])
    return texts[last]


def per_step(kernels: pd.DataFrame, labels: Labels, count: int) -> tuple[Ints, Ints]:
    """Kernel time and layers of each step."""
    duration = kernels["duration_ns"].to_numpy(np.int64)
    kernel_ns = np.zeros(count, np.int64)
    inside = labels.step >= 0
    np.add.at(kernel_ns, labels.step[inside].astype(np.int64), duration[inside])
    return kernel_ns, np.maximum(most(labels.step, labels.layer, count) + 1, 0)


def apart(labels: Labels) -> Labels:
    """The same labels in memory of their own.

    They outlive everything else that the join makes. Small arrays among so many freed ones would keep the
    allocator from giving the memory of those back.
    """
    columns = ("step", "layer", "op", "belief", "executions", "bundle")
    sizes = [getattr(labels, name).nbytes for name in columns]
    if not sum(sizes):
        return labels
    block = mmap.mmap(-1, sum(sizes))
    kept: dict[str, Any] = {}
    # Widest first, so that each begins at a multiple of its own size.
    place = 0
    for name in sorted(columns, key=lambda name: -getattr(labels, name).itemsize):
        values = getattr(labels, name)
        kept[name] = np.frombuffer(block, values.dtype, len(values), place)
        kept[name][:] = values
        place += values.nbytes
    return replace(labels, **kept)
