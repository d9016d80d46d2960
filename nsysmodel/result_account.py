"""Rows of the account beside the waterfall: what could be gained, small kernels, launches, collectives.

Times called `total_ns` are integer sums over the used steps; `per_step_ns`, `recoverable_ns`, `saving_ns`
and the like are means per used step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Factor = Literal["cores", "width", "instructions", "clock"]
WaitSource = Literal["ranks", "steps", "none"]


@dataclass(frozen=True, slots=True)
class Reason:
    """A hypothesis why an op is slow: the factor of the peak that it doubts, and a sentence of evidence."""

    factor: Factor
    text: str


@dataclass(frozen=True, slots=True)
class LinkUse:
    """What one execution of an op moves over a link, and what the requests in flight let through.

    `limited_by` is `link`, or `in_flight` where too few bytes are in flight for the link. The bytes in
    flight and the latency are None for ops that state none. `needed_bytes` in flight would fill the link.
    """

    link: str
    bytes: float
    link_bytes_per_s: float
    bytes_per_s: float | None
    limited_by: Literal["link", "in_flight"]
    in_flight_bytes: float | None = None
    latency_ns: float | None = None
    possible_bytes_per_s: float | None = None
    needed_bytes: float | None = None


@dataclass(frozen=True, slots=True)
class RecoverableRow:
    """What a step gains if one op ran at its target, or at 80 % of it; gains of several ops add up.

    `target` is `floor`, `latency` (launches times the fixed cost) or `transfer` (a collective without its
    waiting). `ceiling` is how many times faster the step would be, T / (T − R); None where nothing remains.
    """

    op: str
    recoverable_ns: float
    recoverable_80_ns: float
    exclusive_ns: float
    ceiling: float | None
    ceiling_80: float | None
    share: float
    target: Literal["floor", "latency", "transfer"]
    total_ns: int


@dataclass(frozen=True, slots=True)
class SmallRunRow:
    """Small kernels that follow each other; `saving_ns` a step is the most that one fused kernel saves."""

    labels: tuple[str, ...]
    count: int
    total_ns: int
    per_step_ns: float
    saving_ns: float


@dataclass(frozen=True, slots=True)
class SmallSummary:
    """Kernels of at most `limit_ns` (three times T0) and the upper bound of what fusing neighbours saves."""

    t0_ns: int
    limit_ns: int
    count: int
    total_ns: int
    count_per_step: float
    per_step_ns: float
    saving_ns: float
    ceiling: float | None
    explanation: str
    runs: tuple[SmallRunRow, ...] = ()


@dataclass(frozen=True, slots=True)
class LaunchSummary:
    """Idle time because launches came late, and the upper bound of what CUDA graphs would save of it."""

    launches_per_step: float
    share_in_graphs: float
    total_ns: int
    per_step_ns: float
    saving_ns: float
    ceiling: float | None
    explanation: str


@dataclass(frozen=True, slots=True)
class CollectiveSummary:
    """Collectives of one op (or, where no op claims them, of one kind) over the used steps, integer sums.

    `transfer_ns` and `wait_ns` are None where nothing shows the split (`wait_source` is `none`). `bytes`
    are per rank and direction, None where no model says them. `floor_ns` is bytes over the link's rate,
    `latency_floor_ns` launches times the fixed cost; `bound` is the longer one. Waiting is in neither.
    """

    op: str
    count: int
    ranks: int
    total_ns: int
    transfer_ns: int | None
    wait_ns: int | None
    wait_source: WaitSource
    exposed_ns: int
    overlapped_ns: int
    per_step_ns: float
    exposed_per_step_ns: float
    bytes: float | None
    bytes_per_s: float | None
    link: str
    link_bytes_per_s: float | None
    floor_ns: float | None
    latency_floor_ns: float
    bound: Literal["link", "latency", "unknown"]
    explanation: str


@dataclass(frozen=True, slots=True)
class ClockFacts:
    """The SM clock while the used steps ran. `source` is `samples`, `flag` or `none` (not recorded)."""

    source: Literal["samples", "flag", "none"]
    samples: int
    median_hz: float | None
    p05_hz: float | None
    peak_hz: float | None
    fraction: float | None
    explanation: str
    command: str
