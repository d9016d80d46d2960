"""`nsysmodel report`: what it writes where, and what it must not say."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner, Result

from nsysmodel.analyze import evaluate
from nsysmodel.cli import main
from nsysmodel.report import json_schema
from nsysmodel.result import Evaluation

JUDGED = (
    "ratio",
    "floor_ns",
    "floor_total_ns",
    "floor_hbm_ns",
    "excess_ns",
    "recoverable_ns",
    "fraction_of_roofline",
    "fraction_of_peak",
    "max_sum_bound_ns",
)
"""Fields that say how far something is from its floor."""
TIMES = re.compile(r"\d\s?×(?!\s?\d)")
"""A ratio in text; a grid (8×1×1) goes on with a digit."""


_KNOWN: dict[Any, Evaluation] = {}


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run in an empty folder; judge the same export in the same way only once."""

    def remembered(export: str, model: str | None, *, command: str, **asked: Any) -> Evaluation:
        key = (export, model, *asked.values())
        if key not in _KNOWN:
            _KNOWN[key] = evaluate(export, model, **asked)
        return replace(_KNOWN[key], command=command)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("nsysmodel.analyze.evaluate", remembered)


def run(*args: str | os.PathLike[str], env: dict[str, str] | None = None) -> Result:
    result = CliRunner().invoke(main, ["report", *map(os.fspath, args)], env=env)
    assert result.exit_code in (0, 1, 2), result.exception
    return result


def judged_values(value: Any, path: str = "") -> Iterator[str]:
    """Paths of all fields below `value` that hold a judgement."""
    if isinstance(value, dict):
        for key, item in value.items():
            if key in JUDGED and item is not None:
                yield f"{path}.{key} = {item}"
            yield from judged_values(item, f"{path}.{key}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from judged_values(item, f"{path}[{index}]")


def test_default_output(bundled: Path, tmp_path: Path) -> None:
    result = run(bundled, "--model", "qwen3-30b")
    assert result.exit_code == 0
    assert [path.name for path in tmp_path.iterdir()] == [f"{bundled.stem}.html"]
    text = " ".join(result.stdout.split())
    assert "A step takes 4.89 ms; the model says 1.62 ms, assuming context 4096." in text
    assert "205 tokens/s measured, 617 tokens/s at most" in text
    ranked = [line.split()[0] for line in result.stdout.splitlines() if "ms" in line or "µs" in line]
    assert ranked[-3:] == ["o_proj", "moe_permute", "attention"]
    assert text.endswith(f"Wrote {bundled.stem}.html")
    assert "\x1b" not in result.stdout


def test_page_is_offline(bundled: Path, tmp_path: Path) -> None:
    run(bundled, "-m", "qwen3-30b", "-o", "r.html")
    page = (tmp_path / "r.html").read_text("utf-8")
    assert len(page) < 1_500_000
    assert 'content="nsysmodel' in page
    assert not re.search(r"""(?:src|href)=["']?(?:https?:)?//""", page)
    assert "o_proj" in page
    assert "5.02×" in page


@pytest.mark.parametrize(
    ("name", "start"),
    [("r.html", "<!doctype html>"), ("r.md", "###"), ("r.json", "{"), ("r.csv", "process,")],
)
def test_format_by_extension(name: str, start: str, bundled: Path, tmp_path: Path) -> None:
    assert run(bundled, "-m", "qwen3-30b", "-o", name, "-q").exit_code == 0
    text = (tmp_path / name).read_text("utf-8")
    assert text.lower().startswith(start)


def test_format_wins_over_extension(bundled: Path, tmp_path: Path) -> None:
    run(bundled, "-m", "qwen3-30b", "-o", "r.html", "-f", "json", "-q")
    assert json.loads((tmp_path / "r.html").read_text())["schema"] == "nsysmodel.report/1"


def test_parquet(bundled: Path, tmp_path: Path) -> None:
    import pandas as pd

    run(bundled, "-m", "qwen3-30b", "-o", "r.parquet", "-q")
    frame = pd.read_parquet(tmp_path / "r.parquet")
    assert frame["op"].iloc[0] == "o_proj"


def test_standard_output_holds_the_report_only(bundled: Path, tmp_path: Path) -> None:
    result = run(bundled, "-m", "qwen3-30b", "-f", "json", "-o", "-")
    document = json.loads(result.stdout)
    jsonschema.validate(document, json_schema())
    assert "A step takes" in " ".join(result.stderr.split())
    assert not list(tmp_path.iterdir())


def test_quiet(bundled: Path) -> None:
    result = run(bundled, "-m", "qwen3-30b", "-q")
    assert (result.stdout, result.stderr, result.exit_code) == ("", "", 0)


def test_json_beside_the_page(bundled: Path, tmp_path: Path) -> None:
    run(bundled, "-m", "qwen3-30b", "-q", "--json", "beside.json")
    alone = run(bundled, "-m", "qwen3-30b", "-q", "-f", "json", "-o", "-").stdout
    beside = (tmp_path / "beside.json").read_text("utf-8")
    assert json.loads(beside)["devices"] == json.loads(alone)["devices"]
    assert (tmp_path / f"{bundled.stem}.html").exists()


def test_own_page_is_replaced_and_others_only_when_named(bundled: Path, tmp_path: Path) -> None:
    page = tmp_path / f"{bundled.stem}.html"
    assert run(bundled, "-q").exit_code == 0
    first = page.read_bytes()
    assert run(bundled, "-m", "qwen3-30b", "-q").exit_code == 0
    assert page.read_bytes() != first
    page.write_text("mine")
    assert run(bundled, "-q").exit_code == 1
    assert page.read_text() == "mine"
    assert run(bundled, "-q", "--force").exit_code == 0
    page.write_text("mine")
    assert run(bundled, "-q", "-o", page.name).exit_code == 0
    assert page.read_bytes() != b"mine"


@pytest.mark.skipif(sys.platform == "win32", reason="needs symbolic links")
def test_a_link_keeps_pointing(bundled: Path, tmp_path: Path) -> None:
    (tmp_path / "real.md").write_text("old")
    (tmp_path / "link.md").symlink_to("real.md")
    run(bundled, "-q", "-o", "link.md")
    assert (tmp_path / "link.md").is_symlink()
    assert (tmp_path / "real.md").read_text() != "old"


MISFITS = {
    "other model": ["-m", "llama-3.1-8b"],
    "other batch": ["-m", "qwen3-30b", "--batch", "7"],
    "no step selected": ["-m", "qwen3-30b", "--steps", "90-99"],
    "too much work": ["-m", "qwen3-30b", "--dtype", "fp32"],
    "no model": [],
}


@pytest.mark.parametrize("name", MISFITS)
def test_what_does_not_fit_is_not_judged(name: str, bundled: Path, tmp_path: Path) -> None:
    result = run(bundled, *MISFITS[name], "--json", "r.json", "-o", "r.html")
    assert result.exit_code == 0
    document = json.loads((tmp_path / "r.json").read_text())
    jsonschema.validate(document, json_schema())
    assert document["verdict"]["status"] == "cannot_judge"
    assert not list(judged_values(document["devices"]))
    device = document["devices"][0]
    assert sum(part["total_ns"] for part in device["waterfall"]) == device["window_total_ns"] > 0
    assert {part["kind"] for part in device["waterfall"]} <= {"unmodeled", "copy", "gap", "overlap"}
    assert sum(device["gaps"]["by_cause"].values()) > 0
    assert device["transfers"]
    assert device["kernels"]
    run(bundled, *MISFITS[name], "-o", "r.md")
    for text in (result.stdout, (tmp_path / "r.md").read_text(), (tmp_path / "r.html").read_text()):
        visible = re.sub(r"(?s)<(script|style).*?</\1>|<[^>]*>", " ", text)
        assert not TIMES.search(visible), TIMES.search(visible)
        assert "of the roofline" not in visible


def test_another_model_is_told_apart_by_its_layers(bundled: Path) -> None:
    document = json.loads(run(bundled, "-m", "llama-3.1-8b", "-f", "json", "-o", "-").stdout)
    assert "48 attention layers" in document["verdict"]["headline"]
    assert "llama-3.1-8b has 32 attention layers" in document["verdict"]["headline"]


def test_a_contradicted_batch_names_the_one_that_fits(bundled: Path) -> None:
    document = json.loads(run(bundled, "-m", "qwen3-30b", "--batch", "7", "-f", "json", "-o", "-").stdout)
    assert "--batch 1 would fit" in document["verdict"]["headline"]


def test_what_was_assumed_is_marked_everywhere(bundled: Path, tmp_path: Path) -> None:
    told = run(bundled, "-m", "qwen3-30b", "--json", "r.json", "-o", "r.md").stdout
    workload = json.loads((tmp_path / "r.json").read_text())["workload"]
    assert workload["context"] == {"value": 4096, "source": "assumed"}
    assert workload["batch"] == {"value": 1, "source": "inferred"}
    assert "context 4,096 (assumed)" in " ".join(told.split())
    assert "context 4,096 _(assumed)_" in (tmp_path / "r.md").read_text()
    given = run(bundled, "-m", "qwen3-30b", "--context", "4096", "-f", "json", "-o", "-").stdout
    assert json.loads(given)["workload"]["context"] == {"value": 4096, "source": "flag"}
    assert "assuming" not in json.loads(given)["verdict"]["headline"]


def test_flags_reach_the_floors(bundled: Path) -> None:
    def floor(*flags: str) -> float:
        text = run(bundled, "-m", "qwen3-30b", *flags, "-f", "json", "-o", "-").stdout
        return float(json.loads(text)["devices"][0]["step"]["floor_ns"])

    base = floor()
    assert floor("--bandwidth", "2.0TB/s") == pytest.approx(2 * base, rel=0.01)
    assert floor("--context", "8192") - base == pytest.approx(100.7e3, rel=0.01)
    assert floor("--quant", "fp8") < 0.65 * base


@pytest.mark.parametrize(
    ("env", "args", "coloured"),
    [
        ({"NO_COLOR": "1"}, ["--color", "auto"], False),
        ({"FORCE_COLOR": "1"}, [], True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, [], False),
        ({"NO_COLOR": "1"}, ["--color", "always"], True),
        ({"FORCE_COLOR": "1"}, ["--color", "never"], False),
        ({}, [], False),
    ],
)
def test_color(
    env: dict[str, str], args: list[str], coloured: bool, bundled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    found = CliRunner().invoke(
        main, [*args, "report", os.fspath(bundled), "-m", "qwen3-30b"], env=env, color=True
    )
    assert found.exit_code == 0
    assert ("\x1b[" in found.stdout) is coloured


def test_no_folder_of_this_machine_is_told(bundled: Path, tmp_path: Path) -> None:
    (tmp_path / "secret-folder").mkdir()
    target = tmp_path / "secret-folder" / "r.html"
    done = subprocess.run(
        [sys.executable, "-m", "nsysmodel", "report", str(bundled), "-m", "qwen3-30b", "-o", str(target)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    page = target.read_text()
    assert str(bundled.parent) not in page
    assert "secret-folder" not in page


def test_needs_no_terminal_and_no_input(bundled: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "nsysmodel", "report", str(bundled), "-f", "markdown", "-o", "-"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env={**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "TERM": "dumb"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.decode("utf-8").startswith("### ")
    assert b"\x1b" not in done.stdout + done.stderr
