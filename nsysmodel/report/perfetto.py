"""A trace for Perfetto or chrome://tracing: steps, layers, ops, streams and idle time as tracks."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nsysmodel.report.text import clean

if TYPE_CHECKING:
    import pandas as pd

_ORDER = ("steps", "layers", "ops", "idle")
NAME = 300
"""Characters of a name; viewers show fewer."""


@dataclass(frozen=True, slots=True)
class TrackSet:
    """The rows of one process and device, columns as in `judge.tracks`; `title` names it in the viewer."""

    title: str
    rows: pd.DataFrame


def render_trace(sets: Sequence[TrackSet], *, compress: bool = False) -> bytes:
    """The trace as Chrome's JSON, which Perfetto reads, too; one event a line.

    Times are relative to the first event and exact to the ns (written as µs with three decimals). What
    overlaps on one track is put on further tracks of the same name, since viewers draw no partial overlap.

    Args:
        sets: one per process and device.
        compress: as gzip; the same input gives the same bytes.
    """
    origin = min((int(item.rows["start_ns"].min()) for item in sets if len(item.rows)), default=0)
    buffer = io.BytesIO()
    stream = gzip.GzipFile(fileobj=buffer, mode="wb", mtime=0) if compress else buffer
    stream.write(b'{"displayTimeUnit":"ns","traceEvents":[\n')
    first = True
    for number, item in enumerate(sets, 1):
        for event in _events(item, number, origin):
            stream.write((b"" if first else b",\n") + event.encode("ascii"))
            first = False
    stream.write(b"\n]}\n")
    if compress:
        stream.close()
    return buffer.getvalue()


def _events(item: TrackSet, process: int, origin: int) -> Iterator[str]:
    yield _meta("process_name", process, 0, {"name": clean(item.title, NAME)})
    thread = 0
    names = list(dict.fromkeys(item.rows["track"].tolist()))
    ordered = [name for name in _ORDER[:3] if name in names]
    ordered += [name for name in names if name not in _ORDER] + [name for name in _ORDER[3:] if name in names]
    for name in ordered:
        rows = item.rows[item.rows["track"] == name]
        lanes = _lanes(rows["start_ns"].tolist(), rows["end_ns"].tolist())
        for lane in range(max(lanes, default=0) + 1):
            more = f" ({lane + 1})" if lane else ""
            yield _meta("thread_name", process, thread + lane, {"name": clean(name, 80) + more})
            yield _meta("thread_sort_index", process, thread + lane, {"sort_index": thread + lane})
        columns = ("name", "start_ns", "end_ns", "op", "layer", "step", "detail")
        for values, lane in zip(zip(*(rows[c].tolist() for c in columns), strict=True), lanes, strict=True):
            yield _slice(process, thread + lane, origin, *values)
        thread += max(lanes, default=0) + 1


def _slice(process: int, thread: int, origin: int, name: str, start: int, end: int, op: str,
           layer: int, step: int, detail: str) -> str:  # fmt: skip
    facts: dict[str, object] = {}
    if op:
        facts["op"] = clean(op, NAME)
    if layer >= 0:
        facts["layer"] = layer
    if step >= 0:
        facts["step"] = step
    if detail:
        facts["detail"] = clean(detail, NAME)
    return (
        f'{{"ph":"X","pid":{process},"tid":{thread},"ts":{_micros(start - origin)},'
        f'"dur":{_micros(max(end - start, 0))},"name":{json.dumps(clean(name, NAME))},"args":{_text(facts)}}}'
    )


def _meta(kind: str, process: int, thread: int, facts: Mapping[str, object]) -> str:
    return f'{{"ph":"M","pid":{process},"tid":{thread},"name":"{kind}","args":{_text(facts)}}}'


def _text(facts: Mapping[str, object]) -> str:
    return json.dumps(facts, separators=(",", ":"))


def _micros(ns: int) -> str:
    """Integer ns as µs with three decimals, without passing through a float.

    >>> _micros(1_234_567), _micros(5)
    ('1234.567', '0.005')
    """
    return f"{ns // 1000}.{ns % 1000:03d}"


def _lanes(start: Sequence[int], end: Sequence[int]) -> list[int]:
    """For intervals by start, the first lane that is free: none overlaps another on its lane.

    >>> _lanes([0, 5, 10], [7, 9, 12])
    [0, 1, 0]
    """
    free: list[int] = []
    result = []
    for begin, stop in zip(start, end, strict=True):
        lane = next((k for k, until in enumerate(free) if until <= begin), len(free))
        if lane == len(free):
            free.append(stop)
        else:
            free[lane] = max(stop, free[lane])
        result.append(lane)
    return result
