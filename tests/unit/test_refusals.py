"""What must not be judged: floors above the measurement, missing layers, contradicted flags."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from fixtures.decodes import generate, model_file
from fixtures.decodes_cases import CASES
from nsysmodel.analyze import evaluate, instances
from nsysmodel.cli import main
from nsysmodel.errors import HardwareError, ModelError
from nsysmodel.hardware.resolve import resolve
from nsysmodel.join.ledger import _short_of_layers, expected_counts
from nsysmodel.join.windows import last_end
from nsysmodel.model import load, resolve_workload
from nsysmodel.model.patterns import regular_expression
from nsysmodel.model.types import StepModel
from nsysmodel.request import HardwareRequest, Selection
from nsysmodel.workload import WorkloadRequest

FLAT = r"""
name: far-too-large
kernels:
  - {name: all, pattern: '.', flop: 2e15, bytes: 1e12, dtype: bf16}
"""


def test_floors_above_the_measurement_refuse(bundled: Path) -> None:
    found = evaluate(bundled, model="qwen3-30b", hardware=HardwareRequest(bandwidth="1TB/s"))
    assert found.verdict.status == "cannot_judge"
    assert "the measurement or the model is wrong" in found.verdict.headline
    assert all(row.ratio is None for device in found.devices for row in device.ops)


def test_a_flat_model_refuses_too(bundled: Path, tmp_path: Path) -> None:
    path = tmp_path / "flat.yaml"
    path.write_text(FLAT, "utf-8")
    found = evaluate(bundled, model=str(path))
    assert found.verdict.status == "cannot_judge", found.verdict.headline
    assert "the measurement or the model is wrong" in found.verdict.headline


def test_ranks_without_collectives_refuse(bundled: Path) -> None:
    found = evaluate(bundled, model="qwen3-30b", workload=WorkloadRequest(dp=2))
    assert found.verdict.status == "cannot_judge"
    assert "--dp 1 would fit" in found.verdict.headline


def test_floors_of_another_gpu_are_called_so(bundled: Path) -> None:
    own = evaluate(bundled, model="qwen3-30b", hardware=HardwareRequest(gpu="gh200"))
    assert not any("--gpu" in reason for reason in own.verdict.reasons)
    other = evaluate(bundled, model="qwen3-30b", hardware=HardwareRequest(gpu="b200"))
    assert "GH200" in other.verdict.reasons[0]
    assert "B200" in other.verdict.reasons[0]


@pytest.fixture
def unknown_gpu(bundled: Path, tmp_path: Path) -> Path:
    path = tmp_path / "unknown.sqlite"
    shutil.copy(bundled, path)
    with closing(sqlite3.connect(path)) as db:
        columns = "name = 'NVIDIA Zeta 9000', chipName = 'ZZ900', memoryBandwidth = 0, computeMajor = 19"
        db.execute(f"UPDATE TARGET_INFO_GPU SET {columns}")
        db.commit()
    return path


def test_what_ran_on_an_unknown_gpu_is_shown_and_not_judged(unknown_gpu: Path) -> None:
    found = evaluate(unknown_gpu, model="qwen3-30b")
    assert found.verdict.status == "cannot_judge"
    assert "'NVIDIA Zeta 9000' is not in the catalogue" in found.verdict.headline
    assert "--gpu" in found.verdict.reasons[0]
    assert found.devices[0].kernels
    assert evaluate(unknown_gpu, "qwen3-30b", hardware=HardwareRequest(gpu="gh200")).verdict.status == "ok"


def test_an_unknown_gpu_that_a_flag_names_is_an_error(unknown_gpu: Path) -> None:
    with pytest.raises(HardwareError, match="Zeta"):
        evaluate(unknown_gpu, "qwen3-30b", hardware=HardwareRequest(clock="1.5GHz"))
    with pytest.raises(HardwareError, match="Zeta"):
        instances(unknown_gpu, "qwen3-30b")


@pytest.mark.parametrize(("quant", "doubted"), [("fp8", True), ("none", False)])
def test_weights_that_the_names_call_16_bit_are_doubted(quant: str, doubted: bool, tmp_path: Path) -> None:
    case = replace(CASES["vllm-dense-llama-8b"], steps=4)
    labels = generate(case, tmp_path / "a.sqlite", 1)
    assert labels["name"].str.startswith("nvjet_tst").any()
    found = evaluate(
        tmp_path / "a.sqlite",
        str(model_file(case, tmp_path / "a.sqlite")),
        workload=WorkloadRequest(quant=quant),
    )
    told = [item for item in found.diagnostics if item.code == "weights_16_bit"]
    assert bool(told) is doubted
    assert all("nvjet_tst" in item.message for item in told)


def test_steps_are_selected_without_a_model_too(bundled: Path) -> None:
    found = evaluate(bundled, selection=Selection(steps=(2, 4)))
    assert found.devices[0].steps.used_indices == (2, 3, 4)


@pytest.mark.parametrize("value", ["nan-5", "0-inf", "5-nan"])
def test_spans_that_are_no_numbers_are_refused(value: str, bundled: Path) -> None:
    result = CliRunner().invoke(main, ["report", str(bundled), "--time-range", value])
    assert result.exit_code != 0
    assert "not a range of seconds" in result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)


def test_the_last_step_ends_where_the_device_rests() -> None:
    start = np.array([0, 100, 200, 305, 10_000])
    end = np.array([90, 190, 300, 310, 10_005])
    assert last_end(start, end, 0, 2) == 310
    assert last_end(start[:4], end[:4], 0, 2) == 310
    assert last_end(start[:3], end[:3], 0, 2) == 300


@pytest.fixture(scope="module")
def model() -> StepModel:
    spec = load("qwen3-30b")
    return spec.build(resolve_workload(WorkloadRequest(), spec, {}), resolve("gh200"))  # type: ignore[union-attr,arg-type]


@pytest.mark.parametrize(("layers", "refused"), [(48, False), (47, True), (46, True)])
def test_a_shallower_model_is_another_model(model: StepModel, layers: int, refused: bool) -> None:
    closure = {
        op_id: (float(count), float(min(count, layers) if count == 48 else count))
        for op_id, count in expected_counts(model).items()
    }
    reasons = _short_of_layers(model, closure, resolve("gh200"))
    assert bool(reasons) == refused
    assert all(f"{layers} " in reason and "has 48" in reason for reason in reasons)


@pytest.mark.parametrize("pattern", [".*" * 9 + "zzz$", "([^q]*)" * 5 + "qqq", "a+b+c+d+e"])
def test_patterns_that_may_take_forever_are_refused(pattern: str) -> None:
    with pytest.raises(ModelError, match="forever"):
        regular_expression(pattern)
    assert regular_expression(r"\*\+gemm.*_tn_.*\d+")
