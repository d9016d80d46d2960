"""`kernels` and `memory`: groups, order, formats."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner, Result

from fixtures.generations import GENERATIONS, build_generation
from fixtures.registry import ADD, PID, SCALE, TRITON
from fixtures.target import CANARIES
from nsysmodel.cli import main
from nsysmodel.cli.frames import cut_middle, render

WITH_KERNELS = sorted(
    set(GENERATIONS) - {"nvprof", "foreign", "truncated", "wsl2-no-kernel-table", "zero-kernels", "no-cuda"}
)


def invoke(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def rows(result: Result) -> list[dict[str, str]]:
    assert result.exit_code == 0, result.output
    return list(csv.DictReader(result.stdout.splitlines()))


@pytest.fixture
def export(tmp_path: Path) -> Path:
    return build_generation("v3.16.1", tmp_path / "trace.sqlite")


def test_csv(export: Path) -> None:
    found = rows(invoke("kernels", export, "-f", "csv"))
    assert [row["name"] for row in found] == [TRITON, ADD, SCALE]
    assert found[0] == {
        "time_pct": "42.9",
        "total_ns": "18432",
        "instances": "2",
        "avg_ns": "9216.0",
        "med_ns": "9216.0",
        "min_ns": "6144",
        "max_ns": "12288",
        "stddev_ns": "4344.5",
        "name": TRITON,
    }


@pytest.mark.parametrize("name", WITH_KERNELS)
@pytest.mark.parametrize("output_format", ["table", "csv", "json", "markdown"])
def test_every_export_can_be_listed(name: str, output_format: str, tmp_path: Path) -> None:
    path = build_generation(name, tmp_path / "trace.sqlite")
    result = invoke("kernels", path, "-f", output_format)
    assert result.exit_code == 0, result.output
    assert "\x1b" not in result.stdout
    assert not any(canary in result.output for canary in CANARIES.values())
    if output_format == "markdown":
        assert len({line.count("|") - line.count("\\|") for line in result.stdout.splitlines()}) == 1


@pytest.mark.parametrize("name", ["wsl2-no-kernel-table", "zero-kernels", "no-cuda"])
def test_no_kernels_is_one_sentence_and_a_hint(name: str, tmp_path: Path) -> None:
    result = invoke("kernels", build_generation(name, tmp_path / "trace.sqlite"))
    assert result.exit_code == 1
    assert result.stdout == ""
    assert [line.split(":")[0] for line in result.stderr.splitlines()] == ["Error", "Hint"]
    assert "nsys profile" in result.stderr


def test_sort_and_top(export: Path) -> None:
    by_name = rows(invoke("kernels", export, "-f", "csv", "--sort", "name"))
    assert [row["name"] for row in by_name] == sorted([SCALE, ADD, TRITON])
    longest = rows(invoke("kernels", export, "-f", "csv", "--sort", "max_ns", "--top", "1"))
    assert [row["max_ns"] for row in longest] == ["12288"]
    wrong = invoke("kernels", export, "--sort", "colour")
    assert wrong.exit_code == 2
    assert "stddev_ns" in wrong.stderr


@pytest.mark.parametrize("by", ["short", "grid", "stream", "device", "nvtx"])
def test_groups(by: str, export: Path) -> None:
    found = rows(invoke("kernels", export, "--by", by, "-f", "csv"))
    assert sum(int(row["total_ns"]) for row in found) == sum(2048 * (i + 1) for i in range(6))


def test_instances(export: Path, tmp_path: Path) -> None:
    found = rows(invoke("kernels", export, "--instances", "-f", "csv"))
    contract = [
        "start_ns",
        "end_ns",
        "duration_ns",
        "process",
        "device",
        "stream",
        "name",
        "step",
        "layer",
        "op",
        "confidence",
    ]
    assert list(found[0])[: len(contract)] == contract
    assert [int(row["duration_ns"]) for row in found] == [2048 * (i + 1) for i in range(6)]
    assert {row["op"] for row in found} == {""}
    target = tmp_path / "instances.parquet"
    assert invoke("kernels", export, "--instances", "-o", target).exit_code == 0
    frame = pd.read_parquet(target)
    assert frame["start_ns"].dtype == "int64"
    assert frame["process"].tolist() == [PID] * 6


def test_json(export: Path) -> None:
    found = json.loads(invoke("kernels", export, "-f", "json").stdout)
    assert found["schema"] == "nsysmodel.kernels/1"
    assert found["by"] == "name"
    assert found["export"]["kernels"] == 6
    assert found["rows"][0]["name"] == TRITON


def test_selection(tmp_path: Path) -> None:
    path = build_generation("two-processes-equal-correlation", tmp_path / "trace.sqlite")
    found = rows(invoke("kernels", path, "--process", str(PID + 1), "-f", "csv"))
    assert "only_in_rank_1(int)" in {row["name"] for row in found}
    assert "only_in_rank_0(int)" not in {row["name"] for row in found}
    missing = invoke("kernels", path, "--device", "7")
    assert missing.exit_code == 1
    assert "The export has device 0." in missing.stderr


@pytest.mark.parametrize(
    "arguments", [("--by", "op"), ("--by", "name", "--instances"), ("--steps", "1-2"), ("--top", "0")]
)
def test_wrong_usage(arguments: tuple[str, ...], export: Path) -> None:
    assert invoke("kernels", export, *arguments).exit_code == 2


def test_what_makes_the_list_incomplete_is_said_aside(tmp_path: Path) -> None:
    result = invoke("kernels", build_generation("graph-level", tmp_path / "trace.sqlite"), "-f", "csv")
    assert "traced as a whole" in result.stderr
    assert len(rows(result)) == 3


def test_memory(tmp_path: Path) -> None:
    path = build_generation("um-migrations", tmp_path / "trace.sqlite")
    found = rows(invoke("memory", path, "-f", "csv"))
    assert {row["kind"] for row in found} == {"HtoD", "DtoH", "UM HtoD", "UM DtoH", "memset"}
    assert list(found[0])[-4:] == ["bytes", "bytes_per_s", "kind", "memory"]
    empty = invoke("memory", build_generation("one-kernel", tmp_path / "one.sqlite"))
    assert empty.exit_code == 0
    assert "no copies" in empty.stderr


def test_a_terminal_cuts_names_in_the_middle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    name = "void gemm<" + "x" * 200 + ">(int)"
    frame = pd.DataFrame({"total_ns": [1_234_567], "name": pd.Categorical([name])})
    shown = render(frame, "table", to_terminal=True)
    assert isinstance(shown, str)
    assert max(map(len, shown.splitlines())) <= 60
    assert "void gemm<" in shown
    assert ">(int)" in shown
    assert "1,234,567" in shown
    assert name in str(render(frame, "table", to_terminal=False))
    assert cut_middle("short", 10) == "short"
    markup = pd.DataFrame({"name": ["[bold]kernel[/bold] [x]"]})
    assert "[bold]kernel[/bold] [x]" in str(render(markup, "table", to_terminal=True))
