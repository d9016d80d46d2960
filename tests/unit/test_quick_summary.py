"""The summary without frames against that of the frame; numbering of rows; statistics against each group."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fixtures.generations import build_generation
from fixtures.registry import GENERATIONS
from nsysmodel import open_run, ordering
from nsysmodel.errors import ExportError
from nsysmodel.export.pages import UnlikeError, values
from nsysmodel.export.pages.met import Met
from nsysmodel.export.quick import quick_summary
from nsysmodel.export.source import NULL
from nsysmodel.export.sqlite_source import SqliteSource
from nsysmodel.export.summary import kernel_summary, statistics

BUNDLED = Path(__file__).parents[2] / "fixtures" / "qwen3-30b-decode-gh200.sqlite"
GROUPS = ("name", "short", "grid", "stream", "device")
_ROW = st.tuples(st.integers(0, 3), st.integers(0, 5))
KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"


def agreed(path: Path) -> int:
    """Compares both summaries to the last digit; returns how many were made without frames."""
    quick = 0
    for by in GROUPS:
        with open_run(path) as run:
            found = quick_summary(run, by)
        if found is None:
            continue
        quick += 1
        with open_run(path) as run:
            expected = kernel_summary(run, by, run.some_kernels(["duration_ns", *_needed(by)]))  # type: ignore[arg-type]
        assert list(found) == list(expected.columns)
        for name, values_ in found.items():
            assert values_.tolist() == expected[name].tolist(), (by, name)
    return quick


def _needed(by: str) -> tuple[str, ...]:
    from nsysmodel.export.summary import needed_columns

    return needed_columns(by)


@pytest.mark.parametrize("name", sorted(GENERATIONS))
def test_of_every_generation(name: str, tmp_path: Path) -> None:
    path = build_generation(name, tmp_path / "t.sqlite")
    try:
        agreed(path)
    except ExportError:
        assert name  # what no run opens, no summary reads


def test_the_bundled_export_needs_no_frames() -> None:
    assert agreed(BUNDLED) == len(GROUPS)


@pytest.mark.parametrize(
    ("change", "quick"),
    [
        ("demangledName = 77777777", 3),
        ("shortName = demangledName", 5),
        ("end = start - 1", 0),
        ("streamId = 4294967295", 5),
        ("deviceId = 2147483647", 5),
        ("globalPid = NULL", 3),
        ("start = 0, end = 0", 0),
        ("gridX = 0x7fffffff, gridY = -1", 5),
    ],
)
def test_of_altered_exports(change: str, quick: int, tmp_path: Path) -> None:
    """Equal totals, two ids of one text, missing values, odd times: the same table, or frames."""
    path = tmp_path / "t.sqlite"
    shutil.copy(BUNDLED, path)
    db = sqlite3.connect(path)
    names = [row for (row,) in db.execute(f"SELECT DISTINCT demangledName FROM {KERNELS}")]
    db.execute(f"UPDATE {KERNELS} SET end = start + 100 * (1 + gridX % 3)")
    db.execute("UPDATE StringIds SET value = 'twice' WHERE id IN (?, ?)", names[:2])
    db.execute(
        f"UPDATE {KERNELS} SET {change} WHERE rowid IN (SELECT rowid FROM {KERNELS} LIMIT 1 OFFSET 70)"
    )
    db.commit()
    db.close()
    assert agreed(path) == quick


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 10**10)), min_size=1, max_size=80), st.booleans())
def test_statistics_of_each_group(rows: list[tuple[int, int]], short: bool) -> None:
    _, group = np.unique([which for which, _ in rows], return_inverse=True)
    duration = np.array([length % 1000 if short else length for _, length in rows], dtype=np.int64)
    found = statistics(group.astype(np.uint16), duration, np.bincount(group))
    for which in range(int(group.max()) + 1):
        mine = pd.Series(duration[group == which])
        assert found["total_ns"][which] == mine.sum()
        assert found["instances"][which] == len(mine)
        assert found["med_ns"][which] == mine.median()
        assert (found["min_ns"][which], found["max_ns"][which]) == (mine.min(), mine.max())
        deviation = 0.0 if len(mine) == 1 else mine.std()
        assert found["stddev_ns"][which] == pytest.approx(deviation, rel=1e-9, abs=1e-6)


def test_deviations_are_the_same_for_any_number_of_groups_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    random = np.random.default_rng(1)
    group = np.sort(random.integers(0, 40, 5000))
    duration = random.integers(1, 10**6, 5000)
    whole = statistics(group, duration, np.bincount(group))
    monkeypatch.setattr("nsysmodel.export.summary._AT_ONCE", 100)
    parts = statistics(group, duration, np.bincount(group))
    assert all(np.array_equal(whole[name], parts[name]) for name in whole)


@settings(deadline=None)
@given(
    st.lists(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5)), min_size=1, max_size=30), max_size=6)
)
def test_rows_are_numbered_alike_in_all_blocks(blocks: list[list[tuple[int, int]]]) -> None:
    told: list[bytes] = []
    met = Met(2, told.append)
    for block in blocks:
        columns = np.array(block, dtype=np.uint64)
        places = met.places([columns[:, 0], columns[:, 1]])
        assert (met.rows[places - 1] == columns).all()
    different = {row for block in blocks for row in block}
    assert len(met.rows) == len(told) == len(different)
    assert {tuple(row) for row in met.rows.tolist()} == different


def test_rows_that_share_a_slot_are_told_apart() -> None:
    met = Met(1)
    many = np.arange(20_000, dtype=np.uint64)  # several times as many as there are slots
    places = met.places([many])
    assert len(set(places.tolist())) == len(many)
    assert (met.places([many[::-1]]) == places[::-1]).all()


def _mapped(path: Path, columns: tuple[str, ...], table: str) -> tuple[np.ndarray, np.ndarray]:
    """Some columns of all rows by their numbers, and by SQLite."""
    with closing(SqliteSource(path, "t")) as source:
        found = source.mapped(
            table, {columns[0]: "int"}, columns, lambda rows, code: (rows[columns[0]], code)
        )
    assert found is not None
    blocks, known = found
    codes = np.concatenate([code for _, code in blocks])
    values_ = np.array(known, dtype=np.int64)[codes]
    assert np.array_equal(np.concatenate([first for first, _ in blocks]), values_[:, 0])
    db = sqlite3.connect(path)
    rows = db.execute(f"SELECT {', '.join(columns)} FROM {table} ORDER BY rowid").fetchall()
    db.close()
    return values_, np.array([[NULL if v is None else v for v in row] for row in rows], dtype=np.int64)


@pytest.mark.parametrize("columns", [("a",), ("b", "d"), ("c", "b", "a"), ("d", "a", "b", "c")])
@pytest.mark.parametrize("seed", range(3))
def test_numbers_stand_for_the_values(
    columns: tuple[str, ...], seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Values of all sizes, NULL, a text between the columns, and a column that was added later."""
    monkeypatch.setattr("nsysmodel.export.pages.table._BLOCK_BYTES", 1 << 13)
    random = np.random.default_rng(seed)
    pool = [None, 0, 1, -1, 127, -128, 128, 40_000, -(2**23), 2**31, -(2**40), 2**47, 2**62, -(2**63) + 1]
    path = tmp_path / "t.db"
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE t (a INTEGER, b INTEGER, text TEXT, c INTEGER)")
    rows = [[pool[i] for i in random.integers(0, len(pool), 4)] for _ in range(1500)]
    db.executemany("INSERT INTO t VALUES (?, ?, 'x', ?)", [row[:3] for row in rows[:700]])
    db.execute("ALTER TABLE t ADD COLUMN d INTEGER")
    db.executemany("INSERT INTO t VALUES (?, ?, 'some text', ?, ?)", rows[700:])
    db.commit()
    db.close()
    found, expected = _mapped(path, columns, "t")
    assert np.array_equal(found, expected)


def test_blocks_come_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nsysmodel.export.pages.table._BLOCK_BYTES", 1 << 14)
    found, expected = _mapped(BUNDLED, ("start", "end", "gridX"), KERNELS)
    assert len(found) > 1000
    assert np.array_equal(found, expected)


def test_what_cannot_be_numbered_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.db"
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a, b REAL)")
    db.executemany("INSERT INTO t VALUES (?, ?, ?)", [(i, i, 0.5) for i in range(300)])
    db.commit()
    db.close()
    monkeypatch.setattr("nsysmodel.export.pages.alike.MOST", 200)
    for column in ("id", "b", "a"):
        with closing(SqliteSource(path, "t")) as source, pytest.raises(UnlikeError):
            source.mapped("t", {"id": "int"}, (column,), lambda *_: None)


def test_what_a_maker_raises_comes_through() -> None:
    def refuse(*_: object) -> None:
        raise LookupError

    with closing(SqliteSource(BUNDLED, "t")) as source:
        with pytest.raises(LookupError):
            source.mapped(KERNELS, {"start": "int"}, ("gridX",), refuse)
        assert source.mapped(KERNELS, {"start": "int"}, ("absent",), refuse) is None
        assert source.mapped("absent", {"start": "int"}, ("gridX",), refuse) is None


@settings(deadline=None)
@given(st.lists(st.binary(max_size=70), min_size=1, max_size=40))
def test_few_and_many_texts_are_read_alike(texts: list[bytes]) -> None:
    data = np.frombuffer(b"".join(texts) + bytes(8), dtype=np.uint8)
    length = np.array([len(text) for text in texts], dtype=np.int64)
    at = np.cumsum(length) - length
    for read in (values._few, values._many):
        known, which = read(data, at, length)
        assert [known[i] for i in which.tolist()] == texts
        assert len(set(known)) == len(known)


def test_the_summary_needs_no_pandas(tmp_path: Path) -> None:
    import subprocess
    import sys

    code = (
        "import sys\n"
        "from nsysmodel.cli import main\n"
        f"main(['kernels', {str(BUNDLED)!r}], standalone_mode=False)\n"
        "heavy = {'pandas', 'pyarrow', 'jinja2', 'pydantic', 'nsysmodel.result'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@settings(deadline=None)
@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, 4), st.integers(0, 300)), min_size=1, max_size=30),
        min_size=1,
        max_size=4,
    ),
    st.sampled_from([0, 5]),
    st.sampled_from([np.uint16, np.uint32, np.int64]),
)
def test_durations_are_counted_into_the_order_of_sorting(
    parts: list[list[tuple[int, int]]], unused: int, dtype: type
) -> None:
    blocks = [
        (
            np.array([length << unused for _, length in part], dtype=dtype),
            np.array([code for code, _ in part]),
        )
        for part in parts
    ]
    group = np.array([2, 0, 1, 0, 2])
    bits = max(max(int(duration.max()) for duration, _ in blocks), 1).bit_length()
    bits = max(bits, unused + 1)
    counted = ordering._counted(blocks, group, 3, bits, unused)
    assert counted.tolist() == ordering._sorted(blocks, group, 3, bits).tolist()
    rows = [(group[code], length) for part in blocks for length, code in zip(*part, strict=True)]
    assert counted.tolist() == [length for _, length in sorted(rows)]
