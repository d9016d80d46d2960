"""Values that must come out: peaks, rooflines, fixed costs, transfers, scaling laws.

Each row has a name, the computed value, the expected one and a relative tolerance, which covers the rounding
of the expected value.
"""

from __future__ import annotations

import pytest

from nsysmodel.hardware.catalogue import load_catalogue
from nsysmodel.hardware.peaks import cpu_peak, gpu_peak
from nsysmodel.hardware.resolve import Overrides, resolve
from nsysmodel.theory.collectives import all_reduce_bytes, expected_copies
from nsysmodel.theory.littles_law import bytes_in_flight, latency_ns, needed_bytes, throughput
from nsysmodel.theory.roofline import (
    Shape,
    cache_bound_bytes,
    compulsory_bytes,
    gemm_bound,
    intensity_cap,
    ridge_point,
    ridge_size,
    size_for_fraction,
)
from nsysmodel.theory.sanity import possible
from nsysmodel.theory.scaling import (
    amdahl,
    amdahl_limit,
    gustafson,
    strong_efficiency,
    weak_efficiency,
)

GRACE = load_catalogue().find("grace")
H100 = load_catalogue().find("h100")
GH200 = load_catalogue().find("gh200")
SLOW = resolve("gh200", overrides=Overrides(clock=1.6e9))
C2C = GH200.links["c2c"].bytes_per_s
LATENCY = latency_ns(128 * 1024, 220e9)
TENSOR = 4 * 8 * 8 * 2
CUBE_512 = Shape(512, 512, 512)


def flow(blocks: int) -> float:
    return throughput(bytes_in_flight(blocks), LATENCY, link_bytes_per_s=C2C).bytes_per_s


def formula(dtype: str) -> float:
    return gpu_peak(H100.flop_per_cycle_per_sm[dtype], H100.sm_count, H100.clock_hz)


def attainable(dtype: str, hardware=GH200) -> float:
    return gemm_bound(CUBE_512, dtype, hardware).attainable_flop_per_s


WORKED = [
    # A scan of 4 GB, and expert weights over a link.
    ("scan of 1e9 ints from Grace's memory", possible(4e9, 0, 1, GRACE).least_ns, 7.8125e6, 1e-9),
    ("expert of Qwen3-30B-A3B", 3 * 2048 * 768 * 2, 9.4e6, 5e-3),
    ("bytes in flight, 8 blocks", bytes_in_flight(8), 128 * 1024, 0),
    ("latency of the link", LATENCY, 596, 1e-3),
    ("8 blocks", flow(8), 220e9, 1e-6),
    ("16 blocks", flow(16), 440e9, 1e-6),
    ("32 blocks are capped by the link", flow(32), 450e9, 0),
    ("bytes in flight that fill NVLink-C2C", needed_bytes(C2C, LATENCY), 268e3, 1e-3),
    ("bytes in flight that fill PCIe", needed_bytes(31e9, LATENCY), 18.47e3, 1e-3),
    # Peaks from the hardware.
    ("Grace FP32 at 3.1 GHz", GRACE.peak("fp32"), 7.1424e12, 1e-9),
    ("Grace FP32 at 3.0 GHz", cpu_peak(4, 4, 3.0e9, 72), 6.9e12, 5e-3),
    ("Grace FP32, one core", cpu_peak(4, 4, 3.1e9, 1), 99.2e9, 1e-9),
    ("Grace FP64 at 3.1 GHz", GRACE.peak("fp64"), 3.6e12, 1e-2),
    ("Grace FP64 at 3.0 GHz", cpu_peak(2, 4, 3.0e9, 72), 3.5e12, 1.5e-2),
    ("scalar FMA", cpu_peak(1, 4, 3.1e9, 72) / GRACE.peak("fp32"), 0.25, 1e-9),
    (
        "separate multiply and add",
        cpu_peak(4, 4, 3.1e9, 72, flop_per_instruction=1) / GRACE.peak("fp32"),
        0.5,
        1e-9,
    ),
    ("H100 CUDA cores FP32", gpu_peak(2 * 32 * 4, 132, 1.98e9), 66.9e12, 1e-3),
    ("H100 CUDA cores FP32, catalogue", formula("fp32"), 66.9e12, 1e-3),
    ("a tensor core in TF32", TENSOR, 512, 0),
    ("H100 TF32 at the highest clock", gpu_peak(TENSOR, 528, 1.98e9), 535.3e12, 1e-4),
    ("H100 TF32, catalogue", formula("tf32"), 535.3e12, 1e-4),
    ("H100 TF32 datasheet over formula", H100.peak("tf32") / formula("tf32"), 0.92, 5e-3),
    ("H100 BF16 at the highest clock", formula("bf16"), 1070.5e12, 1e-4),
    ("H100 FP16 at the highest clock", formula("fp16"), 1070.5e12, 1e-4),
    ("H100 BF16 datasheet over formula", H100.peak("bf16") / formula("bf16"), 0.92, 5e-3),
    ("H100 FP8 at the highest clock", formula("fp8"), 2141.1e12, 1e-4),
    ("H100 FP8 datasheet over formula", H100.peak("fp8") / formula("fp8"), 0.92, 5e-3),
    ("GH200 TF32 at 1.6 GHz", SLOW.peak("tf32"), 433e12, 2e-3),
    ("399 TFLOPS of the datasheet", 399e12 / GH200.peak("tf32"), 0.81, 5e-3),
    ("399 TFLOPS of the ceiling at 1.6 GHz", 399e12 / SLOW.peak("tf32"), 0.92, 5e-3),
    # Roofline of one kernel.
    ("ridge of Grace", ridge_point(7.1e12, 512e9), 13.9, 5e-3),
    ("ridge of GH200 FP32", ridge_point(67e12, 4e12), 16.75, 1e-9),
    ("ridge of GH200 FP32, catalogue", ridge_point(GH200.peak("fp32"), 4e12), 16.75, 3e-3),
    ("ridge of GH200 TF32", ridge_point(GH200.peak("tf32"), 4e12), 123.5, 1e-9),
    ("ridge of GH200 BF16", ridge_point(989e12, 4e12), 247, 2e-3),
    ("ridge of GH200 BF16, catalogue", ridge_point(GH200.peak("bf16"), 4e12), 247, 3e-3),
    ("least bytes of an FP32 product", compulsory_bytes(CUBE_512, 4, 4), 12 * 512**2, 0),
    ("intensity of an FP32 product", gemm_bound(CUBE_512, "fp32", GH200).intensity, 512 / 6, 1e-9),
    ("N* of Grace", ridge_size(13.9, 4, 4), 83, 6e-3),
    ("N* of GH200 FP32", ridge_size(16.75, 4, 4), 100, 6e-3),
    ("N* of GH200 TF32", ridge_size(123.5, 4, 4), 741, 1e-9),
    ("intensity cap of 50 MB", intensity_cap(50e6, 4), 880, 6e-3),
    ("intensity cap of GH200's L2", intensity_cap(GH200.l2_bytes, 4), 991, 1e-3),
    ("intensity cap of 117 MB", intensity_cap(117e6, 4), 1350, 3e-3),
    ("N = 512 on Grace", attainable("fp32", GRACE), 7.1424e12, 1e-9),
    ("N = 512 on GH200 FP32", attainable("fp32"), 67e12, 2e-3),
    ("N = 512 on GH200 TF32", attainable("tf32"), 341e12, 2e-3),
    ("N = 512 on GH200 TF32 of the peak", attainable("tf32") / GH200.peak("tf32"), 0.70, 2e-2),
    ("8192³ compulsory", compulsory_bytes(Shape(8192, 8192, 8192), 2, 2), 0.403e9, 2e-3),
    ("8192³ cache bound", cache_bound_bytes(Shape(8192, 8192, 8192), 50 * 2**20, 2), 0.429e9, 2e-3),
    ("16384³ compulsory", compulsory_bytes(Shape(16384, 16384, 16384), 2, 2), 1.61e9, 2e-3),
    ("16384³ cache bound", cache_bound_bytes(Shape(16384, 16384, 16384), 50 * 2**20, 2), 3.44e9, 2e-3),
    # Fixed costs.
    ("80 % of Grace at 120 µs", size_for_fraction(7.1e12, 120e3), 1200, 1e-2),
    ("80 % of GH200 FP32 at 12.5 µs", size_for_fraction(67e12, 12.5e3), 1200, 1.1e-2),
    ("80 % of GH200 TF32 at 12.5 µs", size_for_fraction(494e12, 12.5e3), 2300, 6e-3),
    # Scaling.
    ("Amdahl", amdahl(0.95, 8), 5.9, 6e-3),
    ("Amdahl efficiency", amdahl(0.95, 8) / 8, 0.74, 3e-3),
    ("Amdahl limit", amdahl_limit(0.95), 20, 1e-9),
    ("Gustafson", gustafson(0.05, 8), 7.65, 1e-9),
    ("strong efficiency", strong_efficiency(80, 12.5, 8), 0.8, 1e-9),
    ("weak efficiency", weak_efficiency(80, 100), 0.8, 1e-9),
    ("ring all-reduce", all_reduce_bytes(1e6, 8), 1.75e6, 1e-9),
    ("all-reduce in the switch", all_reduce_bytes(1e6, 8, "nvls"), 1.125e6, 1e-9),
    (
        "ring over switch",
        all_reduce_bytes(1e6, 8) / all_reduce_bytes(1e6, 8, "nvls"),
        1.56,
        5e-3,
    ),
    ("copies of a token over 8 ranks", expected_copies(8, 8), 5.25, 1e-3),
]


@pytest.mark.parametrize(
    ("value", "expected", "tolerance"), [row[1:] for row in WORKED], ids=[row[0] for row in WORKED]
)
def test_worked_number(value: float, expected: float, tolerance: float) -> None:
    assert value == pytest.approx(expected, rel=tolerance, abs=0)


@pytest.mark.parametrize(
    ("dtype", "hardware", "bound"),
    [("fp32", GRACE, "compute"), ("fp32", GH200, "compute"), ("tf32", GH200, "memory")],
)
def test_bound_of_a_512_product(dtype: str, hardware, bound: str) -> None:
    assert gemm_bound(CUBE_512, dtype, hardware).bound == bound


def test_a_scan_of_4_gb_in_a_nanosecond_is_impossible() -> None:
    verdict = possible(4e9, 0, 1.0, GRACE)
    assert not verdict.possible
    assert verdict.faster_than_possible == pytest.approx(7.8e6, rel=2e-3)
    assert possible(4e9, 0, 8e6, GRACE).possible
