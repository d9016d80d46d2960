"""`nsysmodel hardware`."""

from __future__ import annotations

import csv
import io
import json

import pytest
from click.testing import CliRunner, Result

from nsysmodel.cli import main


def run(*args: str) -> Result:
    return CliRunner().invoke(main, ["hardware", *args])


def test_list_has_every_device_in_every_format() -> None:
    devices = json.loads(run("list", "-f", "json").stdout)["devices"]
    keys = {device["key"] for device in devices}
    assert len(keys) == len(devices) >= 46
    assert {"h100", "h200", "gh200", "a100", "b200", "grace"} <= keys
    rows = list(csv.DictReader(io.StringIO(run("list", "-f", "csv").stdout)))
    assert len(rows) == len(devices)
    table = run("list").stdout
    assert all(key in table for key in keys)


def test_every_value_of_every_device_has_a_source() -> None:
    for device in json.loads(run("list", "-f", "json").stdout)["devices"]:
        sources = device["sources"]
        named = [f"peak.{dtype}" for dtype in device["peak_flop_per_s"]]
        named += [f"link.{kind}" for kind in device["links_bytes_per_s"]]
        for field, name in (
            ("bandwidth_bytes_per_s", "bandwidth"),
            ("pin_bandwidth_bytes_per_s", "pin_bandwidth"),
            ("sm_count", "sm_count"),
            ("clock_hz", "clock"),
            ("memory_bytes", "memory"),
            ("l2_bytes", "l2"),
        ):
            if device[field]:
                named.append(name)
        for name in named:
            assert sources.get(name), (device["key"], name)
            assert sources[name] != "catalogue file"


def test_datasheet_peaks_are_dense() -> None:
    # A sparse number in the catalogue would be about twice the formula. The H20's FP32 does not fit its SMs.
    for device in json.loads(run("list", "-f", "json").stdout)["devices"]:
        document = json.loads(run("peak", device["key"], "-f", "json").stdout)
        for row in document["peaks"]:
            ratio = row["catalogue_over_formula"]
            assert ratio is None or 0.85 < ratio < 1.13, (device["key"], row)


def test_show_json_is_in_base_units() -> None:
    device = json.loads(run("show", "gh200", "-f", "json").stdout)
    assert device["bandwidth_bytes_per_s"] == 4.0e12
    assert device["pin_bandwidth_bytes_per_s"] == 4_022_784_000_000
    assert device["links_bytes_per_s"]["c2c"] == 450e9
    assert device["memory_bytes"] == 96e9


def test_peak_at_a_clock() -> None:
    result = run("peak", "gh200", "--dtype", "tf32", "--clock", "1.6GHz")
    assert result.exit_code == 0
    assert "432.5 TFLOPS" in result.stdout
    row = json.loads(run("peak", "gh200", "--dtype", "tf32", "--clock", "1.6GHz", "-f", "json").stdout)[
        "peaks"
    ][0]
    assert row["formula_flop_per_s"] == pytest.approx(433e12, rel=2e-3)


def test_peak_beside_the_datasheet() -> None:
    rows = json.loads(run("peak", "h100", "-f", "json").stdout)["peaks"]
    ratios = {row["dtype"]: row["catalogue_over_formula"] for row in rows}
    for dtype in ("tf32", "bf16", "fp16", "fp8"):
        assert ratios[dtype] == pytest.approx(0.924, abs=1e-3)


CPU = ("peak", "--cpu", "--simd-width", "4", "--fma-per-cycle", "4", "--dtype", "fp32", "-f", "json")


@pytest.mark.parametrize(
    ("flags", "peak"),
    [
        (("--clock", "3.1GHz", "--cores", "72"), 7.1424e12),
        (("--clock", "3.0GHz", "--cores", "72"), 6.912e12),
        (("--clock", "3.1GHz", "--cores", "1"), 99.2e9),
        (("--clock", "3.1GHz", "--cores", "72", "--no-fma"), 3.5712e12),
    ],
)
def test_any_cpu_by_flags(flags: tuple[str, ...], peak: float) -> None:
    row = json.loads(run(*CPU, *flags).stdout)["peaks"][0]
    assert row["formula_flop_per_s"] == pytest.approx(peak)


def test_one_core_and_one_sm() -> None:
    assert "99.2 GFLOPS" in run("peak", "grace", "--cores", "1", "--dtype", "fp32").stdout
    row = json.loads(run("peak", "h100", "--sms", "1", "--dtype", "bf16", "-f", "json").stdout)["peaks"][0]
    assert row["formula_flop_per_s"] == 4096 * 1.98e9


@pytest.mark.parametrize(
    ("args", "code", "says"),
    [
        (("show", "gh2000"), 1, "gh200"),
        (("peak", "h100", "--sms", "133"), 1, "132"),
        (("peak", "a100", "--dtype", "fp8"), 1, "no fp8 peak"),
        (("peak", "h100", "--clock", "fast"), 2, "not a clock"),
        (("peak", "h100", "--dtype", "bf61"), 1, "bf16"),
        (("peak",), 2, "hardware list"),
        (("peak", "--cpu", "--simd-width", "4"), 2, "--fma-per-cycle and --clock"),
        (("peak", "h100", "--sms", "1", "--cores", "1"), 2, "one of them"),
    ],
)
def test_wrong_usage_says_what_to_do(args: tuple[str, ...], code: int, says: str) -> None:
    result = run(*args)
    assert result.exit_code == code
    assert says in result.stderr
    assert "Traceback" not in result.output


def test_output_file(tmp_path) -> None:
    path = tmp_path / "list.csv"
    assert run("list", "-o", str(path)).exit_code == 0
    assert path.read_text().startswith("key,")
