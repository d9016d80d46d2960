"""One row of the index from an evaluation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nsysmodel.batch.types import Fact, PlannedRun, RunRow, Status
from nsysmodel.result import DeviceResult, Evaluation

FACTS = (
    "model", "gpu", "phase", "batch", "context", "tokens", "dtype", "quant", "kv_dtype", "tp", "ep", "dp",
    "gpus", "devices", "graphs", "nsys",
)  # fmt: skip
"""Names of the facts of a run, in the order in which people read them."""

WORKLOAD = {
    "phase": "phase", "batch": "batch", "context": "context", "tokens": "tokens", "dtype": "dtype",
    "quant": "quant", "kv_dtype": "kv_dtype", "tensor_parallel": "tp", "expert_parallel": "ep",
    "data_parallel": "dp",
}  # fmt: skip


def summarise(run: PlannedRun, evaluation: Evaluation) -> RunRow:
    """The row of a run: the numbers of the main device, as the report of the run shows them."""
    device = evaluation.devices[0]
    status: Status = "no_model" if evaluation.model is None else evaluation.verdict.status
    judged = status == "ok"
    used = device.steps.used
    measured = bool(used)
    op, excess_ns, ratio = _largest_excess(device) if judged else ("", None, None)
    facts, assumed = _facts(evaluation, device)
    return RunRow(
        name=run.name,
        file=evaluation.export.file,
        status=status,
        headline=evaluation.verdict.headline,
        labels=dict(run.labels),
        facts=facts,
        assumed=assumed,
        steps=used,
        step_ns=device.step.measured_ns if measured else None,
        p05_ns=device.steps.p05_ns if measured else None,
        p95_ns=device.steps.p95_ns if measured else None,
        floor_ns=device.step.floor_ns if judged else None,
        fraction_of_roofline=device.step.fraction_of_roofline if judged else None,
        coverage=device.coverage.kernel_time_modeled if evaluation.model is not None else None,
        tokens_per_s=device.step.tokens_per_s.get("measured") if judged else None,
        excess_op=op,
        excess_ns=excess_ns,
        excess_ratio=ratio,
        idle_ns=sum(device.gaps.by_cause.values()) / used if measured else None,
        warnings=sum(item.severity != "info" for item in evaluation.diagnostics),
    )


def failed(run: PlannedRun, file: str, message: str, hint: str = "") -> RunRow:
    """The row of an export that gave no result."""
    return RunRow(run.name, file, "failed", message, hint, labels=dict(run.labels))


def _largest_excess(device: DeviceResult) -> tuple[str, float | None, float | None]:
    judged = [op for op in device.ops if op.excess_ns is not None and op.excess_ns > 0]
    if not judged:
        return "", None, None
    worst = max(judged, key=lambda op: (op.excess_ns or 0.0, op.op))
    return worst.op, worst.excess_ns, worst.ratio


def _facts(evaluation: Evaluation, device: DeviceResult) -> tuple[dict[str, Fact], tuple[str, ...]]:
    found: dict[str, Any] = {
        "model": (evaluation.model or {}).get("name"),
        "gpu": evaluation.hardware.get("name") or device.name,
        "devices": len(evaluation.devices),
        "graphs": evaluation.export.graph_mode,
        "nsys": evaluation.export.product_version,
    }
    assumed = []
    for parameter, name in WORKLOAD.items():
        entry = evaluation.workload.get(parameter)
        if not isinstance(entry, Mapping) or entry.get("value") in (None, ""):
            continue
        found[name] = entry["value"]
        if entry.get("source") == "assumed":
            assumed.append(name)
    if "tp" in found and "dp" in found and not {"tp", "dp"} <= set(assumed):
        # Two assumed sizes of 1 are no evidence of a run on one GPU.
        found["gpus"] = int(found["tp"]) * int(found["dp"])
    facts = {name: found[name] for name in FACTS if found.get(name) not in (None, "")}
    return facts, tuple(assumed)
