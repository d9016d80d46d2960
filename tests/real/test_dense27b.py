"""A real forward pass of a dense 2.7B decoder on A100, FP32, against ratios computed by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from nsysmodel import evaluate
from nsysmodel.cli import main
from nsysmodel.result import Evaluation
from nsysmodel.workload import WorkloadRequest

TRACES = Path(__file__).resolve().parents[3] / "shared" / "traces"
pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(not TRACES.is_dir(), reason="the real exports (../shared/traces) are not here"),
]
RATIOS = {
    "q_proj": 1.051,
    "k_proj": 1.051,
    "v_proj": 1.051,
    "o_proj": 1.051,
    "gate_proj": 1.034,
    "up_proj": 1.034,
    "down_proj": 1.046,
    "lm_head": 1.059,
}


@pytest.fixture(scope="module")
def evaluation() -> Evaluation:
    workload = WorkloadRequest(batch=4, tokens=512, logits="all")
    return evaluate(TRACES / "dense2.7b-forward-a100.sqlite", "dense-2.7b", workload=workload)


def test_steps(evaluation: Evaluation) -> None:
    steps = evaluation.devices[0].steps
    assert evaluation.verdict.status == "ok"
    assert (steps.found, steps.used, steps.layers, steps.method) == (4, 3, 32, "sequence")
    assert [(step.index, step.reason) for step in steps.dropped] == [(0, "warm_up")]


@pytest.mark.parametrize("op", RATIOS)
def test_ratios(op: str, evaluation: Evaluation) -> None:
    (row,) = [row for row in evaluation.devices[0].ops if row.op == op]
    assert row.ratio == pytest.approx(RATIOS[op], abs=0.005)
    assert (row.bound, row.dtype) == ("compute", "fp32")
    assert row.instances == 3 * (1 if op == "lm_head" else 32)


def test_coverage_and_account(evaluation: Evaluation) -> None:
    (device,) = evaluation.devices
    assert device.coverage.kernel_time_modeled >= 0.95
    assert sum(part.total_ns for part in device.waterfall) == device.window_total_ns
    measured = sum(op.total_ns for op in device.ops)
    assert measured >= 0.95 * device.coverage.kernel_time_ns


def run(export: str, *args: str) -> dict[str, object]:
    command = ["report", str(TRACES / f"{export}.sqlite"), *args, "-q", "-f", "json", "-o", "-"]
    found = CliRunner().invoke(main, command)
    assert found.exit_code == 0, found.stderr
    document: dict[str, object] = json.loads(found.stdout)
    return document


def test_hidden_kernels_are_refused_with_the_capture_command() -> None:
    verdict = run("dense2.7b-graphmode-a100", "-m", "dense-2.7b")["verdict"]
    assert isinstance(verdict, dict)
    assert verdict["status"] == "cannot_judge"
    assert "--cuda-graph-trace=node" in " ".join(verdict["reasons"])


@pytest.mark.parametrize("model", ["llama-3.1-8b", "qwen3-30b"])
def test_another_model_is_refused(model: str) -> None:
    document = run("dense2.7b-forward-a100", "-m", model)
    verdict = document["verdict"]
    assert isinstance(verdict, dict)
    assert verdict["status"] == "cannot_judge"


def test_without_flags_the_workload_is_inferred_or_said_to_be_assumed() -> None:
    document = run("dense2.7b-forward-a100", "-m", "dense-2.7b")
    workload, verdict = document["workload"], document["verdict"]
    assert isinstance(workload, dict)
    assert isinstance(verdict, dict)
    if verdict["status"] == "ok":
        assert workload["batch"]["value"] * workload["tokens"]["value"] == 2048
    else:
        assert "would fit" in " ".join([verdict["headline"], *verdict["reasons"]])
