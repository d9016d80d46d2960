"""Everything that `inspect` shows, as plain values."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from nsysmodel.export.facts import is_graph_launch, is_launch
from nsysmodel.intervals import union_length

if TYPE_CHECKING:
    import pandas as pd

    from nsysmodel.export.run import Run

SCHEMA = "nsysmodel.inspect/1"
_TOP_TEXTS = 8


def inspection(run: Run) -> dict[str, Any]:
    """What is in an export: ready for `json.dumps`. No host, user, path or environment is among it."""
    facts = dataclasses.asdict(run.facts)
    return {
        "schema": SCHEMA,
        "export": facts,
        "time": _time(run),
        "gpus": _gpus(run),
        "devices": _devices(run),
        "api": _api(run),
        "nvtx": _nvtx(run),
        "nccl": _nccl(run),
        "clock_samples": _clocks(run),
        "tables": {name: rows for name, rows in sorted(run.tables().items()) if not _dull(name)},
        "findings": [dataclasses.asdict(found) for found in run.diagnostics],
    }


def _dull(table: str) -> bool:
    """Tables that hold no events, or hold what must not be shown."""
    return table.upper().startswith(("ENUM_", "META_DATA_", "EXPORT_META_DATA", "SQLITE_"))


def _active(run: Run) -> list[pd.DataFrame]:
    return [f for f in (run.kernels(), run.copies(), run.memsets(), run.graph_traces()) if len(f)]


def _time(run: Run) -> dict[str, int | None]:
    """First start and last end of everything that ran on a device."""
    frames = _active(run)
    return {
        "first_ns": min((int(f["start_ns"].min()) for f in frames), default=None),
        "last_ns": max((int(f["end_ns"].max()) for f in frames), default=None),
    }


def _gpus(run: Run) -> list[dict[str, Any]]:
    frame = run.gpus()
    columns = ("id", "name", "chip", "compute_capability", "mig", "sm_count", "clock_hz", "cuda_device")
    sizes = ("bandwidth_bytes_per_s", "memory_bytes", "l2_bytes")
    return [
        {name: _value(row[name]) for name in (*columns, *sizes)}
        for row in frame.astype(object).to_dict("records")
    ]


def _devices(run: Run) -> list[dict[str, Any]]:
    """One entry per process and device that did something."""
    import pandas as pd

    frames = {
        "kernels": run.kernels(),
        "copies": run.copies(),
        "memsets": run.memsets(),
        "graph_traces": run.graph_traces(),
    }
    times = ["global_pid", "process", "device", "stream", "start_ns", "end_ns", "duration_ns"]
    every = pd.concat([frame[times].assign(what=name) for name, frame in frames.items()], ignore_index=True)
    found = []
    groups: Iterable[tuple[Any, pd.DataFrame]] = every.groupby(["global_pid", "device"])
    for (global_pid, device), rows in groups:
        gpu = run.gpu_for(int(global_pid), int(device))
        kernels = rows[rows["what"] == "kernels"]
        found.append(
            {
                "process": int(rows["process"].iloc[0]),
                "device": int(device),
                "gpu": gpu.name if gpu else None,
                "mapping": gpu.mapping if gpu else None,
                "kernels": len(kernels),
                "kernel_time_ns": int(kernels["duration_ns"].sum()),
                "kernel_busy_ns": union_length(kernels["start_ns"], kernels["end_ns"]),
                "busy_ns": union_length(rows["start_ns"], rows["end_ns"]),
                **{name: int((rows["what"] == name).sum()) for name in frames if name != "kernels"},
                "streams": int(rows.loc[rows["stream"] >= 0, "stream"].nunique()),
                "first_ns": int(rows["start_ns"].min()),
                "last_ns": int(rows["end_ns"].max()),
            }
        )
    return found


def _api(run: Run) -> dict[str, int]:
    calls = run.api_calls()
    return {
        "calls": len(calls),
        "launches": int(is_launch(calls).sum()),
        "graph_launches": int(is_graph_launch(calls).sum()),
        "threads": int(calls["global_tid"].nunique()),
        "synchronisations": len(run.syncs()),
        "failed": int((~calls["return_value"].isin((0, 600))).sum()),
    }


def _nvtx(run: Run) -> dict[str, Any]:
    nvtx = run.nvtx()
    ranges = nvtx[nvtx["kind"] != "mark"]
    return {
        "ranges": len(ranges),
        "marks": len(nvtx) - len(ranges),
        "open": int(nvtx["open"].sum()),
        "threads": int(ranges["global_tid"].nunique()),
        "domains": {str(name): int(n) for name, n in ranges["domain"].value_counts().items() if n},
        "texts": {
            str(text): int(n) for text, n in ranges["text"].value_counts().head(_TOP_TEXTS).items() if n
        },
    }


def _nccl(run: Run) -> dict[str, int]:
    """Kernels of NCCL and the ranges of its NVTX domain."""
    kernels, nvtx = run.kernels(), run.nvtx()
    names = [n for n in kernels["short_name"].cat.categories if "nccl" in str(n).lower()]
    domains = [d for d in nvtx["domain"].cat.categories if "nccl" in str(d).lower()]
    mine = kernels[kernels["short_name"].isin(names)]
    return {
        "kernels": len(mine),
        "kernel_time_ns": int(mine["duration_ns"].sum()),
        "ranges": int(nvtx["domain"].isin(domains).sum()),
    }


def _clocks(run: Run) -> list[dict[str, int]]:
    """Sampled SM clocks of each adapter."""
    groups: Iterable[tuple[Any, pd.DataFrame]] = run.gpu_clock_samples().groupby("gpu")
    return [
        {
            "gpu": int(gpu),
            "samples": len(rows),
            "min_hz": int(rows["clock_hz"].min()),
            "median_hz": int(rows["clock_hz"].median()),
            "max_hz": int(rows["clock_hz"].max()),
        }
        for gpu, rows in groups
    ]


def _value(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value
