"""The index page of a batch: the same rules, style and script as the page of one run."""

from __future__ import annotations

from functools import lru_cache

from markupsafe import Markup

from nsysmodel.batch.types import Batch
from nsysmodel.report import html, palette
from nsysmodel.report.batch_view import page
from nsysmodel.report.html import script_hash, template_text


def render_batch(batch: Batch, folder: str, data_file: str, ops_file: str) -> str:
    """The page, with links to the runs' own pages in `folder` beside it.

    Args:
        batch: the result.
        folder: name of the folder with the runs.
        data_file, ops_file: names of the JSON and of the table of all ops.

    Raises:
        OutputError: the templates are not installed.
    """
    script = html.page_script()
    return (
        html.environment()
        .get_template("batch.html.j2")
        .render(
            page=page(batch, folder, data_file, ops_file),
            style=Markup(palette.css() + html.page_style() + _style()),
            script=Markup(script),
            script_hash=script_hash(script),
        )
    )


@lru_cache(maxsize=1)
def _style() -> str:
    return "".join(line.strip() for line in template_text("batch.css").splitlines())
