"""What the join hands on: for each kernel its step, layer and op; for each step its window."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from nsysmodel.result import Diagnostic, DropReason
from nsysmodel.workload import Source

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Codes = npt.NDArray[Any]
"""Integers of the least type that holds them all: one per kernel, of millions of kernels."""


Bundle = tuple[tuple[str, int], ...]
"""Places of a model: (region, position); `head`, `layer`, `tail`, or `previous` for the layer before."""


@dataclass(frozen=True, slots=True)
class StepWindow:
    """One step that was found, dropped ones included.

    Attributes:
        index: number among all steps that were found.
        start_ns, end_ns: from the start of its first activity to the start of the next step's first one.
        layers: layers found in it.
        phase, batch, tokens: None where unknown; `tokens` are all new tokens of the step.
        source: how phase and batch are known.
        dropped: why it is not judged; None for used steps.
    """

    index: int
    start_ns: int
    end_ns: int
    layers: int
    phase: str | None = None
    batch: int | None = None
    tokens: int | None = None
    source: Source = "inferred"
    dropped: DropReason | None = None


@dataclass(frozen=True, slots=True)
class Labels:
    """Per kernel, in the row order of the device's kernel frame.

    Attributes:
        step: step number, -1 outside all steps.
        layer: layer number from 0, -1 in head, tail and outside.
        op: index into `op_labels`, -1 where no op claims the kernel.
        belief: index into `beliefs`, the distinct confidences from 0 to 1.
        executions: how many executions of its ops the kernel stands for: 1 for the kernel that serves an op,
            0 for its further kernels (reduction, workspace, second kernel of a split).
        op_labels: op ids, fused ones joined with `+`.
        bundle: index into `bundles` of kernels with executions; -1 elsewhere.
        bundles: which places of the model a kernel stands for, to price it.
    """

    step: Codes
    layer: Codes
    op: Codes
    belief: Codes
    executions: Codes
    op_labels: tuple[str, ...]
    bundle: Codes = field(default_factory=lambda: np.zeros(0, np.int64))
    bundles: tuple[Bundle, ...] = ()
    beliefs: Floats = field(default_factory=lambda: np.zeros(1))

    def confidence(self, rows: Codes | slice = slice(None)) -> Floats:
        """How sure the label of each of the rows is, 0 to 1."""
        result: Floats = self.beliefs[self.belief[rows]]
        return result


@dataclass(frozen=True, slots=True)
class Join:
    """The join of one process on one device with a model.

    Attributes:
        labels: step, layer, op of each kernel.
        steps: every step that was found.
        method: how the steps were found: `nvtx`, `cuda_graph`, `sequence`, or `none`.
        layers_expected: layers of the model.
        closure: per op id: expected per step, and the median found in the used steps.
        missing: op ids that no kernel serves.
        refusals: reasons why the result must not be judged; empty where it may.
        diagnostics: what a reader should know.
    """

    labels: Labels
    steps: tuple[StepWindow, ...]
    method: str
    layers_expected: int
    closure: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    refusals: tuple[str, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()

    @property
    def used(self) -> tuple[StepWindow, ...]:
        """The steps that are judged."""
        return tuple(step for step in self.steps if step.dropped is None)
