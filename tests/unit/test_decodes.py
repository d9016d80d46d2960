"""The labelled decodes: same seed same export, closed counts, labels on every kernel, and a fair scorer."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from fixtures.decodes import COLUMNS, generate, model_file
from fixtures.decodes_cases import BASES, CASES, CLEAN, WRONG, mutated, select
from fixtures.decodes_mutate import MUTATIONS
from fixtures.decodes_types import Case, arch_of
from fixtures.score_join import Judgement, right_op, run, score
from nsysmodel.model import LayeredSpec, load, resolve_workload
from nsysmodel.workload import WorkloadRequest

ONCE = ("lm_head", "final_norm", "embedding", "sampling")
SMALL = "vllm-gpt-oss-20b"


def kernels(path: Path) -> list[tuple[int, ...]]:
    with closing(sqlite3.connect(path)) as db:
        return db.execute(
            "SELECT globalPid >> 24 & 0xFFFFFF, deviceId, streamId, start FROM CUPTI_ACTIVITY_KIND_KERNEL"
        ).fetchall()


def oracle(labels: pd.DataFrame) -> pd.DataFrame:
    said = labels[["process", "device", "stream", "start_ns", "step", "op"]].copy()
    said["layer"] = labels["layer"].where(labels["layer"] >= 0).astype("Int64")
    return said


@pytest.mark.parametrize("case", CLEAN, ids=lambda case: case.name)
def test_counts_close_in_every_step(case: Case, tmp_path: Path) -> None:
    labels = generate(replace(case, steps=2), tmp_path / "a.sqlite", 3)
    layers = arch_of(case.config).layers
    parts = labels.assign(op=labels["op"].str.split("+")).explode("op")
    per_step = parts.groupby(["step", "op"]).size().unstack(fill_value=0)
    assert (per_step.nunique() == 1).all()
    assert per_step["lm_head"].iloc[0] == 1
    for op in ("attention", "o_proj", "input_norm", "post_attention_norm"):
        assert per_step[op].iloc[0] % layers == 0, op
    inside = labels[labels["layer"] >= 0]
    assert inside.groupby("step")["layer"].nunique().eq(layers).all()
    assert not set(inside["op"]) & set(ONCE) - {"embedding"}


def test_moe_counts_follow_the_dense_first_layers(tmp_path: Path) -> None:
    labels = generate(CASES["vllm-moe-glm-3-dense"], tmp_path / "a.sqlite", 1)
    counts = labels[labels["step"] == 0].groupby("op")["layer"].nunique()
    assert counts["gate_up_proj"] == 3
    assert counts["moe_gate_up"] == counts["shared_down"] == 17


def test_same_seed_same_bytes_other_seed_other_times(tmp_path: Path) -> None:
    case = CASES[f"{BASES[0]}+strays"]
    first = generate(case, tmp_path / "a.sqlite", 1)
    again = generate(case, tmp_path / "b.sqlite", 1)
    other = generate(case, tmp_path / "c.sqlite", 2)
    pd.testing.assert_frame_equal(first, again)
    assert (tmp_path / "a.sqlite").read_bytes() == (tmp_path / "b.sqlite").read_bytes()
    assert len(first) != len(other) or (first["start_ns"] != other["start_ns"]).any()


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_labels_cover_every_kernel_of_the_export(mutation: str, tmp_path: Path) -> None:
    case = mutated(next(case for case in CLEAN if case.name == "sglang-dense-qwen3-8b"), mutation)
    labels = generate(case, tmp_path / "a.sqlite", 5)
    keys = list(labels[["process", "device", "stream", "start_ns"]].itertuples(index=False, name=None))
    assert sorted(keys) == sorted(kernels(tmp_path / "a.sqlite"))
    assert len(set(keys)) == len(keys)
    assert list(labels.columns) == list(COLUMNS)
    assert labels["start_ns"].is_monotonic_increasing
    assert labels["used"].any()


def test_each_mutation_does_what_it_says(tmp_path: Path) -> None:
    base = next(case for case in CLEAN if case.name == "sglang-dense-qwen3-8b")
    clean = generate(base, tmp_path / "a.sqlite", 4)

    def changed(*mutations: str) -> pd.DataFrame:
        return generate(mutated(base, *mutations), tmp_path / "b.sqlite", 4)

    gemms = {"qkv_proj", "o_proj", "gate_up_proj", "down_proj", "lm_head"}
    opaque = changed("opaque_gemms")
    assert opaque[opaque["op"].isin(gemms) & ~opaque["name"].str.contains("splitK")]["name"].nunique() == 1
    strays = changed("strays")
    assert 0.01 < (len(strays) - len(clean)) / len(clean) < 0.03
    assert len(changed("dropped_norm")) == len(clean) - base.steps * 36
    assert changed("fused_ops")["op"].str.count(r"\+").max() >= 1
    hidden = changed("fused_hidden")
    assert (hidden["lenient"] != "").sum() == base.steps * 36
    assert len(changed("split_op")) > len(clean)
    pdl = changed("pdl_overlap").sort_values("start_ns")
    assert (pdl["start_ns"].shift(-1) < pdl["end_ns"]).mean() > 0.5
    assert changed("two_gpus")["device"].nunique() == 2
    assert changed("two_processes")["process"].nunique() == 2
    assert set(changed("mixed_prefill")["phase"]) == {"decode", "prefill"}
    assert changed("batch_changes")["batch"].nunique() == 3
    assert changed("many_streams")["stream"].nunique() > 2
    assert not changed("ragged_first").query("step == 0")["whole"].any()
    assert not changed("cut_last").query("step == 5")["whole"].any()


def test_no_kernel_beats_its_floor(tmp_path: Path) -> None:
    case = CASES[f"{BASES[0]}+jitter"]
    labels = generate(case, tmp_path / "a.sqlite", 8)
    heads = labels[labels["op"] == "lm_head"]
    floor = 151936 * 2048 * 2 / 4.0e12 * 1e9
    assert (heads["end_ns"] - heads["start_ns"]).min() > floor


def test_the_oracle_scores_one_and_a_shift_is_seen(tmp_path: Path) -> None:
    case = CASES[SMALL]
    labels = generate(case, tmp_path / "a.sqlite", 1)
    best = score(case, 1, labels, Judgement(oracle(labels)))
    assert best.passed
    assert (best.time, best.count, best.layers, best.steps, best.worst) == (1, 1, 1, 1, 1)
    shifted = oracle(labels)
    shifted["layer"] = shifted["layer"] + 1
    assert score(case, 1, labels, Judgement(shifted)).layers < 0.1
    merged = oracle(labels)
    merged["step"] = merged["step"] // 2
    assert score(case, 1, labels, Judgement(merged)).steps == 0
    small = oracle(labels)
    small.loc[small["op"] == "topk", "op"] = "router"
    small.loc[small["op"] == "kv_write", "op"] = "rope"
    worse = score(case, 1, labels, Judgement(small))
    assert worse.worst == 0
    assert worse.worst_op == "kv_write"
    assert not worse.passed
    assert "kv_write → rope" in worse.confusions[0]


@pytest.mark.parametrize(
    ("said", "op", "also", "lenient", "right"),
    [
        ("", "", "", "", True),
        ("rope", "", "", "", False),
        ("", "residual_add", "|", "", True),
        ("q_proj", "qkv_proj", "q_proj", "", True),
        ("kv_write+rope", "rope+kv_write", "", "", True),
        ("rope", "rope+kv_write", "", "", False),
        ("qkv_proj", "qkv_proj+rope", "", "qkv_proj", True),
        ("", "qkv_proj+rope", "", "qkv_proj", False),
    ],
)
def test_a_label_is_right(said: str, op: str, also: str, lenient: str, right: bool) -> None:
    assert right_op(said, op, also, lenient) is right


def test_ten_models_must_be_refused_and_one_suspected() -> None:
    assert [case.expect for case in WRONG] == ["refuse"] * 10 + ["suspect"]
    assert all(case.judge_config != case.config for case in WRONG)


def test_a_refusal_is_right_only_where_the_model_is_wrong(tmp_path: Path) -> None:
    def refuses(_export: Path, _model: Path, _case: Case) -> Judgement:
        return Judgement(None, "cannot_judge", ("another model",))

    table = run([WRONG[0], CASES[SMALL]], [1], refuses)
    assert table["passed"].tolist() == [True, False]


def test_groups_and_names_select_cases() -> None:
    assert len(select(("clean",))) == len(CLEAN)
    assert [case.name for case in select((SMALL,))] == [SMALL]
    assert {case.engine for case in select(("trtllm",))} == {"trtllm"}
    assert len(select(("all",))) == len(CASES)


@pytest.mark.parametrize("mutation", ["strays", "markers", "piecewise", "eager", "batch_changes"])
def test_the_host_side_fits_the_kernels(mutation: str, tmp_path: Path) -> None:
    case = mutated(next(case for case in CLEAN if case.name == "vllm-dense-llama-8b"), mutation)
    labels = generate(case, tmp_path / "a.sqlite", 2)
    with closing(sqlite3.connect(tmp_path / "a.sqlite")) as db:
        late = db.execute(
            "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL k LEFT JOIN CUPTI_ACTIVITY_KIND_RUNTIME r"
            " ON r.correlationId = k.correlationId WHERE r.start IS NULL OR k.start < r.start"
        ).fetchone()
        names = db.execute(
            "SELECT count(DISTINCT demangledName) FROM CUPTI_ACTIVITY_KIND_KERNEL"
            " WHERE graphNodeId IS NOT NULL GROUP BY graphNodeId"
        ).fetchall()
        launches = db.execute(
            "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_RUNTIME r JOIN StringIds s ON s.id = r.nameId"
            " WHERE s.value LIKE 'cudaGraphLaunch%'"
        ).fetchone()
    assert late == (0,)
    assert {name for (name,) in names} <= {1}
    steps = labels["step"].nunique()
    per_step = {"eager": 0, "piecewise": 33}
    assert launches == (steps * per_step.get(mutation, 1),)


def test_module_ranges_hold_the_calls_of_their_kernels(tmp_path: Path) -> None:
    case = mutated(next(case for case in CLEAN if case.name == "trtllm-dense-qwen3-8b"), "module_ranges")
    generate(replace(case, steps=2), tmp_path / "a.sqlite", 2)
    with closing(sqlite3.connect(tmp_path / "a.sqlite")) as db:
        counts = dict(
            db.execute(
                "SELECT s.value, count(*) FROM NVTX_EVENTS n JOIN CUPTI_ACTIVITY_KIND_RUNTIME r"
                " ON r.start >= n.start AND r.end <= n.end"
                " JOIN CUPTI_ACTIVITY_KIND_KERNEL k ON k.correlationId = r.correlationId"
                " JOIN StringIds s ON s.id = k.demangledName"
                " WHERE n.text LIKE '%layers.7.self_attn.attn%' GROUP BY 1"
            ).fetchall()
        )
    assert counts["kernel_mha"] == 2
    assert len(counts) == 2


HELPERS = {"residual_add", "quantize"}
MODELLED = (
    "vllm-moe-qwen3-30b-b16",
    "vllm-gpt-oss-20b",
    "vllm-moe-glm-3-dense",
    "llamacpp-dense-llama-8b-q4",
)


@pytest.mark.parametrize("name", MODELLED)
def test_labels_are_ops_of_the_model_and_beat_no_floor(name: str, tmp_path: Path) -> None:
    case = replace(CASES[name], steps=1)
    labels = generate(case, tmp_path / "a.sqlite", 6)
    spec = load(str(model_file(case, tmp_path / "a.sqlite")))
    assert isinstance(spec, LayeredSpec)
    step = spec.build(resolve_workload(WorkloadRequest(**case.options), spec))
    floors: dict[str, float] = {}
    for _, op in step.places():
        floors[op.id] = floors.get(op.id, 0) + op.cost.hbm_bytes / 4.0e12 * 1e9
    assert {part for op in labels["op"] for part in op.split("+")} - {""} - HELPERS <= set(floors)
    took = (labels["end_ns"] - labels["start_ns"]).groupby(labels["op"]).sum()
    for label, duration in took.items():
        assert duration >= floors.get(str(label), 0), label


def test_wrong_models_have_another_structure_or_other_sizes(tmp_path: Path) -> None:
    for case in WRONG:
        ran = load(str(model_file(replace(case, judge_config=None), tmp_path / "a.sqlite")))
        judged = load(str(model_file(case, tmp_path / "b.sqlite")))
        assert isinstance(ran, LayeredSpec)
        assert isinstance(judged, LayeredSpec)
        pair = [spec.build(resolve_workload(WorkloadRequest(), spec)) for spec in (ran, judged)]
        places = [[(layer, op.id) for layer, op in step.places()] for step in pair]
        assert (places[0] != places[1]) is (case.expect == "refuse"), case.name
