"""What `nsysmodel scale` answers: rows, notes and the JSON document."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from nsysmodel import units
from nsysmodel.cli.measurements import MeasurementError, parse_devices, read_pairs
from nsysmodel.cli.rows import Answer, Column
from nsysmodel.theory.scaling import (
    Communication,
    Part,
    amdahl,
    amdahl_limit,
    best_devices,
    gustafson,
    step_time,
    strong_efficiency,
    weak_efficiency,
)
from nsysmodel.theory.scaling_fit import BANDWIDTH_NOTE, ScalingFit, fit

SCHEMA = "nsysmodel.scale/1"


_LAWS = (
    Column("devices", "N", units.count),
    Column("amdahl", "Amdahl", units.ratio),
    Column("amdahl_efficiency", "efficiency", units.percent),
    Column("gustafson", "Gustafson", units.ratio),
    Column("gustafson_efficiency", "efficiency", units.percent),
)


def laws(parallel: float, counts: Sequence[int]) -> Answer:
    """Speed-up and efficiency by Amdahl (fixed problem) and Gustafson (growing problem)."""
    rows = tuple(
        {
            "devices": devices,
            "amdahl": amdahl(parallel, devices),
            "amdahl_efficiency": amdahl(parallel, devices) / devices,
            "gustafson": gustafson(1 - parallel, devices),
            "gustafson_efficiency": gustafson(1 - parallel, devices) / devices,
        }
        for devices in counts
    )
    limit = amdahl_limit(parallel)
    return Answer(
        f"Parallel part p = {units.significant(parallel, 4)}",
        _LAWS,
        rows,
        (f"Amdahl's limit, 1/(1−p): {units.ratio(limit)}.",),
        {"schema": SCHEMA, "parallel_fraction": parallel, "amdahl_limit": limit, "rows": list(rows)},
    )


_TIMES = (
    Column("devices", "N", units.count),
    Column("serial_ns", "serial", units.ns),
    Column("parallel_ns", "parallel / N", units.ns),
    Column("bandwidth_ns", "link bandwidth", units.ns),
    Column("latency_ns", "link latency", units.ns),
    Column("total_ns", "T(N)", units.ns),
    Column("speedup", "speed-up", units.ratio),
    Column("strong_efficiency", "efficiency", units.percent),
    Column("best", "", lambda value: "← least" if value else "", right=False),
)


def with_communication(
    serial_ns: float, parallel_ns: float, comm: Communication, counts: Sequence[int], largest: int
) -> Answer:
    """T(N) = T_serial + T_parallel/N + T_comm(N), and the N that minimises it."""
    best = best_devices(serial_ns, parallel_ns, comm, range(1, largest + 1))
    powers = [2**power for power in range(largest.bit_length()) if 2**power <= largest]
    shown = sorted({*(counts or powers), best.devices})
    one = step_time(serial_ns, parallel_ns, comm, 1).total_ns
    if not one > 0:
        raise MeasurementError("The step takes no time.", "Give --parallel-time above 0.")
    rows = [
        {**_part(step_time(serial_ns, parallel_ns, comm, devices), one), "best": devices == best.devices}
        for devices in shown
    ]
    notes = [
        f"Least T(N) at N = {best.devices}: {units.ns(best.total_ns)}, {units.ratio(one / best.total_ns)}."
    ]
    if best.devices == largest > 1:
        notes = [f"T(N) still falls at N = {largest}, the largest that was tried: see --max-devices."]
    if comm.collectives and not comm.latency_ns:
        notes.append(
            "No latency was given (--latency): small all-reduces are bound by it, so this is optimistic."
        )
    document = {
        "schema": SCHEMA,
        "communication": {
            "collectives": comm.collectives,
            "size_bytes": comm.size_bytes,
            "link_bytes_per_s": comm.link_bytes_per_s,
            "latency_ns": comm.latency_ns,
            "algorithm": comm.algorithm,
        },
        "best_devices": best.devices,
        "rows": rows,
    }
    title = "T(N) = serial + parallel/N + communication"
    if comm.collectives:
        size = units.bytes_(comm.size_bytes)
        title += f": {units.count(comm.collectives)} {comm.algorithm} all-reduces of {size}"
    return Answer(title, _TIMES, tuple(rows), tuple(notes), document)


def _part(part: Part, one_ns: float) -> dict[str, Any]:
    return {
        "devices": part.devices,
        "serial_ns": part.serial_ns,
        "parallel_ns": part.parallel_ns,
        "bandwidth_ns": part.bandwidth_ns,
        "latency_ns": part.latency_ns,
        "total_ns": part.total_ns,
        "speedup": one_ns / part.total_ns,
        "strong_efficiency": strong_efficiency(one_ns, part.total_ns, part.devices),
    }


def pairs_of(path: str) -> list[tuple[int, float]]:
    """(N, time in ns) from a CSV of N and seconds."""
    return read_pairs(path, parse_devices, "N")


def pairs_of_exports(exports: Sequence[str], model: str | None) -> list[tuple[int, float]]:
    """(N, median step in ns) from arguments `N=EXPORT`."""
    from nsysmodel.cli.step_times import median_step_ns

    pairs = []
    for text in exports:
        count, equals, path = text.partition("=")
        if not equals or not path:
            raise MeasurementError(
                f"'{text}' does not say how many devices it ran on.", "Write N=EXPORT, such as 4=tp4.sqlite."
            )
        pairs.append((parse_devices(count), median_step_ns(path, model)))
    return pairs


_MEASURED = (
    Column("devices", "N", units.count),
    Column("measured_ns", "measured", units.ns),
    Column("fitted_ns", "fitted", units.ns),
    Column("error", "fitted − measured", units.percent),
    Column("speedup", "speed-up", units.ratio),
    Column("strong_efficiency", "strong efficiency", units.percent),
    Column("weak_efficiency", "weak efficiency", units.percent),
)


def measured(pairs: Sequence[tuple[int, float]], *, weak: bool) -> Answer:
    """Efficiencies of measured times and, for a fixed problem, the fitted law with its residual."""
    ordered = sorted(pairs)
    ones = [time for devices, time in ordered if devices == 1]
    one = sum(ones) / len(ones) if ones else None
    law = None if weak else fit(ordered)
    rows = []
    for devices, time in ordered:
        row: dict[str, Any] = {"devices": devices, "measured_ns": time}
        if law:
            row["fitted_ns"] = law.time_ns(devices)
            row["error"] = law.time_ns(devices) / time - 1
        if one and weak:
            row["weak_efficiency"] = weak_efficiency(one, time)
        elif one:
            row["speedup"] = one / time
            row["strong_efficiency"] = strong_efficiency(one, time, devices)
        rows.append(row)
    notes = (
        []
        if one
        else ["No time with N = 1: speed-up and efficiency are relative to it, so they are left out."]
    )
    document: dict[str, Any] = {"schema": SCHEMA, "rows": rows, "fit": None}
    if law:
        notes += _law_notes(law)
        document["fit"] = _law_document(law)
    title = "Measured times, problem grown with N" if weak else "Measured times, fixed problem"
    return Answer(title, _MEASURED, tuple(rows), tuple(notes), document)


def _law_document(law: ScalingFit) -> dict[str, Any]:
    return {
        "parallel_fraction": law.parallel_fraction,
        "serial_ns": law.serial_ns,
        "parallel_ns": law.parallel_ns,
        "per_device_ns": law.per_device_ns,
        "best_devices": law.best_devices,
        "residual": law.residual,
        "worst": law.worst,
        "points": law.points,
        "exact": law.exact,
    }


def _law_notes(law: ScalingFit) -> list[str]:
    notes = [
        f"Fit: {units.ns(law.serial_ns)} serial + {units.ns(law.parallel_ns)}/N + "
        f"{units.ns(law.per_device_ns)}·(N−1); p = {units.significant(law.parallel_fraction, 4)}.",
        f"Residual: {units.percent(law.residual)} root mean square, {units.percent(law.worst)} at worst.",
    ]
    if law.exact:
        notes.append("There are as many terms as different N: the residual proves nothing. Measure more N.")
    if math.isfinite(law.best_devices):
        notes.append(f"Least fitted T(N) at N = {units.significant(law.best_devices)}.")
    if law.per_device_ns:
        notes.append(BANDWIDTH_NOTE)
    return notes
