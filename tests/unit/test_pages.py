"""The page reader against SQLite: the same values, or a refusal with a reason."""

from __future__ import annotations

import logging
import random
import shutil
import sqlite3
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fixtures.generations import build_generation
from nsysmodel.export import pages
from nsysmodel.export.pages import table as table_module
from nsysmodel.export.pages.tree import leaves
from nsysmodel.export.source import NULL, Kind, Rows
from nsysmodel.export.sqlite_source import SqliteSource

BUNDLED = Path(__file__).parents[2] / "fixtures" / "qwen3-30b-decode-gh200.sqlite"
KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"


def write(path: Path, *statements: str, rows: Sequence[Sequence[Any]] = (), page_size: int = 512) -> Path:
    """A database from statements; `rows` go into its table `t`."""
    path.unlink(missing_ok=True)
    db = sqlite3.connect(path, isolation_level=None)
    db.execute(f"PRAGMA page_size={page_size}")
    db.execute("PRAGMA journal_mode=OFF")
    db.execute("BEGIN")
    for statement in statements:
        db.execute(statement)
    if rows:
        db.executemany(f"INSERT INTO t VALUES ({', '.join('?' * len(rows[0]))})", rows)
    db.execute("COMMIT")
    db.close()
    return path


def by_pages(path: Path, want: dict[str, Kind], table: str = "t") -> Rows:
    db = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
    database = pages.Database(path)
    try:
        return pages.read(database, pages.layout(db, table), want)
    finally:
        database.close()
        db.close()


def by_sqlite(path: Path, want: dict[str, Kind], table: str = "t") -> Rows:
    """What SQLite itself reads and converts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SqliteSource, "_decoded", lambda *_: None)
        source = SqliteSource(path, path.name)
        try:
            return source.read(table, want)
        finally:
            source.close()


def same(left: Rows, right: Rows) -> bool:
    return list(left) == list(right) and all(
        np.array_equal(left[name], right[name], equal_nan=left[name].dtype == np.float64) for name in left
    )


def agreed(path: Path, table: str) -> tuple[int, int]:
    """Compares every column of a table as every kind; returns how many were read and how many refused."""
    db = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
    db.text_factory = bytes
    names = [row[1].decode() for row in db.execute(f'PRAGMA table_info("{table}")')]
    db.close()
    done = refused = 0
    kinds: tuple[Kind, ...] = ("int", "text", "real")
    for name in names:
        for kind in kinds:
            try:
                found = by_pages(path, {name: kind}, table)
            except pages.DeclinedError:
                refused += 1
                continue
            assert same(found, by_sqlite(path, {name: kind}, table)), (table, name, kind)
            done += 1
    return done, refused


def tables_of(path: Path) -> list[str]:
    db = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
    names = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    db.close()
    return names


@pytest.mark.parametrize("generation", ["gen1-2020", "v3.16.1", "node-level"])
def test_every_table_of_the_fixtures_is_as_sqlite_reads_it(generation: str, tmp_path: Path) -> None:
    path = build_generation(generation, tmp_path / "trace.sqlite")
    for table in tables_of(path):
        done, refused = agreed(path, table)
        # A column is of one kind: at most two of the three kinds can be refused.
        assert refused <= 2 * (done + refused) / 3, table


def test_the_bundled_export_is_read_by_pages_alone() -> None:
    for table in tables_of(BUNDLED):
        db = sqlite3.connect(BUNDLED)
        names = [row[1] for row in db.execute(f'PRAGMA table_info("{table}")') if row[2] == "INTEGER"]
        db.close()
        want: dict[str, Kind] = dict.fromkeys(names, "int")
        if want:
            assert same(by_pages(BUNDLED, want, table), by_sqlite(BUNDLED, want, table)), table


EDGES = (0, 1, -1, 127, 128, -128, -129, 2**15, -(2**15) - 1, 2**23, -(2**23) - 1, 2**31, -(2**31) - 1)
EDGES += (2**47, -(2**47) - 1, 2**47 - 1, 2**63 - 1, -(2**63) + 1)


@pytest.mark.parametrize("page_size", [512, 4096, 65536])
def test_integers_of_every_size(page_size: int, tmp_path: Path) -> None:
    rows = [(i, value, None if i % 3 else value) for i, value in enumerate(EDGES * 40)]
    path = write(tmp_path / "t.db", "CREATE TABLE t (a, b, c)", rows=rows, page_size=page_size)
    found = by_pages(path, {"c": "int", "B": "int"})
    assert found["B"].tolist() == [row[1] for row in rows]
    assert found["c"].tolist() == [NULL if row[2] is None else row[2] for row in rows]


VALUES = st.one_of(
    st.none(),
    st.integers(-(2**63) + 1, 2**63 - 1),
    st.sampled_from(EDGES),
    st.floats(allow_nan=False),
    st.text(max_size=40),
    st.binary(max_size=40),
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(st.tuples(VALUES, st.integers(-(2**63) + 1, 2**63 - 1), st.text(max_size=9)), max_size=60)
)
def test_any_values_are_those_of_sqlite_or_refused(rows: list[tuple[Any, ...]], tmp_path: Path) -> None:
    path = write(tmp_path / "t.db", "CREATE TABLE t (a, b INTEGER, c TEXT)", rows=rows)
    agreed(path, "t")
    want: dict[str, Kind] = {"b": "int", "c": "text"}
    try:
        assert same(by_pages(path, want), by_sqlite(path, want))
    except pages.DeclinedError as error:
        # Only a record of which a wanted part lies elsewhere may stop it.
        assert "overflow" in str(error)  # noqa: PT017


def test_rowids_gaps_and_deleted_rows(tmp_path: Path) -> None:
    rows = [(i, i % 1001) for i in [-(2**62), -5, *range(0, 4000, 2), 2**40, 2**62]]
    path = write(tmp_path / "t.db", "CREATE TABLE t (id INTEGER PRIMARY KEY, x INT)", rows=rows)
    db = sqlite3.connect(path)
    db.execute("DELETE FROM t WHERE x % 3 = 1")
    db.commit()
    db.close()
    found = by_pages(path, {"id": "int", "x": "int"})
    assert same(found, by_sqlite(path, {"id": "int", "x": "int"}))
    assert len(found["id"]) == sum(1 for _, x in rows if x % 3 != 1)


def test_rows_written_before_a_column_was_added(tmp_path: Path) -> None:
    db = sqlite3.connect(write(tmp_path / "t.db", "CREATE TABLE t (a)", rows=[(i,) for i in range(300)]))
    db.execute("ALTER TABLE t ADD COLUMN b INTEGER")
    db.execute("INSERT INTO t VALUES (7, 8)")
    db.commit()
    assert by_pages(tmp_path / "t.db", {"b": "int"})["b"].tolist() == [NULL] * 300 + [8]
    db.execute("ALTER TABLE t ADD COLUMN c INTEGER DEFAULT 5")
    db.commit()
    db.close()
    with pytest.raises(pages.DeclinedError, match="default"):
        by_pages(tmp_path / "t.db", {"c": "int"})


def test_reals_stored_as_integers(tmp_path: Path) -> None:
    values = [(1.5,), (3.0,), (None,), (-0.25,), (1e300,), (0.0,), (float(2**52),)]
    path = write(tmp_path / "t.db", "CREATE TABLE t (x REAL)", rows=values)
    assert same(by_pages(path, {"x": "real"}), by_sqlite(path, {"x": "real"}))


def test_texts_that_are_not_utf8_and_blobs(tmp_path: Path) -> None:
    path = write(tmp_path / "t.db", "CREATE TABLE t (x TEXT)", rows=[("a",), (b"\xff\x00b",), (None,), ("",)])
    db = sqlite3.connect(path)
    db.execute("INSERT INTO t VALUES (CAST(x'c328' AS TEXT))")
    db.commit()
    db.close()
    found = by_pages(path, {"x": "text"})
    assert same(found, by_sqlite(path, {"x": "text"}))
    assert found["x"].tolist() == ["a", "\ufffd\x00b", None, "", "\ufffd("]


def test_columns_before_a_long_text_are_read_and_the_text_is_not(tmp_path: Path) -> None:
    rows = [(i, "x" * (i * 37), i) for i in range(60)]
    path = write(tmp_path / "t.db", "CREATE TABLE t (a, b, c)", rows=rows)
    assert by_pages(path, {"a": "int"})["a"].tolist() == list(range(60))
    want: dict[str, Kind]
    for want in ({"b": "text"}, {"c": "int"}):
        with pytest.raises(pages.DeclinedError, match="overflow"):
            by_pages(path, want)


@pytest.mark.parametrize(
    ("statements", "reason"),
    [
        (["CREATE TABLE t (a INTEGER PRIMARY KEY, b) WITHOUT ROWID"], "no rowids"),
        (["CREATE TABLE s (a, b)", "CREATE VIEW t AS SELECT a, b FROM s"], "no table"),
        (["CREATE TABLE t (a, b, c AS (a + b))"], "generated"),
        (["CREATE TABLE t (a, b, c AS (a + b) STORED)"], "generated"),
        (["CREATE TABLE t (rowid, oid, _rowid_)"], "name of the rowid"),
        (["PRAGMA encoding='UTF-16'", "CREATE TABLE t (a, b)"], "UTF-8"),
        (["CREATE TABLE t (a, b)", "INSERT INTO t VALUES ('1', 2)"], "something else"),
        (["CREATE TABLE t (a, b)", "INSERT INTO t VALUES (1.0, 2)"], "something else"),
    ],
)
def test_what_it_does_not_understand_it_refuses(statements: list[str], reason: str, tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    db = sqlite3.connect(path, isolation_level=None)
    for statement in statements:
        db.execute(statement)
    db.close()
    first = "rowid" if "(rowid" in statements[-1] else "a"
    with pytest.raises(pages.DeclinedError, match=reason):
        by_pages(path, {first: "int"})


def test_a_key_that_is_not_the_rowid(tmp_path: Path) -> None:
    """DESC makes a key of its own, a quirk that SQLite keeps."""
    for key in ("INTEGER PRIMARY KEY DESC", "INT PRIMARY KEY", "integer primary key"):
        path = write(tmp_path / "t.db", f"CREATE TABLE t (a {key}, b)", rows=[(30, 1), (10, 2), (None, 3)])
        # Both columns, or SQLite would read the key from its index and in its order.
        want: dict[str, Kind] = {"a": "int", "b": "int"}
        assert same(by_pages(path, want), by_sqlite(path, want)), key


@pytest.mark.parametrize("suffix", ["-wal", "-journal"])
def test_unfinished_changes_beside_the_file_are_refused(suffix: str, tmp_path: Path) -> None:
    path = write(tmp_path / "t.db", "CREATE TABLE t (a)", rows=[(1,)])
    side = tmp_path / f"t.db{suffix}"
    side.touch()
    assert by_pages(path, {"a": "int"})["a"].tolist() == [1]
    side.write_bytes(b"x")
    with pytest.raises(pages.DeclinedError, match=suffix):
        by_pages(path, {"a": "int"})


@pytest.mark.parametrize(
    ("at", "value", "reason"),
    [
        (0, b"X", "header"),
        (16, b"\x00\x07", "pages have"),
        (18, b"\x03", "file format"),
        (20, b"\xff", "bytes of a page"),
        (21, b"\x00", "file format"),
        (44, b"\x00\x00\x00\x09", "schema format"),
        (56, b"\x00\x00\x00\x02", "UTF-8"),
    ],
)
def test_an_unknown_header_is_refused(at: int, value: bytes, reason: str, tmp_path: Path) -> None:
    path = write(tmp_path / "t.db", "CREATE TABLE t (a)", rows=[(1,)])
    data = bytearray(path.read_bytes())
    data[at : at + len(value)] = value
    path.write_bytes(data)
    with pytest.raises(pages.DeclinedError, match=reason):
        pages.Database(path)


def damaged(path: Path, change: Callable[[bytearray, int, pages.Database], None]) -> Path:
    """A copy of the bundled export of which `change` alters the root page of the kernel table."""
    target = path / "damaged.sqlite"
    shutil.copy(BUNDLED, target)
    db = sqlite3.connect(target)
    root = pages.layout(db, KERNELS).root
    db.close()
    database = pages.Database(target)
    database.close()
    data = bytearray(target.read_bytes())
    change(data, (root - 1) * database.page_size, database)
    target.write_bytes(data)
    return target


def _own_child(data: bytearray, at: int, database: pages.Database) -> None:
    struct.pack_into(">I", data, at + 8, at // database.page_size + 1)


def _twice(data: bytearray, at: int, database: pages.Database) -> None:
    first = struct.unpack_from(">H", data, at + 12)[0]
    data[at + 8 : at + 12] = data[at + first : at + first + 4]


def _outside(data: bytearray, at: int, database: pages.Database) -> None:
    struct.pack_into(">I", data, at + 8, 2**31)


def _no_kind(data: bytearray, at: int, database: pages.Database) -> None:
    data[at] = 0x0A


def _many_cells(data: bytearray, at: int, database: pages.Database) -> None:
    struct.pack_into(">H", data, at + 3, 0xFFFF)


def _one_lost(data: bytearray, at: int, database: pages.Database) -> None:
    """The last page of rows is no longer pointed at, and SQLite would end one page earlier too."""
    count = struct.unpack_from(">H", data, at + 3)[0]
    last = struct.unpack_from(">H", data, at + 12 + 2 * (count - 1))[0]
    data[at + last : at + last + 4] = data[at + 8 : at + 12]


@pytest.mark.parametrize("change", [_own_child, _twice, _outside, _no_kind, _many_cells, _one_lost])
def test_a_damaged_tree_is_refused(
    change: Callable[[bytearray, int, pages.Database], None], tmp_path: Path
) -> None:
    path = damaged(tmp_path, change)
    with pytest.raises((pages.DeclinedError, sqlite3.DatabaseError)):
        by_pages(path, {"start": "int"}, KERNELS)


@pytest.mark.parametrize("seed", range(4))
def test_altered_bytes_give_the_values_of_sqlite_or_a_refusal(seed: int, tmp_path: Path) -> None:
    """Some hundred damages of the table's own pages: never another error, never a loop."""
    rng = random.Random(seed)
    path = tmp_path / "fuzzed.sqlite"
    raw = BUNDLED.read_bytes()
    db = sqlite3.connect(BUNDLED)
    layout = pages.layout(db, KERNELS)
    db.close()
    database = pages.Database(BUNDLED)
    numbers = [layout.root, *leaves(database, layout.root).tolist()]
    database.close()
    want: dict[str, Kind] = {"start": "int", "demangledName": "int", "graphNodeId": "int"}
    refused = 0
    for _ in range(80):
        data = bytearray(raw)
        for _ in range(rng.choice([1, 1, 3, 30])):
            page = (rng.choice(numbers) - 1) * database.page_size
            near = rng.choice([12, 100, database.page_size])
            data[page + rng.randrange(near)] = rng.choice([0, 1, 5, 13, 127, 128, 255, rng.randrange(256)])
        path.write_bytes(data)
        fuzzed = pages.Database(path)
        try:
            found = pages.read(fuzzed, layout, want)
        except pages.DeclinedError:
            refused += 1
            continue
        finally:
            fuzzed.close()
        assert same(found, by_sqlite(path, want, KERNELS))
    assert refused


def test_a_file_that_is_cut_off_while_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "cut.sqlite"
    shutil.copy(BUNDLED, path)
    db = sqlite3.connect(path)
    layout = pages.layout(db, KERNELS)
    db.close()
    database = pages.Database(path)
    with path.open("r+b") as stream:
        stream.truncate(path.stat().st_size // 8)
    with pytest.raises(pages.DeclinedError):
        pages.read(database, layout, {"start": "int"})
    database.close()


def test_blocks_and_threads_do_not_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "trace.sqlite"
    shutil.copy(BUNDLED, path)
    want: dict[str, Kind] = {"start": "int", "gridX": "int", "graphNodeId": "int"}
    whole = by_pages(path, want, KERNELS)
    told: list[tuple[int, int]] = []
    monkeypatch.setattr(table_module, "_BLOCK_BYTES", 4096)
    monkeypatch.setattr(table_module, "_processors", lambda: 4)
    db = sqlite3.connect(path)
    layout = pages.layout(db, KERNELS)
    db.close()
    database = pages.Database(path)
    parts = pages.read(database, layout, want, lambda done, total: told.append((done, total)))
    assert pages.count(database, layout) == len(whole["start"])
    database.close()
    assert same(parts, whole)
    assert [done for done, _ in told] == list(range(1, told[0][1] + 1))


def test_a_system_that_cannot_read_at_a_place(monkeypatch: pytest.MonkeyPatch) -> None:
    want: dict[str, Kind] = {"start": "int", "gridX": "int"}
    whole = by_pages(BUNDLED, want, KERNELS)
    monkeypatch.delattr("os.preadv", raising=False)
    monkeypatch.setattr(table_module, "_BLOCK_BYTES", 4096)
    monkeypatch.setattr(table_module, "_processors", lambda: 4)
    assert same(by_pages(BUNDLED, want, KERNELS), whole)


def test_the_source_falls_back_and_says_why(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = write(tmp_path / "t.db", "CREATE TABLE t (a)", rows=[("12",), (3,)])
    source = SqliteSource(path, path.name)
    with caplog.at_level(logging.DEBUG, "nsysmodel"):
        assert source.read("t", {"a": "int"})["a"].tolist() == [12, 3]
    source.close()
    assert "SQLite reads t: a column of integers holds something else" in caplog.text


def test_the_source_reads_sound_tables_by_pages(caplog: pytest.LogCaptureFixture) -> None:
    source = SqliteSource(BUNDLED, BUNDLED.name)
    with caplog.at_level(logging.DEBUG, "nsysmodel"):
        rows = source.read(KERNELS, {"START": "int", "absent": "int"})
        assert source.count(KERNELS) == len(rows["START"]) > 7000
    source.close()
    assert list(rows) == ["START"]
    assert not caplog.text
