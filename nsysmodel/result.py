"""The result of an evaluation: frozen values that every output is printed from.

A renderer computes nothing: whatever a page, a comment or a table shows stands here. `to_dict` writes the
JSON contract; fields are only ever added to it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from nsysmodel.result_account import (
    ClockFacts,
    CollectiveSummary,
    LaunchSummary,
    LinkUse,
    Reason,
    RecoverableRow,
    SmallSummary,
)
from nsysmodel.result_export import Diagnostic as Diagnostic
from nsysmodel.result_export import ExportFacts as ExportFacts
from nsysmodel.result_what_if import WhatIf

SCHEMA = "nsysmodel.report/1"

DropReason = Literal[
    "warm_up", "partial", "open_end", "outlier", "other_phase", "other_batch", "outside_selection"
]
Flag = Literal[
    "l2_resident",
    "beats_floor",
    "wrong_workload",
    "wrong_peak",
    "wait_included",
    "low_confidence",
    "assumed_workload",
]
GAP_CAUSES = ("inside_graph", "launch_starved", "sync", "dependency", "profiler", "unknown")
GAP_SIZES = ("<1us", "1-5us", "5-50us", "50-500us", ">500us")


@dataclass(frozen=True, slots=True)
class Verdict:
    """The sentence that opens every output."""

    status: Literal["ok", "cannot_judge"]
    headline: str
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DroppedStep:
    """A step that is not judged, by its number among all that were found."""

    index: int
    reason: DropReason


@dataclass(frozen=True, slots=True)
class StepCluster:
    """Steps of one phase and batch. `source` says how phase and batch are known."""

    phase: str
    batch: int | None
    tokens: int | None
    source: str
    steps: int
    used: bool
    median_ns: int
    floor_ns: float | None = None


@dataclass(frozen=True, slots=True)
class Steps:
    """The steps of one device. Durations are those of the used steps' windows."""

    found: int
    used: int
    dropped: tuple[DroppedStep, ...]
    layers: int
    median_ns: int
    p05_ns: int
    p95_ns: int
    method: str = ""
    used_indices: tuple[int, ...] = ()
    clusters: tuple[StepCluster, ...] = ()


@dataclass(frozen=True, slots=True)
class StepTotals:
    """Mean per used step. `fraction_of_roofline` is floor / measured; None where it cannot be judged."""

    measured_ns: float
    floor_ns: float | None
    fraction_of_roofline: float | None
    total_ns: int
    floor_total_ns: int | None
    busy_ns: float
    floor_hbm_ns: float | None = None
    floor_strict_ns: float | None = None
    max_sum_bound_ns: float | None = None
    weights_once_ns: float | None = None
    weights_once_bytes: float | None = None
    t0_ns: float | None = None
    tokens_per_step: int | None = None
    tokens_per_s: Mapping[str, float | None] = field(default_factory=dict)
    """`measured` and `bound`."""


@dataclass(frozen=True, slots=True)
class WaterfallPart:
    """One part of the account. Parts of a device sum to `window_total_ns` exactly; overlap is negative."""

    kind: Literal["floor", "excess", "unmodeled", "copy", "gap", "overlap"]
    label: str
    total_ns: int
    op: str | None = None
    cause: str | None = None


@dataclass(frozen=True, slots=True)
class KernelUse:
    """Kernels of one name and launch shape that serve an op (or, with no op, that exist)."""

    name: str
    grid: str
    block: str
    instances: int
    total_ns: int
    median_ns: int
    min_ns: int = 0
    max_ns: int = 0
    kernel_class: str = ""
    op: str | None = None
    share: float = 0.0
    launch_skip: int | None = None
    """Launches of the same kernel, by name, in the capture before the first of these in a used step."""


@dataclass(frozen=True, slots=True)
class OpRow:
    """One op of the model over the used steps.

    `measured_ns`, `floor_ns`, `excess_ns` are means per used step; `total_ns` and `floor_total_ns` are
    integer sums. `ratio` is None where the bound is `latency` or the op cannot be judged.
    """

    op: str
    instances: int
    kernels_per_instance: float
    measured_ns: float
    floor_ns: float | None
    ratio: float | None
    excess_ns: float | None
    bound: str
    flop: float
    hbm_bytes: float
    confidence: float
    share: float
    flags: tuple[Flag, ...]
    total_ns: int
    floor_total_ns: int | None
    strict_bytes: float = 0
    floor_hbm_ns: float | None = None
    floor_strict_ns: float | None = None
    floor_basis: str = "hbm"
    latency_floor_ns: float | None = None
    flop_per_s: float | None = None
    bytes_per_s: float | None = None
    fraction_of_peak: float | None = None
    intensity: float | None = None
    dtype: str = ""
    expected_instances: int = 0
    median_ns: int = 0
    p05_ns: int = 0
    p95_ns: int = 0
    recoverable_ns: float | None = None
    formula: str = ""
    explanation: str = ""
    kernels: tuple[KernelUse, ...] = ()
    layers_ns: tuple[float, ...] = ()
    """Mean measured ns of this op in each layer; empty for ops of head and tail."""
    recoverable_80_ns: float | None = None
    reasons: tuple[Reason, ...] = ()
    """Hypotheses why it is slow, each with its evidence; never a verdict."""
    link_use: LinkUse | None = None


@dataclass(frozen=True, slots=True)
class UnmodeledRow:
    """Measured kernel time that no op claims, by kernel name, with a model line ready to paste."""

    name: str
    instances: int
    total_ns: int
    share: float
    kernel_class: str = ""
    layer_share: float = 0.0
    model_line: str = ""


@dataclass(frozen=True, slots=True)
class MissingRow:
    """An op that the model expects and no kernel serves. `fused_into` where a kernel may contain it."""

    op: str
    expected: int = 0
    floor_ns: float = 0.0
    fused_into: str = ""


@dataclass(frozen=True, slots=True)
class GapPlace:
    """A place of the step at which the device idles again and again."""

    after: str
    before: str
    cause: str
    count: int
    total_ns: int
    median_ns: int
    explanation: str = ""


@dataclass(frozen=True, slots=True)
class GapBucket:
    """Gaps of one size class."""

    count: int
    total_ns: int


@dataclass(frozen=True, slots=True)
class Gaps:
    """Time in the used windows in which the device runs nothing at all."""

    by_cause: Mapping[str, int]
    by_size: Mapping[str, GapBucket]
    places: tuple[GapPlace, ...] = ()


@dataclass(frozen=True, slots=True)
class TransferRow:
    """Copies of one kind: bytes, effective bandwidth, and what of them no kernel hides."""

    kind: str
    memory: str
    count: int
    bytes: int
    total_ns: int
    exposed_ns: int
    bytes_per_s: float | None
    link: str = ""
    link_bytes_per_s: float | None = None
    ratio: float | None = None
    hidden_ns: int = 0
    explanation: str = ""


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much of what was measured the model claims, and of what the model expects was found."""

    kernel_time_modeled: float
    kernel_count_modeled: float
    kernel_time_ns: int = 0
    closure: tuple[Mapping[str, Any], ...] = ()
    """One entry per op: `op`, `expected` and `found` per step, `closes`."""


@dataclass(frozen=True, slots=True)
class LayerHeat:
    """Measured and floor of one layer, mean per used step."""

    layer: int
    kind: str
    measured_ns: float
    floor_ns: float


@dataclass(frozen=True, slots=True)
class LearnedKernel:
    """One line of a learned layer: which kernel runs at which place, and which op it was taken for."""

    name: str
    grid: str
    stream: int
    op: str | None
    median_ns: int
    floor_ns: float | None
    confidence: float


@dataclass(frozen=True, slots=True)
class LearnedLayer:
    """One layer of each kind, in launch order, as the join understood it."""

    kind: str
    layer: int | None
    kernels: tuple[LearnedKernel, ...]


@dataclass(frozen=True, slots=True)
class TimelineBar:
    """One activity of the shown step; times relative to the window's start."""

    start_ns: int
    duration_ns: int
    lane: str
    label: str
    op: str | None
    kind: Literal["kernel", "copy", "memset", "graph", "gap"]
    cause: str | None = None
    merged: int = 1


@dataclass(frozen=True, slots=True)
class Timeline:
    """The median step. Bars below the drawing limit are merged, and `merged` says how many."""

    step: int
    window_ns: int
    bars: tuple[TimelineBar, ...]


@dataclass(frozen=True, slots=True)
class MedianStep:
    """The account of the step of median length (the lower one of two); its parts sum to `window_ns`."""

    step: int
    window_ns: int
    waterfall: tuple[WaterfallPart, ...]


@dataclass(frozen=True, slots=True)
class DeviceResult:
    """Everything about one process on one device."""

    process: int
    device: int
    name: str
    steps: Steps
    step: StepTotals
    waterfall: tuple[WaterfallPart, ...]
    window_total_ns: int
    ops: tuple[OpRow, ...]
    unmodeled: tuple[UnmodeledRow, ...]
    missing: tuple[MissingRow, ...]
    gaps: Gaps
    transfers: tuple[TransferRow, ...]
    coverage: Coverage
    kernels: tuple[KernelUse, ...] = ()
    layers: tuple[LayerHeat, ...] = ()
    learned: tuple[LearnedLayer, ...] = ()
    timeline: Timeline | None = None
    median_step: MedianStep | None = None
    recoverable: tuple[RecoverableRow, ...] = ()
    """Ops by what the step would gain, most first."""
    small: SmallSummary | None = None
    """None where the export does not show the fixed cost of a kernel."""
    launch: LaunchSummary | None = None
    collectives: tuple[CollectiveSummary, ...] = ()
    clock: ClockFacts | None = None
    export_index: int = 0
    """Which of `Evaluation.exports` this device is from."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The whole result. `hardware`, `workload` and `model` are plain mappings ready for JSON.

    `hardware`: `name`, `source`, `bandwidth_bytes_per_s`, `pin_bandwidth_bytes_per_s`, `peak_flop_per_s`
    ({dtype: number}), `sm_count`, `clock_hz`, `l2_bytes`, `sources` ({value: sentence}).
    `workload`: {parameter: {"value", "source"}}. `model`: `name`, `source`, `layers`, `parameters`, `notes`;
    None without a model.
    """

    version: str
    export: ExportFacts
    hardware: Mapping[str, Any]
    workload: Mapping[str, Any]
    model: Mapping[str, Any] | None
    verdict: Verdict
    devices: tuple[DeviceResult, ...]
    diagnostics: tuple[Diagnostic, ...]
    fits: tuple[Mapping[str, Any], ...] = ()
    """Bundled models whose structure fits, where no model was given or the given one does not fit."""
    command: str = ""
    what_if: WhatIf | None = None
    """Floors of other workloads for the first device; None where nothing is judged or the model is flat."""
    exports: tuple[ExportFacts, ...] = ()
    """What was read, one entry per export; `export` is the first."""

    def to_dict(self) -> dict[str, Any]:
        """The JSON contract, ready for `json.dumps`."""
        body: dict[str, Any] = {"schema": SCHEMA, "tool": {"version": self.version, "command": self.command}}
        names = (
            "export", "hardware", "workload", "model", "verdict", "devices", "diagnostics", "fits", "what_if",
            "exports",
        )  # fmt: skip
        for name in names:
            body[name] = _plain(getattr(self, name))
        return body


def _plain(value: Any) -> Any:
    """Dataclasses, tuples and mappings as dicts and lists, recursively; numbers of numpy as Python's."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if hasattr(value, "item") and not isinstance(value, (str, bytes)):
        return value.item()
    return value
