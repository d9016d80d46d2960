"""Prints of an evaluation: page, comment, JSON, frame, terminal. None of them computes a result."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd
    import rich.console

    from nsysmodel.result import Evaluation

__all__ = ["json_schema", "ops_frame", "render_html", "render_json", "render_markdown", "terminal"]


def render_html(evaluation: Evaluation) -> str:
    """The report as one offline HTML file of at most 1.5 MB.

    Raises:
        OutputError: the templates are not installed.
    """
    from nsysmodel.report.html import render_html as render

    return render(evaluation)


def render_markdown(evaluation: Evaluation) -> str:
    """The report for a pull-request comment or a job summary, below 60,000 bytes."""
    from nsysmodel.report.markdown import render_markdown as render

    return render(evaluation)


def render_json(evaluation: Evaluation) -> str:
    """The whole result under the schema `nsysmodel.report/1`; the same result gives the same bytes.

    Raises:
        OutputError: the result holds a number that JSON cannot carry.
    """
    from nsysmodel.report.json_file import render_json as render

    return render(evaluation)


def json_schema() -> dict[str, object]:
    """The published JSON Schema of `render_json`."""
    from nsysmodel.report.json_file import json_schema as load

    return load()


def ops_frame(evaluation: Evaluation) -> pd.DataFrame:
    """A row per device and op, columns as in the JSON; for CSV and Parquet."""
    from nsysmodel.report.frames import ops_frame as build

    return build(evaluation)


def terminal(evaluation: Evaluation, console: rich.console.Console, written: str | None) -> None:
    """Print the verdict, tokens per second, the three largest excesses, warnings, and where the file went."""
    from nsysmodel.report.console import terminal as show

    show(evaluation, console, written)
