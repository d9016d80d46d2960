"""What was asked for and what the export shows: where they differ nothing is judged, and the fit is named."""

from __future__ import annotations

from nsysmodel.errors import HardwareError
from nsysmodel.hardware.resolve import resolve
from nsysmodel.hardware.types import Hardware
from nsysmodel.join.types import Join
from nsysmodel.join.vocabulary import Vocabulary
from nsysmodel.judge.cases import Case
from nsysmodel.judge.observed import Observed
from nsysmodel.judge.structure import seen_structure
from nsysmodel.judge.structures import structure_of
from nsysmodel.model import LayeredSpec
from nsysmodel.workload import Workload, WorkloadRequest

COLLECTIVE_OPS = ("_allreduce", "_allgather", "moe_dispatch", "moe_combine", "logits_gather")
"""Ops that tensor-parallel ranks cannot do without."""


def other_gpu(case: Case, hardware: Hardware) -> str:
    """That the floors are those of another GPU than the one that the kernels ran on; else empty."""
    if case.gpu is None:
        return ""
    try:
        own = resolve(None, facts=case.gpu)
    except HardwareError:
        return ""
    if not own.key or not hardware.key or own.key == hardware.key:
        return ""
    return f"The kernels ran on {own.name}, the floors are those of {hardware.name} (--gpu)."


def by_structure(case: Case, vocabulary: Vocabulary, spec: LayeredSpec) -> list[str]:
    """The refusal in terms of what runs in a step, where steps show without a model and differ from it."""
    seen = seen_structure(case, vocabulary)
    expected = structure_of(spec)
    if seen is None:
        return []
    if seen[0] == expected:
        return [
            f"What runs in a step has the structure of {spec.name} ({expected.sentence}), but takes times "
            "that do not fit this workload: --quant, --dtype, --batch, --tokens or --gpu may be wrong."
        ]
    return [f"This looks like another model: {seen[0].sentence} a step; {spec.name} has {expected.sentence}."]


def speculation(seen: Observed, workload: Workload) -> list[str]:
    """The refusal where sequences cannot be told from tokens: a draft was verified, nobody says how long."""
    if not seen.speculative or workload.phase.value != "decode" or workload.tokens.source != "model":
        return []
    return [
        f"Speculative decoding runs here ({seen.speculative}), and nothing says how many tokens of each "
        "sequence a step verifies: --phase decode --batch B --tokens K would."
    ]


def contradictions(request: WorkloadRequest, workload: Workload, join: Join) -> list[str]:
    """Flags that the export contradicts, with the value that would fit."""
    used = join.used
    if not used:
        return []
    step = used[len(used) // 2]
    told = (
        "Its step markers show" if step.source == "export" else "The grids of its token-parallel kernels show"
    )
    found = []
    if request.batch is not None and step.batch is not None and step.batch != request.batch:
        found.append(
            f"{told} {step.batch} {'sequence' if step.batch == 1 else 'sequences'} a step, "
            f"not {request.batch}: --batch {step.batch} would fit."
        )
    collectives = [found for op, (_, found) in join.closure.items() if op.endswith(COLLECTIVE_OPS)]
    for name in ("tp", "dp", "ep"):
        ranks = getattr(request, name) or 1
        if ranks > 1 and collectives and not any(collectives):
            found.append(
                f"No kernel of the export is a collective, so it did not run on {ranks} ranks: "
                f"--{name} 1 would fit."
            )
            break
    tokens = int(workload.batch.value) * (request.tokens or 1)
    if (
        (request.phase == "prefill" or request.tokens is not None)
        and step.tokens is not None
        and step.tokens != tokens
        and (step.source == "export" or request.phase == "decode")
    ):
        found.append(f"{told} {step.tokens} tokens a step, not {tokens}.")
    return found
