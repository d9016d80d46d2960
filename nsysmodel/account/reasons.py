"""Why an op may be slow, as hypotheses with their evidence: never a verdict.

A peak is cores × width × instructions per cycle × clock; each reason below names the factor that it doubts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final

from nsysmodel import units
from nsysmodel.bundled import bundled_yaml
from nsysmodel.result_account import Reason

CUDA_CORE_NAMES: Final = re.compile(r"sgemm|simt|ffma", re.IGNORECASE)
TENSOR_CORE_DTYPES: Final = frozenset({"bf16", "fp16", "tf32", "fp8", "fp4", "nvfp4", "mxfp4", "int8"})
BESIDE: Final = (
    (re.compile(r"split_?k.*reduce|reduce.*split_?k|splitKreduce", re.IGNORECASE), "a split-K reduction"),
    (re.compile(r"dequant|unpack|awq.*to|convert_.*weight", re.IGNORECASE), "a dequantisation"),
)
FULL_WAVES: Final = 0.9
SLOW_CLOCK: Final = 0.97
CLOCK_COMMAND: Final = (
    "nvidia-smi --query-gpu=timestamp,clocks.sm,clocks_throttle_reasons.active --format=csv -lms 100"
)


def too_few_blocks(blocks: int, sm_count: int) -> Reason | None:
    """A grid clearly smaller than the device.

    >>> too_few_blocks(64, 132).text
    '64 blocks on 132 SMs: at most 48 % busy'
    """
    if not 0 < blocks < FULL_WAVES * sm_count:
        return None
    busy = math.floor(100 * blocks / sm_count)
    share = f"at most {busy} % busy" if busy else "less than 1 % busy"
    return Reason("cores", f"{blocks} block{'s' * (blocks > 1)} on {sm_count} SMs: {share}")


def bad_last_wave(blocks: int, sm_count: int, blocks_per_sm: int = 1) -> Reason | None:
    """A last wave that leaves most of the device idle.

    Args:
        blocks: thread blocks of the grid.
        sm_count: SMs of the device.
        blocks_per_sm: blocks that fit on an SM at once.

    >>> bad_last_wave(140, 132).text
    '140 blocks in waves of 132: the last wave has 8, at most 53 % busy on average'
    """
    wave = sm_count * blocks_per_sm
    if wave <= 0 or blocks <= wave:
        return None
    waves = -(-blocks // wave)
    busy = blocks / (waves * wave)
    if busy >= FULL_WAVES:
        return None
    last = blocks - (waves - 1) * wave
    return Reason(
        "cores",
        f"{blocks} blocks in waves of {wave}: the last wave has {last}, "
        f"at most {math.floor(100 * busy)} % busy on average",
    )


def resident_blocks(
    threads: int,
    registers_per_thread: int,
    shared_bytes: int,
    *,
    max_threads_per_sm: int = 2048,
    max_blocks_per_sm: int = 32,
    registers_per_sm: int = 65_536,
    shared_bytes_per_sm: int = 0,
) -> int:
    """Blocks that fit on an SM at once, by threads, registers and shared memory; at least 1.

    Registers are given out per warp in units of 256. Unknown values (0 or less) do not limit.

    >>> resident_blocks(256, 128, 0)
    2
    """
    limits = [max_blocks_per_sm]
    if threads > 0 and max_threads_per_sm > 0:
        limits.append(max_threads_per_sm // threads)
    if threads > 0 and registers_per_thread > 0 and registers_per_sm > 0:
        per_warp = -(-registers_per_thread * 32 // 256) * 256
        limits.append(registers_per_sm // (per_warp * -(-threads // 32)))
    if shared_bytes > 0 and shared_bytes_per_sm > 0:
        limits.append(shared_bytes_per_sm // shared_bytes)
    return max(1, min(limits))


@cache
def residency(compute_capability: str) -> dict[str, int] | None:
    """What an SM of a compute capability holds at once, as `resident_blocks` takes it; None where unknown.

    >>> residency("8.9")["max_threads_per_sm"], residency("9.9")
    (1536, None)
    """
    known: dict[str, Any] = bundled_yaml("nsysmodel.account", "residency.yaml")["compute_capabilities"]
    row = known.get(compute_capability)
    if row is None:
        return None
    names = ("max_threads_per_sm", "max_blocks_per_sm", "registers_per_sm", "shared_bytes_per_sm")
    return {name: int(row[name]) for name in names}


def cuda_cores(kernel_name: str, dtype: str) -> Reason | None:
    """A kernel for the CUDA cores where the model's number format has tensor cores."""
    found = CUDA_CORE_NAMES.search(kernel_name)
    if found is None or dtype not in TENSOR_CORE_DTYPES:
        return None
    return Reason(
        "width", f"the name says '{found.group(0)}': the CUDA cores, where {dtype} has tensor cores"
    )


def work_beside(kernel_names: Sequence[str]) -> tuple[Reason, ...]:
    """Kernels that serve the op beside its main one and do no work of the model."""
    found = []
    for pattern, what in BESIDE:
        count = sum(bool(pattern.search(name)) for name in kernel_names)
        if count:
            found.append(
                Reason("instructions", f"{what} runs beside it ({count} of {len(kernel_names)} kernels)")
            )
    return tuple(found)


def slow_clock(clock_hz: float, max_clock_hz: float, source: str) -> Reason | None:
    """A clock below the one that the peaks stand for; all compute ceilings fall with it.

    Args:
        clock_hz: the clock while the steps ran.
        max_clock_hz: the clock of the peaks.
        source: where the first comes from (`samples in the export`, `--clock`).

    >>> slow_clock(1.6e9, 1.98e9, "--clock").text
    'SM clock 1.6 GHz of 1.98 GHz (--clock): compute ceilings are 81 % of the peaks'
    """
    if not 0 < clock_hz < SLOW_CLOCK * max_clock_hz:
        return None
    share = round(100 * clock_hz / max_clock_hz)
    return Reason(
        "clock",
        f"SM clock {units.clock(clock_hz)} of {units.clock(max_clock_hz)} ({source}): "
        f"compute ceilings are {share} % of the peaks",
    )


def reasons(
    kernel_name: str,
    blocks: int,
    threads: int,
    *,
    sm_count: int,
    dtype: str = "",
    registers_per_thread: int = 0,
    shared_bytes: int = 0,
    beside: Sequence[str] = (),
    limits: Mapping[str, int] | None = None,
) -> tuple[Reason, ...]:
    """Every reason that one kernel's launch and name give.

    Args:
        kernel_name: name of the op's main kernel.
        blocks, threads: thread blocks of the grid, threads of a block.
        sm_count: SMs of the device; 0 where unknown.
        dtype: number format of the op in the model.
        registers_per_thread, shared_bytes: of the launch; 0 or less where unknown. Without them no wave is
            judged: how many blocks fit on an SM would be a guess.
        beside: names of all kernels that serve the op.
        limits: what an SM holds, see `residency`; without it no wave is judged either.
    """
    found: list[Reason | None] = [too_few_blocks(blocks, sm_count)]
    if registers_per_thread > 0 and limits is not None:
        fits = resident_blocks(threads, registers_per_thread, shared_bytes, **limits)
        found.append(bad_last_wave(blocks, sm_count, fits))
    found.append(cuda_cores(kernel_name, dtype))
    return (*(reason for reason in found if reason is not None), *work_beside(beside))
