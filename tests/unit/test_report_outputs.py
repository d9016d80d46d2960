"""Markdown, JSON, rows and terminal: what they say, what they never say, and their limits."""

from __future__ import annotations

import dataclasses
import io
import json
import re
from pathlib import Path

import jsonschema
import pytest
import rich.console
import sample

from nsysmodel import report
from nsysmodel.errors import OutputError
from nsysmodel.report import schema
from nsysmodel.report.markdown import BUDGET, code, escape
from nsysmodel.result import Evaluation

CASES = [sample.evaluation, sample.cannot_judge, sample.no_model, sample.hostile]


def printed(evaluation: Evaluation, written: str | None = None) -> str:
    stream = io.StringIO()
    report.terminal(evaluation, rich.console.Console(file=stream, width=120, force_terminal=False), written)
    return stream.getvalue()


@pytest.mark.parametrize("make", CASES)
def test_json_fits_its_schema_and_is_stable(make: object) -> None:
    evaluation = make()  # type: ignore[operator]
    text = report.render_json(evaluation)
    assert text == report.render_json(make())  # type: ignore[operator]
    jsonschema.validate(json.loads(text), report.json_schema())
    text.encode("ascii")


def test_published_schema_is_the_one_of_the_types() -> None:
    jsonschema.Draft202012Validator.check_schema(report.json_schema())
    assert report.json_schema() == schema.build_schema()


def test_schema_refuses_what_the_contract_forbids() -> None:
    body = json.loads(report.render_json(sample.evaluation()))
    body["verdict"]["status"] = "maybe"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(body, report.json_schema())


def test_json_refuses_numbers_that_it_cannot_carry() -> None:
    device = sample.device()
    broken = dataclasses.replace(device.step, t0_ns=float("nan"))
    with pytest.raises(OutputError, match="JSON cannot carry"):
        report.render_json(sample.evaluation(devices=(sample.device(step=broken),)))


def test_markdown_opens_with_the_verdict_and_closes_the_account() -> None:
    text = report.render_markdown(sample.evaluation())
    assert "### A decode step takes 4.04 ms" in text
    assert "The parts add up exactly." in text
    assert "<details><summary>Collectives</summary>" in text
    assert "- 433 small kernels a step at 2.65 µs" in text
    assert "context 4,096 _(assumed)_" in text
    assert "617 tokens/s at most" in text
    assert "| `moe_down` | 363.8 |" in text
    assert text.index("[!WARNING]") < text.index("### ")
    assert text == report.render_markdown(sample.evaluation())


def test_markdown_judges_nothing_where_nothing_may_be() -> None:
    for evaluation in (sample.cannot_judge(), sample.no_model()):
        text = report.render_markdown(evaluation)
        assert not re.search(r"\d×(?!\d)", text)
        assert "Recoverable" not in text
        assert "roofline" not in text


def test_markdown_keeps_its_budget() -> None:
    crowd = dataclasses.replace(sample.many_kernels(5_000, 5_000), devices=sample.hostile().devices * 8)
    for evaluation in (sample.many_kernels(5_000, 5_000), sample.hostile(), crowd):
        assert len(report.render_markdown(evaluation).encode()) < BUDGET


def test_markdown_says_what_it_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nsysmodel.report.markdown.BUDGET", 6_000)
    text = report.render_markdown(sample.evaluation())
    assert len(text.encode()) < 6_000
    assert "left out to fit a comment" in text


def test_markdown_makes_hostile_names_plain() -> None:
    text = report.render_markdown(sample.hostile())
    outside = re.sub(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)", "", text.replace("\\`", ""))
    assert not re.search(r"(?<!\\)<(?!/?(?:details|summary|br)\b)", outside)
    assert "@someone" not in outside
    assert "](http" not in outside.replace("\\]", "")


def test_code_spans_hold_backticks_and_bars() -> None:
    assert code("``") == "``` `` ```"
    assert code("a|b") == "`a\\|b`"
    assert code("") == ""
    assert escape("[x](y) **z**") == "\\[x\\](y) \\*\\*z\\*\\*"


def test_terminal_says_what_matters() -> None:
    text = printed(sample.evaluation(), "report.html")
    assert "A decode step takes 4.04 ms" in text
    assert "247 tokens/s measured, 617 tokens/s at most" in text
    assert "context 4,096 (assumed)" in text
    rows = [line.split()[0] for line in text.splitlines() if re.match(r" +\w.* (memory|latency)", line)]
    assert rows == ["moe_down", "attention", "moe_permute"]
    assert "warning: The context length is assumed" in text
    assert text.rstrip().endswith("Wrote report.html")
    assert "Wrote" not in printed(sample.evaluation())


def test_person_reads_whole_words() -> None:
    stream = io.StringIO()
    console = rich.console.Console(file=stream, width=60, force_terminal=True, color_system=None)
    report.terminal(sample.evaluation(), console, None)
    lines = stream.getvalue().splitlines()
    assert max(map(len, lines)) <= 60
    words = " ".join(printed(sample.evaluation()).split())
    assert words.split("largest excesses")[0] in " ".join(stream.getvalue().split())


def test_terminal_tells_devices_apart() -> None:
    devices = tuple(sample.device(device=k) for k in range(2))
    text = printed(sample.evaluation(devices=devices))
    assert "device 1 of process 4242: a step takes 4.04 ms, busy" in text


def test_terminal_judges_nothing_where_nothing_may_be() -> None:
    text = printed(sample.cannot_judge())
    assert "Cannot judge" in text
    assert "×" not in text
    assert "at most" not in text
    assert "--model qwen3-30b" in printed(sample.no_model())


def test_terminal_prints_no_control_characters() -> None:
    text = printed(sample.hostile(), "x\x1b[31m.html")
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f\u202e\u2028]", text)


def test_frame_has_a_row_per_op() -> None:
    frame = report.ops_frame(sample.evaluation())
    assert len(frame) == 17
    row = frame.set_index("op").loc["moe_down"]
    assert row["total_ns"] == 13_870 * 48 * 6
    assert str(frame["total_ns"].dtype) == "Int64"
    assert set(frame["status"]) == {"ok"}
    assert "kernels" not in frame.columns
    withheld = report.ops_frame(sample.cannot_judge())
    assert withheld["ratio"].isna().all()
    assert withheld["floor_ns"].isna().all()
    empty = report.ops_frame(sample.no_model())
    assert list(empty.columns) == list(frame.columns)
    assert empty.empty


def test_every_field_of_the_json_is_documented() -> None:
    text = (Path(__file__).resolve().parents[2] / "docs" / "json.md").read_text(encoding="utf-8")
    documented = set(re.findall(r"`([a-z_0-9]+)`", text))
    built = schema.build_schema()
    fields = set(built["properties"])
    for definition in built["$defs"].values():
        fields |= set(definition["properties"])
    assert fields <= documented
