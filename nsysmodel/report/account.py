"""The waterfall as it is shown: parts of the account grouped, in order, each with where its bar starts.

Grouping adds integers, so the rows add up to the window exactly, as the parts did.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from nsysmodel.report.text import clean, plural, words
from nsysmodel.result import DeviceResult, WaterfallPart

SHOWN_OPS = 6


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
    grouped = list(_grouped(device.waterfall, judged))
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


def _grouped(parts: Iterable[WaterfallPart], judged: bool) -> Iterable[_Group]:
    by_kind: dict[str, list[WaterfallPart]] = {}
    for part in parts:
        by_kind.setdefault(part.kind, []).append(part)

    def total(kind: str) -> int:
        return sum(part.total_ns for part in by_kind.get(kind, ()))

    if judged:
        if "floor" in by_kind:
            yield "floor of the ops that ran", "floor", total("floor"), None, ""
        yield from _excesses(by_kind.get("excess", ()))
    elif "floor" in by_kind or "excess" in by_kind:
        yield "kernels matched with ops, not judged", "busy", total("floor") + total("excess"), None, ""
    if "unmodeled" in by_kind:
        name = "unmodeled kernels" if judged or "floor" in by_kind else "kernels"
        yield name, "unmodeled" if name != "kernels" else "busy", total("unmodeled"), None, ""
    if "copy" in by_kind:
        yield "copies and memsets", "copy", total("copy"), None, ""
    causes: dict[str, int] = {}
    for part in by_kind.get("gap", ()):
        causes[part.cause or "unknown"] = causes.get(part.cause or "unknown", 0) + part.total_ns
    for cause, ns in sorted(causes.items(), key=lambda item: (-item[1], item[0])):
        if ns:
            yield f"idle: {words(cause)}", "gap", ns, None, ""
    if "overlap" in by_kind and total("overlap"):
        yield "overlap (ran at once)", "overlap", total("overlap"), None, ""


def _excesses(parts: Iterable[WaterfallPart]) -> Iterable[_Group]:
    by_op: dict[str, int] = {}
    for part in parts:
        name = part.op or part.label
        by_op[name] = by_op.get(name, 0) + part.total_ns
    above = sorted(((op, ns) for op, ns in by_op.items() if ns > 0), key=lambda item: (-item[1], item[0]))
    shown = above if len(above) <= SHOWN_OPS + 1 else above[:SHOWN_OPS]
    for op, ns in shown:
        yield op, "excess", ns, op, ""
    rest = above[len(shown) :]
    if rest:
        yield (
            f"{plural(len(rest), 'other op')} above the floor",
            "excess",
            sum(ns for _, ns in rest),
            None,
            "",
        )
    below = [ns for ns in by_op.values() if ns < 0]
    if below:
        note = "below the floor is impossible: see the flags of these ops"
        yield f"{plural(len(below), 'op')} below the floor", "below", sum(below), None, note
