"""The verdict: one sentence, why, and whether it may be said at all."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

from nsysmodel import units
from nsysmodel.hardware.types import Hardware
from nsysmodel.join.names import normalise
from nsysmodel.model.types import StepModel
from nsysmodel.result import DeviceResult, OpRow, Verdict
from nsysmodel.workload import Workload

MOST_BEATEN = 0.1
"""Share of the floor that ops well below their floor may have before nothing is believed."""
BEATEN = 0.9
WEIGHTY_NS = 3000.0
"""Shorter kernels may beat a floor by the resolution of the clock and by what L2 holds."""
LEAST_TOLD = 0.0005
"""Share of the kernel time without a claim, from which a verdict tells it."""
FEW_STEPS = 3
"""Judged steps below which a report says that there are few."""


def beaten(ops: Sequence[OpRow], hardware: Hardware) -> tuple[OpRow, ...]:
    """Ops that ran well below their floor, judged against the larger of datasheet and pin rate."""
    grace = max(1.0, hardware.pin_bandwidth_bytes_per_s / hardware.bandwidth_bytes_per_s.value)
    return tuple(
        op
        for op in ops
        if op.ratio is not None
        and op.ratio * grace < BEATEN
        and op.floor_ns is not None
        and op.median_ns > WEIGHTY_NS
    )


def impossible(ops: Sequence[OpRow], hardware: Hardware, workload: Workload | None) -> str:
    """Why the floors cannot be right, with the value that would fit; empty where they can."""
    low = beaten(ops, hardware)
    whole = sum(op.floor_ns or 0.0 for op in ops)
    part = sum(op.floor_ns or 0.0 for op in low)
    measured = sum(op.measured_ns for op in ops if op.floor_ns is not None)
    if not whole or (part < MOST_BEATEN * whole and whole <= measured):
        return ""
    if not low:
        return (
            f"The judged kernels took {units.ns(measured)}, but their floors add up to {units.ns(whole)}; "
            "the measurement or the model is wrong (--bandwidth, --peak or --gpu may be)."
        )
    worst = min(low, key=lambda op: op.ratio or 1.0)
    fit = _what_fits(worst, low, workload) if workload is not None else ""
    count = f"{len(low)} {'op' if len(low) == 1 else 'ops'}"
    return (
        f"{count} with {100 * part / whole:.0f} % of the floor ran faster than the hardware allows "
        f"({worst.op}: {units.ns(worst.measured_ns)} where {units.ns(worst.floor_ns)} is the least); "
        f"the measurement or the model is wrong.{fit}"
    )


def _what_fits(worst: OpRow, low: Sequence[OpRow], workload: Workload) -> str:
    """The parameter value that would explain the fastest op."""
    ratio = worst.ratio or 1.0
    if worst.op == "attention":
        context = int(workload.context.value * ratio)
        return f" A context of at most {context} would fit (--context)."
    if worst.bound == "compute" and workload.new_tokens > 1:
        return (
            f" At most {max(1, int(workload.new_tokens * ratio))} tokens a step would fit "
            "(--batch, --tokens), or a faster number format (--dtype)."
        )
    if not worst.op.endswith(("_proj", "lm_head", "moe_gate_up", "moe_down")):
        return ""
    shards = 2 ** max(1, round(math.log2(1 / ratio)))
    return f" Weights of {ratio:.2g} times the bytes would fit: --tp {shards}, or --quant, --dtype."


def verdict_of(device: DeviceResult, model: StepModel, workload: Workload) -> Verdict:
    """The sentence for a device that was judged."""
    step = device.step
    assumed = [name for name in ("batch", "context", "tokens") if getattr(workload, name).source == "assumed"]
    if workload.phase.value == "decode" and "tokens" in assumed:
        assumed.remove("tokens")
    told = [f"{name} {getattr(workload, name).value}" for name in assumed]
    assuming = f", assuming {' and '.join(told)}" if told else ""
    headline = (
        f"A step takes {units.ns(step.measured_ns)}; the model says {units.ns(step.floor_ns)}{assuming}. "
        f"That is {units.percent(step.fraction_of_roofline)} of the roofline."
    )
    reasons: list[str] = []
    # A collective's excess is mostly waiting for other ranks: no kernel of this one can be blamed for it.
    own = [op for op in device.ops if (op.excess_ns or 0) > 0 and "wait_included" not in op.flags]
    if own:
        worst = max(own, key=lambda op: op.excess_ns or 0.0)
        times = f"{units.ratio(worst.ratio)} its floor" if worst.ratio is not None else "bound by launches"
        waits = max((op.excess_ns or 0.0 for op in device.ops if "wait_included" in op.flags), default=0.0)
        first = "Apart from waiting for other ranks, the" if waits > (worst.excess_ns or 0.0) else "The"
        reasons.append(f"{first} largest excess is {worst.op}: {units.ns(worst.excess_ns)} a step ({times}).")
    steps = max(device.steps.used, 1)
    idle = sum(device.gaps.by_cause.values())
    if device.window_total_ns:
        share = units.percent(idle / device.window_total_ns)
        reasons.append(f"The device idles {units.ns(idle / steps)} a step ({share}).")
    unclaimed = 1 - device.coverage.kernel_time_modeled
    if unclaimed > LEAST_TOLD:
        reasons.append(f"No model line claims {units.percent(unclaimed)} of the kernel time.")
    else:
        reasons.append("Every kernel is claimed by an op of the model.")
    lost = sum(row.floor_ns for row in device.missing)
    if step.floor_ns and lost > 0.01 * step.floor_ns:
        names = ", ".join(row.op for row in device.missing if row.floor_ns > 0)
        reasons.append(f"{units.ns(lost)} of the floor belongs to ops without a kernel: {names}.")
    low = [op for op in device.ops if op.ratio is not None and op.ratio < BEATEN and op.floor_ns]
    part = sum(op.floor_ns or 0.0 for op in low)
    if step.floor_ns and part > 0.01 * step.floor_ns:
        names = ", ".join(op.op for op in low)
        reasons.append(
            f"{units.percent(part / step.floor_ns)} of the floor belongs to ops that ran faster than it "
            f"({names}): see their flags."
        )
    if any(row.op == "lm_head" for row in device.missing):
        reasons.append("The pass ends before the LM head.")
    if device.steps.used < FEW_STEPS:
        count = "One step is" if device.steps.used == 1 else f"{device.steps.used} steps are"
        reasons.append(f"Only {count.lower()} judged: how much steps differ is not known.")
    return Verdict("ok", headline, tuple(reasons))


def plain_verdict(result: DeviceResult) -> Verdict:
    """The sentence for a device without a model: how busy it was."""
    busy = result.step.busy_ns * max(result.steps.used, 1)
    share = busy / result.window_total_ns if result.window_total_ns else 0.0
    idle = sum(result.gaps.by_cause.values())
    steps = result.steps.used
    span = (
        f"{steps} steps of {units.ns(result.steps.median_ns)}" if steps else units.ns(result.window_total_ns)
    )
    headline = (
        f"The device is busy {units.percent(share)} of {span}; no model was given, so nothing is judged."
    )
    reasons = [f"Idle: {units.ns(idle)} in all."]
    if result.kernels:
        # A kernel has a row for each launch shape; which kernel takes the time is a question about its name.
        shares: defaultdict[str, float] = defaultdict(float)
        for row in result.kernels:
            shares[_short(row.name)] += row.share
        top, part = max(shares.items(), key=lambda pair: pair[1])
        reasons.append(f"Most kernel time ({units.percent(part)}): {top}.")
    return Verdict("cannot_judge", headline, tuple(reasons))


def _short(name: str) -> str:
    """A kernel's name for a sentence: without its template where that makes it long."""
    found = normalise(name)
    if len(found.text) <= 72:
        return found.text
    return found.base if len(found.base) <= 72 else found.base[:71] + "…"
