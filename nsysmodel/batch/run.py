"""A whole batch: plan, work, keep, show."""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path

from nsysmodel.batch.digest import options_digest
from nsysmodel.batch.folder import RUNS, BatchFolder
from nsysmodel.batch.grouping import check_keys, common, groups, headline
from nsysmodel.batch.pieces import write_all
from nsysmodel.batch.scaling import scaling
from nsysmodel.batch.types import Batch, BatchUsageError, Outcome, PlannedRun, Request, RunRow, Task
from nsysmodel.errors import NsysModelError, OutputError
from nsysmodel.workload import WorkloadRequest

PAGE, DATA, TABLE = "index.html", "index.json", "ops.parquet"
SAVE_EVERY_S = 1.0
"""How often the manifest is written while runs finish: what a killed batch does again at most."""


@dataclass(frozen=True, slots=True)
class Finished:
    """Progress: one more run is done."""

    row: RunRow
    unchanged: bool
    done: int
    total: int
    trace: str = ""


def run_batch(
    runs: Sequence[PlannedRun],
    folder: str | os.PathLike[str],
    request: Request | None = None,
    *,
    jobs: int = 1,
    dask: str | None = None,
    keep: bool = False,
    prune: bool = False,
    force: bool = False,
    group_by: Sequence[str] = (),
    tell: Callable[[Finished], None] = lambda _: None,
) -> Batch:
    """Judge every run that is not done already, and write the page, the data and the table of all ops.

    An export that gives no result is listed with its error; nothing stops the others. What is finished is on
    disk before the next one is taken, so an interrupted batch goes on where it was.

    Args:
        runs: from `plan`.
        folder: where everything is written, and nothing anywhere else.
        request: model, hardware and selection of all runs.
        jobs: processes on this machine. More than 1 starts new interpreters, so a script that calls this
            needs the usual `if __name__ == "__main__":`.
        dask: address of a scheduler whose workers do the work instead.
        keep: runs of earlier calls stay on the page, in their place.
        prune: results of runs that are not among `runs` are removed.
        force: write into a folder with files of someone else.
        group_by: facts or labels; without it the facts that make runs comparable.
        tell: called after each run.

    Raises:
        OutputError: the folder is not a batch's, or cannot be written.
        BatchError: the cluster cannot be reached or is lost.
        BatchUsageError: no run has a key to group by; `keep` and `prune` together.
    """
    if keep and prune:
        raise BatchUsageError("Earlier runs cannot be both kept on the page and removed.")
    request = request or Request()
    here = BatchFolder(folder)
    here.open(force=force)
    said = [*(run.labels for run in runs), *(entry.row.labels for entry in here.entries.values())]
    keys = check_keys(group_by, [key for labels in said for key in labels])
    rows, unchanged = _work(runs, here, request, jobs, dask, tell)
    given = {run.name for run in runs}
    earlier = [name for name in here.entries if name not in given]
    if prune:
        for name in earlier:
            here.remove(name)
        earlier = []
    order = [run.name for run in runs]
    if keep:
        order = [*here.entries, *(name for name in order if name not in here.entries)]
        earlier = []
    shown = tuple(rows[name] if name in rows else here.entries[name].row for name in order)
    here.entries = {name: here.entries[name] for name in [*order, *earlier] if name in here.entries}
    here.save()
    batch = _batch(shown, keys, unchanged, [run.name for run in runs], earlier)
    _write(here, batch)
    return batch


def _work(
    runs: Sequence[PlannedRun], here: BatchFolder, request: Request, jobs: int, dask: str | None,
    tell: Callable[[Finished], None],
) -> tuple[dict[str, RunRow], set[str]]:  # fmt: skip
    """Rows of all runs by name, each stored as it comes; and names of those that were done already."""
    planned = {run.name: run for run in runs}
    rows: dict[str, RunRow] = {}
    unchanged: set[str] = set()
    saved = time.monotonic()
    try:
        with closing(_outcomes(_tasks(runs, here, request), jobs, dask)) as outcomes:
            for outcome in outcomes:
                row = _kept(outcome, planned[outcome.name], here)
                rows[row.name] = row
                if outcome.unchanged:
                    unchanged.add(row.name)
                if time.monotonic() - saved > SAVE_EVERY_S:
                    here.save()
                    saved = time.monotonic()
                tell(Finished(row, outcome.unchanged, len(rows), len(runs), outcome.trace))
    finally:
        here.save()
    return rows, unchanged


def _kept(outcome: Outcome, run: PlannedRun, here: BatchFolder) -> RunRow:
    """The row of an outcome, its files stored."""
    if outcome.unchanged or outcome.row is None:
        entry = here.entries[outcome.name]
        # Labels are no part of the result: they may be new though the result is not.
        row = replace(entry.row, labels=dict(run.labels))
        here.entries[outcome.name] = replace(entry, row=row)
        return row
    if outcome.row.status != "failed":
        here.store(outcome.key, outcome.row, outcome.files)
    return outcome.row


def _tasks(runs: Sequence[PlannedRun], here: BatchFolder, request: Request) -> Iterator[Task]:
    options: dict[WorkloadRequest, str] = {}
    for run in runs:
        if run.workload not in options:
            options[run.workload] = options_digest(request, run.workload, version("nsysmodel"))
        yield Task(run, request, options[run.workload], here.good_key(run.name))


def _outcomes(tasks: Iterator[Task], jobs: int, dask: str | None) -> Generator[Outcome, None, None]:
    if dask is not None:
        from nsysmodel.batch.cluster import run_cluster

        return run_cluster(tasks, dask)
    from nsysmodel.batch.local import run_local

    return run_local(tasks, jobs)


def _batch(
    rows: tuple[RunRow, ...], keys: Sequence[str], unchanged: set[str], done: list[str],
    hidden: list[str],
) -> Batch:  # fmt: skip
    failed = {row.name for row in rows if row.status == "failed"}
    shared, varying = common(rows)
    return Batch(
        version=version("nsysmodel"),
        rows=rows,
        common=shared,
        varying=varying,
        groups=groups(rows, keys),
        scaling=scaling(rows),
        headline=headline(rows),
        evaluated=tuple(name for name in done if name not in unchanged and name not in failed),
        unchanged=tuple(name for name in done if name in unchanged),
        hidden=tuple(hidden),
    )


def _write(here: BatchFolder, batch: Batch) -> None:
    """The table of all ops, the data, the page: each only where it is not as it should be."""
    from nsysmodel.report.batch_html import render_batch

    labels = sorted({key for row in batch.rows for key in row.labels})
    handle, temporary = tempfile.mkstemp(prefix=".nsysmodel-", dir=here.path)
    os.close(handle)
    try:
        write_all(temporary, batch.rows, lambda name: here.read(name, ".parquet"), labels)
        _replace(Path(temporary), here.path / TABLE)
    except OSError as error:
        raise OutputError(f"{here.path / TABLE} cannot be written: {error.strerror}.") from error
    finally:
        Path(temporary).unlink(missing_ok=True)
    try:
        text = json.dumps(batch.to_dict(), indent=1, allow_nan=False) + "\n"
    except ValueError as error:
        raise NsysModelError("The batch holds a number that JSON cannot carry.") from error
    here.write(DATA, text.encode("utf-8"))
    here.write(PAGE, render_batch(batch, RUNS, DATA, TABLE).encode("utf-8"))


def _replace(new: Path, old: Path) -> None:
    """`new` takes the place of `old` unless they are equal; neither is read whole."""
    import filecmp

    if old.is_file() and filecmp.cmp(new, old, shallow=False):
        return
    mode = old.stat().st_mode if old.is_file() else 0o666 & ~_umask()
    os.chmod(new, mode)
    os.replace(new, old)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
