"""The account of the real exports: busy time as plain SQL counts it, and an identity that closes."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nsysmodel.account.build import build_activity
from nsysmodel.account.gaps import find_gaps
from nsysmodel.account.suspicious import suspicious
from nsysmodel.account.types import Window
from nsysmodel.account.waterfall import waterfall
from nsysmodel.export.opening import Opened
from nsysmodel.export.run import Run
from nsysmodel.hardware.types import Hardware
from nsysmodel.theory.cost import Cost
from nsysmodel.theory.floor import floor_of
from nsysmodel.workload import Sourced

TRACES = Path(__file__).resolve().parents[3] / "shared" / "traces"
pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(not TRACES.is_dir(), reason="the real exports (../shared/traces) are not here"),
]


def facts() -> dict[str, Any]:
    if not TRACES.is_dir():
        return {}
    found: dict[str, Any] = json.loads((TRACES / "facts.json").read_text())
    return {name: fact for name, fact in found.items() if fact.get("devices")}


@pytest.mark.parametrize("name", sorted(facts()))
def test_busy_time_and_identity(name: str) -> None:
    with Run(Opened(TRACES / f"{name}.sqlite")) as run:
        frames = [run.kernels(), run.copies(), run.memsets(), run.graph_traces()]
        for key, fact in facts()[name]["devices"].items():
            process, device = map(int, key.split(":"))
            mine = [f[(f["process"] == process) & (f["device"] == device)] for f in frames]
            calls, syncs = (f[f["process"] == process] for f in (run.api_calls(), run.syncs()))
            activity, names = build_activity(*mine, calls)
            # Five uneven windows over everything, so that activities and gaps are cut.
            edges = np.linspace(activity.start_ns.min(), activity.end_ns.max(), 6).astype(np.int64).tolist()
            edges[-1] = int(activity.end_ns.max())
            windows = [Window(i, *pair) for i, pair in enumerate(pairwise(edges))]
            gaps = find_gaps(activity, windows, (), calls, syncs, run.overhead(), names)
            found = waterfall(activity, windows, (), {}, gaps)
            assert found.busy_ns == fact["busy_all_ns"]
            assert sum(part.total_ns for part in found.parts) == found.window_total_ns
            assert found.window_total_ns == edges[-1] - edges[0]
            assert sum(gaps.gaps.by_cause.values()) == found.window_total_ns - found.busy_ns


def test_gaps_of_a_graph_a_step_decode_are_inside_graphs() -> None:
    with Run(Opened(TRACES / "vllm-moe-decode-tp4-rank0-gh200.sqlite")) as run:
        activity, names = build_activity(
            run.kernels(), run.copies(), run.memsets(), run.graph_traces(), run.api_calls()
        )
        window = Window(0, int(activity.start_ns.min()), int(activity.end_ns.max()))
        gaps = find_gaps(activity, [window], (), run.api_calls(), run.syncs(), run.overhead(), names).gaps
    idle = sum(gaps.by_cause.values())
    assert gaps.by_cause["inside_graph"] > 0.85 * idle
    assert gaps.by_cause["unknown"] == 0


def test_fill_of_the_square_matmul_is_l2_resident() -> None:
    """4 × 2048² bytes in about 7.7 us: more than DRAM gives, less than L2 holds."""
    with Run(Opened(TRACES / "square-matmul-rtx4090.sqlite")) as run:
        kernels, facts = run.kernels(), run.gpu_for(1082211, 0)
    assert facts is not None
    fills = kernels[kernels["name"].astype(str).str.contains(r"FillFunctor<float>")]
    bandwidth = Sourced(float(facts.bandwidth_bytes_per_s), "export")
    gpu = Hardware("", facts.name, "export", {}, bandwidth, l2_bytes=facts.l2_bytes)
    cost = Cost(state_write_bytes=4 * 2048**2)
    found = suspicious(float(fills["duration_ns"].mean()), cost, floor_of(cost, gpu), gpu)
    assert [suspicion.flag for suspicion in found] == ["l2_resident", "beats_floor"]
