"""A device as rows and as JSON: every value with its source; peaks by formula beside the datasheet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nsysmodel.errors import HardwareError
from nsysmodel.hardware.peaks import gpu_peak
from nsysmodel.hardware.types import Hardware


@dataclass(frozen=True, slots=True)
class Ceiling:
    """The peak of one engine by formula, beside what the catalogue says.

    Attributes:
        dtype: engine and number format.
        flop_per_cycle: dense FLOP per cycle and SM (or core).
        units: SMs or cores that are counted.
        clock_hz: clock of the formula.
        formula_flop_per_s: FLOP/cycle x units x clock; None where FLOP/cycle, SMs or clock are unknown.
        catalogue_flop_per_s: the catalogue's peak, for the share of units; None where it has none.
        catalogue_source: where that comes from.
    """

    dtype: str
    flop_per_cycle: float | None
    units: int
    clock_hz: float
    formula_flop_per_s: float | None
    catalogue_flop_per_s: float | None
    catalogue_source: str

    @property
    def catalogue_over_formula(self) -> float | None:
        """Below 1 the datasheet quotes a lower clock than the formula's (Hopper tensor cores: 0.92)."""
        if not self.formula_flop_per_s or self.catalogue_flop_per_s is None:
            return None
        return self.catalogue_flop_per_s / self.formula_flop_per_s


def ceilings(
    hardware: Hardware, *, dtype: str = "", clock_hz: float | None = None, units: int | None = None
) -> list[Ceiling]:
    """Peaks by formula and by catalogue, for any clock and any part of the device.

    Raises:
        HardwareError: the device has nothing for `dtype`, or fewer units than asked for.

    >>> from nsysmodel.hardware.resolve import resolve
    >>> row = ceilings(resolve("h100"), dtype="tf32")[0]
    >>> round(row.formula_flop_per_s / 1e12, 1), round(row.catalogue_over_formula, 2)
    (535.3, 0.92)
    """
    known = list(dict.fromkeys([*hardware.peak_flop_per_s, *hardware.flop_per_cycle_per_sm]))
    if dtype and dtype not in known:
        raise HardwareError(f"{hardware.name} has no {dtype} peak.", f"Known here: {', '.join(known)}.")
    if units and hardware.sm_count and units > hardware.sm_count:
        raise HardwareError(
            f"{hardware.name} has {hardware.sm_count} SMs or cores, not {units}.", "Give a smaller number."
        )
    count = units or hardware.sm_count
    rate = clock_hz or hardware.clock_hz
    share = count / hardware.sm_count if hardware.sm_count else 1.0
    rows = []
    for name in [dtype] if dtype else known:
        per_cycle = hardware.flop_per_cycle_per_sm.get(name)
        formula = gpu_peak(per_cycle, count, rate) if per_cycle and count and rate else None
        source = hardware.origins.get(f"peak.{name}", "")
        # A peak that the catalogue itself derived is no second opinion.
        peak = None if source.startswith("derived") else hardware.peak(name)
        whole = None if peak is None else peak * share
        rows.append(Ceiling(name, per_cycle, count, rate, formula, whole, "" if peak is None else source))
    return rows


def to_dict(hardware: Hardware) -> dict[str, Any]:
    """The device for JSON: base units, a source for every value."""
    return {
        "key": hardware.key,
        "name": hardware.name,
        "source": hardware.source,
        "chip": hardware.chip,
        "compute_capability": hardware.compute_capability,
        "mig": hardware.mig,
        "peak_flop_per_s": {dtype: peak.value for dtype, peak in hardware.peak_flop_per_s.items()},
        "flop_per_cycle_per_sm": dict(hardware.flop_per_cycle_per_sm),
        "bandwidth_bytes_per_s": hardware.bandwidth_bytes_per_s.value,
        "pin_bandwidth_bytes_per_s": hardware.pin_bandwidth_bytes_per_s or None,
        "sm_count": hardware.sm_count or None,
        "clock_hz": hardware.clock_hz or None,
        "memory_bytes": hardware.memory_bytes or None,
        "l2_bytes": hardware.l2_bytes or None,
        "links_bytes_per_s": {kind: link.bytes_per_s for kind, link in hardware.links.items()},
        "sources": dict(hardware.origins),
        "uncertain": dict(hardware.uncertain),
        "notes": list(hardware.notes),
    }
