"""The drawings of the page: roofline, efficiency strip, layer heat strip, spark line."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from markupsafe import Markup

from nsysmodel import units
from nsysmodel.report.palette import HEAT
from nsysmodel.report.svg import (
    Scale,
    decades,
    element,
    figure,
    join,
    label,
    mark,
    number,
)
from nsysmodel.report.text import clean, cut, plural
from nsysmodel.result import LayerHeat, OpRow

Roof = tuple[str, float]
WIDTH, HEIGHT = 640, 330
LEFT, RIGHT, TOP, BOTTOM = 58, 626, 24, 286


def roofline(
    rows: Sequence[OpRow], ranks: Mapping[str, int], bandwidth: float, roofs: Sequence[Roof], ident: str
) -> Markup | None:
    """Ops over arithmetic intensity (FLOP per byte of HBM) and rate; area is time. None if nothing fits."""
    points = [row for row in rows if row.intensity and row.flop_per_s and row.bound in ("memory", "compute")]
    if not points or not bandwidth or not roofs:
        return None
    top = max(peak for _, peak in roofs)
    ridge = top / bandwidth
    xs = [row.intensity or 1.0 for row in points]
    ys = [row.flop_per_s or 1.0 for row in points]
    x = Scale(min(0.3, min(xs) / 2), max(ridge * 4, max(xs) * 2), LEFT, RIGHT, log=True)
    y = Scale(min(min(ys) / 3, bandwidth * x.low * 2), max(top, max(ys)) * 2, BOTTOM, TOP, log=True)
    body = [_grid(x, y), *_roofs(x, y, bandwidth, roofs)]
    busiest = max(row.total_ns for row in points) or 1
    order = sorted(points, key=lambda row: -row.total_ns)
    placed = [(x(row.intensity or 1.0), y(row.flop_per_s or 1.0), row) for row in order]
    for px, py, row in placed:
        body.append(_dot(px, py, 3 + 9 * math.sqrt(row.total_ns / busiest), row, ranks))
    body += _names(placed[:10], ranks, [(float(LEFT), float(RIGHT), y(peak) + 1) for _, peak in roofs])
    description = (
        f"{plural(len(points), 'op')} over arithmetic intensity; the ridge of the highest roof lies at "
        f"{units.significant(ridge)} FLOP per byte. The same numbers stand in the table of ops."
    )
    return figure(ident, WIDTH, HEIGHT, "Roofline, both axes logarithmic", description, join(body))


def _grid(x: Scale, y: Scale) -> Markup:
    lines = []
    for value in decades(x.low, x.high):
        lines.append(
            element("path", cls="g", stroke="#d8dee4", fill="none", d=f"M{number(x(value))} {TOP}V{BOTTOM}")
        )
        lines.append(label(x(value), BOTTOM + 16, units.significant(value), "middle"))
    for value in decades(y.low, y.high):
        lines.append(
            element("path", cls="g", stroke="#d8dee4", fill="none", d=f"M{LEFT} {number(y(value))}H{RIGHT}")
        )
        lines.append(label(LEFT - 6, y(value) + 4, units.significant(value / 1e12), "end"))
    lines.append(
        label((LEFT + RIGHT) / 2, BOTTOM + 36, "arithmetic intensity, FLOP per byte of HBM", "middle")
    )
    lines.append(label(6, 12, "TFLOP/s"))
    return join(lines)


def _roofs(x: Scale, y: Scale, bandwidth: float, roofs: Sequence[Roof]) -> list[Markup]:
    top = max(peak for _, peak in roofs)
    ridge = min(top / bandwidth, x.high)
    start = max(x.low, y.low / bandwidth)
    low = f"M{number(x(start))} {number(y(start * bandwidth))}"
    path = f"{low}L{number(x(ridge))} {number(y(ridge * bandwidth))}"
    drawn = [element("path", cls="roof", stroke="#1b1f24", stroke_width=1.8, fill="none", d=path)]
    for name, peak in roofs:
        knee = peak / bandwidth
        if knee < x.high:
            line = f"M{number(x(max(knee, x.low)))} {number(y(peak))}H{RIGHT}"
            drawn.append(element("path", cls="roof", stroke="#1b1f24", stroke_width=1.8, fill="none", d=line))
        text = f"{clean(name, 12)} {units.flops(peak)}"
        start_x, room = x(max(min(knee, x.high), x.low)), 7 * len(text)
        if peak == top and start_x + room < RIGHT:
            drawn.append(label(start_x + 4, y(peak) - 6, text))
        else:
            drawn.append(label(RIGHT, y(peak) - 6, text, "end"))
    middle = math.sqrt(start * ridge)
    px, py = x(middle), y(middle * bandwidth)
    slope = (y(ridge * bandwidth) - y(start * bandwidth)) / ((x(ridge) - x(start)) or 1)
    turn = f"rotate({number(math.degrees(math.atan(slope)))} {number(px)} {number(py)})"
    slogan = f"HBM {units.bandwidth(bandwidth)}"
    drawn.append(
        element("text", slogan, x=px, y=py - 7, transform=turn, text_anchor="middle", cls="t", fill="#57606a",
                font_size=11)
    )  # fmt: skip
    return drawn


def _dot(px: float, py: float, size: float, row: OpRow, ranks: Mapping[str, int]) -> Markup:
    """A circle where memory bounds, a triangle where compute does."""
    colour = mark(f"r{ranks.get(row.op, 0)}")
    title = element("title", f"{clean(row.op, 60)}: {units.flops(row.flop_per_s)} at "
                             f"{units.significant(row.intensity)} FLOP/B")  # fmt: skip
    if row.bound == "compute":
        d = f"M{number(px)} {number(py - size)}l{number(size)} {number(size * 1.7)}h{number(-2 * size)}z"
        return element("path", title, d=d, fill_opacity=0.8, **colour)
    return element("circle", title, cx=px, cy=py, r=size, fill_opacity=0.8, **colour)


def _names(
    placed: Sequence[tuple[float, float, OpRow]],
    ranks: Mapping[str, int],
    roofs: Sequence[tuple[float, float, float]],
) -> list[Markup]:
    """Names beside the dots, pushed apart vertically, with a hairline to the dot."""
    drawn: list[Markup] = []
    taken: list[tuple[float, float, float]] = list(roofs)
    for px, py, row in sorted(placed, key=lambda item: item[1]):
        rank = ranks.get(row.op, 0)
        name = (f"{rank} " if rank else "") + cut(clean(row.op, 60), 24)
        side = "end" if px > RIGHT - 150 else None
        lx = px - 18 if side else px + 18
        width = 6.2 * len(name)
        left = lx - width if side else lx
        ly = py + 4
        while any(abs(ly - oy) < 13 and left < oend and ostart < left + width for ostart, oend, oy in taken):
            ly += 2
        if ly > BOTTOM - 3:
            continue
        taken.append((left, left + width, ly))
        line = f"M{number(px)} {number(py)}L{number(lx + (2 if side else -2))} {number(ly - 4)}"
        drawn.append(element("path", cls="hair", stroke="#87919c", stroke_width=0.6, fill="none", d=line))
        drawn.append(label(lx, ly, name, side))
    return drawn


def strip(rows: Sequence[OpRow], ranks: Mapping[str, int], ident: str) -> Markup | None:
    """Efficiency (linear, to the right) against share of time (height): the empty area is lost time."""
    judged = [row for row in rows if row.fraction_of_peak is not None and row.share > 0]
    if not judged:
        return None
    width, top, high = 420, 22, 264
    x = Scale(0, 1, 8, 300)
    whole = sum(row.share for row in judged)
    body = []
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        d = f"M{number(x(tick))} {top - 4}V{top + high}"
        body.append(element("path", cls="g", stroke="#d8dee4", fill="none", d=d))
        body.append(label(x(tick), top + high + 16, f"{tick:.0%}", "middle"))
    position, last = float(top), -99.0
    for row in sorted(judged, key=lambda row: -row.share):
        tall = row.share / whole * high
        part = min(row.fraction_of_peak or 0.0, 1.0)
        thick = max(tall - 1, 0.7)
        rank = ranks.get(row.op, 0)
        body.append(element("rect", cls="well", fill="#eef1f4", x=8, y=position, width=292, height=thick))
        colour = mark(f"r{rank}")
        body.append(element("rect", x=8, y=position, width=max(x(part) - 8, 0.5), height=thick, **colour))
        middle = position + tall / 2 + 4
        if middle - last >= 13 and position + tall / 2 < top + high:
            name = (f"{rank} " if rank else "") + cut(clean(row.op, 60), 17)
            body.append(label(306, middle, name))
            last = middle
        position += tall
    body.append(label(x(0.5), top + high + 36, "share of the bounding roof", "middle"))
    body.append(label(8, 12, "height: share of kernel time; the pale part is time above the floor"))
    description = f"{plural(len(judged), 'op')}, tallest first. The numbers stand in the table of ops."
    return figure(ident, width, HEIGHT, "How much of its roof each op reaches", description, join(body))


def heat(layers: Sequence[LayerHeat], *, judged: bool, ident: str) -> tuple[Markup, tuple[int, ...]] | None:
    """One cell per layer, coloured by its distance from the median of its kind; and what stands out."""
    if not layers:
        return None
    values = [_heat_value(layer, judged) for layer in layers]
    medians = _medians([layer.kind for layer in layers], values)
    cell = 1104 / len(layers)
    body, outliers = [], []
    for index, (layer, value) in enumerate(zip(layers, values, strict=True)):
        step = _heat_step(value / medians[layer.kind])
        x = 8 + index * cell
        body.append(
            element("rect", x=x, y=4, width=max(cell - (1 if cell > 4 else 0), 0.5), height=26,
            cls=f"h{step}",
                    fill=HEAT[step])
        )  # fmt: skip
        if step in (0, len(HEAT) - 2, len(HEAT) - 1):
            outliers.append(index)
            body.append(element("path", cls="roof", fill="#1b1f24", d=f"M{number(x + cell / 2)} 31l4 6h-8z"))
        if index % max(1, round(40 / cell)) == 0:
            body.append(label(x + cell / 2, 50, str(layer.layer), "middle"))
    what = "measured over floor" if judged else "measured time"
    description = (
        f"{plural(len(layers), 'layer')}; {plural(len(outliers), 'layer')} far from the median, marked below."
    )
    drawing = figure(ident, 1120, 56, f"Layers by {what}, around their median", description, join(body))
    return drawing, tuple(outliers)


def _medians(kinds: Sequence[str], values: Sequence[float]) -> dict[str, float]:
    found: dict[str, list[float]] = {}
    for kind, value in zip(kinds, values, strict=True):
        found.setdefault(kind, []).append(value)
    return {kind: sorted(own)[len(own) // 2] or 1.0 for kind, own in found.items()}


def _heat_value(layer: LayerHeat, judged: bool) -> float:
    return layer.measured_ns / layer.floor_ns if judged and layer.floor_ns else layer.measured_ns


def _heat_step(relative: float) -> int:
    edges = (0.9, 0.97, 1.03, 1.1, 1.2, 1.5)
    return sum(relative >= edge for edge in edges)


def spark(values: Sequence[float], name: str) -> Markup:
    """A bar per layer, from zero, in the width of a few words."""
    high = max(values) or 1.0
    width = max(2.0, min(6.0, 360 / len(values)))
    path = "".join(
        f"M{number(index * width)} 28v{number(-26 * value / high)}h{number(width - 0.6)}V28z"
        for index, value in enumerate(values)
    )
    return element(
        "svg", element("title", name) + element("path", d=path, **mark("r0")), cls="spark", role="img",
        viewBox=f"0 0 {number(width * len(values))} 28", width=width * len(values), height=28,
    )  # fmt: skip
