"""A batch: what is written, what is done again, what a bad export does, what the folder allows."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from batch_cases import Judge, exports, tree

from nsysmodel.batch.folder import MANIFEST, BatchFolder
from nsysmodel.batch.local import run_local
from nsysmodel.batch.plan import plan
from nsysmodel.batch.run import Finished, run_batch
from nsysmodel.batch.types import Batch, BatchError, BatchUsageError, PlannedRun, Request, Task
from nsysmodel.errors import OutputError
from nsysmodel.model import load
from nsysmodel.request import HardwareRequest, Selection
from nsysmodel.workload import WorkloadRequest


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> Judge:
    stand_in = Judge()
    monkeypatch.setattr("nsysmodel.analyze.evaluate", stand_in)
    return stand_in


@pytest.fixture
def batch(tmp_path: Path, judge: Judge) -> Callable[..., Batch]:
    """Runs a batch over named exports, into `out`."""

    def run(paths: list[str], request: Request | None = None, **options: Any) -> Batch:
        planned = {key: options.pop(key) for key in ("workload", "labels", "label_from") if key in options}
        return run_batch(plan(paths, **planned), tmp_path / "out", request, **options)

    return run


def test_everything_is_written(tmp_path: Path, batch: Callable[..., Batch]) -> None:
    made = batch(exports(tmp_path / "in", a="4000", b="5000", c="unjudged", d="unmodeled"))
    files = sorted(tree(tmp_path / "out"))
    assert files == [
        "index.html",
        "index.json",
        "manifest.json",
        "ops.parquet",
        *(f"runs/{name}.{kind}" for name in "abcd" for kind in ("html", "json", "parquet")),
    ]
    assert [row.status for row in made.rows] == ["ok", "ok", "cannot_judge", "no_model"]
    data = json.loads((tmp_path / "out" / "index.json").read_text())
    assert data["schema"] == "nsysmodel.batch/1"
    assert [run["step_ns"] for run in data["runs"][:2]] == [4_000_000, 5_000_000]
    report = json.loads((tmp_path / "out" / "runs" / "b.json").read_text())
    assert report["devices"][0]["step"]["measured_ns"] == 5_000_000
    assert report["tool"]["command"] == "nsysmodel report b.sqlite"


def test_nothing_is_judged_twice(tmp_path: Path, batch: Callable[..., Batch], judge: Judge) -> None:
    paths = exports(tmp_path / "in", a="4000", b="5000")
    first = batch(paths)
    before = tree(tmp_path / "out")
    again = batch(paths)
    assert judge.seen == ["a.sqlite", "b.sqlite"]
    assert tree(tmp_path / "out") == before
    assert (first.evaluated, first.unchanged) == (("a", "b"), ())
    assert (again.evaluated, again.unchanged) == ((), ("a", "b"))
    assert again.to_dict() == first.to_dict()


def test_only_what_changed_is_judged_again(tmp_path: Path, batch: Callable[..., Batch], judge: Judge) -> None:
    paths = exports(tmp_path / "in", a="4000", b="5000")
    batch(paths)
    before = tree(tmp_path / "out")
    Path(paths[1]).write_text("6000")
    batch([*paths, *exports(tmp_path / "in", c="7000")])
    after = tree(tmp_path / "out")
    assert judge.seen == ["a.sqlite", "b.sqlite", "b.sqlite", "c.sqlite"]
    same = {name for name in before if after[name] == before[name]}
    assert {name for name in same if name.startswith("runs/a.")} == {
        f"runs/a.{kind}" for kind in ("html", "json", "parquet")
    }
    assert not same & {"runs/b.html", "runs/b.json", "index.html", "index.json", "ops.parquet"}


CHANGES: dict[str, dict[str, Any]] = {
    "model": {"request": Request(load("llama-3.1-8b"))},
    "workload": {"workload": WorkloadRequest(batch=2)},
    "hardware": {"request": Request(hardware=HardwareRequest(gpu="h100"))},
    "selection": {"request": Request(selection=Selection(device=0))},
}


@pytest.mark.parametrize("name", CHANGES)
def test_other_options_are_another_result(
    name: str, tmp_path: Path, batch: Callable[..., Batch], judge: Judge
) -> None:
    paths = exports(tmp_path / "in", a="4000")
    batch(paths)
    batch(paths, **CHANGES[name])
    batch(paths, **CHANGES[name])
    assert len(judge.seen) == 2


def test_a_changed_model_or_catalogue_file_is_another_one(
    tmp_path: Path, batch: Callable[..., Batch], judge: Judge, repository: Path
) -> None:
    paths = exports(tmp_path / "in", a="4000")
    text = (repository / "nsysmodel/model/examples/flat.yaml").read_text()
    file = tmp_path / "m.yaml"
    file.write_text(text)
    batch(paths, Request(load(str(file))))
    file.write_text(text + "# a comment changes nothing\n")
    batch(paths, Request(load(str(file))))
    assert len(judge.seen) == 1
    file.write_text(text.replace("name:", "name: other #", 1))
    batch(paths, Request(load(str(file))))
    assert len(judge.seen) == 2
    gpus = tmp_path / "gpus.yaml"
    for content in ("{}", "# new"):
        gpus.write_text(content)
        batch(paths, Request(hardware=HardwareRequest(files=(str(gpus),))))
    assert len(judge.seen) == 4


def test_another_version_is_another_result(
    tmp_path: Path, batch: Callable[..., Batch], judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = exports(tmp_path / "in", a="4000")
    batch(paths)
    monkeypatch.setattr("nsysmodel.batch.run.version", lambda _: "9.9")
    batch(paths)
    assert len(judge.seen) == 2


@pytest.mark.parametrize("harm", ["removed", "edited"])
def test_a_harmed_result_is_made_again(
    harm: str, tmp_path: Path, batch: Callable[..., Batch], judge: Judge
) -> None:
    paths = exports(tmp_path / "in", a="4000", b="5000")
    batch(paths)
    before = {name: data for name, (_, data) in tree(tmp_path / "out").items()}
    target = tmp_path / "out" / "runs" / "a.json"
    target.unlink() if harm == "removed" else target.write_text("{}")
    batch(paths)
    assert judge.seen == ["a.sqlite", "b.sqlite", "a.sqlite"]
    assert {name: data for name, (_, data) in tree(tmp_path / "out").items()} == before


def test_a_bad_export_stops_nothing_and_is_tried_again(
    tmp_path: Path, batch: Callable[..., Batch], judge: Judge
) -> None:
    told: list[Finished] = []
    paths = exports(tmp_path / "in", a="4000", b="bad", c="bug", d="5000")
    missing = str(tmp_path / "in" / "gone.sqlite")
    made = batch([*paths, missing], tell=told.append)
    assert [row.status for row in made.rows] == ["ok", "failed", "failed", "ok", "failed"]
    assert made.rows[1].headline == "b.sqlite is damaged."
    assert made.rows[1].hint == "Export it again."
    assert "KeyError: 'start'" in made.rows[2].headline
    assert made.rows[4].headline == "There is no file gone.sqlite."
    assert [(item.done, item.total) for item in told] == [(k, 5) for k in range(1, 6)]
    assert "Traceback" in told[2].trace
    assert str(tmp_path) not in (tmp_path / "out" / "index.json").read_text()
    page = (tmp_path / "out" / "index.html").read_text()
    assert "b.sqlite is damaged." in page
    assert not (tmp_path / "out" / "runs" / "b.html").exists()
    Path(paths[1]).write_text("6000")
    assert [row.status for row in batch(paths).rows] == ["ok", "ok", "failed", "ok"]
    assert judge.seen == ["a.sqlite", "b.sqlite", "c.sqlite", "d.sqlite", "b.sqlite", "c.sqlite"]


def test_an_interrupted_batch_goes_on(tmp_path: Path, batch: Callable[..., Batch], judge: Judge) -> None:
    paths = exports(tmp_path / "in", a="4000", b="5000", c="6000")

    def interrupt(finished: Finished) -> None:
        if finished.done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        batch(paths, tell=interrupt)
    made = batch(paths)
    assert judge.seen == ["a.sqlite", "b.sqlite", "c.sqlite"]
    assert made.unchanged == ("a", "b")


def test_a_killed_batch_is_still_a_batch(
    tmp_path: Path, batch: Callable[..., Batch], monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = exports(tmp_path / "in", a="4000")
    saves = []
    original = BatchFolder.save

    def first_only(self: BatchFolder) -> None:
        if not saves:
            saves.append(1)
            original(self)

    monkeypatch.setattr(BatchFolder, "save", first_only)
    batch(paths)
    monkeypatch.setattr(BatchFolder, "save", original)
    assert [row.status for row in batch(paths).rows] == ["ok"]


def test_the_table_of_all_ops(tmp_path: Path, batch: Callable[..., Batch]) -> None:
    batch(
        exports(tmp_path / "in", tp1="4000", tp2="unjudged", tp3="unmodeled", x="bad"),
        label_from=["tp(?P<gpus>.)"],
    )
    whole = pd.read_parquet(tmp_path / "out" / "ops.parquet")
    pieces = [pd.read_parquet(tmp_path / "out" / "runs" / f"tp{k}.parquet") for k in (1, 2, 3)]
    assert len(whole) == sum(map(len, pieces)) > 0
    assert len(pieces[2]) == 0
    assert set(whole["run"]) == {"tp1", "tp2"}
    assert set(whole["label.gpus"]) == {"1", "2"}
    first = whole[whole["run"] == "tp1"]
    assert first["total_ns"].tolist() == pieces[0]["total_ns"].tolist()
    assert whole[whole["run"] == "tp2"]["floor_ns"].isna().all()
    assert set(whole["batch"]) == {1}
    assert {"op", "ratio", "excess_ns", "flags", "model", "run_dtype"} <= set(whole.columns)


def test_the_table_is_written_in_parts(
    tmp_path: Path, batch: Callable[..., Batch], monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyarrow.parquet as pq

    monkeypatch.setattr("nsysmodel.batch.pieces.ROWS", 20)
    batch(exports(tmp_path / "in", **{f"r{k}": "4000" for k in range(6)}))
    meta = pq.read_metadata(tmp_path / "out" / "ops.parquet")
    assert meta.num_row_groups > 1
    assert max(meta.row_group(k).num_rows for k in range(meta.num_row_groups)) < 60
    assert meta.num_rows == len(pd.read_parquet(tmp_path / "out" / "runs" / "r0.parquet")) * 6


def test_earlier_runs_are_hidden_kept_or_removed(
    tmp_path: Path, batch: Callable[..., Batch], judge: Judge
) -> None:
    old, new = exports(tmp_path / "in", a="4000", b="5000")
    batch([old], labels={"night": "1"})
    hidden = batch([new], labels={"night": "2"})
    assert ([row.name for row in hidden.rows], hidden.hidden) == (["b"], ("a",))
    os.remove(old)
    kept = batch([new], labels={"night": "2"}, keep=True)
    assert [(row.name, row.labels["night"]) for row in kept.rows] == [("b", "2"), ("a", "1")]
    assert len(pd.read_parquet(tmp_path / "out" / "ops.parquet")["run"].unique()) == 2
    assert judge.seen == ["a.sqlite", "b.sqlite"]
    batch([new], prune=True)
    assert not list((tmp_path / "out" / "runs").glob("a.*"))
    assert len(list((tmp_path / "out" / "runs").glob("b.*"))) == 3
    with pytest.raises(BatchUsageError):
        batch([new], prune=True, keep=True)


def test_kept_runs_stay_in_their_place(tmp_path: Path, batch: Callable[..., Batch]) -> None:
    paths = exports(tmp_path / "in", n1="4000", n2="5000", n3="6000")
    for path in paths:
        made = batch([path], keep=True)
    assert [row.name for row in made.rows] == ["n1", "n2", "n3"]
    Path(paths[0]).write_text("4100")
    assert [row.name for row in batch([paths[0]], keep=True).rows] == ["n1", "n2", "n3"]


def test_a_foreign_folder_is_refused_unless_forced(tmp_path: Path, batch: Callable[..., Batch]) -> None:
    paths = exports(tmp_path / "in", a="4000")
    out = tmp_path / "out"
    out.mkdir()
    (out / "mine.txt").write_text("mine")
    with pytest.raises(OutputError, match="files that no batch wrote"):
        batch(paths)
    assert [path.name for path in out.iterdir()] == ["mine.txt"]
    batch(paths, force=True)
    batch(paths)
    assert (out / "mine.txt").read_text() == "mine"


def test_nothing_outside_the_folder_is_touched(tmp_path: Path, batch: Callable[..., Batch]) -> None:
    paths = exports(tmp_path / "in", a="4000", b="bad")
    (tmp_path / "other.txt").write_text("x")
    before = tree(tmp_path)
    batch(paths)
    assert {name: item for name, item in tree(tmp_path).items() if not name.startswith("out/")} == before
    assert not [name for name in tree(tmp_path) if "/.nsysmodel-" in name]


def test_a_capture_is_never_written_over(tmp_path: Path, batch: Callable[..., Batch]) -> None:
    (tmp_path / "out").mkdir()
    capture = tmp_path / "out" / "ops.parquet"
    (tmp_path / "out" / "index.html").write_bytes(b"SQLite format 3\0 work of hours")
    with pytest.raises(OutputError, match="never written over"):
        batch(exports(tmp_path / "in", a="4000"), force=True)
    assert (tmp_path / "out" / "index.html").read_bytes().startswith(b"SQLite")
    assert capture.exists()


@pytest.mark.parametrize("name", ["../evil", "..", "a/b", ""])
def test_a_manifest_leads_nowhere(name: str, tmp_path: Path, batch: Callable[..., Batch]) -> None:
    paths = exports(tmp_path / "in", a="4000")
    batch(paths)
    manifest = tmp_path / "out" / MANIFEST
    data = json.loads(manifest.read_text())
    data["runs"][name] = {**data["runs"]["a"], "row": {**data["runs"]["a"]["row"], "name": name}}
    manifest.write_text(json.dumps(data))
    (tmp_path / "out" / "evil.html").write_text("stays")
    batch(paths, prune=True)
    assert (tmp_path / "out" / "evil.html").read_text() == "stays"
    assert list(json.loads(manifest.read_text())["runs"]) == ["a"]


def test_a_damaged_manifest_is_said(tmp_path: Path, batch: Callable[..., Batch]) -> None:
    paths = exports(tmp_path / "in", a="4000")
    batch(paths)
    manifest = tmp_path / "out" / MANIFEST
    manifest.write_text(manifest.read_text()[:120])
    with pytest.raises(BatchError, match="is damaged"):
        batch(paths)


def test_labels_change_the_page_and_not_the_results(
    tmp_path: Path, batch: Callable[..., Batch], judge: Judge
) -> None:
    paths = exports(tmp_path / "in", a="4000", b="5000")
    batch(paths)
    made = batch(paths, labels={"branch": "main"})
    assert made.common["branch"] == "main"
    assert len(judge.seen) == 2
    assert "branch main" in (tmp_path / "out" / "index.html").read_text()


def test_groups(tmp_path: Path, batch: Callable[..., Batch]) -> None:
    paths = exports(tmp_path / "in", a="4000", b="5000", c="9000")
    one = batch(paths)
    assert [(group.runs, group.median_ns) for group in one.groups] == [(("a", "b", "c"), 5_000_000)]
    two = batch(paths, label_from=["(?P<letter>[ab])[.]"], group_by=["letter"])
    assert [(group.title, group.runs) for group in two.groups] == [
        ("letter a", ("a",)),
        ("letter b", ("b",)),
        ("others", ("c",)),
    ]
    with pytest.raises(BatchUsageError, match="No run has 'colour'"):
        batch(paths, group_by=["colour"])


def test_scaling_law(tmp_path: Path, batch: Callable[..., Batch]) -> None:
    times = {f"tp{n}": str(round(1000 + 8000 / n + 20 * (n - 1))) for n in (1, 2, 4, 8)}
    paths = exports(tmp_path / "in", **times)
    assert batch(paths).scaling == ()
    (law,) = batch(paths, label_from=["tp(?P<gpus>[0-9]+)"]).scaling
    assert law.fit.parallel_fraction == pytest.approx(8 / 9, rel=1e-3)
    assert law.fit.per_device_ns == pytest.approx(20_000, rel=1e-2)
    assert law.fit.best_devices == pytest.approx(20, rel=1e-2)
    assert [point.gpus for point in law.points] == [1, 2, 4, 8]
    assert law.points[3].efficiency == pytest.approx(9000 / 2140 / 8)
    assert not law.fit.exact
    page = (tmp_path / "out" / "index.html").read_text()
    assert "Scaling over GPUs" in page
    assert "88.9" in page


def test_processes_give_the_same_bytes(tmp_path: Path) -> None:
    from fixtures.generations import build_generation

    folder = tmp_path / "in"
    folder.mkdir()
    for name in ("v3.16.1", "v3.24.18", "one-kernel"):
        build_generation(name, folder / f"{name}.sqlite")
    (folder / "bad.sqlite").write_text("no export")
    runs = plan([str(folder)])
    alone = run_batch(runs, tmp_path / "one")
    told: list[Finished] = []
    several = run_batch(runs, tmp_path / "two", jobs=2, tell=told.append)
    assert several.to_dict() == alone.to_dict()
    assert sorted(row.status for row in several.rows) == ["failed", "no_model", "no_model", "no_model"]
    one = {name: data for name, (_, data) in tree(tmp_path / "one").items() if name != MANIFEST}
    two = {name: data for name, (_, data) in tree(tmp_path / "two").items() if name != MANIFEST}
    assert [name for name in one if one[name] != two.get(name)] == []
    assert sorted(item.row.name for item in told) == sorted(run.name for run in runs)


@dataclasses.dataclass(frozen=True)
class Deadly:
    """Ends the process that unpickles it, as a kernel that is out of memory does."""

    def __reduce__(self) -> tuple[object, tuple[int]]:
        return os._exit, (9,)


def test_a_process_that_dies_costs_one_run(tmp_path: Path) -> None:
    paths = exports(tmp_path, a="x", b="x", c="x", d="x")
    tasks = [Task(PlannedRun(path, Path(path).stem), Request(), "") for path in paths]
    tasks[1] = dataclasses.replace(tasks[1], request=Request(model=Deadly()))  # type: ignore[arg-type]
    outcomes = {outcome.name: outcome for outcome in run_local(tasks, 2)}
    assert sorted(outcomes) == ["a", "b", "c", "d"]
    said = {name: outcome.row.headline for name, outcome in outcomes.items() if outcome.row}
    assert "the process that judged it died" in said.pop("b")
    assert set(said.values()) == {f"{name}.sqlite is text, not an export." for name in "acd"}
