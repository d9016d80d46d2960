"""Floors as a function of the workload: what rests on an assumption, and which value would fit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

from nsysmodel.account.suspicious import Fit, fit_parameter
from nsysmodel.errors import NsysModelError
from nsysmodel.hardware.types import Hardware
from nsysmodel.join.types import Bools, Join
from nsysmodel.judge.ops import Executed, PriceList, executed_places, price_places
from nsysmodel.model.types import StepModel
from nsysmodel.workload import Sourced, Workload

PARAMETERS: Final = ("context", "batch", "tokens")
DEPENDS: Final = 0.05
"""A floor rests on a parameter when doubling that moves it by more than this share."""
SOME_CONTEXT: Final = 1024
"""What a context of 0 is changed to, to see which floors move."""


@dataclass
class Rebuilt:
    """Floors of the judged steps for other workloads; each workload is built once.

    Attributes:
        model: the step that was judged.
        build: the same model for another workload.
        hardware, join, inside: what the steps were priced with.
    """

    model: StepModel
    build: Callable[[Workload], StepModel]
    hardware: Hardware
    join: Join
    inside: Bools
    _known: dict[tuple[str, int], dict[str, float]] = field(default_factory=dict)
    _executed: tuple[Executed, ...] | None = None

    def floors(self, parameter: str, value: int) -> dict[str, float]:
        """Mean floor in ns of one execution of each op; empty where the model has no such step."""
        key = (parameter, value)
        if key not in self._known:
            self._known[key] = self._floors(parameter, value)
        return self._known[key]

    def _floors(self, parameter: str, value: int) -> dict[str, float]:
        changed = {parameter: Sourced(value, getattr(self.model.workload, parameter).source)}
        try:
            model = self.build(replace(self.model.workload, **changed))  # type: ignore[arg-type]
        except NsysModelError:
            return {}
        if _places(model) != _places(self.model):
            return {}
        if self._executed is None:
            self._executed = executed_places(self.join, self.inside)
        priced = price_places(PriceList(model, self.hardware), self._executed)
        return {label: row.floor_ns / row.executions for label, row in priced.items() if row.executions}

    def rests_on(self, label: str) -> tuple[str, ...]:
        """Assumed parameters that move the floor of an op."""
        workload = self.model.workload
        found = []
        for parameter in PARAMETERS:
            sourced = getattr(workload, parameter)
            if sourced.source != "assumed":
                continue
            now = self.floors(parameter, sourced.value).get(label, 0.0)
            other = self.floors(parameter, 2 * sourced.value or SOME_CONTEXT).get(label, now)
            if abs(other - now) > DEPENDS * max(now, other):
                found.append(parameter)
        return tuple(found)

    def fits(self, label: str, measured_ns: float) -> tuple[Fit, ...]:
        """Parameter values at which a measurement of one execution would be possible.

        What the export itself states is not doubted.
        """
        found = []
        for parameter in PARAMETERS:
            sourced = getattr(self.model.workload, parameter)
            if sourced.source == "export" or sourced.value < 2:
                continue

            def floor_at(value: int, parameter: str = parameter) -> float:
                return self.floors(parameter, value).get(label, float("inf"))

            fit = fit_parameter(parameter, sourced.value, sourced.source, floor_at, measured_ns)
            if fit is not None:
                found.append(fit)
        return tuple(found)


def _places(model: StepModel) -> tuple[tuple[str, ...], ...]:
    """Op ids by region: positions mean the same in two models where these are equal."""
    regions = (model.head, *(model.kinds[kind] for kind in sorted(model.kinds)), model.tail)
    return (model.layers, *(tuple(op.id for op in ops) for ops in regions))
