"""The same batch on a real Dask cluster over TCP: same bytes, and a worker that dies loses nothing."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fixtures.generations import build_generation
from nsysmodel.batch.folder import MANIFEST
from nsysmodel.batch.plan import plan
from nsysmodel.batch.run import Finished, run_batch
from nsysmodel.batch.types import BatchError, Outcome, PlannedRun, Request, Task
from nsysmodel.batch.work import perform

distributed = pytest.importorskip("distributed", reason="Dask is not installed: pip install nsysmodel[dask]")

pytestmark = [
    pytest.mark.dask,
    pytest.mark.skipif(sys.platform == "win32", reason="ends workers by signal"),
]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Two workers in processes of their own, reached over TCP; one that dies is started anew."""
    import dask

    settings = dask.config.set({"distributed.scheduler.allowed-failures": 1})
    with settings, distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, protocol="tcp://",
        dashboard_address="127.0.0.1:0", silence_logs=50,
    ) as running:  # fmt: skip
        yield running


@pytest.fixture
def captures(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    folder.mkdir()
    for name in ("v3.4.0", "v3.11.1", "v3.16.1", "v3.24.18", "one-kernel", "zero-duration"):
        build_generation(name, folder / f"{name}.sqlite")
    (folder / "bad.sqlite").write_text("no export")
    return folder


def outputs(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != MANIFEST
    }


def test_a_worker_killed_midway_loses_nothing(cluster: Any, captures: Path, tmp_path: Path) -> None:
    runs = plan([str(captures)])
    killed: list[int] = []
    with distributed.Client(cluster.scheduler_address, set_as_default=False) as watcher:
        pids = watcher.run(os.getpid)

        def kill_one_at_work(finished: Finished) -> None:
            if not killed:
                busy = [worker for worker, keys in watcher.processing().items() if keys]
                killed.append(pids[busy[0]])
                os.kill(pids[busy[0]], signal.SIGKILL)

        made = run_batch(runs, tmp_path / "far", dask=cluster.scheduler_address, tell=kill_one_at_work)
        watcher.wait_for_workers(2, timeout=60)
        assert killed[0] not in watcher.run(os.getpid).values()
    assert [row.status for row in made.rows].count("failed") == 1
    assert made.failed[0].headline == "bad.sqlite is text, not an export."
    near = run_batch(runs, tmp_path / "near")
    assert made.to_dict() == near.to_dict()
    here, there = outputs(tmp_path / "near"), outputs(tmp_path / "far")
    assert [name for name in here if here[name] != there.get(name)] == []
    again = run_batch(runs, tmp_path / "far", dask=cluster.scheduler_address)
    assert len(again.unchanged) == len(runs) - 1


def _deadly(task: Task) -> Outcome:
    if task.run.name == "deadly":
        os._exit(9)
    return perform(task)


def test_a_run_that_kills_its_workers_is_given_up(
    cluster: Any, captures: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from nsysmodel.batch.cluster import run_cluster

    monkeypatch.setattr("nsysmodel.batch.cluster.perform", _deadly)
    paths = [str(path) for path in sorted(captures.glob("v3*"))]
    names = ["deadly", *(f"good{k}" for k in range(1, len(paths)))]
    tasks = [Task(PlannedRun(path, name), Request(), "") for path, name in zip(paths, names, strict=True)]
    found = {item.name: item for item in run_cluster(tasks, cluster.scheduler_address)}
    assert sorted(found) == sorted(names)
    assert found["deadly"].row is not None
    assert "every worker that judged it died" in found["deadly"].row.headline
    assert {found[name].row.status for name in names[1:]} == {"no_model"}  # type: ignore[union-attr]


def test_no_scheduler_and_no_worker_are_said(captures: Path) -> None:
    from nsysmodel.batch.cluster import run_cluster

    with pytest.raises(BatchError, match="No Dask scheduler answers"):
        list(run_cluster([], "tcp://127.0.0.1:9", timeout_s=1))
    with (
        distributed.LocalCluster(
            n_workers=0, protocol="tcp://", dashboard_address="127.0.0.1:0", silence_logs=50
        ) as empty,
        pytest.raises(BatchError, match="has no worker"),
    ):
        list(run_cluster([], empty.scheduler_address, timeout_s=1))


def test_another_version_on_the_workers_is_said(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from nsysmodel.batch.cluster import run_cluster

    monkeypatch.setattr("nsysmodel.batch.cluster.installed_version", _old_version)
    with pytest.raises(BatchError, match=r"workers lack nsysmodel here-\d+"):
        list(run_cluster([], cluster.scheduler_address))


def _old_version() -> str:
    return f"here-{os.getpid()}"
