"""The join on captures of real engines, against what their makers and markers say of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from nsysmodel import analyze
from nsysmodel.export.joins import nvtx_of
from nsysmodel.export.run import open_run
from nsysmodel.result import DeviceResult, Evaluation
from nsysmodel.workload import WorkloadRequest

SHARED = Path(__file__).parents[3] / "shared"
TRACES, CONFIGS = SHARED / "traces", SHARED / "facts" / "configs"
pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(not TRACES.is_dir(), reason="the real exports are not part of the repository"),
]


def _judge(trace: str, model: str | Path, **workload: object) -> Evaluation:
    request = WorkloadRequest(**workload)  # type: ignore[arg-type]
    return analyze.evaluate(TRACES / f"{trace}.sqlite", str(model), workload=request)


def _per_step(device: DeviceResult) -> dict[str, float]:
    return {op.op: op.instances / device.steps.used for op in device.ops}


def _closes(device: DeviceResult) -> bool:
    return sum(part.total_ns for part in device.waterfall) == device.window_total_ns


@pytest.fixture(scope="module")
def moe() -> Evaluation:
    return _judge(
        "vllm-moe-decode-tp4-rank0-gh200",
        CONFIGS / "glm-5.2.json",
        tp=4,
        ep=4,
        quant="int4",
        context=400_000,
    )


def test_moe_steps_and_layers(moe: Evaluation) -> None:
    device = moe.devices[0]
    assert moe.verdict.status == "ok"
    assert (device.steps.found, device.steps.layers, device.steps.method) == (8, 78, "nvtx")
    assert moe.workload["batch"] == {"value": 1, "source": "export"}
    assert device.coverage.kernel_time_modeled >= 0.90
    assert _closes(device)


def test_moe_counts_close(moe: Evaluation) -> None:
    per_step = _per_step(moe.devices[0])
    assert per_step["o_proj"] == per_step["attention"] == 78
    assert per_step["router"] == per_step["moe_gate_up"] == per_step["moe_down"] == 75
    assert per_step["shared_gate_up"] == per_step["shared_down"] == 75
    assert per_step["lm_head"] == 1


def test_both_expert_tiers_serve_their_op() -> None:
    request = WorkloadRequest(tp=4, ep=4, quant="int4", context=400_000)
    trace, model = TRACES / "vllm-moe-decode-tp4-rank0-gh200.sqlite", CONFIGS / "glm-5.2.json"
    rows = analyze.instances(trace, str(model), workload=request)
    experts = rows[rows["name"].astype(str).str.contains("marlin_moe") & (rows["step"] == 1)]
    assert experts["op"].value_counts().to_dict() == {"moe_gate_up": 150, "moe_down": 150}


def test_waits_are_not_counted_against_a_bandwidth_floor(moe: Evaluation) -> None:
    collectives = [op for op in moe.devices[0].ops if "wait_included" in op.flags]
    assert {"moe_combine", "attn_allreduce"} <= {op.op for op in collectives}
    assert all(op.ratio is None for op in collectives)
    assert "moe_combine" not in " ".join(moe.verdict.reasons)


def test_hybrid_with_and_without_its_markers(tmp_path: Path) -> None:
    model = CONFIGS / "qwen3.5-27b.json"
    marked = _judge("vllm-hybrid-nvfp4-decode-b4-gb10", model, quant="nvfp4", kv_dtype="fp8", context=40)
    device = marked.devices[0]
    assert (device.steps.found, device.steps.layers) == (10, 64)
    assert marked.workload["batch"] == {"value": 4, "source": "export"}
    assert device.coverage.kernel_time_modeled >= 0.90
    head = next(op for op in device.ops if op.op == "lm_head")
    assert head.ratio == pytest.approx(1.07, abs=0.01)
    assert _per_step(device)["ssm"] == 48
    assert _per_step(device)["attention"] == 16
    assert _closes(device)

    import shutil
    import sqlite3

    hidden = tmp_path / "hidden.sqlite"
    shutil.copy(TRACES / "vllm-hybrid-nvfp4-decode-b4-gb10.sqlite", hidden)
    hidden.chmod(0o644)
    connection = sqlite3.connect(hidden)
    connection.execute("DROP TABLE NVTX_EVENTS")
    connection.commit()
    connection.close()
    request = WorkloadRequest(quant="nvfp4", kv_dtype="fp8", context=40)
    unmarked = analyze.evaluate(hidden, str(model), workload=request)
    assert unmarked.workload["batch"] == {"value": 4, "source": "inferred"}
    assert unmarked.devices[0].steps.layers == 64
    assert unmarked.devices[0].steps.found == 10


def test_a_forward_that_was_cut_off_and_one_that_ends_before_its_lm_head() -> None:
    model = Path(__file__).parents[1] / "data" / "qwen1.5-0.5b.yaml"
    result = _judge("hf-qwen1.5-0.5b-forward-h100", model, batch=16, tokens=559)
    device = result.devices[0]
    assert (device.steps.found, device.steps.used, device.steps.layers) == (2, 1, 24)
    assert [(step.index, step.reason) for step in device.steps.dropped] == [(0, "partial")]
    kernels = {op.op: op.kernels_per_instance for op in device.ops}
    assert kernels["input_norm"] >= 8
    assert kernels["rope"] >= 10
    assert "lm_head" in [row.op for row in device.missing]
    assert any("LM head" in reason for reason in result.verdict.reasons)


def test_attention_agrees_with_hidden_nvtx_ranges() -> None:
    request = WorkloadRequest(batch=4, tokens=512, logits="all")
    with open_run(TRACES / "dense2.7b-forward-nvtx-a100.sqlite") as run:
        rows = analyze.instances(run, "dense-2.7b", workload=request)
        text = nvtx_of(run, run.kernels()).astype(str)
    inside = text.isin(["computing attention scores", "computing softmax", "final matmul"]).to_numpy()
    found = (rows["op"] == "attention").to_numpy()
    duration = rows["duration_ns"].to_numpy()
    assert duration[inside & found].sum() >= 0.99 * duration[inside].sum()
    assert duration[inside & found].sum() >= 0.99 * duration[found].sum()
    begins = rows.groupby("step", dropna=True)["start_ns"].idxmin()
    assert rows.loc[begins, "name"].nunique() == 1


def test_training_is_never_judged_as_decode() -> None:
    for model in ("llama-3.1-8b", "qwen3-30b", "dense-2.7b"):
        result = _judge("transformer-training-nvtx-rtx3070ti", model)
        assert result.verdict.status == "cannot_judge", model
        assert all(op.ratio is None for device in result.devices for op in device.ops)
