"""Measurements that a user hands in: a CSV of (what, seconds), read with errors that name the line."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from nsysmodel.errors import NsysModelError
from nsysmodel.theory.roofline import Shape

T = TypeVar("T")
MAX_FILE_BYTES = 16_000_000
_SHAPE = re.compile(r"^\s*(\d+)(?:\s*[xX×*]\s*(\d+)\s*[xX×*]\s*(\d+))?\s*$")


class MeasurementError(NsysModelError):
    """A file of measurements is wrong."""


def parse_shape(text: str) -> Shape:
    """`512` (a cube) or `4096x4096x512` (M x N x K).

    >>> parse_shape("512") == Shape(512, 512, 512), parse_shape("8x16x32").k
    (True, 32)
    """
    found = _SHAPE.match(text)
    sizes = [int(part) for part in found.groups() if part] if found else []
    if not sizes or min(sizes) < 1:
        raise MeasurementError(f"'{text}' is not a size.", "Write N, or MxNxK such as 4096x4096x512.")
    m, n, k = sizes if len(sizes) == 3 else sizes * 3
    return Shape(m, n, k)


def parse_devices(text: str) -> int:
    """A number of devices, at least 1."""
    try:
        devices = int(text)
    except ValueError:
        devices = 0
    if devices < 1:
        raise MeasurementError(f"'{text}' is not a number of devices.", "Write 1 or more.")
    return devices


def read_pairs(path: str, parse: Callable[[str], T], what: str) -> list[tuple[T, float]]:
    """Pairs of (what, time in ns) from a CSV of two columns, `what` and seconds; a header is skipped.

    Raises:
        MeasurementError: the file cannot be read, or a line is not such a pair; with the line.
    """
    try:
        if Path(path).stat().st_size > MAX_FILE_BYTES:
            raise MeasurementError(f"{path} is larger than 16 MB.", "Give a CSV of a few measurements.")
        text = Path(path).read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise MeasurementError(f"{path} cannot be read: {reason}.", "Give a CSV file.") from error
    pairs: list[tuple[T, float]] = []
    lines = csv.reader(text.splitlines())
    for row in lines:
        cells = [cell.strip() for cell in row]
        if not any(cells) or cells[0].startswith("#"):
            continue
        if not pairs and not cells[0][:1].isdigit():
            continue
        pairs.append(_pair(cells, parse, what, f"{path}, line {lines.line_num}"))
    if not pairs:
        raise MeasurementError(f"{path} has no measurements.", f"Write lines of {what},seconds.")
    return pairs


def _pair(cells: list[str], parse: Callable[[str], T], what: str, where: str) -> tuple[T, float]:
    if len(cells) < 2:
        raise MeasurementError(
            f"{where}: two columns are needed, {what} and seconds.", f"Write {what},seconds."
        )
    try:
        seconds = float(cells[1])
    except ValueError:
        seconds = math.nan
    if not (seconds > 0 and math.isfinite(seconds)):
        raise MeasurementError(f"{where}: '{cells[1]}' is not a time in seconds.", "Write it like 0.0021.")
    try:
        return parse(cells[0]), seconds * 1e9
    except MeasurementError as error:
        raise MeasurementError(f"{where}: {error.message}", error.hint) from None
