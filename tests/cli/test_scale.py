"""`nsysmodel scale`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from nsysmodel.cli import main


def run(*args: str) -> Result:
    return CliRunner().invoke(main, ["scale", *args])


def test_laws() -> None:
    document = json.loads(run("-p", "0.95", "-n", "8", "-f", "json").stdout)
    row = document["rows"][0]
    assert row["amdahl"] == pytest.approx(5.9, rel=6e-3)
    assert row["amdahl_efficiency"] == pytest.approx(0.74, rel=3e-3)
    assert row["gustafson"] == pytest.approx(7.65)
    assert document["amdahl_limit"] == pytest.approx(20)
    assert "20×" in run("-p", "0.95").stdout


DECODE = ("--parallel-time", "1.62ms", "--layers", "48", "--hidden", "2048", "--latency", "1us")


def test_tensor_parallel_decode_has_a_best_n() -> None:
    document = json.loads(run(*DECODE, "--gpu", "h100", "-n", "2", "-f", "json").stdout)
    comm = document["communication"]
    assert (comm["collectives"], comm["size_bytes"], comm["link_bytes_per_s"]) == (96, 4096, 450e9)
    # Ring: 2·96·1 µs for each further device, so N = √(1620/192) = 2.9.
    assert document["best_devices"] == 3
    times = {row["devices"]: row for row in document["rows"]}
    moved = 96 * 2 * 4096 * 1 / 2 / 450e9 * 1e9
    assert times[2]["total_ns"] == pytest.approx(1.62e6 / 2 + moved + 96 * 2 * 1000)
    assert times[3]["best"] is True
    assert "← least" in run(*DECODE, "--link", "450GB/s").stdout


def test_one_step_algorithms_scale_further() -> None:
    args = (*DECODE, "--link", "450GB/s", "--algorithm", "nvls", "--max-devices", "8", "-f", "json")
    assert json.loads(run(*args).stdout)["best_devices"] == 8


def test_fit_finds_the_law_again(tmp_path) -> None:
    path = tmp_path / "times.csv"
    lines = [f"{n},{(1e-3 + 9e-3 / n + 5e-5 * (n - 1)):.9f}" for n in (1, 2, 4, 8, 16)]
    path.write_text("N,seconds\n" + "\n".join(lines))
    document = json.loads(run("--measurements", str(path), "-f", "json").stdout)
    law = document["fit"]
    assert law["parallel_fraction"] == pytest.approx(0.9, rel=1e-3)
    assert law["per_device_ns"] == pytest.approx(5e4, rel=1e-3)
    assert law["best_devices"] == pytest.approx((9e6 / 5e4) ** 0.5, rel=1e-3)
    assert law["residual"] < 1e-5
    assert not law["exact"]
    assert document["rows"][3]["strong_efficiency"] == pytest.approx(10 / (8 * (1 + 9 / 8 + 0.35)), rel=1e-5)


def test_two_points_prove_nothing(tmp_path) -> None:
    path = tmp_path / "times.csv"
    path.write_text("1,1.0\n8,0.16875\n")
    result = run("--measurements", str(path))
    assert "p = 0.95" in result.stdout
    assert "proves nothing" in result.stdout


def test_weak_efficiency(tmp_path) -> None:
    path = tmp_path / "times.csv"
    path.write_text("1,1.0\n8,1.25\n")
    document = json.loads(run("--measurements", str(path), "--weak", "-f", "json").stdout)
    assert document["rows"][1]["weak_efficiency"] == 0.8
    assert document["fit"] is None


@pytest.mark.parametrize(
    ("args", "code", "says"),
    [
        ((), 2, "one thing"),
        (("-p", "0.95", "--parallel-time", "1ms"), 2, "one thing"),
        (("-p", "1.5"), 2, "range"),
        (("--parallel-time", "1ms", "--layers", "48"), 2, "--hidden"),
        ((*DECODE,), 2, "--link"),
        (("--parallel-time", "soon"), 2, "not a time"),
        (("a.sqlite",), 1, "N=EXPORT"),
        (("0=a.sqlite",), 1, "number of devices"),
    ],
)
def test_wrong_usage_says_what_to_do(args: tuple[str, ...], code: int, says: str) -> None:
    result = run(*args)
    assert result.exit_code == code
    assert says in result.stderr


def test_one_n_is_not_a_scaling_law(tmp_path) -> None:
    path = tmp_path / "times.csv"
    path.write_text("4,1.0\n4,1.1\n")
    result = run("--measurements", str(path))
    assert result.exit_code == 1
    assert "two different N" in result.stderr


FIXTURE = Path(__file__).parents[2] / "fixtures" / "qwen3-30b-decode-gh200.sqlite"


def test_steps_of_exports_are_the_measured_times() -> None:
    args = (f"1={FIXTURE}", f"4={FIXTURE}", "--model", "qwen3-30b", "-f", "json")
    document = json.loads(run(*args).stdout)
    times = {row["measured_ns"] for row in document["rows"]}
    assert len(times) == 1
    assert times.pop() > 1e6
    # The same time on 4 devices: nothing of it is parallel.
    assert document["fit"]["parallel_fraction"] == pytest.approx(0, abs=1e-9)
