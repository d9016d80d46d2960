"""A DataFrame, or columns without one, as a table for the terminal, CSV, JSON, Markdown or Parquet.

Nothing is computed here.
"""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

    from nsysmodel.export.summary import Table

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_NARROWEST_NAME = 24
_ONE_DECIMAL = ("time_pct", "avg_ns", "med_ns", "stddev_ns")


def clean(text: str) -> str:
    """Text of an export without characters that a terminal obeys.

    >>> clean("a\\x1b[31mb")
    'a�[31mb'
    """
    return _CONTROL.sub("�", text)


def cut_middle(text: str, width: int) -> str:
    """The text in at most `width` characters; kernel names differ at both ends, so the middle goes.

    >>> cut_middle("void gemm_kernel<float, 128>(int)", 16)
    'void gem…8>(int)'
    """
    if len(text) <= width:
        return text
    left = width // 2
    return text[:left] + "…" + text[len(text) - (width - left - 1) :]


def render(frame: pd.DataFrame | Table, output_format: str, *, to_terminal: bool, **head: Any) -> str | bytes:
    """The frame in one of the formats.

    Args:
        frame: what to show; columns without a frame only as `table`, `csv` or `markdown`.
        output_format: `table`, `csv`, `json`, `markdown` or `parquet`.
        to_terminal: a person reads it: names are cut to the width of the terminal.
        head: what JSON has beside its `rows`.
    """
    if isinstance(frame, dict):
        columns = {name: values.tolist() for name, values in frame.items()}
    elif output_format == "parquet":
        return _parquet(frame)
    elif output_format == "json":
        return (
            json.dumps({**head, "rows": records(frame)}, ensure_ascii=False, indent=1, allow_nan=False) + "\n"
        )
    elif output_format == "csv":
        return _csv(frame)
    else:
        columns = {str(name): _column(frame, name) for name in frame.columns}
    if output_format == "csv":
        return _csv_of(columns)
    cells = [[_cell(name, value) for value in values] for name, values in columns.items()]
    if output_format == "markdown":
        return _markdown(list(columns), cells)
    return _terminal(list(columns), cells) if to_terminal else _plain(list(columns), cells)


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows as dictionaries of plain values, None where there is none."""
    columns = {str(name): _column(frame, name) for name in frame.columns}
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def _column(frame: pd.DataFrame, name: str) -> list[Any]:
    series = frame[name]
    values = series.astype(object).where(series.notna(), None).tolist()
    return [value.item() if hasattr(value, "item") else value for value in values]


def half_up(value: float) -> float:
    """One decimal, halves away from zero, as nsys rounds.

    >>> half_up(86953.25)
    86953.3
    """
    import math

    return math.copysign(math.floor(abs(value) * 10 + 0.5) / 10, value)


def _csv(frame: pd.DataFrame) -> str:
    out = frame.copy(deep=False)
    for name in out.columns:
        if name in _ONE_DECIMAL:
            out[name] = [half_up(float(value)) for value in out[name]]
        elif out[name].dtype in (object, "category"):
            out[name] = [None if value is None else clean(str(value)) for value in _column(out, name)]
    return out.to_csv(index=False, lineterminator="\n")


def _csv_of(columns: dict[str, list[Any]]) -> str:
    """As `_csv`, of columns without missing values."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(columns)
    shown = [[_csv_cell(name, value) for value in values] for name, values in columns.items()]
    writer.writerows(zip(*shown, strict=True))
    return stream.getvalue()


def _csv_cell(name: str, value: Any) -> Any:
    if isinstance(value, str):
        return clean(value)
    return half_up(value) if name in _ONE_DECIMAL else value


def _parquet(frame: pd.DataFrame) -> bytes:
    buffer = io.BytesIO()
    frame.to_parquet(buffer, index=False)
    return buffer.getvalue()


def _cell(name: str, value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if name in ("process", "device", "stream"):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float) and name.endswith("_per_s"):
        return f"{value:,.0f}"
    if isinstance(value, float):
        return f"{half_up(value):,.1f}"
    return clean(str(value))


def _is_text(column: list[str]) -> bool:
    return any(cell and not cell[0].isdigit() and cell[0] not in "-−" for cell in column)


def _markdown(names: list[str], cells: list[list[str]]) -> str:
    texts = [_is_text(column) for column in cells]
    lines = [
        "| " + " | ".join(names) + " |",
        "|" + "|".join("---" if text else "--:" for text in texts) + "|",
    ]
    for row in zip(*cells, strict=True):
        shown = [_code(cell) if text and cell else cell for cell, text in zip(row, texts, strict=True)]
        lines.append("| " + " | ".join(shown) + " |")
    return "\n".join(lines) + "\n"


def _code(text: str) -> str:
    """Text of an export as Markdown code; a bar would end the cell, a backtick the code."""
    return "`" + text.replace("`", "'").replace("|", "\\|") + "`"


def _plain(names: list[str], cells: list[list[str]]) -> str:
    """Aligned columns without colour or cuts, for pipes."""
    widths = [max(len(name), *map(len, column), 0) for name, column in zip(names, cells, strict=True)]
    texts = [_is_text(column) for column in cells]
    lines = []
    for row in (names, *zip(*cells, strict=True)):
        shown = [
            cell.ljust(width) if text else cell.rjust(width)
            for cell, width, text in zip(row, widths, texts, strict=True)
        ]
        lines.append("  ".join(shown).rstrip())
    return "\n".join(lines) + "\n"


def _terminal(names: list[str], cells: list[list[str]]) -> str:
    """A table that fits the terminal; only the last column, the name, gives way."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    width = shutil.get_terminal_size((120, 40)).columns
    others = sum(
        max(len(name), *map(len, column), 0) + 2 for name, column in zip(names[:-1], cells[:-1], strict=True)
    )
    room = max(width - others - 4, _NARROWEST_NAME)
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    for name, column in zip(names, cells, strict=True):
        table.add_column(name, justify="left" if _is_text(column) else "right", no_wrap=True)
    for row in zip(*cells, strict=True):
        table.add_row(*(Text(cut_middle(cell, room)) for cell in row))
    buffer = io.StringIO()
    # Wide enough for every column: a row that the terminal wraps is better than one with a column missing.
    Console(file=buffer, width=max(width, others + room + 4), no_color=True).print(table)
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines()) + "\n"


def reads_terminal(output: str | None) -> bool:
    """True where the result goes to a terminal."""
    return output in (None, "-") and sys.stdout.isatty()
