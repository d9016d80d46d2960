"""GPUs of the export, which of them a process's device is, and sampled metrics."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nsysmodel.export.columns import conform, empty
from nsysmodel.export.reader import Reader, Wanted, by_start, categories, ints, or_default, text_categories
from nsysmodel.export.source import NULL, Kind, Rows

if TYPE_CHECKING:
    import pandas as pd

    from nsysmodel.export.reader import Ints

GPU, GPU_2020 = "TARGET_INFO_GPU", "TARGET_INFO_CUDA_GPU"
CUDA_DEVICE = "TARGET_INFO_CUDA_DEVICE"
_MIB = 1 << 20
_MAKER = r"NVIDIA|Tesla|Quadro|GeForce"


@dataclass(frozen=True, slots=True)
class GpuFacts:
    """What the export says of the GPU behind a device of a process.

    Attributes:
        bandwidth_bytes_per_s: pin rate of the DRAM; no kernel reaches it. 0 where unknown, as the others.
        mig: a MIG instance; the numbers are those of the instance.
        mapping: how the device was found: `device_table`, `only_gpu`, or a guess: `cuda_device`, `adapter`.
    """

    name: str
    sm_count: int
    clock_hz: int
    bandwidth_bytes_per_s: int
    l2_bytes: int
    memory_bytes: int
    compute_capability: str
    mig: bool
    mapping: str


def gpus(reader: Reader) -> pd.DataFrame:
    """One row per CUDA device of the machine; adapters of other makers are left out."""
    rows, length = _gpu_rows(reader)
    if not length:
        return empty("gpus")
    name = text_categories(rows["name"], missing="")
    capability = [
        f"{major}.{minor}" if major > 0 else ""
        for major, minor in zip(rows["major"].tolist(), rows["minor"].tolist(), strict=True)
    ]
    data: dict[str, Any] = {
        "id": or_default(rows["id"]),
        "name": name,
        "chip": text_categories(rows["chip"], missing=""),
        "compute_capability": categories(_range(length), [*capability]),
        "cuda_device": or_default(rows["cuda"]),
        "mig": [" MIG " in f" {text} " for text in name],
    }
    for column in _SIZES:
        data[column] = or_default(rows[column], 0)
    frame = conform("gpus", data)
    # Adapters of other makers have no SMs; neither has a row that was zero-filled, but it has the name.
    usable = (frame["sm_count"] > 0) | frame["name"].str.contains(_MAKER)
    return frame[usable].reset_index(drop=True)


_SIZES = (
    "sm_count",
    "clock_hz",
    "bandwidth_bytes_per_s",
    "memory_bytes",
    "l2_bytes",
    "max_warps_per_sm",
    "registers_per_sm",
    "shared_bytes_per_sm",
)
_COLUMNS: dict[str, tuple[str, str]] = {
    "id": ("id", "deviceId"),
    "name": ("name", "name"),
    "chip": ("chipName", ""),
    "cuda": ("cuDevice", "deviceId"),
    "major": ("computeMajor", "computeCapabilityMajor"),
    "minor": ("computeMinor", "computeCapabilityMinor"),
    "sm_count": ("smCount", "numMultiprocessors"),
    "clock_hz": ("clockRate", "coreClockRate"),
    "bandwidth_bytes_per_s": ("memoryBandwidth", "globalMemoryBandwidth"),
    "memory_bytes": ("totalMemory", "globalMemorySize"),
    "l2_bytes": ("l2CacheSize", "l2CacheSize"),
    "max_warps_per_sm": ("maxWarpsPerSm", "maxWarpsPerMultiprocessor"),
    "registers_per_sm": ("maxRegistersPerSm", "maxRegistersPerMultiprocessor"),
    "shared_bytes_per_sm": ("maxShmemPerSm", "maxSharedMemoryPerMultiprocessor"),
}
"""Our name, the column of today, the column of 2020 (`TARGET_INFO_CUDA_GPU`)."""


def _gpu_rows(reader: Reader) -> tuple[Rows, int]:
    """GPU rows under our names and in base units; the 2020 table counted in kHz and MiB."""
    for generation, table in enumerate((GPU, GPU_2020)):
        wanted = {ours: theirs[generation] for ours, theirs in _COLUMNS.items()}
        kinds: dict[str, Kind] = dict.fromkeys(("name", "chip"), "text")
        read = [Wanted(theirs or ours, kinds.get(ours, "int")) for ours, theirs in wanted.items()]
        rows, length = reader.rows(table, read)
        if not length:
            continue
        result = {ours: rows[theirs or ours] for ours, theirs in wanted.items()}
        if generation == 1:
            known = result["clock_hz"] != NULL
            result["clock_hz"] = _scaled(result["clock_hz"], 1000, known)
            result["memory_bytes"] = _scaled(result["memory_bytes"], _MIB, result["memory_bytes"] != NULL)
        return result, length
    return {}, 0


def _scaled(values: Ints, factor: int, known: Any) -> Ints:
    import numpy as np

    return np.where(known & (abs(values) < 2**40), values * factor, values)


def gpu_of(reader: Reader, frame: pd.DataFrame, process: int, device: int) -> GpuFacts | None:
    """The GPU behind a device of a process; None where the export does not say.

    Args:
        reader: the export.
        frame: its GPUs.
        process: process key of the export, or OS pid.
        device: CUDA ordinal within that process.
    """
    found, mapping = _row_of(reader, frame, _os_pid(process), device)
    if found is None:
        return None
    row = frame.iloc[found]
    numbers = {name: int(row[name]) for name in _SIZES[:5]}
    return GpuFacts(
        name=str(row["name"]),
        compute_capability=str(row["compute_capability"]),
        mig=bool(row["mig"]),
        mapping=mapping,
        **numbers,
    )


def _row_of(reader: Reader, frame: pd.DataFrame, pid: int, device: int) -> tuple[int | None, str]:
    import numpy as np

    rows, _ = reader.rows(CUDA_DEVICE, ints("gpuId", "cudaId", "pid"))
    listed = rows["gpuId"][(rows["cudaId"] == device) & (rows["pid"] == pid)]
    attempts = [("device_table", "id", int(listed[0]))] if len(listed) else []
    if not attempts and len(frame) == 1:
        return 0, "only_gpu"
    attempts += [("cuda_device", "cuda_device", device), ("adapter", "id", device)]
    for mapping, column, value in attempts:
        at = np.flatnonzero(frame[column].to_numpy() == value)
        if len(at):
            return int(at[0]), mapping
    return (0, "only_gpu") if len(frame) == 1 else (None, "")


def _os_pid(process: int) -> int:
    return (process >> 24) & 0xFFFFFF if abs(process) >= 1 << 24 else process


def gpu_metrics(reader: Reader) -> pd.DataFrame:
    """Samples of GPU metrics, one row per metric and sample."""
    columns = (*ints("timestamp", "typeId", "metricId"), Wanted("value", "real"))
    rows, length = reader.rows("GPU_METRICS", columns)
    if not length:
        return empty("gpu_metrics")
    kept = rows["timestamp"] != NULL
    rows = {name: values[kept] for name, values in rows.items()}
    data = {
        "timestamp_ns": rows["timestamp"],
        "gpu": or_default(rows["typeId"], 0) & 0xFF,
        "metric": _metric_names(reader, rows),
        "value": rows["value"],
    }
    return by_start(conform("gpu_metrics", data), "timestamp_ns")


def _metric_names(reader: Reader, rows: Rows) -> pd.Categorical:
    """Names by type and number; the numbers mean different metrics for different types."""
    import pandas as pd

    columns = (*ints("typeId", "metricId"), Wanted("metricName", "text"))
    names, _ = reader.rows("TARGET_INFO_GPU_METRICS", columns)
    table = {
        (t, m): text
        for t, m, text in zip(
            names["typeId"].tolist(), names["metricId"].tolist(), names["metricName"].tolist(), strict=True
        )
        if text is not None
    }
    codes, uniques = pd.factorize(pd.MultiIndex.from_arrays([rows["typeId"], rows["metricId"]]))
    texts: list[str | None] = [table.get((int(t), int(m)), f"<metric {m}>") for t, m in uniques]
    return categories(codes, texts)


_SM_CLOCK = re.compile(r"\b(?:SM|GPC|GR)\w*\s+(?:Active\s+)?(?:Clock|Frequency)", re.IGNORECASE)


def clock_samples(metrics: pd.DataFrame) -> pd.DataFrame:
    """Samples of the SM clock: `timestamp_ns`, `gpu`, `clock_hz`.

    The name of the metric says MHz; values that can only be Hz are taken as such.
    """
    import numpy as np
    import pandas as pd

    wanted = [text for text in metrics["metric"].cat.categories if _SM_CLOCK.search(str(text))]
    rows = metrics[metrics["metric"].isin(wanted)]
    value = rows["value"].to_numpy()
    # Clocks above 2^31 Hz are stored as negative 32-bit numbers.
    value = np.where(value < 0, value + 2**32, value)
    hertz = np.where(value >= 1e7, value, value * 1e6)
    sound = np.isfinite(hertz) & (hertz > 0) & (hertz < 1e10)
    return pd.DataFrame(
        {
            "timestamp_ns": rows["timestamp_ns"].to_numpy()[sound],
            "gpu": rows["gpu"].to_numpy()[sound],
            "clock_hz": hertz[sound].astype(np.int64),
        }
    )


def _range(length: int) -> Ints:
    import numpy as np

    return np.arange(length, dtype=np.int64)
