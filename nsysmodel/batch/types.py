"""What a batch is made of: planned runs, tasks for workers, rows of the index, and the whole result."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from nsysmodel.errors import NsysModelError
from nsysmodel.request import HardwareRequest, Selection
from nsysmodel.theory.scaling_fit import ScalingFit
from nsysmodel.workload import WorkloadRequest

if TYPE_CHECKING:
    from nsysmodel.export.cache_folder import Place
    from nsysmodel.model import ModelSpec

SCHEMA = "nsysmodel.batch/1"

Status = Literal["ok", "cannot_judge", "no_model", "failed"]
Fact = str | int


class BatchError(NsysModelError):
    """A batch cannot be started or gone on with; what is finished stays."""


class BatchUsageError(BatchError):
    """What was asked for a batch contradicts itself or the runs."""

    exit_code = 2


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """One export of a batch.

    Attributes:
        path: absolute path of the export.
        name: stem of its output files, unique in the batch.
        labels: what the user says of it.
        workload: what the user says of its workload.
    """

    path: str
    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    workload: WorkloadRequest = field(default_factory=WorkloadRequest)


@dataclass(frozen=True, slots=True)
class Request:
    """What is the same for all runs of a batch.

    `cache` is where workers keep decoded columns; results do not depend on it.
    """

    model: ModelSpec | None = None
    model_given: str | None = None
    hardware: HardwareRequest = field(default_factory=HardwareRequest)
    selection: Selection = field(default_factory=Selection)
    cache: Place | None = None


@dataclass(frozen=True, slots=True)
class Task:
    """One run as a worker gets it; it travels between processes and machines.

    Attributes:
        options: digest of everything but the export that the result depends on.
        known: key of the result that exists already, empty where there is none.
    """

    run: PlannedRun
    request: Request
    options: str
    known: str = ""


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run on the index page. Times are those of the export's main device.

    Attributes:
        name: stem of the output files.
        file: name of the export.
        status: `no_model` where none was given, `failed` where the export gave no result.
        headline: the verdict; for a failed run the error.
        hint: what to do about a failure.
        facts: what the export and the join say of the run (`FACTS` of `nsysmodel.batch.summary`).
        assumed: names of facts that nobody stated and the export does not show.
        steps: used steps; the times are None where there is none.
        step_ns, floor_ns: mean per used step.
        fraction_of_roofline: floor over measured; None where nothing is judged.
        coverage: share of kernel time that ops claim; None without a model.
        excess_op, excess_ns, excess_ratio: the op with the largest excess per step, its excess and ratio.
        idle_ns: time per step in which the device runs nothing.
    """

    name: str
    file: str
    status: Status
    headline: str
    hint: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    facts: Mapping[str, Fact] = field(default_factory=dict)
    assumed: tuple[str, ...] = ()
    steps: int = 0
    step_ns: float | None = None
    p05_ns: int | None = None
    p95_ns: int | None = None
    floor_ns: float | None = None
    fraction_of_roofline: float | None = None
    coverage: float | None = None
    tokens_per_s: float | None = None
    excess_op: str = ""
    excess_ns: float | None = None
    excess_ratio: float | None = None
    idle_ns: float | None = None
    warnings: int = 0

    def value(self, key: str) -> Fact | None:
        """What the run says of `key`: a label goes before a fact of the same name."""
        return self.labels.get(key, self.facts.get(key))

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {name: _plain(getattr(self, name)) for name in _ROW_FIELDS}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> RunRow:
        """The inverse of `to_dict`; fields that a later version added are left out.

        Raises:
            TypeError: a field without default is missing.
        """
        known = {name: data[name] for name in _ROW_FIELDS if name in data}
        known["assumed"] = tuple(known.get("assumed", ()))
        return cls(**known)


_ROW_FIELDS = tuple(item.name for item in dataclasses.fields(RunRow))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    return list(value) if isinstance(value, tuple) else value


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a worker gives back. Either `row` and `files` (by suffix), or `unchanged`, or a failed `row`."""

    name: str
    key: str
    row: RunRow | None = None
    files: Mapping[str, bytes] = field(default_factory=dict)
    unchanged: bool = False
    trace: str = ""


@dataclass(frozen=True, slots=True)
class Group:
    """Runs that may be set beside each other, in the order of the page.

    Attributes:
        title: what they have in common and other groups have not.
        keys: the values that they share.
        runs: names of the runs.
        least_ns, median_ns, most_ns: of their step times; None where no run has one.
    """

    title: str
    keys: Mapping[str, Fact]
    runs: tuple[str, ...]
    least_ns: float | None
    median_ns: float | None
    most_ns: float | None


@dataclass(frozen=True, slots=True)
class ScalingPoint:
    """One number of GPUs: the measured step times and the fitted one."""

    gpus: int
    runs: tuple[str, ...]
    step_ns: float
    fitted_ns: float
    speedup: float
    efficiency: float


@dataclass(frozen=True, slots=True)
class Scaling:
    """The scaling law of runs that differ in nothing but the number of GPUs.

    Attributes:
        title: what the runs have in common.
        base: the smallest number of GPUs; speed-up and efficiency are against it.
        fit: the fitted law.
        notes: how far it can be trusted.
    """

    title: str
    base: int
    points: tuple[ScalingPoint, ...]
    fit: ScalingFit
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Batch:
    """The whole result.

    Attributes:
        rows: every run on the page, in its order.
        common: facts and labels that all runs share.
        varying: names of facts and labels in which they differ.
        evaluated, unchanged: names of the runs that this call judged, and of those that it found done.
        hidden: names of earlier runs in the folder that are not on the page.
    """

    version: str
    rows: tuple[RunRow, ...]
    common: Mapping[str, Fact]
    varying: tuple[str, ...]
    groups: tuple[Group, ...]
    scaling: tuple[Scaling, ...]
    headline: str
    evaluated: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()

    @property
    def failed(self) -> tuple[RunRow, ...]:
        """Rows of the exports that gave no result."""
        return tuple(row for row in self.rows if row.status == "failed")

    def to_dict(self) -> dict[str, Any]:
        """The JSON beside the page; it says nothing of how much this call had to do."""
        return {
            "schema": SCHEMA,
            "tool": {"version": self.version},
            "headline": self.headline,
            "common": dict(self.common),
            "varying": list(self.varying),
            "runs": [row.to_dict() for row in self.rows],
            "groups": [
                {"title": group.title, "keys": dict(group.keys), "runs": list(group.runs),
                 "least_ns": group.least_ns, "median_ns": group.median_ns, "most_ns": group.most_ns}
                for group in self.groups
            ],
            "scaling": [_scaling(scaling) for scaling in self.scaling],
        }  # fmt: skip


def _scaling(scaling: Scaling) -> dict[str, Any]:
    fit = dataclasses.asdict(scaling.fit)
    best = scaling.fit.best_devices
    fit["parallel_fraction"] = scaling.fit.parallel_fraction
    fit["best_devices"] = best if best != float("inf") else None
    points = [{**dataclasses.asdict(point), "runs": list(point.runs)} for point in scaling.points]
    return {"title": scaling.title, "base": scaling.base, "fit": fit, "points": points,
            "notes": list(scaling.notes)}  # fmt: skip
