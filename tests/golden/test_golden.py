"""The bundled decode against files that were looked at; `pytest tests/golden --update-golden` writes them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nsysmodel import evaluate
from nsysmodel.report import render_html, render_json, render_markdown
from nsysmodel.result import Evaluation

HERE = Path(__file__).parent
NAME = "qwen3-30b-decode-gh200"
BARS = 40
"""Bars of the timeline that are kept; all of them are ten times the rest of the file."""


def judged(bundled: Path) -> Evaluation:
    """The result, with the same version and command line wherever it is made."""
    return replace(evaluate(bundled, "qwen3-30b"), version="0", command="nsysmodel report")


@pytest.fixture(scope="module")
def evaluation(bundled: Path) -> Evaluation:
    return judged(bundled)


def compare(name: str, text: str, request: pytest.FixtureRequest) -> None:
    path = HERE / name
    if request.config.getoption("--update-golden"):
        path.write_text(text, encoding="utf-8")
    assert text.splitlines() == path.read_text("utf-8").splitlines()


def rounded(value: Any) -> Any:
    """Numbers to six significant digits; what differs beyond them is the machine's."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    return [rounded(item) for item in value] if isinstance(value, list) else value


def test_json(evaluation: Evaluation, request: pytest.FixtureRequest) -> None:
    document = json.loads(render_json(evaluation))
    for device in document["devices"]:
        bars = device["timeline"]["bars"]
        device["timeline"]["bars"] = [*bars[:BARS], f"and {len(bars) - BARS} more"]
    text = json.dumps(rounded(document), indent=1, ensure_ascii=False) + "\n"
    compare(f"{NAME}.json", text, request)


def test_markdown(evaluation: Evaluation, request: pytest.FixtureRequest) -> None:
    compare(f"{NAME}.md", render_markdown(evaluation), request)


def test_same_input_same_bytes(evaluation: Evaluation, bundled: Path) -> None:
    again = judged(bundled)
    for render in (render_json, render_markdown, render_html):
        assert render(again) == render(evaluation)


def test_what_was_planted_is_found(evaluation: Evaluation) -> None:
    (device,) = evaluation.devices
    slow, second = device.ops[0], device.ops[1]
    assert (slow.op, slow.bound) == ("o_proj", "memory")
    assert slow.ratio == pytest.approx(5.02, abs=0.01)
    assert slow.excess_ns == pytest.approx(810e3, rel=0.01)
    assert slow.excess_ns > 3 * (second.excess_ns or 0)
    check = device.unmodeled[0]
    assert "my_engine::check_finite_kernel" in check.name
    assert (check.instances, check.kernel_class) == (7 * 12, "other")
    assert "check_finite_kernel" in check.model_line
    assert (device.steps.found, device.steps.used, device.steps.layers) == (9, 7, 48)
    assert [(step.index, step.reason) for step in device.steps.dropped] == [(0, "warm_up"), (8, "partial")]
    assert device.missing == ()
    assert device.coverage.kernel_time_modeled > 0.98


def test_gaps_are_named(evaluation: Evaluation) -> None:
    gaps = evaluation.devices[0].gaps
    assert gaps.by_cause["profiler"] == 80_000
    assert gaps.by_cause["launch_starved"] / 7 == pytest.approx(137e3, rel=0.01)
    assert gaps.by_cause["inside_graph"] / 7 == pytest.approx(543e3, rel=0.01)
    between = gaps.places[0]
    assert (between.after, between.before, between.cause) == ("copy DtoH", "next step", "launch_starved")
    assert (between.count, gaps.by_cause["unknown"]) == (7, 0)


def test_gpu_work_is_as_documented(evaluation: Evaluation) -> None:
    step = evaluation.devices[0].step
    assert step.floor_ns == pytest.approx(1.62e6, rel=0.005)
    assert step.busy_ns == pytest.approx(4.19e6, rel=0.005)
    assert evaluation.export.synthetic
