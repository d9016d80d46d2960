"""Findings about the events: launches, clocks, devices, ranges and the profiler's own time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysmodel.export.facts import in_graph, is_graph_launch, is_launch, places
from nsysmodel.intervals import intersect, union
from nsysmodel.result_export import Diagnostic
from nsysmodel.units import count, ns, percent

if TYPE_CHECKING:
    from nsysmodel.export.run import Run

_NORMALISED_NS = 10**17
_OVERHEAD_SHARE = 0.01


def kernels_without_launch(run: Run) -> Diagnostic | None:
    """Kernels without their launching call."""
    kernels = run.kernels()
    without = int((run.launches()["launch_row"] < 0).sum()) if len(kernels) else 0
    if not without:
        return None
    return Diagnostic(
        "kernels_without_launch",
        "warning",
        f"{count(without)} of {count(len(kernels))} kernels have no launching call in the export: why the "
        "device waited before them, and their NVTX ranges, are unknown.",
        "Start the capture before the work does, and export without --tables and --times.",
    )


def launches_without_kernel(run: Run) -> Diagnostic | None:
    """Launching calls without their kernel."""
    if not len(run.kernels()):
        return None
    import numpy as np

    from nsysmodel.export.joins import match
    from nsysmodel.export.reader import distinct

    calls = run.api_calls()
    launching = is_launch(calls) & (calls["return_value"] == 0).to_numpy()
    asked = launching
    if len(distinct(calls["global_pid"].to_numpy())) == 1:
        # Only what is no kernel's call has to be looked up: of two calls with one id the first one is that.
        served = np.zeros(len(calls) + 1, dtype=bool)
        served[run.launches()["launch_row"].to_numpy()] = True
        asked = launching & ~served[:-1]
    missing = int(np.count_nonzero(match(calls[asked], run.kernels()) < 0)) if asked.any() else 0
    if not missing:
        return None
    launched = int(np.count_nonzero(launching))
    captured = bool(is_graph_launch(calls).any()) or len(run.graph_nodes()) > 0
    if captured or missing * 100 < launched:
        return Diagnostic(
            "launches_without_kernel",
            "info",
            f"{count(missing)} of {count(launched)} launch calls have no kernel of their own; "
            "launches that are captured into a graph have none.",
        )
    return Diagnostic(
        "launches_without_kernel",
        "warning",
        f"{count(missing)} of {count(launched)} launch calls have no kernel in the export: "
        "kernels are missing.",
        "Stop the capture only after the device is idle, and export without --tables and --times.",
    )


def kernels_before_launch(run: Run) -> Diagnostic | None:
    """Clocks of host and device that disagree."""
    launches, kernels = run.launches(), run.kernels()
    early = (launches["launch_row"] >= 0) & (kernels["start_ns"] < launches["launch_start_ns"])
    if not early.any():
        return None
    return Diagnostic(
        "kernels_before_launch",
        "warning",
        f"{count(int(early.sum()))} kernels start before the call that launched them: the clocks of host and "
        "device disagree, so causes of gaps are not to be trusted.",
        "Capture again, for a shorter time; a restarted driver often helps.",
    )


def negative_times(run: Run) -> Diagnostic | None:
    """Kernels before the zero of the clock."""
    early = int((run.kernels()["start_ns"] < 0).sum())
    if not early:
        return None
    return Diagnostic(
        "times_negative",
        "info",
        f"{count(early)} kernels start before the session's zero; their times are negative and count like "
        "others.",
    )


def normalised(run: Run) -> Diagnostic | None:
    """Times since 1970."""
    kernels = run.kernels()
    if not len(kernels) or int(kernels["start_ns"].iloc[0]) < _NORMALISED_NS:
        return None
    return Diagnostic("times_normalised", "info", "Times are those of the wall clock, not of the session.")


def several_places(run: Run) -> Diagnostic | None:
    """More than one process or device."""
    facts = run.facts
    if facts.devices < 2:
        return None
    return Diagnostic(
        "several_devices",
        "info",
        f"{facts.processes} processes ran on {facts.devices} devices in all; each is judged on its own.",
        "Use --process and --device to judge one of them.",
    )


def profiler_overhead(run: Run) -> Diagnostic | None:
    """Time that the profiler itself took."""
    overhead, kernels = run.overhead(), run.kernels()
    if not len(overhead) or not len(kernels):
        return None
    window = union([int(kernels["start_ns"].min())], [int(kernels["end_ns"].max())])
    inside = intersect(union(overhead["start_ns"], overhead["end_ns"]), window).length_ns
    share = inside / max(window.length_ns, 1)
    if share < _OVERHEAD_SHARE:
        return None
    return Diagnostic(
        "profiler_overhead",
        "warning",
        f"The profiler itself held threads for {ns(inside)}, {percent(share)} of the time from the first to "
        "the last kernel: some gaps are its own.",
        "Trace less (no backtraces, no sampling: --sample=none --cpuctxsw=none), or judge a quiet part.",
    )


def gpu_unknown(run: Run) -> Diagnostic | None:
    """A device without a GPU, or with one that was guessed."""
    found = places(run.kernels())
    known = [run.gpu_for(process, device) for process, device in found]
    if found and not any(known):
        return Diagnostic(
            "gpu_unknown",
            "warning",
            "The export does not say on which GPU the kernels ran.",
            "Name it with --gpu; nsysmodel hardware list shows the names.",
        )
    models = {(str(n), int(s)) for n, s in zip(run.gpus()["name"], run.gpus()["sm_count"], strict=True)}
    guessed = [gpu for gpu in known if gpu is not None and gpu.mapping in ("cuda_device", "adapter")]
    if guessed and len(models) > 1:
        return Diagnostic(
            "gpu_guessed",
            "warning",
            "The machine has different GPUs, and the export does not map devices to them: the one with the "
            "same number was taken.",
            "Name it with --gpu, or export with nsys 2025.1 or newer.",
        )
    return None


def mig(run: Run) -> Diagnostic | None:
    """A slice of a GPU."""
    if not run.gpus()["mig"].any():
        return None
    return Diagnostic(
        "mig",
        "info",
        "The device is a MIG instance: SMs, memory, L2 and bandwidth are those of the instance, and so are "
        "the floors.",
    )


def open_ranges(run: Run) -> Diagnostic | None:
    """Ranges that never ended."""
    still = int(run.nvtx()["open"].sum())
    if not still:
        return None
    return Diagnostic(
        "nvtx_open",
        "info",
        f"{count(still)} NVTX ranges have no end; they were closed at the end of the session.",
    )


def graphs_by_call(run: Run) -> Diagnostic | None:
    """Graph nodes recognised without their id."""
    kernels = run.kernels()
    nodes = in_graph(run)
    unnamed = int((nodes & (kernels["graph_node_id"] < 0).to_numpy()).sum())
    if not unnamed:
        return None
    return Diagnostic(
        "graph_nodes_without_id",
        "info",
        f"{count(unnamed)} kernels of CUDA graphs have no node id; they were recognised by the launch of "
        "their graph.",
    )
