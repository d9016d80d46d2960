"""Whether the kernels' names agree with the weight format that the floors assume."""

from __future__ import annotations

import numpy as np

from nsysmodel import units
from nsysmodel.join.types import Join
from nsysmodel.join.vocabulary import KernelClass, Vocabulary
from nsysmodel.judge.cases import Case
from nsysmodel.model.types import StepModel
from nsysmodel.result import Diagnostic
from nsysmodel.workload import Workload

PLAIN = "w16"
"""Trait of products whose names say that the weights have 16 bits."""
FEWER_BITS = frozenset({"fp8", "fp4", "int4", "w4", "w8a8"})
LEAST = 0.5
"""Share of the products' time in kernels of 16-bit names from which the format is doubted."""
GEMMS = ("gemm", "moe_gemm")


def doubt_of_quantisation(
    case: Case, join: Join, model: StepModel, workload: Workload, vocabulary: Vocabulary
) -> list[Diagnostic]:
    """A warning where weights are said to be quantised and every name that tells a format says 16 bits.

    Nothing where any kernel's name speaks of fewer bits: weights may be unpacked before a 16-bit product.
    """
    asked = str(workload.quant.value or "")
    if asked in ("", "none") or not len(case.kernels):
        return []
    names = case.kernels["name"].astype("category")
    classes = vocabulary.classify_all([str(name) for name in names.cat.categories])
    if any(_few_bits(found) for found in classes):
        return []
    heavy = {op.id for _, op in model.places() if set(GEMMS) & set(op.classes)} - {"lm_head", "router"}
    of_op = np.array([bool(heavy & set(label.split("+"))) for label in join.labels.op_labels] + [False])
    inside = of_op[join.labels.op] & np.isin(join.labels.step, [step.index for step in join.used])
    weight = np.where(inside, case.kernels["duration_ns"].to_numpy(np.int64), 0)
    time = np.bincount(names.cat.codes.to_numpy(), weights=weight, minlength=len(classes))
    plain = np.array([PLAIN in found.traits for found in classes], bool)
    share = float(time[plain].sum() / time.sum()) if time.sum() else 0.0
    if share < LEAST:
        return []
    example = str(names.cat.categories[int(np.where(plain, time, -1).argmax())])
    return [
        Diagnostic(
            "weights_16_bit",
            "warning",
            f"The floors are those of {asked} weights, and {units.percent(share)} of the products' time is "
            f"in kernels whose names say 16-bit ones ({example[:60]}): the floors may be too low.",
            "--quant none takes the weights as they are; another --quant names their format.",
        )
    ]


def _few_bits(kernel: KernelClass) -> bool:
    return bool(
        kernel.traits & FEWER_BITS
        or kernel.weight_dtype not in ("", "bf16", "fp16", "f16", "fp32", "f32")
        or kernel.kernel_class == "quantize"
    )
