"""The workload as the export shows it: engine markers first, then the grids of token-parallel kernels."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from nsysmodel.join.names import normalise
from nsysmodel.join.observe import observe_step
from nsysmodel.join.sequence import Sequence, identify
from nsysmodel.join.vocabulary import Vocabulary
from nsysmodel.judge.cases import Case
from nsysmodel.workload import Sourced, WorkloadRequest


@dataclass(frozen=True, slots=True)
class Observed:
    """What the export shows of the workload.

    Attributes:
        values: `phase`, `batch`, `tokens` where known, with their source.
        sentence: how they are known, for the assumptions of the report.
        speculative: a kernel of speculative decoding that runs, where the tokens of a sequence are not known.
    """

    values: dict[str, Sourced[Any]]
    sentence: str = ""
    speculative: str = ""


def observe(case: Case, vocabulary: Vocabulary, request: WorkloadRequest) -> Observed:
    """The most frequent phase and batch, of the asked phase where one was asked."""
    marked = _from_markers(case, request)
    if marked is not None:
        return marked
    if not len(case.kernels):
        return Observed({})
    sequence: Sequence = identify(case.kernels, case.work.shapes, vocabulary)
    seen = observe_step(case.kernels, sequence, np.arange(len(case.kernels)))
    if seen is None:
        return Observed({})
    values: dict[str, Sourced[Any]] = {"phase": Sourced(seen.phase, "inferred")}
    if seen.phase == "decode":
        values["batch"] = Sourced(sequences(seen.tokens, request) or seen.tokens, "inferred")
    else:
        values["total_tokens"] = Sourced(seen.tokens, "inferred")
    return Observed(values, seen.evidence, _speculative(sequence, request))


def _speculative(sequence: Sequence, request: WorkloadRequest) -> str:
    """A kernel that only speculative decoding runs; empty where the request gives the tokens."""
    if request.tokens is not None:
        return ""
    found = [i for i in sequence.identities if "speculative" in i.kernel_class.traits and i.count > 1]
    return normalise(max(found, key=lambda identity: identity.count).name).base if found else ""


def sequences(tokens: int, request: WorkloadRequest) -> int | None:
    """Sequences of a decode step of so many tokens; None where the tokens of each do not divide it."""
    each = request.tokens if request.phase == "decode" and request.tokens else 1
    return tokens // each if tokens % each == 0 else None


def _from_markers(case: Case, request: WorkloadRequest) -> Observed | None:
    keys = [
        (marker.phase, marker.batch, marker.tokens)
        for marker in case.work.markers
        if marker.phase in ("decode", "prefill") and (request.phase in (None, marker.phase))
    ]
    if len(keys) < 2:
        return None
    (phase, batch, tokens), number = Counter(keys).most_common(1)[0]
    values: dict[str, Sourced[Any]] = {"phase": Sourced(phase, "export")}
    if batch:
        values["batch"] = Sourced(batch, "export")
        if tokens and tokens % batch == 0:
            values["tokens"] = Sourced(tokens // batch, "export")
    return Observed(
        values, f"NVTX step markers of {case.work.markers[0].engine}, {number} of {len(keys)} steps"
    )
