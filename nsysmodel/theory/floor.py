"""The floor of a cost on a device: the longest of its roofs.

floor = max over engines of F/P, over DRAM of B/W, over the link of L/W_link; where it is known what a kernel
keeps in flight on the link, also L x latency / bytes in flight (Little's law).
B is `hbm_bytes` when activations in and out take at most half of the L2 cache, else `strict_bytes`.

State that a kernel writes counts in full, as it must reach DRAM some time. A kernel whose written state fits
L2 may end before it does; where such a kernel beats its floor it is flagged `l2_resident`, with the bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from nsysmodel.errors import HardwareError
from nsysmodel.hardware.types import Hardware, Link
from nsysmodel.theory.cost import Cost

Bound = Literal["compute", "memory", "link", "latency", "none"]


@dataclass(frozen=True, slots=True)
class Floor:
    """Theoretical time of one execution, in ns (not rounded: floors are rounded once, when summed).

    Attributes:
        ns: the floor that ratios use.
        hbm_ns: the floor with `hbm_bytes`.
        strict_ns: the floor with `strict_bytes`.
        basis: which of the two `ns` is.
        bound: the roof that decides.
        dtype: the engine that decides where `bound` is `compute`, else empty.
        compute_ns, memory_ns, link_ns: the single roofs.
    """

    ns: float
    hbm_ns: float
    strict_ns: float
    basis: Literal["hbm", "strict"]
    bound: Bound
    dtype: str
    compute_ns: float
    memory_ns: float
    link_ns: float


def floor_of(cost: Cost, hardware: Hardware, *, link: str = "nvlink") -> Floor:
    """The floor of `cost` on `hardware`.

    Args:
        cost: work of one execution.
        hardware: peaks and bandwidths.
        link: which link `cost.link_bytes` cross where the cost does not say; PCIe where the device has no
            such link.

    Raises:
        HardwareError: the device has no peak for a number format that the cost uses.

    >>> from nsysmodel.workload import Sourced
    >>> gpu = Hardware("", "", "flag", {"bf16": Sourced(990e12, "flag")}, Sourced(4.0e12, "flag"))
    >>> qkv = Cost(flop={"bf16": 20.97e6}, weight_bytes=20_971_520, act_in_bytes=4096, act_out_bytes=10_240)
    >>> round(floor_of(qkv, gpu).hbm_ns, 1), floor_of(qkv, gpu).bound
    (5242.9, 'memory')
    """
    compute_ns, dtype = _compute(cost, hardware)
    bandwidth = hardware.bandwidth_bytes_per_s.value
    in_cache = hardware.l2_bytes == 0 or cost.act_bytes <= hardware.l2_bytes / 2
    hbm_memory_ns = cost.hbm_bytes / bandwidth * 1e9
    strict_memory_ns = cost.strict_bytes / bandwidth * 1e9
    memory_ns = hbm_memory_ns if in_cache else strict_memory_ns
    link_ns = 0.0
    if cost.link_bytes:
        found = link_for(cost, hardware, link)
        if found is not None:
            link_ns = cost.link_bytes / found.bytes_per_s * 1e9
        link_ns = max(link_ns, cost.in_flight_ns)
    roofs: list[tuple[float, Bound]] = [(memory_ns, "memory"), (compute_ns, "compute"), (link_ns, "link")]
    ns, bound = max(roofs, key=lambda roof: roof[0])
    return Floor(
        ns=ns,
        hbm_ns=max(compute_ns, hbm_memory_ns, link_ns),
        strict_ns=max(compute_ns, strict_memory_ns, link_ns),
        basis="hbm" if in_cache else "strict",
        bound=bound if ns > 0 else "none",
        dtype=dtype if bound == "compute" else "",
        compute_ns=compute_ns,
        memory_ns=memory_ns,
        link_ns=link_ns,
    )


def link_for(cost: Cost, hardware: Hardware, link: str = "nvlink") -> Link | None:
    """The link that the bytes of a cost cross: to the host C2C, else PCIe; to peers NVLink, else PCIe."""
    wanted = cost.link or link
    for name in ("c2c", "pcie") if wanted == "host" else (wanted, "pcie"):
        if name in hardware.links:
            return hardware.links[name]
    return None


def _compute(cost: Cost, hardware: Hardware) -> tuple[float, str]:
    """Time of the slowest engine in ns, and which it is."""
    longest, engine = 0.0, ""
    for dtype, flop in cost.flop.items():
        if not flop:
            continue
        peak = hardware.peak(dtype)
        if peak is None:
            known = ", ".join(sorted(hardware.peak_flop_per_s)) or "none"
            raise HardwareError(
                f"{hardware.name or 'The device'} has no {dtype} peak.",
                f"Give one with --peak {dtype}=…TFLOPS; known here: {known}.",
            )
        ns = flop / peak * 1e9
        if ns > longest:
            longest, engine = ns, dtype
    return longest, engine
