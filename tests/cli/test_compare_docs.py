"""The documents on compare, gate and CI: files load, commands run, numbers are those of the code."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from fixtures import pairs
from nsysmodel.cli import main
from nsysmodel.comparison import measuring
from nsysmodel.comparison.result import Thresholds
from nsysmodel.comparison.statistics import RESAMPLES
from nsysmodel.comparison.taking import MOST_STEPS
from nsysmodel.gate.budget import load_budget


def text(repository: Path, name: str) -> str:
    return (repository / "docs" / f"{name}.md").read_text("utf-8")


def blocks(repository: Path, name: str) -> list[Any]:
    return [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", text(repository, name), re.S)]


def test_the_documented_budget_loads(repository: Path, tmp_path: Path) -> None:
    block = re.search(r"```yaml\n(.*?)```", text(repository, "gate"), re.S)
    assert block is not None
    path = tmp_path / "budget.yaml"
    path.write_text(block.group(1))
    budget = load_budget(path)
    assert budget.step.max_ns == 5e6
    assert budget.ops["moe_down"].max_ns == 4e5
    assert budget.min_coverage == 0.9


@pytest.mark.parametrize("name", ["compare", "gate"])
def test_every_flag_is_documented(repository: Path, name: str) -> None:
    documented = text(repository, name) + text(repository, "compare") + text(repository, "report-command")
    flags = set(re.findall(r"(--[a-z][a-z-]*)", CliRunner().invoke(main, [name, "--help"]).stdout))
    assert not {flag for flag in flags - {"--help", "--force"} if flag not in documented}


def test_numbers_are_those_of_the_code(repository: Path) -> None:
    words = " ".join(text(repository, "compare").split())
    limits = Thresholds()
    assert f"`--threshold` ({limits.relative * 100:g} %)" in words
    assert f"`--min-change` ({limits.absolute_ns:g} ns)" in words
    assert f"`--confidence` ({limits.confidence:g})" in words
    assert f"{RESAMPLES} resamples" in words
    assert measuring.LEAST_STEPS == 3
    assert f"At most {MOST_STEPS} steps" in " ".join(text(repository, "gate").split())


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_the_workflow_runs(repository: Path, tmp_path: Path) -> None:
    """The steps of the gate job, as they stand in the document, on a slower run."""
    workflow, hook = blocks(repository, "ci")
    model = pairs.write(tmp_path / "before.sqlite", pairs.passes(1))
    pairs.write(tmp_path / "decode.sqlite", pairs.passes(2, slower={"gate_up_proj": 1.05}))
    (tmp_path / "perf").mkdir()
    model.rename(tmp_path / "perf" / "model.config.json")
    (tmp_path / "perf" / "budget.yaml").write_text("step: {max_ns: 5ms}\n")
    folder = str(Path(sys.executable).parent)
    environment = {
        **os.environ,
        "PATH": folder + os.pathsep + os.environ["PATH"],
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
    }

    def shell(script: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-e", "-c", script],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
            env=environment,
        )

    save = re.search(r"`(nsysmodel baseline save [^`]*)`. A baseline", text(repository, "ci"))
    assert save is not None
    saved = shell(save.group(1).replace("decode.sqlite", "before.sqlite"))
    assert saved.returncode == 0, saved.stderr
    steps = {step.get("name"): step["run"] for step in workflow["jobs"]["gate"]["steps"] if "run" in step}
    compared = shell(steps["compare"])
    assert compared.returncode == 0, compared.stderr
    assert "Regressed" in (tmp_path / "summary.md").read_text()
    assert (tmp_path / "compare.html").exists()
    gated = shell(steps["gate"])
    assert gated.returncode == 3, gated.stderr
    assert "FAILED baseline.ops.gate_up_proj" in gated.stdout
    assert "::error title=nsysmodel%3A baseline.ops.gate_up_proj::" in gated.stdout
    assert (tmp_path / "gate.xml").exists()
    assert shell(hook["repos"][0]["hooks"][0]["entry"]).returncode == 0
