"""One case from its rows to its verdict: workload, join, prices, refusals."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nsysmodel.errors import HardwareError
from nsysmodel.export.joins import nvtx_of
from nsysmodel.export.run import Run
from nsysmodel.hardware.resolve import Overrides, resolve
from nsysmodel.hardware.types import Hardware
from nsysmodel.join.join import join_device
from nsysmodel.join.modules import apply_modules, names_module
from nsysmodel.join.types import Ints, Join
from nsysmodel.join.vocabulary import Vocabulary
from nsysmodel.judge.cases import Case
from nsysmodel.judge.clusters import describe_steps, inside_range, select_steps
from nsysmodel.judge.contradictions import by_structure, contradictions, other_gpu, speculation
from nsysmodel.judge.device import Theory, device_result
from nsysmodel.judge.flat import flat_join, flat_price
from nsysmodel.judge.observed import Observed, observe
from nsysmodel.judge.opkernels import used_rows
from nsysmodel.judge.ops import PriceList, price
from nsysmodel.judge.plainsteps import plain_join
from nsysmodel.judge.structure import fit_facts, fitting
from nsysmodel.judge.verdict import LEAST_TOLD, impossible, plain_verdict, verdict_of
from nsysmodel.judge.weights import doubt_of_quantisation
from nsysmodel.model import FlatSpec, LayeredSpec, ModelSpec, resolve_workload
from nsysmodel.model.types import FlatModel, StepModel
from nsysmodel.request import HardwareRequest, Selection
from nsysmodel.result import DeviceResult, Diagnostic, Verdict
from nsysmodel.workload import Sourced, Workload, WorkloadRequest

DRAFTED = (
    "A step verifies several tokens of each sequence. What the draft model runs is in the step's time, "
    "and no line of the model claims it."
)
MOST_HIDDEN = 0.2
"""Share of the device's busy time inside graphs traced as a whole, above which nothing is judged."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A case with its verdict."""

    result: DeviceResult
    verdict: Verdict
    join: Join
    hardware: Hardware | None
    workload: Workload | None = None
    model: StepModel | FlatModel | None = None
    diagnostics: tuple[Diagnostic, ...] = ()
    fits: tuple[Mapping[str, Any], ...] = ()


def judge_case(
    run: Run,
    case: Case,
    spec: ModelSpec | None,
    vocabulary: Vocabulary,
    request: WorkloadRequest,
    hardware_request: HardwareRequest,
    selection: Selection,
) -> Judged:
    """Judge one process on one device; without a verdict on its speed where nothing is known of the GPU.

    Raises:
        HardwareError: a flag names a GPU or a peak that is not known.
    """
    name = case.gpu.name if case.gpu is not None else "unknown GPU"
    try:
        hardware = hardware_of(case, hardware_request, needed=spec is not None)
    except HardwareError as error:
        if hardware_request != HardwareRequest():
            raise
        return _unjudged(case, None, vocabulary, name, selection, _unknown(error))
    name = hardware.name if case.gpu is None and hardware else name
    hidden = _hidden(run, case)
    if hidden is not None:
        headline = "Cannot judge: the kernels inside CUDA graphs are not in this export."
        verdict = Verdict("cannot_judge", headline, (hidden.message, hidden.hint))
        return _unjudged(case, hardware, vocabulary, name, selection, verdict)
    if spec is None or hardware is None:
        return _unjudged(case, hardware, vocabulary, name, selection)
    if not len(case.kernels):
        verdict = Verdict("cannot_judge", "Cannot judge: the export holds no kernel of this device.")
        return _unjudged(case, hardware, vocabulary, name, selection, verdict)
    try:
        if isinstance(spec, FlatSpec):
            found = _flat(case, spec, hardware, vocabulary, name)
        else:
            found = _layered(run, case, spec, hardware, vocabulary, name, request, selection)
    except HardwareError as error:
        return _unjudged(case, hardware, vocabulary, name, selection, _unknown(error))
    told = other_gpu(case, hardware)
    return (
        replace(found, verdict=replace(found.verdict, reasons=(told, *found.verdict.reasons)))
        if told
        else found
    )


def hardware_of(case: Case, request: HardwareRequest, *, needed: bool) -> Hardware | None:
    """The device that the floors are for; None where nothing is known of it and nothing needs it.

    Raises:
        HardwareError: it is needed, or was named, and is not known.
    """
    overrides = Overrides.parse(
        bandwidth=request.bandwidth, peaks=request.peaks, clock=request.clock, files=request.files
    )
    try:
        return resolve(request.gpu, facts=case.gpu, overrides=overrides)
    except HardwareError:
        if needed or request.gpu:
            raise
        return None


def _hidden(run: Run, case: Case) -> Diagnostic | None:
    """The finding on graphs traced as a whole, where they hide too much to judge."""
    traced = int(case.graph_traces["duration_ns"].sum()) if len(case.graph_traces) else 0
    shown = int(case.kernels["duration_ns"].sum()) if len(case.kernels) else 0
    if not traced or traced < MOST_HIDDEN * (traced + shown):
        return None
    found = next((d for d in run.diagnostics if "graph" in d.code and d.hint), None)
    return found or Diagnostic("graphs_traced_whole", "error", "CUDA graphs were traced as a whole.", "")


def _unknown(error: HardwareError) -> Verdict:
    """The refusal where a peak or the bandwidth of the device is not known."""
    return Verdict("cannot_judge", f"Cannot judge: {error.message}", (error.hint,) if error.hint else ())


def _unjudged(
    case: Case,
    hardware: Hardware | None,
    vocabulary: Vocabulary,
    name: str,
    selection: Selection,
    refusal: Verdict | None = None,
) -> Judged:
    """What needs no model: windows, gaps, copies, kernels; `refusal` is why a model was not applied."""
    join = plain_join(case)
    join = replace(join, steps=select_steps(join.steps, WorkloadRequest(), selection))
    result = device_result(case, join, Theory(None, hardware, {}), vocabulary, judged=False, name=name)
    if refusal is not None:
        return Judged(result, refusal, join, hardware)
    fits = fit_facts(fitting(case, vocabulary, hardware))
    return Judged(result, plain_verdict(result), join, hardware, fits=fits)


def _flat(case: Case, spec: FlatSpec, hardware: Hardware, vocabulary: Vocabulary, name: str) -> Judged:
    from nsysmodel import units

    join = flat_join(case, spec.model)
    if join.refusals:
        result = device_result(case, join, Theory(None, hardware, {}), vocabulary, judged=False, name=name)
        verdict = Verdict("cannot_judge", f"Cannot judge: {join.refusals[0]}", join.refusals)
        return Judged(result, verdict, join, hardware, None, spec.model)
    priced = flat_price(case, spec.model, join, hardware)
    result = device_result(case, join, Theory(None, hardware, priced), vocabulary, judged=True, name=name)
    measured = sum(op.total_ns for op in result.ops)
    floor = sum(p.floor_ns for p in priced.values())
    if reason := impossible([op for op in result.ops if "l2_resident" not in op.flags], hardware, None):
        result = device_result(case, join, Theory(None, hardware, {}), vocabulary, judged=False, name=name)
        return Judged(
            result, Verdict("cannot_judge", f"Cannot judge: {reason}"), join, hardware, None, spec.model
        )
    headline = (
        f"The modeled kernels take {units.ns(measured)}; the model says {units.ns(floor)}. "
        f"That is {units.percent(floor / measured if measured else None)} of the roofline."
    )
    reasons = [
        f"{op.op}: {units.ratio(op.ratio)} its floor."
        if op.ratio >= 1
        else f"{op.op} ran faster than its floor. {op.explanation}"
        for op in result.ops[:3]
        if op.ratio is not None
    ]
    unclaimed = 1 - result.coverage.kernel_time_modeled
    if unclaimed > LEAST_TOLD:
        reasons.append(f"No model line claims {units.percent(unclaimed)} of the kernel time.")
    # The window of a flat model is no step: what counts is the time of the kernels that it lists.
    totals = replace(result.step, fraction_of_roofline=floor / measured if measured else None)
    result = replace(result, step=totals)
    return Judged(result, Verdict("ok", headline, tuple(reasons)), join, hardware, None, spec.model)


def _layered(
    run: Run,
    case: Case,
    spec: LayeredSpec,
    hardware: Hardware,
    vocabulary: Vocabulary,
    name: str,
    request: WorkloadRequest,
    selection: Selection,
) -> Judged:
    seen = observe(case, vocabulary, request)
    workload = _resolve(request, spec, seen)
    model = spec.build(workload, hardware)
    join = _with_modules(run, case, join_device(case.work, model, hardware, vocabulary), model)
    steps = select_steps(describe_steps(case, join, vocabulary, request), request, selection)
    join = replace(join, steps=inside_range(steps, join, selection))
    workload, model = _of_cluster(request, spec, seen, join, workload, model, hardware)
    refusals = [*speculation(seen, workload), *join.refusals, *contradictions(request, workload, join)]
    if not join.used and not speculation(seen, workload):
        refusals = by_structure(case, vocabulary, spec) or refusals
    if not join.used and any(step.dropped == "outside_selection" for step in join.steps):
        refusals = ["No whole step lies inside the selection."]
    notes = (
        [Diagnostic("workload", "info", f"Workload read from the export: {seen.sentence}.")]
        if seen.sentence
        else []
    )
    if workload.phase.value == "decode" and workload.tokens.value > 1:
        notes.append(Diagnostic("draft", "info", DRAFTED))
    notes += list(join.diagnostics)
    if not refusals:
        prices = PriceList(model, hardware)
        priced = price(prices, join, used_rows(join))
        theory = Theory(model, hardware, priced, prices, _builder(spec, hardware))
        result = device_result(case, join, theory, vocabulary, judged=True, name=name)
        reason = impossible(result.ops, hardware, workload)
        if not reason:
            verdict = verdict_of(result, model, workload)
            notes += doubt_of_quantisation(case, join, model, workload, vocabulary)
            return Judged(result, verdict, join, hardware, workload, model, tuple(notes))
        refusals.append(reason)
    theory = Theory(model, hardware, {})
    result = device_result(case, join, theory, vocabulary, judged=False, name=name)
    verdict = Verdict("cannot_judge", f"Cannot judge: {refusals[0]}", tuple(refusals[1:]))
    return Judged(result, verdict, join, hardware, workload, model, tuple(notes))


def _builder(spec: LayeredSpec, hardware: Hardware) -> Callable[[Workload], StepModel]:
    """The same model for another workload."""
    return lambda workload: spec.build(workload, hardware)


def _with_modules(run: Run, case: Case, join: Join, model: StepModel) -> Join:
    """The join corrected by NVTX ranges that name modules, where the export has them."""
    ranges = run.nvtx()
    if not len(ranges) or not names_module((str(text) for text in ranges["text"].cat.categories), model):
        return join
    texts = nvtx_of(run, case.kernels).astype("category")
    names = [str(text) for text in texts.cat.categories]
    duration = case.kernels["duration_ns"].to_numpy(np.int64)
    codes: Ints = np.asarray(texts.cat.codes, dtype=np.int64)
    return apply_modules(join, model, names, codes, duration)


def _resolve(request: WorkloadRequest, spec: LayeredSpec, seen: Observed) -> Workload:
    """The workload; a total of prefill tokens is split over the batch that is known or assumed."""
    values = dict(seen.values)
    total = values.pop("total_tokens", None)
    if total is not None and request.tokens is None and "tokens" not in values:
        batch = request.batch or 1
        if total.value % batch == 0:
            values["tokens"] = Sourced(total.value // batch, "inferred")
    return resolve_workload(request, spec, values)


def _of_cluster(
    request: WorkloadRequest,
    spec: LayeredSpec,
    seen: Observed,
    join: Join,
    workload: Workload,
    model: StepModel,
    hardware: Hardware,
) -> tuple[Workload, StepModel]:
    """The workload and model of the judged steps, where their batch is not the one that the join used."""
    used = join.used
    if not used or request.batch is not None:
        return workload, model
    step = used[len(used) // 2]
    if step.batch is None or step.phase not in ("decode", "prefill"):
        return workload, model
    if (step.phase, step.batch) == (workload.phase.value, workload.batch.value):
        return workload, model
    values = {
        **seen.values,
        "phase": Sourced(step.phase, step.source),
        "batch": Sourced(step.batch, step.source),
    }
    values.pop("tokens", None)
    values.pop("total_tokens", None)
    if step.tokens and step.tokens % step.batch == 0:
        values["tokens"] = Sourced(step.tokens // step.batch, step.source)
    other = resolve_workload(request, spec, values)
    return other, spec.build(other, hardware)
