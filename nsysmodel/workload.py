"""What one step works on: phase, batch, context, number formats, parallelism; each with its source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

T = TypeVar("T")

Source = Literal["flag", "export", "inferred", "catalogue", "model", "assumed"]
"""Where a number comes from; the closed set of the JSON contract."""

Phase = Literal["decode", "prefill"]


@dataclass(frozen=True, slots=True)
class Sourced(Generic[T]):
    """A value and where it comes from."""

    value: T
    source: Source


@dataclass(frozen=True, slots=True)
class WorkloadRequest:
    """What the user asked for; None where nothing was said.

    Attributes:
        phase: `decode` or `prefill`.
        batch: sequences in the step.
        context: KV length including the current token (decode); cached prefix (prefill).
        tokens: new tokens per sequence; implies prefill unless `phase` says decode (speculative verify).
        dtype: number format of weights and activations (`bf16`, `fp16`, `fp32`, `tf32`, `fp8`, …).
        quant: weight format of the quantised matrices (`fp8`, `nvfp4`, `mxfp4`, `awq`, `gptq`, `int4`).
        kv_dtype: number format of the KV cache.
        tp, ep, dp: tensor-, expert- and data-parallel sizes.
        logits: rows that the LM head runs on: the last one per sequence, or all.
    """

    phase: Phase | None = None
    batch: int | None = None
    context: int | None = None
    tokens: int | None = None
    dtype: str | None = None
    quant: str | None = None
    kv_dtype: str | None = None
    tp: int | None = None
    ep: int | None = None
    dp: int | None = None
    logits: Literal["last", "all"] | None = None


@dataclass(frozen=True, slots=True)
class Workload:
    """One resolved workload; every value carries its source.

    `dtype`, `quant` and `kv_dtype` may be empty strings: then the model's own formats hold.
    """

    phase: Sourced[Phase]
    batch: Sourced[int]
    context: Sourced[int]
    tokens: Sourced[int]
    dtype: Sourced[str]
    quant: Sourced[str]
    kv_dtype: Sourced[str]
    tensor_parallel: Sourced[int]
    expert_parallel: Sourced[int]
    data_parallel: Sourced[int]
    logits: Sourced[Literal["last", "all"]]

    @property
    def new_tokens(self) -> int:
        """Tokens that one step processes: batch x new tokens per sequence."""
        return self.batch.value * self.tokens.value

    @property
    def assumed(self) -> tuple[str, ...]:
        """Names of the parameters that nobody stated and the export does not show."""
        return tuple(name for name in self.__dataclass_fields__ if getattr(self, name).source == "assumed")
