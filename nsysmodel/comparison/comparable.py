"""Whether two runs may be compared at all, and what a reader must know before believing a difference."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from nsysmodel import units
from nsysmodel.comparison.measuring import LEAST_STEPS
from nsysmodel.comparison.result import OpChange
from nsysmodel.comparison.snapshot import DeviceSnapshot, Snapshot
from nsysmodel.result import Diagnostic

SAME_CLOCK = 0.01
"""Relative difference of clocks and bandwidths up to which two GPUs are the same."""
SAME_COVERAGE = 0.05
LEAST_COMMON = 0.5
"""Share of kernel time that must be on both sides."""
MANY_STEPS = 8


def run_reasons(a: Sequence[Snapshot], b: Sequence[Snapshot]) -> Iterator[str]:
    """Reasons against a comparison that concern the runs as a whole."""
    for side, runs in (("A", a), ("B", b)):
        for run in runs:
            if run.model is not None and run.status != "ok":
                yield f"{_named(side, run, runs)} cannot be judged with this model: {_told(run.headline)}"
    first = a[0]
    for side, run, runs in _others(a, b):
        if (run.model is None) != (first.model is None):
            yield f"Only one of A and {_named(side, run, runs)} was taken with a model."
        elif run.model is not None and first.model is not None:
            for name in ("name", "layers", "parameters", "entries"):
                if run.model.get(name) != first.model.get(name):
                    yield (
                        f"The models differ in {name}: {first.model.get(name)} in A, "
                        f"{run.model.get(name)} in {_named(side, run, runs)}."
                    )
                    break


def _told(headline: str) -> str:
    return headline.removeprefix("Cannot judge: ").rstrip(".") + "."


def _others(
    a: Sequence[Snapshot], b: Sequence[Snapshot]
) -> Iterator[tuple[str, Snapshot, Sequence[Snapshot]]]:
    for run in a[1:]:
        yield "A", run, a
    for run in b:
        yield "B", run, b


def _named(side: str, run: Snapshot, runs: Sequence[Snapshot]) -> str:
    return side if len(runs) == 1 else f"run {1 + list(runs).index(run)} of {side}"


def device_reasons(a: Sequence[DeviceSnapshot], b: Sequence[DeviceSnapshot]) -> Iterator[str]:
    """Reasons that concern one pair of devices; every run is held against the first of A."""
    first = a[0]
    for side, device in [*(("another run of A", d) for d in a[1:]), *(("B", d) for d in b)]:
        yield from _gpu(first.gpu, device.gpu, side)
        yield from _workload(first.workload, device.workload, side)
        if first.unit != device.unit:
            yield f"A is cut into {first.unit}s, {side} into {device.unit}s."
        if abs(first.coverage - device.coverage) > SAME_COVERAGE:
            yield (
                f"The model claims {units.percent(first.coverage)} of the kernel time in A, "
                f"{units.percent(device.coverage)} in {side}."
            )
    for side, devices in (("A", a), ("B", b)):
        steps = sum(len(device.steps) for device in devices)
        if steps < LEAST_STEPS:
            yield (
                f"{side} has {steps} used step{'s' * (steps != 1)}; {LEAST_STEPS} are needed to tell "
                "a change from noise."
            )


def _gpu(one: Any, other: Any, side: str) -> Iterator[str]:
    if not one or not other:
        return
    if one.get("name") != other.get("name"):
        yield f"The GPU differs: {one.get('name')} in A, {other.get('name')} in {side}."
        return
    for name, what, show in (
        ("clock_hz", "maximum clock", units.clock),
        ("bandwidth_bytes_per_s", "memory bandwidth", units.bandwidth),
        ("sm_count", "number of SMs", str),
    ):
        mine, theirs = one.get(name), other.get(name)
        if mine and theirs and abs(mine - theirs) > SAME_CLOCK * mine:
            yield f"The {what} of the GPU differs: {show(mine)} in A, {show(theirs)} in {side}."


def _workload(one: Any, other: Any, side: str) -> Iterator[str]:
    for name in one:
        if name in other and one[name] != other[name]:
            shown = name.replace("_", " ")
            yield f"The workload differs in {shown}: {one[name]} in A, {other[name]} in {side}."


def launch_reason(ratios: Sequence[float]) -> str:
    """Why repetitions of two sides are not the same work; empty where they may be.

    Args:
        ratios: launches in B over launches in A for each part that both have.
    """
    if len(ratios) < 3:
        return ""
    middle = sorted(ratios)[len(ratios) // 2]
    if 2 / 3 < middle < 1.5:
        return ""
    return f"A repetition of B launches {middle:.3g} times the kernels of one of A: not the same work."


def common_reason(common_a: float, common_b: float) -> str:
    """Why too little is on both sides; empty where enough is. Arguments: common share of kernel time."""
    if min(common_a, common_b) >= LEAST_COMMON:
        return ""
    return (
        f"Only {units.percent(common_a)} of A's kernel time and {units.percent(common_b)} of B's is in parts "
        "that both have."
    )


def pairing_notes(ops: Sequence[OpChange]) -> Iterator[Diagnostic]:
    """What a reader must know where kernels were paired by their place."""
    both = [op for op in ops if op.kind in ("op", "kernel") and op.a_parts and op.b_parts]
    whole = sum((op.measure.a_ns or 0.0) + (op.measure.b_ns or 0.0) for op in both)
    replaced = [op for op in both if op.how == "replaced"]
    time = sum((op.measure.a_ns or 0.0) + (op.measure.b_ns or 0.0) for op in replaced)
    if whole and time >= LEAST_COMMON * whole:
        yield Diagnostic(
            "mostly_replaced", "warning",
            f"{units.percent(time / whole)} of the kernel time is in kernels of one side only; they were "
            "set against each other by their place. That they do the same work is taken on trust.", "",
        )  # fmt: skip


def notes(a: Sequence[Snapshot], b: Sequence[Snapshot]) -> Iterator[Diagnostic]:
    """What does not forbid the comparison but belongs beside it."""
    runs = [*a, *b]
    if len(a) == len(b) == 1:
        yield Diagnostic(
            "one_run_per_side", "info",
            "One run per side: how much runs differ from each other by themselves is not in the intervals.",
            "Give several with --a and --b.",
        )  # fmt: skip
    if not all(device.gpu for run in runs for device in run.devices):
        yield Diagnostic(
            "gpu_unknown", "warning",
            "Not every export says on which GPU it ran: that it is the same one is taken on trust.", "",
        )  # fmt: skip
    modes = {run.graph_mode for run in runs}
    if len(modes) > 1:
        yield Diagnostic(
            "graph_mode_differs", "warning",
            f"CUDA graphs were used or traced in different ways ({', '.join(sorted(modes))}); tracing nodes "
            "slows a graph down.", "Capture both sides with the same --cuda-graph-trace.",
        )  # fmt: skip
    for side, group in (("A", a), ("B", b)):
        if any(run.completeness in ("lost_events", "trimmed") for run in group):
            yield Diagnostic("incomplete", "warning", f"{side} lost events or was trimmed.", "")
        steps = [len(device.steps) for run in group for device in run.devices[:1]]
        if LEAST_STEPS <= sum(steps) < MANY_STEPS:
            yield Diagnostic(
                "few_steps", "info",
                f"{side} has {sum(steps)} used steps; with fewer than {MANY_STEPS} only large changes can "
                "be told from noise.", "Capture more steps.",
            )  # fmt: skip
