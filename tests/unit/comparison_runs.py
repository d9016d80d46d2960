"""Snapshots of generated runs, straight from the labels: the statistics without reader and join."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from fixtures import pairs
from nsysmodel.comparison.snapshot import DeviceSnapshot, Part, Snapshot

GPU = {"name": "NVIDIA GH200 480GB", "sm_count": 132, "clock_hz": 1_980_000_000}
WORK = {"phase": "decode", "batch": 1, "context": 2048}


def device(
    parts: Mapping[tuple[str, str], list[int]], idle: list[int] | None = None, **more: object
) -> DeviceSnapshot:
    """A device with these parts; what `idle` says is one gap."""
    steps = len(next(iter(parts.values())))
    values = {**parts, ("gap", "unknown"): idle or [100] * steps}
    windows = [sum(column) for column in zip(*values.values(), strict=True)]
    fields: dict[str, object] = {
        "process": 1, "device": 0, "gpu": GPU, "unit": "step", "method": "nvtx", "layers": 4, "coverage": 1.0,
        "workload": WORK, "steps": tuple(range(steps)), "windows_ns": tuple(windows),
        "parts": tuple(
            Part(kind, name, tuple(series), 1.0, (name,)) for (kind, name), series in values.items()
        ),
    }  # fmt: skip
    return DeviceSnapshot(**{**fields, **more})  # type: ignore[arg-type]


def run(*devices: DeviceSnapshot, **more: object) -> Snapshot:
    fields: dict[str, object] = {
        "file": "run.sqlite", "version": "0", "model": {"name": "tiny", "layers": 4}, "status": "ok",
        "headline": "A step.", "graph_mode": "node", "completeness": "complete", "devices": devices,
    }  # fmt: skip
    return Snapshot(**{**fields, **more})  # type: ignore[arg-type]


def generated(jitter: int, slower: Mapping[str, float] | None = None) -> Snapshot:
    """A run of the generator: 16 whole steps; kernels that no op claims are parts of their own."""
    frame = pairs.labels(pairs.passes(jitter, slower=slower))
    frame = frame[frame["step"] < 16]
    frame = frame.assign(took=frame["end_ns"] - frame["start_ns"])
    key = np.where(frame["op"] == "", "kernel:" + frame["name"], "op:" + frame["op"])
    table = frame.assign(key=key).pivot_table(
        index="step", columns="key", values="took", aggfunc="sum", fill_value=0
    )
    parts = {tuple(name.split(":", 1)): [int(v) for v in table[name]] for name in table.columns}
    return run(device(parts))
