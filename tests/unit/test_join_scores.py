"""The join against labelled decodes of five engines, on seeds that were not used while it was written."""

from __future__ import annotations

import pytest

from fixtures import score_join
from fixtures.decodes_cases import CLEAN, WRONG, select

SEED = 101
MUTATED = (
    "vllm-moe-qwen3-30b+opaque_gemms",
    "vllm-dense-llama-8b+strays",
    "vllm-moe-qwen3-30b+dropped_norm",
    "sglang-moe-qwen3-30b+fused_ops",
    "vllm-dense-llama-8b+split_op",
    "vllm-moe-glm-air+many_streams",
    "vllm-dense-llama-8b+pdl_overlap",
    "vllm-moe-qwen3-30b+two_gpus",
    "vllm-dense-llama-8b+mixed_prefill",
    "vllm-dense-llama-8b+batch_changes",
    "vllm-moe-qwen3-30b+ragged_first",
    "hf-dense-llama-8b+cut_last",
)


@pytest.mark.parametrize("name", [case.name for case in CLEAN])
def test_clean_decodes_are_labelled(name: str) -> None:
    _passes(name)


@pytest.mark.parametrize("name", MUTATED)
def test_mutated_decodes_are_labelled(name: str) -> None:
    _passes(name)


@pytest.mark.parametrize("name", [case.name for case in WRONG])
def test_another_model_is_refused(name: str) -> None:
    _passes(name)


def _passes(name: str) -> None:
    case = next(case for case in select([name]) if case.name == name)
    table = score_join.run([case], [SEED])
    assert table["passed"].all(), table.iloc[0].to_dict()
