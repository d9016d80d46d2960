"""Model files: what is wrong is said with file, line, field and the accepted values."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from nsysmodel.errors import ModelError
from nsysmodel.model import FlatSpec, LayeredSpec, aliases, bundled, evaluate, load, resolve_workload
from nsysmodel.workload import Sourced, WorkloadRequest

SMALL = """\
name: small
architecture:
  hidden: 64
  layers: 4
  heads: 4
  intermediate: 128
  vocab: 1000
"""

KINDS = "layer_kinds:\n  a:\n    - "

FLAT = """\
name: bench
parameters:
  n: 64
  bytes_each: 2*n
kernels:
  - name: gemm
    pattern: gemm
    flop: 2*n**3
    bytes: 3*n*bytes_each
    dtype: fp16
  - name: copy
    pattern: copy_kernel
    bytes: 8*grid_x*block_x
"""


def write(folder: Path, text: str, name: str = "model.yaml") -> str:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def refused(folder: Path, text: str, name: str = "model.yaml") -> ModelError:
    path = write(folder, text, name)
    with pytest.raises(ModelError) as caught:
        load(path)
    return caught.value


def test_a_small_architecture(tmp_path: Path) -> None:
    spec = load(write(tmp_path, SMALL))
    assert isinstance(spec, LayeredSpec)
    step = spec.build(resolve_workload(WorkloadRequest(batch=2, context=10), spec))
    assert step.layers == ("dense",) * 4
    # q, k, v, o 64 x 64, three 64 x 128, two norms; table, head and last norm
    assert step.parameters == 4 * (4 * 64 * 64 + 3 * 64 * 128 + 2 * 64) + 2 * 64 * 1000 + 64


@pytest.mark.parametrize(
    ("old", "new", "line", "field", "accepted"),
    [
        ("  hidden: 64", "  hidden: wide", 3, "architecture.hidden", ""),
        ("  hidden: 64", "  hiden: 64", 3, "architecture.hiden", "hidden"),
        ("  heads: 4", "  heads: -4", 5, "architecture.heads", ""),
        ("  heads: 4", "  heads: 4\n  attention: linear", 6, "architecture.attention", "'gqa', 'mla'"),
        ("  heads: 4", "  heads: 4\n  dtype: fp7", 6, "architecture.dtype", "bf16"),
        ("  heads: 4", "  heads: 4\n  mixers: [full, windowed]", 6, "architecture.mixers", "mamba"),
        ("  heads: 4", "  heads: 4\n  ffns: [moe]", 2, "architecture.experts", "top_k"),
        ("name: small", "name: small\nkernel: []", 2, "kernel", "kernels"),
        ("name: small", "name: small\nlayers: [dense]\nlayer_kinds: {dense: [{id: a}]}", 3, "kind", "gemm"),
        ("name: small", KINDS + "{id: x, kind: gem, m: 1}", 3, "kind", "gemm"),
        ("name: small", KINDS + "{id: x, kind: gemm, m: 1, n: 2}", 3, "k", "bias (optional)"),
        ("name: small", KINDS + "{id: x, kind: gemm, m: 1, n: 2, k: 3, q: 4}", 3, "q", "m, n, k"),
        ("name: small", KINDS + "{id: x, kind: norm, rows: token, width: 3}", 3, "rows", "tokens"),
        ("name: small", KINDS + "{block: gqqa}", 3, "block", "delta_net"),
        ("name: small", KINDS + "{id: x, flop: 1, classes: [gem]}", 3, "classes", "moe_gemm"),
        ("name: small", KINDS + "{id: x, flop: 1, pattern: '(a+)+'}", 3, "pattern", ""),
        ("name: small", "layer_kinds: {a: [{block: gqa}]}\nlayers: [b*2]", 2, "layers", "a"),
        ("name: small", "parameters: {hidden: 3}", 1, "parameters.hidden", ""),
        ("name: small", "parameters: {mine: 2*yours}", 1, "parameters.mine", ""),
        ("name: small", "defaults: {phase: train}", 1, "defaults.phase", "decode"),
    ],
)  # fmt: skip
def test_a_wrong_field_is_named(
    tmp_path: Path, old: str, new: str, line: int, field: str, accepted: str
) -> None:
    error = refused(tmp_path, SMALL.replace(old, new, 1))
    assert f"model.yaml:{line}:" in error.message
    assert field in error.message
    assert accepted in error.hint


@pytest.mark.parametrize(
    "text",
    [
        "",
        "- a\n- b\n",
        "name: x\nname: y\narchitecture: {hidden: 1}\n",
        "a: &x [1]\nb: *x\n",
        "a: !!python/object:os.system {}\n",
        "a: !!binary aGk=\n",
        "architecture: {hidden: 1\n",
        "name: x\n",
        "architecture: {hidden: 1, layers: 1, vocab: 1}\nkernels: []\n",
        "a: " + "[" * 2000 + "]" * 2000 + "\n",
        "architecture:\n  ? [a, b]\n  : 1\n",
    ],
)
def test_a_wrong_document_is_one_error(tmp_path: Path, text: str) -> None:
    error = refused(tmp_path, text)
    assert "model.yaml" in error.message


def test_a_huge_file_is_refused(tmp_path: Path) -> None:
    assert "larger" in refused(tmp_path, "name: x\n" + "#" * 2_100_000).message


@pytest.mark.parametrize("content", [b"\xff\xfe\x00\x01", b"SQLite format 3\x00" + b"\x00" * 100])
def test_a_binary_file_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "model.yaml"
    path.write_bytes(content)
    with pytest.raises(ModelError):
        load(str(path))


def test_names_and_paths(tmp_path: Path) -> None:
    assert load("qwen3-30b").name == "qwen3-30b-a3b"
    assert load("Qwen/Qwen3-30B-A3B").name == "qwen3-30b-a3b"
    with pytest.raises(ModelError) as caught:
        load("qwen3-30bb")
    assert "qwen3-30b" in caught.value.hint
    for missing in (tmp_path / "no.yaml", tmp_path):
        with pytest.raises(ModelError):
            load(str(missing))


def test_aliases_name_bundled_models() -> None:
    assert set(aliases().values()) <= set(bundled())
    assert not set(aliases()) & set(bundled())
    assert len(bundled()) >= 25


def test_a_model_with_layers_of_its_own(tmp_path: Path) -> None:
    text = (
        SMALL
        + """
parameters: {rank: 8, twice: 2*rank}
layer_kinds:
  thick:
    - {block: input_norm}
    - {block: gqa}
    - id: lora
      flop: 4*tokens*hidden*twice
      bytes: hidden*twice*weight_bytes
      pattern: bgmv
      classes: [gemm]
  thin: [{id: only, kind: gemm, m: tokens, n: 10, k: hidden, weight: fp32, optional: true, when: tokens > 1}]
layers: [thick, thin*2]
tail: []
"""
    )
    spec = load(write(tmp_path, text))
    assert isinstance(spec, LayeredSpec)
    step = spec.build(resolve_workload(WorkloadRequest(batch=3, context=7), spec))
    assert step.layers == ("thick", "thin", "thin", "thick")
    assert step.tail == ()
    lora = step.kinds["thick"][-1]
    assert lora.cost.total_flop == 4 * 3 * 64 * 16
    assert lora.cost.weight_bytes == 64 * 16 * 2
    assert (lora.pattern, lora.classes) == ("bgmv", ("gemm",))
    assert step.kinds["thin"][0].cost.weight_bytes == 64 * 10 * 4
    one = spec.build(resolve_workload(WorkloadRequest(batch=1, context=7), spec))
    assert one.kinds["thin"] == ()


def test_a_configuration_beside_a_model_file(tmp_path: Path) -> None:
    config = {
        "model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
        "intermediate_size": 128, "vocab_size": 100,
    }  # fmt: skip
    write(tmp_path, json.dumps(config), "config.json")
    spec = load(write(tmp_path, "architecture: {config: config.json, layers: 3}\n"))
    assert isinstance(spec, LayeredSpec)
    assert (len(spec.layers), spec.values["hidden"]) == (3, 64)
    assert load(str(tmp_path)).name == "config"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"model_type": "mamba9"}, "model_type"),
        ({"model_type": "minimax_m3"}, "sparse_attention_config"),
        ({"model_type": "kimi_linear"}, "linear_attn_config"),
        ({"hidden_size": None}, "hidden_size"),
        ({"num_attention_heads": "4"}, "num_attention_heads"),
        ({"exotic_blocks": 3}, "exotic_blocks"),
        ({"hidden_act": "snake"}, "hidden_act"),
        ({"quantization_config": {"quant_method": "bitsandbytes"}}, "quantization_config.quant_method"),
        ({"quantization_config": {"quant_method": "awq", "bits": 3}}, "quantization_config.bits"),
    ],
)
def test_a_field_that_is_not_understood_is_named(tmp_path: Path, change: dict, field: str) -> None:
    config = {
        "model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
        "intermediate_size": 128, "vocab_size": 100, **change,
    }  # fmt: skip
    error = refused(tmp_path, json.dumps(config), "config.json")
    assert f"config.json: {field}:" in error.message


def test_a_key_given_twice_in_json(tmp_path: Path) -> None:
    assert (
        "twice" in refused(tmp_path, '{"model_type": "llama", "model_type": "qwen2"}', "config.json").message
    )


def test_a_flat_model(tmp_path: Path) -> None:
    spec = load(write(tmp_path, FLAT))
    assert isinstance(spec, FlatSpec)
    gemm, copy = spec.model.kernels
    assert evaluate(spec.model, gemm, {}) == (2 * 64**3, 3 * 64 * 128)
    launch = {"grid_x": np.array([1, 2]), "block_x": np.array([128, 256])}
    flop, moved = evaluate(spec.model, copy, launch)
    assert (flop, moved.tolist()) == (0, [1024, 4096])


@pytest.mark.parametrize(
    ("old", "new", "line", "field", "accepted"),
    [
        ("pattern: gemm", "pattern: 'gemm('", 7, "kernels.0.pattern", ""),
        ("flop: 2*n**3", "flop: 2*m**3", 8, "kernels.0.flop", "grid_x"),
        ("dtype: fp16", "dtype: fp17", 10, "kernels.0.dtype", "bf16"),
        ("name: copy", "name: gemm", 11, "kernels.1.name", ""),
        ("    bytes: 8*grid_x*block_x", "    byte: 8", 13, "kernels.1.byte", "bytes"),
        ("  n: 64", "  grid_x: 64", 3, "parameters.grid_x", "grid_x"),
    ],
)
def test_a_wrong_flat_model(tmp_path: Path, old: str, new: str, line: int, field: str, accepted: str) -> None:
    error = refused(tmp_path, FLAT.replace(old, new, 1))
    assert f"model.yaml:{line}:" in error.message
    assert field in error.message
    assert accepted in error.hint


def test_negative_work_is_refused(tmp_path: Path) -> None:
    spec = load(write(tmp_path, FLAT.replace("flop: 2*n**3", "flop: 1 - grid_x")))
    assert isinstance(spec, FlatSpec)
    with pytest.raises(ModelError, match="negative"):
        evaluate(spec.model, spec.model.kernels[0], {"grid_x": np.array([1, 2])})


def test_the_workload_takes_flags_then_the_export_then_defaults() -> None:
    spec = load("qwen3-30b")
    plain = resolve_workload(WorkloadRequest(), spec)
    assert {"phase", "batch", "context"} <= set(plain.assumed)
    assert (plain.phase.value, plain.batch.value, plain.context.value) == ("decode", 1, 4096)
    seen = {"batch": Sourced(8, "inferred"), "tensor_parallel": Sourced(2, "export")}
    mixed = resolve_workload(WorkloadRequest(context=100, batch=None), spec, seen)
    assert (mixed.batch, mixed.context) == (Sourced(8, "inferred"), Sourced(100, "flag"))
    assert mixed.tensor_parallel == Sourced(2, "export")
    asked = resolve_workload(WorkloadRequest(batch=3), spec, seen)
    assert asked.batch == Sourced(3, "flag")


def test_tokens_mean_prefill_and_dtypes_mean_weights() -> None:
    spec = load("llama-3.1-8b")
    prefill = resolve_workload(WorkloadRequest(tokens=512), spec)
    assert (prefill.phase, prefill.context.value) == (Sourced("prefill", "flag"), 0)
    verify = resolve_workload(WorkloadRequest(tokens=4, phase="decode"), spec)
    assert (verify.phase.value, verify.tokens.value) == ("decode", 4)
    eight = resolve_workload(WorkloadRequest(dtype="fp8"), spec)
    assert (eight.quant, eight.dtype) == (Sourced("fp8", "flag"), Sourced("", "model"))
    step = spec.build(eight)
    ops = {op.id: op for op in step.kinds["dense"]}
    assert ops["qkv_proj"].cost.weight_bytes == 6144 * 4096 + 4
    assert next(op for op in step.tail if op.id == "lm_head").cost.weight_bytes == 128256 * 4096 * 2


@pytest.mark.parametrize(
    "request_",
    [
        WorkloadRequest(ep=8),
        WorkloadRequest(tp=2, ep=3),
        WorkloadRequest(context=1, tokens=5, phase="decode"),
        WorkloadRequest(tp=3),
        WorkloadRequest(dtype="fp3"),
    ],
)
def test_an_impossible_workload(request_: WorkloadRequest) -> None:
    from nsysmodel.errors import NsysModelError

    spec = load("qwen3-30b")
    assert isinstance(spec, LayeredSpec)
    with pytest.raises(NsysModelError):
        spec.build(resolve_workload(request_, spec))
