"""The floors of a model on a GPU, without any export.

Method 1 adds up the floors of all ops; method 2 loads every needed weight once per step. Neither is a
prediction: no step can be faster, real ones are slower.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nsysmodel.errors import ModelError, WorkloadError
from nsysmodel.hardware.types import Hardware
from nsysmodel.model import LayeredSpec, ModelSpec, load, resolve_workload
from nsysmodel.model.types import Op, StepModel
from nsysmodel.theory.cost import Cost, fused, total
from nsysmodel.theory.floor import Floor, floor_of
from nsysmodel.workload import Workload, WorkloadRequest

if TYPE_CHECKING:
    import pandas as pd

SCHEMA = "nsysmodel.estimate/1"
JOINED = (("qk_norm", "rope"),)
"""Neighbours that engines commonly run as one kernel: what passes between them is not counted."""


@dataclass(frozen=True, slots=True)
class OpEstimate:
    """One op over the whole step; per execution where its executions are alike.

    Attributes:
        op, kind, bound, dtype: as in the report.
        count: executions per step.
        flop, weight_bytes, state_bytes, act_bytes, link_bytes: sums over the step.
        floor_ns, floor_hbm_ns, floor_strict_ns: sums over the step.
        min_floor_ns: floor_ns with hard lower bounds in place of expectations (experts, states).
        formula: the formula of one execution with the numbers put in.
    """

    op: str
    kind: str
    count: int
    flop: float
    weight_bytes: float
    state_bytes: float
    act_bytes: float
    link_bytes: float
    floor_ns: float
    floor_hbm_ns: float
    floor_strict_ns: float
    min_floor_ns: float
    bound: str
    dtype: str
    formula: str

    @property
    def hbm_bytes(self) -> float:
        """Bytes that must cross DRAM."""
        return self.weight_bytes + self.state_bytes

    def to_dict(self) -> dict[str, Any]:
        """Plain fields."""
        body = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {**body, "hbm_bytes": self.hbm_bytes}


@dataclass(frozen=True, slots=True)
class Estimate:
    """The floors of one step of a model on a device, for one rank.

    Attributes:
        model: the step model.
        hardware: the device.
        ops: in execution order of their first place.
        weights_once_ns: method 2.
        max_sum_ns: max(ΣF/P, ΣB/W): the bound where everything overlaps.
        tokens_per_step: tokens that one step yields over all ranks (new tokens in prefill).
    """

    model: StepModel
    hardware: Hardware
    ops: tuple[OpEstimate, ...]
    weights_once_ns: float
    max_sum_ns: float
    tokens_per_step: float

    @property
    def floor_ns(self) -> float:
        """Sum of the floors, each on the basis that its activations call for."""
        return sum(op.floor_ns for op in self.ops)

    @property
    def floor_hbm_ns(self) -> float:
        """Sum of the floors with weights, KV cache and state only."""
        return sum(op.floor_hbm_ns for op in self.ops)

    @property
    def floor_strict_ns(self) -> float:
        """Sum of the floors with activations too."""
        return sum(op.floor_strict_ns for op in self.ops)

    @property
    def tokens_per_s(self) -> float:
        """Tokens per second at the floor, over all ranks."""
        return self.tokens_per_step / self.floor_ns * 1e9 if self.floor_ns else 0.0

    @property
    def fits(self) -> bool | None:
        """Whether weights and KV cache fit in the device's memory; None where that is not known."""
        size = self.hardware.memory_bytes
        return self.model.memory_bytes <= size if size else None

    @property
    def verdict(self) -> str:
        """One sentence."""
        from nsysmodel import units

        workload = self.model.workload
        what = "prefill" if workload.phase.value == "prefill" else "decode"
        names = [name for name in ("phase", "batch", "context", "tokens") if name in workload.assumed]
        told = ", ".join(f"{name} {getattr(workload, name).value}" for name in names)
        device = self.hardware.key or self.hardware.name
        return (
            f"{self.model.name} on {device}: a {what} step takes at least "
            f"{units.ns(self.floor_ns, 4)}, which is at most "
            f"{units.significant(self.tokens_per_s, 4)} tokens/s" + (f" (assuming {told})." if told else ".")
        )

    def to_dict(self) -> dict[str, Any]:
        """The JSON of `nsysmodel estimate`."""
        model, workload = self.model, self.model.workload
        return {
            "schema": SCHEMA,
            "model": {
                "name": model.name,
                "source": model.source,
                "layers": len(model.layers),
                "parameters": model.parameters,
                "active_parameters": model.active_parameters,
                "notes": list(model.notes),
            },
            "workload": {
                name: {"value": getattr(workload, name).value, "source": getattr(workload, name).source}
                for name in workload.__dataclass_fields__
            },
            "hardware": {
                "key": self.hardware.key,
                "name": self.hardware.name,
                "source": self.hardware.source,
                "bandwidth_bytes_per_s": self.hardware.bandwidth_bytes_per_s.value,
                "peak_flop_per_s": {
                    dtype: peak.value for dtype, peak in self.hardware.peak_flop_per_s.items()
                },
                "memory_bytes": self.hardware.memory_bytes,
            },
            "floor_ns": round(self.floor_ns),
            "floor_hbm_ns": round(self.floor_hbm_ns),
            "floor_strict_ns": round(self.floor_strict_ns),
            "weights_once_ns": round(self.weights_once_ns),
            "weights_once_bytes": round(model.weights_once_bytes),
            "max_sum_bound_ns": round(self.max_sum_ns),
            "min_floor_ns": round(sum(op.min_floor_ns for op in self.ops)),
            "tokens_per_step": self.tokens_per_step,
            "tokens_per_s": round(self.tokens_per_s, 3),
            "memory": {
                "needed_bytes": round(model.memory_bytes),
                "available_bytes": self.hardware.memory_bytes or None,
                "fits": self.fits,
            },
            "ops": [op.to_dict() for op in self.ops],
        }

    def to_frame(self) -> pd.DataFrame:
        """One row per op."""
        import pandas as pd

        return pd.DataFrame([op.to_dict() for op in self.ops])


def estimate(
    model: str | ModelSpec,
    *,
    gpu: str | None = None,
    hardware: Hardware | None = None,
    request: WorkloadRequest | None = None,
    distinct_experts: float | None = None,
    acceptance: float | None = None,
    **workload: Any,
) -> Estimate:
    """The floors of a model on a GPU.

    Args:
        model: a bundled name, a path, or a loaded model.
        gpu: a name of the catalogue; or give `hardware`.
        hardware: the device.
        request: workload flags; or give them by name: `batch=16, context=8192, tp=8, …`.
        distinct_experts: measured distinct experts per layer on a rank, in place of the expectation.
        acceptance: probability that a draft token of a speculative verify is accepted.

    Raises:
        NsysModelError: the model, the workload or the hardware is wrong.

    >>> result = estimate("qwen3-30b", gpu="gh200", batch=1, context=4096)
    >>> result.to_dict()["floor_hbm_ns"], round(result.tokens_per_s, 1)
    (1621691, 616.6)
    """
    spec = load(model) if isinstance(model, str) else model
    if not isinstance(spec, LayeredSpec):
        hint = "A flat model is judged launch by launch: use it with report."
        raise ModelError(f"{spec.name} is a flat list of kernels and has no step to estimate.", hint)
    if hardware is None:
        from nsysmodel.hardware.resolve import resolve

        hardware = resolve(gpu)
    resolved = resolve_workload(request or WorkloadRequest(**workload), spec)
    step = spec.build(resolved, hardware, distinct_experts=distinct_experts)
    return of_step(step, hardware, acceptance)


def of_step(step: StepModel, hardware: Hardware, acceptance: float | None = None) -> Estimate:
    """The estimate of a built step."""
    bandwidth = hardware.bandwidth_bytes_per_s.value
    whole = floor_of(step.cost, hardware)
    return Estimate(
        model=step,
        hardware=hardware,
        ops=_rows(step, hardware),
        weights_once_ns=step.weights_once_bytes / bandwidth * 1e9,
        max_sum_ns=whole.hbm_ns,
        tokens_per_step=_tokens(step.workload, acceptance),
    )


def _tokens(workload: Workload, acceptance: float | None) -> float:
    """Tokens that one step yields over all data-parallel ranks."""
    sequences = workload.batch.value * workload.data_parallel.value
    new = workload.tokens.value
    if workload.phase.value == "prefill" or new == 1:
        return sequences * new
    if acceptance is None:
        return sequences * new
    if not 0 <= acceptance <= 1:
        raise WorkloadError(f"An acceptance of {acceptance:g} is not a probability.", "Give 0 to 1.")
    return sequences * accepted_tokens(new - 1, acceptance)


def accepted_tokens(drafts: int, acceptance: float) -> float:
    """Tokens per verify step: (1 − α^(γ+1)) / (1 − α) for γ drafts of acceptance α each.

    >>> round(accepted_tokens(3, 0.8), 3)
    2.952
    """
    if acceptance == 1:
        return drafts + 1.0
    return (1 - math.pow(acceptance, drafts + 1)) / (1 - acceptance)


@dataclass(slots=True)
class _Sum:
    """Executions of one op that were seen so far."""

    op: Op
    count: int
    cost: Cost
    least: float
    floors: list[Floor]
    bounds: dict[tuple[str, str], float]


def _rows(step: StepModel, hardware: Hardware) -> tuple[OpEstimate, ...]:
    """One row per op id, in order of first appearance; like layers are evaluated once."""
    sums: dict[str, _Sum] = {}
    groups: list[tuple[tuple[Op, ...], int]] = [(step.head, 1)]
    groups += [(ops, step.layers.count(kind)) for kind, ops in step.kinds.items()]
    groups.append((step.tail, 1))
    for ops, times in groups:
        if times:
            for label, members in _joined(ops):
                _add(sums, label, members, times, hardware)
    return tuple(_row(label, item) for label, item in sums.items())


def _joined(ops: tuple[Op, ...]) -> list[tuple[str, tuple[Op, ...]]]:
    """Ops with neighbours of `JOINED` taken together."""
    result: list[tuple[str, tuple[Op, ...]]] = []
    index = 0
    while index < len(ops):
        pair = ops[index : index + 2]
        if tuple(op.id for op in pair) in JOINED:
            result.append(("+".join(op.id for op in pair), pair))
            index += 2
        else:
            result.append((ops[index].id, ops[index : index + 1]))
            index += 1
    return result


def _add(sums: dict[str, _Sum], label: str, members: tuple[Op, ...], times: int, hardware: Hardware) -> None:
    """Adds `times` executions of one op (or of a joined pair)."""
    cost = fused(op.cost for op in members)
    floor = floor_of(cost, hardware)
    least = floor_of(fused(op.min_cost or op.cost for op in members), hardware).ns
    item = sums.setdefault(label, _Sum(members[0], 0, Cost(), 0.0, [], {}))
    item.count += times
    item.cost = total((item.cost, cost * times))
    item.least += least * times
    item.floors += [floor] * times
    key = (floor.bound, floor.dtype)
    item.bounds[key] = item.bounds.get(key, 0.0) + floor.ns * times


def _row(label: str, item: _Sum) -> OpEstimate:
    bound, dtype = max(item.bounds, key=lambda key: item.bounds[key])
    cost = item.cost
    return OpEstimate(
        op=label,
        kind=item.op.kind,
        count=item.count,
        flop=cost.total_flop,
        weight_bytes=cost.weight_bytes,
        state_bytes=cost.state_read_bytes + cost.state_write_bytes,
        act_bytes=cost.act_bytes,
        link_bytes=cost.link_bytes,
        floor_ns=math.fsum(floor.ns for floor in item.floors),
        floor_hbm_ns=math.fsum(floor.hbm_ns for floor in item.floors),
        floor_strict_ns=math.fsum(floor.strict_ns for floor in item.floors),
        min_floor_ns=item.least,
        bound=bound,
        dtype=dtype,
        formula=item.op.formula,
    )


def from_counts(
    parameters: float,
    *,
    hardware: Hardware,
    bytes_per_parameter: float,
    active: float | None = None,
    gpus: int | None = None,
) -> Mapping[str, Any]:
    """Method 2 from two counts: no model file needed.

    Args:
        parameters: all parameters.
        hardware: the device.
        bytes_per_parameter: with scales.
        active: parameters that one token uses; all where None.
        gpus: devices; as many as hold the weights where None.

    Raises:
        WorkloadError: more active parameters than there are.

    >>> from nsysmodel.hardware.resolve import resolve
    >>> result = from_counts(1e12, hardware=resolve("gh200"), bytes_per_parameter=2)
    >>> result["gpus_needed"], result["one_gpu_ns"], round(result["ns_per_token"] / 1e6, 1)
    (21, 500000000, 23.8)
    """
    active = parameters if active is None else active
    if not 0 < active <= parameters:
        raise WorkloadError(f"{active:g} active of {parameters:g} parameters cannot be.", "Check --active.")
    bandwidth, memory = hardware.bandwidth_bytes_per_s.value, hardware.memory_bytes
    size, moved = parameters * bytes_per_parameter, active * bytes_per_parameter
    needed = math.ceil(size / memory) if memory else None
    used = gpus or needed or 1
    one = moved / bandwidth * 1e9
    return {
        "schema": f"{SCHEMA}-counts",
        "parameters": parameters,
        "active_parameters": active,
        "weight_bytes": round(size),
        "bytes_per_token": round(moved),
        "gpus_needed": needed,
        "gpus": used,
        "fits": None if needed is None else used >= needed,
        "one_gpu_ns": round(one),
        "ns_per_token": round(one / used),
        "tokens_per_s": round(used / one * 1e9, 3),
        "hardware": {
            "key": hardware.key,
            "name": hardware.name,
            "bandwidth_bytes_per_s": bandwidth,
            "memory_bytes": memory,
        },
    }
