"""`nsysmodel batch`: what it prints where, and its exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner, Result

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "unit"))

from batch_cases import Judge, exports, tree

from nsysmodel.cli import main


@pytest.fixture(autouse=True)
def judge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Judge:
    stand_in = Judge()
    monkeypatch.setattr("nsysmodel.analyze.evaluate", stand_in)
    monkeypatch.chdir(tmp_path)
    return stand_in


def run(*args: str, env: dict[str, str] | None = None) -> Result:
    result = CliRunner().invoke(main, ["batch", *args], env=env)
    assert result.exit_code in (0, 1, 2), result.exception
    return result


def test_a_batch(tmp_path: Path) -> None:
    exports(tmp_path / "in", a="4000", b="5000")
    result = run("in", "-m", "qwen3-30b", "-o", "out")
    assert result.exit_code == 0
    assert result.stderr.splitlines() == [
        "[1/2] a: 4 ms a step, 40.5 % of the roofline",
        "[2/2] b: 5 ms a step, 32.4 % of the roofline",
    ]
    assert result.stdout.splitlines() == [
        "2 runs: 32 to 41 % of the roofline.",
        "2 judged anew, 0 unchanged. Wrote out/index.html",
    ]
    again = run("in", "-m", "qwen3-30b", "-o", "out")
    assert again.stderr.count("(unchanged)") == 2
    assert "0 judged anew, 2 unchanged" in again.stdout


def test_the_command_in_a_report_gives_that_report(tmp_path: Path, judge: Judge) -> None:
    exports(tmp_path / "in", a="4000")
    file = tmp_path / "gpus.yaml"
    file.write_text("gpus: []\n")
    flags = ["--batch", "2", "--kv-dtype", "fp8", "--gpu", "h100", "--peak", "bf16=900TFLOPS"]
    flags += ["--steps", "2-5", "--time-range", "0.5-2.25", "--nvtx", "a b"]
    assert run("in", "-m", "qwen3-30b", "-o", "out", *flags).exit_code == 0
    (asked,) = judge.asked
    words = asked["command"]
    assert words == (
        "nsysmodel report a.sqlite --model qwen3-30b --batch 2 --kv-dtype fp8 --gpu h100 "
        "--peak bf16=900TFLOPS --steps 2-5 --nvtx 'a b' --time-range 0.5-2.25"
    )
    assert (asked["workload"].batch, asked["selection"].time_range) == (2, (500_000_000, 2_250_000_000))


@pytest.mark.parametrize(
    ("texts", "flags", "code"),
    [
        ({"a": "4000", "b": "unjudged"}, [], 0),
        ({"a": "4000", "b": "bad"}, [], 1),
        ({"a": "4000", "b": "bad"}, ["--allow-failures"], 0),
        ({"a": "bad"}, ["--allow-failures"], 1),
        ({"a": "bug"}, [], 1),
    ],
)
def test_exit_codes(texts: dict[str, str], flags: list[str], code: int, tmp_path: Path) -> None:
    exports(tmp_path / "in", **texts)
    result = run("in", "-m", "qwen3-30b", "-o", "out", "-q", *flags)
    assert result.exit_code == code
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == list(texts.values()).count("bad") + list(texts.values()).count(
        "bug"
    )
    assert (tmp_path / "out" / "index.html").exists()


@pytest.mark.parametrize(
    ("flags", "code", "words"),
    [
        (["-m", "no-such-model"], 1, "There is no bundled model"),
        (["--gpu", "no-such-gpu"], 1, "no-such-gpu"),
        (["--bandwidth", "fast"], 2, "fast"),
        (["--label", "x"], 2, "'x' is not a label"),
        (["--label-from", "("], 2, "not a regular expression"),
        (["--workload-from", "(?P<batch>in)"], 2, "not a value of --batch"),
        (["--group-by", "colour"], 2, "No run has 'colour'"),
        (["--keep", "--prune"], 2, "cannot be both"),
        (["-j", "-1"], 2, "-1"),
        (["--dask", "tcp://127.0.0.1:9"], 1, "Dask"),
    ],
)
def test_what_is_wrong_is_said_before_any_export_is_opened(
    flags: list[str], code: int, words: str, tmp_path: Path, judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    from nsysmodel.batch import cluster

    monkeypatch.setattr(cluster.run_cluster, "__kwdefaults__", {"timeout_s": 0.5})
    exports(tmp_path / "in", a="4000")
    result = run("in", "-o", "out", *flags)
    assert (result.exit_code, words in result.stderr) == (code, True), result.stderr
    assert judge.seen == []
    assert "Traceback" not in result.stderr


def test_a_foreign_folder_is_left_alone(tmp_path: Path) -> None:
    exports(tmp_path / "in", a="4000")
    before = tree(tmp_path)
    result = run("in/a.sqlite", "-o", "in")
    assert result.exit_code == 1
    assert "holds files that no batch wrote" in result.stderr
    assert tree(tmp_path) == before


def test_labels_and_groups(tmp_path: Path) -> None:
    exports(tmp_path / "in", run_1a2b3c4="4000", run_5d6e7f8="5000")
    pattern = "_(?P<commit>[0-9a-f]{7})"
    assert run("in", "-o", "out", "--label", "site=x", "--label-from", pattern).exit_code == 0
    table = pd.read_parquet(tmp_path / "out" / "ops.parquet")
    assert sorted(set(table["label.commit"])) == ["1a2b3c4", "5d6e7f8"]
    data = json.loads((tmp_path / "out" / "index.json").read_text())
    assert data["common"]["site"] == "x"
    assert data["varying"] == ["commit"]


def test_earlier_runs_are_mentioned(tmp_path: Path) -> None:
    one, two = exports(tmp_path / "in", a="4000", b="5000")
    run(one, "-o", "out")
    assert "not on the page: 1 earlier run." in run(two, "-o", "out").stdout
    assert "2 runs" in run(two, "-o", "out", "--keep").stdout


def test_a_terminal_gets_a_bar_and_the_failures(tmp_path: Path) -> None:
    exports(tmp_path / "in", a="4000", b="bad")
    result = CliRunner().invoke(main, ["--color", "always", "batch", "in", "-o", "out"])
    assert "Judging" in result.stderr
    assert "2/2" in result.stderr
    assert "failed: b.sqlite is damaged." in result.stderr
    assert "4 ms a step" not in result.stderr


def test_hostile_names_stay_on_their_line(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "[bold]x\x1b[31m\nnext.sqlite").write_text("bad")
    result = run("in", "-o", "out")
    assert len(result.stderr.splitlines()) == 1
    assert "\x1b" not in result.stderr
    assert "[bold]x" in result.stderr
    assert "\x1b" not in (tmp_path / "out" / "index.html").read_text()


def test_help_is_quick() -> None:
    code = (
        "import sys; from nsysmodel.cli import main; main(['batch', '--help'], standalone_mode=False); "
        "sys.exit(any(name in sys.modules for name in ('pandas', 'numpy', 'pyarrow', 'distributed')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "--label-from REGEX" in done.stdout
