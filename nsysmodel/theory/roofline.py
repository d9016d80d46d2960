"""The roofline of one kernel: ridge points, bounds of a matrix product, fixed costs.

attainable FLOP/s = min(P, I·W), with P the peak, W the DRAM bandwidth and I = FLOP / bytes the intensity
(Williams, Waterman, Patterson 2009). Formulas here take plain numbers; `nsysmodel.theory.floor` judges ops.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from nsysmodel.errors import HardwareError, WorkloadError
from nsysmodel.hardware.types import Hardware
from nsysmodel.theory.formats import parse

Roof = Literal["compute", "memory"]


@dataclass(frozen=True, slots=True)
class Ridge:
    """Where the roof of an engine meets the bandwidth: FLOP per byte."""

    dtype: str
    peak_flop_per_s: float
    bandwidth_bytes_per_s: float

    @property
    def flop_per_byte(self) -> float:
        """Intensity above which a kernel is bound by compute."""
        return ridge_point(self.peak_flop_per_s, self.bandwidth_bytes_per_s)


def ridge_point(peak_flop_per_s: float, bandwidth_bytes_per_s: float) -> float:
    """Intensity in FLOP/byte where compute and memory take the same time: P/W.

    >>> ridge_point(494e12, 4.0e12), round(ridge_point(7.14e12, 512e9), 1)
    (123.5, 13.9)
    """
    return peak_flop_per_s / bandwidth_bytes_per_s


def ridges(hardware: Hardware) -> list[Ridge]:
    """The ridge point of every engine of a device."""
    bandwidth = hardware.bandwidth_bytes_per_s.value
    return [Ridge(dtype, peak.value, bandwidth) for dtype, peak in hardware.peak_flop_per_s.items()]


@dataclass(frozen=True, slots=True)
class Shape:
    """C[m, n] = A[m, k] · B[k, n]."""

    m: int
    n: int
    k: int

    @property
    def flop(self) -> int:
        """2·m·n·k; a multiply-add is 2."""
        return 2 * self.m * self.n * self.k


@dataclass(frozen=True, slots=True)
class GemmBound:
    """What a device can at best do with a matrix product.

    Attributes:
        shape, dtype, out_dtype: the product; operands in `dtype`, the result in `out_dtype`.
        compulsory_bytes: every operand crosses DRAM once.
        cache_bytes: what any schedule moves with this cache, about 2·m·n·k/√S elements; 0 without a cache.
        bytes: the larger of the two.
        intensity: FLOP per byte of `bytes`.
        intensity_cap: what intensity tends to for ever larger squares, set by the cache.
        ridge: FLOP per byte where memory and compute meet.
        attainable_flop_per_s: min(P, intensity·W).
        bound: which roof decides.
        floor_ns: FLOP / attainable.
        ridge_size: N of the square product whose intensity is the ridge, all operands read once.
    """

    shape: Shape
    dtype: str
    out_dtype: str
    compulsory_bytes: float
    cache_bytes: float
    bytes: float
    intensity: float
    intensity_cap: float
    ridge: float
    peak_flop_per_s: float
    attainable_flop_per_s: float
    bound: Roof
    floor_ns: float
    ridge_size: float


def compulsory_bytes(shape: Shape, element_bytes: float, out_bytes: float) -> float:
    """Bytes when A and B are read once and C is written once.

    >>> compulsory_bytes(Shape(512, 512, 512), 4, 4) == 12 * 512**2
    True
    """
    read = shape.m * shape.k + shape.k * shape.n
    return read * element_bytes + shape.m * shape.n * out_bytes


def cache_bound_bytes(shape: Shape, cache_bytes: float, element_bytes: float) -> float:
    """Bytes that any schedule moves between DRAM and a cache: about 2·m·n·k/√S elements, S elements of cache.

    Asymptotic (Smith, Lowery, Langou, van de Geijn, arXiv 1702.02017): only binding where the operands are
    much larger than the cache.

    >>> cube = Shape(16384, 16384, 16384)
    >>> round(cache_bound_bytes(cube, 50 * 2**20, 2) / 1e9, 2), round(compulsory_bytes(cube, 2, 2) / 1e9, 2)
    (3.44, 1.61)
    """
    return 2 * shape.m * shape.n * shape.k / math.sqrt(cache_bytes / element_bytes) * element_bytes


def intensity_cap(cache_bytes: float, element_bytes: float) -> float:
    """FLOP/byte that no matrix product exceeds with this cache: √S / element bytes; √M/8 for FP32.

    >>> round(intensity_cap(50e6, 4)), round(intensity_cap(117e6, 4)), round(intensity_cap(62_914_560, 4))
    (884, 1352, 991)
    """
    return math.sqrt(cache_bytes / element_bytes) / element_bytes


def ridge_size(ridge: float, element_bytes: float, out_bytes: float) -> float:
    """N of the square product with the intensity of the ridge: ridge·(2·e + o)/2; 6·ridge for FP32.

    >>> ridge_size(123.5, 4, 4), ridge_size(16.75, 4, 4)
    (741.0, 100.5)
    """
    return ridge * (2 * element_bytes + out_bytes) / 2


def gemm_bound(
    shape: Shape, dtype: str, hardware: Hardware, *, cache_bytes: float | None = None, out_dtype: str = ""
) -> GemmBound:
    """The bound of a matrix product on a device.

    Args:
        shape: m, n, k.
        dtype: engine and format of the operands.
        hardware: peaks, bandwidth, cache.
        cache_bytes: fast memory instead of the device's L2; 0 for the compulsory traffic alone.
        out_dtype: format of the result; by default the operands', bf16 for formats of 8 bits and less.

    Raises:
        HardwareError: the device has no peak for `dtype`.
        WorkloadError: a dimension is below 1.
    """
    if min(shape.m, shape.n, shape.k) < 1:
        raise WorkloadError("A matrix has no rows or columns.", "Give M, N and K of at least 1.")
    peak = peak_of(hardware, dtype)
    bandwidth = hardware.bandwidth_bytes_per_s.value
    element = element_bytes(dtype)
    out_dtype = out_dtype or (dtype if element >= 2 else "bf16")
    out = element_bytes(out_dtype)
    cache = hardware.l2_bytes if cache_bytes is None else cache_bytes
    compulsory = compulsory_bytes(shape, element, out)
    by_cache = cache_bound_bytes(shape, cache, element) if cache else 0.0
    moved = max(compulsory, by_cache)
    intensity = shape.flop / moved
    ridge = ridge_point(peak, bandwidth)
    attainable = min(peak, intensity * bandwidth)
    return GemmBound(
        shape=shape,
        dtype=dtype,
        out_dtype=out_dtype,
        compulsory_bytes=compulsory,
        cache_bytes=by_cache,
        bytes=moved,
        intensity=intensity,
        intensity_cap=intensity_cap(cache, element) if cache else math.inf,
        ridge=ridge,
        peak_flop_per_s=peak,
        attainable_flop_per_s=attainable,
        bound="compute" if intensity >= ridge else "memory",
        floor_ns=shape.flop / attainable * 1e9,
        ridge_size=ridge_size(ridge, element, out),
    )


def fixed_cost_ns(flop: float, bytes_: float, peak: float, bandwidth: float, t0_ns: float) -> float:
    """T = T0 + max(W/P, Q/B) in ns: a launch, then the roofline.

    >>> fixed_cost_ns(0, 4.0e9, 494e12, 4.0e12, 2000)
    1002000.0
    """
    return t0_ns + max(flop / peak, bytes_ / bandwidth) * 1e9


def size_for_fraction(peak_flop_per_s: float, t0_ns: float, fraction: float = 0.8) -> float:
    """N of the square product that reaches this fraction of peak despite a fixed cost T0.

    W/P ≥ T0·f/(1−f) with W = 2·N³, so N = (P·T0·f/(1−f)/2)^(1/3); for 80 % (2·P·T0)^(1/3).

    >>> round(size_for_fraction(7.14e12, 120e3)), round(size_for_fraction(67e12, 12.5e3))
    (1197, 1188)
    >>> round(size_for_fraction(494e12, 12.5e3))
    2311
    """
    if not 0 < fraction < 1:
        raise WorkloadError(f"A fraction of the peak lies between 0 and 1, not {fraction}.", "0.8 is 80 %.")
    return float((peak_flop_per_s * t0_ns * 1e-9 * fraction / (1 - fraction) / 2) ** (1 / 3))


@dataclass(frozen=True, slots=True)
class Achieved:
    """A measured matrix product against its bound."""

    bound: GemmBound
    measured_ns: float

    @property
    def flop_per_s(self) -> float:
        """Achieved FLOP/s."""
        return self.bound.shape.flop / self.measured_ns * 1e9

    @property
    def of_roof(self) -> float:
        """Achieved over attainable."""
        return self.flop_per_s / self.bound.attainable_flop_per_s

    @property
    def of_peak(self) -> float:
        """Achieved over peak."""
        return self.flop_per_s / self.bound.peak_flop_per_s


def peak_of(hardware: Hardware, dtype: str) -> float:
    """The peak of an engine.

    Raises:
        HardwareError: the device has none.
    """
    peak = hardware.peak(dtype)
    if peak is None:
        known = ", ".join(hardware.peak_flop_per_s) or "none"
        raise HardwareError(
            f"{hardware.name or 'The device'} has no {dtype} peak.",
            f"Give one with --peak {dtype}=…TFLOPS; known here: {known}.",
        )
    return peak


_ELEMENT_BYTES = {"fp4": 0.5, "int4": 0.5, "fp64_tensor": 8.0, "fp16_acc16": 2.0, "fp8_acc16": 1.0}


def element_bytes(dtype: str) -> float:
    """Bytes of one number of a format, without scales.

    >>> element_bytes("bf16"), element_bytes("tf32"), element_bytes("fp4")
    (2.0, 4.0, 0.5)
    """
    return _ELEMENT_BYTES.get(dtype) or parse(dtype).bytes
