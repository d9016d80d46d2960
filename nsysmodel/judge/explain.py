"""Flags, recoverable time and hypotheses beside the op rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from nsysmodel.account.suspicious import suspicious
from nsysmodel.hardware.types import Hardware
from nsysmodel.join.types import Join
from nsysmodel.judge.cases import Case
from nsysmodel.judge.ops import Priced
from nsysmodel.result import Flag, OpRow

COLLECTIVES = ("allreduce", "allgather", "alltoall")


def explained(
    case: Case,
    join: Join,
    ops: tuple[OpRow, ...],
    priced: Mapping[str, Priced],
    gain_ns: Mapping[str, int],
    steps: int,
    hardware: Hardware,
) -> tuple[OpRow, ...]:
    """The rows with what the steps would gain, what is suspicious and why."""
    return tuple(_one(row, priced[row.op], gain_ns.get(row.op), steps, hardware) for row in ops)


def _one(row: OpRow, priced: Priced, gain_ns: int | None, steps: int, hardware: Hardware) -> OpRow:
    flags: list[Flag] = list(row.flags)
    told: list[str] = []
    if row.ratio is not None and row.ratio < 1 and priced.executions:
        mean = row.total_ns / priced.executions
        one = priced.cost * (1 / priced.executions)
        for suspicion in suspicious(mean, one, priced.one, hardware):
            flags.append(suspicion.flag)
            told.append(suspicion.explanation)
    if set(priced.op.classes) & set(COLLECTIVES):
        # A collective lasts until its last rank has come: its time is no measure of its transfer.
        flags.append("wait_included")
        told.append("The kernel runs until every rank has arrived, so waiting for peers is in its time.")
        row = replace(row, ratio=None, fraction_of_peak=None)
    recoverable = gain_ns / steps if gain_ns is not None and steps else None
    return replace(
        row,
        flags=tuple(dict.fromkeys(flags)),
        explanation=" ".join(told),
        recoverable_ns=recoverable,
    )
