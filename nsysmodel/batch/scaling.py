"""Step time against the number of GPUs, where runs differ in nothing else."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from nsysmodel.batch.grouping import SAME, title
from nsysmodel.batch.types import Fact, RunRow, Scaling, ScalingPoint
from nsysmodel.theory.scaling_fit import BANDWIDTH_NOTE, fit

PARALLEL = ("tp", "ep", "dp")
KEYS = tuple(key for key in SAME if key not in PARALLEL)


def gpu_count(row: RunRow) -> int | None:
    """GPUs of a run: the label `gpus`, else tensor-parallel times data-parallel size where one is known."""
    value = row.value("gpus")
    if isinstance(value, str):
        return int(value) if value.isdecimal() and int(value) > 0 else None
    return value


def scaling(rows: Sequence[RunRow]) -> tuple[Scaling, ...]:
    """A fit for each set of comparable runs with at least two numbers of GPUs.

    Runs that cannot be judged are left out: their workload may not be what it seems.
    """
    found: dict[tuple[Fact | None, ...], list[tuple[int, RunRow]]] = {}
    for row in rows:
        count = gpu_count(row)
        if count is not None and row.step_ns and row.status in ("ok", "no_model"):
            found.setdefault(tuple(row.facts.get(key) for key in KEYS), []).append((count, row))
    usable = {
        values: members for values, members in found.items() if len({count for count, _ in members}) > 1
    }
    telling = [k for k, _ in enumerate(KEYS) if len({values[k] for values in usable}) > 1]
    return tuple(
        _fitted(title({KEYS[k]: value for k in telling if (value := values[k]) is not None}), members)
        for values, members in usable.items()
    )


def _fitted(name: str, members: Sequence[tuple[int, RunRow]]) -> Scaling:
    pairs = [(float(count), float(row.step_ns or 0.0)) for count, row in members]
    law = fit(pairs)
    counts = sorted({count for count, _ in members})
    measured = {n: statistics.median(t for c, t in pairs if c == n) for n in counts}
    base = counts[0]
    points = []
    for n in counts:
        speedup = measured[base] / measured[n]
        points.append(
            ScalingPoint(
                gpus=n,
                runs=tuple(row.name for count, row in members if count == n),
                step_ns=measured[n],
                fitted_ns=law.time_ns(n),
                speedup=speedup,
                efficiency=speedup * base / n,
            )
        )
    return Scaling(name, base, tuple(points), law, _notes(law.exact, members))


def _judged_for(row: RunRow) -> int:
    """The number of GPUs that the floors of a run are for."""
    return int(row.facts.get("tp", 1)) * int(row.facts.get("dp", 1))


def _notes(exact: bool, members: Sequence[tuple[int, RunRow]]) -> tuple[str, ...]:
    notes = []
    if exact:
        notes.append(
            "There are as many terms as numbers of GPUs, so the fit meets every point and the residual "
            "proves nothing."
        )
    notes.append(BANDWIDTH_NOTE)
    if any(row.fraction_of_roofline is not None and count != _judged_for(row) for count, row in members):
        notes.append(
            "The floors are those of another number of GPUs than the label says; the law uses measured times "
            "only. Say the size with --tp, --dp or --workload-from."
        )
    if any(int(row.facts.get("dp", 1)) > 1 for _, row in members):
        notes.append(
            "With data parallelism the batch of a rank may differ: read the law as one of the whole."
        )
    return tuple(notes)
