"""Ratios that cannot be: a kernel faster than its floor, and what would explain it.

A ratio below 1 is never good news. Either the bytes did not cross DRAM, or the workload is not what the
floor was computed for, or the peak is not that of this device.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from nsysmodel import units
from nsysmodel.hardware.types import Hardware
from nsysmodel.result import Flag
from nsysmodel.theory.cost import Cost
from nsysmodel.theory.floor import Floor
from nsysmodel.workload import Source


@dataclass(frozen=True, slots=True)
class Suspicion:
    """One flag with the sentence that justifies it."""

    flag: Flag
    explanation: str


@dataclass(frozen=True, slots=True)
class Fit:
    """A workload parameter and the largest value of it at which the measurement is possible."""

    parameter: str
    given: int
    source: Source
    fits: int


def fit_parameter(
    parameter: str, given: int, source: Source, floor_at: Callable[[int], float], measured_ns: float
) -> Fit | None:
    """The largest value below `given` whose floor is at most what was measured; None where none is.

    Args:
        parameter: its name, for the sentence.
        given: the value that the floor was computed with.
        source: where that value comes from.
        floor_at: floor in ns as a function of the value, not decreasing.
        measured_ns: mean measured time of one execution.

    >>> fit_parameter("context", 4096, "assumed", lambda context: 2.0 * context, 5000.0)
    Fit(parameter='context', given=4096, source='assumed', fits=2500)
    """
    low, high = 0, given
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if floor_at(middle) <= measured_ns else (low, middle)
    return Fit(parameter, given, source, low) if low >= 1 and floor_at(given) > measured_ns else None


def best_floor_ns(floor: Floor, hardware: Hardware) -> float:
    """The floor at the larger of datasheet and pin-rate bandwidth: what nothing can beat from DRAM."""
    bandwidth = hardware.bandwidth_bytes_per_s.value
    fastest = max(bandwidth, hardware.pin_bandwidth_bytes_per_s)
    return max(floor.compute_ns, floor.memory_ns * bandwidth / fastest, floor.link_ns)


def suspicious(
    measured_ns: float,
    cost: Cost,
    floor: Floor,
    hardware: Hardware,
    fits: Sequence[Fit] = (),
    *,
    streamed_bytes: float = 0,
) -> tuple[Suspicion, ...]:
    """Flags of an op that beats its floor, most likely explanation first; none where it does not.

    Args:
        measured_ns: mean time of one execution.
        cost: the work that the floor stands for.
        floor: its floor.
        hardware: the device.
        fits: workload parameters that would make the measurement possible.
        streamed_bytes: what crosses DRAM until the same data is read again (a whole step of a model); 0 where
            unknown. Beyond L2 nothing that is read stays there; what is written may still be on its way.
    """
    best = best_floor_ns(floor, hardware)
    if measured_ns <= 0 or measured_ns >= best:
        return ()
    found = []
    moved = cost.hbm_bytes if floor.basis == "hbm" else cost.strict_bytes
    memory = floor.memory_ns * hardware.bandwidth_bytes_per_s.value
    over_memory = memory / max(hardware.bandwidth_bytes_per_s.value, hardware.pin_bandwidth_bytes_per_s)
    reads = over_memory * (1 - cost.state_write_bytes / moved) if moved else 0.0
    may_stay = streamed_bytes <= hardware.l2_bytes or (cost.state_write_bytes > 0 and reads <= measured_ns)
    if over_memory > measured_ns and 0 < moved <= hardware.l2_bytes and may_stay:
        found.append(_l2(measured_ns, moved, hardware))
    found += [Suspicion("wrong_workload", _fit(fit)) for fit in sorted(fits, key=_likelihood)]
    if floor.compute_ns > measured_ns and not any(fit.source == "assumed" for fit in fits):
        found.append(Suspicion("wrong_peak", _peak(measured_ns, cost, hardware)))
    elif not found and over_memory > measured_ns:
        rate = units.bandwidth(moved / measured_ns * 1e9)
        found.append(
            Suspicion(
                "wrong_peak",
                f"{units.bytes_(moved)} in {units.ns(measured_ns)} would be {rate}: fewer bytes were moved "
                "than the model expects, or the bandwidth is not that of this device",
            )
        )
    found.append(
        Suspicion(
            "beats_floor", f"measured {units.ns(measured_ns)}, where {units.ns(best)} is the least possible"
        )
    )
    return tuple(found)


def _l2(measured_ns: float, moved: float, hardware: Hardware) -> Suspicion:
    rate = units.bandwidth(moved / measured_ns * 1e9)
    return Suspicion(
        "l2_resident",
        f"the working set of {units.bytes_(moved)} stays in the {units.bytes_(hardware.l2_bytes)} of L2: "
        f"{rate} did not come from DRAM",
    )


def _likelihood(fit: Fit) -> tuple[int, str]:
    """An assumed value is wrong more often than one that was read or given."""
    order: dict[Source, int] = {
        "assumed": 0,
        "model": 1,
        "inferred": 2,
        "catalogue": 3,
        "export": 4,
        "flag": 5,
    }
    return order[fit.source], fit.parameter


def _fit(fit: Fit) -> str:
    return f"{fit.parameter} {fit.given} ({fit.source}) is too much; at most {fit.fits} would fit"


def _peak(measured_ns: float, cost: Cost, hardware: Hardware) -> str:
    """Which rate the measurement would take, and which engine of the device has it."""
    dtype, needed = max(
        ((dtype, flop / measured_ns * 1e9) for dtype, flop in cost.flop.items()), key=lambda pair: pair[1]
    )
    text = f"it would take {units.flops(needed)} in {dtype}"
    peak = hardware.peak(dtype)
    if peak is not None:
        text += f", the peak is {units.flops(peak)}"
    faster = sorted((p.value, name) for name, p in hardware.peak_flop_per_s.items() if p.value >= needed)
    if faster:
        return f"{text}; {faster[0][1]} ({units.flops(faster[0][0])}) would explain it"
    return f"{text}; no engine of the device is that fast, so less work was done than the model expects"
