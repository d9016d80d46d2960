"""The timeline of one step: a drawing that works alone, and the columns that the script zooms into.

The bars of a lane and colour are one path, about 25 bytes a bar; the drawing stretches horizontally, its
captions do not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from nsysmodel.report.columns import unit_for
from nsysmodel.report.palette import MARKS, RANKS
from nsysmodel.report.svg import element, join, number, ticks
from nsysmodel.report.text import clean, plural, words
from nsysmodel.result import Timeline, TimelineBar

SPAN = 100_000
LANE, BAR, HEAD = 34, 17, 22
MOST_LANES = 24


@dataclass(frozen=True, slots=True)
class Drawn:
    """A timeline ready for the page: drawing, columns for the script, legend, and what was left out."""

    drawing: Markup
    data: dict[str, Any]
    legend: tuple[tuple[str, str], ...]
    note: str


def draw(timeline: Timeline, ranks: Mapping[str, int], limit: int, ident: str, *, modeled: bool) -> Drawn:
    """Lanes in order of first use, idle last; at most `limit` bars, the longest ones."""
    bars = timeline.bars
    if len(bars) > limit:
        keep = sorted(sorted(range(len(bars)), key=lambda k: -bars[k].duration_ns)[:limit])
        bars = tuple(bars[k] for k in keep)
    if not ranks:
        ranks = _by_time(bars)
    lanes = _lanes(bars)
    bars = tuple(bar for bar in bars if bar.lane in lanes)
    height = HEAD + LANE * len(lanes)
    window = max(timeline.window_ns, 1)
    colours = [_colour(bar, ranks, modeled=modeled) for bar in bars]
    inner = element(
        "svg", join(_paths(bars, colours, lanes, window)), cls="bars", x=0, y=0, width="100%", height=height,
        viewBox=f"0 0 {SPAN} {height}", preserveAspectRatio="none",
    )  # fmt: skip
    title = element("title", f"Step {timeline.step}, one lane per stream", id=f"{ident}-t")
    what = f"{plural(len(bars), 'bar')} in {plural(len(lanes), 'lane')} over {plural(window, 'ns', 'ns')}."
    description = element("desc", what, id=f"{ident}-d")
    captions = element("g", join(_captions(lanes, window)), cls="caps")
    drawing = element(
        "svg", title + description + inner + captions, cls="timeline", width="100%", height=height,
        role="img",
        aria_labelledby=f"{ident}-t {ident}-d",
    )  # fmt: skip
    used = dict(zip(colours, bars, strict=True))
    return Drawn(
        drawing, _columns(timeline, bars, colours, lanes), _legend(used, ranks), _note(timeline, bars)
    )


def _lanes(bars: Sequence[TimelineBar]) -> dict[str, int]:
    found: dict[str, None] = {}
    for bar in bars:
        if bar.kind != "gap":
            found.setdefault(bar.lane)
    names = list(found)[: MOST_LANES - 1]
    names += [
        lane for lane in dict.fromkeys(bar.lane for bar in bars if bar.kind == "gap") if lane not in found
    ][:1]
    return {name: index for index, name in enumerate(names)}


def _by_time(bars: Sequence[TimelineBar]) -> dict[str, int]:
    """Ranks by total time of what is shown, for a page without ops."""
    total: dict[str, int] = {}
    for bar in bars:
        if bar.kind == "kernel":
            total[bar.op or bar.label] = total.get(bar.op or bar.label, 0) + bar.duration_ns
    order = sorted(total, key=lambda name: (-total[name], name))
    return {name: rank for rank, name in enumerate(order[:RANKS], 1)}


def _colour(bar: TimelineBar, ranks: Mapping[str, int], *, modeled: bool) -> str:
    if bar.kind == "gap":
        return "gap"
    if bar.kind in ("copy", "memset"):
        return "copy"
    rank = ranks.get(bar.op or bar.label, 0)
    if modeled and bar.op is None and not rank:
        return "unmodeled"
    return f"r{rank}"


def _paths(
    bars: Sequence[TimelineBar], colours: Sequence[str], lanes: Mapping[str, int], window: int
) -> list[Markup]:
    groups: dict[tuple[int, str], list[str]] = {}
    for bar, colour in zip(bars, colours, strict=True):
        lane = lanes[bar.lane]
        x = bar.start_ns * SPAN // window
        width = max((bar.start_ns + bar.duration_ns) * SPAN // window - x, 1)
        top = HEAD + lane * LANE + LANE - BAR - 3
        groups.setdefault((lane, colour), []).append(f"M{x} {top}h{width}v{BAR}h-{width}z")
    return [
        element("path", d="".join(parts), cls=f"m-{colour}", fill=MARKS["light"][colour])
        for (_, colour), parts in sorted(groups.items())
    ]


def _captions(lanes: Mapping[str, int], window: int) -> list[Markup]:
    unit = unit_for([float(window)])
    drawn = []
    for tick in ticks(window / unit.factor, 8):
        place = tick * unit.factor / window * 100
        at = f"{place:.3f}%"
        line = element("line", x1=at, x2=at, y1=14, y2="100%", cls="g", stroke="#d8dee4")
        anchor = "end" if place > 96 else "start" if place < 2 else "middle"
        text = element("text", f"{tick:g} {unit.name}", x=at, y=10, text_anchor=anchor, cls="t",
        fill="#57606a",
                       font_size=11)  # fmt: skip
        drawn += [line, text]
    for name, index in lanes.items():
        y = HEAD + index * LANE + LANE - BAR - 6
        drawn.append(
            element(
                "text",
                clean("idle" if name == "gap" else name, 40),
                x=2,
                y=number(y),
                cls="t",
                fill="#57606a",
                font_size=11,
            )
        )
    return drawn


def _columns(
    timeline: Timeline, bars: Sequence[TimelineBar], colours: Sequence[str], lanes: Mapping[str, int]
) -> dict[str, Any]:
    """Columns with a table of strings: each distinct name is stored once."""
    strings: dict[str, int] = {}

    def index(text: str) -> int:
        return strings.setdefault(clean(text, 160), len(strings))

    return {
        "window_ns": timeline.window_ns,
        "span": SPAN,
        "lane_height": LANE,
        "head": HEAD,
        "lanes": [clean("idle" if name == "gap" else name, 40) for name in lanes],
        "start": [bar.start_ns for bar in bars],
        "duration": [bar.duration_ns for bar in bars],
        "lane": [lanes[bar.lane] for bar in bars],
        "label": [index(words(bar.cause or "unknown") if bar.kind == "gap" else bar.label) for bar in bars],
        "op": [index(bar.op) if bar.op else -1 for bar in bars],
        "kind": [index(bar.kind) for bar in bars],
        "merged": {str(k): bar.merged for k, bar in enumerate(bars) if bar.merged > 1},
        "strings": list(strings),
    }


def _legend(used: Mapping[str, TimelineBar], ranks: Mapping[str, int]) -> tuple[tuple[str, str], ...]:
    names = {"r0": "other kernels", "unmodeled": "unmodeled", "copy": "copies, memsets", "gap": "idle"}
    ranked = [(f"r{rank}", clean(name, 40)) for name, rank in sorted(ranks.items(), key=lambda item: item[1])]
    rest = [(key, name) for key, name in names.items() if key in used]
    return tuple([item for item in ranked if item[0] in used] + rest)


def _note(timeline: Timeline, bars: Sequence[TimelineBar]) -> str:
    merged = [bar.merged for bar in bars if bar.merged > 1]
    parts = []
    if merged:
        parts.append(f"{plural(sum(merged), 'activity', 'activities')} too short to draw are merged into "
                     f"{plural(len(merged), 'bar')}.")  # fmt: skip
    if len(bars) < len(timeline.bars):
        parts.append(f"Showing the {len(bars):,} longest of {plural(len(timeline.bars), 'bar')}.")
    return " ".join(parts)
