"""The main table: one row per op, the largest recoverable time first, and what each row opens to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from nsysmodel import units
from nsysmodel.report import ncu
from nsysmodel.report.charts import spark
from nsysmodel.report.columns import BANDWIDTH, FLOPS, MISSING, unit_for
from nsysmodel.report.palette import RANKS
from nsysmodel.report.tables import Cell, Column, Table, code, numbers, plain, text, times
from nsysmodel.report.tables import kernel as kernel_cell
from nsysmodel.report.text import clean, plural, unbroken, words
from nsysmodel.result import DeviceResult, KernelUse, OpRow
from nsysmodel.result_account import LinkUse

KERNELS_SHOWN = 8


@dataclass(frozen=True, slots=True)
class Detail:
    """What an op's row opens to."""

    formula: str
    explanation: str
    reasons: tuple[tuple[str, str], ...]
    facts: tuple[tuple[str, str], ...]
    kernels: Table
    spark: Markup | None
    command: str


@dataclass(frozen=True, slots=True)
class Ops:
    """The table of ops with a detail per row."""

    table: Table
    details: tuple[Detail, ...]


def largest_excesses(device: DeviceResult) -> list[OpRow]:
    """Ops above their floor, most time first; without collectives, whose time is mostly waiting."""
    own = [row for row in device.ops if (row.excess_ns or 0.0) > 0 and "wait_included" not in row.flags]
    return sorted(own, key=lambda row: (-(row.excess_ns or 0.0), row.op))


def ranked(device: DeviceResult, *, judged: bool) -> tuple[OpRow, ...]:
    """Ops by what could be gained; by measured time where nothing is judged."""

    def gain(row: OpRow) -> float:
        if not judged:
            return row.measured_ns
        return row.recoverable_ns if row.recoverable_ns is not None else row.excess_ns or 0.0

    return tuple(sorted(device.ops, key=lambda row: (-gain(row), -row.measured_ns, row.op)))


def ranks(rows: Sequence[OpRow]) -> dict[str, int]:
    """Numbers 1 to 5 of the leading ops; they are the same in every drawing of the page."""
    return {row.op: rank for rank, row in enumerate(rows[:RANKS], 1)}


def build(device: DeviceResult, *, judged: bool, ident: str, details: bool = True) -> Ops | None:
    """The table and its details; None without ops."""
    rows = ranked(device, judged=judged)
    if not rows:
        return None
    numbered = ranks(rows)
    table = _judged(rows, numbered, ident) if judged else _matched(rows, numbered, ident)
    opened = (
        tuple(_detail(row, device, judged, f"{ident}-{k}") for k, row in enumerate(rows)) if details else ()
    )
    return Ops(table, opened)


def _name(row: OpRow, numbered: Mapping[str, int]) -> Cell:
    return code(row.op, width=40, mark=str(numbered.get(row.op, 0)))


def _judged(rows: Sequence[OpRow], numbered: Mapping[str, int], ident: str) -> Table:
    time = unit_for([row.measured_ns for row in rows])
    rate, work = (
        unit_for([row.bytes_per_s for row in rows], BANDWIDTH),
        unit_for([row.flop_per_s for row in rows], FLOPS),
    )
    columns: tuple[Column, ...] = (
        Column("Op", wide=True),
        Column(
            "Recoverable",
            time.name,
            hint="what a step gains if the op reaches its floor (its launches where latency bounds), "
            "as far as nothing runs beside it",
        ),
        Column("Measured", time.name),
        Column("Floor", time.name),
        Column("Launches", time.name, hint="floor of a latency-bound op: launches × max(floor, T0)"),
        Column("Ratio", hint="measured over floor; none where latency bounds"),
        Column("Bound", wide=True),
        Column("Rate", rate.name, minor=True, hint="HBM bytes of the model over measured time"),
        Column("Rate", work.name, minor=True, hint="FLOP of the model over measured time"),
        Column("Time", "%", minor=True, hint="of kernel time"),
        Column("Conf.", minor=True, hint="how sure the match is, 0 to 1"),
        Column("Flags", wide=True, minor=True),
    )
    cells = zip(
        numbers([_gain(row) for row in rows], time, bars=True),
        numbers([row.measured_ns for row in rows], time),
        numbers([row.floor_ns for row in rows], time),
        numbers([row.latency_floor_ns for row in rows], time),
        numbers([row.bytes_per_s or None for row in rows], rate),
        numbers([row.flop_per_s or None for row in rows], work),
        strict=True,
    )
    lines: list[tuple[Cell, ...]] = []
    for row, (gain, measured, floor, launches, moved, done) in zip(rows, cells, strict=True):
        lines.append((
            _name(row, numbered), gain, measured, floor, launches,
            plain(row.ratio, units.ratio(row.ratio)), text(_bound(row)), moved, done, _share(row.share),
            _confidence(row.confidence), Cell(", ".join(words(flag) for flag in row.flags), style="flag"),
        ))  # fmt: skip
    caption = "Mean per step. A row opens to its formula, reasons, kernels, and a command that profiles it."
    if all(row.latency_floor_ns is None for row in rows):
        columns, lines = columns[:4] + columns[5:], [line[:4] + line[5:] for line in lines]
    if not any(row.flags for row in rows):
        columns, lines = columns[:-1], [line[:-1] for line in lines]
    return Table(ident, caption, columns, tuple(lines), sorted_by=1)


def _matched(rows: Sequence[OpRow], numbered: Mapping[str, int], ident: str) -> Table:
    unit, measured = times([row.measured_ns for row in rows], bars=True)
    columns = (
        Column("Op", wide=True),
        Column("Measured", unit),
        Column("Instances", minor=True),
        Column("Share", "%", hint="of kernel time"),
        Column("Confidence"),
    )
    lines = tuple(
        (_name(row, numbered), cell, plain(row.instances), _share(row.share), _confidence(row.confidence))
        for row, cell in zip(rows, measured, strict=True)
    )
    caption = "Mean per step, as the kernels were matched. Nothing here is judged against a floor."
    return Table(ident, caption, columns, lines, sorted_by=1)


def _gain(row: OpRow) -> float | None:
    return row.recoverable_ns if row.recoverable_ns is not None else row.excess_ns


def _bound(row: OpRow) -> str:
    return f"{row.bound} ({row.dtype})" if row.bound == "compute" and row.dtype else row.bound


def _share(value: float) -> Cell:
    return Cell(f"{value * 100:.1f}", sort=value)


def _confidence(value: float) -> Cell:
    return Cell(f"{value:.2f}", sort=value, style="" if value >= 0.8 else "low")


def _detail(row: OpRow, device: DeviceResult, judged: bool, ident: str) -> Detail:
    facts = [("instances", f"{row.instances:,} in {plural(device.steps.used, 'step')}")]
    if row.expected_instances and row.expected_instances != row.instances:
        facts.append(("expected", f"{row.expected_instances:,}"))
    if row.kernels_per_instance != 1:
        facts.append(("kernels per instance", units.significant(row.kernels_per_instance)))
    if row.median_ns:
        spread = f"{units.ns(row.p05_ns)} · {units.ns(row.median_ns)} · {units.ns(row.p95_ns)}"
        facts.append(("per instance, 5 % · median · 95 %", spread))
    if judged:
        facts += [*_gain_facts(row.op, device), *_floor_facts(row)]
    largest = max(row.kernels, key=lambda use: use.total_ns, default=None)
    others = {use.name for use in device.kernels}
    command = ncu.command(largest.name, largest.launch_skip or 0, others) if largest else ""
    drawing = None
    if any(row.layers_ns):
        drawing = spark(
            row.layers_ns, f"Mean time of {clean(row.op, 60)} in each of {len(row.layers_ns)} layers"
        )
    return Detail(
        clean(row.formula, 600) if judged else "", clean(row.explanation, 600) if judged else "",
        _reasons(row) if judged else (),
        tuple(facts),
        kernel_table(row.kernels[:KERNELS_SHOWN], ident, f"Kernels that serve {clean(row.op, 40)}",
        len(row.kernels)),
        drawing, command,
    )  # fmt: skip


def _gain_facts(op: str, device: DeviceResult) -> list[tuple[str, str]]:
    """How many times faster the step would be at most."""
    found = next((item for item in device.recoverable if item.op == op), None)
    if found is None or found.ceiling is None:
        return []
    target = {"latency": "its launches", "transfer": "no waiting"}.get(found.target, "its floor")
    facts = [(f"the step with this op at {target}", f"{units.ratio(found.ceiling)} as fast")]
    if found.ceiling_80 is not None:
        facts.append(("at 80 % of that", f"{units.ratio(found.ceiling_80)} as fast"))
    return facts


def _reasons(row: OpRow) -> tuple[tuple[str, str], ...]:
    """Hypotheses by the factor of the peak that they doubt."""
    return tuple((words(reason.factor), unbroken(clean(reason.text, 600))) for reason in row.reasons)


def _floor_facts(row: OpRow) -> list[tuple[str, str]]:
    facts = [
        ("excess: measured minus floor", units.ns(row.excess_ns)),
        ("work per step", f"{units.flop(row.flop)}, {units.bytes_(row.hbm_bytes)} of HBM"),
        ("with every activation in HBM", units.bytes_(row.strict_bytes or None)),
        ("floor, weights and state only", units.ns(row.floor_hbm_ns)),
        ("floor, with activations", units.ns(row.floor_strict_ns)),
        ("floor used", row.floor_basis),
    ]
    if row.latency_floor_ns is not None:
        facts.append(("floor of its launches", units.ns(row.latency_floor_ns)))
    if row.fraction_of_peak is not None:
        facts.append(("share of the bounding roof", units.percent(row.fraction_of_peak)))
    if row.intensity:
        facts.append(("intensity", f"{units.significant(row.intensity)} FLOP/B"))
    if row.link_use is not None:
        facts += _link_facts(row.link_use)
    return [(name, value) for name, value in facts if value != MISSING]


def _link_facts(use: LinkUse) -> list[tuple[str, str]]:
    facts = [
        (f"over {clean(use.link, 20)}, each", units.bytes_(use.bytes)),
        ("link, at most", units.bandwidth(use.link_bytes_per_s)),
        ("achieved over the link", units.bandwidth(use.bytes_per_s)),
    ]
    if use.in_flight_bytes is not None:
        facts.append(("bytes in flight", units.bytes_(use.in_flight_bytes)))
        facts.append(("bytes in flight that would fill the link", units.bytes_(use.needed_bytes)))
    return facts


def kernel_table(uses: Sequence[KernelUse], ident: str, caption: str, total: int) -> Table:
    """Kernels of one op: name, launch shape, count, and the spread of their durations."""
    spans = [float(value) for use in uses for value in (use.min_ns, use.median_ns, use.max_ns)]
    time = unit_for(spans)
    columns = (
        Column("Kernel", wide=True), Column("Grid", wide=True, minor=True), Column("Block", wide=True,
        minor=True),
        Column("Instances"), Column("Min", time.name, minor=True), Column("Median", time.name),
        Column("Max", time.name, minor=True),
    )  # fmt: skip
    rows = tuple(
        (kernel_cell(use.name, width=72), text(use.grid), text(use.block), plain(use.instances),
         *numbers([use.min_ns or None, use.median_ns, use.max_ns or None], time))
        for use in uses
    )  # fmt: skip
    more = f"Showing {len(uses)} of {total:,} kernels of this op." if total > len(uses) else ""
    return Table(ident, caption, columns, rows, more)
