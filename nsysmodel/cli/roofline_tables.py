"""What `nsysmodel roofline` answers: rows, notes, the JSON document and the points of the drawing."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from nsysmodel import units
from nsysmodel.cli.measurements import parse_shape
from nsysmodel.cli.rows import Answer, Column
from nsysmodel.hardware.describe import to_dict
from nsysmodel.hardware.types import Hardware
from nsysmodel.report.roofline_svg import Point, Roof
from nsysmodel.theory.roofline import (
    Achieved,
    GemmBound,
    Shape,
    element_bytes,
    gemm_bound,
    intensity_cap,
    peak_of,
    ridge_point,
    ridge_size,
    size_for_fraction,
)
from nsysmodel.theory.sanity import possible


@dataclass(frozen=True, slots=True)
class RooflineAnswer(Answer):
    """An answer with the roofs and points of its drawing; no roofs where it has none."""

    roofs: tuple[Roof, ...] = field(default=())
    points: tuple[Point, ...] = field(default=())


def _number(value: float) -> str:
    return units.significant(value, 4)


_RIDGE = (
    Column("dtype", "type", right=False),
    Column("peak_flop_per_s", "peak", units.flops),
    Column("bandwidth_bytes_per_s", "bandwidth", units.bandwidth),
    Column("ridge_flop_per_byte", "ridge FLOP/B", _number),
    Column("ridge_size", "N* of a square GEMM", lambda value: _number(round(value))),
    Column("intensity_cap", "cache cap FLOP/B", _number),
)


def ridge_table(
    hardware: Hardware, dtypes: Sequence[str] | None, cache_bytes: float | None
) -> RooflineAnswer:
    """Ridge points, N* and the cap that the cache sets, for every engine or for those asked."""
    cache = hardware.l2_bytes if cache_bytes is None else cache_bytes
    bandwidth = hardware.bandwidth_bytes_per_s.value
    rows, roofs = [], []
    for dtype in dtypes or hardware.peak_flop_per_s:
        peak = peak_of(hardware, dtype)
        element = element_bytes(dtype)
        ridge = ridge_point(peak, bandwidth)
        rows.append(
            {
                "dtype": dtype,
                "peak_flop_per_s": peak,
                "bandwidth_bytes_per_s": bandwidth,
                "ridge_flop_per_byte": ridge,
                "ridge_size": ridge_size(ridge, element, element if element >= 2 else 2.0),
                "intensity_cap": intensity_cap(cache, element) if cache else None,
            }
        )
        roofs.append(Roof(dtype, peak, bandwidth))
    notes = ["N*: a smaller square product is bound by memory, all operands read once."]
    if cache:
        notes.append(f"Cache cap: what {units.bytes_(cache)} of fast memory allow for ever larger squares.")
    return RooflineAnswer(
        f"Ridge points of {hardware.name}",
        _RIDGE,
        tuple(rows),
        tuple(notes),
        {
            "schema": "nsysmodel.roofline/1",
            "hardware": to_dict(hardware),
            "cache_bytes": cache or None,
            "ridges": rows,
        },
        tuple(roofs),
    )


_BOUND = (
    Column("size", "M×N×K", right=False),
    Column("dtype", "type", right=False),
    Column("flop", "work", units.flop),
    Column("compulsory_bytes", "compulsory", units.bytes_),
    Column("cache_bound_bytes", "cache bound", units.bytes_),
    Column("intensity_flop_per_byte", "FLOP/B", _number),
    Column("ridge_flop_per_byte", "ridge", _number),
    Column("bound", "bound by", right=False),
    Column("attainable_flop_per_s", "attainable", units.flops),
    Column("of_peak", "of peak", units.percent),
    Column("floor_ns", "floor", units.ns),
    Column("ridge_size", "N*", lambda value: _number(round(value))),
)


def _bound_row(bound: GemmBound) -> dict[str, Any]:
    shape = bound.shape
    return {
        "size": f"{shape.m}x{shape.n}x{shape.k}",
        "dtype": bound.dtype,
        "out_dtype": bound.out_dtype,
        "flop": shape.flop,
        "compulsory_bytes": bound.compulsory_bytes,
        "cache_bound_bytes": bound.cache_bytes or None,
        "intensity_flop_per_byte": bound.intensity,
        "intensity_cap": bound.intensity_cap,
        "ridge_flop_per_byte": bound.ridge,
        "bound": bound.bound,
        "attainable_flop_per_s": bound.attainable_flop_per_s,
        "of_peak": bound.attainable_flop_per_s / bound.peak_flop_per_s,
        "floor_ns": bound.floor_ns,
        "ridge_size": bound.ridge_size,
    }


def bounds(
    hardware: Hardware, dtypes: Sequence[str], sizes: Sequence[str], cache_bytes: float | None
) -> RooflineAnswer:
    """The bound of each product in each format."""
    found = [
        gemm_bound(parse_shape(size), dtype, hardware, cache_bytes=cache_bytes)
        for size in sizes
        for dtype in dtypes
    ]
    rows = [_bound_row(bound) for bound in found]
    return RooflineAnswer(
        f"Matrix products on {hardware.name}",
        _BOUND,
        tuple(rows),
        ("Compulsory: each operand crosses DRAM once. Cache bound: 2·M·N·K/√S elements, S elements of L2.",),
        {"schema": "nsysmodel.roofline/1", "hardware": to_dict(hardware), "gemms": rows},
        _roofs(hardware, dtypes),
        tuple(
            Point(
                f"{bound.shape.m}×{bound.shape.n}×{bound.shape.k}",
                bound.intensity,
                bound.attainable_flop_per_s,
            )
            for bound in found
        ),
    )


_MEASURED = (
    Column("size", "M×N×K", right=False),
    Column("measured_ns", "measured", units.ns),
    Column("floor_ns", "floor", units.ns),
    Column("ratio", "ratio", units.ratio),
    Column("flop_per_s", "achieved", units.flops),
    Column("attainable_flop_per_s", "roof", units.flops),
    Column("of_roof", "of roof", units.percent),
    Column("of_peak", "of peak", units.percent),
    Column("bound", "bound by", right=False),
    Column("flag", "", lambda value: value.replace("_", " "), right=False),
)
_FLAGS = {
    "wrong_peak": "wrong peak: faster than the peak allows. The clock was above the datasheet's, another "
    "engine ran (TF32 instead of FP32), or time or size are wrong.",
    "l2_resident": "l2 resident: faster than DRAM allows, and the operands fit in L2, where a repetition "
    "finds them.",
    "beats_floor": "beats floor: faster than DRAM allows although the operands do not fit in L2: a wrong "
    "size, time or bandwidth.",
}


def measured(
    hardware: Hardware, dtype: str, pairs: Sequence[tuple[Shape, float]], cache_bytes: float | None
) -> RooflineAnswer:
    """Measured products against their roof; what beats it is flagged, never praised."""
    rows, points = [], []
    for shape, time_ns in pairs:
        result = Achieved(gemm_bound(shape, dtype, hardware, cache_bytes=cache_bytes), time_ns)
        row = {
            **_bound_row(result.bound),
            "measured_ns": time_ns,
            "ratio": time_ns / result.bound.floor_ns,
            "flop_per_s": result.flop_per_s,
            "of_roof": result.of_roof,
            "of_peak": result.of_peak,
            "flag": _flag(result, hardware),
        }
        rows.append(row)
        name = f"N={shape.n}" if shape.m == shape.n == shape.k else str(row["size"])
        points.append(Point(name, result.bound.intensity, result.flop_per_s))
    notes = tuple(_FLAGS[flag] for flag in dict.fromkeys(row["flag"] for row in rows) if flag)
    return RooflineAnswer(
        f"Measured {dtype} matrix products on {hardware.name}",
        _MEASURED,
        tuple(rows),
        notes,
        {"schema": "nsysmodel.roofline/1", "hardware": to_dict(hardware), "measurements": rows},
        _roofs(hardware, [dtype]),
        tuple(points),
    )


def _flag(result: Achieved, hardware: Hardware) -> str | None:
    # A measured time has its own noise: half a percent faster is not yet a contradiction.
    if result.of_roof <= 1.005:
        return None
    if result.of_peak > 1.005:
        return "wrong_peak"
    return "l2_resident" if result.bound.compulsory_bytes <= hardware.l2_bytes else "beats_floor"


def _roofs(hardware: Hardware, dtypes: Sequence[str]) -> tuple[Roof, ...]:
    bandwidth = hardware.bandwidth_bytes_per_s.value
    return tuple(Roof(dtype, peak_of(hardware, dtype), bandwidth) for dtype in dtypes)


_POSSIBLE = (
    Column("possible", "possible", lambda value: "yes" if value else "no", right=False),
    Column("measured_ns", "measured", units.ns),
    Column("least_ns", "least time", units.ns),
    Column("memory_ns", "by memory", units.ns),
    Column("compute_ns", "by compute", units.ns),
    Column("bound", "bound by", right=False),
)


def is_possible(hardware: Hardware, bytes_: float, flop: float, time_ns: float, dtype: str) -> RooflineAnswer:
    """Whether a measurement is possible at all."""
    verdict = possible(bytes_, flop, time_ns, hardware, dtype=dtype)
    row = {
        "possible": verdict.possible,
        "measured_ns": time_ns,
        "least_ns": verdict.least_ns,
        "memory_ns": verdict.memory_ns,
        "compute_ns": verdict.compute_ns,
        "bound": verdict.bound,
        "faster_than_possible": verdict.faster_than_possible,
    }
    if verdict.possible:
        note = f"Possible: at {units.percent(verdict.least_ns / time_ns)} of the roof."
    else:
        note = (
            f"Impossible: {units.significant(verdict.faster_than_possible)} times faster than the hardware "
            "allows. The timer, the size or the work is wrong, the compiler removed the work, or the data "
            "came from a cache."
        )
    title = f"{units.bytes_(bytes_)} and {units.flop(flop)} in {units.ns(time_ns)} on {hardware.name}"
    document = {"schema": "nsysmodel.roofline/1", "hardware": to_dict(hardware), "check": row}
    return RooflineAnswer(title, _POSSIBLE, (row,), (note,), document)


def with_fixed_cost(
    answer: RooflineAnswer, hardware: Hardware, dtypes: Sequence[str], t0_ns: float, fraction: float
) -> RooflineAnswer:
    """The answer with the size of a square product that reaches a fraction of peak despite T0."""
    sizes = {dtype: size_for_fraction(peak_of(hardware, dtype), t0_ns, fraction) for dtype in dtypes}
    notes = tuple(
        f"{dtype}: {units.percent(fraction)} of peak needs N of at least {_number(round(size))} "
        f"with a fixed cost of {units.ns(t0_ns)}."
        for dtype, size in sizes.items()
    )
    fixed = {"t0_ns": t0_ns, "fraction": fraction, "square_size": sizes}
    return dataclasses.replace(
        answer, notes=(*answer.notes, *notes), document={**answer.document, "fixed_cost": fixed}
    )
