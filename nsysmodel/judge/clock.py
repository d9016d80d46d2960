"""The SM clock while the used steps ran: samples of the export, a flag, or nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from nsysmodel import units
from nsysmodel.account.reasons import CLOCK_COMMAND, SLOW_CLOCK
from nsysmodel.account.types import Window
from nsysmodel.hardware.resolve import GIVEN
from nsysmodel.hardware.types import Hardware
from nsysmodel.result_account import ClockFacts

if TYPE_CHECKING:
    import pandas as pd

    from nsysmodel.export.device_frames import GpuFacts
    from nsysmodel.export.run import Run


def clock_facts(
    hardware: Hardware | None, gpu: GpuFacts | None, samples: pd.DataFrame | None, windows: Sequence[Window]
) -> ClockFacts:
    """The clock against the one that the peaks stand for.

    Args:
        hardware: the device; with `--clock` its clock is the given one.
        gpu: what the export says of the device; its clock is the maximum.
        samples: `Run.gpu_clock_samples()` of this GPU, or None.
        windows: the used steps.
    """
    peak = float(gpu.clock_hz) if gpu is not None and gpu.clock_hz else hardware.clock_hz if hardware else 0.0
    seen = _inside(samples, windows)
    if len(seen):
        middle, low = float(np.median(seen)), float(np.percentile(seen, 5))
        return _facts("samples", len(seen), middle, low, peak, "samples in the export")
    if hardware is not None and hardware.origins.get("clock") == GIVEN:
        return _facts("flag", 0, hardware.clock_hz, None, peak, "--clock")
    return ClockFacts(
        source="none",
        samples=0,
        median_hz=None,
        p05_hz=None,
        peak_hz=peak or None,
        fraction=None,
        explanation="The export holds no samples of the SM clock; the peaks stand for the maximum.",
        command=CLOCK_COMMAND,
    )


def samples_of(run: Run, gpu: GpuFacts | None) -> pd.DataFrame | None:
    """Clock samples of a GPU; None where several were sampled and their names do not tell which it is."""
    samples = run.gpu_clock_samples()
    sampled = samples["gpu"].unique()
    if len(sampled) < 2 or gpu is None:
        return samples if len(sampled) == 1 else None
    gpus = run.gpus()
    ids = gpus["id"][gpus["name"].astype(str) == gpu.name]
    return samples[samples["gpu"] == int(ids.iloc[0])] if len(ids) == 1 else None


def _facts(source: str, count: int, middle: float, low: float | None, peak: float, told: str) -> ClockFacts:
    share = middle / peak if peak else None
    text = f"SM clock {units.clock(middle)} ({told})"
    if share is not None and share < SLOW_CLOCK:
        text += (
            f", {units.percent(share)} of the {units.clock(peak)} of the device: compute ceilings are lower "
            "by as much"
        )
    return ClockFacts(
        source=source,  # type: ignore[arg-type]
        samples=count,
        median_hz=middle,
        p05_hz=low,
        peak_hz=peak or None,
        fraction=share,
        explanation=f"{text}.",
        command=CLOCK_COMMAND,
    )


def _inside(samples: pd.DataFrame | None, windows: Sequence[Window]) -> np.ndarray:
    """Clock samples that were taken in a window."""
    if samples is None or not len(samples):
        return np.zeros(0)
    at = samples["timestamp_ns"].to_numpy(np.int64)
    mask = np.zeros(len(at), bool)
    for window in windows:
        mask |= (at >= window.start_ns) & (at < window.end_ns)
    return samples["clock_hz"].to_numpy(float)[mask]
