"""Real pairs: the same work written in two ways, and a training run before and after a change."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

import nsysmodel
from nsysmodel.comparison.deciding import short
from nsysmodel.comparison.result import Comparison

TRACES = Path(__file__).resolve().parents[3] / "shared" / "traces"
pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(not TRACES.is_dir(), reason="the real exports (../shared/traces) are not here"),
]


@cache
def compared(a: str, b: str) -> Comparison:
    return nsysmodel.compare(TRACES / f"{a}.sqlite", TRACES / f"{b}.sqlite")


def names(parts: tuple[str, ...]) -> set[str]:
    return {short(name, 200).split("<")[0] for name in parts}


@pytest.mark.parametrize(
    ("pair", "reference", "custom", "least"),
    [
        ("softsign", {"vectorized_elementwise_kernel"}, {"softsign_kernel"}, 0.55),
        (
            "layernorm",
            {"vectorized_layer_norm_kernel"},
            {
                "layernormForwardKernel",
                "partialSumKernel",
                "computeMeanVarKernel",
                "vectorized_elementwise_kernel",
            },
            0.75,
        ),
        (
            "crossentropy",
            {"nll_loss_forward_reduce_cuda_kernel_2d", "softmax_warp_forward"},
            {"cross_entropy_forward_kernel", "reduce_sum_kernel", "vectorized_elementwise_kernel"},
            0.85,
        ),
    ],
)
def test_reference_against_custom(pair: str, reference: set[str], custom: set[str], least: float) -> None:
    found = compared(f"{pair}-reference-rtx4090", f"{pair}-custom-rtx4090")
    assert found.verdict.status == "improved"
    assert found.pairs[0].unit == "repetition"
    (row,) = found.ops
    assert row.how == "replaced"
    assert (names(row.a_parts), names(row.b_parts)) == (reference, custom)
    assert row.change == "improved"
    assert row.measure.change_ratio is not None
    assert -row.measure.change_ratio > least
    assert "→" in found.verdict.reasons[0]
    assert "mostly_replaced" in {item.code for item in found.diagnostics}


@pytest.mark.parametrize("pair", ["softsign", "layernorm", "crossentropy"])
def test_the_other_way_round_is_a_regression(pair: str) -> None:
    there = compared(f"{pair}-reference-rtx4090", f"{pair}-custom-rtx4090")
    back = compared(f"{pair}-custom-rtx4090", f"{pair}-reference-rtx4090")
    assert back.verdict.status == "regressed"
    assert back.ops[0].measure.difference_ns == -(there.ops[0].measure.difference_ns or 0.0)


def test_training_before_and_after() -> None:
    found = compared("training-2gpu-nccl-before-h100", "training-2gpu-nccl-after-h100")
    assert [(p.unit, p.device, p.steps_a, p.steps_b) for p in found.pairs] == [
        ("repetition", 0, (14,), (13,)),
        ("repetition", 1, (14,), (13,)),
    ]
    assert {op.how for op in found.ops} == {"name"}
    assert found.verdict.counts["only_a"] == found.verdict.counts["only_b"] == 0
    slower = {short(op.op) for op in found.ops if op.change == "regressed"}
    assert slower == {
        "nvjet_tst_192x192_64x4_2x1_v_bz_coopB_bias_TNN",
        "nvjet_tst_192x208_64x4_1x1_h_bz_coopB_bias_TNT",
    }
    assert found.verdict.status == "regressed"
    assert found.verdict.headline.startswith("Regressed: 4 parts slower, not the repetition as a whole")
    assert "gpu_unknown" in {item.code for item in found.diagnostics}


@pytest.mark.parametrize("name", ["training-2gpu-nccl-before-h100", "layernorm-custom-rtx4090"])
def test_an_export_against_itself_is_no_change(name: str) -> None:
    found = compared(name, name)
    assert found.verdict.status == "no_change"
    assert {op.measure.difference_ns for op in found.ops} == {0.0}


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("softsign-reference-rtx4090", "softsign-custom-rtx4090"),
        ("training-2gpu-nccl-before-h100", "training-2gpu-nccl-after-h100"),
        ("dense2.7b-forward-a100", "dense2.7b-forward-nvtx-a100"),
    ],
)
def test_every_waterfall_closes(a: str, b: str) -> None:
    for pair in compared(a, b).pairs:
        assert pair.a_mean_ns + sum(part.difference_ns for part in pair.waterfall) == pair.b_mean_ns


def test_other_gpus_are_not_comparable() -> None:
    found = compared("square-matmul-rtx4090", "dense2.7b-forward-a100")
    assert found.verdict.status == "not_comparable"
    assert "The GPU differs" in found.verdict.headline
