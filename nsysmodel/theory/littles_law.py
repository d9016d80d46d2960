"""Little's law: what requests in flight let through a link.

bandwidth = bytes in flight / latency. A kernel that copies over a link cannot be faster than that, however
fast the link is; it needs link rate x latency bytes in flight to fill it.

The worked case: an expert of 9.4 MB comes over NVLink-C2C (450 GB/s) at 220 GB/s, because 8 blocks of 1024
threads keep 16 bytes each in flight, 128 KiB; so the latency is 596 ns.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from nsysmodel.errors import WorkloadError


@dataclass(frozen=True, slots=True)
class Throughput:
    """What a number of bytes in flight lets through.

    Attributes:
        bytes_per_s: the throughput.
        limited_by: `latency` (too few requests in flight) or `link`.
        needed_bytes: bytes in flight that would fill the link; infinite without a link.
    """

    bytes_per_s: float
    limited_by: str
    needed_bytes: float


def bytes_in_flight(blocks: float, threads_per_block: float = 1024, bytes_per_thread: float = 16) -> float:
    """Bytes that a kernel keeps in flight when each thread waits for one load of `bytes_per_thread`.

    >>> bytes_in_flight(8)
    131072
    """
    return blocks * threads_per_block * bytes_per_thread


def latency_ns(in_flight_bytes: float, bytes_per_s: float) -> float:
    """The latency in ns that a measured throughput and known bytes in flight imply.

    >>> round(latency_ns(128 * 1024, 220e9), 1)
    595.8
    """
    _positive(in_flight_bytes=in_flight_bytes, bytes_per_s=bytes_per_s)
    return in_flight_bytes / bytes_per_s * 1e9


def needed_bytes(bytes_per_s: float, latency_ns: float) -> float:
    """Bytes in flight that fill a link: rate x latency.

    >>> round(needed_bytes(450e9, 596) / 1e3), round(needed_bytes(31e9, 596) / 1e3, 1)
    (268, 18.5)
    """
    _positive(bytes_per_s=bytes_per_s, latency_ns=latency_ns)
    return bytes_per_s * latency_ns / 1e9


def throughput(
    in_flight_bytes: float, latency_ns: float, *, link_bytes_per_s: float = math.inf
) -> Throughput:
    """Bytes/s that so many bytes in flight let through, at most the link's.

    >>> flows = [throughput(bytes_in_flight(n), 596, link_bytes_per_s=450e9) for n in (8, 16, 32)]
    >>> [round(flow.bytes_per_s / 1e9) for flow in flows], flows[2].limited_by
    ([220, 440, 450], 'link')
    """
    _positive(in_flight_bytes=in_flight_bytes, latency_ns=latency_ns, link_bytes_per_s=link_bytes_per_s)
    by_latency = in_flight_bytes / latency_ns * 1e9
    return Throughput(
        bytes_per_s=min(by_latency, link_bytes_per_s),
        limited_by="latency" if by_latency < link_bytes_per_s else "link",
        needed_bytes=link_bytes_per_s * latency_ns / 1e9,
    )


@dataclass(frozen=True, slots=True)
class InFlight:
    """What a kernel keeps in flight on a link: bytes, and how long each stays there in ns."""

    bytes: float
    latency_ns: float

    def time_ns(self, moved_bytes: float) -> float:
        """Time that so many bytes take: bytes x latency / bytes in flight.

        An expert of 9.4 MB with 128 KiB in flight at 596 ns:

        >>> round(InFlight(128 * 1024, 596).time_ns(9_437_184))
        42912
        """
        return moved_bytes * self.latency_ns / self.bytes


def _positive(**values: float) -> None:
    for name, value in values.items():
        if not value > 0:
            raise WorkloadError(f"{name} must be above 0, not {value}.", "Check the number.")
