"""Tables as values: what a cell shows, what it sorts by, how long its bar is. HTML and Markdown print it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from nsysmodel.report.columns import MISSING, TIME, Unit, unit_for
from nsysmodel.report.text import clean, cut, kernel_name

NAME_WIDTH = 84


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell. `sort` is its number; `bar` from 0 to 1 fills it; `mark` is a colour and sign before it.

    `link` is the id of a part of the page.
    """

    text: str
    sort: float | None = None
    bar: float | None = None
    style: str = ""
    title: str = ""
    mark: str = ""
    copy: bool = False
    link: str = ""


@dataclass(frozen=True, slots=True)
class Column:
    """One column. `wide` columns hold text and stand on the left; `minor` ones go first on narrow screens."""

    name: str
    unit: str = ""
    wide: bool = False
    minor: bool = False
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """A table with its caption. `left_out` says what a limit cut."""

    ident: str
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    left_out: str = ""
    sorted_by: int | None = None
    searchable: bool = False
    foot: tuple[Cell, ...] = field(default=())


def text(value: object, *, width: int = NAME_WIDTH, style: str = "") -> Cell:
    """A cell of words."""
    return Cell(clean(value, width), style=style)


def code(value: str, *, width: int = NAME_WIDTH, mark: str = "") -> Cell:
    """A cell with a name; what the width cuts stands in the title, up to a limit."""
    whole = clean(value)
    shown = cut(whole, width)
    return Cell(shown, style="code", title=whole if shown != whole else "", mark=mark)


def kernel(name: str, *, width: int) -> Cell:
    """A cell with a kernel's name, shortened to what tells it apart; the title has more of it."""
    shown, whole = kernel_name(name, width), clean(name)
    return Cell(shown, style="code", title=whole if shown != whole else "")


def snippet(value: str) -> Cell:
    """A cell with text to copy, whole."""
    return Cell(clean(value), style="code", copy=True)


def numbers(values: Sequence[float | None], unit: Unit, *, bars: bool = False) -> list[Cell]:
    """Cells of one column in one unit, with bars relative to the largest of them."""
    largest = max((value for value in values if value is not None), default=0.0)
    return [
        Cell(
            unit.text(value),
            sort=value,
            bar=round(max(value, 0.0) / largest, 3) if bars and value is not None and largest > 0 else None,
        )
        for value in values
    ]


def times(values: Sequence[float | None], *, bars: bool = False) -> tuple[str, list[Cell]]:
    """A column of times in ns: its unit and its cells."""
    unit = unit_for(values, TIME)
    return unit.name, numbers(values, unit, bars=bars)


def plain(value: float | None, shown: str | None = None) -> Cell:
    """A cell with a number that has its own text."""
    if value is None:
        return Cell(MISSING)
    return Cell(f"{value:,}" if shown is None else shown, sort=value)


def without_empty(table: Table) -> Table:
    """`table` without the columns in which no row says anything."""
    keep = [
        k for k in range(len(table.columns)) if any(row[k].text not in ("", MISSING) for row in table.rows)
    ]
    shift = {k: place for place, k in enumerate(keep)}
    return replace(
        table,
        columns=tuple(table.columns[k] for k in keep),
        rows=tuple(tuple(row[k] for k in keep) for row in table.rows),
        sorted_by=shift.get(table.sorted_by) if table.sorted_by is not None else None,
    )


def limited(ident: str, caption: str, columns: Sequence[Column], rows: Iterable[Sequence[Cell]], limit: int,
            what: str, *, searchable: bool = False, sorted_by: int | None = None) -> Table:  # fmt: skip
    """A table of at most `limit` rows that says so."""
    every = [tuple(row) for row in rows]
    left_out = ""
    if len(every) > limit:
        left_out = f"Showing {limit:,} of {len(every):,} {what}; the JSON holds all of them."
        every = every[:limit]
    return Table(
        ident, caption, tuple(columns), tuple(every), left_out, sorted_by, searchable and len(every) > 12
    )
