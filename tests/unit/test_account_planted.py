"""Gaps planted into labelled decodes: each cause, of known length, is found again where it was put."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fixtures.decodes import generate
from fixtures.decodes_cases import CASES
from nsysmodel import evaluate
from nsysmodel.result import GAP_CAUSES, Evaluation
from nsysmodel.workload import WorkloadRequest

LENGTH = 300_000
STEPS = 5
KERNELS, CALLS = "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME"


@dataclass(frozen=True)
class Place:
    """Where a gap is planted: device and host work from these times on is late by `LENGTH`."""

    device: int
    host: int


@dataclass(frozen=True)
class Step:
    """A step of the decode: its first kernel, its call, a kernel and its launch in the middle."""

    first: int
    call: int
    middle: int
    before_first: int


def steps_of(labels: pd.DataFrame, path: Path) -> list[Step]:
    with closing(sqlite3.connect(path)) as db:
        launched = dict(db.execute(f"SELECT correlationId, start FROM {CALLS}"))
        rows = db.execute(f'SELECT start, "end", correlationId FROM {KERNELS} ORDER BY start').fetchall()
    found = []
    for _, group in labels.groupby("step"):
        inside = group[group["layer"] >= 0].sort_values("start_ns")
        first = int(group["start_ns"].min())
        index = next(i for i, row in enumerate(rows) if row[0] == first)
        ended = max((row[1] for row in rows[:index]), default=0)
        middle = int(inside["start_ns"].iloc[len(inside) // 2])
        found.append(Step(first, launched[rows[index][2]], middle, ended))
    return found


def shift(path: Path, places: Sequence[Place]) -> None:
    with closing(sqlite3.connect(path)) as db:
        for table, times in ((KERNELS, [p.device for p in places]), (CALLS, [p.host for p in places])):
            rows = db.execute(f"SELECT rowid, start FROM {table}").fetchall()
            late = np.searchsorted(sorted(times), [start for _, start in rows], side="right") * LENGTH
            changes = [(int(ns), int(ns), row) for (row, _), ns in zip(rows, late, strict=True)]
            db.executemany(
                f'UPDATE {table} SET start = start + ?, "end" = "end" + ? WHERE rowid = ?', changes
            )
        db.commit()


def host_waits(path: Path, spans: Sequence[tuple[int, int]]) -> None:
    """Synchronise calls of the launching thread."""
    with closing(sqlite3.connect(path)) as db:
        name = db.execute("SELECT max(id) + 1 FROM StringIds").fetchone()[0]
        db.execute("INSERT INTO StringIds (id, value) VALUES (?, 'cudaStreamSynchronize_v3020')", (name,))
        thread, kind = db.execute(f"SELECT globalTid, eventClass FROM {CALLS}").fetchone()
        db.executemany(
            f'INSERT INTO {CALLS} (start, "end", eventClass, globalTid, correlationId, nameId, returnValue) '
            "VALUES (?, ?, ?, ?, ?, ?, 0)",
            [(a, b, kind, thread, 9_000_000 + i, name) for i, (a, b) in enumerate(spans)],
        )
        db.commit()


def profiler_work(path: Path, spans: Sequence[tuple[int, int]]) -> None:
    """Overhead of the profiler on the launching thread."""
    with closing(sqlite3.connect(path)) as db:
        name = db.execute("SELECT max(id) + 1 FROM StringIds").fetchone()[0]
        db.execute("INSERT INTO StringIds (id, value) VALUES (?, 'CUPTI Buffer flush')", (name,))
        thread = db.execute(f"SELECT globalTid FROM {CALLS}").fetchone()[0]
        db.execute("DROP TABLE IF EXISTS PROFILER_OVERHEAD")
        db.execute(
            'CREATE TABLE PROFILER_OVERHEAD (start INTEGER, "end" INTEGER, globalTid INTEGER, '
            "correlationId INTEGER, nameId INTEGER, returnValue INTEGER)"
        )
        db.executemany(
            "INSERT INTO PROFILER_OVERHEAD VALUES (?, ?, ?, NULL, ?, 0)",
            [(a, b, thread, name) for a, b in spans],
        )
        db.commit()


def forget_calls(path: Path, starts: Sequence[int]) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.executemany(f"DELETE FROM {CALLS} WHERE start = ?", [(start,) for start in starts])
        db.commit()


def at_edges(steps: Sequence[Step]) -> list[Place]:
    return [Place(step.first, step.call) for step in steps[1:]]


def in_middles(steps: Sequence[Step]) -> list[Place]:
    """The device is late, the host was not: only what the next step's host does moves along."""
    after = [*(step.call for step in steps[1:]), 1 << 60]
    return [Place(step.middle, call) for step, call in zip(steps, after, strict=True)]


def edge_spans(steps: Sequence[Step]) -> list[tuple[int, int]]:
    """The planted times before each step but the first, on the shifted clock."""
    return [
        (step.before_first + LENGTH * index, step.before_first + LENGTH * (index + 1))
        for index, step in enumerate(steps[1:])
    ]


def starved(path: Path, steps: Sequence[Step]) -> None:
    shift(path, at_edges(steps))


def synced(path: Path, steps: Sequence[Step]) -> None:
    shift(path, at_edges(steps))
    host_waits(path, edge_spans(steps))


def profiled(path: Path, steps: Sequence[Step]) -> None:
    shift(path, at_edges(steps))
    profiler_work(path, edge_spans(steps))


def late(path: Path, steps: Sequence[Step]) -> None:
    shift(path, in_middles(steps))


PLANTED: dict[str, tuple[str, Callable[[Path, Sequence[Step]], None]]] = {
    "launch_starved": ("vllm-dense-llama-8b", starved),
    "sync": ("vllm-dense-llama-8b", synced),
    "profiler": ("vllm-dense-llama-8b", profiled),
    "inside_graph": ("vllm-dense-llama-8b", late),
    "dependency": ("vllm-dense-llama-8b+eager", late),
}


def judged(path: Path, case: str) -> Evaluation:
    options = CASES[case].options
    workload = WorkloadRequest(batch=options["batch"], context=options["context"])
    found = evaluate(path, str(path.with_suffix(".config.json")), workload=workload)
    assert found.verdict.status == "ok", found.verdict
    (device,) = found.devices
    assert sum(part.total_ns for part in device.waterfall) == device.window_total_ns
    return found


@pytest.mark.parametrize("cause", PLANTED)
def test_planted_gaps_are_found(cause: str, tmp_path: Path) -> None:
    name, plant = PLANTED[cause]
    clean, path = tmp_path / "clean.sqlite", tmp_path / "planted.sqlite"
    case = replace(CASES[name], steps=STEPS)
    labels = generate(case, clean, 3)
    generate(case, path, 3)
    plant(path, steps_of(labels, clean))
    before, after = (judged(one, name).devices[0] for one in (clean, path))
    assert before.steps.used_indices == after.steps.used_indices
    used = after.steps.used_indices
    expected = LENGTH * sum(
        1 for index in used if cause in ("inside_graph", "dependency") or index < STEPS - 1
    )
    grown = {name: after.gaps.by_cause[name] - before.gaps.by_cause[name] for name in GAP_CAUSES}
    assert grown[cause] == pytest.approx(expected, rel=0.02)
    others = {name: ns for name, ns in grown.items() if name != cause}
    assert all(abs(ns) <= 0.02 * expected for ns in others.values()), others
    assert after.gaps.by_size["50-500us"].total_ns >= expected


def test_gap_before_a_launch_that_was_not_recorded(tmp_path: Path) -> None:
    name = "vllm-dense-llama-8b+eager"
    path = tmp_path / "planted.sqlite"
    labels = generate(replace(CASES[name], steps=STEPS), path, 3)
    steps = steps_of(labels, path)
    gaps = [step.first - step.before_first for step in steps[1:]]
    shift(path, at_edges(steps))
    forget_calls(path, [step.call + LENGTH * (index + 1) for index, step in enumerate(steps[1:])])
    device = judged(path, name).devices[0]
    used = [index for index in device.steps.used_indices if index < STEPS - 1]
    expected = sum(LENGTH + gaps[index] for index in used)
    assert device.gaps.by_cause["unknown"] == pytest.approx(expected, rel=0.02)


def test_json_of_the_median_step_adds_up(tmp_path: Path) -> None:
    name = "vllm-dense-llama-8b"
    path = tmp_path / "a.sqlite"
    generate(replace(CASES[name], steps=STEPS), path, 3)
    device = json.loads(json.dumps(judged(path, name).to_dict()))["devices"][0]
    median = device["median_step"]
    assert median["step"] in device["steps"]["used_indices"]
    assert sum(part["total_ns"] for part in median["waterfall"]) == median["window_ns"]
    assert abs(median["window_ns"] - device["steps"]["median_ns"]) <= 0.02 * median["window_ns"]
