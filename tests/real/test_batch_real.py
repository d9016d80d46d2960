"""A batch over real exports: judged, refused and broken ones side by side."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner

from nsysmodel.cli import main

TRACES = Path(__file__).parents[3] / "shared" / "traces"

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(not TRACES.exists(), reason="the real exports are not part of the repository"),
]
NAMES = ("dense2.7b-graphmode-a100", "mig-a30", "no-kernel-table-empty-t4", "softsign-custom-rtx4090")


def test_real_exports_of_many_kinds(tmp_path: Path, bundled: Path) -> None:
    paths = [str(TRACES / f"{name}.sqlite") for name in NAMES]
    result = CliRunner().invoke(
        main, ["batch", *paths, str(bundled), "-m", "qwen3-30b", "-o", str(tmp_path / "out")]
    )
    assert result.exit_code == 1
    data = json.loads((tmp_path / "out" / "index.json").read_text())
    assert {run["name"]: run["status"] for run in data["runs"]} == {
        "dense2.7b-graphmode-a100": "cannot_judge",
        "mig-a30": "cannot_judge",
        "no-kernel-table-empty-t4": "failed",
        "softsign-custom-rtx4090": "cannot_judge",
        bundled.stem: "ok",
    }
    for run in data["runs"]:
        if run["status"] != "ok":
            assert run["floor_ns"] is run["fraction_of_roofline"] is run["excess_ns"] is None
    judged = data["runs"][-1]
    report = json.loads((tmp_path / "out" / "runs" / f"{bundled.stem}.json").read_text())
    step = report["devices"][0]["step"]
    assert (judged["step_ns"], judged["floor_ns"]) == (step["measured_ns"], step["floor_ns"])
    assert judged["excess_op"] == "o_proj"
    ops = pd.read_parquet(tmp_path / "out" / "ops.parquet")
    assert ops[ops["run"] == bundled.stem]["total_ns"].tolist() == [
        op["total_ns"] for op in report["devices"][0]["ops"]
    ]
    for path in (tmp_path / "out").rglob("*.html"):
        assert not re.search(r"/(?:home|root|Users)/", path.read_text()), path.name
