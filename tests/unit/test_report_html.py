"""The page as a file: parses, offline, safe, deterministic, within its budget, and true to the result."""

from __future__ import annotations

import dataclasses
import json
import re
from html.parser import HTMLParser

import pytest
import sample

from nsysmodel.cli.output import TAG
from nsysmodel.errors import OutputError
from nsysmodel.report import render_html
from nsysmodel.report.html import BUDGET, SMALL_BUDGET, script_hash, template_text
from nsysmodel.result import Diagnostic, Evaluation
from nsysmodel.result_account import RecoverableRow

CASES = {
    "ok": sample.evaluation,
    "cannot_judge": sample.cannot_judge,
    "no_model": sample.no_model,
    "hostile": sample.hostile,
}
VOID = {"meta", "input", "br", "link", "img", "hr", "path", "rect", "circle", "line"}


class Page(HTMLParser):
    """Collects what the checks ask for, and notices tags that do not match."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.errors: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.text: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "script":
            self.scripts.append((dict(attrs), ""))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if tag in VOID:
            return
        if not self.open or self.open.pop() != tag:
            self.errors.append(tag)

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            attrs, text = self.scripts[-1]
            self.scripts[-1] = (attrs, text + data)
        elif self.open and self.open[-1] != "style":
            self.text.append(data)

    def words(self) -> str:
        return " ".join(" ".join(self.text).split())


@pytest.fixture(scope="module", params=sorted(CASES))
def case(request: pytest.FixtureRequest) -> tuple[Evaluation, str, Page]:
    evaluation = CASES[request.param]()
    html = render_html(evaluation)
    return evaluation, html, Page(html)


def test_page_is_well_formed(case: tuple[Evaluation, str, Page]) -> None:
    _, html, page = case
    assert page.errors == []
    assert page.open == []
    assert html.startswith("<!doctype html>")
    assert sum(tag == "h1" for tag, _ in page.tags) == 1
    assert TAG in html[:4096]
    idents = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    assert len(idents) == len(set(idents))


def test_page_asks_for_nothing(case: tuple[Evaluation, str, Page]) -> None:
    _, _, page = case
    for tag, attrs in page.tags:
        assert tag not in {"link", "img", "iframe", "object", "embed", "base", "form", "audio", "video"}
        assert "src" not in attrs
        assert (attrs.get("href") or "#").startswith("#")
        assert not [name for name in attrs if name.startswith("on")]


def test_policy_admits_the_one_script(case: tuple[Evaluation, str, Page]) -> None:
    _, _, page = case
    metas = [attrs for tag, attrs in page.tags if tag == "meta"]
    policy = next(m["content"] or "" for m in metas if m.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'; ")
    assert "connect-src" not in policy
    code = [text for attrs, text in page.scripts if "type" not in attrs]
    data = [attrs for attrs, _ in page.scripts if attrs.get("type") == "application/json"]
    assert len(code) == len(data) == 1
    assert f"script-src '{script_hash(code[0])}'" in policy


def test_data_block_equals_the_result(case: tuple[Evaluation, str, Page]) -> None:
    evaluation, _, page = case
    data = json.loads(next(text for attrs, text in page.scripts if "type" in attrs))
    for shown, device in zip(data["devices"], evaluation.devices, strict=True):
        assert shown["window_total_ns"] == device.window_total_ns
        assert sum(part["total_ns"] for part in shown["waterfall"]) == device.window_total_ns
        assert f"{device.window_total_ns:,}" in page.words()
        assert sum(row["total_ns"] for row in shown["ops"]) == sum(row.total_ns for row in device.ops)


def test_same_input_same_bytes() -> None:
    assert render_html(sample.hostile()) == render_html(sample.hostile())


def test_templates_never_switch_escaping_off() -> None:
    for name in ("page.html.j2", "device.html.j2", "macros.html.j2"):
        assert not re.search(r"\|\s*safe|autoescape", template_text(name))


def test_hostile_names_are_shown_and_harmless() -> None:
    html = render_html(sample.hostile())
    page = Page(html)
    assert "</script><script>window.pwned=1</script>" in page.words()
    assert html.count("<script") == 2
    assert "{{ 7*7 }}" in page.words()
    for char in ("\u2028", "\u2029", "\x00", "\x1b", "\u202e", "\ud800"):
        assert char not in html
    assert "kernel\\u2028line" in html
    assert "A" * 1_000 not in html


def test_nothing_is_judged_where_nothing_may_be() -> None:
    for evaluation in (sample.cannot_judge(), sample.no_model()):
        html = render_html(evaluation)
        words = Page(html).words()
        assert not re.search(r"\d×(?!\d)", words)
        assert "of the roofline" not in words
        assert "Recoverable" not in words
        assert "above the floor" not in words
        assert '"ratio"' not in html
        assert '"floor_ns"' not in html
    assert "withheld" in Page(render_html(sample.cannot_judge())).words()
    assert "llama-3.1-8b" in Page(render_html(sample.cannot_judge())).words()


def test_page_without_model_shows_what_needs_none() -> None:
    words = Page(render_html(sample.no_model())).words()
    for part in ("Kernels by class", "Small kernels", "Idle time", "Transfers", "--model qwen3-30b"):
        assert part in words


def test_page_says_what_was_assumed_and_measured() -> None:
    words = Page(render_html(sample.evaluation())).words()
    assert "context 4,096 assumed" in words
    assert "TP 1 EP 1 DP 1 assumed" in words
    assert "247 tokens/s measured" in words
    assert "617 tokens/s at most" in words
    assert "every weight once (6.1 GB)" in words
    assert "synthetic export, nothing was measured" in words
    assert "ncu --set full -k fused_moe_kernel --launch-skip 96 --launch-count 1" in words


def test_page_shows_what_no_op_owns() -> None:
    words = Page(render_html(sample.evaluation())).words()
    for part in (
        "433 small kernels a step",
        "topk → moe_permute ×2",
        "moving and waiting are estimated from the steps of this rank alone",
        "8 blocks on 132 SMs",
        "No samples of the clock.",
        "other launch-bound ops",
    ):
        assert part in words


def test_floors_of_other_workloads_stand_in_a_table_and_in_the_data() -> None:
    evaluation = sample.evaluation()
    page = Page(render_html(evaluation))
    data = json.loads(next(text for attrs, text in page.scripts if "type" in attrs))["what_if"]
    assert evaluation.what_if is not None
    assert data["floors"] == [[list(cell) for cell in row] for row in evaluation.what_if.floors_ns]
    assert data["measured"] == evaluation.devices[0].step.measured_ns
    assert "2.41 ms" in page.words()
    for quiet in (sample.cannot_judge(), sample.no_model()):
        assert "What if" not in Page(render_html(quiet)).words()


def test_ops_stand_in_the_order_of_what_they_could_give() -> None:
    html = render_html(sample.evaluation())
    table = html[html.index('id="d0-ops"') : html.index('id="d0-learned"')]
    found = re.findall(r'<th scope="row"[^>]*>.*?<code>(.*?)</code>', table)
    names = [name for name in found if name in {row.op for row in sample.evaluation().devices[0].ops}]
    gains = {row.op: row.recoverable_ns or 0.0 for row in sample.evaluation().devices[0].ops}
    assert names == sorted(gains, key=lambda op: -gains[op])


def test_warnings_stand_above_the_verdict() -> None:
    html = render_html(sample.evaluation())
    assert html.index("The context length is assumed") < html.index("<h1")
    assert html.index("The SM clock is") > html.index("<h1")


@pytest.mark.parametrize(("count", "length"), [(20_000, 60), (5_000, 5_000)])
def test_any_size_keeps_the_budget(count: int, length: int) -> None:
    html = render_html(sample.many_kernels(count, length))
    assert len(html.encode()) <= BUDGET
    assert f"of {count:,} kernels" in html


def test_small_export_makes_a_small_page() -> None:
    evaluation = sample.many_kernels(1_000)
    small = dataclasses.replace(evaluation, export=dataclasses.replace(evaluation.export, kernels=1_000))
    assert len(render_html(small).encode()) < SMALL_BUDGET


def test_every_device_has_its_part() -> None:
    devices = tuple(sample.device(device=k) for k in range(8))
    html = render_html(sample.evaluation(devices=devices))
    assert len(html.encode()) <= BUDGET
    assert html.count('class="water"') == 8
    assert html.count("NVIDIA GH200 480GB</a></th>") == 8
    page = Page(html)
    idents = {attrs["id"] for _, attrs in page.tags if "id" in attrs}
    links = [attrs["href"] for tag, attrs in page.tags if tag == "a"]
    assert {f"#d{k}" for k in range(8)} <= set(links)
    assert {(link or "")[1:] for link in links} <= idents
    assert "Said of NVIDIA GH200 480GB, device 0 of process 4242" in page.words()
    assert Page(html).errors == []


def test_ranks_are_told_apart_by_their_exports() -> None:
    export = sample.evaluation().export
    files = tuple(dataclasses.replace(export, file=f"rank{k}.sqlite") for k in range(2))
    devices = tuple(sample.device(export_index=k) for k in range(2))
    words = Page(render_html(sample.evaluation(exports=files, devices=devices))).words()
    assert "device 0 of process 4242 in rank1.sqlite" in words
    assert words.count("rank1.sqlite") >= 3


def test_op_says_how_much_faster_the_step_would_be() -> None:
    row = RecoverableRow("moe_down", 363_770.0, 288_000.0, 6e5, 1.1, 1.08, 0.09, "floor", 2_182_620)
    words = Page(render_html(sample.evaluation(devices=(sample.device(recoverable=(row,)),)))).words()
    assert "the step with this op at its floor 1.1× as fast at 80 % of that 1.08× as fast" in words


def test_steps_that_could_not_be_used_are_no_steps() -> None:
    device = sample.device()
    steps = dataclasses.replace(device.steps, used=0, p95_ns=0)
    words = Page(
        render_html(dataclasses.replace(sample.cannot_judge(), devices=(sample.device(steps=steps),)))
    ).words()
    assert "whole window" in words
    assert "mean of 0" not in words


def test_many_warnings_do_not_bury_the_verdict() -> None:
    many = tuple(Diagnostic(f"c{k}", "warning", f"warning number {k}.") for k in range(9))
    last = Diagnostic("bad", "error", "an error.")
    html = render_html(sample.evaluation(diagnostics=(*many, last)))
    assert html.index("an error.") < html.index("warning number 0.") < html.index("7 more warnings")
    assert html.index("warning number 8.") < html.index("<h1")


def test_missing_template_is_an_error_that_names_both_places() -> None:
    with pytest.raises(OutputError, match=r"_templates.*reports/templates"):
        template_text("absent.html.j2")
