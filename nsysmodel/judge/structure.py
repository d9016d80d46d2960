"""Which bundled models have the structure that an export shows: layers of each sort in a step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nsysmodel import units
from nsysmodel.errors import ModelError, NsysModelError
from nsysmodel.hardware.types import Hardware
from nsysmodel.join.sequence import identify
from nsysmodel.join.types import Join
from nsysmodel.join.vocabulary import KernelClass, Vocabulary
from nsysmodel.judge.cases import Case
from nsysmodel.judge.observed import observe
from nsysmodel.judge.plainsteps import plain_join
from nsysmodel.judge.structures import Structure, structure_of_bundled
from nsysmodel.model import LayeredSpec, bundled, load, resolve_workload
from nsysmodel.theory.floor import floor_of
from nsysmodel.workload import WorkloadRequest

FEWEST_STEPS = 3
TOLERANCE = 0.02
"""Share by which counts per step may differ from a model's: strays and odd steps."""
BEATEN = 0.95
"""A model whose floor a step beats by more than this does not fit, whatever its structure."""


@dataclass(frozen=True, slots=True)
class Fit:
    """A bundled model whose structure fits. `floor_ns` of a step; None where it cannot be computed."""

    name: str
    layers: int
    structure: str
    floor_ns: float | None
    measured_ns: float


def seen_structure(case: Case, vocabulary: Vocabulary) -> tuple[Structure, float] | None:
    """Structure of the median step and its duration; None where steps or attention kernels do not show."""
    if not len(case.kernels):
        return None
    join: Join = plain_join(case)
    if join.method == "none" or len(join.steps) < FEWEST_STEPS:
        return None
    sequence = identify(case.kernels, case.work.shapes, vocabulary)
    roles = np.array([_role(identity.kernel_class) for identity in sequence.identities])[sequence.identity]
    count = len(join.steps)
    step = join.labels.step
    inside = (step >= 0) & (step < count)
    per_step = [
        int(np.median(np.bincount(step[inside & (roles == role)], minlength=count)[:-1]))
        for role in (1, 2, 3)
    ]
    if not per_step[0]:
        return None
    durations = [window.end_ns - window.start_ns for window in join.steps[:-1]]
    return Structure(*per_step), float(np.median(durations))


def _role(kernel: KernelClass) -> int:
    """1 attention, 2 recurrent mixer, 3 router of experts, 0 anything else; helpers are not counted."""
    if kernel.helper:
        return 0
    if kernel.kernel_class in ("attention_decode", "attention_prefill"):
        return 1
    if kernel.kernel_class == "ssm":
        return 2
    return 3 if kernel.kernel_class == "router_topk" and "indexer" not in kernel.traits else 0


def fitting(case: Case, vocabulary: Vocabulary, hardware: Hardware | None) -> tuple[Fit, ...]:
    """Bundled models with the structure of the export whose floor the steps do not beat."""
    seen = seen_structure(case, vocabulary)
    if seen is None:
        return ()
    structure, measured_ns = seen
    found = []
    for name in bundled():
        of_model = structure_of_bundled(name)
        if of_model is None or not _alike(structure, of_model):
            continue
        spec = load(name)
        assert isinstance(spec, LayeredSpec)
        floor_ns = _floor(spec, case, vocabulary, hardware)
        if floor_ns is None or floor_ns * BEATEN <= measured_ns:
            found.append(Fit(name, len(spec.layers), structure.sentence, floor_ns, measured_ns))
    return tuple(found)


def fit_facts(fits: Sequence[Fit]) -> tuple[Mapping[str, Any], ...]:
    """Fits for the JSON, with the reason in words."""
    return tuple(
        {
            "name": fit.name,
            "layers": fit.layers,
            "floor_ns": fit.floor_ns,
            "reason": f"{fit.structure} a step"
            + (f"; floor {units.ns(fit.floor_ns)} of {units.ns(fit.measured_ns)}" if fit.floor_ns else ""),
        }
        for fit in fits
    )


def choose(case: Case, vocabulary: Vocabulary, hardware: Hardware | None) -> LayeredSpec:
    """The one bundled model that fits.

    Raises:
        ModelError: none fits, or several do.
    """
    fits = fitting(case, vocabulary, hardware)
    if len(fits) == 1:
        spec = load(fits[0].name)
        assert isinstance(spec, LayeredSpec)
        return spec
    if fits:
        names = ", ".join(fit.name for fit in fits)
        raise ModelError(
            f"{len(fits)} bundled models have the structure of this export ({fits[0].structure}): {names}.",
            "Their sizes decide, and only you know them: name one with --model.",
        )
    raise ModelError(
        "No bundled model has the structure of this export, or its steps cannot be told without a model.",
        "Name a model with --model: a bundled one (`nsysmodel model list`), a config.json, or a model file.",
    )


def _alike(seen: Structure, model: Structure) -> bool:
    pairs: Sequence[tuple[int, int]] = (
        (seen.attention, model.attention),
        (seen.recurrent, model.recurrent),
        (seen.expert, model.expert),
    )
    return all(abs(a - b) <= TOLERANCE * max(a, b) for a, b in pairs)


def _floor(spec: LayeredSpec, case: Case, vocabulary: Vocabulary, hardware: Hardware | None) -> float | None:
    """Floor of a step with what the export shows of the workload."""
    if hardware is None:
        return None
    values = {
        k: v for k, v in observe(case, vocabulary, WorkloadRequest()).values.items() if k != "total_tokens"
    }
    try:
        model = spec.build(resolve_workload(WorkloadRequest(), spec, values), hardware)
        return sum(floor_of(op.cost, hardware).ns for _, op in model.places())
    except NsysModelError:
        return None
