"""Flags, recoverable time and hypotheses beside the op rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from nsysmodel import units
from nsysmodel.account.recover import Recoverable
from nsysmodel.account.suspicious import suspicious
from nsysmodel.hardware.types import Hardware
from nsysmodel.join.types import Bools
from nsysmodel.judge.cases import Case
from nsysmodel.judge.collectives import is_collective
from nsysmodel.judge.hypotheses import reasons_of
from nsysmodel.judge.opkernels import NONE, OpKernels
from nsysmodel.judge.ops import Priced
from nsysmodel.judge.rebuilt import Rebuilt
from nsysmodel.result import Flag, OpRow
from nsysmodel.result_account import ClockFacts, LinkUse
from nsysmodel.theory.floor import floor_of, link_for

OPTIONS = {"context": "--context", "batch": "--batch", "tokens": "--tokens"}


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the rows are explained with.

    Attributes:
        kernels: those of each op label in the used steps.
        inside: kernels that start in the used steps.
        steps: number of used steps.
        rebuilt: floors for other workloads; None for flat models.
    """

    case: Case
    kernels: Mapping[str, OpKernels]
    inside: Bools
    steps: int
    hardware: Hardware
    clock: ClockFacts
    rebuilt: Rebuilt | None = None


def explained(
    ops: tuple[OpRow, ...], priced: Mapping[str, Priced], gains: Mapping[str, Recoverable], at: Evidence
) -> tuple[OpRow, ...]:
    """The rows with what the steps would gain, what is suspicious and why."""
    return tuple(_one(row, priced[row.op], gains.get(row.op), at) for row in ops)


def _one(row: OpRow, priced: Priced, gain: Recoverable | None, at: Evidence) -> OpRow:
    flags: list[Flag] = list(row.flags)
    told: list[str] = []
    waits = is_collective(priced)
    if priced.judged and priced.executions and not waits:
        _suspect(row, priced, at, flags, told)
    if priced.judged and at.rebuilt is not None:
        rests = at.rebuilt.rests_on(row.op)
        if rests:
            flags.append("assumed_workload")
            told.append(_assumption(rests, at.rebuilt))
    if waits:
        # A collective lasts until its last rank has come: its time is no measure of its transfer.
        flags.append("wait_included")
        told.append("The kernel runs until every rank has arrived, so waiting for peers is in its time.")
        row = replace(row, ratio=None, fraction_of_peak=None)
    use = _link_use(row, priced, at.hardware)
    if use is not None and use.needed_bytes is not None:
        told.append(_in_flight(use))
    own = at.kernels.get(row.op, NONE).inside(at.inside)
    return replace(
        row,
        flags=tuple(dict.fromkeys(flags)),
        explanation=" ".join(told),
        recoverable_ns=gain.recoverable_ns / at.steps if gain is not None else None,
        recoverable_80_ns=gain.recoverable_80_ns / at.steps if gain is not None else None,
        reasons=() if waits else reasons_of(at.case, own, row, priced, at.hardware, at.clock),
        link_use=use,
    )


def _suspect(row: OpRow, priced: Priced, at: Evidence, flags: list[Flag], told: list[str]) -> None:
    """Flags of an op that ran faster than it can."""
    mean = row.total_ns / priced.executions
    if mean >= priced.floor_ns / priced.executions:
        return
    one = priced.cost * (1 / priced.executions)
    fits = at.rebuilt.fits(row.op, mean) if at.rebuilt is not None else ()
    expected = _expectation(row.op, priced, mean, at.hardware)
    if expected:
        flags.append("wrong_workload")
        told.append(expected)
    streamed = at.rebuilt.model.cost.hbm_bytes if at.rebuilt is not None else 0
    for suspicion in suspicious(mean, one, priced.one, at.hardware, fits, streamed_bytes=streamed):
        if expected and suspicion.flag == "wrong_peak":
            continue
        flags.append(suspicion.flag)
        text = suspicion.explanation
        told.append(f"{text[:1].upper()}{text[1:]}.")


LEAST = {"moe_gemm": "tokens that share their experts", "": "recurrent state in 16 bit, written back later"}
"""What the hard bound of an op stands for whose floor is an expectation, by kind."""


def _expectation(op: str, priced: Priced, measured_ns: float, hardware: Hardware) -> str:
    """That an op whose floor is an expectation stayed above its hard bound; else empty."""
    if priced.op.min_cost is None or priced.op.id != op:
        return ""
    least = floor_of(priced.op.min_cost, hardware).hbm_ns
    if least > measured_ns:
        return ""
    what = LEAST.get(priced.op.kind, LEAST[""])
    return f"The floor is an expectation; {what} would fit: the hard bound is {units.ns(least)}."


def _assumption(rests: tuple[str, ...], rebuilt: Rebuilt) -> str:
    workload = rebuilt.model.workload
    values = " and ".join(f"{name} {getattr(workload, name).value}" for name in rests)
    options = ", ".join(OPTIONS[name] for name in rests)
    return f"Its floor rests on an assumed {values}; {options} would set it."


def _link_use(row: OpRow, priced: Priced, hardware: Hardware) -> LinkUse | None:
    """What one execution moves over its link."""
    cost = priced.cost
    link = link_for(cost, hardware) if cost.link_bytes and priced.executions else None
    if link is None:
        return None
    flight = priced.op.in_flight
    possible = flight.bytes / flight.latency_ns * 1e9 if flight is not None else None
    waits = is_collective(priced)
    return LinkUse(
        link=link.name,
        bytes=cost.link_bytes / priced.executions,
        link_bytes_per_s=link.bytes_per_s,
        # The time of a collective is not the time of its transfer.
        bytes_per_s=cost.link_bytes / row.total_ns * 1e9 if row.total_ns and not waits else None,
        limited_by="in_flight" if possible is not None and possible < link.bytes_per_s else "link",
        in_flight_bytes=flight.bytes if flight is not None else None,
        latency_ns=flight.latency_ns if flight is not None else None,
        possible_bytes_per_s=min(possible, link.bytes_per_s) if possible is not None else None,
        needed_bytes=link.bytes_per_s * flight.latency_ns / 1e9 if flight is not None else None,
    )


def _in_flight(use: LinkUse) -> str:
    """Little's law in one sentence."""
    needed, latency = units.bytes_(use.needed_bytes), units.ns(use.latency_ns)
    head = f"{units.bytes_(use.in_flight_bytes)} in flight for {latency}"
    if use.limited_by == "link":
        return f"{head} fill the {units.bandwidth(use.link_bytes_per_s)} of {use.link} ({needed} would do)."
    return (
        f"{head} let {units.bandwidth(use.possible_bytes_per_s)} through; the "
        f"{units.bandwidth(use.link_bytes_per_s)} of {use.link} need {needed} in flight."
    )
