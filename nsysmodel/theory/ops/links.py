"""Kernels that read over a link while they run (zero-copy): experts or embeddings kept in host memory."""

from __future__ import annotations

from nsysmodel.errors import ModelError
from nsysmodel.theory.cost import Cost
from nsysmodel.theory.littles_law import InFlight
from nsysmodel.theory.ops.types import OpCost, Setting, number

LINKS = ("host", "c2c", "pcie", "nvlink")
"""Links that a model file may name; `host` is C2C where the device has it, else PCIe."""


def zero_copy(
    at: Setting, *, bytes: float, threads: float, latency: float, bytes_per_thread: float = 16, link: str = ""
) -> OpCost:
    """A gather over a link: max(bytes / link, bytes x latency / bytes in flight).

    Args:
        at: not used; every cost function takes it.
        bytes: what one execution moves.
        threads: threads that wait for a load at the same time.
        latency: ns from a load to its data.
        bytes_per_thread: bytes of one load.
        link: one of `LINKS`; the host's where empty.

    Raises:
        ModelError: nothing is in flight.

    An expert of 9.4 MB, 8 blocks of 1024 threads, 16 bytes each, 596 ns:

    >>> from nsysmodel.theory.formats import parse
    >>> bf16 = parse("bf16")
    >>> at = Setting("decode", 1, 1, 4096, bf16, bf16, bf16)
    >>> cost = zero_copy(at, bytes=9_437_184, threads=8192, latency=596).cost
    >>> round(cost.in_flight_ns), round(cost.link_bytes / cost.in_flight_ns)
    (42912, 220)
    """
    return zero_copy_cost(bytes, threads * bytes_per_thread, latency, link)


def zero_copy_cost(moved: float, in_flight_bytes: float, latency_ns: float, link: str = "") -> OpCost:
    """As `zero_copy`, from the bytes in flight.

    Raises:
        ModelError: nothing is in flight, or the latency is not above 0.
    """
    if not (in_flight_bytes > 0 and latency_ns > 0):
        raise ModelError(
            "A zero-copy kernel needs bytes in flight and a latency above 0.",
            "bytes in flight = threads x bytes_per_thread; latency in ns.",
        )
    flight = InFlight(in_flight_bytes, latency_ns)
    cost = Cost(link_bytes=moved, in_flight_ns=flight.time_ns(moved), link=link or "host")
    formula = f"{number(moved)} B over the link, {number(in_flight_bytes)} B in flight for {latency_ns:g} ns"
    return OpCost(cost, formula, in_flight=flight)
