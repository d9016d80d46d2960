"""Step times of a group of runs in their order, and a scaling law beside its points, as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from markupsafe import Markup

from nsysmodel.batch.types import RunRow, Scaling
from nsysmodel.report.columns import unit_for
from nsysmodel.report.palette import MARKS, TEXT
from nsysmodel.report.svg import Scale, element, figure, join, label, mark, number, ticks
from nsysmodel.report.text import cut

WIDTH, HEIGHT = 1120, 214
LEFT, RIGHT, TOP, BOTTOM = 62, 12, 12, 24
MOST = 250
"""Runs that a trend shows; of more, the last ones."""
NAMED = 16
"""Up to so many runs are named on the axis; more are numbered."""


def trend(rows: Sequence[RunRow], ident: str) -> Markup | None:
    """Mean step time of each run with its spread and its floor; None for fewer than two measured runs."""
    shown = [row for row in rows if row.step_ns is not None][-MOST:]
    if len(shown) < 2:
        return None
    high = max(max(row.step_ns or 0.0, float(row.p95_ns or 0)) for row in shown)
    up = Scale(0, high * 1.06, HEIGHT - BOTTOM, TOP)
    room = (WIDTH - LEFT - RIGHT) / len(shown)
    parts = _grid(up, high, WIDTH)
    places = [LEFT + room * (k + 0.5) for k in range(len(shown))]
    parts += _captions(
        shown, places, room, first=len([r for r in rows if r.step_ns is not None]) - len(shown)
    )
    parts.append(_line([(x, up(row.step_ns or 0.0)) for x, row in zip(places, shown, strict=True)]))
    for x, row in zip(places, shown, strict=True):
        parts.append(_run(x, row, up, min(room * 0.6, 22)))
    return figure(
        ident, WIDTH, HEIGHT, "Step time by run",
        f"Mean step time of {len(shown)} runs in their order, with p5 to p95 and the floor.", join(parts),
    )  # fmt: skip


def law(scaling: Scaling, ident: str) -> Markup:
    """Measured step times against the number of GPUs, and the fitted curve between them."""
    width = 560
    last = scaling.points[-1].gpus
    high = max(max(point.step_ns, point.fitted_ns) for point in scaling.points)
    up = Scale(0, high * 1.06, HEIGHT - BOTTOM, TOP)
    across = Scale(scaling.base, last, LEFT + 16, width - RIGHT - 16)
    parts = _grid(up, high, width)
    counts = [scaling.base + (last - scaling.base) * k / 60 for k in range(61)]
    parts.append(_line([(across(n), up(min(scaling.fit.time_ns(n), high * 1.06))) for n in counts], "fitted"))
    for point in scaling.points:
        x, y = across(point.gpus), up(point.step_ns)
        parts.append(element("circle", cx=x, cy=y, r=4, **mark("r1")))
        parts.append(label(x, HEIGHT - 7, f"{point.gpus:,}", "middle"))
    return figure(
        ident, width, HEIGHT, "Step time by number of GPUs",
        "Median step time at each number of GPUs and the fitted law; the table has the numbers.", join(parts),
    )  # fmt: skip


def _grid(up: Scale, high: float, width: int) -> list[Markup]:
    unit = unit_for([high])
    parts = [label(4, TOP + 2, unit.name)]
    for value in ticks(high / unit.factor, 4):
        y = up(value * unit.factor)
        line = MARKS["light"]["r0"]
        parts.append(element("line", x1=LEFT, x2=width - RIGHT, y1=y, y2=y, cls="g", stroke=line))
        parts.append(label(LEFT - 8, y + 4, f"{value:,.10g}", "end"))
    return parts


def _captions(shown: Sequence[RunRow], places: Sequence[float], room: float, first: int) -> list[Markup]:
    y = HEIGHT - 7
    if len(shown) <= NAMED:
        width = max(int(room / 6.8), 3)
        names = _short([row.name for row in shown], width)
        return [label(x, y, name, "middle") for x, name in zip(places, names, strict=True)]
    every = -(-len(shown) // 16)
    return [label(x, y, f"{first + k + 1:,}", "middle") for k, x in enumerate(places) if k % every == 0]


def _short(names: Sequence[str], width: int) -> list[str]:
    """Names in at most `width` characters; where they are too long, without what all of them begin with.

    >>> _short(["nightly-01", "nightly-02"], 8), _short(["a", "b"], 8)
    (['01', '02'], ['a', 'b'])
    """
    if max(map(len, names)) > width:
        shared = "".join(signs[0] for signs in takewhile(_equal, zip(*names, strict=False)))
        # Only whole words go: run1 and run10 keep their numbers.
        head = max(shared.rfind(sign) for sign in "-_. ") + 1
        names = [name[head:] or name for name in names]
    return [cut(name, width) for name in names]


def _equal(signs: tuple[str, ...]) -> bool:
    return len(set(signs)) == 1


def _line(points: Sequence[tuple[float, float]], cls: str = "trend") -> Markup:
    path = "M" + "L".join(f"{number(x)} {number(y)}" for x, y in points)
    return element("path", d=path, fill="none", cls=cls, stroke=MARKS["light"]["r1"])


def _run(x: float, row: RunRow, up: Scale, wide: float) -> Markup:
    """Spread, mean, floor. What is not judged is hollow and has no floor."""
    ink, step = TEXT["light"]["mut"], row.step_ns or 0.0
    low, high = row.p05_ns, row.p95_ns
    parts = [element("title", f"{row.name}: {unit_for([step]).text(step)} {unit_for([step]).name}")]
    if low is not None and high is not None:
        parts.append(element("line", x1=x, x2=x, y1=up(low), y2=up(high), cls="spread", stroke=ink))
    if row.floor_ns is not None:
        y, half = up(row.floor_ns), wide / 2
        grey = MARKS["light"]["floor"]
        parts.append(element("line", x1=x - half, x2=x + half, y1=y, y2=y, cls="floor", stroke=grey))
    radius = 4 if wide >= 8 else 2.5
    if row.status == "cannot_judge":
        parts.append(element("circle", cx=x, cy=up(step), r=radius, cls="hollow", fill="#fff", stroke=ink))
    else:
        parts.append(element("circle", cx=x, cy=up(step), r=radius, **mark("r1")))
    return element("g", join(parts))
