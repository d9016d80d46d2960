"""What must hold for every model and workload."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nsysmodel.model import bundled, load, resolve_workload
from nsysmodel.model.kinds import CLASSES
from nsysmodel.model.types import StepModel
from nsysmodel.theory.ops.attention import pairs
from nsysmodel.theory.ops.compressed import compressed_pairs
from nsysmodel.workload import WorkloadRequest

MODELS = (
    "qwen3-30b", "llama-3.1-8b", "dense-2.7b", "gpt-oss-20b", "deepseek-v3.2", "qwen3-next",
    "nemotron-3-nano", "deepseek-v4-flash", "gemma-3-27b", "llama-4-scout", "granite-4",
)  # fmt: skip


def step(model: str, **workload: object) -> StepModel:
    spec = load(model)
    return spec.build(resolve_workload(WorkloadRequest(**workload), spec))  # type: ignore[arg-type]


def every_op(model: StepModel) -> list:
    return [op for _, op in model.places()]


@pytest.mark.parametrize("name", bundled())
def test_every_bundled_model_builds(name: str) -> None:
    model = step(name)
    assert len(model.layers) == load(name).values["layers"]
    assert model.parameters >= model.active_parameters > 0
    assert model.memory_bytes >= model.weights_once_bytes > 0
    for op in every_op(model):
        assert set(op.classes) <= set(CLASSES)
        assert op.formula
        for field in dataclasses.fields(op.cost):
            if field.name == "link":
                continue
            value = getattr(op.cost, field.name)
            assert (min(value.values(), default=0) if field.name == "flop" else value) >= 0
    assert {"lm_head", "final_norm", "embedding"} <= {op.id for op in every_op(model)}


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from(MODELS),
    st.integers(1, 64),
    st.integers(1, 64),
    st.integers(1, 20_000),
    st.integers(0, 5_000),
    st.sampled_from(["decode", "prefill"]),
)
def test_more_work_never_costs_less(
    model: str, batch: int, more: int, context: int, longer: int, phase: str
) -> None:
    extra = {"tokens": 64} if phase == "prefill" else {}
    small = step(model, phase=phase, batch=batch, context=context, **extra).cost
    large = step(model, phase=phase, batch=batch + more, context=context, **extra).cost
    assert large.total_flop > small.total_flop
    assert large.hbm_bytes >= small.hbm_bytes
    assert large.strict_bytes > small.strict_bytes
    # A chunk starts over, so a longer context may see less. Beyond what an indexer leaves, prefill attends to
    # the latent instead of to expanded keys: another algorithm, with other work.
    chosen = load(model).values.get("index_topk", 0)
    switches = phase == "prefill" and context + 64 <= chosen < context + longer + 64
    if model != "llama-4-scout" and not switches:
        wide = step(model, phase=phase, batch=batch, context=context + longer, **extra).cost
        assert wide.total_flop >= small.total_flop
        assert wide.hbm_bytes >= small.hbm_bytes


@settings(max_examples=20, deadline=None)
@given(
    st.sampled_from(["qwen3-30b", "llama-3.1-70b", "gpt-oss-120b"]),
    st.sampled_from([2, 4]),
    st.integers(1, 64),
)
def test_tensor_parallel_conserves_products_and_weights(model: str, tp: int, batch: int) -> None:
    sharded = (
        "qkv_proj",
        "o_proj",
        "gate_up_proj",
        "down_proj",
        "moe_gate_up",
        "moe_down",
        "lm_head",
        "attention",
    )
    one, many = step(model, batch=batch), step(model, batch=batch, tp=tp)
    for name in sharded:
        whole = [op.cost for op in every_op(one) if op.id == name]
        part = [op.cost for op in every_op(many) if op.id == name]
        assert len(whole) == len(part)
        for a, b in zip(whole, part, strict=True):
            assert b.total_flop * tp == pytest.approx(a.total_flop, rel=2e-3)
            # biases after cut inputs, and scales of groups that a cut splits, are held by every rank
            assert b.weight_bytes * tp == pytest.approx(a.weight_bytes, rel=1e-2)
            assert b.state_read_bytes * tp == pytest.approx(a.state_read_bytes)


@given(
    st.integers(0, 300), st.integers(1, 100), st.integers(1, 120), st.sampled_from(["window", "chunk", ""])
)
def test_pairs_against_counting(prefix: int, new: int, size: int, what: str) -> None:
    def seen(position: int) -> int:
        if what == "window":
            return min(position + 1, size)
        if what == "chunk":
            return position % size + 1
        return position + 1

    expected = sum(seen(position) for position in range(prefix, prefix + new))
    assert pairs(prefix, new, **({what: size} if what else {})) == expected


@settings(max_examples=20, deadline=None)
@given(st.sampled_from(["qwen3-30b", "deepseek-v3", "mixtral-8x7b"]), st.integers(1, 512))
def test_expected_experts_stay_between_their_bounds(model: str, batch: int) -> None:
    spec = load(model)
    experts, top_k = spec.values["experts"], spec.values["top_k"]
    for op in every_op(step(model, batch=batch)):
        if op.kind == "moe_gemm":
            least = (op.min_cost or op.cost).weight_bytes
            one = least / top_k
            assert least <= op.cost.weight_bytes <= one * min(experts, batch * top_k) * (1 + 1e-9)


@given(st.integers(0, 500), st.integers(1, 200), st.sampled_from([4, 7, 128]), st.integers(0, 40))
def test_compressed_pairs_against_counting(prefix: int, new: int, ratio: int, few: int) -> None:
    positions = range(prefix + 1, prefix + new + 1)
    expected = sum(min(few, p // ratio) if few else p // ratio for p in positions)
    assert compressed_pairs(prefix, new, ratio, few) == expected


def test_prefill_in_two_chunks_has_the_pairs_of_one() -> None:
    whole = step("llama-3.1-8b", tokens=1000, logits="all").cost.total_flop
    first = step("llama-3.1-8b", tokens=400, logits="all").cost.total_flop
    second = step("llama-3.1-8b", tokens=600, context=400, logits="all").cost.total_flop
    assert first + second == pytest.approx(whole, rel=1e-12)
