"""Frames of every schema generation and hazard hold what was written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from fixtures.generations import GENERATIONS, VERSIONS, build_generation
from fixtures.registry import ADD, PID, SCALE, TRITON
from fixtures.target import CANARIES
from nsysmodel import open_run
from nsysmodel.export.columns import FRAMES
from nsysmodel.export.run import Run

READABLE = sorted(set(GENERATIONS) - {"nvprof", "foreign", "truncated"})
MADE = [name for name in FRAMES if name != "launches"]


@pytest.fixture
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Run]:
    with open_run(build_generation(request.param, tmp_path / "trace.sqlite")) as opened:
        yield opened


def use(name: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("run", [name], indirect=True)


def codes(run: Run) -> set[str]:
    return {found.code for found in run.diagnostics}


@pytest.mark.parametrize("run", READABLE, indirect=True)
def test_columns_are_those_of_the_table(run: Run) -> None:
    for name in [*MADE, "launches"]:
        frame = getattr(run, name)()
        assert [(c, str(t)) for c, t in frame.dtypes.items()] == [(c.name, c.dtype) for c in FRAMES[name]], (
            name
        )
        assert list(frame.index) == list(range(len(frame)))
        times = [c.name for c in FRAMES[name] if c.name in ("start_ns", "timestamp_ns")]
        if times:
            assert frame[times[0]].is_monotonic_increasing, name


@pytest.mark.parametrize("name", VERSIONS)
def test_every_version_has_the_same_work(name: str, tmp_path: Path) -> None:
    with open_run(build_generation(name, tmp_path / "trace.sqlite")) as run:
        kernels = run.kernels().head(6)
        assert kernels["name"].tolist() == [SCALE, ADD, TRITON] * 2
        assert kernels["short_name"].tolist() == ["scale", "add_vectors", TRITON] * 2
        assert kernels["duration_ns"].tolist() == [2048 * (i + 1) for i in range(6)]
        assert set(kernels["process"]) == {PID}
        assert set(kernels["global_pid"]) == {(1 << 48) | PID << 24}
        assert set(kernels["grid_x"]) == {8}
        assert set(kernels["block_x"]) == {256}
        assert set(kernels["graph_node_id"]) == {-1}
        assert run.copies()["kind"].tolist() == ["HtoD", "DtoH"]
        assert run.copies()["src_kind"].tolist() == ["pinned", "device"]
        assert run.copies()["bytes"].tolist() == [1 << 20, 1 << 19]
        assert run.memsets()["bytes"].tolist() == [1 << 20]
        assert run.syncs()["kind"].tolist() == ["stream", "context", "event", "stream_wait"]
        assert not run.api_calls()["name"].str.contains(r"_v\d{3}").any()
        assert (run.launches()["launch_row"] >= 0).all()
        gpu = run.gpu_for(PID, 0)
        assert gpu is not None
        assert (gpu.sm_count, gpu.compute_capability, gpu.clock_hz) == (132, "9.0", 1_980_000_000)
        assert gpu.memory_bytes > 90e9
        assert run.facts.synthetic
        assert run.schema_version == ("" if name == "gen1-2020" else VERSIONS[name])


@use("class67")
def test_backtrace_copies_are_no_calls(run: Run) -> None:
    assert len(run.api_calls()) == 10
    assert set(run.api_calls()["api"]) == {"runtime"}
    assert (run.launches()["launch_start_ns"] >= 0).all()
    assert "api_nested" not in codes(run)


@use("driver-under-runtime")
def test_the_outer_of_nested_calls_counts(run: Run) -> None:
    assert set(run.api_calls()["api"]) == {"runtime"}
    assert set(run.launches()["launch_name"]) == {"cudaLaunchKernel"}
    assert "api_nested" in codes(run)


@use("reversed-times")
def test_impossible_times_are_dropped_and_counted(run: Run) -> None:
    assert len(run.kernels()) == 6
    dropped = [found.message for found in run.diagnostics if found.code == "rows_dropped"]
    assert dropped == [
        "1 kernels that end before they start were left out.",
        "1 kernels with start and end 0 (not collected) were left out.",
    ]


@use("um-migrations")
def test_migrations_have_no_stream_and_no_call(run: Run) -> None:
    moved = run.copies()[run.copies()["kind"].isin(["UM HtoD", "UM DtoH"])]
    assert len(moved) == 6
    assert (moved[["stream", "context", "correlation_id"]] == -1).all(axis=None)


@use("open-nvtx")
def test_open_ranges_end_with_the_session(run: Run) -> None:
    nvtx = run.nvtx().set_index("text")
    still = nvtx[nvtx["open"]]
    assert sorted(still.index) == ["never closed", "open start-end"]
    last = max(run.kernels()["end_ns"].max(), run.copies()["end_ns"].max())
    assert (still["end_ns"] >= last).all()
    assert nvtx.loc["open start-end", "kind"] == "start_end"
    assert nvtx.loc["a mark", ["kind", "duration_ns"]].tolist() == ["mark", 0]
    assert "worker" not in nvtx.index
    assert "nvtx_open" in codes(run)


@use("negative-times")
def test_domains_are_named_by_events_before_the_session(run: Run) -> None:
    nvtx = run.nvtx().set_index("text")
    assert nvtx.loc["ncclAllReduce", "domain"] == "NCCL"
    assert nvtx.loc["warm-up", "domain"] == ""
    assert nvtx.loc["warm-up", "start_ns"] == -6_000_000


@use("dangling-string")
def test_missing_names_are_shown_by_number(run: Run) -> None:
    assert "<string 999999>" in set(run.kernels()["name"])
    assert "<string 999998>" in set(run.kernels()["short_name"])
    assert "names_missing" in codes(run)


@use("name-zero")
def test_string_zero_and_the_empty_name_are_ordinary(run: Run) -> None:
    names = run.kernels()["name"].tolist()[-2:]
    assert names[1] == ""
    assert not names[0].startswith("<")


@use("non-utf8")
def test_text_that_is_not_utf8(run: Run) -> None:
    assert len(run.kernels()) == 7
    assert any("�" in str(name) for name in run.kernels()["name"].cat.categories)


@use("text-integers")
def test_integers_stored_as_text(run: Run) -> None:
    assert run.kernels()["duration_ns"].tolist() == [2048 * (i + 1) for i in range(6)]
    assert set(run.kernels()["grid_x"]) == {8}


@use("masked-ordinals")
def test_masked_devices_are_found_by_the_device_table(run: Run) -> None:
    assert set(run.kernels()["device"]) == {0}
    assert [run.gpu_for(PID + rank, 0).mapping for rank in (0, 1)] == ["device_table"] * 2  # type: ignore[union-attr]
    frame = run.gpus()
    assert sorted(frame["cuda_device"]) == [0, 1, 2, 3]


@use("several-gpus-no-device-table")
def test_a_guess_among_different_gpus_is_a_finding(run: Run) -> None:
    gpu = run.gpu_for((1 << 48) | PID << 24, 0)
    assert gpu is not None
    assert (gpu.name, gpu.mapping) == ("NVIDIA A100-SXM4-80GB", "cuda_device")
    assert "gpu_guessed" in codes(run)
    assert "Intel" not in " ".join(run.gpus()["name"])


@use("mig")
def test_mig_is_marked(run: Run) -> None:
    gpu = run.gpu_for(PID, 0)
    assert gpu is not None
    assert gpu.mig
    assert gpu.sm_count == 28
    assert "mig" in codes(run)


@use("gpu-metrics-clocks")
def test_sampled_clocks(run: Run) -> None:
    samples = run.gpu_clock_samples()
    assert sorted(set(samples["clock_hz"])) == [1_755_000_000, 1_980_000_000, 2_526_795_000]
    assert samples.groupby("gpu").size().to_dict() == {0: 20, 1: 20}
    assert len(run.gpu_metrics()) == 80


@pytest.mark.parametrize("run", READABLE, indirect=True)
def test_no_private_value_reaches_a_frame(run: Run) -> None:
    for name in MADE:
        frame = getattr(run, name)()
        text = " ".join(
            str(c) for column in frame for c in getattr(getattr(frame[column], "cat", None), "categories", ())
        )
        assert not any(canary in text for canary in CANARIES.values()), name
    assert not any(canary in str(run.metadata) for canary in CANARIES.values())


@use("zero-kernels")
def test_no_kernels(run: Run) -> None:
    assert len(run.kernels()) == 0
    assert run.facts.completeness == "no_gpu_activity"
    assert "nothing_recorded" in codes(run)


@use("one-kernel")
def test_one_kernel(run: Run) -> None:
    assert run.facts.kernels == 1
    assert run.facts.span_ns == 5_024


@use("same-instant")
def test_all_kernels_at_one_instant(run: Run) -> None:
    assert run.facts.kernels == 5
    assert run.facts.span_ns == 2_048
    assert run.facts.kernel_time_ns == 5 * 2_048


def test_times_stay_integers(tmp_path: Path) -> None:
    """Nanoseconds since 1970 have more digits than a float."""
    with open_run(build_generation("normalized-time", tmp_path / "t.sqlite")) as run:
        kernels = run.kernels()
        assert kernels["start_ns"].dtype == np.int64
        assert kernels["duration_ns"].tolist() == [2048 * (i + 1) for i in range(6)]
        assert "times_normalised" in codes(run)
