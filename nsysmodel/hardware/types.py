"""What the floors need to know of a device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from nsysmodel.workload import Source, Sourced


@dataclass(frozen=True, slots=True)
class Link:
    """A link of a device, one direction. `bytes_per_s` after line coding, before protocol overhead."""

    name: str
    bytes_per_s: float
    source: str


@dataclass(frozen=True, slots=True)
class Hardware:
    """One device with its peaks, each value with its source.

    Attributes:
        key: short name in the catalogue (`gh200`), empty for a device derived from the export.
        name: device name as CUDA prints it, or the catalogue's.
        source: where the whole description comes from.
        peak_flop_per_s: dense peaks by engine and number format; `fp32` and `fp64` are the CUDA cores.
        bandwidth_bytes_per_s: DRAM bandwidth that the floors use.
        pin_bandwidth_bytes_per_s: the pin rate (what nsys reports); 0 where unknown.
        l2_bytes, sm_count, clock_hz, memory_bytes: 0 where unknown.
        links: by kind: `nvlink`, `c2c`, `pcie`.
        origins: for each value's name, a sentence that says where it comes from; peaks are `peak.<type>`,
            links `link.<kind>`.
        chip: chip name, empty where unknown.
        compute_capability: such as `9.0`, empty where unknown.
        flop_per_cycle_per_sm: dense FLOP per cycle and SM, by number format; empty where unknown.
        uncertain: for a value's name, why it should be read with care.
        notes: what else a reader should know.
        mig: a slice of a GPU; every number is the slice's own.

    For a CPU `sm_count` counts cores, `l2_bytes` is the last-level cache and `flop_per_cycle_per_sm` is
    per core.
    """

    key: str
    name: str
    source: Source
    peak_flop_per_s: Mapping[str, Sourced[float]]
    bandwidth_bytes_per_s: Sourced[float]
    pin_bandwidth_bytes_per_s: float = 0
    l2_bytes: int = 0
    sm_count: int = 0
    clock_hz: float = 0
    memory_bytes: float = 0
    links: Mapping[str, Link] = field(default_factory=dict)
    origins: Mapping[str, str] = field(default_factory=dict)
    chip: str = ""
    compute_capability: str = ""
    flop_per_cycle_per_sm: Mapping[str, float] = field(default_factory=dict)
    uncertain: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    mig: bool = False

    def peak(self, dtype: str) -> float | None:
        """Dense FLOP/s of an engine and number format; None where the catalogue has none."""
        found = self.peak_flop_per_s.get(dtype)
        return None if found is None else found.value
