"""Every form of an export opens; everything else is one clear sentence; nothing beside it is touched."""

from __future__ import annotations

import gc
import gzip
import os
import shutil
import sqlite3
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from fixtures.folders import to_arrowdir, to_parquetdir
from fixtures.generations import build_generation
from nsysmodel import open_run
from nsysmodel.errors import ExportError

KERNELS = 6


@pytest.fixture(scope="module")
def export(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_generation("v3.16.1", tmp_path_factory.mktemp("export") / "trace.sqlite")


@pytest.fixture(autouse=True)
def temporary(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def gzipped(source: Path, target: Path) -> Path:
    target.write_bytes(gzip.compress(source.read_bytes()))
    return target


def zstd_frames(source: Path, target: Path) -> Path:
    """Two frames, as parallel compressors write them."""
    data = source.read_bytes()
    middle = len(data) // 2
    pack = zstandard.ZstdCompressor().compress
    target.write_bytes(pack(data[:middle]) + pack(data[middle:]))
    return target


FORMS: dict[str, Callable[[Path, Path], Path]] = {
    "trace.sqlite3": lambda source, target: Path(shutil.copy(source, target)),
    "trace.db": lambda source, target: Path(shutil.copy(source, target)),
    "no extension": lambda source, target: Path(shutil.copy(source, target)),
    "odd #name?%20 ü.sqlite": lambda source, target: Path(shutil.copy(source, target)),
    "trace.sqlite.gz": gzipped,
    "trace.sqlite.zst": zstd_frames,
    "trace_pqtdir": to_parquetdir,
    "trace_arwdir": to_arrowdir,
}


@pytest.mark.parametrize("name", FORMS)
def test_each_form_gives_the_same_frames(name: str, export: Path, tmp_path: Path, temporary: Path) -> None:
    path = FORMS[name](export, tmp_path / name)
    with open_run(export) as plain, open_run(path) as run:
        assert run.path_name == name
        assert len(run.kernels()) == KERNELS
        for frame in (
            "kernels",
            "copies",
            "memsets",
            "api_calls",
            "syncs",
            "nvtx",
            "gpus",
            "overhead",
            "log_events",
        ):
            expected, found = getattr(plain, frame)(), getattr(run, frame)()
            assert found.astype(object).equals(expected.astype(object)), frame
        assert run.facts.completeness == plain.facts.completeness == "complete"
    assert not list(temporary.iterdir())


@pytest.mark.parametrize("kind", ["parquet", "arrow", "arrows"])
def test_bytes_that_are_not_utf8_in_a_folder(kind: str, export: Path, tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder = to_parquetdir(export, tmp_path / "dir")
    table = pq.ParquetFile(folder / "StringIds.parquet").read()
    raw = [
        text.replace("scale", "sc\udcffale").encode("utf-8", "surrogateescape")
        for text in table["value"].to_pylist()
    ]
    # The bytes are declared as text, as nsys does it.
    binary = pa.array(raw, pa.binary())
    value = pa.StringArray.from_buffers(len(raw), binary.buffers()[1], binary.buffers()[2])
    broken = pa.table({"id": table["id"], "value": value})
    (folder / "StringIds.parquet").unlink()
    if kind == "parquet":
        pq.write_table(broken, folder / "StringIds.parquet")
    else:
        with pa.OSFile(str(folder / f"StringIds.{kind}"), "wb") as out:
            make = pa.ipc.new_file if kind == "arrow" else pa.ipc.new_stream
            with make(out, broken.schema) as writer:
                writer.write_table(broken)
    with open_run(folder) as run:
        assert any("sc�ale" in name for name in run.kernels()["name"].cat.categories)


def test_a_report_goes_through_nsys(
    export: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, temporary: Path
) -> None:
    report = tmp_path / "my trace.nsys-rep"
    report.write_bytes(b"\x00\x01 not a database")
    fake = tmp_path / "bin" / "nsys"
    fake.parent.mkdir()
    fake.write_text(
        "#!/bin/sh\n"
        'while [ $# -gt 1 ]; do [ "$1" = --output ] && out="$2"; shift; done\n'
        f'[ -f "$1" ] && cp "{export}" "$out"\n'
    )
    fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{fake.parent}{os.pathsep}{os.environ['PATH']}")
    with open_run(report) as run:
        assert run.path_name == "my trace.nsys-rep"
        assert len(run.kernels()) == KERNELS
        assert list(temporary.iterdir())
    assert not list(temporary.iterdir())
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bin", "my trace.nsys-rep"]

    fake.write_text("#!/bin/sh\nexit 3\n")
    with pytest.raises(ExportError, match="exit status 3"):
        open_run(report)


def test_a_report_without_nsys_gives_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report = tmp_path / "trace.nsys-rep"
    report.write_bytes(b"\x00\x01")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ExportError) as caught:
        open_run(report)
    assert "nsys export --type sqlite --output trace.sqlite trace.nsys-rep" in caught.value.hint


def test_a_run_that_nobody_closes_leaves_nothing(export: Path, tmp_path: Path, temporary: Path) -> None:
    run = open_run(gzipped(export, tmp_path / "trace.sqlite.gz"))
    assert list(temporary.iterdir())
    run._opened.source.close()
    del run
    gc.collect()
    assert not list(temporary.iterdir())


WRONG = {
    "empty.sqlite": (b"", "is empty"),
    "pointer.sqlite": (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 3\n", "Git LFS"),
    "text.sqlite": (b"start,end\n1,2\n", "is text"),
    "archive.sqlite": (b"PK\x03\x04rest", "zip archive"),
    "noise.sqlite": (bytes(range(256)), "not a SQLite file"),
    "one.parquet": (b"PAR1\x00\x00", "one table"),
    "cut.sqlite": (b"SQLite format 3\x00" + b"\x00" * 40, "database"),
    "text.sqlite.gz": (gzip.compress(b"hello"), "does not contain"),
    "half.sqlite.gz": (gzip.compress(b"SQLite format 3\x00" * 9999)[:60], "cannot be unpacked"),
    "nothing.gz": (gzip.compress(b""), "is empty"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_export_is_one_sentence(name: str, tmp_path: Path, temporary: Path) -> None:
    data, words = WRONG[name]
    (tmp_path / name).write_bytes(data)
    with pytest.raises(ExportError, match=words) as caught:
        open_run(tmp_path / name)
    assert caught.value.hint
    assert str(tmp_path) not in caught.value.message + caught.value.hint
    assert not list(temporary.iterdir())


@pytest.mark.parametrize(
    ("name", "words"), [("nvprof", "nvprof"), ("foreign", "not an Nsight Systems export")]
)
def test_databases_of_others_are_refused(name: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(ExportError, match=words):
        open_run(build_generation(name, tmp_path / "x.sqlite"))


def test_folders_and_paths_that_are_nothing(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="There is no file"):
        open_run(tmp_path / "missing.sqlite")
    assert not (tmp_path / "missing.sqlite").exists()
    with pytest.raises(ExportError, match="folder without"):
        open_run(tmp_path)
    (tmp_path / "b.sqlite").touch()
    with pytest.raises(ExportError) as caught:
        open_run(tmp_path)
    assert "b.sqlite" in caught.value.hint
    os.mkfifo(tmp_path / "pipe.sqlite")
    with pytest.raises(ExportError, match="not a regular file"):
        open_run(tmp_path / "pipe.sqlite")
    with pytest.raises(ExportError):
        open_run("nul\0byte.sqlite")


def test_a_pending_wal_is_played_back_in_a_copy(tmp_path: Path, temporary: Path) -> None:
    path = build_generation("wal", tmp_path / "trace.sqlite")
    before = {p.name: (p.read_bytes(), p.stat().st_mtime_ns) for p in tmp_path.iterdir()}
    assert "trace.sqlite-wal" in before
    with open_run(path) as run:
        assert len(run.kernels()) == 2 * KERNELS
        after = {p.name: (p.read_bytes(), p.stat().st_mtime_ns) for p in tmp_path.iterdir()}
        assert after == before
    assert not list(temporary.iterdir())


def test_a_pending_journal_is_rolled_back_in_a_copy(export: Path, tmp_path: Path) -> None:
    """A writer that died half way: the journal holds the old pages."""
    live = tmp_path / "live.sqlite"
    shutil.copy(export, live)
    db = sqlite3.connect(live, isolation_level=None)
    db.execute("PRAGMA cache_size=1")
    db.execute("BEGIN")
    db.execute("DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL")
    many = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 9999)"
    db.execute(f"CREATE TABLE filler AS {many} SELECT i, randomblob(99) AS b FROM n")
    path = tmp_path / "trace.sqlite"
    shutil.copy(live, path)
    shutil.copy(f"{live}-journal", f"{path}-journal")
    db.execute("ROLLBACK")
    db.close()
    before = path.read_bytes()
    with open_run(path) as run:
        assert len(run.kernels()) == KERNELS
    assert path.read_bytes() == before
    assert (tmp_path / "trace.sqlite-journal").exists()


@pytest.mark.parametrize("content", [b"", b"\x00" * 4096])
def test_side_files_without_content_are_ignored(
    content: bytes, export: Path, tmp_path: Path, temporary: Path
) -> None:
    path = Path(shutil.copy(export, tmp_path / "trace.sqlite"))
    for suffix in ("-wal", "-journal", "-shm"):
        path.with_name(path.name + suffix).write_bytes(content)
    with open_run(path) as run:
        assert len(run.kernels()) == KERNELS
        assert not list(temporary.iterdir())
    assert {p.read_bytes() for p in tmp_path.iterdir() if p != path} == {content}


def test_a_view_does_not_pass_for_a_table(export: Path, tmp_path: Path) -> None:
    """A view could compute without end; only tables are read."""
    path = Path(shutil.copy(export, tmp_path / "trace.sqlite"))
    db = sqlite3.connect(path)
    db.execute("DROP TABLE CUPTI_ACTIVITY_KIND_KERNEL")
    endless = "WITH RECURSIVE n(start) AS (SELECT 1 UNION ALL SELECT start + 1 FROM n)"
    db.execute(f'CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS {endless} SELECT start, start AS "end" FROM n')
    db.commit()
    db.close()
    with open_run(path) as run:
        assert len(run.kernels()) == 0
