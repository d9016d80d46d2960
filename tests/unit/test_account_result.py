"""The account in the result: gains, small kernels, launches, clock, reasons, suspicious ops."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from fixtures.decodes import generate
from fixtures.decodes_cases import CASES
from fixtures.generations import build_generation
from nsysmodel import evaluate
from nsysmodel.account.types import Window
from nsysmodel.errors import ExportError
from nsysmodel.hardware.resolve import Overrides, resolve
from nsysmodel.judge.clock import clock_facts
from nsysmodel.request import HardwareRequest
from nsysmodel.result import DeviceResult, Evaluation, OpRow
from nsysmodel.workload import WorkloadRequest


@pytest.fixture(scope="module")
def judged(bundled: Path) -> Evaluation:
    return evaluate(bundled, "qwen3-30b")


@pytest.fixture(scope="module")
def device(judged: Evaluation) -> DeviceResult:
    return judged.devices[0]


def op(device: DeviceResult, name: str) -> OpRow:
    return next(row for row in device.ops if row.op == name)


def test_gains_are_ranked_and_never_more_than_the_busy_time(device: DeviceResult) -> None:
    gains = [row.recoverable_ns for row in device.recoverable]
    assert gains == sorted(gains, reverse=True)
    assert 0 < sum(gains) <= device.step.busy_ns
    for row in device.recoverable:
        assert row.recoverable_80_ns <= row.recoverable_ns <= row.exclusive_ns
        measured = device.step.measured_ns
        assert row.ceiling == pytest.approx(measured / (measured - row.recoverable_ns))
        assert op(device, row.op).recoverable_ns == row.recoverable_ns


def test_ops_bound_by_launches_recover_what_exceeds_the_launches(device: DeviceResult) -> None:
    bound = [row for row in device.ops if row.bound == "latency"]
    assert len(bound) > 5
    for row in bound:
        launches = row.instances * row.kernels_per_instance / device.steps.used
        assert row.latency_floor_ns == pytest.approx(launches * (device.step.t0_ns or 0))
        assert row.recoverable_ns == pytest.approx(max(0.0, row.measured_ns - (row.latency_floor_ns or 0)))
        assert row.recoverable_ns < (row.excess_ns or 0)
    targets = {row.op: row.target for row in device.recoverable}
    assert targets["topk"] == "latency"
    assert targets["o_proj"] == "floor"


def test_small_kernels_and_launches_are_upper_bounds_in_words(device: DeviceResult) -> None:
    small, launch = device.small, device.launch
    assert small is not None
    assert launch is not None
    assert small.t0_ns == device.step.t0_ns
    assert small.per_step_ns == small.total_ns / device.steps.used
    assert sum(run.saving_ns for run in small.runs) <= small.saving_ns < small.per_step_ns
    assert "at most" in small.explanation
    assert "a layer" in small.explanation
    assert launch.total_ns == device.gaps.by_cause["launch_starved"]
    assert launch.saving_ns <= launch.per_step_ns
    assert launch.share_in_graphs > 0.9


def test_reasons_are_evidence_and_never_flags(device: DeviceResult) -> None:
    told = {reason.text for row in device.ops for reason in row.reasons}
    assert "80 blocks on 132 SMs: at most 60 % busy" in told
    assert any("split-K" in text for text in told)
    # Close to its floor: nothing to explain.
    assert op(device, "lm_head").reasons == ()


def test_assumed_context_marks_what_rests_on_it(device: DeviceResult, bundled: Path) -> None:
    marked = {row.op for row in device.ops if "assumed_workload" in row.flags}
    assert marked == {"attention"}
    assert "--context" in op(device, "attention").explanation
    told = evaluate(bundled, "qwen3-30b", workload=WorkloadRequest(context=4096)).devices[0]
    assert not any("assumed_workload" in row.flags for row in told.ops)


def test_context_that_cannot_be_is_named_with_the_one_that_would_fit(bundled: Path) -> None:
    found = evaluate(bundled, "qwen3-30b", workload=WorkloadRequest(context=12_800))
    attention = op(found.devices[0], "attention")
    assert attention.ratio is not None
    assert attention.ratio < 1
    # 33.5 MB would fit L2, but a step streams gigabytes before it reads them again.
    assert (
        {"wrong_workload", "beats_floor"}
        <= set(attention.flags)
        <= {"wrong_workload", "beats_floor", "low_confidence"}
    )
    fits = int(attention.explanation.split("at most ")[1].split(" ")[0])
    assert fits == pytest.approx(12_800 * attention.ratio, rel=0.02)
    assert attention.recoverable_ns == 0


def test_context_far_above_what_can_be_is_refused_with_one_that_would_fit(bundled: Path) -> None:
    found = evaluate(bundled, "qwen3-30b", workload=WorkloadRequest(context=16_384))
    assert found.verdict.status == "cannot_judge"
    fits = int(found.verdict.headline.split("at most ")[1].split(" ")[0])
    # The measured 293 us read the KV of 11,900 tokens at the full bandwidth.
    assert fits == pytest.approx(11_900, rel=0.02)


def test_clock_of_a_flag_lowers_the_ceilings(bundled: Path) -> None:
    found = evaluate(bundled, "qwen3-30b", hardware=HardwareRequest(clock="1.6GHz"))
    clock = found.devices[0].clock
    assert clock is not None
    assert (clock.source, clock.median_hz) == ("flag", 1.6e9)
    assert clock.fraction == pytest.approx(1.6 / 1.98)
    assert "compute ceilings" in clock.explanation
    assert clock.command.startswith("nvidia-smi")


def test_clock_samples_are_those_of_this_gpu_in_the_steps(tmp_path: Path) -> None:
    path = build_generation("gpu-metrics-clocks", tmp_path / "a.sqlite")
    clock = evaluate(path).devices[0].clock
    assert clock is not None
    assert clock.source == "samples"
    assert 1.7e9 < (clock.median_hz or 0) < 2e9
    samples = pd.DataFrame({"timestamp_ns": [5, 15, 25], "gpu": 0, "clock_hz": [9e8, 1.5e9, 9e8]})
    facts = clock_facts(resolve("gh200", overrides=Overrides()), None, samples, [Window(0, 10, 20)])
    assert (facts.samples, facts.median_hz) == (1, 1.5e9)
    assert "75.8 % of the 1.98 GHz" in facts.explanation


def test_without_samples_the_command_that_records_them_is_given(device: DeviceResult) -> None:
    clock = device.clock
    assert clock is not None
    assert (clock.source, clock.fraction) == ("none", None)
    assert "clocks.sm" in clock.command


GATHER = """
name: gather
kernels:
  - {{name: gather, pattern: gather_expert, kind: zero_copy, bytes: 3*2048*768*2, threads: grid_x*block_x,
     latency: 596, link: {link}}}
"""


def gathered(folder: Path, blocks: int, duration: int, link: str = "host") -> OpRow:
    from fixtures.registry import start

    writer = start(folder / "a.sqlite")
    for index in range(3):
        at = 1_000_000 + index * 200_000
        writer.kernel(
            at, at + duration, name="gather_expert(float4*)", grid=(blocks, 1, 1), block=(1024, 1, 1)
        )
    writer.finish()
    model = folder / "gather.yaml"
    model.write_text(GATHER.format(link=link))
    return evaluate(folder / "a.sqlite", str(model)).devices[0].ops[0]


@pytest.mark.parametrize(
    ("blocks", "floor_ns", "limited_by", "rate"),
    [(8, 42_912, "in_flight", 219.9e9), (16, 21_456, "in_flight", 439.8e9), (32, 20_972, "link", 450e9)],
)
def test_expert_over_the_link(
    blocks: int, floor_ns: int, limited_by: str, rate: float, tmp_path: Path
) -> None:
    """The worked case of an expert of 9.4 MB over NVLink-C2C at 596 ns."""
    row = gathered(tmp_path, blocks, 44_000)
    assert row.floor_total_ns == pytest.approx(3 * floor_ns, abs=3)
    assert row.bound == "link"
    use = row.link_use
    assert use is not None
    assert (use.limited_by, use.bytes, use.in_flight_bytes) == (limited_by, 9_437_184, blocks * 16_384)
    assert use.possible_bytes_per_s == pytest.approx(rate, rel=1e-3)
    assert use.needed_bytes == pytest.approx(268_200)
    assert use.bytes_per_s == pytest.approx(9_437_184 / 44e-6)
    assert "268 kB" in row.explanation


def test_expert_over_pcie_needs_little_in_flight(tmp_path: Path) -> None:
    use = gathered(tmp_path, 8, 400_000, "pcie").link_use
    assert use is not None
    assert (use.link, use.limited_by) == ("pcie", "link")
    assert use.needed_bytes == pytest.approx(use.link_bytes_per_s * 596e-9)


def test_copies_say_why_they_have_no_ratio(device: DeviceResult) -> None:
    for row in device.transfers:
        assert row.ratio is None
        assert "latency" in row.explanation
        assert row.hidden_ns + row.exposed_ns == row.total_ns


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Two ranks; on the second, every all-reduce waits for 2 µs."""
    import sqlite3
    from contextlib import closing

    folder = tmp_path_factory.mktemp("ranks")
    paths = [folder / "rank0.sqlite", folder / "rank1.sqlite"]
    for path in paths:
        generate(replace(CASES["vllm-dense-llama-8b-tp2"], steps=4), path, 3)
    with closing(sqlite3.connect(paths[0])) as db:
        changed = db.execute(
            'UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET "end" = "end" - 2000 WHERE demangledName IN '
            "(SELECT id FROM StringIds WHERE value LIKE '%cross_device_reduce%')"
        ).rowcount
        db.commit()
    assert changed > 100
    return [str(path) for path in paths]


TP2 = WorkloadRequest(batch=4, context=2048, tp=2)


def test_waiting_is_what_another_rank_did_not_need(ranks: list[str]) -> None:
    found = evaluate(ranks, ranks[0].replace(".sqlite", ".config.json"), workload=TP2)
    assert [facts.file for facts in found.exports] == ["rank0.sqlite", "rank1.sqlite"]
    assert [device.export_index for device in found.devices] == [0, 1]
    for index, device in enumerate(found.devices):
        reduced = [row for row in device.collectives if row.op.endswith("mlp_allreduce")]
        assert len(reduced) == 1
        row = reduced[0]
        assert (row.wait_source, row.ranks) == ("ranks", 2)
        assert row.wait_ns == index * 2000 * row.count
        assert row.total_ns == (row.transfer_ns or 0) + (row.wait_ns or 0)
        assert row.bytes is not None
        assert row.bytes_per_s == pytest.approx(row.bytes / (row.transfer_ns or 1) * 1e9)
        assert row.exposed_ns + row.overlapped_ns == row.total_ns
        shown = op(device, row.op)
        assert shown.ratio is None
        assert "wait_included" in shown.flags
        assert shown.reasons == ()
    first, second = (op(device, reduced[0].op) for device in found.devices)
    # What waits for peers is not this rank's to recover.
    assert first.recoverable_ns == pytest.approx(second.recoverable_ns, rel=0.01)
    assert second.measured_ns > 1.1 * first.measured_ns


def test_one_rank_alone_estimates_and_says_so(ranks: list[str]) -> None:
    found = evaluate(ranks[1], ranks[1].replace(".sqlite", ".config.json"), workload=TP2)
    row = next(row for row in found.devices[0].collectives if row.op.endswith("mlp_allreduce"))
    assert row.wait_source == "steps"
    assert "Estimated" in row.explanation


def test_the_same_export_is_not_its_own_peer(ranks: list[str]) -> None:
    with pytest.raises(ExportError, match="twice"):
        evaluate([ranks[0], ranks[0]])


def test_unclaimed_collectives_are_listed_without_a_model(ranks: list[str]) -> None:
    rows = evaluate(ranks[0]).devices[0].collectives
    assert {row.op for row in rows} >= {"allreduce (no op claims it)"}
    assert all(row.bytes is None and row.bound == "unknown" for row in rows)


def test_more_devices_than_ranks_are_replicas(tmp_path: Path) -> None:
    case = CASES["vllm-dense-llama-8b-tp2+two_processes"]
    path = tmp_path / "a.sqlite"
    generate(replace(case, steps=4), path, 3)
    found = evaluate(path, str(path.with_suffix(".config.json")), workload=TP2)
    assert {row.wait_source for device in found.devices for row in device.collectives} == {"ranks"}
    alone = evaluate(path)
    assert {row.wait_source for device in alone.devices for row in device.collectives} <= {"steps", "none"}
