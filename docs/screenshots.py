"""Renders the report of the synthetic fixture and takes the pictures of docs/images; needs Chromium.

`python docs/screenshots.py` writes them anew. Nothing in them was measured: the fixture is built by a script.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from nsysmodel.analyze import evaluate
from nsysmodel.report import render_html

REPOSITORY = Path(__file__).resolve().parents[1]
FIXTURE = REPOSITORY / "fixtures" / "qwen3-30b-decode-gh200.sqlite"
IMAGES = REPOSITORY / "docs" / "images"
SHOTS = {"light": (1180, 1180, "light"), "dark": (1180, 1180, "dark"), "narrow": (390, 1180, "light")}


def main() -> None:
    """Render the fixture once and take every picture."""
    executable = shutil.which("chromium") or shutil.which("chromium-browser")
    IMAGES.mkdir(exist_ok=True)
    command = f"nsysmodel report {FIXTURE.name} --model qwen3-30b"
    html = render_html(evaluate(FIXTURE, "qwen3-30b", command=command))
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        page = Path(folder) / "report.html"
        page.write_text(html, encoding="utf-8")
        browser = driver.chromium.launch(
            executable_path=executable,
            args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
        )
        for name, (width, height, scheme) in SHOTS.items():
            shoot(browser, page, IMAGES / f"report-{name}.png", width, height, scheme)
        browser.close()


def shoot(browser: Browser, page: Path, target: Path, width: int, height: int, scheme: str) -> None:
    """Take one picture of what a window of this size shows first."""
    opened = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)  # type: ignore[arg-type]
    opened.goto(page.as_uri())
    opened.screenshot(path=target)
    opened.close()


if __name__ == "__main__":
    main()
