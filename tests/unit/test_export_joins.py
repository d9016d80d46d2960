"""Who launched what, and in which range: by process, thread, capture; against a plain loop."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fixtures.generations import build_generation
from fixtures.registry import PID
from nsysmodel import open_run
from nsysmodel.export.joins import launches, match, nvtx_of, ranges_of
from nsysmodel.export.nesting import innermost, outermost


def test_equal_correlation_ids_of_two_processes(tmp_path: Path) -> None:
    with open_run(build_generation("two-processes-equal-correlation", tmp_path / "t.sqlite")) as run:
        kernels = run.kernels()
        calls = run.api_calls().loc[run.launches()["launch_row"]]
        assert (calls["global_pid"].to_numpy() == kernels["global_pid"].to_numpy()).all()
        assert (run.launches()["launch_start_ns"] < kernels["start_ns"]).all()
        assert nvtx_of(run).tolist() == [f"rank {pid - PID}" for pid in kernels["process"]]
        for frame in (run.copies(), run.memsets()):
            joined = launches(run, frame)
            assert len(joined) == len(frame)
            assert (joined["launch_row"] >= 0).all()
            assert joined["launch_name"].str.startswith("cudaMem").all()


def test_graph_nodes_belong_to_the_range_of_their_capture(tmp_path: Path) -> None:
    with open_run(build_generation("node-level", tmp_path / "t.sqlite")) as run:
        expected = [f"layers.{layer}.{role}" for layer in range(3) for role in ("norm", "mlp")] * 4
        assert nvtx_of(run).tolist() == expected
        assert set(run.launches()["launch_name"]) == {"cudaGraphLaunch"}
        layer = ranges_of(run, None, r"^layers\.\d$")
        assert run.nvtx()["text"].loc[layer].tolist() == [text.rsplit(".", 1)[0] for text in expected]
        assert set(ranges_of(run, None, "capture").tolist()) == {
            int(np.flatnonzero(run.nvtx()["text"] == "capture")[0])
        }
        some = run.kernels().iloc[[7, 2]]
        assert nvtx_of(run, some).tolist() == [expected[7], expected[2]]
        assert nvtx_of(run, some).index.tolist() == [7, 2]


def test_ranges_belong_to_the_launching_thread(tmp_path: Path) -> None:
    with open_run(build_generation("backward-thread", tmp_path / "t.sqlite")) as run:
        assert nvtx_of(run).isna().tolist() == [True, False]
        assert ranges_of(run, None, "step").tolist()[0] == -1
        assert (ranges_of(run, None, "step", threads="any") >= 0).all()


def test_the_deepest_range_wins(tmp_path: Path) -> None:
    with open_run(build_generation("open-nvtx", tmp_path / "t.sqlite")) as run:
        assert nvtx_of(run).tolist() == [
            "registered",
            "inner",
            "registered",
            "registered",
            "registered",
            "payload",
        ]
        # Start/end ranges do not nest, so they are no candidates for the deepest; they can be asked for.
        assert (ranges_of(run, None, "open start-end") >= 0).all()
        assert (ranges_of(run, None, "no such range") == -1).all()


def test_without_calls_nothing_is_launched(tmp_path: Path) -> None:
    with open_run(build_generation("no-launches", tmp_path / "t.sqlite")) as run:
        assert (run.launches()["launch_row"] == -1).all()
        assert run.launches()["launch_name"].isna().all()
        assert nvtx_of(run).isna().all()
        assert "kernels_without_launch" in {found.code for found in run.diagnostics}


@pytest.mark.parametrize(
    ("rows", "calls", "expected"),
    [
        ([(1, 5), (2, 5)], [(2, 5), (1, 5)], [1, 0]),
        ([(1, -1), (1, 0)], [(1, -1), (1, 0)], [-1, -1]),
        ([(0, 5)], [(7, 5)], [0]),
        ([(0, 5), (7, 6)], [(7, 5), (7, 6)], [-1, 1]),
        ([(7, 2**60)], [(7, 2**60)], [-1]),
        ([(7, 5)], [], [-1]),
    ],
)
def test_match(rows: list[tuple[int, int]], calls: list[tuple[int, int]], expected: list[int]) -> None:
    columns = ["global_pid", "correlation_id"]
    left = pd.DataFrame(rows, columns=columns, dtype="int64")
    right = pd.DataFrame(calls, columns=columns, dtype="int64")
    assert match(left, right).tolist() == expected


def nested(draw: st.DrawFn, low: int, high: int, depth: int) -> list[tuple[int, int]]:
    """Ranges that nest, of any depth, some of them touching or equal."""
    found: list[tuple[int, int]] = []
    at = low
    while at < high and depth and draw(st.booleans()):
        start = draw(st.integers(at, high - 1))
        end = draw(st.integers(start, high))
        found.append((start, end))
        found += nested(draw, start, end, depth - 1)
        at = end
    return found


@st.composite
def stacks(draw: st.DrawFn) -> pd.DataFrame:
    rows = []
    for thread in (1 << 24 | 1, 1 << 24 | 2):
        for domain in ("", "NCCL"):
            rows += [(thread, domain, *span) for span in nested(draw, 0, 24, 4)]
    rows = draw(st.permutations(rows))
    frame = pd.DataFrame(rows, columns=["global_tid", "domain", "start_ns", "end_ns"])
    frame = frame.astype({"global_tid": "int64", "start_ns": "int64", "end_ns": "int64"})
    frame["global_pid"] = frame["global_tid"] & ~0xFFFFFF
    return frame


@settings(max_examples=80, deadline=None)
@given(stacks())
def test_innermost_and_outermost_agree_with_a_loop(ranges: pd.DataFrame) -> None:
    threads = np.array([t for t in (1 << 24 | 1, 1 << 24 | 2, 0) for _ in range(25)])
    start = np.tile(np.arange(25), 3)
    deepest = innermost(ranges, threads, start, start + 1).tolist()
    widest = outermost(ranges, threads, start, start + 1).tolist()
    spans = {
        label: (row.global_tid, row.start_ns, row.end_ns)
        for label, row in zip(ranges.index, ranges.itertuples(), strict=True)
    }
    for thread, at, deep, wide in zip(threads.tolist(), start.tolist(), deepest, widest, strict=True):
        around = {label for label, (tid, low, high) in spans.items() if tid == thread and low <= at < high}
        if not around:
            assert (deep, wide) == (-1, -1)
            continue
        assert {deep, wide} <= around
        assert spans[deep][1] == max(spans[label][1] for label in around)
