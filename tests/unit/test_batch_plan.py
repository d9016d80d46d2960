"""Which exports a batch takes, what it calls them, and what it says of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsysmodel.batch.folder import BatchFolder
from nsysmodel.batch.inputs import expand
from nsysmodel.batch.naming import is_safe, safe, unique_names
from nsysmodel.batch.plan import plan
from nsysmodel.batch.types import BatchError, BatchUsageError
from nsysmodel.workload import WorkloadRequest


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def touch(*names: str) -> None:
    for name in names:
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")


def found(*arguments: str) -> list[str]:
    return [Path(path).as_posix() for path, _ in expand(arguments)]


def test_globs_count_and_arguments_keep_their_order() -> None:
    touch("run10.sqlite", "run2.sqlite", "a.sqlite", "notes.txt")
    assert found("run*.sqlite", "a.sqlite") == ["run2.sqlite", "run10.sqlite", "a.sqlite"]
    assert found("*") == ["a.sqlite", "run2.sqlite", "run10.sqlite"]


def test_the_same_file_is_one_run() -> None:
    touch("a.sqlite")
    os.symlink("a.sqlite", "link.sqlite")
    assert found("a.sqlite", "./a.sqlite", "link.sqlite", "*.sqlite") == ["a.sqlite"]


def test_folders_are_searched() -> None:
    touch("c/new/r.sqlite", "c/old/r.sqlite.gz", "c/old/notes.md", "c/.hidden/r.sqlite", "c/top.db")
    assert found("c") == ["c/new/r.sqlite", "c/old/r.sqlite.gz", "c/top.db"]


def test_a_folder_of_tables_is_one_export() -> None:
    touch("c/a/CUPTI_ACTIVITY_KIND_KERNEL.parquet", "c/a/StringIds.parquet", "c/b/unrelated.parquet")
    touch("c/b/r.sqlite")
    assert found("c") == ["c/a", "c/b/r.sqlite"]
    assert found("c/a") == ["c/a"]
    assert found("c/*") == ["c/a", "c/b/r.sqlite"]


def test_a_report_beside_its_export_is_the_same_capture() -> None:
    touch("c/a.nsys-rep", "c/a.sqlite", "c/b.nsys-rep")
    assert found("c") == ["c/a.sqlite", "c/b.nsys-rep"]
    assert found("c/*") == ["c/a.sqlite", "c/b.nsys-rep"]


def test_results_of_a_batch_are_no_exports() -> None:
    touch("c/r.sqlite")
    folder = BatchFolder("c/out")
    folder.open()
    touch("c/out/runs/CUPTI_ACTIVITY_KIND_KERNEL.parquet", "c/out/x.sqlite")
    assert [run.name for run in plan(["c"])] == ["r"]


def test_lists_may_hold_labels_comments_and_globs() -> None:
    touch("deep/a.sqlite", "deep/b 1.sqlite")
    Path("deep/list.txt").write_text("# mine\n\na.sqlite\tcommit=1a\tnote=x y\nb*.sqlite\n", encoding="utf-8")
    runs = plan(["@deep/list.txt"], labels={"commit": "none"})
    assert [(run.name, run.labels) for run in runs] == [
        ("a", {"commit": "1a", "note": "x y"}),
        ("b_1", {"commit": "none"}),
    ]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nothing*.sqlite"], "No export matches nothing"),
        (["empty"], "The folder empty holds no export"),
        (["@missing.txt"], "The list missing.txt cannot be read"),
    ],
)
def test_what_names_nothing_is_said(arguments: list[str], words: str) -> None:
    Path("empty").mkdir()
    with pytest.raises(BatchError, match=words):
        expand(arguments)


def test_a_missing_file_stays_a_run_so_that_it_is_listed() -> None:
    assert [run.name for run in plan(["missing.sqlite"])] == ["missing"]


def test_colliding_names() -> None:
    paths = ["/d/one/t.sqlite", "/d/two/t.sqlite", "/d/two/T.db", "/d/u.sqlite"]
    assert unique_names(paths) == ["one-t", "t-2", "T", "u"]
    assert unique_names(["/a/x/t.db", "/b/x/t.db"]) == ["a-x-t", "b-x-t"]
    assert unique_names(["/t.db"]) == ["t"]


names = st.text(st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1, max_size=60)


@given(st.lists(st.tuples(names, names).map(lambda pair: f"/{pair[0]}/{pair[1]}"), max_size=8, unique=True))
def test_names_are_safe_and_unique_whatever_the_paths(paths: list[str]) -> None:
    chosen = unique_names(paths)
    assert len({name.casefold() for name in chosen}) == len(paths)
    assert all(is_safe(name) and "/" not in name and not name.startswith(".") for name in chosen)
    assert all(len(f"{name}.parquet".encode()) < 255 for name in chosen)


@given(st.text(max_size=300))
def test_safe_is_stable(text: str) -> None:
    assert safe(safe(text)) == safe(text)


def test_labels_and_workload_from_the_path() -> None:
    touch("r/tp2-b8/abc1234.sqlite", "r/tp4-b8/def5678.sqlite")
    runs = plan(
        ["r"],
        workload=WorkloadRequest(context=512),
        label_from=["(?P<commit>[0-9a-f]{7})", "nothing(?P<x>.)"],
        workload_from=["tp(?P<tp>[0-9]+)-b(?P<batch>[0-9]+)"],
    )
    assert [run.labels for run in runs] == [{"commit": "abc1234"}, {"commit": "def5678"}]
    assert [run.workload for run in runs] == [
        WorkloadRequest(context=512, batch=8, tp=2),
        WorkloadRequest(context=512, batch=8, tp=4),
    ]


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"label_from": ["("]}, "not a regular expression"),
        ({"label_from": ["abc"]}, "no named group"),
        ({"workload_from": ["(?P<colour>a)"]}, "'colour' is not a workload flag"),
        ({"workload_from": ["(?P<batch>a)"]}, "not a value of --batch"),
        ({"workload_from": ["(?P<phase>a)"]}, "not a value of --phase"),
    ],
)
def test_wrong_patterns(asked: dict[str, list[str]], words: str) -> None:
    touch("a.sqlite")
    with pytest.raises(BatchUsageError, match=words) as caught:
        plan(["a.sqlite"], **asked)  # type: ignore[arg-type]
    assert caught.value.exit_code == 2
