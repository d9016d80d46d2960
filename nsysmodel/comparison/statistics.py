"""Whether two series of steps differ: block bootstrap, t intervals, Holm's correction.

Steps are not independent: clocks drift, caches warm up. So blocks of neighbouring steps are resampled, not
single steps. The bootstrap gives the standard error of a median; Student's t with the number of blocks as
degrees of freedom gives the interval, because few steps make a small bootstrap spread by themselves.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from nsysmodel.intervals import Ints

SEED = 20_240_229
RESAMPLES = 800
LEAST_ERROR_NS = 1.0
"""Series without any spread are still read from a clock that ticks."""


@dataclass(frozen=True, slots=True)
class Location:
    """Where a side lies: its median step (mean of the runs' medians), the error of that, and its freedom."""

    ns: float
    error_ns: float
    freedom: float


@dataclass(frozen=True, slots=True)
class Difference:
    """B minus A in ns, its confidence interval and the two-sided probability of one so large by chance."""

    ns: float
    low_ns: float
    high_ns: float
    p: float


def block_length(steps: int) -> int:
    """Steps of one block: the cube root of their number.

    >>> block_length(7), block_length(16), block_length(1000)
    (1, 2, 10)
    """
    return max(1, int(math.exp(math.log(steps) / 3) + 1e-9)) if steps else 1


def locate(runs: Sequence[Ints]) -> Location:
    """The location of one side from the series of its runs.

    With one run, the error is that of the median of its steps. With several, it is at least what the
    medians of the runs spread over: only then is the variation from run to run in it.
    """
    medians = [float(np.median(run)) for run in runs]
    errors = [median_error(run) for run in runs]
    within = math.sqrt(sum(error**2 for error in errors)) / len(runs)
    blocks = sum(max(len(run) // block_length(len(run)) - 1, 0) for run in runs)
    if len(runs) == 1:
        return Location(medians[0], within, max(blocks, 0))
    between = float(np.std(medians, ddof=1)) / math.sqrt(len(runs))
    freedom = len(runs) - 1 if between > within else blocks
    return Location(sum(medians) / len(runs), max(between, within), freedom)


def median_error(series: Ints) -> float:
    """Standard error of the median of a series, by a circular block bootstrap; infinite below two steps."""
    steps = len(series)
    if steps < 2:
        return math.inf
    if series.min() == series.max():
        return 0.0
    medians = np.median(series[_resamples(steps)], axis=1)
    return float(np.std(medians, ddof=1)) * math.sqrt(steps / (steps - 1))


@lru_cache(maxsize=32)
def _resamples(steps: int) -> Ints:
    """Rows of step numbers, each a resample in blocks; the same for every series of this length."""
    length = block_length(steps)
    blocks = -(-steps // length)
    random = np.random.default_rng(SEED + steps)
    starts = random.integers(0, steps, (RESAMPLES, blocks))
    rows: Ints = (starts[:, :, None] + np.arange(length)).reshape(RESAMPLES, -1)[:, :steps] % steps
    return rows


def difference(a: Location, b: Location, confidence: float) -> Difference:
    """B minus A with Welch's degrees of freedom; without freedom the interval is infinite and p is 1."""
    ns = b.ns - a.ns
    if min(a.freedom, b.freedom) < 1 or not math.isfinite(a.error_ns + b.error_ns):
        return Difference(ns, -math.inf, math.inf, 1.0)
    error = max(math.hypot(a.error_ns, b.error_ns), LEAST_ERROR_NS)
    parts = a.error_ns**4 / a.freedom + b.error_ns**4 / b.freedom
    squares = (a.error_ns**2 + b.error_ns**2) ** 2
    freedom = squares / parts if parts > 0 else a.freedom + b.freedom
    half = t_quantile(1 - (1 - confidence) / 2, freedom) * error
    return Difference(ns, ns - half, ns + half, 2 * t_tail(abs(ns) / error, freedom))


def noise_ns(sides: Sequence[Sequence[Ints]]) -> float:
    """What the runs change by themselves: the largest shift that has no cause we know of.

    That is the shift of the median from the first to the second half of a run, and the range of the medians
    of runs of one side.
    """
    shifts = [_half_shift(run) for side in sides for run in side]
    for side in sides:
        medians = [float(np.median(run)) for run in side]
        shifts.append(max(medians) - min(medians))
    return max(shifts, default=0.0)


def _half_shift(run: Ints) -> float:
    if len(run) < 4:
        return float(run.max() - run.min()) if len(run) > 1 else 0.0
    middle = len(run) // 2
    return abs(float(np.median(run[:middle])) - float(np.median(run[middle:])))


def holm(probabilities: Sequence[float]) -> list[float]:
    """Probabilities adjusted for their number (Holm 1979): one false alarm in the whole family is as rare.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    order = sorted(range(len(probabilities)), key=lambda k: probabilities[k])
    adjusted, worst = [0.0] * len(order), 0.0
    for rank, index in enumerate(order):
        worst = max(worst, min(1.0, (len(order) - rank) * probabilities[index]))
        adjusted[index] = worst
    return adjusted


def t_tail(t: float, freedom: float) -> float:
    """Probability that Student's t exceeds `t` (at least 0).

    >>> round(t_tail(2.0, 10), 5), round(t_tail(1.96, 1e6), 4)
    (0.03669, 0.025)
    """
    return 0.5 * _incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t))


def t_quantile(probability: float, freedom: float) -> float:
    """The t that is exceeded with probability 1 - `probability`, for probabilities above one half.

    >>> round(t_quantile(0.975, 4), 3), round(t_quantile(0.975, 30), 3)
    (2.776, 2.042)
    """
    return _quantile(probability, round(freedom, 3))


@lru_cache(maxsize=4096)
def _quantile(probability: float, freedom: float) -> float:
    low, high = 0.0, 1.0
    while t_tail(high, freedom) > 1 - probability:
        low, high = high, high * 2
    for _ in range(80):
        middle = (low + high) / 2
        if t_tail(middle, freedom) > 1 - probability:
            low = middle
        else:
            high = middle
    return high


def _incomplete_beta(a: float, b: float, x: float) -> float:
    """Regularised incomplete beta function by its continued fraction (DLMF 8.17.22)."""
    if x <= 0 or x >= 1:
        return min(max(x, 0.0), 1.0)
    if x > (a + 1) / (a + b + 2):
        return 1 - _incomplete_beta(b, a, 1 - x)
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    tiny = 1e-300
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1) or tiny)
    result = d
    for m in range(1, 300):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for factor in (even, odd):
            d = 1 / (1 + factor * d or tiny)
            c = 1 + factor / c or tiny
            result *= c * d
        if abs(c * d - 1) < 1e-13:
            break
    return math.exp(log_front) * result / a
