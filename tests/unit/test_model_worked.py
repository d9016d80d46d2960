"""The examples of docs/formulas.md, added up with plain arithmetic."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from nsysmodel.estimation import estimate
from nsysmodel.model import LayeredSpec, bundled, load

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_a_mixture_of_experts_at_batch_16() -> None:
    distinct = 128 * (1 - (1 - 8 / 128) ** 16)
    experts = distinct * 3 * 2048 * 768 * 2
    rest = (5120 * 2048 + 2048 * 4096 + 128 * 2048) * 2
    kv = 16 * 4096 * 2 * 4 * 128 * 2
    step = 48 * (experts + rest + kv) + 151936 * 2048 * 2
    result = estimate("qwen3-30b", gpu="gh200", batch=16, context=4096)
    assert result.floor_hbm_ns == pytest.approx(step / 4.0e12 * 1e9, rel=5e-4)


def test_latent_attention_in_fp8_on_eight_ranks() -> None:
    heads = 16
    attention = 64 * 4096 * 1152 + 2 * heads * 512 * 128 * 2
    attention += 7168 * (1536 + 576) + 1536 * heads * 192 + 7168 * heads * 128
    distinct = 256 * (1 - (1 - 8 / 256) ** 64)
    experts = distinct * 3 * 7168 * 256 + 3 * 7168 * 256 + 256 * 7168 * 2
    dense = 3 * 7168 * 18432 / 8
    step = 61 * attention + 58 * experts + 3 * dense + 129280 * 7168 * 2 / 8
    link = (2 * 61 + 1) * 64 * 7168 * 2 * (1 + 1 / 8) + 64 * 129280 * 2 * 7 / 8
    result = estimate("deepseek-v3", gpu="h200", batch=64, context=4096, tp=8)
    assert result.floor_hbm_ns == pytest.approx(step / 4.8e12 * 1e9 + link / 450e9 * 1e9, rel=2e-3)


def test_mxfp4_experts() -> None:
    experts = 4 * 3 * 2880 * 2880 * 0.53125
    rest = (5120 * 2880 + 2880 * 4096 + 128 * 2880) * 2
    kv = 18 * (4096 + 128) * 2 * 8 * 64 * 2
    step = 36 * (experts + rest) + kv + 201088 * 2880 * 2
    result = estimate("gpt-oss-120b", gpu="h100", batch=1, context=4096)
    assert result.floor_hbm_ns == pytest.approx(step / 3.35e12 * 1e9, rel=1e-3)


def test_a_hybrid_of_mamba_and_attention() -> None:
    mamba = (4096 * (2 * 8192 + 2 * 8 * 128 + 128) + 8192 * 4096) * 2 + 2 * 128 * 64 * 128 * 4
    mlp = 2 * 4096 * 21504 * 2
    attention = (4096 * 6144 + 4096 * 4096) * 2 + 4096 * 2 * 8 * 128 * 2
    step = 24 * mamba + 24 * mlp + 4 * attention + 131072 * 4096 * 2
    result = estimate("nemotron-h-8b", gpu="h100", batch=1, context=4096)
    assert result.floor_hbm_ns == pytest.approx(step / 3.35e12 * 1e9, rel=1e-3)


def test_a_prefill() -> None:
    tokens = 4096
    products = 2 * tokens * (6144 * 4096 + 4096 * 4096 + 3 * 4096 * 14336) * 32
    attention = 2 * 32 * 256 * tokens * (tokens + 1) / 2 * 32
    head = 128256 * 4096 * 2
    result = estimate("llama-3.1-8b", gpu="h100", batch=1, tokens=tokens)
    by_hand = (products + attention) / 989.4e12 * 1e9 + head / 3.35e12 * 1e9
    # norms, rotations and activations add less than a per cent
    assert by_hand < result.floor_hbm_ns < by_hand * 1.01


def test_the_table_of_parameter_counts() -> None:
    rows = re.findall(
        r"^\| `([\w.-]+)` \|[^|]*\| ([\d.]+) \| ([\d.]+) \|", (DOCS / "models.md").read_text(), re.M
    )
    assert [name for name, _, _ in rows] == list(bundled())
    for name, total, active in rows:
        spec = load(name)
        assert isinstance(spec, LayeredSpec)
        assert spec.counts[0] / 1e9 == pytest.approx(float(total), rel=1e-3)
        assert spec.counts[1] / 1e9 == pytest.approx(float(active), rel=1e-3)


def test_every_field_of_a_model_file_is_documented() -> None:
    from nsysmodel.model.declare import RANK_NAMES, WORKLOAD_NAMES
    from nsysmodel.model.kinds import KINDS
    from nsysmodel.model.schema import Architecture, Kernel, ModelFile, Operation

    text = (DOCS / "model-files.md").read_text()
    fields = [f for form in (Architecture, Kernel, ModelFile, Operation) for f in form.model_fields]
    for name in (*fields, *RANK_NAMES, *WORKLOAD_NAMES, *KINDS):
        assert f"`{name}`" in text, name


def test_the_examples_of_the_docs_are_valid(tmp_path: Path) -> None:
    blocks = re.findall(r"^```yaml\n(.*?)^```", (DOCS / "model-files.md").read_text(), re.M | re.S)
    whole = [block for block in blocks if block.startswith("name:")]
    assert len(whole) >= 2
    for index, block in enumerate(whole):
        path = tmp_path / f"example{index}.yaml"
        path.write_text(block)
        assert load(str(path)).name
