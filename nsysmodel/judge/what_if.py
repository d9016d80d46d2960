"""Floors of neighbouring workloads: what batch, context and bandwidth would change, before anybody tries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from nsysmodel.errors import NsysModelError
from nsysmodel.hardware.types import Hardware
from nsysmodel.model import LayeredSpec
from nsysmodel.model.types import StepModel
from nsysmodel.result import OpRow
from nsysmodel.result_what_if import WhatIf, WhatIfOp
from nsysmodel.theory.floor import Floor, floor_of
from nsysmodel.workload import Sourced, Workload

BANDWIDTHS = (0.5, 0.8, 1.0, 1.25, 1.5, 2.0)
"""Factors of the judged bandwidth."""
BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
LENGTHS = (0.25, 0.5, 1.0, 2.0, 4.0)
"""Factors of the judged context or tokens."""
NEAR = 4
"""Batches shown on each side of the judged one."""

Terms = Sequence[tuple[Floor, int]]


def what_if(
    spec: LayeredSpec, model: StepModel, workload: Workload, hardware: Hardware, ops: Sequence[OpRow] = ()
) -> WhatIf:
    """The grid around a workload, and what each judged op could give.

    Args:
        model: the step that was judged, built by `spec` for `workload`.
        ops: the judged ops, with what the step gains if they reach their floors.
    """
    axis: Literal["context", "tokens"] = "context" if workload.phase.value == "decode" else "tokens"
    batches = _batches(workload.batch.value)
    lengths = _lengths(getattr(workload, axis).value)
    steps = [[_workload(workload, axis, batch, length) for length in lengths] for batch in batches]
    here = (batches.index(workload.batch.value), lengths.index(getattr(workload, axis).value), 2)
    floors = tuple(
        tuple(
            _floors(_terms(model, hardware) if (i, j) == here[:2] else _other(spec, step, hardware))
            for j, step in enumerate(row)
        )
        for i, row in enumerate(steps)
    )
    return WhatIf(
        batches=batches,
        lengths=lengths,
        bandwidths=BANDWIDTHS,
        axis=axis,
        here=here,
        tokens=tuple(tuple(step.new_tokens for step in row) for row in steps),
        floors_ns=floors,
        # A collective waits for its peers: no share of a roof says how long it takes.
        ops=tuple(_op(row) for row in ops if row.recoverable_ns and "wait_included" not in row.flags),
    )


def _batches(judged: int) -> tuple[int, ...]:
    """Powers of two around the judged batch, and that one itself.

    >>> _batches(1), _batches(24)
    ((1, 2, 4, 8, 16), (2, 4, 8, 16, 24, 32, 64, 128, 256))
    """
    below = [batch for batch in BATCHES if batch < judged][-NEAR:]
    above = [batch for batch in BATCHES if batch > judged][:NEAR]
    return (*below, judged, *above)


def _lengths(judged: int) -> tuple[int, ...]:
    """
    >>> _lengths(4096), _lengths(1)
    ((1024, 2048, 4096, 8192, 16384), (1, 2, 4))
    """
    return tuple(sorted({length for factor in LENGTHS if (length := int(judged * factor)) > 0} | {judged}))


def _workload(workload: Workload, axis: str, batch: int, length: int) -> Workload:
    changed: dict[str, Sourced[int]] = {"batch": Sourced(batch, "flag"), axis: Sourced(length, "flag")}
    return replace(workload, **changed)  # type: ignore[arg-type]


def _other(spec: LayeredSpec, workload: Workload, hardware: Hardware) -> Terms | None:
    """Floors of another step; None where the model has no such step."""
    try:
        return _terms(spec.build(workload, hardware), hardware)
    except NsysModelError:
        return None


def _terms(model: StepModel, hardware: Hardware) -> Terms:
    """The floors of the distinct ops of a step, and how often each stands in it."""
    ops = {id(op): op for _, op in model.places()}
    counts = Counter(id(op) for _, op in model.places())
    return [(floor_of(op.cost, hardware), counts[key]) for key, op in ops.items()]


def _floors(terms: Terms | None) -> tuple[float | None, ...]:
    """Sum of floors for each bandwidth."""
    if terms is None:
        return (None,) * len(BANDWIDTHS)
    return tuple(
        round(sum(max(f.compute_ns, f.memory_ns / factor, f.link_ns) * count for f, count in terms), 1)
        for factor in BANDWIDTHS
    )


def _op(row: OpRow) -> WhatIfOp:
    return WhatIfOp(
        op=row.op,
        measured_ns=row.measured_ns,
        best_ns=max(row.floor_ns or 0.0, row.latency_floor_ns or 0.0),
        alone_ns=row.recoverable_ns or 0.0,
    )
