"""The waterfall as it is shown: parts of the account grouped, in order, each with where its bar starts.

Grouping adds integers, so the rows add up to the window exactly, as the parts did.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from nsysmodel.report.columns import Unit, unit_for
from nsysmodel.report.text import clean, plural, words
from nsysmodel.result import DeviceResult, OpRow, WaterfallPart

SHOWN_OPS = 6
LARGE = 0.04
"""Share of the window from which a launch-bound op has a row of its own."""
_GROUPS = {"excess": ("op", "above the floor"), "launch": ("launch-bound op", ""), "comm": ("collective", "")}


@dataclass(frozen=True, slots=True)
class Row:
    """One row. `start_ns` and `end_ns` are where its bar lies; both are sums over the used steps."""

    label: str
    kind: str
    total_ns: int
    mean_ns: float
    start_ns: int
    end_ns: int
    op: str | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Waterfall:
    """Rows in the order of the account, and what they add up to."""

    rows: tuple[Row, ...]
    total_ns: int
    mean_ns: float
    steps: int
    largest_ns: int

    @property
    def closes(self) -> bool:
        """True where the parts sum to the window exactly."""
        return sum(row.total_ns for row in self.rows) == self.total_ns


def waterfall(device: DeviceResult, *, judged: bool) -> Waterfall:
    """The account of a device in rows; without a judgement, modeled kernel time stays in one row."""
    ways = {row.op: _way(row) for row in device.ops}
    grouped = list(_grouped(device.waterfall, judged, ways, device.window_total_ns))
    steps = max(device.steps.used, 1)
    rows: list[Row] = []
    position = largest = 0
    for label, kind, total, op, note in grouped:
        rows.append(Row(clean(label, 48), kind, total, total / steps, position, position + total, op, note))
        position += total
        largest = max(largest, position)
    total = device.window_total_ns
    return Waterfall(tuple(rows), total, total / steps, steps, max(largest, total, 1))


_Group = tuple[str, str, int, "str | None", str]


def _way(row: OpRow) -> str:
    """What would help: a better kernel, fewer launches, or other communication."""
    if "wait_included" in row.flags or row.bound == "link":
        return "comm"
    return "launch" if row.bound == "latency" else "excess"


def _grouped(
    parts: Iterable[WaterfallPart], judged: bool, ways: Mapping[str, str], window_ns: int
) -> Iterable[_Group]:
    by_kind: dict[str, list[WaterfallPart]] = {}
    for part in parts:
        by_kind.setdefault(part.kind, []).append(part)

    def total(kind: str) -> int:
        return sum(part.total_ns for part in by_kind.get(kind, ()))

    if judged:
        if "floor" in by_kind:
            yield "floor of the ops that ran", "floor", total("floor"), None, ""
        yield from _excesses(by_kind.get("excess", ()), ways, window_ns)
    elif "floor" in by_kind or "excess" in by_kind:
        yield "kernels matched with ops, not judged", "busy", total("floor") + total("excess"), None, ""
    if total("unmodeled"):
        name = "unmodeled kernels" if judged or "floor" in by_kind else "kernels"
        yield name, "unmodeled" if name != "kernels" else "busy", total("unmodeled"), None, ""
    if total("copy"):
        yield "copies and memsets", "copy", total("copy"), None, ""
    causes: dict[str, int] = {}
    for part in by_kind.get("gap", ()):
        causes[part.cause or "unknown"] = causes.get(part.cause or "unknown", 0) + part.total_ns
    for cause, ns in sorted(causes.items(), key=lambda item: (-item[1], item[0])):
        if ns:
            yield f"idle: {words(cause)}", "gap", ns, None, ""
    if "overlap" in by_kind and total("overlap"):
        yield "overlap (ran at once)", "overlap", total("overlap"), None, ""


def _excesses(parts: Iterable[WaterfallPart], ways: Mapping[str, str], window_ns: int) -> Iterable[_Group]:
    """Ops above their floor by what would help: the largest ones alone, the rest of each way together."""
    by_op: dict[str, int] = {}
    for part in parts:
        name = part.op or part.label
        by_op[name] = by_op.get(name, 0) + part.total_ns
    above = sorted(((op, ns) for op, ns in by_op.items() if ns > 0), key=lambda item: (-item[1], item[0]))
    for way, (noun, place) in _GROUPS.items():
        own = [(op, ns) for op, ns in above if ways.get(op, "excess") == way]
        if way == "excess":
            shown = own if len(own) <= SHOWN_OPS + 1 else own[:SHOWN_OPS]
        else:
            shown = [(op, ns) for op, ns in own if ns >= LARGE * window_ns][:SHOWN_OPS] if own[1:] else own
        for op, ns in shown:
            yield op, way, ns, op, ""
        rest = own[len(shown) :]
        if rest:
            count = plural(len(rest), f"other {noun}" if shown else noun)
            yield f"{count} {place}".strip(), way, sum(ns for _, ns in rest), None, ""
    below = sorted(((op, ns) for op, ns in by_op.items() if ns < 0), key=lambda item: (item[1], item[0]))
    if len(below) == 1:
        yield below[0][0], "below", below[0][1], below[0][0], "faster than its floor: see its flags"
    elif below:
        names = ", ".join(clean(op, 24) for op, _ in below[:3]) + (", …" if below[3:] else "")
        note = f"faster than their floors: {names}"
        yield f"{plural(len(below), 'op')} below the floor", "below", sum(ns for _, ns in below), None, note


@dataclass(frozen=True, slots=True)
class WaterRow:
    """A row of the waterfall with its bar in percent of the whole."""

    label: str
    kind: str
    mean: str
    exact: str
    share: str
    left: str
    width: str
    rank: int | None
    note: str


def fine(value: float) -> Unit:
    """A unit that shows thousandths, so that the small parts of a step do not vanish beside the large."""
    unit = unit_for([value])
    if unit.factor == 1e9 and value < 100e9:
        return Unit(1e6, "ms", 1)
    return Unit(unit.factor, unit.name, 1 if unit.factor < 1e6 else 3 if value < 10 * unit.factor else 2)


def total(water: Waterfall, unit: Unit) -> tuple[str, str, str]:
    """The last row: mean, exact sum, length of its bar."""
    width = max(water.total_ns, 0) / water.largest_ns * 100
    return unit.text(water.mean_ns), f"{water.total_ns:,}", f"{width:.2f}%"


def _signed(value: float) -> str:
    text = f"{value:.1f}"
    return "0.0" if text == "-0.0" else text.replace("-", "−")


def shown(row: Row, water: Waterfall, unit: Unit, ranks: Mapping[str, int]) -> WaterRow:
    """A row as the page prints it."""
    low, high = sorted((row.start_ns, row.end_ns))
    left, width = low / water.largest_ns * 100, (high - low) / water.largest_ns * 100
    share = row.total_ns / water.total_ns if water.total_ns else 0.0
    sign = "+" if row.total_ns > 0 and row.kind not in ("floor", "busy") else ""
    exact = f"{row.total_ns:,}".replace("-", "−")
    return WaterRow(
        row.label, row.kind if row.total_ns else "none", sign + unit.text(row.mean_ns), exact,
        _signed(share * 100), f"{left:.2f}%", f"{max(width, 0.15):.2f}%",
        ranks.get(row.op, 0) if row.op else None, row.note,
    )  # fmt: skip
