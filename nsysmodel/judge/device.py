"""The result of one process and device: join, account and rows put together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from nsysmodel import intervals
from nsysmodel.account.gaps import find_gaps
from nsysmodel.account.recover import Recoverable
from nsysmodel.account.small import started_in, t0_ns
from nsysmodel.account.transfers import transfers
from nsysmodel.account.types import GRAPH, KERNEL, Activity, Window
from nsysmodel.account.waterfall import Waterfall, waterfall
from nsysmodel.hardware.types import Hardware
from nsysmodel.intervals import Spans
from nsysmodel.join.types import Bools, Ints, Join
from nsysmodel.join.vocabulary import Vocabulary
from nsysmodel.judge.accounts import (
    gains,
    launch_summary,
    median_step,
    recoverable_rows,
    small_summary,
    work_of,
)
from nsysmodel.judge.cases import Case
from nsysmodel.judge.clock import clock_facts
from nsysmodel.judge.clusters import clusters_of
from nsysmodel.judge.collectives import Work, summaries, with_unclaimed
from nsysmodel.judge.explain import Evidence, explained
from nsysmodel.judge.opkernels import kernels_by_op, measured_by_op
from nsysmodel.judge.ops import Priced, PriceList, kernel_uses, op_rows
from nsysmodel.judge.rebuilt import Rebuilt
from nsysmodel.judge.shape import layer_heat, learned_layers, missing_rows, unmodeled_rows
from nsysmodel.judge.timeline import timeline_of
from nsysmodel.model.types import StepModel
from nsysmodel.result import Coverage, DeviceResult, DroppedStep, Gaps, OpRow, Steps, StepTotals, Timeline
from nsysmodel.result_account import ClockFacts, CollectiveSummary, LaunchSummary
from nsysmodel.theory.floor import Floor, floor_of
from nsysmodel.workload import Workload

LISTED = 2000
"""Kernel shapes in the table of all kernels."""
ASSUMED_T0_NS = 2000.0
"""Fixed cost of a launch where the export has too few short kernels to show it."""


@dataclass(frozen=True, slots=True)
class Theory:
    """What the model says of the used steps; without a model everything is empty.

    `build` makes the same model for another workload; None for flat models.
    """

    model: StepModel | None
    hardware: Hardware | None
    priced: Mapping[str, Priced]
    prices: PriceList | None = None
    build: Callable[[Workload], StepModel] | None = None

    @property
    def floors(self) -> dict[int, Floor]:
        """Floor of each op of the model, by `id(op)`."""
        if self.model is None or self.hardware is None:
            return {}
        ops = {id(op): op for _, op in self.model.places()}
        return {key: floor_of(op.cost, self.hardware) for key, op in ops.items()}


def device_result(
    case: Case, join: Join, theory: Theory, vocabulary: Vocabulary, *, judged: bool, name: str
) -> DeviceResult:
    """Everything about one device. Where the join must not be judged, rows carry no floors and no ratios."""
    layers = len(theory.model.layers) if theory.model else 0
    work = work_of(case, join, judged=judged, layers=layers)
    activity, windows, labels = work.activity, list(work.windows), work.labels
    inside = _inside(case, windows)
    priced = theory.priced if judged else {}
    floor_total = {label: round(p.floor_ns) if p.judged else None for label, p in priced.items()}
    account, gaps, timeline, launch = _accounts(case, work, floor_total)
    fixed = t0_ns(_of(case, "duration_ns", inside))
    launch_ns = ASSUMED_T0_NS if fixed is None else fixed
    clock = clock_facts(theory.hardware, case.gpu, case.clock, windows)
    collectives = summaries(with_unclaimed(work, vocabulary), priced, theory.hardware, launch_ns)
    ops: tuple[OpRow, ...] = ()
    gain: dict[str, Recoverable] = {}
    if judged and theory.hardware is not None:
        ops, gain = _judged_ops(case, join, theory, work, inside, launch_ns, clock, collectives)
    floors = theory.floors if judged else {}
    model = theory.model if judged else None
    return DeviceResult(
        process=case.process,
        device=case.device,
        name=name,
        steps=_steps(join),
        step=_totals(account, windows, theory, judged, fixed),
        waterfall=account.parts,
        window_total_ns=account.window_total_ns,
        ops=ops,
        unmodeled=unmodeled_rows(case, join, inside, vocabulary) if judged else (),
        missing=missing_rows(join, model, floors, labels) if model else (),
        gaps=gaps,
        transfers=transfers(case.copies, case.memsets, _running(activity), windows, theory.hardware),
        coverage=_coverage(case, join, inside, judged),
        kernels=_all_kernels(case, inside, vocabulary),
        layers=layer_heat(case, join, model, floors) if model else (),
        learned=learned_layers(case, join, model, theory.prices) if model and theory.prices else (),
        timeline=timeline,
        median_step=median_step(account),
        recoverable=recoverable_rows(work, ops, priced, gain),
        small=small_summary(work),
        launch=launch,
        collectives=collectives,
        clock=clock,
    )


def _accounts(
    case: Case, work: Work, floor_total: Mapping[str, int | None]
) -> tuple[Waterfall, Gaps, Timeline | None, LaunchSummary | None]:
    """What is made of the gaps, whose rows are large with millions of kernels; nothing else needs them."""
    windows = list(work.windows)
    gaps = find_gaps(
        work.activity, windows, work.labels, case.api_calls, case.syncs, case.overhead, work.names
    )
    return (
        waterfall(work.activity, windows, work.labels, floor_total, gaps),
        gaps.gaps,
        timeline_of(work.activity, work.names, work.labels, windows, gaps.frame),
        launch_summary(work, gaps),
    )


def _running(activity: Activity) -> Spans:
    """The set of times in which kernels or traced graphs run."""
    running = (activity.kind == KERNEL) | (activity.kind == GRAPH)
    return intervals.union(activity.start_ns[running], activity.end_ns[running])


def _judged_ops(
    case: Case,
    join: Join,
    theory: Theory,
    work: Work,
    inside: Bools,
    launch_ns: float,
    clock: ClockFacts,
    collectives: tuple[CollectiveSummary, ...],
) -> tuple[tuple[OpRow, ...], dict[str, Recoverable]]:
    """The rows of the ops with their reasons, and what the steps would gain."""
    windows, priced, hardware = work.windows, theory.priced, theory.hardware
    assert hardware is not None
    measured = measured_by_op(case, join, [(w.start_ns, w.end_ns) for w in windows])
    kernels = kernels_by_op(case.work.shapes, join)
    ops = op_rows(case, join, priced, measured, kernels, hardware, launch_ns, work.layers)
    gain = gains(work, ops, priced, collectives)
    rebuilt = _rebuilt(theory, join, inside)
    evidence = Evidence(case, kernels, inside, len(windows), hardware, clock, rebuilt)
    return explained(ops, priced, gain, evidence), gain


def _rebuilt(theory: Theory, join: Join, inside: Bools) -> Rebuilt | None:
    if theory.model is None or theory.build is None or theory.hardware is None:
        return None
    return Rebuilt(theory.model, theory.build, theory.hardware, join, inside)


def _inside(case: Case, windows: list[Window]) -> Bools:
    """Kernels that start in a used window."""
    return np.asarray(started_in(case.kernels["start_ns"].to_numpy(np.int64), windows) >= 0)


def _of(case: Case, column: str, inside: Bools) -> Ints:
    """A column of the kernels at these rows."""
    values = case.kernels[column].to_numpy(np.int64)
    return values if inside.all() else values[inside]


def _steps(join: Join) -> Steps:
    """The steps in numbers; a last step without a successor stays out of the spread where others exist."""
    used = join.used
    closed = [step for step in used if step.index != len(join.steps) - 1] or list(used)
    lengths = np.array([step.end_ns - step.start_ns for step in closed], np.int64)
    plain = join.method == "none"
    return Steps(
        found=0 if plain else len(join.steps),
        used=0 if plain else len(used),
        dropped=tuple(DroppedStep(s.index, s.dropped) for s in join.steps if s.dropped is not None),
        layers=max((step.layers for step in used), default=0),
        median_ns=int(np.median(lengths)) if len(lengths) else 0,
        p05_ns=int(np.percentile(lengths, 5)) if len(lengths) else 0,
        p95_ns=int(np.percentile(lengths, 95)) if len(lengths) else 0,
        method=join.method,
        used_indices=tuple(step.index for step in used) if not plain else (),
        clusters=clusters_of(join.steps) if not plain else (),
    )


def _totals(
    account: Waterfall, windows: list[Window], theory: Theory, judged: bool, fixed: int | None
) -> StepTotals:
    """Mean per used step, beside the bounds of the whole model."""
    steps = max(len(windows), 1)
    measured = account.window_total_ns / steps
    model, hardware = theory.model, theory.hardware
    base = StepTotals(
        measured_ns=measured,
        floor_ns=None,
        fraction_of_roofline=None,
        total_ns=account.window_total_ns,
        floor_total_ns=None,
        busy_ns=account.busy_ns / steps,
        t0_ns=fixed,
        tokens_per_s={"measured": None, "bound": None},
    )
    if not judged or hardware is None:
        return base
    if model is None:
        floor = sum(p.floor_ns for p in theory.priced.values()) / steps
        return _with(
            base,
            floor_ns=floor,
            fraction_of_roofline=floor / measured if measured else None,
            floor_total_ns=round(floor * steps),
        )
    floors = theory.floors
    places = [floors[id(op)] for _, op in model.places()]
    floor = sum(f.ns for f in places)
    tokens = model.workload.new_tokens
    compute = {d: flop / (hardware.peak(d) or 1) * 1e9 for d, flop in model.cost.flop.items()}
    weights = model.weights_once_bytes
    return _with(
        base,
        floor_ns=floor,
        fraction_of_roofline=floor / measured if measured else None,
        floor_total_ns=round(floor * steps),
        floor_hbm_ns=sum(f.hbm_ns for f in places),
        floor_strict_ns=sum(f.strict_ns for f in places),
        max_sum_bound_ns=max(
            model.cost.hbm_bytes / hardware.bandwidth_bytes_per_s.value * 1e9, *compute.values(), 0.0
        ),
        weights_once_bytes=weights,
        weights_once_ns=weights / hardware.bandwidth_bytes_per_s.value * 1e9,
        tokens_per_step=tokens,
        tokens_per_s={
            "measured": tokens / measured * 1e9 if measured else None,
            "bound": tokens / floor * 1e9 if floor else None,
        },
    )


def _with(totals: StepTotals, **values: object) -> StepTotals:
    from dataclasses import replace

    return replace(totals, **values)  # type: ignore[arg-type]


def _coverage(case: Case, join: Join, inside: Bools, judged: bool) -> Coverage:
    """Share of kernel time (union) and count that ops claim, and the count closure."""
    start, end = _of(case, "start_ns", inside), _of(case, "end_ns", inside)
    whole = intervals.union_length(start, end)
    if not judged or not len(start):
        return Coverage(0.0, 0.0, whole)
    claimed = join.labels.op[inside] >= 0
    modeled = intervals.union_length(start[claimed], end[claimed])
    closure = tuple(
        {"op": op, "expected": expected, "found": found, "closes": abs(expected - found) < 0.5}
        for op, (expected, found) in join.closure.items()
    )
    return Coverage(modeled / whole if whole else 0.0, float(claimed.mean()), whole, closure)


def _all_kernels(case: Case, inside: Bools, vocabulary: Vocabulary):  # type: ignore[no-untyped-def]
    names = case.kernels["name"].astype("category").cat.categories
    classes = {str(name): vocabulary.classify(str(name)).kernel_class for name in names}
    return kernel_uses(case, inside, limit=LISTED, classes=classes)


__all__ = ["KERNEL", "Theory", "device_result"]
