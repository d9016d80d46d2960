"""The statistics of a comparison: known values, false alarms, power, and what no series can break."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nsysmodel.comparison.measuring import decided, means, measure
from nsysmodel.comparison.result import Thresholds
from nsysmodel.comparison.statistics import (
    difference,
    holm,
    locate,
    median_error,
    noise_ns,
    t_quantile,
    t_tail,
)

NONE = Thresholds(relative=0.0, absolute_ns=0.0)
TABLE = {(0.975, 1): 12.706, (0.975, 2): 4.303, (0.975, 10): 2.228, (0.995, 7): 3.499, (0.95, 100): 1.660}
"""Quantiles of Student's t as every table has them."""


def series(
    seed: int, steps: int, *, mean: float = 100_000, spread: float = 0.01, memory: float = 0.0
) -> np.ndarray:
    random = np.random.default_rng(seed)
    noise, state = [], 0.0
    for value in random.normal(size=steps + 20):
        state = memory * state + math.sqrt(1 - memory**2) * value
        noise.append(state)
    return np.array([round(mean * math.exp(spread * e)) for e in noise[20:]], np.int64)


@pytest.mark.parametrize(("point", "value"), TABLE.items())
def test_quantiles_of_t(point: tuple[float, float], value: float) -> None:
    assert t_quantile(*point) == pytest.approx(value, abs=5e-4)
    assert t_tail(t_quantile(*point), point[1]) == pytest.approx(1 - point[0], rel=1e-6)


def test_error_of_a_median_is_the_known_one() -> None:
    errors = [median_error(series(seed, 100)) for seed in range(40)]
    expected = 1.2533 * 1000 / math.sqrt(100)
    assert np.mean(errors) == pytest.approx(expected, rel=0.2)


def test_steps_that_depend_on_each_other_have_a_larger_error() -> None:
    free = np.mean([median_error(series(seed, 200)) for seed in range(20)])
    bound = np.mean([median_error(series(seed, 200, memory=0.7)) for seed in range(20)])
    assert bound > 1.5 * free


def test_false_alarms_without_any_threshold() -> None:
    """Without thresholds and noise floor the test alone keeps near its level; with them, below it."""
    tested = alarms = 0
    for seed in range(300):
        a, b = series(2 * seed, 16, memory=0.3), series(2 * seed + 1, 16, memory=0.3)
        tested += difference(locate([a]), locate([b]), 0.95).p < 0.05
        (found,) = decided([measure([a], [b], Thresholds())], Thresholds())
        alarms += found.change != "unchanged"
    assert tested <= 0.11 * 300
    assert alarms <= 0.05 * 300


def test_several_runs_count_what_differs_between_them() -> None:
    """Runs that differ by themselves must not pass for a change, however steady each of them is."""
    a = [series(k, 16, mean=mean, spread=0.001) for k, mean in enumerate((100_000, 103_000, 98_000))]
    b = [series(9 + k, 16, mean=mean, spread=0.001) for k, mean in enumerate((102_000, 104_000, 99_500))]
    (alone,) = decided([measure(a[:1], b[:1], Thresholds())], Thresholds())
    (together,) = decided([measure(a, b, Thresholds())], Thresholds())
    assert alone.change == "regressed"
    assert together.change == "unchanged"
    assert noise_ns([a, b]) > 4_000


def test_few_steps_say_nothing() -> None:
    a, b = np.array([100_000]), np.array([200_000])
    (found,) = decided([measure([a], [b], Thresholds())], Thresholds())
    assert found.change == "unchanged"
    assert found.low_ns is None
    assert found.reason == "too few steps to tell"
    assert found.difference_ns == 100_000


def test_identical_steps_are_no_change_and_a_shift_is_one() -> None:
    a = np.full(8, 100_000)
    same, shifted = decided(
        [measure([a], [a], Thresholds()), measure([a], [a + 5_000], Thresholds())], Thresholds()
    )
    assert same.change == "unchanged"
    assert shifted.change == "regressed"


def test_holm_is_harder_the_more_rows_there_are() -> None:
    assert holm([0.02]) == [0.02]
    assert holm([0.02] * 5) == [0.1] * 5
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), max_size=30))
def test_holm_keeps_the_order_and_never_helps(values: list[float]) -> None:
    adjusted = holm(values)
    assert all(new >= old for new, old in zip(adjusted, values, strict=True))
    assert [values[k] for k in np.argsort(adjusted, kind="stable")] == sorted(values) or len(
        set(adjusted)
    ) < len(values)


@settings(max_examples=60)
@given(st.lists(st.lists(st.integers(-1000, 10**12), min_size=7, max_size=7), min_size=1, max_size=12))
def test_means_lose_no_nanosecond(rows: list[list[int]]) -> None:
    windows = np.array(rows, np.int64).sum(axis=0)
    found = means([[np.array(row, np.int64)] for row in rows], [windows])
    assert sum(found.rows) == found.total == sum(windows.tolist()) // 7
    for row, value in zip(rows, found.rows, strict=True):
        assert abs(value - sum(row) / 7) <= 1
