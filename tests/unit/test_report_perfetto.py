"""The trace for Perfetto: exact times, tracks that nest, nothing that breaks the file."""

from __future__ import annotations

import gzip
import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsysmodel import analyze
from nsysmodel.report.perfetto import TrackSet, render_trace

FIXTURE = Path(__file__).resolve().parents[2] / "fixtures" / "qwen3-30b-decode-gh200.sqlite"


def frame(rows: list[tuple[str, str, int, int]]) -> pd.DataFrame:
    found = pd.DataFrame(rows, columns=["track", "name", "start_ns", "end_ns"])
    return found.assign(op="", layer=-1, step=-1, detail="")


def slices(raw: bytes) -> list[dict[str, Any]]:
    return [event for event in json.loads(raw)["traceEvents"] if event["ph"] == "X"]


def test_times_are_exact_and_relative() -> None:
    start = 1_700_000_000_123_456_789
    raw = render_trace([TrackSet("gpu", frame([("steps", "a", start, start + 1_234_567)]))])
    assert b'"ts":0.000,"dur":1234.567,' in raw


spans = st.lists(st.tuples(st.integers(0, 200), st.integers(0, 60)), min_size=1, max_size=60)


@given(spans)
def test_nothing_overlaps_on_a_track(found: list[tuple[int, int]]) -> None:
    rows = frame([("stream 7", "k", start, start + length) for start, length in sorted(found)])
    shown = slices(render_trace([TrackSet("gpu", rows)]))
    assert len(shown) == len(found)
    by_track: dict[int, list[tuple[float, float]]] = {}
    for event in shown:
        by_track.setdefault(event["tid"], []).append((event["ts"], event["ts"] + event["dur"]))
    for track in by_track.values():
        assert all(low[1] <= high[0] + 1e-9 for low, high in itertools.pairwise(track))


def test_hostile_names_stay_names() -> None:
    name = '"},{"ph":"X</script>\u2028\x00\u202e'
    raw = render_trace([TrackSet(name, frame([("stream 1", name, 0, 1)]))])
    (event,) = slices(raw)
    assert event["name"].startswith('"},{"ph":"X</script>')
    raw.decode("ascii")


def test_compressed_trace_is_the_same_and_stable() -> None:
    sets = [TrackSet("gpu", frame([("idle", "sync", 5, 9)]))]
    assert gzip.decompress(render_trace(sets, compress=True)) == render_trace(sets)
    assert render_trace(sets, compress=True) == render_trace(sets, compress=True)
    assert json.loads(render_trace([]))["traceEvents"] == []


@pytest.fixture(scope="module")
def judged() -> tuple[Any, pd.DataFrame, pd.DataFrame]:
    evaluation, pairs = analyze.evaluate_cases(FIXTURE, "qwen3-30b")
    ((_, rows),) = analyze.tracks(pairs)
    return evaluation.devices[0], rows, analyze.instance_rows(pairs)


def test_tracks_hold_every_kernel_and_step(judged: tuple[Any, pd.DataFrame, pd.DataFrame]) -> None:
    device, rows, kernels = judged
    streams = rows[rows["track"].str.startswith("stream")]
    assert len(streams) >= len(kernels)
    labelled = streams[streams["op"] != ""]
    assert len(labelled) == int((kernels["op"] != "").sum())
    total = (labelled["end_ns"] - labelled["start_ns"]).groupby(labelled["op"]).sum()
    pd.testing.assert_series_equal(
        total, kernels[kernels["op"] != ""].groupby("op")["duration_ns"].sum(), check_names=False
    )
    steps = rows[rows["track"] == "steps"]
    assert len(steps) == device.steps.found
    assert int((steps["detail"] == "used").sum()) == device.steps.used


def test_layers_and_gaps_lie_where_they_were_judged(judged: tuple[Any, pd.DataFrame, pd.DataFrame]) -> None:
    device, rows, _ = judged
    used = rows["step"].isin(device.steps.used_indices)
    layers = rows[(rows["track"] == "layers") & used]
    assert len(layers) == device.steps.used * device.steps.layers
    gaps = rows[(rows["track"] == "idle") & used]
    by_cause = (gaps["end_ns"] - gaps["start_ns"]).groupby(gaps["name"]).sum()
    assert by_cause.to_dict() == {cause: ns for cause, ns in device.gaps.by_cause.items() if ns}


def test_ops_are_executions(judged: tuple[Any, pd.DataFrame, pd.DataFrame]) -> None:
    device, rows, _ = judged
    ops = rows[(rows["track"] == "ops") & rows["step"].isin(device.steps.used_indices)]
    counts = ops["name"].value_counts()
    for row in device.ops:
        if row.op in ("o_proj", "moe_gate_up", "lm_head"):
            assert counts[row.op] == row.instances


def test_profiler_command_counts_launches_of_the_name(judged: tuple[Any, pd.DataFrame, pd.DataFrame]) -> None:
    device, _, kernels = judged
    names = kernels["name"].astype(str).to_numpy()
    steps = kernels["step"].to_numpy(dtype="int64", na_value=-1)
    for row in device.ops:
        for use in row.kernels:
            own = names == use.name
            grid = use.grid.split("×")
            shape = np.logical_and.reduce(
                [kernels[f"grid_{axis}"].to_numpy() == int(n) for axis, n in zip("xyz", grid, strict=True)]
            )
            ours = (kernels["op"] == row.op).to_numpy() & np.isin(steps, device.steps.used_indices)
            first = int(np.flatnonzero(own & shape & ours)[0])
            assert use.launch_skip is not None
            assert use.launch_skip <= int(own[:first].sum())
            at = np.flatnonzero(own)[use.launch_skip]
            assert kernels["op"].iloc[at] == row.op
