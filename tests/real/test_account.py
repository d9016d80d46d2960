"""The account of the real exports through the whole pipeline: identities, and what must not be praised."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nsysmodel import evaluate
from nsysmodel.result import DeviceResult
from nsysmodel.workload import WorkloadRequest

SHARED = Path(__file__).resolve().parents[3] / "shared"
TRACES = SHARED / "traces"
CONFIGS = SHARED / "facts" / "configs"
pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(not TRACES.is_dir(), reason="the real exports (../shared/traces) are not here"),
]

HYBRID = "vllm-hybrid-nvfp4-decode-b4-gb10"
TP4 = "vllm-moe-decode-tp4-rank0-gh200"
FLAT = """
name: square-matmul
parameters: {n: 2048}
kernels:
  - {name: matmul, pattern: matmul_tiled, flop: 2*n**3, bytes: 12*n*n, dtype: fp32}
  - {name: fill, pattern: FillFunctor, bytes: 4*n*n, dtype: fp32}
"""


def closes(device: DeviceResult) -> None:
    """Every identity of the account, in integers."""
    assert sum(part.total_ns for part in device.waterfall) == device.window_total_ns
    idle = sum(device.gaps.by_cause.values())
    assert idle == sum(bucket.total_ns for bucket in device.gaps.by_size.values())
    assert idle == sum(part.total_ns for part in device.waterfall if part.kind == "gap")
    median = device.median_step
    assert median is not None
    assert sum(part.total_ns for part in median.waterfall) == median.window_ns
    assert sum(row.total_ns for row in device.recoverable) <= device.window_total_ns - idle
    for row in device.collectives:
        assert row.exposed_ns + row.overlapped_ns == row.total_ns
        if row.wait_ns is not None:
            assert (row.transfer_ns or 0) + row.wait_ns == row.total_ns


@pytest.mark.parametrize(
    ("name", "config", "workload"),
    [
        ("hf-qwen1.5-0.5b-forward-h100", None, {}),
        ("dense2.7b-forward-a100", None, {}),
        (HYBRID, "qwen3.5-27b.json", {"context": 64, "quant": "nvfp4", "kv_dtype": "fp8"}),
        (TP4, "glm-5.2.json", {"tp": 4, "ep": 4, "context": 400_000, "quant": "int4"}),
    ],
)
def test_identity_of_the_language_models(
    name: str, config: str | None, workload: dict[str, int | str]
) -> None:
    model = str(CONFIGS / config) if config else None
    found = evaluate(TRACES / f"{name}.sqlite", model, workload=WorkloadRequest(**workload))  # type: ignore[arg-type]
    for device in found.devices:
        closes(device)
    json.dumps(found.to_dict(), allow_nan=False)


def test_busy_time_is_that_of_plain_sql() -> None:
    facts = json.loads((TRACES / "facts.json").read_text())
    found = evaluate(TRACES / "square-matmul-rtx4090.sqlite").devices[0]
    (fact,) = facts["square-matmul-rtx4090"]["devices"].values()
    assert found.steps.found == 0
    assert found.step.busy_ns == fact["busy_all_ns"]


def test_float_fill_stays_in_l2(tmp_path: Path) -> None:
    model = tmp_path / "square.yaml"
    model.write_text(FLAT)
    device = evaluate(TRACES / "square-matmul-rtx4090.sqlite", str(model)).devices[0]
    fill = next(op for op in device.ops if op.op == "fill")
    assert fill.ratio is not None
    assert fill.ratio < 0.5
    assert fill.flags == ("l2_resident", "beats_floor")
    assert "16.8 MB" in fill.explanation
    assert "75.5 MB" in fill.explanation
    assert fill.recoverable_ns == 0
    matmul = next(op for op in device.ops if op.op == "matmul")
    assert matmul.flags == ()
    assert any("nvidia-smi" in reason.text for reason in matmul.reasons)
    closes(device)


def test_kernels_that_all_work_show_no_fixed_cost() -> None:
    """The shortest kernel of this export is the fill of 7.6 µs, which is no launch cost."""
    found = evaluate(TRACES / "square-matmul-rtx4090.sqlite").devices[0]
    assert found.step.t0_ns is None
    assert found.small is None


def test_collectives_of_one_rank_are_estimates() -> None:
    found = evaluate(
        TRACES / f"{TP4}.sqlite",
        str(CONFIGS / "glm-5.2.json"),
        workload=WorkloadRequest(tp=4, ep=4, context=400_000, quant="int4"),
    )
    (device,) = found.devices
    assert device.collectives
    assert {row.wait_source for row in device.collectives} <= {"steps", "none"}
    for op in device.ops:
        if "wait_included" in op.flags:
            assert op.ratio is None


def test_pageable_copies_say_so() -> None:
    (row,) = evaluate(TRACES / "square-matmul-rtx4090.sqlite").devices[0].transfers
    assert (row.kind, row.memory, row.link) == ("HtoD", "pageable", "pcie")
    assert row.ratio == pytest.approx(4.2, rel=0.01)
    assert "pinned" in row.explanation
