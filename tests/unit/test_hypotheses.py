"""The clock as a reason: only of ops that compute, and with the ratio at that clock."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from nsysmodel import evaluate
from nsysmodel.hardware.resolve import resolve
from nsysmodel.judge.hypotheses import _clock_reasons
from nsysmodel.result import OpRow
from nsysmodel.result_account import ClockFacts


@pytest.fixture(scope="module")
def row(bundled: Path) -> OpRow:
    return evaluate(bundled, "qwen3-30b").devices[0].ops[0]


def facts(source: str, fraction: float | None) -> ClockFacts:
    median = None if fraction is None else 1.98e9 * fraction
    return ClockFacts(source, 9, median, median, 1.98e9, fraction, "SM clock 1.6 GHz.", "nvidia-smi")  # type: ignore[arg-type]


def test_ratio_at_the_sampled_clock(row: OpRow) -> None:
    slow = replace(row, bound="compute", ratio=1.35)
    (reason,) = _clock_reasons(slow, resolve("gh200"), facts("samples", 0.8))
    assert reason.factor == "clock"
    assert "the ratio is 1.08×, not 1.35×" in reason.text
    assert _clock_reasons(slow, resolve("gh200"), facts("samples", 0.99)) == []


def test_clock_that_was_not_recorded_is_a_question(row: OpRow) -> None:
    (reason,) = _clock_reasons(replace(row, bound="compute"), resolve("gh200"), facts("none", None))
    assert "was not recorded" in reason.text
    assert "nvidia-smi --query-gpu" in reason.text


def test_clock_of_a_flag_is_in_the_ratio_already(row: OpRow) -> None:
    (reason,) = _clock_reasons(replace(row, bound="compute"), resolve("gh200"), facts("flag", 0.8))
    assert "the ratio has it in" in reason.text
    assert _clock_reasons(row, resolve("gh200"), facts("flag", 1.0)) == []


def test_memory_bound_ops_do_not_blame_the_clock(bundled: Path) -> None:
    for shown in evaluate(bundled, "qwen3-30b").devices[0].ops:
        if shown.bound != "compute":
            assert not [reason for reason in shown.reasons if reason.factor == "clock"]
