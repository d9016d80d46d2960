"""Recoverable time, small kernels, transfers, collectives, reasons and suspicions."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from account_cases import Case
from hypothesis import given
from hypothesis import strategies as st

from nsysmodel import intervals
from nsysmodel.account import reasons, suspicious
from nsysmodel.account.collectives import collectives, instances, waits_by_ranks
from nsysmodel.account.recover import recoverable
from nsysmodel.account.small import launch_cost, small_kernels, t0_ns
from nsysmodel.account.transfers import transfers
from nsysmodel.account.types import Window, window_spans
from nsysmodel.hardware.types import Hardware, Link
from nsysmodel.theory.cost import Cost
from nsysmodel.theory.floor import floor_of
from nsysmodel.workload import Sourced

US = 1_000
OPS = ("qkv_proj", "attention", "attn_allreduce")

GPU = Hardware(
    key="",
    name="GPU",
    source="flag",
    peak_flop_per_s={"fp32": Sourced(80e12, "flag"), "tf32": Sourced(160e12, "flag")},
    bandwidth_bytes_per_s=Sourced(1.0e12, "flag"),
    pin_bandwidth_bytes_per_s=1.008e12,
    l2_bytes=72_000_000,
    sm_count=128,
    links={"pcie": Link("PCIe 4.0 x16", 31.5e9, "flag")},
)


def test_what_is_hidden_is_not_recoverable() -> None:
    case = Case()
    case.kernel(0, 100, (-50, -20), op=0)
    case.kernel(60, 200, (-40, -10), op=1, stream=8)
    case.kernel(190, 230, (-30, -5), stream=9)
    activity, _ = case.activity()
    rows = recoverable(
        activity, [Window(0, 0, 230)], OPS, {"qkv_proj": 20, "attention": 100, "attn_allreduce": 5}
    )
    found = {row.op: row for row in rows}
    assert [row.op for row in rows] == ["qkv_proj", "attention"]
    assert (found["qkv_proj"].exclusive_ns, found["qkv_proj"].recoverable_ns) == (60, 60)
    assert (found["attention"].exclusive_ns, found["attention"].recoverable_ns) == (90, 40)
    assert found["attention"].recoverable_80_ns == 15
    assert found["attention"].ceiling == pytest.approx(230 / 190)


@given(
    st.lists(st.tuples(st.integers(0, 60), st.integers(1, 30), st.integers(-1, 2)), min_size=1, max_size=12)
)
def test_recoverable_never_exceeds_busy_time(rows: list[tuple[int, int, int]]) -> None:
    case = Case()
    for start, length, op in rows:
        case.kernel(start, start + length, op=op)
    activity, _ = case.activity()
    found = recoverable(activity, [Window(0, 0, 90)], OPS, dict.fromkeys(OPS, 0))
    busy = intervals.union_length(activity.start_ns, activity.end_ns)
    assert sum(row.recoverable_ns for row in found) <= busy


@given(
    st.lists(st.tuples(st.integers(0, 60), st.integers(1, 12), st.integers(-1, 2)), min_size=1, max_size=14)
)
def test_exclusive_time_is_that_of_all_pieces_together(rows: list[tuple[int, int, int]]) -> None:
    case = Case()
    for start, length, op in rows:
        case.kernel(start, start + length, op=op)
    activity, _ = case.activity()
    windows = [Window(0, 0, 20), Window(1, 20, 45), Window(2, 50, 75)]
    pieces = intervals.clip(activity.spans, window_spans(windows))
    group = activity.op[pieces.part_of].astype(np.int64) + 1
    alone = intervals.exclusive(pieces.start, pieces.end, group, groups=len(OPS) + 1)[1:]
    for row in recoverable(activity, windows, OPS, dict.fromkeys(OPS, 0)):
        assert row.exclusive_ns == alone[OPS.index(row.op)]


def test_op_without_a_judged_floor_is_not_ranked() -> None:
    case = Case()
    case.kernel(0, 100, op=0)
    activity, _ = case.activity()
    assert recoverable(activity, [Window(0, 0, 100)], OPS, {"qkv_proj": None}) == ()


def test_t0_needs_short_kernels() -> None:
    assert t0_ns(np.array([300_000] * 100)) is None
    assert t0_ns(np.array([1_200] * 9)) is None
    assert t0_ns(np.array([1_200] * 10 + [0])) == 1_200


def test_small_kernels_of_the_worked_example() -> None:
    """8 small kernels a layer at 3 us in 48 layers add 1.15 ms to a step."""
    case = Case()
    time = 0
    for _layer in range(48):
        for number in range(8):
            case.kernel(time, time + 3 * US, name=f"small{number}")
            time += 3 * US
        case.kernel(time, time + 60 * US, name="gemm", op=0)
        time += 60 * US
    activity, names = case.activity()
    found = small_kernels(activity, [Window(0, 0, time)], OPS, names)
    assert found is not None
    assert (found.t0_ns, found.limit_ns) == (3_000, 9_000)
    assert (found.count, found.total_ns) == (384, 1_152_000)
    (run,) = found.runs
    assert run.labels == tuple(f"small{number}" for number in range(8))
    assert (run.count, run.total_ns, run.saving_ns) == (48, 1_152_000, 48 * 21_000)


def test_small_runs_stop_at_streams_and_windows() -> None:
    case = Case()
    for index in range(12):
        case.kernel(index * 2 * US, index * 2 * US + US, stream=index % 2, name="tiny")
    activity, names = case.activity()
    found = small_kernels(activity, [Window(0, 0, 8 * US), Window(1, 8 * US, 24 * US)], (), names)
    assert found is not None
    assert sorted((len(run.labels), run.count) for run in found.runs) == [(2, 2), (4, 2)]
    assert found.fusion_saving_ns == 2 * US + 6 * US


def test_launch_cost() -> None:
    case = Case()
    case.kernel(0, 10 * US, (-8 * US, -4 * US))
    case.kernel(50 * US, 60 * US, (44 * US, 48 * US))
    launch = case.call(90 * US, 95 * US, "cudaGraphLaunch")
    for start in (100, 110):
        case.kernel(start * US, start * US + US, correlation=launch)
    activity, _ = case.activity()
    found = launch_cost(activity, [Window(0, 0, 111 * US)], case.gaps((0, 111 * US)))
    assert (found.launches, found.in_graphs) == (3, 0.5)
    # 40 us before an eager kernel, 40 us before a graph that is launched already.
    assert (found.starved_ns, found.graph_saving_ns) == (80 * US, 40 * US)


def copies(*rows: tuple[int, int, int, str, str, str]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["start_ns", "end_ns", "bytes", "kind", "src_kind", "dst_kind"])


NO_MEMSETS = pd.DataFrame({"start_ns": [], "end_ns": [], "bytes": [], "memory": []})


def test_transfers_by_kind_and_memory() -> None:
    frame = copies(
        (0, 100 * US, 1_500_000, "HtoD", "pinned", "device"),
        (50 * US, 150 * US, 1_500_000, "HtoD", "pinned", "device"),
        (200 * US, 300 * US, 400_000, "DtoH", "device", "pageable"),
        (300 * US, 301 * US, 4, "DtoH", "device", "pinned"),
    )
    kernels = intervals.union([120 * US, 200 * US], [140 * US, 400 * US])
    rows = transfers(frame, NO_MEMSETS, kernels, None, GPU)
    assert [(row.kind, row.memory, row.count) for row in rows] == [
        ("HtoD", "pinned", 2),
        ("DtoH", "pageable", 1),
        ("DtoH", "pinned", 1),
    ]
    pinned, pageable, tiny = rows
    assert (pinned.bytes, pinned.total_ns, pinned.exposed_ns) == (3_000_000, 200 * US, 130 * US)
    assert pinned.bytes_per_s == pytest.approx(15e9)
    assert pinned.ratio == pytest.approx(31.5 / 15)
    assert (pinned.link, pageable.exposed_ns) == ("PCIe 4.0 x16", 0)
    assert tiny.ratio is None


def test_transfers_of_windows_and_without_hardware() -> None:
    frame = copies((0, 10, 100, "HtoD", "pinned", "device"), (90, 120, 100, "HtoD", "pinned", "device"))
    (row,) = transfers(frame, NO_MEMSETS, intervals.union([], []), [Window(0, 50, 100)])
    assert (row.count, row.total_ns, row.exposed_ns) == (1, 30, 10)
    assert (row.link_bytes_per_s, row.ratio) == (None, None)


def test_copies_and_memsets_in_cache_are_not_judged() -> None:
    frame = copies(
        (0, 10 * US, 60_000_000, "DtoD", "device", "device"),
        (0, 900 * US, 400_000_000, "DtoD", "device", "device"),
    )
    kernels = intervals.union([], [])
    (row,) = transfers(frame.iloc[:1], NO_MEMSETS, kernels, None, GPU)
    assert row.ratio is None
    (row,) = transfers(frame.iloc[1:], NO_MEMSETS, kernels, None, GPU)
    assert row.ratio == pytest.approx(900 / 800)
    sets = pd.DataFrame({"start_ns": [0], "end_ns": [500 * US], "bytes": [400_000_000], "memory": ["device"]})
    (row,) = transfers(copies(), sets, kernels, None, GPU)
    assert (row.kind, row.ratio) == ("memset", pytest.approx(500 / 400))


def allreduces(waits: list[int]) -> Case:
    case = Case()
    for step, wait in enumerate(waits):
        start = step * 100 * US
        case.kernel(start, start + 40 * US, op=0)
        case.kernel(start + 30 * US, start + (50 + wait) * US, op=2, stream=9)
    return case


def test_collectives_against_their_peers() -> None:
    windows = [Window(step, step * 100 * US, step * 100 * US + 100 * US) for step in range(3)]
    mine, _ = allreduces([0, 10, 30]).activity()
    other, _ = allreduces([5, 0, 0]).activity()
    rows, _ = instances(other, windows, 2)
    peers = {"attn_allreduce": [other.end_ns[rows] - other.start_ns[rows]]}
    (row,) = collectives(mine, windows, OPS, {"attn_allreduce": 1e6}, peers)
    assert (row.count, row.total_ns, row.transfer_ns, row.wait_ns) == (3, 100 * US, 60 * US, 40 * US)
    assert (row.exposed_ns, row.wait_source) == (70 * US, "ranks")
    assert row.bus_bytes_per_s == pytest.approx(3e6 / 60e-6)


def test_collectives_of_one_rank_are_estimated_from_the_steps() -> None:
    windows = [Window(step, step * 100 * US, step * 100 * US + 100 * US) for step in range(3)]
    mine, _ = allreduces([20, 10, 30]).activity()
    (row,) = collectives(mine, windows, OPS, {"attn_allreduce": None}, {"attn_allreduce": [np.array([1])]})
    assert (row.transfer_ns, row.wait_ns, row.wait_source) == (90 * US, 30 * US, "steps")
    assert row.bus_bytes_per_s is None


def test_ranks_with_different_counts() -> None:
    with pytest.raises(ValueError, match="3, 2"):
        waits_by_ranks([np.arange(3), np.arange(2)])


def test_reasons_of_a_launch() -> None:
    found = reasons.reasons(
        "ampere_sgemm_128x64_tn",
        64,
        256,
        sm_count=132,
        dtype="bf16",
        beside=("splitKreduce_kernel", "ampere_sgemm"),
    )
    assert [reason.factor for reason in found] == ["cores", "width", "instructions"]
    assert "at most 48 % busy" in found[0].text
    assert "'sgemm'" in found[1].text


def test_no_reasons_without_evidence() -> None:
    assert reasons.reasons("nvjet_tst", 1320, 256, sm_count=132, dtype="bf16", registers_per_thread=128) == ()
    assert reasons.reasons("sgemm", 140, 256, sm_count=132, dtype="fp32") == ()
    assert reasons.slow_clock(1.97e9, 1.98e9, "--clock") is None
    assert reasons.too_few_blocks(10, 0) is None


@given(st.integers(1, 10_000), st.integers(1, 200), st.integers(1, 16))
def test_last_wave_is_never_overstated(blocks: int, sms: int, fits: int) -> None:
    found = reasons.bad_last_wave(blocks, sms, fits)
    waves = -(-blocks // (sms * fits))
    if found is not None:
        assert waves > 1
        assert blocks / (waves * sms * fits) < 0.9


def test_fill_that_stays_in_l2_is_flagged_and_not_praised() -> None:
    """A fill of 16.8 MB in 7 us: 2.4 TB/s on a card of 1 TB/s whose L2 holds 72 MB."""
    cost = Cost(state_write_bytes=16_777_216)
    found = suspicious.suspicious(7_000, cost, floor_of(cost, GPU), GPU)
    assert [suspicion.flag for suspicion in found] == ["l2_resident", "beats_floor"]
    assert "16.8 MB" in found[0].explanation
    assert "72 MB" in found[0].explanation


def test_between_datasheet_and_pin_rate_nothing_is_impossible() -> None:
    cost = Cost(weight_bytes=1e9)
    floor = floor_of(cost, GPU)
    assert suspicious.suspicious(0.995e6, cost, floor, GPU) == ()
    assert [s.flag for s in suspicious.suspicious(0.99e6, cost, floor, GPU)] == ["wrong_peak", "beats_floor"]


def test_assumed_context_that_would_fit() -> None:
    def cost_at(context: int) -> Cost:
        return Cost(state_read_bytes=context * 1e5)

    fit = suspicious.fit_parameter("context", 4096, "assumed", lambda c: floor_of(cost_at(c), GPU).ns, 2e5)
    assert fit is not None
    assert fit.fits == 2000
    cost = cost_at(4096)
    found = suspicious.suspicious(2e5, cost, floor_of(cost, GPU), GPU, [fit])
    assert [s.flag for s in found] == ["wrong_workload", "beats_floor"]
    assert "at most 2000 would fit" in found[0].explanation


def test_fit_is_none_where_nothing_or_everything_fits() -> None:
    assert suspicious.fit_parameter("batch", 8, "flag", lambda batch: 100.0 + batch, 50.0) is None
    assert suspicious.fit_parameter("batch", 8, "flag", lambda batch: float(batch), 50.0) is None


def test_tensor_cores_explain_what_cuda_cores_cannot() -> None:
    cost = Cost(flop={"fp32": 1e12})
    found = suspicious.suspicious(8e6, cost, floor_of(cost, GPU), GPU)
    assert [s.flag for s in found] == ["wrong_peak", "beats_floor"]
    assert "tf32 (160 TFLOPS) would explain it" in found[0].explanation
    faster = suspicious.suspicious(1e6, cost, floor_of(cost, GPU), GPU)
    assert "no engine of the device is that fast" in faster[0].explanation
