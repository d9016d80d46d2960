"""`nsysmodel roofline`."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from nsysmodel.cli import main
from nsysmodel.cli.measurements import MeasurementError, parse_shape, read_pairs

SWEEP = Path(__file__).parents[2].parent / "shared" / "traces" / "square-matmul-rtx4090.sqlite"


def run(*args: str) -> Result:
    return CliRunner().invoke(main, ["roofline", *args])


def test_ridge_points() -> None:
    rows = json.loads(run("--gpu", "gh200", "-f", "json").stdout)["ridges"]
    ridges = {row["dtype"]: row for row in rows}
    assert ridges["tf32"]["ridge_flop_per_byte"] == 123.5
    assert ridges["tf32"]["ridge_size"] == 741
    assert ridges["fp32"]["ridge_flop_per_byte"] == pytest.approx(16.75, rel=3e-3)
    assert ridges["fp32"]["intensity_cap"] == pytest.approx(991, rel=1e-3)


def test_bound_of_a_gemm() -> None:
    args = ("--gpu", "gh200", "--gemm", "512", "--dtype", "tf32", "--t0", "12.5us")
    document = json.loads(run(*args, "-f", "json").stdout)
    row = document["gemms"][0]
    assert row["bound"] == "memory"
    assert row["attainable_flop_per_s"] == pytest.approx(341e12, rel=2e-3)
    assert document["fixed_cost"]["square_size"]["tf32"] == pytest.approx(2300, rel=6e-3)
    table = run(*args).stdout
    assert "341 TFLOPS" in table
    assert "2,311" in table


def test_cache_can_be_given() -> None:
    rows = json.loads(run("--gpu", "gh200", "--cache", "50MB", "--dtype", "fp32", "-f", "json").stdout)[
        "ridges"
    ]
    assert rows[0]["intensity_cap"] == pytest.approx(880, rel=6e-3)
    row = json.loads(run("--gpu", "gh200", "--gemm", "16384", "--cache", "0B", "-f", "json").stdout)["gemms"][
        0
    ]
    assert row["cache_bound_bytes"] is None


def test_an_impossible_measurement() -> None:
    args = ("--gpu", "grace", "--bytes", "4GB", "--flop", "0", "--time", "1ns")
    check = json.loads(run(*args, "-f", "json").stdout)["check"]
    assert check["possible"] is False
    assert check["least_ns"] == 7_812_500
    assert "Impossible" in run(*args).stdout
    assert json.loads(run(*args[:-1], "8ms", "-f", "json").stdout)["check"]["possible"] is True


def test_measurements_against_the_roof(tmp_path) -> None:
    path = tmp_path / "gemm.csv"
    # 4096³ at 687 TFLOPS; 512³ faster than DRAM but inside L2; 2048³ faster than the peak.
    path.write_text("size,seconds\n4096,0.0002\n512,4e-7\n2048x2048x2048,1.5e-5\n")
    args = ("--gpu", "h100", "--measurements", str(path))
    rows = json.loads(run(*args, "-f", "json").stdout)["measurements"]
    assert rows[0]["flop_per_s"] == pytest.approx(687.2e12, rel=1e-3)
    assert rows[0]["of_roof"] == pytest.approx(687.2 / 989.4, rel=1e-3)
    assert [row["flag"] for row in rows] == [None, "l2_resident", "wrong_peak"]
    svg = tmp_path / "gemm.svg"
    assert run(*args, "-o", str(svg)).exit_code == 0
    drawing = ET.fromstring(svg.read_text())
    circles = drawing.findall("{http://www.w3.org/2000/svg}circle")
    assert len(circles) == 3


@pytest.mark.real
@pytest.mark.skipif(not SWEEP.exists(), reason="../shared with the real exports is missing")
def test_products_in_an_export() -> None:
    args = (str(SWEEP), "--kernel", "matmul_tiled", "--dtype", "fp32")
    rows = json.loads(run(*args, "--gemm", "2048", "-f", "json").stdout)["measurements"]
    assert rows[0]["measured_ns"] == pytest.approx(2.66e6, rel=0.02)
    assert rows[0]["of_peak"] == pytest.approx(0.078, rel=0.02)
    assert run(*args, "--gemm", "1024", "--gemm", "2048").exit_code == 1


@pytest.mark.parametrize(
    ("args", "code", "says"),
    [
        ((), 1, "--gpu"),
        (("--gpu", "h100", "--gemm", "0"), 1, "not a size"),
        (("--gpu", "a100", "--gemm", "512", "--dtype", "fp8"), 1, "no fp8 peak"),
        (("--gpu", "h100", "--bytes", "4GB"), 2, "--time"),
        (("x.sqlite",), 2, "--kernel"),
        (("--gpu", "h100", "--bytes", "4GB", "--time", "0ns"), 1, "above 0"),
        (("--gpu", "h100", "--measurements", "none.csv"), 1, "cannot be read"),
        (("--gpu", "h100", "--bytes", "1B", "--time", "1s", "-f", "svg"), 2, "no drawing"),
    ],
)
def test_wrong_usage_says_what_to_do(args: tuple[str, ...], code: int, says: str) -> None:
    result = run(*args)
    assert result.exit_code == code
    assert says in result.stderr


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("size,seconds\n", "no measurements"),
        ("512,1e-5\n1024\n", "line 2"),
        ("512,1e-5\n1024,-1\n", "line 2"),
        ("512,1e-5\n10x24,1\n", "line 2"),
        ("512,nan\n", "line 1"),
    ],
)
def test_wrong_measurements_name_the_line(tmp_path, text: str, says: str) -> None:
    path = tmp_path / "m.csv"
    path.write_text(text)
    with pytest.raises(MeasurementError, match=says):
        read_pairs(str(path), parse_shape, "size")
