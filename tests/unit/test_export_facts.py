"""Facts and findings of the hazards: what an export holds, and what its reader is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from fixtures.generations import build_generation
from nsysmodel import open_run
from nsysmodel.export.findings_recording import CAPTURE

FACTS = {
    "graph-level": ("graph", "lost_events", {"graphs_traced_whole", "lost_events"}),
    "node-level": ("node", "complete", set()),
    "node-level-3.25.0": ("node", "complete", set()),
    "two-processes-equal-correlation": ("none", "complete", {"several_devices"}),
    "wsl2-no-kernel-table": ("none", "no_gpu_activity", {"gpu_activity_missing", "tables_absent"}),
    "zero-kernels": ("none", "no_gpu_activity", {"nothing_recorded"}),
    "no-cuda": ("none", "no_gpu_activity", {"nothing_recorded", "tables_absent"}),
    "trimmed": ("none", "trimmed", {"export_trimmed"}),
    "lost-events": ("none", "lost_events", {"lost_events", "launches_without_kernel"}),
    "helper-processes": ("none", "complete", set()),
    "no-gpu-table": ("none", "complete", {"gpu_unknown", "tables_absent"}),
    "future-version": ("none", "complete", {"schema_newer"}),
    "extra-columns": ("none", "complete", set()),
    "no-metadata": ("none", "complete", {"schema_unknown"}),
    "six-tables": ("none", "unknown", set()),
    "kernel-before-session": ("none", "complete", {"times_negative"}),
    "shuffled": ("none", "complete", set()),
    "hostile-names": ("none", "complete", set()),
}
QUIET = {"synthetic", "completeness_unknown", "profiler_overhead"}


@pytest.mark.parametrize("name", FACTS)
def test_facts_and_findings(name: str, tmp_path: Path) -> None:
    mode, completeness, codes = FACTS[name]
    with open_run(build_generation(name, tmp_path / "t.sqlite")) as run:
        assert run.facts.graph_mode == mode
        assert run.facts.completeness == completeness
        assert {found.code for found in run.diagnostics} - QUIET == codes
        ranks = [("error", "warning", "info").index(found.severity) for found in run.diagnostics]
        assert ranks == sorted(ranks)


def test_whole_graphs_give_the_capture_command(tmp_path: Path) -> None:
    with open_run(build_generation("graph-level", tmp_path / "t.sqlite")) as run:
        finding = next(found for found in run.diagnostics if found.code == "graphs_traced_whole")
        assert finding.severity == "error"
        assert CAPTURE in finding.hint
        assert "--cuda-graph-trace=node" in CAPTURE
        assert "10 executions" in finding.message


def test_facts_of_a_plain_export(tmp_path: Path) -> None:
    with open_run(build_generation("v3.16.1", tmp_path / "trace.sqlite")) as run:
        facts = run.facts
        assert facts.file == "trace.sqlite"
        assert (facts.schema_version, facts.product_version) == ("3.16.1", "2024.6.2.225")
        assert (facts.kernels, facts.copies, facts.memsets, facts.api_calls) == (6, 2, 1, 13)
        assert (facts.processes, facts.devices, facts.nvtx_ranges, facts.graph_traces) == (1, 1, 2, 0)
        assert facts.kernel_time_ns == sum(2048 * (i + 1) for i in range(6))
        first, last = run.copies()["start_ns"].min(), run.copies()["end_ns"].max()
        assert facts.span_ns == last - first
        assert facts.synthetic
