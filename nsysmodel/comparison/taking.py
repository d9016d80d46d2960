"""From an export to a snapshot, with a model or without."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nsysmodel.comparison.snapshot import DeviceSnapshot, Part, Snapshot, is_baseline, read_snapshot
from nsysmodel.request import HardwareRequest, Selection
from nsysmodel.workload import WorkloadRequest

if TYPE_CHECKING:
    from nsysmodel.export.run import Run
    from nsysmodel.join.types import Join
    from nsysmodel.join.vocabulary import Vocabulary
    from nsysmodel.judge.cases import Case
    from nsysmodel.judge.judged import Judged
    from nsysmodel.judge.steptable import StepTable
    from nsysmodel.model import ModelSpec
    from nsysmodel.result import OpRow

MOST_STEPS = 500
"""Steps that a snapshot keeps, the last ones: they are the most settled."""
SEQUENCE = 6_000
"""Kernels of the usual step that a snapshot keeps, to pair renamed ones by position."""
SHOWN_WORKLOAD = (
    "phase", "batch", "context", "tokens", "dtype", "quant", "kv_dtype", "tensor_parallel", "expert_parallel",
    "data_parallel", "logits",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked of every run of a comparison."""

    model: str | ModelSpec | None = None
    workload: WorkloadRequest = field(default_factory=WorkloadRequest)
    hardware: HardwareRequest = field(default_factory=HardwareRequest)
    selection: Selection = field(default_factory=Selection)


def snapshot(export: str | os.PathLike[str] | Run | Snapshot, asked: Asked) -> Snapshot:
    """A run reduced to what a comparison needs. A baseline file is read as it is.

    Raises:
        ExportError: the export cannot be read or holds no kernel.
        ModelError, HardwareError: as in `evaluate`.
    """
    from nsysmodel.export.run import Run, open_run

    if isinstance(export, Snapshot):
        return export
    if isinstance(export, Run):
        return _taken(export, asked)
    if is_baseline(Path(export)):
        return read_snapshot(Path(export))
    with open_run(export) as run:
        return _taken(run, asked)


def _taken(run: Run, asked: Asked) -> Snapshot:
    from importlib.metadata import version

    from nsysmodel.analyze import cases_of, spec_of
    from nsysmodel.join.vocabulary import load as load_vocabulary
    from nsysmodel.judge.judged import judge_case
    from nsysmodel.judge.plain import model_facts

    vocabulary, spec = load_vocabulary(), spec_of(asked.model)
    devices, first = [], None
    for case in cases_of(run, asked.selection):
        judged = judge_case(
            run, case, spec, vocabulary, asked.workload, asked.hardware, asked.selection
        )  # fmt: skip
        first = first or judged
        devices.append(_device(case, judged, vocabulary))
    assert first is not None
    facts = run.facts
    return Snapshot(
        file=facts.file,
        version=version("nsysmodel"),
        model=_model(model_facts(first.model) or {}) if spec is not None else None,
        status=first.verdict.status if spec is not None else "cannot_judge",
        headline=first.verdict.headline,
        graph_mode=facts.graph_mode,
        completeness=facts.completeness,
        devices=tuple(devices),
        synthetic=facts.synthetic,
        notes=tuple(d.message for d in run.diagnostics if d.severity != "info"),
    )


def _model(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Facts of the model that tell it from others; of a file only its name, no folder of this machine."""
    kept = {key: facts[key] for key in ("name", "layers", "parameters", "entries") if key in facts}
    return {**kept, "source": Path(str(facts.get("source", ""))).name}


def _device(case: Case, judged: Judged, vocabulary: Vocabulary) -> DeviceSnapshot:
    from nsysmodel.comparison.repeats import unmarked_join
    from nsysmodel.judge.steptable import step_table

    is_judged = judged.verdict.status == "ok"
    join: Join = judged.join
    unit = "step" if is_judged and join.method != "none" else "window"
    if not is_judged:
        join, unit = unmarked_join(case)
    table = step_table(case, join, judged=is_judged)
    rows = {row.op: row for row in judged.result.ops} if is_judged else {}
    keep = slice(max(0, len(table.steps) - MOST_STEPS), None)
    return DeviceSnapshot(
        process=case.process,
        device=case.device,
        gpu=_gpu(case, judged),
        unit=unit,  # type: ignore[arg-type]
        method=join.method,
        layers=judged.result.steps.layers,
        coverage=judged.result.coverage.kernel_time_modeled if is_judged else 0.0,
        workload=_workload(judged) if is_judged else {},
        steps=table.steps[keep],
        windows_ns=tuple(table.windows_ns[keep].tolist()),
        parts=_parts(table, rows, vocabulary, keep),
        sequence=table.sequence[:SEQUENCE],
        kernel_time_ns=int(case.kernels["duration_ns"].sum()),
        found=len(join.steps),
    )


def _parts(table: StepTable, rows: dict[str, OpRow], vocabulary: Vocabulary, keep: slice) -> tuple[Part, ...]:
    result = []
    for part in table.parts:
        row = rows.get(part.name) if part.kind == "op" else None
        result.append(
            Part(
                kind=part.kind,
                name=part.name,
                values_ns=tuple(part.values_ns[keep].tolist()),
                launches=round(part.launches, 4),
                kernels=part.kernels,
                kernel_class=vocabulary.classify(part.name).kernel_class if part.kind == "kernel" else "",
                floor_ns=row.floor_ns if row else None,
                bound=row.bound if row else "",
                ratio=row.ratio if row else None,
            )
        )
    return tuple(result)


def _gpu(case: Case, judged: Judged) -> dict[str, Any]:
    """What the export says of the GPU; empty where it says nothing."""
    if case.gpu is None:
        return {}
    facts = case.gpu
    values = {
        "name": facts.name,
        "sm_count": facts.sm_count,
        "clock_hz": facts.clock_hz,
        "bandwidth_bytes_per_s": facts.bandwidth_bytes_per_s,
        "mig": facts.mig,
    }
    return {name: value for name, value in values.items() if value}


def _workload(judged: Judged) -> dict[str, Any]:
    if judged.workload is None:
        return {}
    found = {name: getattr(judged.workload, name) for name in SHOWN_WORKLOAD}
    return {name: sourced.value for name, sourced in found.items() if sourced.value != ""}
