"""The generator of large exports: whole, joined, in order, and the same for the same seed."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.generate import build
from nsysmodel import open_run
from nsysmodel.export.facts import graph_mode


@pytest.mark.parametrize("graphs", [False, True])
def test_an_export_is_whole_and_every_kernel_has_its_call(graphs: bool, tmp_path: Path) -> None:
    written = build(tmp_path / "big.sqlite", 4_000, graphs=graphs)
    with open_run(tmp_path / "big.sqlite") as run:
        kernels, launches = run.kernels(), run.launches()
        assert run.facts.completeness == "complete"
        assert run.synthetic
        assert graph_mode(run) == ("node" if graphs else "none")
        assert len(kernels) == written["CUPTI_ACTIVITY_KIND_KERNEL"] >= 3_500
        assert (launches["launch_row"] >= 0).all()
        assert (kernels["start_ns"] >= launches["launch_start_ns"]).all()
        # One stream: kernels follow each other.
        assert (kernels["start_ns"].to_numpy()[1:] >= kernels["end_ns"].to_numpy()[:-1]).all()
        steps = run.nvtx()[run.nvtx()["text"].astype(str).str.startswith("execute_context")]
        assert len(steps) * (len(kernels) // len(steps)) == len(kernels)
        assert not [found for found in run.diagnostics if found.severity != "info"]


def test_a_seed_gives_one_export(tmp_path: Path) -> None:
    for name in ("a", "b"):
        build(tmp_path / name, 900, seed=7)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
