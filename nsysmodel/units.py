"""Units: the one place that turns numbers into text for people, and the text of flags into numbers.

Inside the package times are ns, sizes bytes, work FLOP, rates per second, clocks Hz. Prefixes are
decimal (1 GB = 1e9 B, 1 TB/s = 1e12 B/s); the binary ones are accepted when spelled out (`GiB`).
"""

from __future__ import annotations

import math
import re
from decimal import Decimal, InvalidOperation

from nsysmodel.errors import NsysModelError

DECIMAL = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
BINARY = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "Pi": 2.0**50}

_TIME_NS = {"ns": 1.0, "us": 1e3, "µs": 1e3, "μs": 1e3, "ms": 1e6, "s": 1e9, "min": 60e9}
_NUMBER = re.compile(
    r"^\s*(?P<number>[+-]?(?:\d[\d_,]*)?(?:\.\d+)?(?:[eE][+-]?\d+)?)\s*(?P<unit>[^\d\s].*?)?\s*$"
)
_MISSING = "–"


class UnitError(NsysModelError, ValueError):
    """A text that should be a quantity is not one; from a flag this is wrong usage."""

    exit_code = 2


def ns(value: float | None, digits: int = 3) -> str:
    """A time in ns as text, in the unit that suits it.

    >>> ns(12_400_000), ns(38_000), ns(2_100), ns(640), ns(1.5e9), ns(-38_000)
    ('12.4 ms', '38 µs', '2.1 µs', '640 ns', '1.5 s', '−38 µs')
    """
    return _scaled(value, ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")), digits)


def bytes_(value: float | None, digits: int = 3) -> str:
    """A size in bytes as text.

    >>> bytes_(622_329_856), bytes_(4096), bytes_(0)
    ('622 MB', '4.1 kB', '0 B')
    """
    return _scaled(value, _steps("B"), digits)


def bandwidth(value: float | None, digits: int = 3) -> str:
    """A rate in bytes/s as text.

    >>> bandwidth(4.0e12), bandwidth(450e9), bandwidth(4.022784e12)
    ('4 TB/s', '450 GB/s', '4.02 TB/s')
    """
    return _scaled(value, _steps("B/s"), digits)


def flops(value: float | None, digits: int = 3) -> str:
    """A rate in FLOP/s as text.

    >>> flops(989.4e12), flops(99.2e9), flops(1.979e15)
    ('989 TFLOPS', '99.2 GFLOPS', '1.98 PFLOPS')
    """
    return _scaled(value, _steps("FLOPS"), digits)


def flop(value: float | None, digits: int = 3) -> str:
    """An amount of work in FLOP as text.

    >>> flop(20_971_520)
    '21 MFLOP'
    """
    return _scaled(value, _steps("FLOP"), digits)


def clock(value: float | None, digits: int = 4) -> str:
    """A frequency in Hz as text.

    >>> clock(1.98e9), clock(0)
    ('1.98 GHz', '0 Hz')
    """
    return _scaled(value, ((1e9, "GHz"), (1e6, "MHz"), (1e3, "kHz"), (1.0, "Hz")), digits)


def ratio(value: float | None, digits: int = 3) -> str:
    """A ratio as text.

    >>> ratio(1.861), ratio(0.92), ratio(31.04), ratio(None)
    ('1.86×', '0.92×', '31×', '–')
    """
    return _MISSING if value is None or math.isnan(value) else f"{significant(value, digits)}×"


def percent(value: float | None, digits: int = 3) -> str:
    """A fraction as a percentage.

    >>> percent(0.0437), percent(1.0), percent(0.99996)
    ('4.37 %', '100 %', '100 %')
    """
    return _MISSING if value is None or math.isnan(value) else f"{significant(value * 100, digits)} %"


def count(value: float | None, digits: int = 3) -> str:
    """A count as text: whole numbers with thousands separators, large ones with a prefix.

    >>> count(7328), count(0.5), count(30_500_000_000)
    ('7,328', '0.5', '30.5 G')
    """
    if value is None or math.isnan(value):
        return _MISSING
    if abs(value) < 10e6 and float(value).is_integer():
        return _sign(value) + f"{abs(int(value)):,}"
    return _scaled(value, tuple((factor, prefix) for factor, prefix in _prefixes()), digits).strip()


def significant(value: float | None, digits: int = 3) -> str:
    """A plain number with so many significant digits, never in scientific notation.

    >>> significant(1234.5), significant(0.001234), significant(99.96), significant(0)
    ('1,230', '0.00123', '100', '0')
    """
    if value is None or math.isnan(value):
        return _MISSING
    if math.isinf(value):
        return _sign(value) + "∞"
    if value == 0:
        return "0"
    magnitude = math.floor(math.log10(abs(value)))
    rounded = round(abs(value), digits - 1 - magnitude)
    decimals = max(0, digits - 1 - magnitude)
    text = f"{rounded:,.{decimals}f}"
    return _sign(value) + (text.rstrip("0").rstrip(".") if "." in text else text)


def parse_bandwidth(text: str) -> float:
    """Bytes/s from text such as `4.0TB/s`, `450 GB/s` or `900GiB/s`.

    >>> parse_bandwidth("4.0TB/s")
    4000000000000.0
    """
    return _quantity(text, "bandwidth", ("B/s", "Bps"), "4.0TB/s", positive=True)


def parse_flops(text: str) -> float:
    """FLOP/s from text such as `989TFLOPS`, `989 TFLOP/s` or `989T`.

    >>> parse_flops("989TFLOPS")
    989000000000000.0
    """
    return _quantity(
        text, "rate of operations", ("FLOPS", "FLOP/s", "OPS", "OP/s", ""), "989TFLOPS", positive=True
    )


def parse_clock(text: str) -> float:
    """Hz from text such as `1.6GHz` or `1980 MHz`.

    >>> parse_clock("1.6GHz")
    1600000000.0
    """
    return _quantity(text, "clock", ("Hz",), "1.6GHz", positive=True)


def parse_bytes(text: str) -> float:
    """Bytes from text such as `4GB`, `50MiB` or `4096` (a bare number is bytes).

    >>> parse_bytes("4GB"), parse_bytes("50MiB")
    (4000000000.0, 52428800.0)
    """
    return _quantity(text, "size", ("B", ""), "4GB", bare=True)


def parse_count(text: str) -> float:
    """A count from text such as `1T`, `32B` (billions), `30.5G` or `7e9`.

    >>> parse_count("1T"), parse_count("32B")
    (1000000000000.0, 32000000000.0)
    """
    number, unit = _split(text, "count", "1T")
    factor = {**DECIMAL, "K": 1e3, "m": 1e6, "g": 1e9, "t": 1e12, "b": 1e9, "B": 1e9}.get(unit)
    if factor is None:
        raise UnitError(
            f"'{text}' is not a count.", "Write a number with a decimal prefix, such as 32B, 1T or 7e9."
        )
    return float(number * Decimal(factor))


def parse_time(text: str) -> float:
    """Ns from text such as `1ns`, `12.5us`, `3 ms` or `2s`.

    >>> parse_time("1ns"), parse_time("12.5us")
    (1.0, 12500.0)
    """
    number, unit = _split(text, "time", "12.5us")
    if unit not in _TIME_NS:
        raise UnitError(f"'{text}' is not a time.", "Write a number with ns, us, ms or s, such as 12.5us.")
    if number < 0:
        raise UnitError(f"'{text}' is negative, which no time here can be.", "Write it without the sign.")
    return float(number * Decimal(_TIME_NS[unit]))


def _quantity(
    text: str, what: str, units: tuple[str, ...], example: str, *, positive: bool = False, bare: bool = False
) -> float:
    number, unit = _split(text, what, example)
    factor = _factor(unit, units, bare=bare)
    if factor is None:
        raise UnitError(
            f"'{text}' is not a {what}: unit {_named(unit)} is not known.", f"Write it like {example}."
        )
    if number < 0 or (positive and number == 0):
        raise UnitError(f"'{text}' is not a {what}: it must be above 0.", f"Write it like {example}.")
    return float(number * Decimal(factor))


def _factor(unit: str, units: tuple[str, ...], *, bare: bool) -> float | None:
    if unit == "":
        return 1.0 if bare else None
    for base in units:
        if not unit.casefold().endswith(base.casefold()):
            continue
        prefix = unit[: len(unit) - len(base)].strip()
        for known, factor in {**DECIMAL, **BINARY}.items():
            if prefix.casefold() == known.casefold():
                # mHz or mB would be thousandths: nobody means that, so the case of a prefix is free.
                return factor
    return None


def _split(text: str, what: str, example: str) -> tuple[Decimal, str]:
    match = _NUMBER.match(str(text))
    number = match["number"] if match else ""
    try:
        value = Decimal(number.replace(",", "").replace("_", ""))
    except InvalidOperation:
        raise UnitError(f"'{text}' is not a {what}.", f"Write it like {example}.") from None
    if not math.isfinite(float(value)):
        raise UnitError(f"'{text}' is too large to be a {what}.", f"Write it like {example}.")
    return value, (match["unit"] or "").strip() if match else ""


def _named(unit: str) -> str:
    return f"'{unit}'" if unit else "(none given)"


def _prefixes() -> tuple[tuple[float, str], ...]:
    return tuple(sorted(((factor, prefix) for prefix, factor in DECIMAL.items()), reverse=True))


def _steps(unit: str) -> tuple[tuple[float, str], ...]:
    return tuple((factor, prefix + unit) for factor, prefix in _prefixes())


def _scaled(value: float | None, steps: tuple[tuple[float, str], ...], digits: int) -> str:
    if value is None or math.isnan(value):
        return _MISSING
    size = abs(value)
    if math.isinf(size):
        return _sign(value) + f"∞ {steps[0][1]}"
    for factor, unit in steps:
        # 999.6 of a unit would print as 1,000 of it: compare what will be printed.
        if size and float(f"{size:.{digits - 1}e}") >= factor:
            return f"{significant(value / factor, digits)} {unit}"
    factor, unit = steps[-1]
    return f"{significant(value / factor, digits)} {unit}"


def _sign(value: float) -> str:
    return "−" if value < 0 else ""
