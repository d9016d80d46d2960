"""What a user asks beside the workload: which GPU the floors are for, and which part is judged."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HardwareRequest:
    """Hardware as a user states it; None where nothing was said.

    Attributes:
        gpu: a name of the catalogue.
        bandwidth: DRAM bandwidth, as text (`4.0TB/s`).
        peaks: peaks as text (`bf16=989TFLOPS`).
        clock: SM clock as text (`1.6GHz`); every peak is recomputed for it.
        files: catalogue files of the user.
    """

    gpu: str | None = None
    bandwidth: str | None = None
    peaks: tuple[str, ...] = ()
    clock: str | None = None
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Selection:
    """Which part of an export is judged; None where nothing was said.

    Attributes:
        process: OS process id.
        device: CUDA ordinal.
        steps: first and last step number, both included.
        nvtx: regular expression over NVTX range names; only kernels launched inside are judged.
        time_range: start and end in ns on the export's own clock.
    """

    process: int | None = None
    device: int | None = None
    steps: tuple[int, int] | None = None
    nvtx: str | None = None
    time_range: tuple[int, int] | None = None
