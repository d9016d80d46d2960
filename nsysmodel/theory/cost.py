"""The cost of an operation: one small frozen value that adds, scales and fuses.

Two byte counts are carried for each operation. `hbm_bytes` is what must come from or go to DRAM:
weights, KV cache, recurrent state. `strict_bytes` adds the activations that go in and out, which for one
step often stay in L2. A measured kernel may beat the second; it cannot beat the first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Cost:
    """Work of one execution of an operation on one device.

    Attributes:
        flop: floating-point operations by the engine and number format that runs them (`bf16`, `fp8`,
            `tf32`, `fp32`, …); one multiply-add is 2. `fp32` means the CUDA cores.
        weight_bytes: parameters read (with their scales).
        state_read_bytes: KV cache or recurrent state read.
        state_write_bytes: KV cache or recurrent state written.
        act_in_bytes: activations read.
        act_out_bytes: activations written.
        link_bytes: bytes over a link (NVLink, C2C, PCIe), per rank and direction.
        in_flight_ns: time that the link's bytes take by Little's law, bytes x latency / bytes in flight; 0
            where nothing is known of the requests.
        link: which link the bytes cross (`nvlink`, `c2c`, `pcie`, `host`); empty for the one between peers.

    >>> gemm = Cost(flop={"bf16": 2 * 1 * 5120 * 2048}, weight_bytes=5120 * 2048 * 2)
    >>> (gemm * 48).hbm_bytes
    1006632960
    """

    flop: Mapping[str, float] = field(default_factory=dict)
    weight_bytes: float = 0
    state_read_bytes: float = 0
    state_write_bytes: float = 0
    act_in_bytes: float = 0
    act_out_bytes: float = 0
    link_bytes: float = 0
    in_flight_ns: float = 0
    link: str = ""

    @property
    def hbm_read_bytes(self) -> float:
        """Bytes that must be read from DRAM."""
        return self.weight_bytes + self.state_read_bytes

    @property
    def hbm_write_bytes(self) -> float:
        """Bytes that must be written to DRAM."""
        return self.state_write_bytes

    @property
    def hbm_bytes(self) -> float:
        """Bytes that must cross DRAM."""
        return self.weight_bytes + self.state_read_bytes + self.state_write_bytes

    @property
    def act_bytes(self) -> float:
        """Activations in and out."""
        return self.act_in_bytes + self.act_out_bytes

    @property
    def strict_bytes(self) -> float:
        """Bytes when every distinct operand crosses DRAM once."""
        return self.hbm_bytes + self.act_bytes

    @property
    def total_flop(self) -> float:
        """Operations over all engines."""
        return sum(self.flop.values())

    def __add__(self, other: Cost) -> Cost:
        flop = dict(self.flop)
        for dtype, count in other.flop.items():
            flop[dtype] = flop.get(dtype, 0) + count
        return Cost(
            flop,
            self.weight_bytes + other.weight_bytes,
            self.state_read_bytes + other.state_read_bytes,
            self.state_write_bytes + other.state_write_bytes,
            self.act_in_bytes + other.act_in_bytes,
            self.act_out_bytes + other.act_out_bytes,
            self.link_bytes + other.link_bytes,
            self.in_flight_ns + other.in_flight_ns,
            self.link or other.link,
        )

    def __mul__(self, factor: float) -> Cost:
        return Cost(
            {dtype: count * factor for dtype, count in self.flop.items()},
            self.weight_bytes * factor,
            self.state_read_bytes * factor,
            self.state_write_bytes * factor,
            self.act_in_bytes * factor,
            self.act_out_bytes * factor,
            self.link_bytes * factor,
            self.in_flight_ns * factor,
            self.link,
        )

    __rmul__ = __mul__

    def fuse(self, following: Cost) -> Cost:
        """The cost of one kernel that does this and then `following`.

        What passes from the first to the second stays inside the kernel: at most the smaller of this
        output and that input is counted neither as written nor as read.

        >>> act = Cost(act_in_bytes=400, act_out_bytes=200).fuse(Cost(act_in_bytes=200, act_out_bytes=50))
        >>> act.act_in_bytes, act.act_out_bytes
        (400, 50)
        """
        inside = min(self.act_out_bytes, following.act_in_bytes)
        both = self + following
        return Cost(
            both.flop,
            both.weight_bytes,
            both.state_read_bytes,
            both.state_write_bytes,
            both.act_in_bytes - inside,
            both.act_out_bytes - inside,
            both.link_bytes,
            both.in_flight_ns,
            both.link,
        )


ZERO = Cost()


def total(costs: Iterable[Cost]) -> Cost:
    """The sum of costs."""
    result = ZERO
    for cost in costs:
        result = result + cost
    return result


def fused(costs: Iterable[Cost]) -> Cost:
    """The cost of one kernel that does all of `costs` in order."""
    result: Cost | None = None
    for cost in costs:
        result = cost if result is None else result.fuse(cost)
    return result or ZERO
