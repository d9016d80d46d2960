"""What an export holds in numbers, and whether it is whole."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from nsysmodel.export.reader import is_one
from nsysmodel.result_export import Completeness, ExportFacts, GraphMode

if TYPE_CHECKING:
    import pandas as pd

    from nsysmodel.export.reader import Mask
    from nsysmodel.export.run import Run

GPU_TABLES = ("KERNEL", "MEMCPY", "MEMSET")
_COLLECTED = re.compile(r"Number of CUDA events collected:\s*([\d,]+)", re.IGNORECASE)
_LOST = re.compile(
    r"not all cuda events might have been collected|cupti events might be missing"
    r"|cuda (?:trace )?events? (?:were|was|have been) (?:lost|dropped)",
    re.IGNORECASE,
)
_LAUNCH = re.compile(r"^(?:cuda|cu)(?:Launch(?:Cooperative|Grid|Kernel|$)|LaunchGridAsync)")
_GRAPH_LAUNCH = re.compile(r"^(?:cuda|cu)GraphLaunch")


def facts(run: Run) -> ExportFacts:
    """The facts of an export."""
    kernels, copies, memsets, traces = run.kernels(), run.copies(), run.memsets(), run.graph_traces()
    active = [frame for frame in (kernels, copies, memsets, traces) if len(frame)]
    used = {place for frame in active for place in places(frame)}
    calls = run.api_calls()
    processes = {process for process, _ in used} or set(calls["global_pid"].unique().tolist())
    nvtx = run.nvtx()
    return ExportFacts(
        file=run.path_name,
        schema_version=run.schema_version,
        product_version=run.product_version,
        kernels=len(kernels),
        graph_mode=graph_mode(run),
        completeness=completeness(run),
        kernel_time_ns=int(kernels["duration_ns"].sum()),
        copies=len(copies),
        memsets=len(memsets),
        api_calls=len(calls),
        graph_traces=len(traces),
        nvtx_ranges=int((nvtx["kind"] != "mark").sum()),
        span_ns=_span(active),
        synthetic=run.synthetic,
        processes=len(processes),
        devices=len(used),
    )


def places(frame: pd.DataFrame) -> dict[tuple[int, int], None]:
    """Process key and device of the rows, each pair once, in the order of the rows."""
    columns = [frame[name].to_numpy() for name in ("global_pid", "device")]
    if all(map(is_one, columns)):
        pairs = [column[:1] for column in columns]
    else:
        first = frame[["global_pid", "device"]].drop_duplicates()
        pairs = [first["global_pid"].to_numpy(), first["device"].to_numpy()]
    return {(int(p), int(d)): None for p, d in zip(*pairs, strict=True)}


def _span(frames: list[pd.DataFrame]) -> int:
    """From the first start to the last end of everything on the device."""
    if not frames:
        return 0
    return max(int(f["end_ns"].max()) for f in frames) - min(int(f["start_ns"].min()) for f in frames)


def graph_mode(run: Run) -> GraphMode:
    """How CUDA graphs were traced: node by node, as a whole, both, or there were none."""
    whole, nodes = len(run.graph_traces()) > 0, bool(in_graph(run).any())
    if whole and nodes:
        return "mixed"
    return "graph" if whole else "node" if nodes else "none"


def in_graph(run: Run) -> Mask:
    """Which kernels are nodes of a CUDA graph.

    Some exports leave the node id empty; then the nodes show by the name of the call that launched them,
    or, without any call, by many kernels with one correlation id, which only a graph launch gives.
    """
    kernels = run.kernels()
    node: Any = (kernels["graph_node_id"] >= 0).to_numpy()
    if len(run.api_calls()):
        names = run.launches()["launch_name"]
        graph = [text for text in names.cat.categories if _GRAPH_LAUNCH.search(str(text))]
        node = node | names.isin(graph).to_numpy()
    elif not node.any():
        shared = kernels.duplicated(["global_pid", "correlation_id"], keep=False)
        node = node | (shared & (kernels["correlation_id"] > 0)).to_numpy()
    found: Mask = node
    return found


def is_launch(calls: pd.DataFrame) -> Mask:
    """Which API calls launch a kernel."""
    return _named(calls, _LAUNCH)


def is_graph_launch(calls: pd.DataFrame) -> Mask:
    """Which API calls launch a graph."""
    return _named(calls, _GRAPH_LAUNCH)


def _named(calls: pd.DataFrame, pattern: re.Pattern[str]) -> Mask:
    texts = [text for text in calls["name"].cat.categories if pattern.search(str(text))]
    found: Mask = calls["name"].isin(texts).to_numpy()
    return found


def collected(run: Run) -> int | None:
    """CUDA events that the profiler says it collected, over all processes; None where it does not say."""
    numbers = [
        int(found[1].replace(",", "")) * count
        for text, count in run.log_messages().items()
        if (found := _COLLECTED.search(text))
    ]
    return sum(numbers) if numbers else None


def stored(run: Run) -> int:
    """Rows of the four tables that the profiler counts as CUDA events."""
    return sum(run.count(f"CUPTI_ACTIVITY_KIND_{table}") for table in ("RUNTIME", *GPU_TABLES))


def lost(run: Run) -> list[str]:
    """Messages of the profiler that say CUDA events were lost."""
    return [text for text in run.log_messages() if _LOST.search(text)]


def completeness(run: Run) -> Completeness:
    """Whether the export holds all that ran.

    The profiler counts the CUDA events that it collected; an export with fewer rows was filtered or
    trimmed. A whole export can still come from a capture that lost events.
    """
    kernels, traces, calls = run.kernels(), run.graph_traces(), run.api_calls()
    moved = len(run.copies()) + len(run.memsets())
    run.log_messages()
    if run.damaged:
        return "unknown"
    if not len(kernels) and not len(traces):
        launched = is_launch(calls) | is_graph_launch(calls)
        if launched.any() or not moved:
            return "no_gpu_activity"
    said = collected(run)
    if said is not None and stored(run) < said:
        return "trimmed"
    if lost(run):
        return "lost_events"
    return "unknown" if said is None or stored(run) != said else "complete"
