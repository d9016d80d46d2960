"""Configurations as checkpoints have them: read whole, or refused by the field that is not understood."""

from __future__ import annotations

from pathlib import Path

import pytest

from nsysmodel.model import LayeredSpec, bundled, load, resolve_workload
from nsysmodel.model.config.parts import compact
from nsysmodel.model.patterns import ModulePatterns
from nsysmodel.workload import WorkloadRequest

FACTS = Path(__file__).resolve().parents[3] / "shared" / "facts" / "configs"
CONFIGS = [
    path
    for path in sorted(FACTS.glob("*.json"))
    if "hf_quant_config" not in path.name and path.name[0] != "_"
]


def test_the_facts_are_there() -> None:
    if not FACTS.is_dir():
        pytest.skip("../shared/facts is not part of the repository")
    assert len(CONFIGS) > 100


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_every_configuration_becomes_ops(path: Path) -> None:
    spec = load(str(path))
    assert isinstance(spec, LayeredSpec)
    request = WorkloadRequest(batch=3, context=5000)
    step = spec.build(resolve_workload(request, spec))
    if path.stem not in bundled():
        return
    zoo = load(path.stem)
    assert isinstance(zoo, LayeredSpec)
    same = zoo.build(resolve_workload(request, zoo))
    assert (same.layers, same.kinds, same.head, same.tail) == (step.layers, step.kinds, step.head, step.tail)
    assert same.memory_bytes == step.memory_bytes


def test_patterns_of_layers_are_written_short() -> None:
    assert compact(["s", "s", "f", "s", "s", "f", "s"]) == ["s*2", "f"]
    assert compact(["d"] + ["m"] * 60) == ["d", "m*60"]


@pytest.mark.parametrize(
    ("pattern", "module", "matches"),
    [
        ("lm_head", "lm_head", True),
        ("language_model.lm_head", "lm_head", True),
        ("model.layers.0*", "layers.0.mlp.down_proj", True),
        ("model.layers.1.*", "layers.10.mlp.down_proj", False),
        ("model.layers.*.self_attn", "layers.3.self_attn.q_proj", True),
        ("*.mlp.shared_expert.*", "layers.3.mlp.shared_expert.gate_proj", True),
        ("gate", "layers.3.mlp.gate", True),
        ("gate", "layers.3.mlp.gate_proj", False),
        ("re:.*self_attn.*", "layers.3.self_attn.o_proj", True),
        ("re:.*mlp\\.(gate|up|gate_up|down)_proj.*", "layers.0.mlp.up_proj", True),
        ("re:.*mlp\\.(gate|up|gate_up|down)_proj.*", "layers.1.mlp.experts.0.up_proj", False),
        ("backbone.layers.4.mixer.in_proj", "layers.4.mixer.in_proj", True),
    ],
)
def test_module_patterns(pattern: str, module: str, matches: bool) -> None:
    assert ModulePatterns((pattern,)).match(module) is matches


def test_excluded_layers_make_a_kind_of_their_own() -> None:
    spec = load("nemotron-3-nano-30b-a3b-nvfp4")
    assert isinstance(spec, LayeredSpec)
    step = spec.build(resolve_workload(WorkloadRequest(), spec))
    plain = next(index for index, kind in enumerate(step.layers) if kind == "mamba.2")
    assert plain == 4
    bytes_of = {
        kind: next(op for op in ops if op.id == "in_proj").cost.weight_bytes
        for kind, ops in step.kinds.items()
        if kind.startswith("mamba")
    }
    assert bytes_of["mamba.2"] / bytes_of["mamba"] == pytest.approx(2 / 0.5625)


def test_only_experts_of_gpt_oss_are_mxfp4() -> None:
    spec = load("gpt-oss-120b")
    assert isinstance(spec, LayeredSpec)
    ops = {op.id: op.cost for op in spec.build(resolve_workload(WorkloadRequest(), spec)).kinds["sliding"]}
    assert ops["qkv_proj"].weight_bytes == (64 + 16) * 64 * (2880 + 1) * 2
    one = 5760 * 2880 * 0.53125 + 5760 * 2
    assert ops["moe_gate_up"].weight_bytes == pytest.approx(4 * one)


def test_experts_of_deepseek_v4_are_mxfp4_and_the_rest_fp8() -> None:
    spec = load("deepseek-v4-flash")
    assert isinstance(spec, LayeredSpec)
    step = spec.build(resolve_workload(WorkloadRequest(batch=1, context=4096), spec))
    ops = {op.id: op.cost for op in step.kinds["indexed"]}
    assert ops["moe_gate_up"].weight_bytes == 6 * 4096 * 4096 * 0.53125
    assert ops["q_b_proj"].weight_bytes == pytest.approx(64 * 512 * 1024, rel=1e-3)
    assert ops["compressor"].weight_bytes == 4 * 512 * 4096 * 2
    # window and chosen entries of 512 numbers, keys and values at once
    assert ops["attention"].state_read_bytes == (128 + 512) * 512 * 2
    heavy = {op.id: op.cost for op in step.kinds["heavy"]}
    assert heavy["attention"].state_read_bytes == (128 + 4096 // 128) * 512 * 2
    assert "indexer" not in heavy


def test_the_kv_cache_does_not_follow_the_weights() -> None:
    spec = load("deepseek-v3")
    assert isinstance(spec, LayeredSpec)
    step = spec.build(resolve_workload(WorkloadRequest(batch=1, context=1000), spec))
    attention = next(op for op in step.kinds["moe"] if op.id == "attention")
    assert attention.cost.state_read_bytes == 1000 * 1152
