"""What a model expects of one step: ops with their costs, layer by layer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from nsysmodel.theory.cost import Cost, total
from nsysmodel.theory.littles_law import InFlight
from nsysmodel.workload import Workload


@dataclass(frozen=True, slots=True)
class Op:
    """One expected operation at one place of a step, on one rank.

    Attributes:
        id: op id of the contract (`qkv_proj`, `attention`, `moe_down`, …).
        kind: op kind of the cost library (`gemm`, `attention`, `norm`, …).
        cost: work of one execution.
        classes: kernel classes (`nsysmodel.join.vocabulary`) that may serve it, most likely first.
        formula: the cost formula with the numbers put in, for people.
        optional: True where engines commonly have no kernel of its own for it (it is fused, or not needed).
        min_cost: hard lower bound where `cost` is an expectation (experts: k distinct instead of the
            expected number); None where `cost` is itself a bound.
        pattern: regular expression over kernel names that the model file gives as a hint.
        judged: False where the floor must not be compared with a measurement (unknown weight format).
        in_flight: of ops that read over a link, what they keep in flight on it; None elsewhere.
    """

    id: str
    kind: str
    cost: Cost
    classes: tuple[str, ...]
    formula: str = ""
    optional: bool = False
    min_cost: Cost | None = None
    pattern: str | None = None
    judged: bool = True
    in_flight: InFlight | None = None


@dataclass(frozen=True, slots=True)
class StepModel:
    """Everything that one step is expected to run, in execution order.

    Attributes:
        name: name of the model.
        source: where it comes from: `bundled`, or the path of the file.
        workload: the workload that the costs were computed for.
        head: ops before the first layer (embedding).
        kinds: ops of a layer by layer kind (`moe`, `dense`, `full_attention`, `linear_attention`, …).
        layers: the kind of each layer, first to last.
        tail: ops after the last layer (final norm, LM head, sampling).
        parameters: total parameter count of the model (all ranks), 0 where unknown.
        active_parameters: parameters that one token uses, 0 where unknown.
        weights_once_bytes: bytes of every weight that one step must load once on this rank (active experts
            only, without the embedding table).
        memory_bytes: weights on this rank plus the KV cache of the workload.
        notes: sentences that a report must show (what was assumed, approximated or left out).
    """

    name: str
    source: str
    workload: Workload
    head: tuple[Op, ...]
    kinds: Mapping[str, tuple[Op, ...]]
    layers: tuple[str, ...]
    tail: tuple[Op, ...]
    parameters: float = 0
    active_parameters: float = 0
    weights_once_bytes: float = 0
    memory_bytes: float = 0
    notes: tuple[str, ...] = field(default=())

    def places(self) -> Iterator[tuple[int | None, Op]]:
        """Every expected execution in order, with its layer (None in head and tail)."""
        for op in self.head:
            yield None, op
        for index, kind in enumerate(self.layers):
            for op in self.kinds[kind]:
                yield index, op
        for op in self.tail:
            yield None, op

    @property
    def cost(self) -> Cost:
        """The work of the whole step."""
        per_layer = (total(op.cost for op in self.kinds[kind]) for kind in self.layers)
        return total(op.cost for op in self.head) + total(per_layer) + total(op.cost for op in self.tail)


@dataclass(frozen=True, slots=True)
class ExpectedKernel:
    """One entry of a flat model: kernels known by name, with costs evaluated per launch.

    Attributes:
        name: the entry's name, which is its op id.
        pattern: regular expression searched in the kernel's demangled name.
        flop: FLOP expression over the parameters and the launch (`grid_x` … `block_z`).
        bytes: expression for the bytes that must cross DRAM.
        dtype: engine and number format of the FLOP.
        kind: empty, or `zero_copy`: `bytes` cross a link, not DRAM.
        threads, bytes_per_thread, latency: of `zero_copy`, expressions: threads that wait for a load at once,
            bytes of one load, ns that it takes.
        link: of `zero_copy`: `host` (C2C, else PCIe), `c2c`, `pcie` or `nvlink`.
    """

    name: str
    pattern: str
    flop: str
    bytes: str
    dtype: str
    kind: str = ""
    threads: str = ""
    bytes_per_thread: str = ""
    latency: str = ""
    link: str = ""


@dataclass(frozen=True, slots=True)
class FlatModel:
    """A flat list of expected kernels, first match wins."""

    name: str
    source: str
    parameters: Mapping[str, float]
    kernels: tuple[ExpectedKernel, ...]
