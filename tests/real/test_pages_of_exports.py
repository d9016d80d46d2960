"""Every table of every real export: the page reader gives what SQLite gives."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from nsysmodel.export import pages
from nsysmodel.export.source import Kind
from tests.unit.test_pages import by_pages, by_sqlite, same, tables_of

TRACES = Path(__file__).parents[3] / "shared" / "traces"
FILES = sorted(TRACES.glob("*.sqlite")) if TRACES.is_dir() else []

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(not FILES, reason="the real exports are not part of the repository"),
]
KINDS: dict[str, Kind] = {"INTEGER": "int", "INT": "int", "TEXT": "text", "REAL": "real"}


def declared(path: Path, table: str) -> dict[str, Kind]:
    db = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
    db.text_factory = bytes
    rows = db.execute(f'PRAGMA table_info("{table}")').fetchall()
    db.close()
    return {
        row[1].decode(): KINDS[row[2].decode().upper()] for row in rows if row[2].decode().upper() in KINDS
    }


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_table(path: Path) -> None:
    whole: set[str] = set()
    for table in tables_of(path):
        columns = declared(path, table)
        expected = by_sqlite(path, columns, table)
        try:
            assert same(by_pages(path, columns, table), expected), table
            whole.add(table)
            continue
        except pages.DeclinedError:
            pass
        for name, kind in columns.items():
            try:
                assert same(by_pages(path, {name: kind}, table), {name: expected[name]}), (table, name)
            except pages.DeclinedError as error:
                # Long texts lie on overflow pages; integers that are stored as text are converted.
                assert kind == "text" or "something else" in str(error), (table, name)  # noqa: PT017
    events = {table for table in tables_of(path) if table.startswith("CUPTI_ACTIVITY_KIND_")}
    assert whole >= events
