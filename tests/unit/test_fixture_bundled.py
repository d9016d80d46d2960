"""The bundled decode export holds what its README says was planted."""

from __future__ import annotations

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from fixtures import build, qwen3_decode
from fixtures.qwen3_kernels import ATTENTION, SLOW_OP, UNMODELED, nsys_style
from fixtures.reading import connect, rows
from fixtures.rows import short_name
from fixtures.target import CANARIES

FIXTURE = Path(build.__file__).parent / qwen3_decode.FILE
KERNEL = "CUPTI_ACTIVITY_KIND_KERNEL"
RUNTIME = "CUPTI_ACTIVITY_KIND_RUNTIME"


@pytest.fixture(scope="module")
def bundled() -> Iterator[sqlite3.Connection]:
    db = connect(FIXTURE)
    yield db
    db.close()


@pytest.fixture(scope="module")
def labels(tmp_path_factory: pytest.TempPathFactory) -> list[qwen3_decode.Label]:
    return qwen3_decode.build(tmp_path_factory.mktemp("decode") / "decode.sqlite")


def test_committed_fixtures_are_what_their_builders_write() -> None:
    assert build.stale() == []
    assert FIXTURE.stat().st_size < 2_000_000


def test_bundled_steps(bundled: sqlite3.Connection) -> None:
    launches = rows(bundled, RUNTIME, "correlationId", "nameId")
    names = dict(rows(bundled, "StringIds", "id", "value"))
    graphs = [call for call, name in launches if names[name] == "cudaGraphLaunch_v10000"]
    nodes = Counter(call for call, node in rows(bundled, KERNEL, "correlationId", "graphNodeId") if node)
    assert len(graphs) == qwen3_decode.STEPS == 9
    assert [nodes[call] for call in graphs] == [48 * 18 + 12 + 2] * 8 + [qwen3_decode.CUT_NODE]
    kernels = Counter(names[name] for (name,) in rows(bundled, KERNEL, "demangledName"))
    assert kernels["fused_moe_kernel"] == 8 * 96 + 2 * 28
    assert kernels["nvjet_tst_384x8_64x4_2x1_v_bz_TNT"] == 8


def test_bundled_slow_op_leads(labels: list[qwen3_decode.Label]) -> None:
    excess: dict[str, float] = defaultdict(float)
    for label in labels:
        if label.op and label.step not in (qwen3_decode.WARM_UP, qwen3_decode.PARTIAL):
            excess[label.op] += (label.duration_ns / 1000 - label.floor_us) / 7
    ranked = sorted(excess, key=lambda op: -excess[op])
    assert ranked[0] == SLOW_OP == "o_proj"
    assert excess["o_proj"] == pytest.approx(810, abs=5)
    assert excess[ranked[1]] == pytest.approx(218, abs=5)
    assert sum(label.floor_us for label in labels if label.step == 3) == pytest.approx(1621.7, abs=0.1)


def test_bundled_unmodeled_kernel(labels: list[qwen3_decode.Label]) -> None:
    extra = [label for label in labels if not label.op and label.step == 3]
    assert [label.layer for label in extra] == list(range(3, 48, 4))
    assert {label.name for label in extra} == {UNMODELED}
    assert sum(label.duration_ns for label in extra) == pytest.approx(49_400, abs=1500)


def test_bundled_warm_up_is_slower(labels: list[qwen3_decode.Label]) -> None:
    busy = [sum(label.duration_ns for label in labels if label.step == step) for step in range(8)]
    assert busy[0] / (sum(busy[1:]) / 7) == pytest.approx(1.15, abs=0.01)
    assert max(busy[1:]) / min(busy[1:]) < 1.01


def test_bundled_gaps(bundled: sqlite3.Connection) -> None:
    spans = sorted(
        (start, end)
        for table in (KERNEL, "CUPTI_ACTIVITY_KIND_MEMCPY")
        for start, end in rows(bundled, table, "start", "end")
    )
    gaps = [later[0] - earlier[1] for earlier, later in pairwise(spans)]
    assert all(start % 32 == 0 and end % 32 == 0 and end - start >= 800 for start, end in spans)
    assert min(gaps) > 0
    wide = [gap for gap in gaps if gap > 50_000]
    assert len(wide) == 8
    assert sorted(wide)[-1] == pytest.approx(195_000, abs=5_000)
    assert all(110_000 <= gap <= 120_000 for gap in sorted(wide)[:-1])
    flush = [row for row in rows(bundled, "PROFILER_OVERHEAD", "start", "end") if row[0] > spans[0][0]]
    assert len(flush) == 2


def test_bundled_device(bundled: sqlite3.Connection) -> None:
    facts = rows(bundled, "TARGET_INFO_GPU", "name", "smCount", "clockRate", "memoryBandwidth", "l2CacheSize")
    assert facts == [("NVIDIA GH200 480GB", 132, 1_980_000_000, 4_022_784_000_000, 62_914_560)]
    optin = rows(bundled, KERNEL, "dynamicSharedMemory", "sharedMemoryLimitConfig")
    assert {(size > 49152, config) for size, config in optin} == {(True, 1), (False, 0)}


def test_private_values_are_planted(bundled: sqlite3.Connection) -> None:
    whole = FIXTURE.read_bytes().decode("latin-1")
    assert all(value in whole for value in CANARIES.values())


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("void at::native::(anonymous namespace)::gather<c10::BFloat16>(at::cuda::x<int>)", "gather"),
        ("std::enable_if<(int)1>::type vllm::fused_add_rms_norm_kernel<c10::BFloat16, (int)8>(int)",
         "fused_add_rms_norm_kernel"),
        ("triton_red_fused_2", "triton_red_fused_2"),
        (ATTENTION, "device_kernel"),
    ],
)  # fmt: skip
def test_short_names(name: str, short: str) -> None:
    assert short_name(name) == short


def test_template_values_carry_their_types() -> None:
    assert nsys_style("f<cute::C<64> , true, 2>") == "f<cute::C<(int)64> , (bool)1, (int)2>"
    assert nsys_style("f<g<8> >") == "f<g<(int)8>>"
