"""Exports that somebody altered, cut or damaged: the same answer, a named degradation, or one error."""

from __future__ import annotations

import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fixtures.generations import build_generation
from nsysmodel import open_run
from nsysmodel.errors import NsysModelError
from nsysmodel.export.inspection import inspection
from nsysmodel.export.joins import nvtx_of
from nsysmodel.export.run import Run
from nsysmodel.export.source import Kind, Rows
from nsysmodel.export.sqlite_source import SqliteSource
from nsysmodel.export.summary import kernel_summary, memory_summary

BASES = ("v3.16.1", "node-level", "gen1-2020")
EVENTS = (
    "CUPTI_",
    "NVTX_",
    "TARGET_INFO_GPU",
    "TARGET_INFO_CUDA_GPU",
    "DIAGNOSTIC",
    "CUDA_GRAPH",
    "StringIds",
)
RECORDED = (
    *(f"CUPTI_ACTIVITY_KIND_{kind}" for kind in ("KERNEL", "MEMCPY", "MEMSET", "RUNTIME")),
    "DIAGNOSTIC_EVENT",
)
MAY_BE_ABSENT = (
    "NVTX_EVENTS",
    "PROFILER_OVERHEAD",
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
    "CUDA_GRAPH",
    "TARGET_INFO",
    "META_DATA",
)


@dataclass(frozen=True)
class Base:
    """An export, every answer that it gives, and which columns were read for them."""

    path: Path
    answers: dict[str, Any]
    columns: list[tuple[str, str]]

    @property
    def tables(self) -> list[str]:
        return list(dict.fromkeys(table for table, _ in self.columns))


def everything(run: Run) -> dict[str, Any]:
    """Every answer that the reading layer gives, as plain values."""
    found = inspection(run)
    ranges = nvtx_of(run)
    found["kernels"] = kernel_summary(run).to_dict("list")
    found["ranges"] = ranges.astype(object).where(ranges.notna(), None).tolist()
    found["memory"] = memory_summary(run).to_dict("list")
    return found


@pytest.fixture(scope="module", params=BASES)
def base(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Base:
    path = build_generation(request.param, tmp_path_factory.mktemp("base") / "trace.sqlite")
    seen: dict[tuple[str, str], None] = {}
    real = SqliteSource.read

    def read(self: SqliteSource, table: str, want: Mapping[str, Kind]) -> Rows:
        rows = real(self, table, want)
        seen.update(dict.fromkeys((table, column) for column in rows))
        return rows

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SqliteSource, "read", read)
        with open_run(path) as run:
            answers = everything(run)
    return Base(path, answers, list(seen))


@contextmanager
def altered(base: Base, sql: str, tmp_path: Path) -> Iterator[Run]:
    path = tmp_path / "altered.sqlite"
    shutil.copy(base.path, path)
    db = sqlite3.connect(path, isolation_level=None)
    db.executescript(f"PRAGMA synchronous=OFF; PRAGMA journal_mode=OFF; {sql}")
    db.close()
    with open_run(path) as run:
        yield run


def rewritten(base: Base, table: str, change: Callable[[str], str | None]) -> str:
    """SQL that makes a table again with each column changed; None leaves a column out."""
    db = sqlite3.connect(base.path)
    names = [row[1] for row in db.execute(f'PRAGMA table_info("{table}")')]
    db.close()
    parts = ", ".join(part for name in names if (part := change(name)) is not None)
    made = f'CREATE TABLE made AS SELECT {parts} FROM "{table}"'
    return f'{made}; DROP TABLE "{table}"; ALTER TABLE made RENAME TO "{table}"'


def measured(values: dict[str, Any]) -> dict[str, Any]:
    """What was measured, without what is said about it."""
    export = {name: value for name, value in values["export"].items() if name not in ("file", "synthetic")}
    return {**values, "export": export, "findings": None, "tables": None}


def codes(values: dict[str, Any]) -> set[str]:
    return {found["code"] for found in values["findings"]}


def same_or_said(found: dict[str, Any], expected: dict[str, Any]) -> bool:
    """The same measurements, or a finding that was not there before."""
    return measured(found) == measured(expected) or bool(codes(found) - codes(expected))


def kernel_count(values: dict[str, Any]) -> int:
    return sum(values["kernels"]["instances"])


def test_any_table_may_be_missing(base: Base, tmp_path: Path) -> None:
    for table in base.tables:
        with altered(base, f'DROP TABLE "{table}"', tmp_path) as run:
            found = everything(run)
        if table in RECORDED:
            assert found["export"]["completeness"] != "complete", table
        elif table.startswith(MAY_BE_ABSENT):
            # Not there is not wrong: nsys leaves out what has no rows. The kernels are the same.
            assert found["kernels"] == base.answers["kernels"], table
        else:
            assert same_or_said(found, base.answers), table


def test_any_column_may_be_missing(base: Base, tmp_path: Path) -> None:
    for table, column in base.columns:
        if not table.startswith(EVENTS):
            continue
        sql = rewritten(base, table, lambda name, gone=column: None if name == gone else f'"{name}"')
        with altered(base, sql, tmp_path) as run:
            found = everything(run)
        place = f"{table}.{column}"
        if table == "CUPTI_ACTIVITY_KIND_KERNEL" and column in ("start", "end"):
            assert kernel_count(found) == 0
            assert {"column_absent", "rows_dropped"} <= codes(found), place
            continue
        assert kernel_count(found) == kernel_count(base.answers), place
        if table.startswith(("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME", "StringIds")):
            assert same_or_said(found, base.answers), place


def test_any_column_may_be_null(base: Base, tmp_path: Path) -> None:
    for table, column in base.columns:
        if not table.startswith(EVENTS):
            continue
        half = f'CASE WHEN rowid % 2 THEN "{column}" END AS "{column}"'
        sql = rewritten(
            base, table, lambda name, gone=column, half=half: half if name == gone else f'"{name}"'
        )
        with altered(base, sql, tmp_path) as run:
            found = everything(run)
        if table == "CUPTI_ACTIVITY_KIND_KERNEL" and column in ("start", "end"):
            assert "rows_dropped" in codes(found)
        else:
            assert kernel_count(found) == kernel_count(base.answers), f"{table}.{column}"


def truncations(data: bytes, draw: random.Random) -> Iterator[bytes]:
    for _ in range(200):
        yield data[: draw.randrange(len(data))]


def flips(data: bytes, draw: random.Random) -> Iterator[bytes]:
    """Half of them in the first bytes of a page, where the b-tree's own numbers are."""
    for index in range(500):
        at = draw.randrange(len(data))
        if index % 2:
            at = min(at // 4096 * 4096 + draw.randrange(64), len(data) - 1)
        changed = bytearray(data)
        changed[at] ^= 1 << draw.randrange(8)
        yield bytes(changed)


@pytest.fixture(scope="module")
def real_shaped(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The database behind `truncated`, whole: four hundred launches over many pages."""
    from fixtures.registry import launch, plain, start

    path = tmp_path_factory.mktemp("shaped") / "trace.sqlite"
    writer = start(path)
    plain(writer)
    for index in range(400):
        launch(writer, 2_000_000 + index * 20_000, 4_096)
    writer.finish()
    db = sqlite3.connect(path)
    for (table,) in db.execute("SELECT name FROM sqlite_master WHERE name LIKE 'ENUM_%'").fetchall():
        db.execute(f"DROP TABLE {table}")
    db.execute("VACUUM")
    db.close()
    return path.read_bytes()


@pytest.mark.parametrize("damage", [truncations, flips])
def test_damage_gives_an_answer_or_an_error(
    damage: Callable[[bytes, random.Random], Iterator[bytes]], real_shaped: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "damaged.sqlite"
    said = {"file_cut_off", "table_damaged"}
    answers = errors = 0
    for data in damage(real_shaped, random.Random(20)):
        path.write_bytes(data)
        try:
            found = answer(path)
        except NsysModelError:
            errors += 1
            continue
        answers += 1
        if damage is truncations:
            assert found & said
        if "file_cut_off" in found:
            assert "complete" not in found
    assert errors > 20
    assert damage is truncations or answers > 20


def answer(path: Path) -> set[str]:
    """Completeness and the codes of all findings."""
    with open_run(path) as run:
        facts = run.facts
        kernel_summary(run)
        return {facts.completeness, *(found.code for found in run.diagnostics)}


def test_a_tree_of_repeated_pages_does_not_hang(real_shaped: bytes, tmp_path: Path) -> None:
    """Inner pages in a row, each with every child pointer at the next: more rows than anyone can read."""
    page, depth = 4096, 12
    root = kernel_root(real_shaped, tmp_path) - 1
    data = bytearray(real_shaped)
    inner = bytes(data[root * page : (root + 1) * page])
    assert inner[0] == 5
    leaf = int.from_bytes(inner[8:12], "big")
    count = len(data) // page
    data[root * page : (root + 1) * page] = pointing_at(inner, count + 1)
    for level in range(depth):
        data += pointing_at(inner, count + level + 2 if level < depth - 1 else leaf)
    data[28:32] = (len(data) // page).to_bytes(4, "big")
    path = tmp_path / "loop.sqlite"
    path.write_bytes(data)
    with open_run(path) as run:
        assert "table_damaged" in {found.code for found in run.diagnostics}
        assert run.facts.completeness == "unknown"
        assert len(run.kernels()) == 0


def kernel_root(data: bytes, tmp_path: Path) -> int:
    path = tmp_path / "whole.sqlite"
    path.write_bytes(data)
    db = sqlite3.connect(path)
    sql = "SELECT rootpage FROM sqlite_master WHERE name = 'CUPTI_ACTIVITY_KIND_KERNEL'"
    number: int = db.execute(sql).fetchone()[0]
    db.close()
    return number


def pointing_at(inner: bytes, child: int) -> bytes:
    """An inner page with each of its child pointers replaced."""
    changed = bytearray(inner)
    changed[8:12] = child.to_bytes(4, "big")
    for cell in range(int.from_bytes(inner[3:5], "big")):
        at = int.from_bytes(inner[12 + 2 * cell : 14 + 2 * cell], "big")
        changed[at : at + 4] = child.to_bytes(4, "big")
    return bytes(changed)
