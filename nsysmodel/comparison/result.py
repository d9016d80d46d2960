"""The result of a comparison: frozen values that every output is printed from."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from nsysmodel.result import Diagnostic

if TYPE_CHECKING:
    import pandas as pd

SCHEMA = "nsysmodel.compare/1"
Change = Literal["improved", "regressed", "unchanged", "only_a", "only_b"]
Status = Literal["improved", "regressed", "mixed", "no_change", "not_comparable"]
CHANGES: tuple[Change, ...] = ("improved", "regressed", "unchanged", "only_a", "only_b")


@dataclass(frozen=True, slots=True)
class Thresholds:
    """What a change must exceed to be one.

    Attributes:
        relative: of the time in A.
        absolute_ns: per step.
        confidence: of every interval; 1 - confidence is also the rate of false alarms over all rows together.
    """

    relative: float = 0.01
    absolute_ns: float = 500.0
    confidence: float = 0.95


@dataclass(frozen=True, slots=True)
class Measure:
    """A time per step on both sides and what is known of its change.

    Attributes:
        a_ns, b_ns: median over the steps (mean of the runs' medians); None on a side without it.
        difference_ns: B minus A; None where a side lacks it.
        change_ratio: difference over A.
        low_ns, high_ns: confidence interval of the difference; None where there are too few steps.
        p, p_adjusted: probability of such a difference by chance; adjusted for the number of rows looked at.
        noise_ns: how much the runs shift by themselves.
        threshold_ns: the larger of the absolute and the relative threshold.
        change: the verdict on this row.
        reason: why, in words.
    """

    a_ns: float | None
    b_ns: float | None
    difference_ns: float | None
    change_ratio: float | None
    low_ns: float | None
    high_ns: float | None
    p: float | None
    p_adjusted: float | None
    noise_ns: float
    threshold_ns: float
    change: Change
    reason: str


@dataclass(frozen=True, slots=True)
class OpChange:
    """A row: an op, a kernel that no op claims, or copies.

    Attributes:
        op: its label on both sides together.
        kind: `op`, `kernel`, `graph` or `copy`.
        how: how the sides were paired: `op`, `name`, `renamed`, `replaced`.
        pair: place of its device pair.
        a_parts, b_parts: labels or kernel names that it is made of.
        a_launches, b_launches: kernels per step.
        a_floor_ns, b_floor_ns: floor per step; None without a model.
        a_ratio, b_ratio: median over floor; None where that says nothing (bound by launches, waits included).
        a_kernels, b_kernels: kernel names, most time first.
        share: of the step of A (of B where A lacks it).
        mean_difference_ns: its part in the difference waterfall, integer.
    """

    op: str
    kind: str
    how: str
    pair: int
    measure: Measure
    a_parts: tuple[str, ...]
    b_parts: tuple[str, ...]
    a_launches: float
    b_launches: float
    a_floor_ns: float | None
    b_floor_ns: float | None
    a_kernels: tuple[str, ...]
    b_kernels: tuple[str, ...]
    kernel_class: str
    share: float
    mean_difference_ns: int
    a_ratio: float | None = None
    b_ratio: float | None = None

    @property
    def change(self) -> Change:
        """The verdict on this row."""
        return self.measure.change


@dataclass(frozen=True, slots=True)
class DifferencePart:
    """One part of the difference waterfall: means per step, integers that add up exactly."""

    kind: str
    label: str
    a_ns: int
    b_ns: int
    difference_ns: int


@dataclass(frozen=True, slots=True)
class ClassChange:
    """Kernel time per step of one kernel class, means."""

    name: str
    a_ns: int
    b_ns: int
    difference_ns: int


@dataclass(frozen=True, slots=True)
class DevicePair:
    """The devices of A and B that stand for each other.

    `step` is about the whole window, `common` about the rows that both sides have. The waterfall starts at
    `a_mean_ns`, ends at `b_mean_ns`, and closes exactly.
    """

    index: int
    device: int
    gpu_a: str
    gpu_b: str
    unit: str
    steps_a: tuple[int, ...]
    steps_b: tuple[int, ...]
    step: Measure
    common: Measure
    only_a_ns: float
    only_b_ns: float
    a_mean_ns: int
    b_mean_ns: int
    waterfall: tuple[DifferencePart, ...]
    classes: tuple[ClassChange, ...] = ()


@dataclass(frozen=True, slots=True)
class ComparisonVerdict:
    """The sentence that opens every output, and the counts below it."""

    status: Status
    headline: str
    reasons: tuple[str, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunFacts:
    """One run of a side."""

    file: str
    status: str
    headline: str
    gpu: str
    steps: int
    graph_mode: str
    coverage: float | None
    workload: Mapping[str, Any]
    synthetic: bool = False


@dataclass(frozen=True, slots=True)
class Comparison:
    """Everything about B against A; `also` holds further exports against the same A."""

    version: str
    a: tuple[RunFacts, ...]
    b: tuple[RunFacts, ...]
    model: Mapping[str, Any] | None
    thresholds: Thresholds
    verdict: ComparisonVerdict
    pairs: tuple[DevicePair, ...]
    ops: tuple[OpChange, ...]
    diagnostics: tuple[Diagnostic, ...] = ()
    also: tuple[Comparison, ...] = ()
    command: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The JSON contract: `verdict.status`, `ops[].change`, … ready for `json.dumps`."""
        body: dict[str, Any] = {"schema": SCHEMA, "tool": {"version": self.version, "command": self.command}}
        for name in ("a", "b", "model", "thresholds", "verdict", "pairs", "ops", "diagnostics"):
            body[name] = _plain(getattr(self, name))
        body["also"] = [other.to_dict() for other in self.also]
        return body

    def to_frame(self) -> pd.DataFrame:
        """One row per op, columns as in the JSON; lists are joined with `, `."""
        import pandas as pd

        rows = [
            {key: ", ".join(value) if isinstance(value, list) else value for key, value in row.items()}
            for row in self.to_dict()["ops"]
        ]
        return pd.DataFrame(rows)


def _plain(value: Any) -> Any:
    """Dataclasses as mappings; the measure of an op stands beside its other fields."""
    if isinstance(value, OpChange):
        fields = {item.name: _plain(getattr(value, item.name)) for item in dataclasses.fields(value)}
        measure = fields.pop("measure")
        return {**{key: fields.pop(key) for key in ("op", "kind", "how", "pair")}, **measure, **fields}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {item.name: _plain(getattr(value, item.name)) for item in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value
