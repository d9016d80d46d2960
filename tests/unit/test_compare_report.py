"""The prints of a comparison: safe, complete, within their limits, true to the result."""

from __future__ import annotations

import io
import json
import re

import pytest
import rich.console
from comparison_runs import device, generated, run
from test_report_html import Page

import nsysmodel
from nsysmodel.comparison.result import Comparison
from nsysmodel.report.compare_html import render_compare_html
from nsysmodel.report.compare_text import (
    compare_terminal,
    render_compare_json,
    render_compare_markdown,
)
from nsysmodel.report.html import BUDGET, script_hash, template_text
from nsysmodel.report.markdown import BUDGET as COMMENT

HOSTILE = (
    "</script><script>window.pwned=1</script>",
    "<img src=x onerror=alert(1)>",
    "{{ 7*7 }}",
    "a`|b` [x](http://evil) @everyone",
    "bell\x07 esc\x1b[31m line\u2028sep rtl\u202e nul\x00 \ud800",
    "A" * 5_000,
)


def hostile() -> Comparison:
    base = {("kernel", name): [10_000 + k] * 8 for k, name in enumerate(HOSTILE)}
    other = {("kernel", name[:-1] + "!"): [20_000 + k] * 8 for k, name in enumerate(HOSTILE)}
    a = run(device(base), file="<b>a</b>.sqlite")
    return nsysmodel.compare(a, run(device({**other, ("op", "x"): [70_000] * 8})))


def many() -> Comparison:
    base = {("kernel", f"kernel_{k}<{'x' * 200}>"): [10_000 + k] * 8 for k in range(3_000)}
    return nsysmodel.compare(run(device(base)), run(device(base)))


def slower() -> Comparison:
    return nsysmodel.compare(generated(0), generated(1, {"gate_up_proj": 1.2}), generated(2))


@pytest.mark.parametrize("make", [hostile, many, slower])
def test_page(make: object) -> None:
    found: Comparison = make()  # type: ignore[operator]
    html = render_compare_html(found)
    page = Page(html)
    assert (page.errors, page.open) == ([], [])
    assert sum(tag == "h1" for tag, _ in page.tags) == 1
    assert len(html.encode()) <= BUDGET
    idents = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    assert len(idents) == len(set(idents))
    code = [text for attrs, text in page.scripts if "type" not in attrs]
    assert len(page.scripts) == 2
    assert f"script-src '{script_hash(code[0])}'" in html
    for tag, attrs in page.tags:
        assert tag not in {"link", "img", "iframe", "object", "form"}
        assert not [name for name in attrs if name.startswith("on")]
    data = json.loads(next(text for attrs, text in page.scripts if "type" in attrs))
    for shown, pair in zip(data["comparisons"][0]["pairs"], found.pairs, strict=True):
        assert shown["a_mean_ns"] + sum(shown["waterfall"]) == shown["b_mean_ns"] == pair.b_mean_ns
    assert found.verdict.headline.split(":")[0] in page.words()
    assert render_compare_html(found) == html


def test_templates_never_switch_escaping_off() -> None:
    assert not re.search(r"\|\s*safe|autoescape", template_text("compare.html.j2"))


def test_hostile_names_are_harmless() -> None:
    found = hostile()
    html, comment = render_compare_html(found), render_compare_markdown(found)
    stream = io.StringIO()
    compare_terminal(found, rich.console.Console(file=stream, width=120), None)
    for text in (html, comment, stream.getvalue()):
        for char in ("\u2028", "\x00", "\x1b", "\u202e", "\ud800", "\x07"):
            assert char not in text
        assert "A" * 1_000 not in text
    assert html.count("<script") == 2
    prose = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", comment, flags=re.S)
    assert "@everyone" not in prose
    assert "<img" not in prose
    assert "http://" not in prose


@pytest.mark.parametrize("make", [hostile, many, slower])
def test_comment_keeps_to_the_limit_and_opens_with_the_verdict(make: object) -> None:
    text = render_compare_markdown(make())  # type: ignore[operator]
    assert len(text.encode()) <= COMMENT
    lines = text.splitlines()
    assert lines[0] == "<!-- nsysmodel compare -->"
    assert next(line for line in lines if line.startswith("### "))
    assert "The parts add up exactly." in text


def test_every_output_says_the_same() -> None:
    found = slower()
    body = json.loads(render_compare_json(found))
    stream = io.StringIO()
    compare_terminal(found, rich.console.Console(file=stream, width=160), "out.html")
    words = " ".join(stream.getvalue().split())
    assert body["verdict"]["headline"] in words
    assert "Wrote out.html" in words
    assert "1 regressed" in words
    assert "each export against a" in Page(render_compare_html(found)).words().lower()
    assert "Each export against A" not in render_compare_markdown(
        nsysmodel.compare(generated(0), generated(1))
    )


def test_marks_stand_beside_the_colours() -> None:
    html = render_compare_html(slower())
    assert '<i class="mk regressed">+</i> gate_up_proj' in html
    assert '<i class="mk unchanged">=</i>' in html
