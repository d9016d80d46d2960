"""The join against labelled decodes of five engines, on seeds that were not used while it was written."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fixtures import score_join
from fixtures.decodes_cases import CASES, CLEAN, WRONG, select

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
    "vllm-moe-qwen3-30b+speculative",
    "sglang-moe-qwen3-30b+speculative",
)
ONCE_WRONG = [
    ("llamacpp-moe-qwen3-30b+fused_ops", 12),
    ("llamacpp-moe-qwen3-30b+fused_ops", 13),
    ("hf-dense-llama-8b+fused_ops", 14),
    ("trtllm-dense-qwen3-8b+fused_ops", 13),
    ("hf-dense-llama-8b+split_op", 32),
    ("sglang-moe-qwen3-30b+strays+opaque_gemms+jitter", 32),
    ("vllm-dense-llama-8b+strays", 42),
]
"""Fused kernels after kernels that do a part of them, a split product after an activation, a stray that looks
like the schedule of the next step's attention."""


@pytest.mark.parametrize("name", [case.name for case in CLEAN])
def test_clean_decodes_are_labelled(name: str) -> None:
    _passes(name)


@pytest.mark.parametrize("name", MUTATED)
def test_mutated_decodes_are_labelled(name: str) -> None:
    _passes(name)


@pytest.mark.parametrize("name", [case.name for case in WRONG])
def test_another_model_is_refused(name: str) -> None:
    _passes(name)


@pytest.mark.parametrize(("name", "seed"), ONCE_WRONG)
def test_what_was_once_labelled_wrong_is_labelled(name: str, seed: int) -> None:
    _passes(name, seed)


def test_sequences_are_not_guessed_where_a_draft_is_verified() -> None:
    case = replace(CASES["vllm-dense-llama-8b+speculative"], options={"context": 2048})
    table = score_join.run([case], [SEED])
    assert table["verdict"].tolist() == ["cannot_judge"]
    assert "--phase decode --batch B --tokens K" in table["notes"].iloc[0]


def test_a_verifying_step_of_other_sizes_is_refused() -> None:
    case = CASES["vllm-dense-llama-8b+speculative"]
    case = replace(case, options={**case.options, "tokens": 5})
    table = score_join.run([case], [SEED])
    assert table["verdict"].tolist() == ["cannot_judge"]
    assert "16 tokens a step, not 20" in table["notes"].iloc[0]


def _passes(name: str, seed: int = SEED) -> None:
    case = next(case for case in select([name]) if case.name == name)
    table = score_join.run([case], [seed])
    assert table["passed"].all(), table.iloc[0].to_dict()
