"""Is a measurement possible at all: a check of bytes, FLOP and time against the device."""

from __future__ import annotations

from dataclasses import dataclass

from nsysmodel.errors import HardwareError, WorkloadError
from nsysmodel.hardware.types import Hardware
from nsysmodel.theory.roofline import Roof, peak_of


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a measurement is possible at all.

    Attributes:
        possible: the measured time is not below the least time.
        least_ns: the least time that the device allows, with the larger of datasheet bandwidth and pin rate.
        memory_ns, compute_ns: the two roofs.
        bound: which of them decides.
        faster_than_possible: least / measured; above 1 the measurement (or an input) is wrong.
    """

    possible: bool
    least_ns: float
    memory_ns: float
    compute_ns: float
    bound: Roof
    faster_than_possible: float


def possible(bytes_: float, flop: float, time_ns: float, hardware: Hardware, *, dtype: str = "") -> Verdict:
    """Whether a device can move so many bytes and do so many FLOP in a measured time.

    Scanning 1e9 integers of 4 bytes from 512 GB/s takes 7.8 ms; 1 ns is a measurement error. The data must
    come from DRAM: a working set that stays in a cache may be faster.

    Args:
        dtype: engine of the FLOP; the fastest of the device where empty.

    >>> from nsysmodel.hardware.resolve import resolve
    >>> verdict = possible(4e9, 0, 1.0, resolve("grace"))
    >>> verdict.possible, verdict.least_ns
    (False, 7812500.0)
    """
    if not time_ns > 0:
        raise WorkloadError(f"A measured time is above 0, not {time_ns}.", "Check the number.")
    rate = max(hardware.bandwidth_bytes_per_s.value, hardware.pin_bandwidth_bytes_per_s)
    memory_ns = bytes_ / rate * 1e9
    compute_ns = 0.0
    if flop:
        peaks = [peak.value for peak in hardware.peak_flop_per_s.values()]
        if not dtype and not peaks:
            raise HardwareError(f"{hardware.name or 'The device'} has no peak.", "Give one with --peak.")
        compute_ns = flop / (peak_of(hardware, dtype) if dtype else max(peaks)) * 1e9
    least = max(memory_ns, compute_ns)
    return Verdict(
        possible=time_ns >= least,
        least_ns=least,
        memory_ns=memory_ns,
        compute_ns=compute_ns,
        bound="compute" if compute_ns > memory_ns else "memory",
        faster_than_possible=least / time_ns,
    )
