"""Statistics by group, as nsys computes them; selections."""

from __future__ import annotations

import statistics
from pathlib import Path

import pandas as pd
import pytest

from fixtures.generations import build_generation
from fixtures.registry import ADD, PID, SCALE
from nsysmodel import open_run
from nsysmodel.errors import ExportError
from nsysmodel.export.run import Run
from nsysmodel.export.selecting import select
from nsysmodel.export.summary import STATISTICS, grouped, kernel_summary, memory_summary


def plain(durations: list[int]) -> pd.Series:
    rows = pd.DataFrame({"duration_ns": durations})
    table = grouped(rows, {"name": pd.Categorical(["k"] * len(durations))})
    assert len(table) == 1
    return table.iloc[0]


@pytest.mark.parametrize("durations", [[7], [3, 4], [5, 1, 9], [2, 2, 2, 2], [10**15, 1, 10**15 - 1, 3]])
def test_statistics_agree_with_the_standard_library(durations: list[int]) -> None:
    row = plain(durations)
    assert row["total_ns"] == sum(durations)
    assert row["instances"] == len(durations)
    assert row["avg_ns"] == pytest.approx(statistics.fmean(durations))
    assert row["med_ns"] == statistics.median(durations)
    assert (row["min_ns"], row["max_ns"]) == (min(durations), max(durations))
    expected = statistics.stdev(durations) if len(durations) > 1 else 0
    assert row["stddev_ns"] == pytest.approx(expected)
    assert row["time_pct"] == 100


def test_groups_of_kernels(tmp_path: Path) -> None:
    with open_run(build_generation("two-processes-equal-correlation", tmp_path / "t.sqlite")) as run:
        by_name = kernel_summary(run)
        assert list(by_name.columns) == [*STATISTICS, "name"]
        assert by_name["total_ns"].is_monotonic_decreasing
        assert by_name["time_pct"].sum() == pytest.approx(100)
        assert by_name.set_index("name").loc[ADD, "instances"] == 4
        for by, columns in {
            "short": ["name"],
            "grid": ["grid", "block", "name"],
            "stream": ["process", "device", "stream"],
            "device": ["process", "device"],
            "nvtx": ["name"],
        }.items():
            table = kernel_summary(run, by)  # type: ignore[arg-type]
            assert list(table.columns) == [*STATISTICS, *columns]
            assert table["total_ns"].sum() == run.facts.kernel_time_ns
        assert kernel_summary(run, "grid")["grid"].unique().tolist() == ["8x1x1"]
        assert set(kernel_summary(run, "nvtx")["name"]) == {"rank 0", "rank 1"}


def test_kernels_without_a_range_are_a_group(tmp_path: Path) -> None:
    with open_run(build_generation("v3.16.1", tmp_path / "t.sqlite")) as run:
        assert set(kernel_summary(run, "nvtx")["name"]) == {"forward"}
        assert kernel_summary(run, "op", run.kernels().assign(op=None))["op"].tolist() == ["<unmodeled>"]
    with open_run(build_generation("one-kernel", tmp_path / "t.sqlite")) as run:
        assert kernel_summary(run, "nvtx")["name"].tolist() == ["<no range>"]


def test_nothing_to_group(tmp_path: Path) -> None:
    with open_run(build_generation("zero-kernels", tmp_path / "t.sqlite")) as run:
        assert list(kernel_summary(run).columns) == [*STATISTICS, "name"]
        assert len(kernel_summary(run)) == len(memory_summary(run)) == 0


def test_zero_durations_divide_nothing(tmp_path: Path) -> None:
    with open_run(build_generation("zero-duration", tmp_path / "t.sqlite")) as run:
        row = kernel_summary(run).iloc[0]
        assert (row["instances"], row["total_ns"], row["time_pct"], row["stddev_ns"]) == (5, 0, 0, 0)


def test_memory(tmp_path: Path) -> None:
    with open_run(build_generation("um-migrations", tmp_path / "t.sqlite")) as run:
        table = memory_summary(run).set_index("kind")
        assert set(table.index) == {"HtoD", "DtoH", "UM HtoD", "UM DtoH", "memset"}
        assert table.loc["HtoD", "memory"] == "pinned to device"
        assert table.loc["HtoD", "bytes_per_s"] == pytest.approx((1 << 20) / 84_000e-9)
        assert table.loc["memset", "bytes"] == 1 << 20
        assert table["bytes"].sum() == run.copies()["bytes"].sum() + run.memsets()["bytes"].sum()


@pytest.fixture
def two(tmp_path: Path) -> Run:
    return open_run(build_generation("two-processes-equal-correlation", tmp_path / "t.sqlite"))


def test_selection(two: Run) -> None:
    with two as run:
        kernels = run.kernels()
        mine = select(run, kernels, process=PID + 1)
        assert set(mine["process"]) == {PID + 1}
        assert mine.index.isin(kernels.index).all()
        assert len(select(run, kernels, nvtx="rank 0")) == 7
        one = kernels.iloc[3]
        found = select(run, kernels, time_range=(int(one["start_ns"]), int(one["end_ns"])))
        assert 3 in found.index
        assert SCALE in set(select(run, kernels, device=0)["name"])


@pytest.mark.parametrize(
    ("chosen", "words"),
    [
        ({"process": 1}, "process 1"),
        ({"device": 4}, "device 4"),
        ({"time_range": (0, 1)}, "time range"),
        ({"nvtx": "nothing like it"}, "NVTX"),
        ({"nvtx": "(("}, "regular expression"),
    ],
)
def test_an_empty_selection_is_an_error_that_says_what_there_is(chosen: dict, words: str, two: Run) -> None:
    with two as run, pytest.raises(ExportError, match=words) as caught:
        select(run, run.kernels(), **chosen)
    assert caught.value.hint
