"""One case as tracks: steps, layers, ops, streams, idle. Rows that an outside viewer of traces can show."""

from __future__ import annotations

import numpy as np
import pandas as pd

from nsysmodel.account.build import build_activity
from nsysmodel.account.gaps import find_gaps
from nsysmodel.account.types import KERNEL, Window
from nsysmodel.join.types import Ints, Join
from nsysmodel.judge.cases import Case

COLUMNS = ("track", "name", "start_ns", "end_ns", "op", "layer", "step", "detail")


def tracks_of(case: Case, join: Join, *, judged: bool) -> pd.DataFrame:
    """The rows of a case, in the order of tracks.

    Columns: `track` (`steps`, `layers`, `ops`, `stream N`, `idle`), `name`, `start_ns`, `end_ns`, `op` (text,
    empty for none), `layer`, `step` (-1 for none), `detail` (whether a step was used, and why not).
    Where nothing may be judged there are no layers and no ops.
    """
    parts = [_steps(join)]
    if judged:
        parts += [_layers(case, join), _ops(case, join)]
    parts += [_activity(case, join, judged=judged), _idle(case, join)]
    return pd.concat([part for part in parts if len(part)], ignore_index=True)


def _frame(track: object, name: object, start: object, end: object, **more: object) -> pd.DataFrame:
    values = {"track": track, "name": name, "start_ns": start, "end_ns": end}
    values |= {"op": "", "layer": -1, "step": -1, "detail": ""} | more
    frame = pd.DataFrame(values, columns=list(COLUMNS))
    for column in ("start_ns", "end_ns", "layer", "step"):
        frame[column] = frame[column].astype("int64")
    return frame


def _steps(join: Join) -> pd.DataFrame:
    if join.method == "none":
        return _frame([], [], [], [])
    steps = join.steps
    return _frame(
        "steps",
        [f"step {step.index}" + (f" ({step.phase})" if step.phase else "") for step in steps],
        [step.start_ns for step in steps],
        [step.end_ns for step in steps],
        step=[step.index for step in steps],
        detail=[f"dropped: {step.dropped}" if step.dropped else "used" for step in steps],
    )


def _layers(case: Case, join: Join) -> pd.DataFrame:
    """From the first start to the last end of the kernels of each layer."""
    labels = join.labels
    rows = np.flatnonzero((labels.layer >= 0) & (labels.step >= 0))
    if not len(rows):
        return _frame([], [], [], [])
    step, layer = labels.step[rows].astype(np.int64), labels.layer[rows].astype(np.int64)
    first, last, group = _spans(case, rows, step * (int(layer.max()) + 1) + layer)
    return _frame(
        "layers",
        [f"layer {number}" for number in layer[group].tolist()],
        first,
        last,
        layer=layer[group],
        step=step[group],
    )


def _ops(case: Case, join: Join) -> pd.DataFrame:
    """Each execution of an op: the kernel that opens it and the further ones that serve it."""
    labels = join.labels
    rows = np.flatnonzero(labels.op >= 0)
    if not len(rows):
        return _frame([], [], [], [])
    rows = rows[np.argsort(labels.op[rows], kind="stable")]
    op = labels.op[rows]
    opens = labels.executions[rows] > 0
    for key in (op, labels.step[rows], labels.layer[rows]):
        opens |= np.append(True, key[1:] != key[:-1])
    first, last, group = _spans(case, rows, np.cumsum(opens))
    texts = np.array(labels.op_labels, dtype=object)[op[group]]
    own = rows[group]
    return _frame(
        "ops", texts, first, last, op=texts, layer=labels.layer[own], step=labels.step[own]
    ).sort_values(["start_ns", "end_ns"], kind="stable", ignore_index=True)


def _spans(case: Case, rows: Ints, key: Ints) -> tuple[Ints, Ints, Ints]:
    """First start, last end and the place of the first row of each group of `key`, ordered by start."""
    start = case.kernels["start_ns"].to_numpy(np.int64)[rows]
    end = case.kernels["end_ns"].to_numpy(np.int64)[rows]
    _, place, group = np.unique(key, return_index=True, return_inverse=True)
    first = np.full(len(place), np.iinfo(np.int64).max)
    last = np.zeros(len(place), np.int64)
    np.minimum.at(first, group, start)
    np.maximum.at(last, group, end)
    order = np.lexsort((last, first))
    return first[order], last[order], place[order].astype(np.int64)


def _activity(case: Case, join: Join, *, judged: bool) -> pd.DataFrame:
    """Everything that the device ran, a track per stream; kernels carry step, layer and op."""
    labels, count = join.labels, len(case.kernels)
    # The row of each kernel takes the place of its op, so that its labels are found again.
    activity, names = build_activity(
        case.kernels, case.copies, case.memsets, case.graph_traces, case.api_calls, np.arange(count)
    )
    activity = activity.take(np.lexsort((activity.end_ns, activity.start_ns, activity.stream)))
    kernels = np.flatnonzero(activity.kind == KERNEL)
    rows = activity.op[kernels]
    texts = np.array([*labels.op_labels, ""], dtype=object)
    op = np.full(len(activity), "", dtype=object)
    layer, step = np.full((2, len(activity)), -1, np.int64)
    if judged:
        op[kernels], layer[kernels], step[kernels] = (
            texts[labels.op[rows]],
            labels.layer[rows],
            labels.step[rows],
        )
    return _frame(
        [f"stream {stream}" for stream in activity.stream.tolist()],
        np.array(names, dtype=object)[activity.name] if names else [],
        activity.start_ns,
        activity.end_ns,
        op=op,
        layer=layer,
        step=step,
    )


def _idle(case: Case, join: Join) -> pd.DataFrame:
    """Gaps of all steps, dropped ones included, by cause."""
    activity, names = build_activity(
        case.kernels, case.copies, case.memsets, case.graph_traces, case.api_calls, join.labels.op
    )
    if not len(activity):
        return _frame([], [], [], [])
    windows = [Window(step.index, step.start_ns, step.end_ns) for step in join.steps]
    if not windows:
        windows = [Window(0, int(activity.start_ns.min()), int(activity.end_ns.max()))]
    labels = join.labels.op_labels
    gaps = find_gaps(activity, windows, labels, case.api_calls, case.syncs, case.overhead, names).frame
    numbers = np.array([window.index for window in windows], np.int64)
    return _frame(
        "idle",
        gaps["cause"].astype(str).to_numpy(),
        gaps["start_ns"].to_numpy(),
        gaps["end_ns"].to_numpy(),
        step=numbers[gaps["window"].to_numpy(np.int64)],
    )
