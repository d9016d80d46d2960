"""Each hazard export holds the hazard that its name promises."""

from __future__ import annotations

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import feather, parquet

from fixtures.generations import build_generation, to_arrowdir, to_parquetdir
from fixtures.reading import connect, count, rows, table_names

KERNEL = "CUPTI_ACTIVITY_KIND_KERNEL"
RUNTIME = "CUPTI_ACTIVITY_KIND_RUNTIME"


@pytest.fixture
def export(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[sqlite3.Connection]:
    db = connect(build_generation(request.param, tmp_path / "trace.sqlite"))
    yield db
    db.close()


@pytest.mark.parametrize("export", ["two-processes-equal-correlation"], indirect=True)
def test_two_processes_share_correlation_ids(export: sqlite3.Connection) -> None:
    by_process: dict[object, set[object]] = defaultdict(set)
    for pid, call in rows(export, KERNEL, "globalPid", "correlationId"):
        by_process[pid].add(call)
    first, second = by_process.values()
    assert len(first & second) == 7


@pytest.mark.parametrize("export", ["class67"], indirect=True)
def test_class_67_doubles_every_call(export: sqlite3.Connection) -> None:
    classes = Counter(kind for (kind,) in rows(export, RUNTIME, "eventClass"))
    assert classes[67] == classes[0] == 10


@pytest.mark.parametrize("export", ["node-level"], indirect=True)
def test_graph_nodes_lead_to_their_capture(export: sqlite3.Connection) -> None:
    origin = dict(rows(export, "CUDA_GRAPH_NODE_EVENTS", "graphNodeId", "originalGraphNodeId"))
    time = dict(rows(export, "CUDA_GRAPH_NODE_EVENTS", "graphNodeId", "start"))
    ranges = rows(export, "NVTX_EVENTS", "start", "end", "text")
    launches = Counter(call for (call,) in rows(export, KERNEL, "correlationId"))
    assert sorted(launches.values()) == [6, 6, 6, 6]
    nodes = [node for (node,) in rows(export, KERNEL, "graphNodeId")][:6]
    found = []
    for node in nodes:
        while origin[node] is not None:
            node = origin[node]
        at = time[node]
        inside = [text for start, end, text in ranges if start <= at <= end]
        found.append(max(inside, key=len))
    assert found == [f"layers.{layer}.{role}" for layer in range(3) for role in ("norm", "mlp")]


@pytest.mark.parametrize("export", ["graph-level"], indirect=True)
def test_whole_graphs_have_no_kernels(export: sqlite3.Connection) -> None:
    launched = {call for (call,) in rows(export, "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", "correlationId")}
    assert len(launched) == 10
    assert not launched & {call for (call,) in rows(export, KERNEL, "correlationId")}


@pytest.mark.parametrize("export", ["um-migrations"], indirect=True)
def test_migrations_belong_to_no_stream(export: sqlite3.Connection) -> None:
    names = ("copyKind", "streamId", "contextId", "correlationId", "greenContextId", "migrationCause")
    moved = [row for row in rows(export, "CUPTI_ACTIVITY_KIND_MEMCPY", *names) if row[0] in (11, 12)]
    assert len(moved) == 6
    assert all(row[1:5] == (0, 0, 0, None) and row[5] in (2, 3) for row in moved)


@pytest.mark.parametrize("export", ["masked-ordinals"], indirect=True)
def test_masked_processes_all_use_device_0(export: sqlite3.Connection) -> None:
    assert {device for (device,) in rows(export, KERNEL, "deviceId")} == {0}
    mapped = dict(rows(export, "TARGET_INFO_CUDA_DEVICE", "pid", "gpuId"))
    assert sorted(mapped.values()) == [0, 1]


@pytest.mark.parametrize("export", ["gpu-metrics-clocks"], indirect=True)
def test_clock_samples_wrap_above_31_bits(export: sqlite3.Connection) -> None:
    values = {value for (value,) in rows(export, "GPU_METRICS", "value")}
    assert {1_980_000_000, 1_755_000_000, -1_768_172_296} <= values


def test_invalid_utf8_lies_in_the_file(tmp_path: Path) -> None:
    path = build_generation("non-utf8", tmp_path / "trace.sqlite")
    with pytest.raises(UnicodeDecodeError):
        path.read_bytes().decode()
    strict = sqlite3.connect(path)
    with pytest.raises(sqlite3.OperationalError, match="decode"):
        strict.execute("SELECT value FROM StringIds").fetchall()
    strict.close()


def test_wal_kernels_are_invisible_to_an_immutable_reader(tmp_path: Path) -> None:
    path = build_generation("wal", tmp_path / "trace.sqlite")
    assert (tmp_path / "trace.sqlite-wal").stat().st_size > 0
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["trace.sqlite", "trace.sqlite-wal"]
    ignoring = connect(path, immutable=True)
    assert count(ignoring, KERNEL) == 6
    ignoring.close()
    whole = sqlite3.connect(path)
    assert count(whole, KERNEL) == 12
    whole.close()


def test_truncated_file_is_damaged(tmp_path: Path) -> None:
    db = sqlite3.connect(build_generation("truncated", tmp_path / "trace.sqlite"))
    with pytest.raises(sqlite3.DatabaseError, match="malformed"):
        db.execute(f"SELECT count(*) FROM {KERNEL}").fetchall()
    db.close()


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_folder_forms_hold_the_same_rows(form: str, tmp_path: Path) -> None:
    path = build_generation("v3.16.1", tmp_path / "trace.sqlite")
    convert = to_parquetdir if form == "parquet" else to_arrowdir
    folder = convert(path, tmp_path / "folder")
    db = connect(path)
    assert {file.stem for file in folder.iterdir()} == set(table_names(db))
    file = folder / f"{KERNEL}.{form}"
    table = parquet.read_table(file) if form == "parquet" else feather.read_table(file)
    assert table.schema.field("streamId").type == pa.uint32()
    assert table.column("end").to_pylist() == [end for (end,) in rows(db, KERNEL, "end")]
    db.close()
