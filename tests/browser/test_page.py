"""The page in headless Chromium: quiet, safe, usable by mouse and keyboard, on paper, without script."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
import sample

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser

Visit = Callable[..., "Page"]
CASES = {
    "ok": sample.evaluation,
    "cannot_judge": sample.cannot_judge,
    "no_model": sample.no_model,
    "hostile": sample.hostile,
}


def data(page: Page) -> dict[str, list[dict[str, object]]]:
    return json.loads(page.inner_text("#nsysmodel-data") or page.text_content("#nsysmodel-data") or "")


def ops(page: Page) -> list[str]:
    return page.locator("table.ops > tbody > tr:first-child th code").all_inner_texts()


@pytest.mark.parametrize("name", sorted(CASES))
def test_page_opens_quietly(visit: Visit, name: str) -> None:
    page = visit(CASES[name]())
    assert page.locator("h1").count() == 1
    assert page.evaluate("window.pwned") is None
    assert page.evaluate("document.documentElement.classList.contains('js')")


def test_policy_stops_what_escaping_might_miss(visit: Visit) -> None:
    page = visit(sample.evaluation(), noisy=True)
    blocked = page.evaluate(
        """() => new Promise(done => {
            const seen = [];
            addEventListener('securitypolicyviolation', event => {
                seen.push(event.effectiveDirective);
                if (seen.length === 2) done(seen);
            });
            const script = document.createElement('script');
            script.textContent = 'window.pwned = 1';
            document.body.append(script);
            fetch('https://example.invalid/').catch(() => {});
        })"""
    )
    assert sorted(blocked) == ["connect-src", "script-src-elem"]
    assert page.evaluate("window.pwned") is None


def test_totals_equal_the_data(visit: Visit) -> None:
    page = visit(sample.evaluation())
    device = data(page)["devices"][0]
    exact = page.locator(".water tbody td:last-child").all_inner_texts()
    values = [int(text.replace(",", "").replace("−", "-")) for text in exact]
    assert values == [part["total_ns"] for part in device["waterfall"]]  # type: ignore[attr-defined]
    assert sum(values) == device["window_total_ns"]
    measured = page.inner_text("[data-total=d0]")
    assert float(measured) == pytest.approx(float(device["measured_ns"]) / 1e6, rel=1e-3)  # type: ignore[arg-type]


def test_columns_sort(visit: Visit) -> None:
    page = visit(sample.evaluation())
    before = ops(page)
    head = page.locator("table.ops thead th", has_text="Measured")
    head.get_by_role("button").click()
    measured = {row["op"]: row["measured_ns"] for row in data(page)["devices"][0]["ops"]}  # type: ignore[attr-defined]
    assert ops(page) == sorted(before, key=lambda op: -measured[op])
    assert head.get_attribute("aria-sort") == "descending"
    head.get_by_role("button").press("Enter")
    assert ops(page) == sorted(before, key=lambda op: measured[op])
    assert page.locator("table.ops th[aria-sort]").count() == 1
    page.locator("table.ops thead th").first.get_by_role("button").click()
    assert ops(page) == sorted(before)


def test_missing_numbers_sort_last(visit: Visit) -> None:
    page = visit(sample.evaluation())
    button = page.locator("table.ops thead th", has_text="Ratio").get_by_role("button")
    for _ in range(2):
        button.click()
        shown = page.locator("table.ops > tbody > tr:first-child td:nth-child(7)").all_inner_texts()
        assert [text == "–" for text in shown] == sorted(text == "–" for text in shown)


def test_rows_open_by_mouse_and_keyboard(visit: Visit) -> None:
    page = visit(sample.evaluation())
    first = page.locator("table.ops > tbody").first
    assert not first.locator(".detail").is_visible()
    first.locator("tr").first.click()
    assert first.locator(".detail").is_visible()
    assert "ncu --set full" in first.locator(".cmd").inner_text()
    button = first.locator("th button")
    assert button.get_attribute("aria-expanded") == "true"
    button.press("Enter")
    assert not first.locator(".detail").is_visible()
    button.press("Space")
    assert first.locator(".detail").is_visible()
    page.locator("table.ops thead th", has_text="Floor").get_by_role("button").click()
    assert page.locator("table.ops tbody.open .detail").is_visible()


def test_commands_can_be_copied(visit: Visit) -> None:
    page = visit(sample.evaluation(), permissions=["clipboard-read", "clipboard-write"])
    page.locator("table.ops > tbody").first.locator("tr").first.click()
    page.locator(".cmd .cp").first.click()
    page.get_by_role("button", name="copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()").startswith("ncu --set full -k fused_moe_kernel")


def test_kernels_filter(visit: Visit) -> None:
    page = visit(sample.evaluation())
    page.locator("#d0-kernels summary").click()
    page.get_by_role("searchbox").fill("fused_moe")
    assert page.locator("#d0-kernels tbody tr:visible").count() == 2
    assert page.locator("#d0-kernels .filter output").inner_text() == "2 of 18 rows"
    page.get_by_role("searchbox").fill("")
    assert page.locator("#d0-kernels tbody tr:visible").count() == 18


def shown(page: Page) -> dict[str, list[str]]:
    rows = page.locator("#what-if output tr").all()
    cells = [row.locator("th, td").all_inner_texts() for row in rows]
    return {first: rest for first, *rest in cells}


def test_what_if_adds_up_floors_of_the_model(visit: Visit) -> None:
    page = visit(sample.evaluation())
    found = sample.what_if()
    measured, floor = (float(data(page)["devices"][0][name]) for name in ("measured_ns", "floor_ns"))  # type: ignore[arg-type]
    assert page.locator("#what-if select[name=batch]").input_value() == "0"
    page.locator("#what-if select[name=batch]").select_option(label="2")
    page.locator("#what-if select[name=bandwidth]").select_option("2")
    other = found.floors_ns[1][1][2]
    assert other is not None
    assert shown(page)["floor of a step"][1] == f"{other / 1e6:.4g}".ljust(5, "0") + " ms"
    page.locator("#what-if select[name=op]").select_option(label="moe_down")
    page.locator("#what-if select[name=share]").select_option("80")
    op = found.ops[0]
    gain = min(op.measured_ns - op.best_ns / 0.8, op.alone_ns)
    assert shown(page)["gain of moe_down"][1] == f"{gain / 1e3:.1f} µs"
    step = float(shown(page)["a step, if all else stays"][1].removesuffix(" ms"))
    assert step == pytest.approx((measured - gain + other - floor) / 1e6, abs=1e-3)
    page.locator("#what-if select[name=batch]").select_option(label="4")
    assert shown(page)["floor of a step"][1] == "no such step in this model"


def test_long_table_of_ops_shows_a_dozen_first(visit: Visit) -> None:
    page = visit(sample.evaluation())
    rows = page.locator("table.ops > tbody:visible")
    assert rows.count() == 12
    button = page.get_by_role("button", name="Show all 17 ops")
    button.focus()
    page.keyboard.press("Enter")
    assert rows.count() == 17
    page.get_by_role("button", name="Show 12 ops").click()
    page.emulate_media(media="print")
    assert rows.count() == 17


def test_links_open_the_device_they_name(visit: Visit) -> None:
    page = visit(sample.evaluation(devices=tuple(sample.device(device=k) for k in range(3))))
    assert not page.locator("#d2-waterfall").is_visible()
    page.get_by_role("link", name="2: NVIDIA GH200 480GB").click()
    assert page.locator("#d2-waterfall").is_visible()
    page.get_by_role("navigation", name="device 2").get_by_role("link", name="Ops").click()
    assert page.evaluate("location.hash") == "#d2-gains"


def span(page: Page) -> tuple[int, int]:
    box = page.locator(".tl").first
    return int(box.get_attribute("data-from") or 0), int(box.get_attribute("data-span") or 0)


def test_timeline_answers_the_keyboard(visit: Visit) -> None:
    page = visit(sample.evaluation())
    box = page.locator(".tl")
    _, whole = span(page)
    box.focus()
    for _ in range(4):
        page.keyboard.press("+")
    start, wide = span(page)
    assert wide == pytest.approx(whole / 16, rel=0.01)
    page.keyboard.press("ArrowRight")
    assert span(page)[0] == pytest.approx(start + wide / 8, rel=0.01)
    page.keyboard.press("0")
    assert span(page) == (0, whole)
    page.keyboard.press("n")
    first = box.locator("output").inner_text()
    assert "input_norm" in first
    page.keyboard.press("n")
    assert "qkv_proj" in box.locator("output").inner_text()
    page.keyboard.press("p")
    assert box.locator("output").inner_text() == first


def test_timeline_answers_the_mouse(visit: Visit) -> None:
    page = visit(sample.evaluation())
    box = page.locator(".tl")
    box.scroll_into_view_if_needed()
    _, whole = span(page)
    for _ in range(3):
        page.get_by_role("button", name="Zoom in").click()
    area = page.locator("svg.timeline").bounding_box()
    assert area is not None
    middle = (area["x"] + area["width"] / 2, area["y"] + 45)
    page.mouse.move(*middle)
    assert "stream 7" in box.locator("output").inner_text()
    start, wide = span(page)
    page.mouse.down()
    page.mouse.move(middle[0] - 100, middle[1])
    page.mouse.up()
    assert span(page)[0] == pytest.approx(start + 100 / area["width"] * wide, rel=0.01)
    page.mouse.dblclick(*middle)
    assert span(page)[1] < wide
    page.get_by_role("button", name="Show the whole step").click()
    assert span(page) == (0, whole)


def test_gaps_tell_their_cause(visit: Visit) -> None:
    page = visit(sample.evaluation())
    page.locator(".tl").scroll_into_view_if_needed()
    area = page.locator("svg.timeline").bounding_box()
    assert area is not None
    page.mouse.move(area["x"] + area["width"] - 8, area["y"] + 22 + 34 * 2 + 22)
    assert "idle: launch starved" in page.locator(".tl output").inner_text()


@pytest.mark.parametrize("width", [390, 320, 768, 1180])
@pytest.mark.parametrize("name", sorted(CASES))
def test_no_width_scrolls_the_page(visit: Visit, name: str, width: int) -> None:
    page = visit(CASES[name](), viewport={"width": width, "height": 800})
    page.evaluate("for (const d of document.querySelectorAll('details')) d.open = true")
    wide, inner = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert wide <= inner


def test_dark_theme(visit: Visit) -> None:
    page = visit(sample.evaluation(), color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(13, 17, 23)"
    assert page.evaluate("getComputedStyle(document.querySelector('.roof')).stroke") == "rgb(230, 237, 243)"


def test_without_script_everything_is_there(visit: Visit) -> None:
    page = visit(sample.evaluation(), java_script_enabled=False)
    assert page.locator("table.ops .more summary").first.is_visible()
    page.locator("table.ops .more summary").first.click()
    assert page.locator("table.ops .detail").first.is_visible()
    assert page.locator("svg.timeline path").first.is_visible()
    assert page.locator("button, input").count() == 0


def test_without_style_the_page_reads_in_order(visit: Visit) -> None:
    page = visit(sample.evaluation(), java_script_enabled=False)
    text = re.sub(r"<style>.*?</style>", "", page.content(), flags=re.S)
    page.set_content(re.sub(r' style="[^"]*"', "", text))
    words = page.inner_text("body")
    order = [
        words.index(part)
        for part in ("assumed", "A decode step takes", "4.04 ms", "moe_down", "launch starved")
    ]
    assert order[0] < order[1] < order[2]
    assert page.locator("table.water").is_visible()
    fill = page.locator("svg.fig circle").first.get_attribute("fill")
    assert fill is not None
    assert fill.startswith("#")


def test_paper_shows_folded_parts(visit: Visit) -> None:
    page = visit(sample.evaluation())
    assert not page.locator("#d0-kernels table").is_visible()
    page.emulate_media(media="print")
    assert page.locator("#d0-kernels table").bounding_box()["height"] > 200  # type: ignore[index]
    assert page.locator("table.ops .detail").first.bounding_box()["height"] > 50  # type: ignore[index]
    assert not page.locator(".tools").is_visible()
    assert page.pdf().startswith(b"%PDF")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["ok", "cannot_judge", "no_model"])
def test_axe_finds_no_serious_violation(visit: Visit, axe: str, name: str, scheme: str) -> None:
    page = visit(CASES[name](), color_scheme=scheme)
    page.evaluate("for (const d of document.querySelectorAll('details')) d.open = true")
    if name == "ok":
        page.locator("table.ops > tbody").first.locator("tr").first.click()
    page.evaluate(axe)
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    bad = [
        f"{item['id']}: {item['nodes'][0]['html'][:120]} ({len(item['nodes'])})"
        for item in found["violations"]
        if item["impact"] in ("serious", "critical")
    ]
    assert bad == []
