"""The account of every fixture adds up to the nanosecond, with a model and without."""

from __future__ import annotations

from pathlib import Path

import pytest

from fixtures.generations import GENERATIONS, build_generation, to_arrowdir, to_parquetdir
from nsysmodel import evaluate
from nsysmodel.errors import ExportError
from nsysmodel.request import HardwareRequest
from nsysmodel.result import Evaluation

NOTHING_TO_SHOW = {
    "foreign",
    "no-cuda",
    "nvprof",
    "truncated",
    "wsl2-no-kernel-table",
    "zero-kernels",
}
FLAT = """
name: small-kernels
kernels:
- {name: scale, pattern: scale, flop: grid_x * block_x, bytes: 8 * grid_x * block_x, dtype: fp32}
- {name: add, pattern: add_vectors, flop: grid_x * block_x, bytes: 12 * grid_x * block_x, dtype: fp32}
"""


@pytest.fixture(scope="module")
def flat(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("model") / "flat.yaml"
    path.write_text(FLAT)
    return str(path)


def assert_closes(evaluation: Evaluation) -> None:
    assert evaluation.devices
    for device in evaluation.devices:
        parts = [part.total_ns for part in device.waterfall]
        assert all(type(part) is int for part in (*parts, device.window_total_ns))
        assert sum(parts) == device.window_total_ns == device.step.total_ns
        idle = sum(part.total_ns for part in device.waterfall if part.kind == "gap")
        assert idle == sum(device.gaps.by_cause.values())
        assert idle == sum(bucket.total_ns for bucket in device.gaps.by_size.values())
        assert all(part.total_ns <= 0 for part in device.waterfall if part.kind == "overlap")
        if device.ops:
            served = sum(part.total_ns for part in device.waterfall if part.kind in ("floor", "excess"))
            assert served == sum(op.total_ns for op in device.ops)


@pytest.mark.parametrize("name", sorted(set(GENERATIONS) - NOTHING_TO_SHOW))
def test_small_exports(name: str, flat: str, tmp_path: Path) -> None:
    export = build_generation(name, tmp_path / "trace.sqlite")
    assert_closes(evaluate(export))
    gpu = HardwareRequest(gpu="a100-sxm4-80gb")
    for model in ("qwen3-30b", flat):
        assert_closes(evaluate(export, model, hardware=gpu))


@pytest.mark.parametrize("name", sorted(NOTHING_TO_SHOW))
def test_nothing_to_show(name: str, tmp_path: Path) -> None:
    export = build_generation(name, tmp_path / "trace.sqlite")
    with pytest.raises(ExportError) as raised:
        evaluate(export)
    assert raised.value.hint


@pytest.mark.parametrize("model", [None, "qwen3-30b", "llama-3.1-8b"])
def test_bundled(model: str | None, bundled: Path) -> None:
    assert_closes(evaluate(bundled, model))


@pytest.mark.parametrize("convert", [to_parquetdir, to_arrowdir])
def test_folders(convert: object, flat: str, tmp_path: Path) -> None:
    export = build_generation("v3.16.1", tmp_path / "trace.sqlite")
    folder = convert(export, tmp_path / "folder")  # type: ignore[operator]
    assert evaluate(folder, flat).devices == evaluate(export, flat).devices


def test_a_flat_model_judges(flat: str, tmp_path: Path) -> None:
    (device,) = evaluate(build_generation("v3.16.1", tmp_path / "trace.sqlite"), flat).devices
    assert {op.op for op in device.ops} == {"scale", "add"}
    assert [part.kind for part in device.waterfall].count("floor") == 2


def test_an_unknown_gpu_is_asked_for(tmp_path: Path) -> None:
    export = build_generation("no-gpu-table", tmp_path / "trace.sqlite")
    found = evaluate(export, "qwen3-30b").verdict
    assert found.status == "cannot_judge"
    assert "GPU is not known" in found.headline
    assert "--gpu" in found.reasons[0]
