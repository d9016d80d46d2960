"""What a change must exceed to be one: the options of compare, gate and baseline."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from nsysmodel.comparison.result import Thresholds

F = TypeVar("F", bound=Callable[..., Any])


def threshold_options(command: F) -> F:
    """Add `--threshold`, `--min-change` and `--confidence`."""
    options = [
        click.option("--threshold", default="1%", show_default=True, metavar="SHARE",
                     help="Least change of a row, relative to A: 2% or 0.02."),
        click.option("--min-change", default="500ns", show_default=True, metavar="TIME",
                     help="Least change of a row in a step."),
        click.option("--confidence", default=0.95, show_default=True,
                     type=click.FloatRange(0.5, 0.9999), help="Of the intervals and of the whole verdict."),
    ]  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


def thresholds_of(threshold: str, min_change: str, confidence: float) -> Thresholds:
    """The thresholds of the flags.

    Raises:
        click.BadParameter: a text is no share or no time.
    """
    from nsysmodel import units
    from nsysmodel.comparison.result import Thresholds

    return Thresholds(share(threshold), units.parse_time(min_change), confidence)


def share(text: str) -> float:
    """A share from `2%`, `2 %` or `0.02`.

    >>> share("2%"), share("0.02")
    (0.02, 0.02)

    Raises:
        click.BadParameter: it is none, or not from 0 to 10.
    """
    try:
        value = float(text.replace("%", "").strip()) / (100 if "%" in text else 1)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 10:
        raise click.BadParameter(f"{text!r} is no share such as 2% or 0.02.")
    return value
