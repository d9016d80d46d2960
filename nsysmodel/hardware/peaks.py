"""Peaks from the hardware: what the arithmetic units can do in a cycle, times the clock."""

from __future__ import annotations


def gpu_peak(flop_per_cycle_per_sm: float, sm_count: float, clock_hz: float) -> float:
    """Dense FLOP/s of a GPU: FLOP per cycle and SM x SMs x clock.

    An H100 SM has four tensor cores; each makes 8 outputs of 8 multiply-adds a cycle in TF32, 512 FLOP:
    4 x 512 = 2048 FLOP per cycle and SM. Source: the NVIDIA architecture white paper.

    >>> round(gpu_peak(2048, 132, 1.98e9) / 1e12, 1)
    535.3
    >>> round(gpu_peak(2 * 32 * 4, 132, 1.98e9) / 1e12, 1)
    66.9
    """
    return flop_per_cycle_per_sm * sm_count * clock_hz


def cpu_peak(
    simd_width: float, fma_per_cycle: float, clock_hz: float, cores: float, *, flop_per_instruction: float = 2
) -> float:
    """FLOP/s of a CPU: 2 x SIMD width x FMA instructions per cycle x clock x cores.

    Args:
        simd_width: elements of a vector register (128 bits of FP32: 4); 1 for scalar code.
        fma_per_cycle: FMA instructions that one core starts in a cycle.
        clock_hz: clock under that load.
        cores: number of cores.
        flop_per_instruction: 2 for a fused multiply-add, 1 for separate multiply and add.

    Grace, FP32, 3.1 GHz, 72 cores:

    >>> round(cpu_peak(4, 4, 3.1e9, 72) / 1e12, 2), round(cpu_peak(4, 4, 3.1e9, 1) / 1e9, 1)
    (7.14, 99.2)
    """
    return flop_per_instruction * simd_width * fma_per_cycle * clock_hz * cores
