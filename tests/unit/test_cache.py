"""Columns that are kept between runs: the same values, never stale, within their limit."""

from __future__ import annotations

import os
import shutil
import sqlite3
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner

from nsysmodel import open_run
from nsysmodel.cli import main, reading
from nsysmodel.errors import ExportError
from nsysmodel.export import cache_folder
from nsysmodel.export.cache_folder import caching
from nsysmodel.export.cached_source import CachedSource, content_key
from nsysmodel.export.inspection import inspection
from nsysmodel.export.source import Kind, Source
from nsysmodel.export.sqlite_source import SqliteSource
from nsysmodel.progress import observing, settle, tell

BUNDLED = Path(__file__).parents[2] / "fixtures" / "qwen3-30b-decode-gh200.sqlite"
KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NSYSMODEL_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def export(tmp_path: Path) -> Path:
    return Path(shutil.copy(BUNDLED, tmp_path / "trace.sqlite"))


def everything(path: Path) -> tuple[object, ...]:
    with open_run(path) as run:
        return (
            inspection(run),
            run.kernels().to_dict("list"),
            run.nvtx().to_dict("list"),
            run.api_calls().to_dict("list"),
            run.overhead().to_dict("list"),
        )


def test_the_second_run_reads_nothing_and_says_the_same(
    folder: Path, export: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = everything(export)
    with caching("user"):
        assert everything(export) == plain

        def never(*_: object, **__: object) -> None:
            raise AssertionError("the export was opened")

        monkeypatch.setattr("nsysmodel.export.opening.SqliteSource", never)
        assert everything(export) == plain
    assert len(cache_folder.entries(folder)) == 1


def test_compressed_exports_are_not_unpacked_again(
    folder: Path, export: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import gzip

    packed = export.with_suffix(".sqlite.gz")
    packed.write_bytes(gzip.compress(export.read_bytes(), 1))
    with caching("user"):
        first = everything(packed)
        monkeypatch.setattr("nsysmodel.export.opening.decompress", None)
        assert everything(packed) == first


def test_an_export_that_changed_is_another_one(folder: Path, export: Path) -> None:
    with caching("user"):
        before = everything(export)
        about = export.stat()
        db = sqlite3.connect(export)
        db.execute(f"UPDATE {KERNELS} SET end = end + 32 WHERE rowid = 100")
        db.commit()
        db.close()
        os.utime(export, ns=(about.st_atime_ns, about.st_mtime_ns))
        assert export.stat().st_mtime_ns == about.st_mtime_ns
        assert everything(export) != before


def test_a_copy_of_an_export_is_the_same_one(folder: Path, export: Path) -> None:
    other = export.with_name("other.sqlite")
    shutil.copy(export, other)
    assert content_key(export) == content_key(other)
    with caching("user"):
        everything(export)
        held = {entry.key for entry in cache_folder.entries(folder)}
        with open_run(other) as run:
            # The name that is shown is that of the file that was given.
            assert run.facts.file == "other.sqlite"
    assert {entry.key for entry in cache_folder.entries(folder)} == held


def test_the_key_covers_every_part_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nsysmodel.export.cached_source._CHUNK", 64)
    path = tmp_path / "f"
    path.write_bytes(bytes(1000))
    keys = {content_key(path)}
    for at in (0, 63, 64, 500, 999):
        data = bytearray(1000)
        data[at] = 1
        path.write_bytes(data)
        keys.add(content_key(path))
    path.write_bytes(bytes(1001))
    keys.add(content_key(path))
    assert len(keys) == 7


def test_a_file_that_changes_under_the_reader_is_not_kept(folder: Path, export: Path) -> None:
    def make() -> Source:
        export.write_bytes(BUNDLED.read_bytes() + bytes(4096))
        return SqliteSource(export, export.name)

    with pytest.raises(ExportError, match="changed"):
        CachedSource(folder, export, make)
    assert not cache_folder.entries(folder)


def test_kinds_nulls_and_texts_come_back(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE t (a INTEGER, b TEXT, c REAL, d INTEGER)")
    rows = [(1, "x", 1.5, None), (None, None, None, None), (-(2**62), "ü\0z", -0.0, None)]
    db.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", rows)
    db.execute("CREATE TABLE empty (a)")
    db.commit()
    db.close()
    want: dict[str, Kind] = {"a": "int", "B": "text", "c": "real", "d": "int", "gone": "int"}
    results = []
    for _ in range(2):
        source = CachedSource(tmp_path / "cache", path, lambda: SqliteSource(path, path.name))
        results.append((source.read("T", want), source.read("empty", {"a": "int"}), source.count("t")))
        assert source.read("absent", want) == {}
        source.close()
    (first, none, count), (second, none_again, count_again) = results
    assert count == count_again == 3
    assert len(none["a"]) == len(none_again["a"]) == 0
    assert list(first) == list(second) == ["a", "B", "c", "d"]
    for name in first:
        assert first[name].dtype == second[name].dtype
        assert np.array_equal(first[name], second[name], equal_nan=name == "c")


def test_damaged_columns_are_read_again(folder: Path, export: Path) -> None:
    plain = everything(export)
    with caching("user"):
        everything(export)
        for number, file in enumerate(sorted(folder.glob("*/*"))):
            raw = file.read_bytes()
            file.write_bytes(
                b"" if number % 3 == 0 else raw[: len(raw) // 2] if number % 3 == 1 else raw[::-1]
            )
        assert everything(export) == plain


def test_a_folder_that_cannot_be_made_costs_nothing_but_time(tmp_path: Path, export: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with caching(tmp_path / "file" / "cache"):
        assert everything(export)[1:] == everything(BUNDLED)[1:]


def test_the_longest_unused_goes_first_and_foreign_files_stay(tmp_path: Path) -> None:
    for number in range(4):
        entry = tmp_path / (f"{number}" * 64)
        entry.mkdir()
        (entry / "x.arrow").write_bytes(bytes(100))
        os.utime(entry, (1000 + number, 1000 + number))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("irreplaceable")
    assert cache_folder.shrink(tmp_path, 250) == 200
    assert [entry.key[0] for entry in cache_folder.entries(tmp_path)] == ["2", "3"]
    assert cache_folder.shrink(tmp_path, 100, keep="2" * 64) == 100
    assert [entry.key[0] for entry in cache_folder.entries(tmp_path)] == ["2"]
    assert cache_folder.clear(tmp_path) == 100
    assert (tmp_path / "mine" / "thesis.txt").exists()


def test_a_limit_of_nothing_keeps_nothing(
    folder: Path, export: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NSYSMODEL_CACHE_LIMIT", "0")
    with caching("user"):
        everything(export)
    assert not cache_folder.entries(folder)


def test_commands(folder: Path, export: Path) -> None:
    runner = CliRunner()
    plain = runner.invoke(main, ["kernels", str(export), "-f", "csv"])
    first = runner.invoke(main, ["kernels", str(export), "-f", "csv", "--cache"])
    again = runner.invoke(main, ["kernels", str(export), "-f", "csv", "--cache"])
    assert plain.stdout == first.stdout == again.stdout != ""
    assert "exports  1" in runner.invoke(main, ["cache", "info"]).stdout
    assert "Removed" in runner.invoke(main, ["cache", "clear"]).stdout
    assert "exports  0" in runner.invoke(main, ["cache", "info"]).stdout
    beside = runner.invoke(main, ["inspect", str(export), "--cache-beside"])
    assert beside.exit_code == 0
    assert (export.parent / ".nsysmodel-cache").is_dir()
    assert not cache_folder.entries(folder)


@pytest.mark.skipif(os.name == "nt", reason="the rules of XDG")
def test_the_users_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.delenv("NSYSMODEL_CACHE_DIR", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache_folder.user_folder() == tmp_path / ".cache" / "nsysmodel"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder.user_folder() == tmp_path / "xdg" / "nsysmodel"


def test_who_watches_is_told_of_stages(folder: Path, export: Path) -> None:
    seen: list[tuple[str, int, int]] = []
    with observing(lambda *told: seen.append(told)), caching("user"), open_run(export) as run:
        run.kernels()
    stages = {stage for stage, _, _ in seen}
    assert {"looking for it in the cache", f"reading {KERNELS}"} <= stages
    assert all(0 <= done <= total for _, done, total in seen if total)


def test_nothing_is_drawn_where_nobody_looks(export: Path, capfd: pytest.CaptureFixture[str]) -> None:
    CliRunner().invoke(main, ["inspect", str(export)])
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    "words",
    [
        ["report", "EXPORT", "-q", "-o", "OUT/r.html"],
        ["kernels", "EXPORT", "--by", "nvtx"],
        ["inspect", "EXPORT"],
        ["memory", "EXPORT"],
        ["compare", "EXPORT", "EXPORT2", "-q"],
        ["gate", "EXPORT", "--baseline", "EXPORT2"],
        ["baseline", "save", "EXPORT", "-o", "OUT/b.json"],
        ["batch", "EXPORT", "-o", "OUT/batch", "-q"],
    ],
    ids=lambda words: words[0],
)
def test_every_command_that_reads_keeps_columns(
    words: list[str], folder: Path, export: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other.sqlite"
    shutil.copy(export, other)
    places = {"EXPORT2": str(other), "EXPORT": str(export), "OUT": str(tmp_path)}
    for name, value in places.items():
        words = [word.replace(name, value) if name in word else word for word in words]
    CliRunner().invoke(main, [*words, "--cache"])
    assert [path.name for path in folder.iterdir() if path.is_dir()]


class _Drawn:
    """Stands for rich's display."""

    def __init__(self) -> None:
        self.shown: list[str] = []
        self.running = False

    def start(self) -> None:
        self.running = True

    def stop(self) -> None:
        self.running = False

    def add_task(self, stage: str, total: int | None) -> int:
        self.shown.append(stage)
        return len(self.shown)

    def remove_task(self, task: int) -> None: ...

    def update(self, task: int, completed: int, total: int | None) -> None: ...


def test_the_bar_is_gone_before_results_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = _Drawn()
    monkeypatch.setattr(reading, "PATIENCE_S", 0.0)
    monkeypatch.setattr(reading, "_drawn", lambda: drawn)
    monkeypatch.setattr(reading.sys, "stderr", SimpleNamespace(isatty=lambda: True))
    with reading.bar():
        tell("reading", 1, 2)
        tell("judging")
        assert drawn.running
        settle()
        assert not drawn.running
        tell("reading more")
        assert drawn.running
    assert not drawn.running
    assert drawn.shown == ["reading", "judging", "reading more"]
