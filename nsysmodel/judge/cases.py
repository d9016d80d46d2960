"""One case per process and device: the rows of the export that belong to it, cut to the selection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from nsysmodel.account.build import build_activity
from nsysmodel.account.types import Activity
from nsysmodel.errors import ExportError
from nsysmodel.export.joins import launches, ranges_of
from nsysmodel.export.reader import is_one
from nsysmodel.join.join import DeviceWork
from nsysmodel.join.markers import Marker, find_markers
from nsysmodel.join.types import Bools, Ints
from nsysmodel.judge.clock import samples_of
from nsysmodel.request import Selection

if TYPE_CHECKING:
    from nsysmodel.export.device_frames import GpuFacts
    from nsysmodel.export.run import Run


@dataclass(frozen=True, slots=True)
class Case:
    """What one process ran on one device.

    Attributes:
        process, device: OS pid and CUDA ordinal.
        gpu: what the export says of the GPU; None where it does not.
        work: what the join reads.
        activity: everything that the device ran, for the account; kernels without op labels yet.
        names: the names that `activity.name` indexes.
        copies, memsets, graph_traces, api_calls, syncs, overhead: frames of this case.
        clock: samples of the SM clock; None where none are known to be of this GPU.
    """

    process: int
    device: int
    gpu: GpuFacts | None
    work: DeviceWork
    activity: Activity
    names: tuple[str, ...]
    copies: pd.DataFrame
    memsets: pd.DataFrame
    graph_traces: pd.DataFrame
    api_calls: pd.DataFrame
    syncs: pd.DataFrame
    overhead: pd.DataFrame
    clock: pd.DataFrame | None = None

    @property
    def kernels(self) -> pd.DataFrame:
        """Kernel rows by start."""
        return self.work.kernels


def find_cases(run: Run, selection: Selection) -> list[Case]:
    """The cases of an export, the one with most kernel time first.

    Raises:
        ExportError: nothing in the export matches the selection.
    """
    kernels = _selected(run, run.kernels(), selection)
    places = [kernels[name].to_numpy() for name in _PLACE]
    if len(kernels) and all(map(is_one, places)):
        pairs = [(int(places[0][0]), int(places[1][0]), int(places[2][0]))]
    elif len(kernels):
        keys = kernels.groupby(_PLACE)["duration_ns"].sum().sort_values(ascending=False)
        pairs = [(int(g), int(p), int(d)) for g, p, d in keys.index]
    else:
        traces = run.graph_traces()
        pairs = sorted({(int(g), int(p), int(d)) for g, p, d in _keys(traces)})
    if selection.process is not None:
        pairs = [pair for pair in pairs if pair[1] == selection.process]
    if selection.device is not None:
        pairs = [pair for pair in pairs if pair[2] == selection.device]
    if not pairs and not _nothing_selected(selection):
        raise ExportError(
            "No kernel of the export matches the selection.",
            "`nsysmodel inspect` lists processes, devices and the time span.",
        )
    return [_case(run, kernels, *pair) for pair in pairs]


_PLACE = ["global_pid", "process", "device"]


def _nothing_selected(selection: Selection) -> bool:
    return selection == Selection()


def _keys(frame: pd.DataFrame) -> list[tuple[int, int, int]]:
    return list(zip(frame["global_pid"], frame["process"], frame["device"], strict=True))


def _selected(run: Run, kernels: pd.DataFrame, selection: Selection) -> pd.DataFrame:
    """Kernels inside the selected time range and NVTX ranges."""
    if selection.nvtx is not None and len(kernels):
        inside = np.asarray(ranges_of(run, kernels, selection.nvtx)) >= 0
        kernels = kernels[inside]
    return _in_range(kernels, selection)


def _in_range(frame: pd.DataFrame, selection: Selection) -> pd.DataFrame:
    if selection.time_range is None or not len(frame):
        return frame
    start, end = selection.time_range
    return frame[(frame["start_ns"] >= start) & (frame["end_ns"] <= end)]


def _case(run: Run, kernels: pd.DataFrame, global_pid: int, process: int, device: int) -> Case:
    own = _own(kernels, global_pid, device, None)
    whole = len(own) == len(run.kernels()) and global_pid == _only(run.kernels(), "global_pid")
    span = None if whole or not len(own) else (int(own["start_ns"].min()), int(own["end_ns"].max()))
    copies = _own(run.copies(), global_pid, device, span)
    memsets = _own(run.memsets(), global_pid, device, span)
    traces = _own(run.graph_traces(), global_pid, device, span)
    calls = _of_process(run.api_calls(), global_pid)
    syncs = _of_process(run.syncs(), global_pid)
    overhead = _of_thread(run.overhead(), global_pid)
    # What was joined for the whole export need not be joined again for its only process and device.
    launched = run.launches() if own is run.kernels() else launches(run, own)
    known = launched["launch_row"].to_numpy(np.int64) if calls is run.api_calls() else None
    activity, names = build_activity(own, copies, memsets, traces, calls, calls=known)
    started = launched["launch_start_ns"].to_numpy(np.int64)
    work = DeviceWork(
        kernels=own,
        activity_start_ns=activity.start_ns,
        activity_end_ns=activity.end_ns,
        launch_start_ns=started,
        graph_launch=_graph_launch(own, activity),
        markers=_markers(run, global_pid),
    )
    gpu = run.gpu_for(global_pid or process, device)
    return Case(
        process, device, gpu, work, activity, names,
        copies, memsets, traces, calls, syncs, overhead, samples_of(run, gpu),
    )  # fmt: skip


def _only(frame: pd.DataFrame, column: str) -> int | None:
    if not len(frame):
        return None
    values = frame[column].unique()
    return int(values[0]) if len(values) == 1 else None


def _own(frame: pd.DataFrame, global_pid: int, device: int, span: tuple[int, int] | None) -> pd.DataFrame:
    """Rows of a process and device; unified-memory migrations belong to no stream and stay out."""
    if not len(frame):
        return frame
    mask = (frame["global_pid"] == global_pid) & (frame["device"] == device)
    if span is not None:
        mask &= (frame["end_ns"] > span[0]) & (frame["start_ns"] < span[1])
    kept = _kept(frame, mask.to_numpy())
    return kept if kept.index.equals(pd.RangeIndex(len(kept))) else kept.reset_index(drop=True)


def _kept(frame: pd.DataFrame, mask: Bools) -> pd.DataFrame:
    """Rows of a frame; the frame itself where they are all of it."""
    return frame if mask.all() else frame[mask]


def _of_process(frame: pd.DataFrame, global_pid: int) -> pd.DataFrame:
    return _kept(frame, (frame["global_pid"] == global_pid).to_numpy())


def _of_thread(frame: pd.DataFrame, global_pid: int) -> pd.DataFrame:
    if not len(frame) or not global_pid:
        return frame
    return _kept(frame, (frame["global_tid"].to_numpy(np.int64) & ~0xFFFFFF) == global_pid)


def _graph_launch(kernels: pd.DataFrame, activity: Activity) -> Ints:
    """Correlation id of the graph launch that a kernel belongs to; -1 for kernels launched one by one."""
    if not len(kernels):
        return np.zeros(0, np.int64)
    from nsysmodel.account.types import KERNEL

    rows = activity.kind == KERNEL
    inside = pd.unique(activity.correlation_id[rows & activity.in_graph])
    if not len(inside):
        return np.broadcast_to(np.int64(-1), len(kernels))
    correlation = kernels["correlation_id"].to_numpy(np.int64)
    return np.where(np.isin(correlation, inside), correlation, -1)


def _markers(run: Run, global_pid: int) -> list[Marker]:
    ranges = run.nvtx()
    if not len(ranges):
        return []
    return find_markers(ranges[ranges["global_pid"] == global_pid] if global_pid else ranges)
