"""Small tables on the command line: one list of rows, printed for people, as JSON or as CSV.

People get units and three digits; JSON and CSV get the base units and every digit.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Column:
    """A column: the key in a row, its header for people, and how its values read."""

    key: str
    header: str
    show: Callable[[Any], str] = str
    right: bool = True


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer in all of its forms; JSON and CSV hold base units."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[dict[str, Any], ...]
    notes: tuple[str, ...]
    document: dict[str, Any]

    def text(self, kind: str) -> str:
        """The answer as `table`, `json` or `csv`."""
        if kind == "json":
            return as_json(self.document)
        if kind == "csv":
            return as_csv(self.columns, self.rows)
        return as_table(self.columns, self.rows, title=self.title, foot="\n".join(self.notes))


def as_table(columns: Sequence[Column], rows: Sequence[Row], *, title: str = "", foot: str = "") -> str:
    """Aligned text; columns in which no row has a value are left out.

    >>> print(as_table([Column("n", "N")], [{"n": 5}, {"n": 10}]), end="")
     N
     5
    10
    """
    used = [column for column in columns if any(row.get(column.key) is not None for row in rows)]
    cells = [[_cell(column, row.get(column.key)) for column in used] for row in rows]
    widths = [
        max(len(column.header), *(len(line[place]) for line in cells)) if cells else len(column.header)
        for place, column in enumerate(used)
    ]
    lines = [_line([column.header for column in used], used, widths)]
    lines += [_line(line, used, widths) for line in cells]
    return "\n".join([*([title, ""] if title else []), *lines, *(["", foot] if foot else [])]) + "\n"


def as_csv(columns: Sequence[Column], rows: Sequence[Row]) -> str:
    """CSV with the keys as header."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow([column.key for column in columns])
    for row in rows:
        writer.writerow(["" if row.get(column.key) is None else row[column.key] for column in columns])
    return stream.getvalue()


def as_json(document: Any) -> str:
    """JSON; a number that is not finite becomes null."""
    return json.dumps(_finite(document), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _cell(column: Column, value: Any) -> str:
    return "–" if value is None else column.show(value)


def _line(cells: Sequence[str], columns: Sequence[Column], widths: Sequence[int]) -> str:
    aligned = [
        cell.rjust(width) if column.right else cell.ljust(width)
        for cell, column, width in zip(cells, columns, widths, strict=True)
    ]
    return "  ".join(aligned).rstrip()


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return value
