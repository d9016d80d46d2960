"""Ranks of one run side by side: how long each collective moved data, and how long it waited for peers.

Clocks of different machines are never compared, only durations: a collective ends everywhere when the last
rank has come, so the rank with the shortest kernel waited least.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from nsysmodel.join.vocabulary import Vocabulary
from nsysmodel.judge.accounts import gains, recoverable_rows, work_of
from nsysmodel.judge.cases import Case
from nsysmodel.judge.collectives import Durations, Work, durations_of, summaries, with_unclaimed
from nsysmodel.judge.device import ASSUMED_T0_NS
from nsysmodel.judge.judged import Judged
from nsysmodel.judge.ops import Priced, PriceList, price
from nsysmodel.model.types import StepModel
from nsysmodel.result import DeviceResult, OpRow


@dataclass(frozen=True, slots=True)
class _Rank:
    """One rank with what its collectives are compared by; in `listed`, unclaimed ones have a label, too."""

    judged: Judged
    work: Work
    listed: Work
    priced: Mapping[str, Priced]
    times: Durations


def compare_ranks(
    pairs: Sequence[tuple[Case, Judged]], vocabulary: Vocabulary, *, given: bool
) -> tuple[list[Judged], str]:
    """The same cases with the time of their collectives split against each other.

    Args:
        pairs: every rank.
        given: the user gave the exports as ranks of one run; else only a model that is split over at least so
            many ranks makes several devices of an export peers (they might be replicas).

    Returns:
        The cases, and why nothing was compared; empty where it was, or where there was nothing to compare.
    """
    judged = [one for _, one in pairs]
    able = [place for place, one in enumerate(judged) if one.result.collectives]
    if len(able) < 2:
        reason = "No collectives run on two of the ranks." if given else ""
        return judged, reason
    if not _peers([judged[place] for place in able], given):
        return judged, "The model is split over fewer ranks than there are here." if given else ""
    if len({len(judged[place].join.steps) for place in able}) > 1:
        return judged, "The ranks have different numbers of steps, so their collectives cannot be paired."
    ranks = {place: _rank(*pairs[place], vocabulary) for place in able}
    for place, rank in ranks.items():
        others = [other.times for key, other in ranks.items() if key != place]
        judged[place] = replace(rank.judged, result=_compared(rank, others))
    return judged, ""


def _peers(able: Sequence[Judged], given: bool) -> bool:
    """Whether these devices can all be ranks of one group."""
    sizes = [_group(one) for one in able]
    if any(size is not None and size < len(able) for size in sizes):
        return False
    return given or all(size is not None for size in sizes)


def _group(judged: Judged) -> int | None:
    """Ranks that the model is split over; None where no model says it."""
    workload = judged.workload
    if workload is None or judged.verdict.status != "ok":
        return None
    tp, ep, dp = (
        value.value for value in (workload.tensor_parallel, workload.expert_parallel, workload.data_parallel)
    )
    return max(tp * dp, ep)


def _rank(case: Case, judged: Judged, vocabulary: Vocabulary) -> _Rank:
    ok = judged.verdict.status == "ok"
    work = work_of(case, judged.join, judged=ok)
    priced: dict[str, Priced] = {}
    if ok and isinstance(judged.model, StepModel) and judged.hardware is not None:
        inside = np.isin(judged.join.labels.step, [step.index for step in judged.join.used])
        priced = price(PriceList(judged.model, judged.hardware), judged.join, inside)
    listed = with_unclaimed(work, vocabulary)
    return _Rank(judged, work, listed, priced, durations_of(listed))


def _compared(rank: _Rank, others: Sequence[Durations]) -> DeviceResult:
    """The result with the collectives, and what depends on their waiting, seen against the other ranks."""
    result = rank.judged.result
    t0 = result.step.t0_ns if result.step.t0_ns is not None else ASSUMED_T0_NS
    named = {row.op for row in result.collectives}
    shared = [{key: ns for key, ns in times.items() if key[0] in named} for times in others]
    work = rank.work
    rows = summaries(rank.listed, rank.priced, rank.judged.hardware, t0, shared)
    if not rank.priced:
        return replace(result, collectives=rows)
    gain = gains(work, result.ops, rank.priced, rows)
    steps = max(len(work.windows), 1)

    def updated(row: OpRow) -> OpRow:
        if row.op not in named or row.op not in gain:
            return row
        found = gain[row.op]
        return replace(
            row,
            recoverable_ns=found.recoverable_ns / steps,
            recoverable_80_ns=found.recoverable_80_ns / steps,
        )

    return replace(
        result,
        collectives=rows,
        ops=tuple(updated(row) for row in result.ops),
        recoverable=recoverable_rows(work, result.ops, rank.priced, gain),
    )
