"""Measured against floor, op by op, over the used steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nsysmodel.account.types import KERNEL
from nsysmodel.hardware.types import Hardware
from nsysmodel.join.types import Bools, Bundle, Codes, Ints, Join
from nsysmodel.judge.cases import Case
from nsysmodel.judge.opkernels import NONE, OpKernels, used_rows
from nsysmodel.judge.uses import earlier_launches, kernel_uses
from nsysmodel.model.types import Op, StepModel
from nsysmodel.result import OpRow
from nsysmodel.theory.cost import Cost, fused, total
from nsysmodel.theory.floor import Floor, floor_of

KERNEL_ROWS = 12
"""Kernel shapes listed under an op."""
LOW_CONFIDENCE = 0.6


@dataclass(frozen=True, slots=True)
class Price:
    """Cost and floor of one execution, its main op, and whether the floor may be compared."""

    cost: Cost
    floor: Floor
    op: Op
    judged: bool


@dataclass(frozen=True, slots=True)
class Priced:
    """Floors of one op label over the used steps.

    Attributes:
        floor_ns, hbm_ns, strict_ns: sums over all executions, not rounded.
        cost: summed cost.
        one: the floor of a single, most frequent execution.
        judged: False where the floor must not be compared.
        parts: floor in ns and number of the executions of the same work.
    """

    floor_ns: float
    hbm_ns: float
    strict_ns: float
    cost: Cost
    one: Floor
    op: Op
    executions: int
    judged: bool
    parts: tuple[tuple[float, int], ...] = ()

    def latency_ns(self, launches: int, t0_ns: float) -> float | None:
        """Least time where launches, not the work, set it; None where the work is the larger part.

        An op is bound by launches if its floors add up to less than one fixed cost for each execution.
        Kernels beyond the first of an execution cost a launch each.
        """
        if self.floor_ns >= self.executions * t0_ns:
            return None
        least = sum(count * max(floor, t0_ns) for floor, count in self.parts)
        return least + max(launches - self.executions, 0) * t0_ns


class PriceList:
    """Floors of the places of a model; a kernel that stands for several is priced as one fused kernel."""

    def __init__(self, model: StepModel, hardware: Hardware) -> None:
        self._hardware = hardware
        self._model = model
        self._cache: dict[tuple[Bundle, str, str], Price] = {}

    def at(self, bundle: Bundle, layer: int) -> Price | None:
        """Price of one execution in a layer (-1: head or tail); None where the model has no such place."""
        layers = self._model.layers
        kind = layers[layer] if 0 <= layer < len(layers) else ""
        before = layers[layer - 1] if 0 < layer <= len(layers) else (layers[-1] if layer < 0 else "")
        key = (bundle, kind, before)
        if key not in self._cache:
            found = [self._find(region, position, kind, before) for region, position in bundle]
            chosen = [op for op in found if op is not None]
            if not chosen:
                return None
            cost = fused([op.cost for op in chosen])
            main = max(chosen, key=lambda op: op.cost.strict_bytes + op.cost.total_flop)
            judged = all(op.judged for op in chosen)
            self._cache[key] = Price(cost, floor_of(cost, self._hardware), main, judged)
        return self._cache[key]

    def _find(self, region: str, position: int, kind: str, before: str) -> Op | None:
        """The op at a place; None where the model has no such place (a head without a layer before it)."""
        named = {"layer": kind, "previous": before}.get(region)
        ops = {"head": self._model.head, "tail": self._model.tail}.get(region)
        if ops is None:
            ops = self._model.kinds.get(named or "", ())
        return ops[position] if position < len(ops) else None


def price(prices: PriceList, join: Join, inside: Bools) -> dict[str, Priced]:
    """Floors of every op label that was served in the rows `inside`."""
    return price_places(prices, executed_places(join, inside))


Executed = tuple[str, Bundle, int, int]
"""Op label, places, layer (-1: head or tail), and the number of executions there."""


def executed_places(join: Join, inside: Bools) -> tuple[Executed, ...]:
    """What was executed in the rows `inside`, and how often, in order of labels, places and layers."""
    labels = join.labels
    rows = np.flatnonzero(inside & (labels.executions > 0) & (labels.bundle >= 0))
    layers, bundles = int(labels.layer.max(initial=-1)) + 2, max(len(labels.bundles), 1)
    places = labels.op[rows].astype(np.int64)
    places *= bundles
    places += labels.bundle[rows]
    places *= layers
    places += labels.layer[rows]
    places += 1
    number = np.bincount(places)
    found = np.flatnonzero(number)
    return tuple(
        (
            labels.op_labels[place // layers // bundles],
            labels.bundles[place // layers % bundles],
            place % layers - 1,
            count,
        )
        for place, count in zip(found.tolist(), number[found].tolist(), strict=True)
    )


def price_places(prices: PriceList, executed: Sequence[Executed]) -> dict[str, Priced]:
    """Floors of every op label among what was executed."""
    parts: dict[str, list[tuple[Price, int]]] = {}
    for label, bundle, layer, count in executed:
        found = prices.at(bundle, layer)
        if found is not None:
            parts.setdefault(label, []).append((found, count))
    return {label: _summed(known) for label, known in parts.items()}


def _summed(known: Sequence[tuple[Price, int]]) -> Priced:
    """Prices of executions added up; the dearest kind of execution stands for one."""
    usual = max(known, key=lambda pair: (pair[0].floor.ns * pair[1], pair[1]))[0]
    return Priced(
        floor_ns=sum(price.floor.ns * count for price, count in known),
        hbm_ns=sum(price.floor.hbm_ns * count for price, count in known),
        strict_ns=sum(price.floor.strict_ns * count for price, count in known),
        cost=total(price.cost * count for price, count in known),
        one=usual.floor,
        op=usual.op,
        executions=sum(count for _, count in known),
        judged=all(price.judged for price, _ in known),
        parts=tuple((price.floor.ns, count) for price, count in known),
    )


def op_rows(
    case: Case,
    join: Join,
    priced: Mapping[str, Priced],
    measured_total: Mapping[str, int],
    kernels: Mapping[str, OpKernels],
    hardware: Hardware,
    t0_ns: float,
    layers: int,
) -> tuple[OpRow, ...]:
    """One row per op label, the largest excess first.

    Args:
        measured_total: integer ns of each label over the used steps, from the account.
        kernels: those of each label in the used steps.
        t0_ns: fixed cost of a launch.
    """
    duration = case.kernels["duration_ns"].to_numpy(np.int64)
    kernel_time = int(duration[used_rows(join)].sum())
    examples = [found.examples for found in kernels.values()]
    earlier = earlier_launches(case, np.concatenate(examples) if examples else NONE.examples)
    rows = [
        _row(
            case,
            join,
            label,
            priced[label],
            kernels.get(label, NONE),
            measured_total[label],
            hardware,
            t0_ns,
            len(join.used),
            kernel_time,
            layers,
            earlier,
        )
        for label in join.labels.op_labels
        if label in priced and label in measured_total
    ]
    return tuple(
        sorted(rows, key=lambda row: -(row.excess_ns if row.excess_ns is not None else row.measured_ns))
    )


def _row(
    case: Case,
    join: Join,
    label: str,
    priced: Priced,
    kernels: OpKernels,
    total_ns: int,
    hardware: Hardware,
    t0_ns: float,
    steps: int,
    kernel_time: int,
    layers: int,
    earlier: Mapping[int, int],
) -> OpRow:
    labels, rows = join.labels, kernels.rows
    own = case.kernels["duration_ns"].to_numpy(np.int64)[rows]
    floor_total = round(priced.floor_ns) if priced.judged else None
    latency_total = priced.latency_ns(len(own), t0_ns)
    latency = latency_total is not None
    confidence = float(np.average(labels.confidence(rows), weights=np.maximum(own, 1))) if len(own) else 0.0
    seconds = total_ns / 1e9
    ratio = total_ns / priced.floor_ns if priced.judged and priced.floor_ns > 0 and not latency else None
    flop, hbm = priced.cost.total_flop, priced.cost.hbm_bytes
    counted = hbm if priced.one.basis == "hbm" else priced.cost.strict_bytes
    executions = _execution_ns(labels.executions[rows], own)
    low, middle, high = np.percentile(executions, [5, 50, 95]) if len(executions) else (0, 0, 0)
    return OpRow(
        op=label,
        instances=priced.executions,
        kernels_per_instance=len(own) / max(priced.executions, 1),
        measured_ns=total_ns / steps,
        floor_ns=priced.floor_ns / steps if priced.judged else None,
        ratio=ratio,
        excess_ns=(total_ns - priced.floor_ns) / steps if priced.judged else None,
        bound="latency" if latency else priced.one.bound,
        flop=flop / steps,
        hbm_bytes=hbm / steps,
        confidence=round(confidence, 4),
        share=total_ns / kernel_time if kernel_time else 0.0,
        flags=("low_confidence",) if confidence < LOW_CONFIDENCE else (),
        total_ns=total_ns,
        floor_total_ns=floor_total,
        strict_bytes=priced.cost.strict_bytes / steps,
        floor_hbm_ns=priced.hbm_ns / steps if priced.judged else None,
        floor_strict_ns=priced.strict_ns / steps if priced.judged else None,
        floor_basis=priced.one.basis,
        latency_floor_ns=latency_total / steps if latency_total is not None else None,
        flop_per_s=flop / seconds if seconds and priced.judged else None,
        bytes_per_s=counted / seconds if seconds and priced.judged else None,
        fraction_of_peak=1 / ratio if ratio else None,
        intensity=flop / counted if counted else None,
        dtype=priced.one.dtype or max(priced.cost.flop, key=lambda d: priced.cost.flop[d], default=""),
        expected_instances=round(
            steps * sum(join.closure.get(i, (0.0, 0.0))[0] for i in label.split("+")[:1])
        ),
        median_ns=int(middle),
        p05_ns=int(low),
        p95_ns=int(high),
        formula=priced.op.formula,
        kernels=kernel_uses(
            case, rows, op=label, limit=KERNEL_ROWS, earlier=earlier, known=(kernels.shape, kernels.examples)
        ),
        layers_ns=_by_layer(labels.layer[rows], own, layers, steps),
    )


def _execution_ns(executions: Codes, duration: Ints) -> Ints:
    """Time of each execution: its opening kernel and the further kernels up to the next opening one."""
    if not len(duration) or (int(executions.min()) == 1 == int(executions.max())):
        return duration
    number = np.maximum(np.cumsum(executions) - 1, 0)
    result = np.zeros(int(number.max()) + 1, np.int64)
    np.add.at(result, number, duration)
    return result


def _by_layer(layer: Codes, duration: Ints, layers: int, steps: int) -> tuple[float, ...]:
    """Mean measured ns of an op in each layer; empty for ops of head and tail."""
    inner = (layer >= 0) & (layer < layers)
    if not inner.any() or not steps:
        return ()
    sums = np.zeros(layers, np.int64)
    np.add.at(sums, layer[inner], duration[inner])
    return tuple(float(value) / steps for value in sums)


__all__ = ["KERNEL", "PriceList", "Priced", "kernel_uses", "op_rows", "price"]
