"""Rules that every synthetic export keeps, and the columns of each schema version."""

from __future__ import annotations

import re
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from fixtures.generations import GENERATIONS, VERSIONS, build_generation
from fixtures.reading import connect, count, declared, metadata, rows, table_names
from fixtures.rows import NONE
from fixtures.schema import PROFILES, columns, parse_version
from fixtures.target import SYNTHETIC, SYNTHETIC_KEY, sync_type

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
TRACES = FIXTURES.parents[1] / "shared" / "traces"
KERNEL = "CUPTI_ACTIVITY_KIND_KERNEL"
RUNTIME = "CUPTI_ACTIVITY_KIND_RUNTIME"

READABLE = sorted(set(GENERATIONS) - {"nvprof", "foreign", "truncated"})
UNORDERED = {"shuffled", "text-integers", "wal"}
UNLINKED = {"no-launches", "dangling-string", "reversed-times", "enum-gaps", "text-integers"}


@pytest.fixture
def export(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[sqlite3.Connection]:
    db = connect(build_generation(request.param, tmp_path / "trace.sqlite"))
    yield db
    db.close()


@pytest.mark.parametrize(
    ("schema", "number"),
    [
        ("gen-1", 25),
        ("2.9.1", 27),
        ("3.4.0", 27),
        ("3.11.1", 28),
        ("3.16.1", 28),
        ("3.24.18", 40),
        ("3.25.0", 40),
    ],
)
def test_kernel_columns_of_each_version(schema: str, number: int) -> None:
    names = [column.name for column in columns(KERNEL, parse_version(schema))]
    assert len(names) == number
    assert names[:4] == ["start", "end", "deviceId", "contextId"]
    if number >= 28:
        assert names[4:6] == ["greenContextId", "streamId"]
    if number == 40:
        assert names[-1] == "tensorSizeMinusOneElements"


@pytest.mark.real
@pytest.mark.parametrize(
    ("schema", "trace"),
    [
        ("gen-1", "openmp-2020-schema"),
        ("3.4.0", "mig-a30"),
        ("3.4.0", "no-kernel-table-wsl2-rtx4060"),
        ("3.11.1", "conv3d-crossstream-rtx4090"),
        ("3.16.1", "dense2.7b-forward-nvtx-a100"),
        ("3.16.1", "dense2.7b-graphmode-a100"),
        ("3.16.1", "nvfuser-h100"),
        ("3.25.0", "training-2gpu-nccl-after-h100"),
    ],
)
def test_columns_equal_those_of_a_real_export(schema: str, trace: str) -> None:
    path = TRACES / f"{trace}.sqlite"
    if not path.exists():
        pytest.skip("../shared is not here")
    db = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
    version = parse_version(schema)
    compared = 0
    for table in table_names(db):
        if table.startswith("ENUM_"):
            continue
        ours = [(c.name, c.type, c.not_null) for c in columns(table, version)]
        assert declared(db, table) == ours, table
        compared += 1
    db.close()
    assert compared >= 8


@pytest.mark.parametrize("export", sorted(VERSIONS), indirect=True)
def test_written_columns_are_the_declared_ones(
    export: sqlite3.Connection, request: pytest.FixtureRequest
) -> None:
    version = parse_version(VERSIONS[request.node.callspec.params["export"]])
    for table in table_names(export):
        if not table.startswith("ENUM_"):
            expected = [(c.name, c.type, c.not_null) for c in columns(table, version)]
            assert declared(export, table) == expected


@pytest.mark.parametrize(
    ("name", "table", "keys", "spelling"),
    [
        ("v2.9.1", "EXPORT_META_DATA", 24, "EXPORT_OUTUPT_FILE"),
        ("v3.4.0", "META_DATA_EXPORT", 29, "EXPORT_PARAM_OUTUPT_FILE"),
        ("v3.11.1", "META_DATA_EXPORT", 30, "EXPORT_PARAM_OUTUPT_FILE"),
        ("v3.16.1", "META_DATA_EXPORT", 30, "EXPORT_PARAM_OUTPUT_FILE"),
        ("v3.25.0", "META_DATA_EXPORT", 35, "EXPORT_PARAM_OUTPUT_FILE"),
    ],
)
def test_metadata_of_each_version(name: str, table: str, keys: int, spelling: str, tmp_path: Path) -> None:
    db = connect(build_generation(name, tmp_path / "trace.sqlite"))
    found = metadata(db)
    assert table in table_names(db)
    assert ("META_DATA_CAPTURE" in table_names(db)) == (table == "META_DATA_EXPORT")
    assert len(found) == keys
    assert spelling in found
    profile = PROFILES[VERSIONS[name]]
    assert found["EXPORT_SCHEMA_VERSION_CKSUM"] == profile.checksum
    assert found["EXPORT_PRODUCT_VERSION"] == profile.product
    db.close()


def test_wait_codes_follow_the_version_and_not_the_enumeration() -> None:
    kinds = ("context", "event", "stream")
    assert [sync_type(kind, (3, 4, 0)) for kind in kinds] == [1, 2, 3]
    assert [sync_type(kind, (3, 16, 1)) for kind in kinds] == [0, 1, 2]
    assert [sync_type(kind, (3, 24, 18)) for kind in kinds] == [4, 1, 2]
    assert [sync_type(kind, (3, 25, 0)) for kind in (*kinds, "wait")] == [4, 1, 3, 2]


@pytest.mark.parametrize("export", READABLE, indirect=True)
def test_completeness_identity(export: sqlite3.Connection, request: pytest.FixtureRequest) -> None:
    claimed: dict[str, int] = Counter()
    for (text,) in rows(export, "DIAGNOSTIC_EVENT", "text"):
        if found := re.fullmatch(r"Number of (CUDA|NVTX) events collected: \t(\d+)\.", text):
            claimed[found[1]] += int(found[2])
    name = request.node.callspec.params["export"]
    if name in ("no-launches", "six-tables") or "DIAGNOSTIC_EVENT" not in table_names(export):
        return
    stored = sum(
        count(export, f"CUPTI_ACTIVITY_KIND_{kind}") for kind in ("RUNTIME", "KERNEL", "MEMCPY", "MEMSET")
    )
    # The write-ahead log holds kernels that came after the exporter's own count.
    excess = {"trimmed": 500, "wal": -6}.get(name, 0)
    assert claimed["CUDA"] == stored + excess
    assert claimed["NVTX"] == count(export, "NVTX_EVENTS")


@pytest.mark.parametrize("export", READABLE, indirect=True)
def test_row_rules(export: sqlite3.Connection, request: pytest.FixtureRequest) -> None:
    name = request.node.callspec.params["export"]
    strings = rows(export, "StringIds", "id", "value")
    assert [number for number, _ in strings] == list(range(len(strings)))
    if name != "non-utf8":
        assert len({text for _, text in strings}) == len(strings)
    starts = [start for (start,) in rows(export, KERNEL, "start")]
    if name not in UNORDERED:
        assert starts == sorted(starts)
    if name in UNLINKED:
        return
    calls = defaultdict(list)
    for start, tid, call, kind in rows(export, RUNTIME, "start", "globalTid", "correlationId", "eventClass"):
        if kind in (0, 1):
            calls[tid & ~0xFFFFFF, call].append(start)
    for start, pid, call in rows(export, KERNEL, "start", "globalPid", "correlationId"):
        assert (pid, call) in calls
        assert start >= min(calls[pid, call])


@pytest.mark.parametrize("export", READABLE, indirect=True)
def test_waits_carry_their_sentinels(export: sqlite3.Connection) -> None:
    calls = {call for (call,) in rows(export, RUNTIME, "correlationId")}
    waits = rows(export, "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", "streamId", "eventId", "correlationId")
    for stream, event, call in waits:
        assert stream == 7 or stream == NONE
        assert event == 1 or event == NONE
        if calls:
            assert call in calls


@pytest.mark.parametrize("export", READABLE, indirect=True)
def test_every_export_says_that_it_is_synthetic(
    export: sqlite3.Connection, request: pytest.FixtureRequest
) -> None:
    name = request.node.callspec.params["export"]
    if name == "no-metadata":
        assert not metadata(export)
    elif name == "gen1-2020":
        assert SYNTHETIC in {text for (text,) in rows(export, "StringIds", "value")}
    else:
        assert metadata(export)[SYNTHETIC_KEY] == SYNTHETIC


@pytest.mark.parametrize("name", ["v2.9.1", "v3.25.0"])
def test_file_form(name: str, tmp_path: Path) -> None:
    path = build_generation(name, tmp_path / "trace.sqlite")
    head = path.read_bytes()[:100]
    assert head.startswith(b"SQLite format 3\x00")
    assert int.from_bytes(head[16:18], "big") == 4096
    assert head[18:20] == b"\x01\x01"
    db = connect(path)
    assert db.execute("SELECT count(*) FROM sqlite_master WHERE type <> 'table'").fetchone() == (0,)
    assert db.execute("PRAGMA user_version").fetchone() == (0,)
    duration, begin, end = rows(db, "ANALYSIS_DETAILS", "duration", "startTime", "stopTime")[0]
    assert end - begin == duration
    db.close()


@pytest.mark.parametrize("name", sorted(GENERATIONS))
def test_building_twice_gives_the_same_bytes(name: str, tmp_path: Path) -> None:
    first = build_generation(name, tmp_path / "a.sqlite").read_bytes()
    second = build_generation(name, tmp_path / "b.sqlite").read_bytes()
    if name == "six-tables":
        # VACUUM counts up the header's change counter with the library's own version.
        first, second = first[100:], second[100:]
    assert first == second
    assert len(first) <= 200_000


def test_readme_names_every_export() -> None:
    readme = (FIXTURES / "README.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([a-z0-9.-]+)`", readme))
    assert set(GENERATIONS) <= named
