"""Whatever stands in a file, the answer is a model or one clear error."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from nsysmodel.errors import NsysModelError
from nsysmodel.model import LayeredSpec, resolve_workload
from nsysmodel.model.documents import parse_json, parse_yaml
from nsysmodel.model.loading import from_document
from nsysmodel.workload import WorkloadRequest

SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-5, 300), st.floats(allow_nan=False), st.text(max_size=8)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
SMALL = {
    "hidden_size": 64, "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2,
    "intermediate_size": 128, "vocab_size": 100, "tie_word_embeddings": False,
}  # fmt: skip
EXPERTS = {"num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 32}
FAMILIES: dict[str, dict[str, Any]] = {
    "llama": {},
    "gemma3_text": {"sliding_window": 8, "layer_types": ["sliding_attention"] * 3 + ["full_attention"]},
    "qwen3_moe": EXPERTS,
    "gpt_oss": {"num_local_experts": 8, "num_experts_per_tok": 2,
                "quantization_config": {"quant_method": "mxfp4"}},
    "deepseek_v32": {"n_routed_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 32,
                     "kv_lora_rank": 8, "q_lora_rank": 16, "qk_nope_head_dim": 8,
                     "qk_rope_head_dim": 4, "v_head_dim": 8, "index_n_heads": 2, "index_head_dim": 8,
                     "index_topk": 16},
    "qwen3_next": {**EXPERTS, "linear_num_key_heads": 2, "linear_num_value_heads": 4,
                   "linear_key_head_dim": 8, "linear_value_head_dim": 8},
    "nemotron_h": {"hybrid_override_pattern": "M-*M", "mamba_num_heads": 4, "mamba_head_dim": 8,
                   "ssm_state_size": 8, "n_groups": 2},
}  # fmt: skip


def attempt(parse: Any, text: str, name: str) -> None:
    """Reads and builds; an error of ours is an answer, any other is a failure."""
    with contextlib.suppress(NsysModelError):
        read(parse(text, name))


def read(document: Any) -> None:
    """Builds what the document says, or raises."""
    spec = from_document(document, source="test", default_name="test")
    if isinstance(spec, LayeredSpec):
        spec.build(resolve_workload(WorkloadRequest(batch=2, context=9), spec))


@pytest.mark.parametrize("family", FAMILIES)
def test_the_small_configurations_are_right(family: str) -> None:
    text = json.dumps({"model_type": family, **SMALL, **FAMILIES[family]})
    read(parse_json(text, "config.json"))


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(sorted(FAMILIES)), st.data())
def test_configurations_with_a_wrong_field(family: str, data: st.DataObject) -> None:
    config = {"model_type": family, **SMALL, **FAMILIES[family]}
    names = st.sampled_from(sorted(config)) | st.text(min_size=1, max_size=10)
    config[data.draw(names)] = data.draw(VALUES)
    attempt(parse_json, json.dumps(config), "config.json")


def test_a_layer_type_that_is_a_list_is_one_clear_sentence() -> None:
    config = {"model_type": "gemma3_text", **SMALL, **FAMILIES["gemma3_text"], "layer_types": [["full"]] * 4}
    with pytest.raises(NsysModelError, match="layer_types"):
        read(parse_json(json.dumps(config), "config.json"))


@pytest.mark.parametrize("family", sorted(set(FAMILIES) - {"nemotron_h"}))
def test_a_configuration_without_layers_is_one_clear_sentence(family: str) -> None:
    config = {"model_type": family, **SMALL, **FAMILIES[family], "num_hidden_layers": None}
    with pytest.raises(NsysModelError, match="num_hidden_layers"):
        read(parse_json(json.dumps(config), "config.json"))


@settings(max_examples=200, deadline=None)
@given(VALUES)
def test_quantisations_of_any_form(value: Any) -> None:
    methods = ["fp8", "mxfp4", "awq", "gptq", "compressed-tensors", "modelopt"]
    for method in methods:
        extra = value if isinstance(value, dict) else {"config_groups": value, "exclude_modules": value}
        config = {"model_type": "llama", **SMALL, "quantization_config": {**extra, "quant_method": method}}
        attempt(parse_json, json.dumps(config), "config.json")


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_model_files_with_a_wrong_field(data: st.DataObject) -> None:
    file: dict[str, Any] = {
        "architecture": {"hidden": 64, "layers": 2, "heads": 4, "intermediate": 128, "vocab": 100},
        "parameters": {"n": 3},
        "layer_kinds": {
            "a": [{"block": "gqa"}, {"id": "x", "kind": "gemm", "m": "tokens", "n": 3, "k": "n"}]
        },
        "layers": ["a"],
    }
    place: Any = file
    for _ in range(data.draw(st.integers(0, 3))):
        if isinstance(place, dict) and place:
            key: Any = data.draw(st.sampled_from(sorted(place)))
        elif isinstance(place, list) and place:
            key = data.draw(st.integers(0, len(place) - 1))
        else:
            break
        if not isinstance(place[key], (dict, list)):
            break
        place = place[key]
    if isinstance(place, dict):
        names = st.sampled_from(sorted(place)) if place else st.just("x")
        place[data.draw(names | st.text(max_size=6))] = data.draw(VALUES)
    else:
        place.append(data.draw(VALUES))
    attempt(parse_yaml, yaml.safe_dump(file), "model.yaml")


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=200))
def test_any_text_as_yaml_and_json(text: str) -> None:
    for parse, name in ((parse_yaml, "a.yaml"), (parse_json, "a.json")):
        attempt(parse, text, name)
