"""Frames of what ran on the host: API calls, waits, graph nodes, profiler overhead and messages."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any

from nsysmodel.export.columns import conform, empty
from nsysmodel.export.gpu_frames import NO_DEVICE, NO_STREAM, RUNTIME, known_processes
from nsysmodel.export.reader import (
    PROCESS_MASK,
    Reader,
    Wanted,
    by_start,
    categories,
    coded,
    distinct,
    each,
    ints,
    is_one,
    or_default,
    process_of,
    text_categories,
)
from nsysmodel.export.source import NULL, Rows

if TYPE_CHECKING:
    import pandas as pd

    from nsysmodel.export.reader import Ints, Mask

SYNC = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"
OVERHEAD = "PROFILER_OVERHEAD"
GRAPH_NODES = ("CUDA_GRAPH_NODE_EVENTS", "CUDA_GRAPH_EVENTS")

_CALL_COLUMNS = ("start", "end", "eventClass", "globalTid", "correlationId", "nameId", "returnValue")
_RUNTIME_CLASS, _DRIVER_CLASS, _BACKTRACE_CLASS = 0, 1, 67
_SUFFIX = re.compile(r"_v\d{3,}$")
_PATH = re.compile(r"(?:[A-Za-z]:\\|~?/)[^\s,;'\"()<>]+")
_SEVERITIES = {0: "unknown", 1: "info", 2: "warning", 3: "error", 4: "verbose"}
_SOURCES = {0: "unknown", 1: "injection", 2: "daemon", 3: "analysis"}


def api_calls(reader: Reader) -> pd.DataFrame:
    """One row per API call of the CUDA runtime and driver."""
    rows, length = reader.rows(RUNTIME, ints(always=_CALL_COLUMNS))
    if not length:
        return empty("api_calls")
    rows = _kept(rows, reader.sound(rows, "API calls") & _is_call(rows["eventClass"]))
    rows["correlationId"] = or_default(rows["correlationId"], none=(0,))
    rows = _kept(rows, _one_per_key(reader, rows))
    return by_start(conform("api_calls", _calls(reader, rows)))


def _calls(reader: Reader, rows: Rows) -> dict[str, Any]:
    import numpy as np

    names = reader.names(rows["nameId"], missing="<call without a name>")
    texts = [str(text) for text in names.categories]
    name = categories(names.codes.astype(np.int64), [_SUFFIX.sub("", text) for text in texts])
    driver_names = np.array([not text.startswith("cuda") for text in texts], dtype=bool)
    by_name = driver_names[names.codes] if len(texts) else np.zeros(0, dtype=bool)
    event_class = rows["eventClass"]
    driver = (event_class == _DRIVER_CLASS) | ((event_class != _RUNTIME_CLASS) & by_name)
    return {
        **_thread(rows["globalTid"]),
        "start_ns": rows["start"],
        "end_ns": rows["end"],
        "duration_ns": rows["end"] - rows["start"],
        "correlation_id": rows["correlationId"],
        "name": name,
        "api": categories(driver.astype(np.int64), ["runtime", "driver"]),
        "return_value": or_default(rows["returnValue"], 0),
    }


def _is_call(event_class: Ints) -> Mask:
    import numpy as np

    known = (_RUNTIME_CLASS, _DRIVER_CLASS, _BACKTRACE_CLASS, NULL)
    if set(distinct(event_class).tolist()) <= set(known):
        return np.ones(len(event_class), dtype=bool)
    return np.isin(event_class, known)


def _one_per_key(reader: Reader, rows: Rows) -> Mask:
    """Keep one call per process and correlation id: no backtrace copy, and the outermost of nested calls."""
    import numpy as np
    import pandas as pd

    correlation, backtrace = rows["correlationId"], rows["eventClass"] == _BACKTRACE_CLASS
    if is_one(rows["globalTid"]) and bool((correlation[1:] > correlation[:-1]).all()):
        return np.ones(len(correlation), dtype=bool)
    keys = pd.DataFrame({"process": rows["globalTid"] & PROCESS_MASK, "correlation": correlation}, copy=False)
    real = correlation > 0
    repeated = keys.duplicated(keep=False).to_numpy() & real
    kept = np.ones(len(correlation), dtype=bool)
    if not repeated.any():
        return kept
    at = np.flatnonzero(repeated)
    order = at[np.lexsort((-rows["end"][at], rows["start"][at], backtrace[at]))]
    again = keys.iloc[order].duplicated().to_numpy()
    kept[order[again]] = False
    nested = int((again & ~backtrace[order]).sum())
    if nested:
        reader.note(
            "api_nested",
            "info",
            f"{nested} API calls share their correlation id with a call around them; the outer one counts.",
        )
    return kept


def syncs(reader: Reader) -> pd.DataFrame:
    """One row per wait. The kind comes from the sentinels: the stored code changed its meaning five times."""
    import numpy as np

    place = ("start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid", "eventId")
    rows, length = reader.rows(SYNC, ints(always=place))
    if not length:
        return empty("syncs")
    rows = _kept(rows, reader.sound(rows, "synchronisations"))
    stream = or_default(rows["streamId"], none=(NO_STREAM,))
    event = or_default(rows["eventId"], none=(NO_STREAM,))
    kind = np.where(stream >= 0, np.where(event >= 0, 3, 2), np.where(event >= 0, 1, 0))
    global_pid = known_processes(reader, rows["globalPid"])
    data = {
        "start_ns": rows["start"],
        "end_ns": rows["end"],
        "duration_ns": rows["end"] - rows["start"],
        "process": process_of(global_pid),
        "global_pid": global_pid,
        "device": or_default(rows["deviceId"], none=(NO_DEVICE,)),
        "context": or_default(rows["contextId"], none=(NO_DEVICE,)),
        "stream": stream,
        "correlation_id": or_default(rows["correlationId"], none=(0,)),
        "kind": categories(kind, ["context", "event", "stream", "stream_wait"]),
    }
    return by_start(conform("syncs", data))


def overhead(reader: Reader) -> pd.DataFrame:
    """Spans in which the profiler itself held a thread."""
    rows, length = reader.rows(OVERHEAD, ints("globalTid", always=("start", "end", "nameId")))
    if not length:
        return empty("overhead")
    rows = _kept(rows, reader.sound(rows, "overhead spans"))
    data = {
        "start_ns": rows["start"],
        "end_ns": rows["end"],
        "name": reader.names(rows["nameId"], missing="unknown"),
        "global_tid": or_default(rows["globalTid"], 0),
    }
    return by_start(conform("overhead", data))


def graph_nodes(reader: Reader) -> pd.DataFrame:
    """Nodes of CUDA graphs as they were made. Before 3.11 they stood in the table of the graphs."""
    for table in GRAPH_NODES:
        if "graphnodeid" not in {column.lower() for column in reader.source.columns(table)}:
            continue
        columns = ints("originalGraphNodeId", always=("start", "globalTid", "graphNodeId"))
        rows, length = reader.rows(table, columns)
        if not length:
            continue
        rows = _kept(rows, (rows["graphNodeId"] != NULL) & (rows["start"] != NULL))
        thread = or_default(rows["globalTid"], 0)
        data = {
            "graph_node_id": rows["graphNodeId"],
            "original_graph_node_id": or_default(rows["originalGraphNodeId"], none=(0,)),
            "start_ns": rows["start"],
            "global_tid": thread,
            "global_pid": thread & PROCESS_MASK,
        }
        return by_start(conform("graph_nodes", data))
    return empty("graph_nodes")


def log_events(reader: Reader) -> pd.DataFrame:
    """Messages of the profiler, with paths cut out."""
    columns = (*ints("timestamp", "severity", "source", "globalPid"), Wanted("text", "text"))
    rows, length = reader.rows("DIAGNOSTIC_EVENT", columns)
    if not length:
        return empty("log_events")
    global_pid = or_default(rows["globalPid"], 0)
    # The sentinel of "no process" fills the upper bits only.
    global_pid = global_pid * (global_pid > 0)
    texts = text_categories(rows["text"], missing="")
    data = {
        "timestamp_ns": or_default(rows["timestamp"], 0),
        "severity": coded(or_default(rows["severity"], 0), _SEVERITIES, "severity"),
        "source": coded(or_default(rows["source"], 0), _SOURCES, "source"),
        "process": process_of(global_pid),
        "global_pid": global_pid & PROCESS_MASK,
        "text": categories(texts.codes.astype("int64"), [without_paths(str(t)) for t in texts.categories]),
    }
    return by_start(conform("log_events", data), "timestamp_ns")


def log_messages(reader: Reader) -> dict[str, int]:
    """How often the profiler says what, with paths cut out."""
    rows, _ = reader.rows("DIAGNOSTIC_EVENT", (Wanted("text", "text"),))
    return dict(Counter(without_paths(text or "") for text in rows["text"].tolist()))


def without_paths(text: str) -> str:
    """The text with file paths cut out.

    >>> without_paths("Loaded CUPTI library: /opt/nsys/libcupti.so.12")
    'Loaded CUPTI library: <path>'
    """
    return _PATH.sub("<path>", text)


def _thread(global_tid: Ints) -> dict[str, Ints]:
    known = or_default(global_tid, 0)
    return {
        "process": process_of(known),
        "global_pid": each(known, lambda ids: ids & PROCESS_MASK),
        "global_tid": known,
        "thread": each(known, lambda ids: ids & 0xFFFFFF),
    }


def _kept(rows: Rows, mask: Mask) -> Rows:
    return rows if mask.all() else {name: values[mask] for name, values in rows.items()}
