"""The index of a batch in Chromium: quiet, safe, sortable, readable on any screen and without script."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from batch_cases import Judge, exports

from nsysmodel.batch.plan import plan
from nsysmodel.batch.run import run_batch

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

Open = Callable[..., "Page"]
HOSTILE = "<img src=x onerror=pwned=1>{{7*7}}"


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sixteen runs of two workloads, on one to eight GPUs, among them some that failed or are not judged."""
    folder = tmp_path_factory.mktemp("batch")
    texts = {f"run{k:02d}-tp{2 ** (k % 4)}": str(4000 + 137 * k % 900) for k in range(13)}
    exports(folder / "in", **texts, unjudged="unjudged", damaged="bad", plain="unmodeled")
    (folder / "in" / f"{HOSTILE.replace('/', '')}.sqlite").write_text("4400")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("nsysmodel.analyze.evaluate", Judge())
        runs = plan(
            [str(folder / "in")],
            labels={"note": HOSTILE},
            label_from=["run(?P<number>[0-9]+)-tp(?P<gpus>[0-9])"],
        )
        run_batch(runs, folder / "out")
    return folder / "out" / "index.html"


@pytest.fixture
def show(browser: Browser, index: Path) -> Iterator[Open]:
    """Opens the index; fails on errors, messages and requests."""
    contexts = []
    trouble: list[str] = []

    def opened(**options: object) -> Page:
        context = browser.new_context(**{"viewport": {"width": 1180, "height": 820}, **options})  # type: ignore[arg-type]
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(10_000)
        page.on("console", lambda message: trouble.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: trouble.append(f"error: {error}"))
        page.on("request", lambda request: trouble.append(request.url))
        page.goto(index.as_uri())
        assert trouble == [index.as_uri()]
        trouble.clear()
        return page

    yield opened
    for context in contexts:
        context.close()
    assert [item for item in trouble if not item.endswith(".html")] == []


def column(page: Page, name: str) -> list[str]:
    heads = [re.split(r"\s", text)[0] for text in page.locator("table.runs thead th").all_inner_texts()]
    return page.locator(f"table.runs tbody tr > :nth-child({heads.index(name) + 1})").all_inner_texts()


def test_opens_quietly_and_says_what_there_is(show: Open) -> None:
    page = show()
    assert page.inner_text("h1").startswith("17 runs: 14 judged (")
    assert page.evaluate("window.pwned") is None
    assert page.locator("#failed tbody tr").count() == 1
    assert "damaged.sqlite is damaged." in page.inner_text("#failed")
    assert page.locator("table.runs tbody tr").count() == 16
    assert HOSTILE in page.inner_text("header")
    assert page.locator("img").count() == 0


def test_rows_sort_and_filter(show: Open) -> None:
    page = show()
    page.locator("table.runs thead th", has_text="Step").first.get_by_role("button").click()
    steps = [float(text) for text in column(page, "Step") if text != "–"]
    assert steps == sorted(steps, reverse=True)
    page.get_by_role("searchbox").fill("tp4")
    assert page.locator("table.runs tbody tr:visible").count() == 3


def test_rows_lead_to_reports(show: Open) -> None:
    page = show()
    for row in (0, 15):
        link = page.locator("table.runs tbody tr th a").nth(row)
        name = link.inner_text()
        link.click()
        assert page.url.endswith(".html")
        assert "/runs/" in page.url
        assert page.locator("h1").count() == 1, name
        page.go_back()


def test_trends_and_law_are_drawn(show: Open) -> None:
    page = show()
    assert page.locator("#trends svg.fig").count() >= 1
    assert page.locator("#trends svg.fig").first.locator("circle").count() >= 13
    assert page.locator("#scaling svg.fig path.fitted").count() >= 1
    assert page.locator("#scaling tbody tr").count() >= 4


@pytest.mark.parametrize("width", [320, 390, 768, 1180])
def test_no_width_scrolls_the_page(show: Open, width: int) -> None:
    page = show(viewport={"width": width, "height": 800})
    page.evaluate("for (const d of document.querySelectorAll('details')) d.open = true")
    wide, inner = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert wide <= inner


def test_without_script_everything_is_there(show: Open) -> None:
    page = show(java_script_enabled=False)
    assert page.locator("table.runs tbody tr").first.is_visible()
    assert page.locator("#trends svg.fig").first.is_visible()
    assert page.locator("button, input").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_violation(show: Open, axe: str, scheme: str) -> None:
    page = show(color_scheme=scheme)
    page.evaluate("for (const d of document.querySelectorAll('details')) d.open = true")
    page.evaluate(axe)
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    bad = [
        f"{item['id']}: {item['nodes'][0]['html'][:120]} ({len(item['nodes'])})"
        for item in found["violations"]
        if item["impact"] in ("serious", "critical")
    ]
    assert bad == []
