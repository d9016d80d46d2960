"""Writes large exports: decode steps of Qwen3-30B-A3B, with API calls, NVTX ranges and CUDA graphs.

python benchmarks/generate.py 5000000 big.sqlite                 each kernel launched by its own call
python benchmarks/generate.py 5000000 big.sqlite --graphs node   nodes of one graph per step

Schema, strings, metadata and the kernels of a step are those of the fixtures; times, ids and rows are
computed with numpy and written in bulk. An export measures nothing, and says so.
"""

from __future__ import annotations

import argparse
import sqlite3
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from fixtures import qwen3_kernels as qwen3  # noqa: E402
from fixtures.rows import global_pid, global_tid, mangled_name, short_name  # noqa: E402
from fixtures.schema import columns, ddl  # noqa: E402
from fixtures.writer import ExportWriter  # noqa: E402

PID = 20481
STREAM = 7
TICK = 32
FIRST_NS = 12_000_000_000
HOST_NS, GRAPH_NS, LATENCY_NS, GAP_NS, STEP_HOST_NS = 3_400, 420_000, 5_200, 620, 104_000
COPY_OUT_NS, WAKE_NS = 2_000, 5_600
GRAPH_ID, EXEC_ID = 4, 5
STEPS_AT_ONCE = 256
CALLS = ("cudaLaunchKernel_v7000", "cuLaunchKernelEx", "cudaLaunchKernelExC_v11060")
KERNEL, RUNTIME, MEMCPY = (f"CUPTI_ACTIVITY_KIND_{kind}" for kind in ("KERNEL", "RUNTIME", "MEMCPY"))
SYNC = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"

Columns = dict[str, Any]
"""Arrays of one length, or single values that every row has."""


@dataclass(frozen=True, slots=True)
class Step:
    """The kernels of one step: constant columns, and how they are launched."""

    columns: Columns
    duration_ns: np.ndarray
    in_graph: np.ndarray
    layer: np.ndarray

    @property
    def size(self) -> int:
        return len(self.duration_ns)


def one_step(writer: ExportWriter, *, graphs: bool) -> Step:
    """The kernels of a decode step, in order."""
    inner = qwen3.graph()
    kernels = [*((None, spec) for spec in qwen3.HEAD), *inner, *((None, spec) for spec in qwen3.TAIL)]
    specs = [spec for _, spec in kernels]
    short = [short_name(spec.name) for spec in specs]
    inside = np.zeros(len(specs), dtype=bool)
    if graphs:
        inside[len(qwen3.HEAD) : len(qwen3.HEAD) + len(inner)] = True
    symbols = [mangled_name(spec.name, base) for spec, base in zip(specs, short, strict=True)]
    found: Columns = {
        "demangledName": [writer.string(spec.name) for spec in specs],
        "shortName": [writer.string(base) for base in short],
        "mangledName": [writer.string(symbol) for symbol in symbols],
        "registersPerThread": [spec.registers for spec in specs],
        "dynamicSharedMemory": [spec.shared for spec in specs],
        "sharedMemoryExecuted": [233472 if spec.shared > 65536 else 32768 for spec in specs],
        "sharedMemoryLimitConfig": [int(spec.shared > 49152) for spec in specs],
    }
    for axis, at in zip("XYZ", range(3), strict=True):
        found[f"grid{axis}"] = [spec.grid[at] for spec in specs]
        found[f"block{axis}"] = [spec.block[at] for spec in specs]
    return Step(
        {name: np.array(values, dtype=np.int64) for name, values in found.items()},
        np.array([spec.time_us * 1000 for spec in specs]),
        inside,
        np.array([-1 if layer is None else layer for layer, _ in kernels]),
    )


class Timeline:
    """The clocks of host and device, advanced some steps at a time."""

    def __init__(self, step: Step, names: dict[str, int], seed: int) -> None:
        self.step = step
        self.names = names
        self.random = np.random.default_rng(seed)
        self.host_ns = FIRST_NS
        self.correlation = 0
        self.grid = 0
        leader = np.ones(step.size, dtype=bool)
        leader[1:] = ~(step.in_graph[1:] & step.in_graph[:-1])
        self.leader = leader
        # Three copies in before the first launch, one out and a wait after the last.
        self.calls_per_step = int(leader.sum()) + 5

    def advance(self, steps: int) -> dict[str, Columns]:
        """Rows of the next steps, by table.

        The host waits for the end of each step, so the steps are computed from their own start on, all at
        once, and then laid one behind the other.
        """
        calls = self._host(steps)
        kernels = self._kernels(steps, calls)
        size, per = self.step.size, self.calls_per_step
        done = kernels["end"].reshape(steps, size)[:, -1] + COPY_OUT_NS
        ends = calls["end"].reshape(steps, per)
        ends[:, -1] = np.maximum(ends[:, -1], done + WAKE_NS)
        length = ends[:, -1]
        base = self.host_ns + np.cumsum(length) - length
        self.host_ns = int(base[-1] + length[-1])
        for rows, count in ((calls, per), (kernels, size)):
            for name in ("start", "end"):
                rows[name] = rows[name] + np.repeat(base, count)
        copies = self._copies(steps, calls, kernels)
        waits = self._waits(calls)
        ranges = self._ranges(steps, calls)
        calls.pop("kind")
        return {RUNTIME: calls, KERNEL: kernels, MEMCPY: copies, SYNC: waits, "NVTX_EVENTS": ranges}

    def _host(self, steps: int) -> Columns:
        """API calls in order, copies in, launches, copy out, wait; times from the start of their step."""
        per, leaders = self.calls_per_step, int(self.leader.sum())
        kind = np.tile(np.repeat([0, 1, 2, 3], [3, leaders, 1, 1]), steps)
        graph = np.zeros(per, dtype=bool)
        graph[3 : 3 + leaders] = self.step.in_graph[self.leader]
        graph = np.tile(graph, steps)
        cost = HOST_NS * (0.85 + 0.3 * self.random.random(len(kind)))
        cost = np.where(graph, GRAPH_NS, cost).astype(np.int64)
        pause = np.full(len(kind), 400)
        pause[::per] += STEP_HOST_NS
        ends = np.cumsum((cost + pause).reshape(steps, per), axis=1).ravel()
        name = self.random.integers(0, len(CALLS), len(kind))
        ids = np.array([self.names[text] for text in CALLS])[name]
        named = np.select(
            [graph, (kind == 0) | (kind == 2), kind == 3],
            [self.names["graph"], self.names["copy"], self.names["sync"]],
            ids,
        )
        correlation = self.correlation + np.cumsum(1 + self.random.integers(0, 3, len(kind)))
        self.correlation = int(correlation[-1])
        driver = (kind == 1) & ~graph & (name == 1)
        return {
            "start": ends - cost,
            "end": ends,
            "eventClass": driver.astype(np.int64),
            "globalTid": global_tid(PID, PID),
            "correlationId": correlation,
            "nameId": named,
            "returnValue": 0,
            "kind": kind,
        }

    def _kernels(self, steps: int, calls: Columns) -> Columns:
        """Kernels in order, times from the start of their step."""
        step, count = self.step, self.step.size * steps
        launch = np.flatnonzero(calls["kind"] == 1)
        which = launch[np.cumsum(np.tile(self.leader, steps)) - 1]
        jitter = 0.975 + 0.05 * self.random.random(count)
        duration = np.maximum(TICK, np.round(np.tile(step.duration_ns, steps) * jitter / TICK) * TICK)
        duration = duration.astype(np.int64)
        gap = (np.round(GAP_NS * (0.7 + 0.6 * self.random.random(count)) / TICK) * TICK).astype(np.int64)
        ready = -(-(calls["start"][which] + LATENCY_NS) // TICK) * TICK
        # Each kernel starts when it is ready and the one before it is done: a running maximum.
        before = np.cumsum((duration + gap).reshape(steps, -1), axis=1) - (duration + gap).reshape(steps, -1)
        waited = np.maximum.accumulate(ready.reshape(steps, -1) - before, axis=1)
        start = (before + waited).ravel()
        grid = self.grid + 1 + np.arange(count)
        self.grid += count
        inside = np.tile(step.in_graph, steps)
        node = np.where(inside, (EXEC_ID << 32) | np.tile(np.arange(step.size), steps), -1)
        return {
            **{name: np.tile(values, steps) for name, values in step.columns.items()},
            "start": start,
            "end": start + duration,
            "deviceId": 0,
            "contextId": 1,
            "greenContextId": 0,
            "streamId": STREAM,
            "correlationId": calls["correlationId"][which],
            "globalPid": global_pid(PID),
            "launchType": 1,
            "cacheConfig": 1,
            "staticSharedMemory": 0,
            "localMemoryPerThread": 0,
            "localMemoryTotal": 205258752,
            "gridId": grid,
            "graphNodeId": node if inside.any() else None,
        }

    def _copies(self, steps: int, calls: Columns, kernels: Columns) -> Columns:
        """Small copies in just before a step's first kernel, out just after its last."""
        at = np.flatnonzero((calls["kind"] == 0) | (calls["kind"] == 2))
        into = calls["kind"][at] == 0
        size = self.step.size
        first, last = kernels["start"][::size], kernels["end"][size - 1 :: size]
        start = np.stack([first - 5000, first - 3500, first - 2000, last + 600], axis=1).ravel()
        return {
            "start": start,
            "end": start + np.where(into, 960, 1344),
            "deviceId": 0,
            "contextId": 1,
            "greenContextId": 0,
            "streamId": STREAM,
            "correlationId": calls["correlationId"][at],
            "globalPid": global_pid(PID),
            "bytes": np.tile([8, 8, 1032, 8], steps),
            "copyKind": np.where(into, 1, 2),
            "srcKind": np.where(into, 1, 2),
            "dstKind": np.where(into, 2, 1),
        }

    def _waits(self, calls: Columns) -> Columns:
        """What the profiler records of the wait at the end of each step."""
        at = np.flatnonzero(calls["kind"] == 3)
        return {
            "start": calls["start"][at] + 300,
            "end": calls["end"][at] - 200,
            "deviceId": 0,
            "contextId": 1,
            "streamId": STREAM,
            "correlationId": calls["correlationId"][at],
            "globalPid": global_pid(PID),
            "syncType": 2,
            "eventId": 4294967295,
        }

    def _ranges(self, steps: int, calls: Columns) -> Columns:
        """One range per step around its calls, as the engine names it, and one per layer where calls tell."""
        per = self.calls_per_step
        starts, ends = [calls["start"][::per] - 200], [calls["end"][per - 1 :: per] + 200]
        texts = [np.full(steps, self.names["step"])]
        leading = self.step.layer[self.leader]
        for layer in range(int(leading.max()) + 1):
            rows = 3 + np.flatnonzero(leading == layer)
            starts.append(calls["start"][rows[0] :: per] - 100)
            ends.append(calls["end"][rows[-1] :: per] + 100)
            texts.append(np.full(steps, self.names["layer"] + layer))
        start = np.concatenate(starts)
        order = np.argsort(start, kind="stable")
        return {
            "start": start[order],
            "end": np.concatenate(ends)[order],
            "eventType": 59,
            "textId": np.concatenate(texts)[order],
            "globalTid": global_tid(PID, PID),
            "domainId": 0,
        }


def insert(db: sqlite3.Connection, table: str, version: tuple[int, int, int], rows: Columns) -> int:
    """Writes rows; single values stand for every row, −1 in a graph node for none."""
    names = [column.name for column in columns(table, version)]
    count = max(len(values) for values in rows.values() if isinstance(values, np.ndarray))
    lists = []
    for name in names:
        values = rows.get(name)
        if not isinstance(values, np.ndarray):
            lists.append([values] * count)
        elif name == "graphNodeId":
            lists.append([None if value < 0 else value for value in values.tolist()])
        else:
            lists.append(values.tolist())
    marks = ", ".join("?" for _ in names)
    db.executemany(f"INSERT INTO {table} VALUES ({marks})", zip(*lists, strict=True))
    return count


def _blocks(steps: int) -> Iterator[int]:
    while steps > 0:
        yield min(steps, STEPS_AT_ONCE)
        steps -= STEPS_AT_ONCE


def _base(path: Path, kernels: int, *, graphs: bool, seed: int) -> tuple[ExportWriter, Timeline, int]:
    """The small tables; returns what writes the rest."""
    writer = ExportWriter(path, schema="3.16.1", seed=seed, mode="Node")
    writer.gpu("NVIDIA GH200 480GB")
    writer.process(PID, "VLLM::EngineCore")
    step = one_step(writer, graphs=graphs)
    names = {text: writer.string(text) for text in CALLS}
    names["graph"] = writer.string("cudaGraphLaunch_v10000")
    names["copy"] = writer.string("cudaMemcpyAsync_v3020")
    names["sync"] = writer.string("cudaStreamSynchronize_v3020")
    names["step"] = writer.string("execute_context_0(0)_generation_1(1)")
    names["layer"] = writer.string("layer 0")
    for layer in range(1, qwen3.LAYERS):
        writer.string(f"layer {layer}")
    steps = max(1, round(kernels / step.size))
    timeline = Timeline(step, names, seed)
    writer.claim = steps * (step.size + timeline.calls_per_step + 4)
    # One call of its own, so that the diagnostics count events at all.
    writer.api(FIRST_NS - 40_000, FIRST_NS - 30_000, "cudaMalloc_v3020", correlation=1)
    timeline.correlation = 1
    writer.finish()
    return writer, timeline, steps


def build(path: str | Path, kernels: int, *, graphs: bool = False, seed: int = 30) -> dict[str, int]:
    """Writes an export with about this many kernels (whole steps); returns the rows by table."""
    path = Path(path)
    writer, timeline, steps = _base(path, kernels, graphs=graphs, seed=seed)
    db = sqlite3.connect(path, isolation_level=None)
    db.executescript("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; BEGIN")
    known = {name for (name,) in db.execute("SELECT name FROM sqlite_master")}
    written: dict[str, int] = {}
    for block in _blocks(steps):
        for table, rows in timeline.advance(block).items():
            if table not in known:
                db.execute(ddl(table, writer.version))
                known.add(table)
            written[table] = written.get(table, 0) + insert(db, table, writer.version, rows)
    length = timeline.host_ns + 2_000_000
    db.execute("UPDATE ANALYSIS_DETAILS SET duration = ?, stopTime = startTime + ?", (length, length))
    db.execute("UPDATE DIAGNOSTIC_EVENT SET timestamp = ? WHERE timestamp > ?", (length, FIRST_NS))
    db.execute("COMMIT")
    db.close()
    return written


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("kernels", type=int, help="about how many kernels; whole steps are written")
    parser.add_argument("path", type=Path)
    parser.add_argument("--graphs", choices=["none", "node"], default="none")
    parser.add_argument("--seed", type=int, default=30)
    options = parser.parse_args()
    for table, rows in build(
        options.path, options.kernels, graphs=options.graphs == "node", seed=options.seed
    ).items():
        print(f"{table:40s} {rows:>10d}")


if __name__ == "__main__":
    main()
