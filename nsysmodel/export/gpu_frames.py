"""Frames of what ran on the device: kernels, copies, memsets, graphs traced as a whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from nsysmodel.export.columns import conform, empty
from nsysmodel.export.reader import (
    PROCESS_MASK,
    Reader,
    Wanted,
    by_start,
    coded,
    distinct,
    each,
    ints,
    or_default,
    process_of,
)
from nsysmodel.export.source import NULL, Rows

if TYPE_CHECKING:
    import pandas as pd

    from nsysmodel.export.reader import Ints

KERNEL = "CUPTI_ACTIVITY_KIND_KERNEL"
MEMCPY = "CUPTI_ACTIVITY_KIND_MEMCPY"
MEMSET = "CUPTI_ACTIVITY_KIND_MEMSET"
GRAPH_TRACE = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
RUNTIME = "CUPTI_ACTIVITY_KIND_RUNTIME"

NO_STREAM = 2**32 - 1
NO_DEVICE = 2**31 - 1
NO_PROCESS = -144115188075855872

COPY_KINDS = {
    0: "unknown",
    1: "HtoD",
    2: "DtoH",
    3: "HtoA",
    4: "AtoH",
    5: "AtoA",
    6: "AtoD",
    7: "DtoA",
    8: "DtoD",
    9: "HtoH",
    10: "PtoP",
    11: "UM HtoD",
    12: "UM DtoH",
    13: "UM DtoD",
}
MEMORY_KINDS = {
    0: "pageable",
    1: "pinned",
    2: "device",
    3: "array",
    4: "managed",
    5: "device static",
    6: "managed static",
    7: "unknown",
}
_MIGRATIONS = (11, 13)

_COMMON = ints(always=("start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid"))
_NAMES = ints(always=("demangledName", "shortName"))
_MANGLED = ints("mangledName")
_SHAPE = {
    "grid_x": "gridX",
    "grid_y": "gridY",
    "grid_z": "gridZ",
    "block_x": "blockX",
    "block_y": "blockY",
    "block_z": "blockZ",
}
_RESOURCES = {
    "registers_per_thread": "registersPerThread",
    "static_shared_bytes": "staticSharedMemory",
    "dynamic_shared_bytes": "dynamicSharedMemory",
}


_KERNEL = (
    *_COMMON,
    *_NAMES,
    *ints("graphNodeId", "graphId", "launchType", always=(*_SHAPE.values(), *_RESOURCES.values())),
)
_FEW = {
    "duration_ns": (),
    "name": ("demangledName",),
    "short_name": ("shortName",),
    "process": ("globalPid",),
    "device": ("deviceId",),
    "stream": ("streamId",),
    **{name: (column,) for name, column in _SHAPE.items()},
}
"""What some columns of the kernel frame are made of, beside start and end."""


def few_columns(names: Iterable[str]) -> bool:
    """Whether `some_kernels` can make a frame of these columns."""
    return set(names) <= _FEW.keys()


def some_kernels(reader: Reader, names: Iterable[str]) -> pd.DataFrame:
    """Some columns of the kernel frame, of which the table is read for these alone.

    Rows are in the order of the export. Start and end are always among the columns.
    """
    import pandas as pd

    chosen = tuple(dict.fromkeys(names))
    needed = {"start", "end", *(column for name in chosen for column in _FEW[name])}
    rows = _activities(reader, KERNEL, tuple(w for w in _KERNEL if w.name in needed), "kernels")
    if rows is None:
        return empty("kernels")[["start_ns", "end_ns", *chosen]]
    if any((rows[column] == NULL).any() for column in needed if column.endswith("Name")):
        # Kernels without this name have another one.
        return kernels(reader)
    make: dict[str, Callable[[Rows], Any]] = {
        "duration_ns": lambda rows: rows["end"] - rows["start"],
        "name": lambda rows: _called(reader, rows["demangledName"]),
        "short_name": lambda rows: _called(reader, rows["shortName"]),
        "process": lambda rows: process_of(known_processes(reader, rows["globalPid"])),
        "device": lambda rows: or_default(rows["deviceId"], none=(NO_DEVICE,)),
        "stream": lambda rows: or_default(rows["streamId"], none=(NO_STREAM,)),
    }
    data = {"start_ns": rows["start"], "end_ns": rows["end"]}
    for name in chosen:
        data[name] = make[name](rows) if name in make else or_default(rows[_SHAPE[name]], 1)
    return pd.DataFrame(data, copy=False)


def _best(rows: Rows) -> Ints:
    mangled = [rows["mangledName"]] if "mangledName" in rows else []
    return _first_known(rows["demangledName"], rows["shortName"], *mangled)


def _nameless(rows: Rows) -> bool:
    """Whether a kernel has neither of the usual names."""
    return bool(((rows["demangledName"] == NULL) & (rows["shortName"] == NULL)).any())


def _called(reader: Reader, ids: Ints) -> pd.Categorical:
    return reader.names(ids, missing="<kernel without a name>")


def kernels(reader: Reader) -> pd.DataFrame:
    """One row per execution of a kernel."""
    rows = _activities(reader, KERNEL, _KERNEL, "kernels")
    if rows is not None and _nameless(rows):
        # Rarely needed, and as long to read as any other column.
        rows = _activities(reader, KERNEL, (*_KERNEL, *_MANGLED), "kernels")
    if rows is None:
        return empty("kernels")
    best = _best(rows)
    data = _placed(reader, rows)
    data["name"] = _called(reader, best)
    data["short_name"] = _called(reader, _first_known(rows["shortName"], best))
    data |= {name: or_default(rows[column], 1) for name, column in _SHAPE.items()}
    data |= {name: or_default(rows[column]) for name, column in _RESOURCES.items()}
    data["graph_node_id"] = or_default(rows["graphNodeId"], none=(0,))
    data["graph_id"] = or_default(rows["graphId"], none=(0,))
    data["launch_type"] = or_default(rows["launchType"])
    return by_start(conform("kernels", data))


def _first_known(*columns: Ints) -> Ints:
    """The first column's value where it has one, else the next one's."""
    import numpy as np

    found, *others = columns
    for other in others:
        unknown = found == NULL
        if not unknown.any():
            break
        found = np.where(unknown, other, found)
    return found


def copies(reader: Reader) -> pd.DataFrame:
    """One row per copy, migrations of unified memory included."""
    import numpy as np

    wanted = (*_COMMON, *ints("srcKind", "dstKind", "graphNodeId", always=("bytes", "copyKind")))
    rows = _activities(reader, MEMCPY, wanted, "copies")
    if rows is None:
        return empty("copies")
    data = _placed(reader, rows)
    kind = or_default(rows["copyKind"], 0)
    migration = (kind >= _MIGRATIONS[0]) & (kind <= _MIGRATIONS[1])
    for name in ("stream", "context", "correlation_id"):
        # A migration carries zeros that would look like a stream and a call.
        data[name] = np.where(migration, -1, data[name])
    data["bytes"] = or_default(rows["bytes"], 0)
    data["kind"] = coded(kind, COPY_KINDS, "copy kind")
    data["src_kind"] = coded(or_default(rows["srcKind"], 7), MEMORY_KINDS, "memory kind")
    data["dst_kind"] = coded(or_default(rows["dstKind"], 7), MEMORY_KINDS, "memory kind")
    data["graph_node_id"] = or_default(rows["graphNodeId"], none=(0,))
    return by_start(conform("copies", data))


def memsets(reader: Reader) -> pd.DataFrame:
    """One row per memset."""
    wanted = (*_COMMON, *ints("graphNodeId", "memKind", always=("bytes", "value")))
    rows = _activities(reader, MEMSET, wanted, "memsets")
    if rows is None:
        return empty("memsets")
    data = _placed(reader, rows)
    data["bytes"] = or_default(rows["bytes"], 0)
    data["value"] = or_default(rows["value"], 0)
    data["memory"] = coded(or_default(rows["memKind"], 7), MEMORY_KINDS, "memory kind")
    data["graph_node_id"] = or_default(rows["graphNodeId"], none=(0,))
    return by_start(conform("memsets", data))


def graph_traces(reader: Reader) -> pd.DataFrame:
    """One row per execution of a CUDA graph that was traced as a whole."""
    wanted = (*_COMMON, *ints(always=("graphId", "graphExecId")))
    rows = _activities(reader, GRAPH_TRACE, wanted, "graph executions")
    if rows is None:
        return empty("graph_traces")
    data = _placed(reader, rows)
    data["graph_id"] = or_default(rows["graphId"])
    data["graph_exec_id"] = or_default(rows["graphExecId"])
    return by_start(conform("graph_traces", data))


def _activities(reader: Reader, table: str, wanted: tuple[Wanted, ...], what: str) -> Rows | None:
    """Rows of an activity table with possible times; None where there are none."""
    rows, length = reader.rows(table, wanted)
    if not length:
        return None
    kept = reader.sound(rows, what)
    if not kept.all():
        rows = {name: values[kept] for name, values in rows.items()}
    return rows if kept.any() else None


def _placed(reader: Reader, rows: Rows) -> dict[str, Any]:
    """Times, process and place, the same in every activity table."""
    global_pid = known_processes(reader, rows["globalPid"])
    return {
        "start_ns": rows["start"],
        "end_ns": rows["end"],
        "duration_ns": rows["end"] - rows["start"],
        "process": process_of(global_pid),
        "global_pid": global_pid,
        "device": or_default(rows["deviceId"], none=(NO_DEVICE,)),
        "context": or_default(rows["contextId"], none=(NO_DEVICE,)),
        "stream": or_default(rows["streamId"], none=(NO_STREAM,)),
        "correlation_id": or_default(rows["correlationId"], none=(0,)),
    }


def known_processes(reader: Reader, global_pid: Ints) -> Ints:
    """Process keys with missing ones filled in where only one process can be meant, else 0."""
    import numpy as np

    missing = (global_pid == NULL) | (global_pid == NO_PROCESS)
    if not missing.any():
        return each(global_pid, lambda pids: pids & PROCESS_MASK)
    known = distinct(global_pid[~missing]) & PROCESS_MASK
    if not len(known):
        calls, _ = reader.rows(RUNTIME, ints("globalTid"))
        known = distinct(calls["globalTid"][calls["globalTid"] != NULL] & PROCESS_MASK)
    if len(known) > 1:
        reader.note(
            "process_unknown",
            "warning",
            f"{int(missing.sum())} activities have no process, and several processes ran.",
            "They cannot be joined with API calls; export again with a stock nsys export.",
        )
        return np.where(missing, 0, global_pid & PROCESS_MASK)
    reader.note(
        "process_inferred",
        "info",
        "Activities without a process were taken for those of the only process in the export.",
    )
    only = known[0] if len(known) else 0
    return np.where(missing, only, global_pid & PROCESS_MASK)
