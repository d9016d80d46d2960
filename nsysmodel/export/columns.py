"""The columns of every frame: one table that the code, the documentation and a test all read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a frame. `unit` is empty for names, ids and counts."""

    name: str
    dtype: str
    unit: str
    meaning: str


def _ints(unit: str, **meanings: str) -> tuple[Column, ...]:
    return tuple(Column(name, "int64", unit, meaning) for name, meaning in meanings.items())


def _names(**meanings: str) -> tuple[Column, ...]:
    return tuple(Column(name, "category", "", meaning) for name, meaning in meanings.items())


_SPAN = _ints(
    "ns",
    start_ns="Start on the clock of the export (zero is the start of the session; may be negative).",
    end_ns="End on the same clock.",
    duration_ns="`end_ns` − `start_ns`.",
)
_PROCESS = _ints(
    "",
    process="OS process id; 0 where the export does not say.",
    global_pid="The whole process key of the export (host, VM and process); 0 where absent.",
)
_PLACE = _ints(
    "",
    device="CUDA ordinal within the process, which is not the number of the GPU; −1 where absent.",
    context="CUDA context; −1 for none.",
    stream="CUDA stream within process and context; −1 for none.",
    correlation_id="Id shared with the API call of the same process that caused it; −1 for none.",
)
_THREAD = _ints(
    "",
    global_tid="The whole thread key of the export; 0 where absent.",
    thread="OS thread id; 0 where the export does not say.",
)
_GRAPH_NODE = _ints("", graph_node_id="Node of a CUDA graph that this is an execution of; −1 for none.")

FRAMES: dict[str, tuple[Column, ...]] = {
    "kernels": (
        *_SPAN,
        *_PROCESS,
        *_PLACE,
        *_names(
            name="Demangled name, else short, else mangled; `<string 7>` where the text is missing.",
            short_name="Name without template arguments and parameters.",
        ),
        *_ints(
            "",
            grid_x="Thread blocks in x.",
            grid_y="Thread blocks in y.",
            grid_z="Thread blocks in z.",
            block_x="Threads of a block in x.",
            block_y="Threads of a block in y.",
            block_z="Threads of a block in z.",
            registers_per_thread="Registers of a thread; −1 where absent.",
        ),
        *_ints(
            "bytes",
            static_shared_bytes="Static shared memory of a block; −1 where absent.",
            dynamic_shared_bytes="Dynamic shared memory of a block; −1 where absent.",
        ),
        *_GRAPH_NODE,
        *_ints(
            "",
            graph_id="CUDA graph; −1 for none.",
            launch_type="1 regular, 2 cooperative, 3 multi-device cooperative, 0 unknown; −1 where absent.",
        ),
    ),
    "copies": (
        *_SPAN,
        *_PROCESS,
        *_PLACE,
        *_ints("bytes", bytes="Bytes copied."),
        *_names(
            kind="`HtoD`, `DtoH`, `DtoD`, `PtoP`, …; unified-memory migrations are `UM HtoD`, `UM DtoH`, ….",
            src_kind="Memory read: `pageable`, `pinned`, `device`, `array`, `managed`, ….",
            dst_kind="Memory written.",
        ),
        *_GRAPH_NODE,
    ),
    "memsets": (
        *_SPAN,
        *_PROCESS,
        *_PLACE,
        *_ints("bytes", bytes="Bytes set."),
        *_ints("", value="Value written."),
        *_names(memory="Kind of memory written."),
        *_GRAPH_NODE,
    ),
    "graph_traces": (
        *_SPAN,
        *_PROCESS,
        *_PLACE,
        *_ints("", graph_id="CUDA graph; −1 for none.", graph_exec_id="Executable graph; −1 for none."),
    ),
    "api_calls": (
        *_SPAN,
        *_PROCESS,
        *_THREAD,
        *_ints("", correlation_id="Id shared with what the call caused on the GPU; −1 for none."),
        *_names(
            name="Function, without the version suffix (`cudaLaunchKernel_v7000` is `cudaLaunchKernel`).",
            api="`runtime` or `driver`.",
        ),
        *_ints("", return_value="CUDA error code; 0 is success, 600 (not ready) is normal for queries."),
    ),
    "syncs": (
        *_SPAN,
        *_PROCESS,
        *_PLACE,
        *_names(kind="`context`, `event`, `stream` (host waits), `stream_wait` (a stream waits)."),
    ),
    "nvtx": (
        *_SPAN,
        *_PROCESS,
        *_THREAD,
        *_names(
            text="Text of the range or mark.",
            domain="Name of the NVTX domain; empty for the default domain.",
            kind="`push_pop`, `start_end` or `mark`.",
        ),
        Column("open", "bool", "", "The range had no end; it was closed at the end of the session."),
    ),
    "gpus": (
        *_ints("", id="Number of the adapter in the export, which is not the CUDA ordinal."),
        *_names(name="Device name.", chip="Chip name (`GH100`); empty where absent."),
        *_names(compute_capability="CUDA compute capability (`9.0`); empty where absent."),
        *_ints("", sm_count="Streaming multiprocessors; for MIG, those of the instance; 0 where unknown."),
        *_ints("Hz", clock_hz="Maximum SM clock; 0 where unknown."),
        *_ints("bytes/s", bandwidth_bytes_per_s="Pin rate of the DRAM, which no kernel reaches; 0 unknown."),
        *_ints("bytes", memory_bytes="Device memory.", l2_bytes="L2 cache; 0 where unknown."),
        *_ints("", cuda_device="CUDA ordinal on the unmasked host; −1 where absent."),
        Column("mig", "bool", "", "A MIG instance: every number is that of the instance."),
        *_ints("", max_warps_per_sm="Resident warps of an SM.", registers_per_sm="Registers of an SM."),
        *_ints("bytes", shared_bytes_per_sm="Shared memory of an SM; 0 where unknown."),
    ),
    "overhead": (
        *_ints("ns", start_ns="Start of the profiler's own work.", end_ns="End of it."),
        *_names(name="What the profiler did."),
        *_ints("", global_tid="The whole thread key; 0 where absent."),
    ),
    "log_events": (
        *_ints("ns", timestamp_ns="Time of the message."),
        *_names(
            severity="`info`, `warning`, `error`, `verbose` or `unknown`.",
            source="`injection`, `daemon`, `analysis` or `unknown`.",
        ),
        *_PROCESS,
        *_names(text="Message of the profiler, with paths cut out."),
    ),
    "gpu_metrics": (
        *_ints("ns", timestamp_ns="Time of the sample."),
        *_ints("", gpu="Number of the adapter in the export (low byte of the metric's type)."),
        *_names(metric="Name of the metric, which carries its unit."),
        Column("value", "float64", "as in `metric`", "Sampled value."),
    ),
    "graph_nodes": (
        *_ints(
            "",
            graph_node_id="Node of a CUDA graph.",
            original_graph_node_id="Node that it was cloned from; −1 for a node made by capture.",
        ),
        *_ints("ns", start_ns="Time at which the node was made."),
        *_ints(
            "",
            global_tid="Thread that made it; 0 where absent.",
            global_pid="Process that made it; 0 where absent.",
        ),
    ),
    "launches": (
        *_ints("", launch_row="Row of the launching call in `api_calls`; −1 for none."),
        *_ints("ns", launch_start_ns="Start of the launching call; −1 for none.", launch_end_ns="Its end."),
        *_ints("", launch_thread="Thread key of the launching call; 0 for none."),
        *_names(launch_name="Function that launched; missing where the export has no call."),
    ),
}
"""Columns by frame, in order."""


def empty(frame: str) -> pd.DataFrame:
    """A frame of this kind with no rows and the documented columns and dtypes."""
    import pandas as pd

    return pd.DataFrame({c.name: pd.Series([], dtype=_dtype(c)) for c in FRAMES[frame]})


def _dtype(column: Column) -> Any:
    import pandas as pd

    return column.dtype if column.dtype != "category" else pd.CategoricalDtype(pd.Index([], dtype=object))


def conform(frame: str, data: Mapping[str, Any]) -> pd.DataFrame:
    """A frame of this kind from its columns, in the documented order; raises where one is missing."""
    import pandas as pd

    result = pd.DataFrame({c.name: data[c.name] for c in FRAMES[frame]}, copy=False)
    for c in FRAMES[frame]:
        if str(result[c.name].dtype) != c.dtype:
            result[c.name] = result[c.name].astype(_dtype(c))
    return result


def markdown() -> str:
    """The table of all columns, as the documentation prints it."""
    lines: list[str] = []
    for frame, columns in FRAMES.items():
        lines += [f"## {frame}", "", "| column | dtype | unit | meaning |", "|---|---|---|---|"]
        lines += [f"| `{c.name}` | {c.dtype} | {c.unit} | {c.meaning} |" for c in columns]
        lines.append("")
    return "\n".join(lines)
