"""One unit per column: chosen from the largest value, named in the header, left out of the cells."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

TIME = ((1.0, "ns"), (1e3, "µs"), (1e6, "ms"), (1e9, "s"))
SIZE = ((1.0, "B"), (1e3, "kB"), (1e6, "MB"), (1e9, "GB"), (1e12, "TB"))
BANDWIDTH = ((1e9, "GB/s"), (1e12, "TB/s"))
FLOPS = ((1e9, "GFLOP/s"), (1e12, "TFLOP/s"))
MISSING = "–"


@dataclass(frozen=True, slots=True)
class Unit:
    """How the numbers of one column are written: divided by `factor`, with `decimals` places."""

    factor: float
    name: str
    decimals: int

    def text(self, value: float | None) -> str:
        """The number without its unit; a missing one is a dash.

        >>> Unit(1e3, "µs", 1).text(684_480), Unit(1e3, "µs", 1).text(None), Unit(1e3, "µs", 1).text(-12_000)
        ('684.5', '–', '−12.0')
        >>> Unit(1e3, "µs", 1).text(3.2)
        '<0.1'
        """
        if value is None or not math.isfinite(value):
            return MISSING
        scaled = value / self.factor
        size = f"{abs(scaled):,.{self.decimals}f}"
        if value and not float(size.replace(",", "")):
            return f"<{10.0**-self.decimals:.{self.decimals}f}" if value > 0 else "−0"
        return ("−" if scaled < 0 and float(size.replace(",", "")) else "") + size


def unit_for(values: Iterable[float | None], steps: tuple[tuple[float, str], ...] = TIME) -> Unit:
    """The unit in which the largest of `values` has one to four digits before the point.

    >>> unit_for([684_480.0, 9_800.0]).name, unit_for([12_400_000.0]).name, unit_for([]).name
    ('µs', 'ms', 'µs')
    """
    sizes = [abs(value) for value in values if value is not None and math.isfinite(value)]
    largest = max(sizes, default=0.0)
    if not largest:
        return Unit(*steps[1], 1) if len(steps) > 1 else Unit(*steps[0], 1)
    factor, name = steps[0]
    for candidate, label in steps[1:]:
        if largest >= candidate * (1 if steps is not TIME or candidate < 1e6 else 3):
            factor, name = candidate, label
    scaled = largest / factor
    decimals = 0 if factor == 1 and steps is TIME else 1 if scaled >= 100 else 2
    return Unit(factor, name, decimals)
