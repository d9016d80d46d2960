"""A roofline with measured points, as one SVG file that stands on its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from nsysmodel import units
from nsysmodel.report.palette import MARKS, TEXT
from nsysmodel.report.svg import Scale, decades, element, figure, join, label

WIDTH, HEIGHT = 760, 440
NAMED = 16
"""Up to so many points carry their name; more would cover each other, and keep it in the title only."""

_LEFT, _RIGHT, _TOP, _BOTTOM = 84, 732, 44, 388


@dataclass(frozen=True, slots=True)
class Roof:
    """One engine: its name, peak in FLOP/s and DRAM bandwidth in bytes/s."""

    name: str
    peak_flop_per_s: float
    bandwidth_bytes_per_s: float


@dataclass(frozen=True, slots=True)
class Point:
    """One measurement: intensity in FLOP/byte and achieved FLOP/s."""

    name: str
    flop_per_byte: float
    flop_per_s: float


def roofline_svg(title: str, roofs: Sequence[Roof], points: Sequence[Point]) -> str:
    """The drawing as text, log-log; each point's numbers stand in its title."""
    x, y = _scales(roofs, points)
    ink = TEXT["light"]
    body = join(
        [
            element("rect", x=0, y=0, width=WIDTH, height=HEIGHT, fill="#ffffff"),
            element("text", title, x=_LEFT, y=24, font_size=14, fill=ink["fg"]),
            *_grid(x, y),
            *[part for place, roof in enumerate(roofs) for part in _roof(x, y, roof, place)],
            *[_point(x, y, point, named=len(points) <= NAMED) for point in points],
            label((_LEFT + _RIGHT) / 2, HEIGHT - 12, "intensity in FLOP per byte", "middle"),
            element("text", "FLOP/s", x=16, y=_TOP - 8, font_size=11, fill=ink["mut"]),
        ]
    )
    described = "; ".join(f"{point.name}: {units.flops(point.flop_per_s)}" for point in points)
    drawing = figure("roofline", WIDTH, HEIGHT, title, described or "ridge points", body)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
        'font-family="system-ui, sans-serif" '
    )
    return str(drawing).replace("<svg ", head, 1) + "\n"


def _scales(roofs: Sequence[Roof], points: Sequence[Point]) -> tuple[Scale, Scale]:
    ridges = [roof.peak_flop_per_s / roof.bandwidth_bytes_per_s for roof in roofs]
    across = [*ridges, *(point.flop_per_byte for point in points)]
    up = [*(roof.peak_flop_per_s for roof in roofs), *(point.flop_per_s for point in points)]
    low_x, high_x = min(across) / 4, max(across) * 6
    low_y = min(min(up) / 3, min(roof.bandwidth_bytes_per_s for roof in roofs) * low_x)
    return (
        Scale(low_x, high_x, _LEFT, _RIGHT, log=True),
        Scale(low_y, max(up) * 2, _BOTTOM, _TOP, log=True),
    )


def _grid(x: Scale, y: Scale) -> list[Markup]:
    line = "#d8dee4"
    parts = []
    for value in decades(x.low, x.high):
        parts.append(element("line", x1=x(value), x2=x(value), y1=_TOP, y2=_BOTTOM, stroke=line))
        parts.append(label(x(value), _BOTTOM + 18, units.significant(value), "middle"))
    for value in decades(y.low, y.high):
        parts.append(element("line", x1=_LEFT, x2=_RIGHT, y1=y(value), y2=y(value), stroke=line))
        parts.append(label(_LEFT - 8, y(value) + 4, units.flops(value), "end"))
    return parts


def _roof(x: Scale, y: Scale, roof: Roof, place: int) -> list[Markup]:
    ridge = roof.peak_flop_per_s / roof.bandwidth_bytes_per_s
    start = max(x.low, y.low / roof.bandwidth_bytes_per_s)
    corners = [
        (start, start * roof.bandwidth_bytes_per_s),
        (ridge, roof.peak_flop_per_s),
        (x.high, roof.peak_flop_per_s),
    ]
    path = " ".join(f"{x(at):.1f},{y(height):.1f}" for at, height in corners)
    name = f"{roof.name} {units.flops(roof.peak_flop_per_s)}, ridge {units.significant(ridge)} FLOP/byte"
    return [
        element(
            "polyline",
            points=path,
            fill="none",
            stroke=TEXT["light"]["fg"],
            stroke_width=1.5,
            stroke_dasharray=None if place == 0 else "6 3",
        ),
        label(_RIGHT, y(roof.peak_flop_per_s) - 6, name, "end"),
    ]


def _point(x: Scale, y: Scale, point: Point, *, named: bool) -> Markup:
    where = f"{units.significant(point.flop_per_byte)} FLOP/byte, {units.flops(point.flop_per_s)}"
    inner = element("title", f"{point.name}: {where}")
    dot = element(
        "circle", inner, cx=x(point.flop_per_byte), cy=y(point.flop_per_s), r=4, fill=MARKS["light"]["excess"]
    )
    if not named:
        return dot
    return dot + label(x(point.flop_per_byte) + 7, y(point.flop_per_s) + 4, point.name)
