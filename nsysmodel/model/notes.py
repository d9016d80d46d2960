"""Sentences that a report must show about a step model."""

from __future__ import annotations

from nsysmodel.model.quantization import QuantRules
from nsysmodel.model.spec import LayeredSpec
from nsysmodel.theory.ops.gemm import distinct_experts
from nsysmodel.theory.ops.types import Setting
from nsysmodel.workload import Workload


def of_step(spec: LayeredSpec, workload: Workload, setting: Setting, rules: QuantRules) -> tuple[str, ...]:
    """What was assumed or approximated for this workload."""
    result: list[str] = []
    experts, top_k = spec.values["experts"], spec.values["top_k"]
    routed = setting.tokens * workload.data_parallel.value
    if experts and routed > 1:
        expected = distinct_experts(experts, top_k, routed)
        result.append(
            f"Expert weights: {expected:.1f} of {experts} experts expected to be distinct for {routed} "
            "tokens (uniform routing); skewed or correlated tokens read fewer."
        )
    if rules.kv and not workload.kv_dtype.value:
        result.append(f"The KV cache is {rules.kv}, as the checkpoint says.")
    if workload.tensor_parallel.value > 1:
        result.append(
            "All-reduces are bounded by in-switch reduction, D·(1+1/N) bytes per direction; their latency, "
            "which rules small ones, is no part of the floor."
        )
    chosen = {int(own.get("index_topk", spec.values["index_topk"])) for own in spec.kind_values.values()}
    if most := max(chosen, default=0):
        result.append(f"Sparse attention reads at most {most} chosen entries per token.")
    return tuple(result)
