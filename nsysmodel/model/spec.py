"""A model as it was read: what it needs to say what one step runs."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nsysmodel.hardware.types import Hardware
from nsysmodel.model.declare import OpDecl
from nsysmodel.model.quantization import QuantRules
from nsysmodel.model.types import FlatModel, StepModel
from nsysmodel.workload import Workload, WorkloadRequest


@dataclass(frozen=True)
class LayeredSpec:
    """A layered model.

    Attributes:
        name: name of the model.
        source: `bundled`, or the path of the file.
        values: numbers and texts of the architecture.
        kinds: ops of a layer by layer kind.
        kind_values: numbers that a layer kind has of its own.
        layers: the kind of each layer.
        head, tail: ops before and after the layers.
        quantization: number formats of the weights.
        defaults: workload of the model file.
        notes: what reports must say about the model.
        published: counts that its makers state (`parameters`, `active_parameters`).
    """

    name: str
    source: str
    values: Mapping[str, Any]
    kinds: Mapping[str, tuple[OpDecl, ...]]
    kind_values: Mapping[str, Mapping[str, Any]]
    layers: tuple[str, ...]
    head: tuple[OpDecl, ...]
    tail: tuple[OpDecl, ...]
    quantization: QuantRules
    defaults: WorkloadRequest
    notes: tuple[str, ...] = ()
    published: Mapping[str, float] = field(default_factory=dict)

    @property
    def dtype(self) -> str:
        """The model's own number format."""
        return str(self.values["dtype"])

    def build(
        self,
        workload: Workload,
        hardware: Hardware | None = None,
        *,
        distinct_experts: float | None = None,
    ) -> StepModel:
        """Ops with their costs on one rank.

        Args:
            workload: what one step works on.
            hardware: decides which engine multiplies a quantised format; without it the fastest is taken.
            distinct_experts: measured number of distinct experts on this rank, in place of the expectation.

        Raises:
            ModelError: the parallel sizes do not divide the model, or an expression has no value.
        """
        from nsysmodel.model.build import build

        return build(self, workload, hardware, distinct_experts)

    @functools.cached_property
    def counts(self) -> tuple[float, float]:
        """Parameters, and parameters that one token uses."""
        from nsysmodel.model.build import count_parameters

        return count_parameters(self)


@dataclass(frozen=True)
class FlatSpec:
    """A flat list of expected kernels.

    Attributes:
        name, source: as in `LayeredSpec`.
        model: the list.
        defaults: workload of the model file.
        notes: what reports must say about the model.
    """

    name: str
    source: str
    model: FlatModel
    defaults: WorkloadRequest = field(default_factory=WorkloadRequest)
    notes: tuple[str, ...] = ()


ModelSpec = LayeredSpec | FlatSpec
