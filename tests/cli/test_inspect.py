"""`inspect` shows what there is and never a private value."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from fixtures.generations import GENERATIONS, build_generation
from fixtures.target import CANARIES
from nsysmodel.cli import main

READABLE = sorted(set(GENERATIONS) - {"nvprof", "foreign", "truncated"})


def invoke(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.mark.parametrize("name", READABLE)
def test_every_export_can_be_inspected(name: str, tmp_path: Path) -> None:
    path = build_generation(name, tmp_path / "trace.sqlite")
    for more in ((), ("-f", "json")):
        result = invoke("inspect", path, *more)
        assert result.exit_code == 0, result.output
        assert result.stderr == ""
        assert not any(canary in result.output for canary in CANARIES.values())
        assert str(tmp_path) not in result.output
        assert "\x1b" not in result.stdout
    found = json.loads(result.stdout)
    assert found["schema"] == "nsysmodel.inspect/1"
    assert {finding["severity"] for finding in found["findings"]} <= {"info", "warning", "error"}


@pytest.mark.parametrize("name", ["nvprof", "foreign", "truncated"])
def test_what_cannot_be_read_is_one_sentence_and_a_hint(name: str, tmp_path: Path) -> None:
    result = invoke("inspect", build_generation(name, tmp_path / "trace.sqlite"))
    assert result.exit_code == 1
    assert result.stdout == ""
    assert [line.split(":")[0] for line in result.stderr.splitlines()] == ["Error", "Hint"]


def test_the_page(tmp_path: Path) -> None:
    text = invoke("inspect", build_generation("node-level", tmp_path / "trace.sqlite")).stdout
    for words in (
        "trace.sqlite (synthetic)",
        "nsys 2024.6.2.225, schema 3.16.1",
        "traced node by node",
        "complete",
        "NVIDIA GH200 480GB",
        "24 kernels on 1 stream, 4 copies",
        "0 kernel launches, 4 graph launches",
        "10 ranges",
        "CUDA_GRAPH_NODE_EVENTS",
    ):
        assert words in text, words


def test_sampled_clocks_and_mig(tmp_path: Path) -> None:
    text = invoke("inspect", build_generation("gpu-metrics-clocks", tmp_path / "a.sqlite")).stdout
    assert "GPU 0: 1.755 GHz to 1.98 GHz" in text
    assert "MIG instance" in invoke("inspect", build_generation("mig", tmp_path / "b.sqlite")).stdout


def test_a_mistyped_path_creates_nothing(tmp_path: Path) -> None:
    result = invoke("inspect", tmp_path / "none.sqlite")
    assert result.exit_code == 1
    assert "There is no file none.sqlite" in result.stderr
    assert not list(tmp_path.iterdir())


def test_output_to_a_file(tmp_path: Path) -> None:
    path = build_generation("one-kernel", tmp_path / "trace.sqlite")
    assert invoke("inspect", path, "-o", tmp_path / "found.json").exit_code == 0
    assert json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))["export"]["kernels"] == 1
