"""Numbers to text and text to numbers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsysmodel import units
from nsysmodel.units import UnitError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("4.0TB/s", 4.0e12),
        ("4 TB/s", 4.0e12),
        ("450gb/s", 450e9),
        ("1GiB/s", 2.0**30),
        ("4022.784GB/s", 4_022_784_000_000),
    ],
)
def test_bandwidth(text: str, value: float) -> None:
    assert units.parse_bandwidth(text) == value


@pytest.mark.parametrize("text", ["4.0TB", "fast", "", "-1TB/s", "0TB/s", "4 XB/s", "4e999TB/s", "1 2TB/s"])
def test_wrong_bandwidth(text: str) -> None:
    with pytest.raises(UnitError) as caught:
        units.parse_bandwidth(text)
    assert "4.0TB/s" in caught.value.hint


@pytest.mark.parametrize(
    ("text", "value"), [("989TFLOPS", 989e12), ("989 TFLOP/s", 989e12), ("1PFLOPS", 1e15)]
)
def test_flops(text: str, value: float) -> None:
    assert units.parse_flops(text) == value


def test_clock_bytes_time_and_count() -> None:
    assert units.parse_clock("1980MHz") == 1.98e9
    assert units.parse_bytes("4GB") == 4e9
    assert units.parse_bytes("50MiB") == 50 * 2**20
    assert units.parse_time("1ns") == 1.0
    assert units.parse_time("12.5µs") == 12_500
    assert units.parse_count("32B") == 32e9
    assert units.parse_count("1T") == 1e12
    for parse, text in (
        (units.parse_clock, "1.6"),
        (units.parse_bytes, "4 dozen"),
        (units.parse_time, "1"),
        (units.parse_time, "-1ns"),
        (units.parse_count, "1X"),
    ):
        with pytest.raises(UnitError):
            parse(text)


@pytest.mark.parametrize(
    ("value", "text"),
    [(999.6, "1 µs"), (999.4, "999 ns"), (0, "0 ns"), (0.5, "0.5 ns"), (None, "–"), (float("nan"), "–")],
)
def test_time_at_the_edges(value: float | None, text: str) -> None:
    assert units.ns(value) == text


@given(st.floats(min_value=1e-3, max_value=1e17))
def test_time_keeps_three_digits_and_never_four_before_the_unit(value: float) -> None:
    number, unit = units.ns(value).split(" ")
    factor = {"ns": 1.0, "µs": 1e3, "ms": 1e6, "s": 1e9}[unit]
    assert float(number.replace(",", "")) * factor == pytest.approx(value, rel=5.1e-3)
    assert unit == "s" or float(number) < 1000


@given(st.floats(min_value=1e-6, max_value=1e6))
def test_what_is_printed_can_be_read(value: float) -> None:
    assert units.parse_flops(units.flops(value * 1e9)) == pytest.approx(value * 1e9, rel=5.1e-3)
