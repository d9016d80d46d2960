"""What every cost function takes and gives."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from typing import Literal

from nsysmodel.theory.cost import Cost
from nsysmodel.theory.formats import Format
from nsysmodel.theory.littles_law import InFlight


@dataclass(frozen=True, slots=True)
class Setting:
    """The numbers of one step on one rank that cost functions share.

    Attributes:
        phase: `decode` or `prefill`.
        sequences: sequences on this rank.
        new_tokens: new tokens per sequence.
        context: decode: KV length including the new tokens; prefill: cached prefix.
        activation: format of activations and of plain weights.
        kv: format of the KV cache.
        state: format of recurrent states.
        engines: engines of the device, None where it is not known.
    """

    phase: Literal["decode", "prefill"]
    sequences: int
    new_tokens: int
    context: int
    activation: Format
    kv: Format
    state: Format
    engines: Container[str] | None = None

    @property
    def tokens(self) -> int:
        """New tokens on this rank."""
        return self.sequences * self.new_tokens

    @property
    def prefix(self) -> int:
        """KV entries of each sequence that were there before this step."""
        return self.context if self.phase == "prefill" else max(0, self.context - self.new_tokens)

    @property
    def length(self) -> int:
        """KV entries of each sequence after this step."""
        return self.prefix + self.new_tokens

    def engine(self, fmt: Format | None = None) -> str:
        """The engine that multiplies `fmt` (the model's own format where None)."""
        return (fmt or self.activation).engine(self.engines)


@dataclass(frozen=True, slots=True)
class OpCost:
    """Work of one execution, and what it says about the model.

    Attributes:
        cost: the work.
        formula: the formula with the numbers put in.
        min_cost: hard lower bound where `cost` is an expectation.
        parameters: parameters that the op holds on this rank.
        active_parameters: parameters that one token uses.
        resident_bytes: weights that stay in memory on this rank.
        state_bytes: KV cache or recurrent state that stays in memory on this rank.
        in_flight: of ops that read over a link, what they keep in flight on it.
    """

    cost: Cost
    formula: str
    min_cost: Cost | None = None
    parameters: float = 0
    active_parameters: float = 0
    resident_bytes: float = 0
    state_bytes: float = 0
    in_flight: InFlight | None = None


def number(value: float) -> str:
    """A count for a formula: integers without a point, expectations with three digits.

    >>> number(4096.0), number(82.4123)
    ('4096', '82.412')
    """
    return str(int(value)) if value == int(value) else f"{value:.3f}"
