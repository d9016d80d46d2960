"""Scaling laws: what N devices can do at best, with and without communication.

Amdahl (1967): a fixed problem, a part p of which runs in parallel. Gustafson (1988): the problem grows with
the devices. With communication T(N) = T_serial + T_parallel/N + T_comm(N), which has a minimum.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from nsysmodel.errors import WorkloadError
from nsysmodel.theory.collectives import AllReduce, all_reduce_ns


def amdahl(parallel: float, devices: float) -> float:
    """Speed-up of a fixed problem: 1 / ((1−p) + p/N).

    >>> round(amdahl(0.95, 8), 2), round(amdahl(0.95, 8) / 8, 2)
    (5.93, 0.74)
    """
    _fraction(parallel)
    _devices(devices)
    return 1 / ((1 - parallel) + parallel / devices)


def amdahl_limit(parallel: float) -> float:
    """Speed-up that no number of devices exceeds: 1 / (1−p); infinite for p = 1.

    >>> round(amdahl_limit(0.95), 6)
    20.0
    """
    _fraction(parallel)
    return 1 / (1 - parallel) if parallel < 1 else float("inf")


def amdahl_fraction(speedup: float, devices: float) -> float:
    """The parallel part that a measured speed-up on N devices implies: (1 − 1/S) / (1 − 1/N).

    >>> round(amdahl_fraction(amdahl(0.95, 8), 8), 6)
    0.95
    """
    _devices(devices)
    if devices == 1 or speedup <= 0:
        raise WorkloadError("One device says nothing about the parallel part.", "Measure with 2 or more.")
    return (1 - 1 / speedup) / (1 - 1 / devices)


def gustafson(serial: float, devices: float) -> float:
    """Speed-up of a problem that grows with the devices: s + (1−s)·N.

    >>> round(gustafson(0.05, 8), 2)
    7.65
    """
    _fraction(serial)
    _devices(devices)
    return serial + (1 - serial) * devices


def strong_efficiency(time_one: float, time_many: float, devices: float) -> float:
    """Efficiency of a fixed problem: T(1) / (N·T(N)).

    >>> strong_efficiency(8.0, 1.25, 8)
    0.8
    """
    _devices(devices)
    return time_one / (devices * time_many)


def weak_efficiency(time_one: float, time_many: float) -> float:
    """Efficiency of a problem that grows with the devices: T(1) / T(N).

    >>> weak_efficiency(1.0, 1.25)
    0.8
    """
    return time_one / time_many


@dataclass(frozen=True, slots=True)
class Part:
    """The time of a step on N devices and its terms, in ns."""

    devices: int
    serial_ns: float
    parallel_ns: float
    bandwidth_ns: float
    latency_ns: float

    @property
    def total_ns(self) -> float:
        """All terms."""
        return self.serial_ns + self.parallel_ns + self.bandwidth_ns + self.latency_ns


@dataclass(frozen=True, slots=True)
class Communication:
    """The all-reduces of a step.

    Tensor-parallel decode has two a layer (after the attention output and after the MLP), each of batch x
    hidden activations: Qwen3-30B in BF16 at batch 1 has 96 of 4096 bytes.

    Attributes:
        collectives: all-reduces in a step.
        size_bytes: full tensor of one of them.
        link_bytes_per_s: link of a device, one direction; must be given where bytes are sent.
        latency_ns: latency of one step of the algorithm (a ring has 2(N−1) steps).
        algorithm: see `nsysmodel.theory.collectives`.
    """

    collectives: float = 0
    size_bytes: float = 0
    link_bytes_per_s: float = float("inf")
    latency_ns: float = 0
    algorithm: AllReduce = "ring"

    def terms_ns(self, devices: int) -> tuple[float, float]:
        """Bandwidth term and latency term of a step on N devices, in ns.

        >>> comm = Communication(96, 4096, 450e9, 500)
        >>> bandwidth, latency = comm.terms_ns(4)
        >>> round(bandwidth), round(latency)
        (1311, 288000)
        """
        moved = all_reduce_ns(
            self.size_bytes, devices, link_bytes_per_s=self.link_bytes_per_s, algorithm=self.algorithm
        )
        both = all_reduce_ns(
            self.size_bytes,
            devices,
            link_bytes_per_s=self.link_bytes_per_s,
            latency_ns=self.latency_ns,
            algorithm=self.algorithm,
        )
        return self.collectives * moved, self.collectives * (both - moved)


def step_time(serial_ns: float, parallel_ns: float, comm: Communication, devices: int) -> Part:
    """T(N) = T_serial + T_parallel/N + T_comm(N).

    >>> step_time(100.0, 900.0, Communication(), 9).total_ns
    200.0
    """
    _devices(devices)
    if serial_ns < 0 or parallel_ns < 0:
        raise WorkloadError("A part of the time is negative.", "Give times of at least 0.")
    bandwidth_ns, latency_ns = comm.terms_ns(devices)
    return Part(devices, serial_ns, parallel_ns / devices, bandwidth_ns, latency_ns)


def best_devices(
    serial_ns: float, parallel_ns: float, comm: Communication, candidates: Iterable[int]
) -> Part:
    """The N with the least T(N); the smaller one where two are equal.

    1 ms that divides, 2 ring all-reduces a layer in 48 layers at 500 ns a step: 96·2·500 = 96 µs a device.

    >>> best_devices(0, 1e6, Communication(96, 4096, 450e9, 500), range(1, 17)).devices
    3
    """
    parts = [step_time(serial_ns, parallel_ns, comm, devices) for devices in candidates]
    if not parts:
        raise WorkloadError("There is no number of devices to try.", "Give at least one.")
    return min(parts, key=lambda part: (part.total_ns, part.devices))


def _fraction(value: float) -> None:
    if not 0 <= value <= 1:
        raise WorkloadError(f"A fraction lies between 0 and 1, not {value}.", "0.95 is 95 %.")


def _devices(value: float) -> None:
    if not value >= 1:
        raise WorkloadError(f"A number of devices is at least 1, not {value}.", "Give 1 or more.")
