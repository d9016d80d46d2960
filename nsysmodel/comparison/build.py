"""From the snapshots of two sides to the result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any

import numpy as np

from nsysmodel.comparison import comparable
from nsysmodel.comparison.deciding import verdict
from nsysmodel.comparison.devices import Devices, device_pairs
from nsysmodel.comparison.measuring import Means, Series, decided, means, measure
from nsysmodel.comparison.pairing import Pair, pair_parts
from nsysmodel.comparison.result import (
    ClassChange,
    Comparison,
    DevicePair,
    DifferencePart,
    Measure,
    OpChange,
    RunFacts,
    Thresholds,
)
from nsysmodel.comparison.snapshot import Part, Snapshot

ROWS = ("op", "kernel", "graph", "copy")
"""Kinds of parts that are rows; gaps and overlap stand in the waterfall only."""
Index = list[dict[tuple[str, str], Part]]
"""The parts of each run by kind and name."""


@dataclass(frozen=True, slots=True)
class _Matched:
    """A pair of devices with its paired parts, their series and their means."""

    a: Devices
    b: Devices
    parts: tuple[Index, Index]
    pairs: tuple[Pair, ...]
    series: tuple[tuple[Series, Series], ...]
    mean_a: Means
    mean_b: Means


def build(
    a: Sequence[Snapshot],
    b: Sequence[Snapshot],
    thresholds: Thresholds,
    command: str = "",
    *,
    against: Sequence[str] = (),
    model: Mapping[str, Any] | None = None,
) -> Comparison:
    """Compare two sides, each one run or several of the same thing.

    Args:
        against: reasons against the comparison that are known already.
        model: facts of the model that was asked for.

    Raises:
        ExportError: no device of A stands for one of B.
    """
    found, lonely = device_pairs(a, b)
    matched = [_match(one, other) for one, other in found]
    measures: list[Measure] = []
    for item in matched:
        measures += _measures(item, thresholds)
    measures = decided(measures, thresholds)
    pairs: list[DevicePair] = []
    ops: list[OpChange] = []
    reasons = list(against)
    for index, item in enumerate(matched):
        own, measures = measures[: len(item.pairs) + 2], measures[len(item.pairs) + 2 :]
        rows = list(_rows(item, index, own[2:]))
        pairs.append(_device_pair(item, index, own[0], own[1], rows))
        ops += rows
        reasons += [text for text in _against(item, pairs[-1], rows) if text not in reasons]
    ops.sort(
        key=lambda op: (-abs(op.measure.difference_ns or op.measure.a_ns or op.measure.b_ns or 0), op.op)
    )
    return Comparison(
        version=version("nsysmodel"),
        a=tuple(_facts(run) for run in a),
        b=tuple(_facts(run) for run in b),
        model=model,
        thresholds=thresholds,
        verdict=verdict(pairs, ops, reasons),
        pairs=tuple(pairs),
        ops=tuple(ops),
        diagnostics=(*comparable.notes(a, b), *comparable.pairing_notes(ops), *lonely),
        command=command,
    )


def _match(a: Devices, b: Devices) -> _Matched:
    pairs = pair_parts(a, b)
    known = (_index(a), _index(b))
    series = tuple(
        (_series(a, known[0], pair.kind, pair.a), _series(b, known[1], pair.kind, pair.b)) for pair in pairs
    )
    sides = []
    for number, devices in enumerate((a, b)):
        windows = [np.array(device.windows_ns, np.int64) for device in devices]
        sides.append(means([both[number] for both in series], windows))
    return _Matched(a, b, known, pairs, series, *sides)


def _index(devices: Devices) -> Index:
    return [{(part.kind, part.name): part for part in device.parts} for device in devices]


def _series(devices: Devices, known: Index, kind: str, names: tuple[str, ...]) -> Series:
    """Time of some parts in each step of each run; zeros in a run without them."""
    if not names:
        return []
    result = []
    for device, parts in zip(devices, known, strict=True):
        total = np.zeros(len(device.steps), np.int64)
        for name in names:
            if (kind, name) in parts:
                total += np.array(parts[kind, name].values_ns, np.int64)
        result.append(total)
    return result


def _measures(item: _Matched, thresholds: Thresholds) -> Iterator[Measure]:
    """The step, the common part, then each pair of parts; parts that are no rows are not tested."""
    windows = [[np.array(d.windows_ns, np.int64) for d in side] for side in (item.a, item.b)]
    yield measure(windows[0], windows[1], thresholds)
    both = [s for p, s in zip(item.pairs, item.series, strict=True) if p.kind in ROWS and p.a and p.b]
    shared = [
        [sum((s[n][k] for s in both), np.zeros_like(w)) for k, w in enumerate(windows[n])] for n in (0, 1)
    ]
    common = measure(shared[0], shared[1], thresholds)
    # The common part is the sum of rows that are tested themselves: it is shown, not tested again.
    yield replace(common, reason=common.reason or "sum of the rows on both sides")
    for pair, (one, other) in zip(item.pairs, item.series, strict=True):
        found = measure(one, other, thresholds)
        if pair.kind not in ROWS:
            found = replace(found, reason=found.reason or "not tested: part of the step")
        yield found


def _rows(item: _Matched, index: int, measures: Sequence[Measure]) -> Iterator[OpChange]:
    for place, (pair, found) in enumerate(zip(item.pairs, measures, strict=True)):
        if pair.kind not in ROWS:
            continue
        one, other = (_chosen(item.parts[n], pair.kind, (pair.a, pair.b)[n]) for n in (0, 1))
        whole = item.mean_a.total if pair.a else item.mean_b.total
        own = item.mean_a.rows[place] if pair.a else item.mean_b.rows[place]
        yield OpChange(
            op=pair.label,
            kind=pair.kind,
            how=pair.how,
            pair=index,
            measure=found,
            a_parts=pair.a,
            b_parts=pair.b,
            a_launches=sum(part.launches for part in one),
            b_launches=sum(part.launches for part in other),
            a_floor_ns=_floor(one),
            b_floor_ns=_floor(other),
            a_kernels=tuple(name for part in one for name in part.kernels),
            b_kernels=tuple(name for part in other for name in part.kernels),
            kernel_class=next((p.kernel_class for p in (*other, *one) if p.kernel_class), ""),
            share=own / whole if whole else 0.0,
            mean_difference_ns=item.mean_b.rows[place] - item.mean_a.rows[place],
            a_ratio=_ratio(found.a_ns, one),
            b_ratio=_ratio(found.b_ns, other),
        )


def _chosen(known: Index, kind: str, names: tuple[str, ...]) -> list[Part]:
    """The parts of these names, each from the first run that has it."""
    found = []
    for name in names:
        first = next((parts[kind, name] for parts in known if (kind, name) in parts), None)
        found += [first] if first is not None else []
    return found


def _ratio(time_ns: float | None, parts: Sequence[Part]) -> float | None:
    """Time over floor, where every part may be set against its floor."""
    floor = _floor(parts)
    judged = all(part.ratio is not None for part in parts)
    return time_ns / floor if time_ns is not None and floor and judged else None


def _floor(parts: Sequence[Part]) -> float | None:
    floors = [part.floor_ns for part in parts]
    return sum(f for f in floors if f is not None) if floors and None not in floors else None


def _device_pair(
    item: _Matched, index: int, step: Measure, common: Measure, rows: Sequence[OpChange]
) -> DevicePair:
    parts = [
        DifferencePart(pair.kind, pair.label, one, other, other - one)
        for pair, one, other in zip(item.pairs, item.mean_a.rows, item.mean_b.rows, strict=True)
    ]
    parts.sort(key=lambda part: (-abs(part.difference_ns), part.kind, part.label))
    a, b = item.a[0], item.b[0]
    return DevicePair(
        index=index,
        device=a.device,
        gpu_a=str(a.gpu.get("name", "")),
        gpu_b=str(b.gpu.get("name", "")),
        unit=a.unit,
        steps_a=tuple(len(device.steps) for device in item.a),
        steps_b=tuple(len(device.steps) for device in item.b),
        step=step,
        common=common,
        only_a_ns=sum(row.measure.a_ns or 0.0 for row in rows if row.change == "only_a"),
        only_b_ns=sum(row.measure.b_ns or 0.0 for row in rows if row.change == "only_b"),
        a_mean_ns=item.mean_a.total,
        b_mean_ns=item.mean_b.total,
        waterfall=tuple(parts),
        classes=_classes(item),
    )


def _classes(item: _Matched) -> tuple[ClassChange, ...]:
    """Mean kernel time by class, of the kernels that no op claims."""
    table: dict[str, list[int]] = {}
    for number, side in enumerate((item.mean_a, item.mean_b)):
        for pair, value in zip(item.pairs, side.rows, strict=True):
            if pair.kind != "kernel":
                continue
            parts = _chosen(item.parts[number], pair.kind, (pair.a, pair.b)[number])
            # A pair of several kernels is counted where most of its time is.
            largest = max(parts, key=lambda part: sum(part.values_ns), default=None)
            if largest is not None:
                table.setdefault(largest.kernel_class or "other", [0, 0])[number] += value
    found = [ClassChange(name, one, other, other - one) for name, (one, other) in table.items()]
    return tuple(sorted(found, key=lambda row: (-abs(row.difference_ns), row.name)))


def _against(item: _Matched, pair: DevicePair, rows: Sequence[OpChange]) -> Iterator[str]:
    yield from comparable.device_reasons(item.a, item.b)
    both = [row for row in rows if row.a_parts and row.b_parts and row.kind in ("op", "kernel")]
    shares = []
    for time, lonely in ((pair.common.a_ns, pair.only_a_ns), (pair.common.b_ns, pair.only_b_ns)):
        whole = (time or 0.0) + lonely
        shares.append((time or 0.0) / whole if whole else 1.0)
    reason = comparable.common_reason(*shares)
    if not reason and pair.unit == "repetition":
        named = [row for row in both if row.how in ("name", "renamed") and row.a_launches]
        reason = comparable.launch_reason([row.b_launches / row.a_launches for row in named])
    if reason:
        yield reason


def _facts(run: Snapshot) -> RunFacts:
    first = run.devices[0]
    return RunFacts(
        file=run.file,
        status=run.status,
        headline=run.headline,
        gpu=str(first.gpu.get("name", "")),
        steps=len(first.steps),
        graph_mode=run.graph_mode,
        coverage=first.coverage if run.judged else None,
        workload=first.workload,
        synthetic=run.synthetic,
    )
