"""How a table's rows are stored, as SQLite itself tells."""

from __future__ import annotations

import sqlite3

from nsysmodel.export.pages.database import DeclinedError
from nsysmodel.export.pages.shapes import Layout

_ROWIDS = ("_rowid_", "rowid", "oid")


def layout(connection: sqlite3.Connection, table: str) -> Layout:
    """The layout of a table.

    Args:
        connection: of the same file.
        table: name as the file spells it.

    Raises:
        DeclinedError: it is a view or a virtual table, or its columns are not stored as declared.
        sqlite3.Error: SQLite cannot tell.
    """
    quoted = '"' + table.replace('"', '""') + '"'
    roots = connection.execute(
        "SELECT rootpage FROM sqlite_master WHERE type = 'table' AND name = ?", (table,)
    ).fetchall()
    if len(roots) != 1 or not isinstance(roots[0][0], int) or roots[0][0] <= 1:
        raise DeclinedError("it is no table with pages of its own")
    declared = connection.execute(f"PRAGMA table_xinfo({quoted})").fetchall()
    if any(hidden for *_, hidden in declared):
        raise DeclinedError("it has generated or hidden columns")
    columns = {str(name).lower(): int(place) for place, name, *_ in declared}
    if sorted(columns.values()) != list(range(len(declared))):
        raise DeclinedError("two columns have one name")
    first, last = _rowids(connection, quoted, columns)
    return Layout(
        root=roots[0][0],
        columns=columns,
        rowid_alias=_alias(connection, quoted, declared),
        filled=frozenset(int(row[0]) for row in declared if row[4] is not None),
        first=first,
        last=last,
    )


def _alias(
    connection: sqlite3.Connection, quoted: str, declared: list[tuple[int, str, str, int, object, int, int]]
) -> int | None:
    """The column that is the rowid: the only key, declared INTEGER, and without an index of its own."""
    keys = [row for row in declared if row[5]]
    if len(keys) != 1 or str(keys[0][2]).upper() != "INTEGER":
        return None
    indexes = connection.execute(f"PRAGMA index_list({quoted})").fetchall()
    return None if any(row[3] == "pk" for row in indexes) else int(keys[0][0])


def _rowids(
    connection: sqlite3.Connection, quoted: str, columns: dict[str, int]
) -> tuple[int | None, int | None]:
    name = next((name for name in _ROWIDS if name not in columns), None)
    if name is None:
        raise DeclinedError("every name of the rowid is taken by a column")
    # Two statements: SQLite looks up the least or the greatest, but reads all rows for both at once.
    try:
        first, last = (
            connection.execute(f"SELECT {which}({name}) FROM {quoted}").fetchone()[0]
            for which in ("min", "max")
        )
    except sqlite3.OperationalError as error:
        raise DeclinedError("it has no rowids") from error
    return first, last
