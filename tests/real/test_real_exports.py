"""The real exports: totals of plain SQL, nsys's own summary, and findings."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from nsysmodel import open_run
from nsysmodel.cli import main
from nsysmodel.export.joins import launches, nvtx_of, ranges_of
from nsysmodel.intervals import union_length

TRACES = Path(__file__).parents[3] / "shared" / "traces"
FACTS: dict[str, Any] = (
    json.loads((TRACES / "facts.json").read_text(encoding="utf-8"))
    if (TRACES / "facts.json").exists()
    else {}
)
STATS = sorted((TRACES / "nsys_stats").glob("*.csv")) if FACTS else []

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(not FACTS, reason="the real exports are not part of the repository"),
]
COMPLETE = {
    "cloverleaf-4gpu-a100",
    "conv3d-crossstream-rtx4090",
    "crossentropy-custom-rtx4090",
    "crossentropy-reference-rtx4090",
    "dense2.7b-forward-a100",
    "dense2.7b-forward-nvtx-a100",
    "layernorm-custom-rtx4090",
    "layernorm-reference-rtx4090",
    "nvfuser-h100",
    "nvfuser-nvtx-h200",
    "softsign-custom-rtx4090",
    "softsign-reference-rtx4090",
    "square-matmul-rtx4090",
    "transformer-training-nvtx-rtx3070ti",
}
NO_ACTIVITY = {"no-kernel-table-empty-t4", "no-kernel-table-wsl2-rtx4060", "not-utf8-metadata-rtx4070ti"}


def export(name: str) -> Path:
    return TRACES / f"{name}.sqlite"


def invoke(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.mark.parametrize("name", FACTS)
def test_totals_are_those_of_plain_sql(name: str) -> None:
    expected = FACTS[name]
    with open_run(export(name)) as run:
        facts = run.facts
        assert facts.schema_version == expected.get("schema", "")
        assert facts.kernels == (expected["kernels"] or 0)
        assert facts.copies == (expected["memcpys"] or 0)
        assert facts.memsets == (expected["memsets"] or 0)
        assert facts.graph_traces == (expected["graph_launches_traced"] or 0)
        assert facts.kernel_time_ns == expected.get("kernel_time_ns", 0)
        # The 2.9.1 export has each call of a launch twice: 38 rows are CUDA backtraces.
        backtraces = 38 if name == "saxpy-mpi-nonlazy-a100" else 0
        assert facts.api_calls == (expected["api_rows"] or 0) - backtraces
        kernels = run.kernels()
        assert kernels["name"].nunique() == expected.get("distinct_names", 0)
        assert set(expected.get("gpu", ())) == set(run.gpus()["name"])
        every = [f for f in (kernels, run.copies(), run.memsets(), run.graph_traces()) if len(f)]
        for place, values in expected.get("devices", {}).items():
            process, device = map(int, place.split(":"))
            mine = kernels[(kernels["process"] == process) & (kernels["device"] == device)]
            assert len(mine) == values["kernels"]
            assert mine["duration_ns"].sum() == values["sum_ns"]
            assert union_length(mine["start_ns"], mine["end_ns"]) == values["busy_kernels_ns"]
            assert (mine["start_ns"].min(), mine["end_ns"].max()) == (values["first_ns"], values["last_ns"])
            starts, ends = [], []
            for frame in every:
                here = frame[(frame["process"] == process) & (frame["device"] == device)]
                starts += here["start_ns"].tolist()
                ends += here["end_ns"].tolist()
            assert union_length(starts, ends) == values["busy_all_ns"]


@pytest.mark.parametrize("name", FACTS)
def test_completeness(name: str) -> None:
    with open_run(export(name)) as run:
        found = run.facts.completeness
        assert (found == "complete") == (name in COMPLETE)
        assert (found == "no_gpu_activity") == (name in NO_ACTIVITY)
        assert (found == "lost_events") == (name == "dense2.7b-graphmode-a100")
        codes = {diagnostic.code for diagnostic in run.diagnostics}
        assert not codes & {"rows_dropped", "table_damaged", "column_absent", "names_missing", "file_cut_off"}


@pytest.mark.parametrize("name", FACTS)
def test_inspect_and_kernels_end_well(name: str) -> None:
    shown = invoke("inspect", export(name))
    assert shown.exit_code == 0, shown.output
    assert (
        json.loads(invoke("inspect", export(name), "-f", "json").stdout)["export"]["file"] == f"{name}.sqlite"
    )
    listed = invoke("kernels", export(name), "-f", "csv")
    if name in NO_ACTIVITY:
        assert listed.exit_code == 1
        assert listed.stdout == ""
        assert [line.split(":")[0] for line in listed.stderr.splitlines()] == ["Error", "Hint"]
        return
    assert listed.exit_code == 0, listed.output
    rows = list(csv.DictReader(listed.stdout.splitlines()))
    assert sum(int(row["total_ns"]) for row in rows) == FACTS[name]["kernel_time_ns"]
    by_name = {row["name"]: row for row in rows}
    for top, instances, total in FACTS[name]["top"]:
        assert (int(by_name[top]["instances"]), int(by_name[top]["total_ns"])) == (instances, total)
    assert invoke("memory", export(name)).exit_code == 0


@pytest.mark.parametrize("path", STATS, ids=lambda path: path.name.split(".cuda")[0])
def test_every_number_is_that_of_nsys(path: Path) -> None:
    listed = invoke("kernels", export(path.name.split(".cuda_gpu")[0]), "-f", "csv")
    expected = list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))
    found = list(csv.DictReader(listed.stdout.splitlines()))
    assert list(found[0]) == list(expected[0])
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected, strict=True):
        assert {k: v for k, v in ours.items() if k != "name"} == {
            k: v for k, v in theirs.items() if k != "name"
        }
        assert ours["name"].startswith(theirs["name"].rstrip("…"))


def test_graph_modes() -> None:
    modes = {}
    for name in FACTS:
        with open_run(export(name)) as run:
            modes[name] = run.facts.graph_mode
    assert {name for name, mode in modes.items() if mode == "node"} == {
        "vllm-moe-decode-tp4-rank0-gh200",
        "vllm-hybrid-nvfp4-decode-b4-gb10",
    }
    assert [name for name, mode in modes.items() if mode == "graph"] == ["dense2.7b-graphmode-a100"]


def test_whole_graphs_print_the_capture_command() -> None:
    shown = invoke("inspect", export("dense2.7b-graphmode-a100"))
    assert "graphs_traced_whole" in shown.stdout
    assert "nsys profile" in shown.stdout
    assert "--cuda-graph-trace=node" in shown.stdout


def test_repeated_correlation_ids_of_two_processes() -> None:
    for name in ("training-2gpu-nccl-before-h100", "training-2gpu-nccl-after-h100"):
        with open_run(export(name)) as run:
            for frame in (run.kernels(), run.copies(), run.memsets()):
                joined = launches(run, frame)
                with_call = joined["launch_row"] >= 0
                calls = run.api_calls().loc[joined["launch_row"][with_call]]
                assert (calls["global_pid"].to_numpy() == frame["global_pid"][with_call].to_numpy()).all()
                assert with_call.mean() > 0.97
            assert (nvtx_of(run).notna() == (run.launches()["launch_row"] >= 0)).all()


def test_nvtx_markers_hold_their_steps() -> None:
    with open_run(export("vllm-moe-decode-tp4-rank0-gh200")) as run:
        step = ranges_of(run, None, r"^execute_context_")
        counts = {row: int((step == row).sum()) for row in sorted(set(step.tolist()) - {-1})}
        assert len(counts) == 8
        assert len(set(counts.values())) == 1
        assert (step >= 0).mean() > 0.99
    with open_run(export("dense2.7b-forward-nvtx-a100")) as run:
        texts = nvtx_of(run).value_counts()
        assert texts.sum() == 7328
        assert len(texts[texts > 0]) >= 3


def test_the_mig_slice() -> None:
    with open_run(export("mig-a30")) as run:
        gpu = run.gpu_for(214, 0)
        assert gpu is not None
        assert (gpu.mig, gpu.sm_count) == (True, 28)


def test_the_2020_gpu_table_is_in_base_units() -> None:
    with open_run(export("openmp-2020-schema")) as run:
        gpu = run.gpu_for(int(run.kernels()["process"].iloc[0]), 0)
        assert gpu is not None
        assert gpu.compute_capability == "7.0"
        assert 1.2e9 < gpu.clock_hz < 1.6e9
        assert 30e9 < gpu.memory_bytes < 36e9
