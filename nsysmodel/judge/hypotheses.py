"""Why an op may be slow: checkable reasons from its launches, its names and the clock."""

from __future__ import annotations

import math

import numpy as np

from nsysmodel import units
from nsysmodel.account.reasons import CLOCK_COMMAND, SLOW_CLOCK, reasons, residency, slow_clock
from nsysmodel.hardware.types import Hardware
from nsysmodel.join.shapes import SHAPE
from nsysmodel.judge.cases import Case
from nsysmodel.judge.opkernels import OpKernels
from nsysmodel.judge.ops import Priced
from nsysmodel.result import OpRow
from nsysmodel.result_account import ClockFacts, Reason

NEAR = 1.1
"""Up to this factor above its target an op needs no reasons."""
_RESOURCES = ("static_shared_bytes", "dynamic_shared_bytes", "registers_per_thread")


def reasons_of(
    case: Case, kernels: OpKernels, row: OpRow, priced: Priced, hardware: Hardware, clock: ClockFacts
) -> tuple[Reason, ...]:
    """Hypotheses for an op that is well above what it could reach; none for others.

    Args:
        kernels: the op's kernels in the used steps.
    """
    target = row.latency_floor_ns if row.bound == "latency" else row.floor_ns
    if not target or row.measured_ns <= NEAR * target or not len(kernels.rows):
        return ()
    found = list(_launch_reasons(case, kernels, row, priced, hardware))
    if row.bound == "compute":
        found += _clock_reasons(row, hardware, clock)
    return tuple(found)


def _launch_reasons(
    case: Case, kernels: OpKernels, row: OpRow, priced: Priced, hardware: Hardware
) -> tuple[Reason, ...]:
    """Reasons of the kind of launch that takes most of the op's time."""
    time = np.zeros(len(kernels.examples), np.int64)
    np.add.at(time, kernels.shape, case.kernels["duration_ns"].to_numpy(np.int64)[kernels.rows])
    example = int(kernels.examples[time.argmax()])
    launch = {column: case.kernels[column].iloc[example] for column in (*SHAPE, *_RESOURCES)}
    sizes = [int(launch[column]) for column in SHAPE[1:]]
    capability = hardware.compute_capability or (case.gpu.compute_capability if case.gpu else "")
    shared = [int(launch[column]) for column in _RESOURCES[:2]]
    engines = {dtype for dtype, flop in priced.cost.flop.items() if flop and dtype != "fp32"}
    return reasons(
        str(launch["name"]),
        math.prod(sizes[:3]),
        math.prod(sizes[3:]),
        sm_count=hardware.sm_count,
        dtype=max(engines, key=lambda engine: priced.cost.flop[engine], default=row.dtype),
        registers_per_thread=int(launch["registers_per_thread"]),
        shared_bytes=sum(size for size in shared if size > 0),
        beside=list(dict.fromkeys(str(text) for text in case.kernels["name"].iloc[kernels.examples])),
        limits=residency(capability),
    )


def _clock_reasons(row: OpRow, hardware: Hardware, clock: ClockFacts) -> list[Reason]:
    """The clock, of an op that computes: only such an op slows down with it."""
    if clock.source == "flag":
        slow = slow_clock(clock.median_hz or 0, clock.peak_hz or 0, "--clock, the ratio has it in")
        return [slow] if slow is not None else []
    if clock.fraction is None:
        peak = f" of {units.clock(clock.peak_hz)}" if clock.peak_hz else ""
        text = f"the clock{peak} that the peak stands for was not recorded; `{CLOCK_COMMAND}` would record it"
        return [Reason("clock", text)]
    if clock.fraction >= SLOW_CLOCK or row.ratio is None:
        return []
    text = (
        f"{clock.explanation.rstrip('.')}; against the ceiling at that clock the ratio is "
        f"{units.ratio(row.ratio * clock.fraction)}, not {units.ratio(row.ratio)}"
    )
    return [Reason("clock", text)]
