"""Fitting a scaling law to measured pairs of devices and time.

T(N) = a + b/N + c·(N−1), all three at least 0: a the serial part, b the part that divides, c the latency that
every further device adds (the steps of a ring). The bandwidth term of a ring, d·(N−1)/N = d − d/N, cannot be
told from the other two by times alone: it is part of a and b here, and the fit says so.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from nsysmodel.errors import WorkloadError

BANDWIDTH_NOTE = (
    "A ring's bandwidth term, (N−1)/N, is a sum of a constant and a 1/N term: it is contained in the serial "
    "and the parallel part and cannot be separated by times alone."
)


@dataclass(frozen=True, slots=True)
class ScalingFit:
    """A fitted law.

    Attributes:
        serial_ns: a.
        parallel_ns: b.
        per_device_ns: c.
        residual: root mean square of (fitted − measured) / measured.
        worst: the largest of them in size, with its sign.
        points: number of pairs.
        terms: number of terms above 0.
        exact: there are as many terms as different N, so the residual proves nothing.
    """

    serial_ns: float
    parallel_ns: float
    per_device_ns: float
    residual: float
    worst: float
    points: int
    terms: int
    exact: bool

    @property
    def parallel_fraction(self) -> float:
        """p of Amdahl's law: b / (a + b)."""
        whole = self.serial_ns + self.parallel_ns
        return self.parallel_ns / whole if whole else 0.0

    @property
    def best_devices(self) -> float:
        """N that minimises the fitted T(N), √(b/c); infinite without a communication term."""
        if self.per_device_ns <= 0:
            return math.inf
        return max(1.0, math.sqrt(self.parallel_ns / self.per_device_ns))

    def time_ns(self, devices: float) -> float:
        """The fitted T(N)."""
        return self.serial_ns + self.parallel_ns / devices + self.per_device_ns * (devices - 1)


def fit(pairs: Sequence[tuple[float, float]], *, communication: bool = True) -> ScalingFit:
    """Fit T(N) to (N, time in ns), least squares of the relative error, no term below 0.

    Args:
        pairs: at least two different N; three for the communication term.
        communication: with the term c; without it the fit is Amdahl's law.

    Raises:
        WorkloadError: too few different N, or a pair that is not above 0.

    >>> measured = [(n, 100 + 900 / n + 5 * (n - 1)) for n in (1, 2, 4, 8)]
    >>> law = fit(measured)
    >>> round(law.parallel_fraction, 3), round(law.per_device_ns, 3), round(law.best_devices, 1)
    (0.9, 5.0, 13.4)
    """
    for devices, time in pairs:
        if not (devices >= 1 and time > 0 and math.isfinite(devices) and math.isfinite(time)):
            raise WorkloadError(
                f"({devices}, {time}) is not a measurement.", "N is at least 1 and a time is above 0."
            )
    distinct = len({devices for devices, _ in pairs})
    if distinct < 2:
        raise WorkloadError("A scaling law needs at least two different N.", "Measure with another N.")
    usable = min(distinct, 3 if communication else 2)
    chosen = [
        columns
        for size in range(1, usable + 1)
        for columns in itertools.combinations(range(3 if communication else 2), size)
    ]
    # Three terms at most: trying every subset is the exact solution of the non-negative problem.
    solutions = [solution for columns in chosen if (solution := _solve(pairs, columns)) is not None]
    best = min(solutions, key=lambda terms: (round(_rms(pairs, terms), 12), sum(term > 0 for term in terms)))
    errors = _errors(pairs, best)
    terms = sum(term > 0 for term in best)
    return ScalingFit(
        *best,
        residual=_rms(pairs, best),
        worst=max(errors, key=abs),
        points=len(pairs),
        terms=terms,
        exact=terms >= distinct,
    )


Terms = tuple[float, float, float]


def _row(devices: float) -> Terms:
    return 1.0, 1.0 / devices, devices - 1.0


def _solve(pairs: Sequence[tuple[float, float]], columns: tuple[int, ...]) -> Terms | None:
    """Least squares of the relative error with these terms; None where one would be negative."""
    import numpy as np

    rows = np.array([[_row(devices)[column] / time for column in columns] for devices, time in pairs])
    solved = np.linalg.lstsq(rows, np.ones(len(pairs)), rcond=None)[0]
    if (solved < 0).any():
        return None
    terms = [0.0, 0.0, 0.0]
    for column, value in zip(columns, solved, strict=True):
        terms[column] = float(value)
    return terms[0], terms[1], terms[2]


def _errors(pairs: Sequence[tuple[float, float]], terms: Terms) -> list[float]:
    return [
        sum(term * part for term, part in zip(terms, _row(devices), strict=True)) / time - 1
        for devices, time in pairs
    ]


def _rms(pairs: Sequence[tuple[float, float]], terms: Terms) -> float:
    errors = _errors(pairs, terms)
    return math.sqrt(sum(error**2 for error in errors) / len(errors))
