"""Chromium for the page tests: Debian's, driven by Playwright; skipped with a reason where it is missing."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "unit"))

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    from nsysmodel.result import Evaluation

ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
AXE = "axe-core@4.10.3"


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One browser for all tests."""
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    executable = shutil.which("chromium") or shutil.which("chromium-browser")
    if executable is None:
        pytest.skip("Chromium is not installed (apt-get install chromium)")
    with playwright.sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=executable, args=ARGUMENTS)
        yield running
        running.close()


@pytest.fixture
def visit(browser: Browser, tmp_path: Path) -> Iterator[Callable[..., Page]]:
    """Renders an evaluation to a file and opens it; a test that is not noisy fails on errors and requests."""
    from nsysmodel.report import render_html

    contexts = []
    trouble: list[str] = []
    expected: list[bool] = []

    def opened(evaluation: Evaluation, *, noisy: bool = False, **options: object) -> Page:
        path = tmp_path / f"report-{len(contexts)}.html"
        path.write_text(render_html(evaluation), encoding="utf-8")
        context = browser.new_context(**{"viewport": {"width": 1180, "height": 820}, **options})
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(10_000)
        page.on("console", lambda message: trouble.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: trouble.append(f"error: {error}"))
        page.on("dialog", lambda dialog: trouble.append(f"dialog: {dialog.message}"))
        page.on("request", lambda request: trouble.append(f"request: {request.url}"))
        page.goto(path.as_uri())
        assert trouble == [f"request: {path.as_uri()}"]
        trouble.clear()
        expected.append(noisy)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert any(expected) or trouble == []


@pytest.fixture(scope="session")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The source of axe-core, fetched from the npm registry for the test only."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed, so axe-core cannot be fetched")
    folder = tmp_path_factory.mktemp("axe")
    command = [npm, "install", "--silent", "--no-save", "--ignore-scripts", "--prefix", str(folder), AXE]
    try:
        done = subprocess.run(command, capture_output=True, timeout=90, check=False)
    except subprocess.TimeoutExpired:
        pytest.skip("axe-core could not be fetched from npm in time")
    source = folder / "node_modules" / "axe-core" / "axe.min.js"
    if done.returncode or not source.is_file():
        pytest.skip("axe-core could not be fetched from npm")
    return source.read_text(encoding="utf-8")
