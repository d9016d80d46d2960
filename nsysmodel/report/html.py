"""The page: one file, offline, safe for names that nobody vouches for.

Autoescape is on, undefined names are errors, data go through one JSON block, and a content security
policy admits the one script by its hash. Parts shrink until the page keeps its budget.
"""

from __future__ import annotations

import base64
import hashlib
from functools import lru_cache
from importlib import resources
from pathlib import Path

import jinja2
from markupsafe import Markup

from nsysmodel.errors import OutputError
from nsysmodel.report import palette
from nsysmodel.report.glossary import WORDS
from nsysmodel.report.view import Limits, page
from nsysmodel.result import Evaluation

BUDGET = 1_500_000
"""Bytes that a page may have, whatever the export's size."""

SMALL_EXPORT, SMALL_BUDGET = 1_000, 200_000
"""Kernel instances up to which a page keeps to a smaller budget."""

LIMITS = (
    Limits(),
    Limits(kernels=400, unmodeled=120, places=40, learned=120, layers=200, bars=2000),
    Limits(kernels=120, unmodeled=50, places=20, learned=60, layers=120, bars=1000),
    Limits(kernels=40, unmodeled=20, places=10, learned=30, layers=60, bars=400),
    Limits(kernels=10, unmodeled=5, places=5, learned=10, layers=20, bars=100),
)


def render_html(evaluation: Evaluation) -> str:
    """The report of an evaluation as one HTML file.

    Raises:
        OutputError: the templates are not installed.
    """
    html = ""
    budget = SMALL_BUDGET if evaluation.export.kernels <= SMALL_EXPORT else BUDGET
    for limits in LIMITS:
        html = _render(evaluation, limits)
        if len(html.encode()) <= budget:
            break
    return html


def template_text(name: str) -> str:
    """A template, style sheet or script: from the installed package, else from the repository.

    Raises:
        OutputError: it is in neither place.
    """
    packaged = resources.files("nsysmodel") / "_templates" / name
    if packaged.is_file():
        return packaged.read_text(encoding="utf-8")
    checkout = Path(__file__).resolve().parents[2] / "reports" / "templates" / name
    if checkout.is_file():
        return checkout.read_text(encoding="utf-8")
    raise OutputError(
        f"The report template {name} is neither in nsysmodel/_templates nor in reports/templates.",
        "Install nsysmodel again; its wheel carries the templates.",
    )


def script_hash(script: str) -> str:
    """The source expression that admits `script` in a content security policy."""
    digest = hashlib.sha256(script.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"


def _render(evaluation: Evaluation, limits: Limits) -> str:
    script = page_script()
    return (
        environment()
        .get_template("page.html.j2")
        .render(
            page=page(evaluation, limits),
            style=Markup(palette.css() + page_style()),
            script=Markup(script),
            script_hash=script_hash(script),
            glossary=WORDS,
        )
    )


@lru_cache(maxsize=1)
def environment() -> jinja2.Environment:
    """Templates that escape everything and know no undefined value."""
    made = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        loader=jinja2.FunctionLoader(template_text),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.policies["json.dumps_kwargs"] = {
        "sort_keys": True,
        "separators": (",", ":"),
        "allow_nan": False,
    }
    return made


@lru_cache(maxsize=1)
def page_script() -> str:
    """The script of every page."""
    return template_text("report.js").strip()


@lru_cache(maxsize=1)
def page_style() -> str:
    """The style sheet without indentation and comments."""
    lines = (line.strip() for line in template_text("report.css").splitlines())
    return "".join(line for line in lines if line and not line.startswith("/*"))
