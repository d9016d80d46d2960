"""What one step works on, from flags, the export and the model, in that order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nsysmodel.errors import WorkloadError
from nsysmodel.model.spec import ModelSpec
from nsysmodel.theory import formats
from nsysmodel.workload import Sourced, Workload, WorkloadRequest

PREFILL_TOKENS = 1024
"""New tokens per sequence of a prefill that nobody describes."""

_LONG_NAMES = {"tensor_parallel": "tp", "expert_parallel": "ep", "data_parallel": "dp"}


def resolve_workload(
    request: WorkloadRequest, spec: ModelSpec, observed: Mapping[str, Sourced[Any]] | None = None
) -> Workload:
    """The workload with the source of every value.

    Args:
        request: flags.
        spec: the model; its defaults are `assumed`, its number formats come from the `model`.
        observed: what the export shows, by the names of `WorkloadRequest` or `Workload`.

    Raises:
        WorkloadError: values that contradict each other.
        ModelError: an unknown number format.
    """
    pick = _Picker(request, spec.defaults, observed or {})
    phase = pick.phase()
    tokens = pick.tokens(phase.value)
    context = pick.context(phase.value, tokens.value)
    dtype, quant = pick.formats()
    workload = Workload(
        phase=phase,
        batch=pick.value("batch", 1),
        context=context,
        tokens=tokens,
        dtype=dtype,
        quant=quant,
        kv_dtype=pick.kv_dtype(),
        tensor_parallel=pick.value("tp", 1),
        expert_parallel=pick.value("ep", 1),
        data_parallel=pick.value("dp", 1),
        logits=pick.logits(phase.value),
    )
    _check(workload)
    return workload


def _check(workload: Workload) -> None:
    for name in ("batch", "tokens", "tensor_parallel", "expert_parallel", "data_parallel"):
        if getattr(workload, name).value < 1:
            raise WorkloadError(f"{name} must be at least 1.")
    if workload.phase.value == "decode" and workload.context.value < workload.tokens.value:
        raise WorkloadError(
            f"A context of {workload.context.value} does not hold {workload.tokens.value} new tokens.",
            "--context counts the current tokens too.",
        )
    ranks = workload.tensor_parallel.value * workload.data_parallel.value
    if ranks % workload.expert_parallel.value:
        raise WorkloadError(
            f"Expert parallelism {workload.expert_parallel.value} does not divide tp x dp = {ranks} ranks.",
            "Say how attention is spread over them: --tp N (tensor-parallel) or --dp N (data-parallel).",
        )


class _Picker:
    """Takes each value from the first place that has it."""

    def __init__(
        self, request: WorkloadRequest, defaults: WorkloadRequest, observed: Mapping[str, Sourced[Any]]
    ) -> None:
        self.request = request
        self.defaults = defaults
        self.observed = {_LONG_NAMES.get(name, name): value for name, value in observed.items()}

    def found(self, name: str) -> Sourced[Any] | None:
        """A flag, or what the export shows."""
        asked = getattr(self.request, name)
        if asked is not None:
            return Sourced(asked, "flag")
        seen = self.observed.get(name)
        return seen if seen is not None and seen.value not in (None, "") else None

    def value(self, name: str, fallback: Any) -> Sourced[Any]:
        """A value with the model's default or `fallback` as assumption."""
        found = self.found(name)
        if found is not None:
            return found
        default = getattr(self.defaults, name)
        return Sourced(fallback if default is None else default, "assumed")

    def phase(self) -> Sourced[Any]:
        """The phase; a number of new tokens means prefill where nothing else is said."""
        if self.request.phase is not None:
            return Sourced(self.request.phase, "flag")
        if self.request.tokens is not None:
            return Sourced("prefill", "flag")
        return self.value("phase", "decode")

    def tokens(self, phase: str) -> Sourced[int]:
        """New tokens per sequence."""
        found = self.found("tokens")
        if found is not None:
            return found
        if phase == "decode":
            # one token per sequence is what decode means; verify needs a flag
            return Sourced(1, "model")
        usual = self.defaults.tokens if (self.defaults.phase or "decode") == "prefill" else None
        return Sourced(usual or PREFILL_TOKENS, "assumed")

    def context(self, phase: str, tokens: int) -> Sourced[int]:
        """KV length (decode) or cached prefix (prefill)."""
        found = self.found("context")
        if found is not None:
            return found
        same = (self.defaults.phase or "decode") == phase
        usual = self.defaults.context if same else None
        if usual is None:
            usual = 0 if phase == "prefill" else 4096
        return Sourced(usual if phase == "prefill" else max(usual, tokens), "assumed")

    def formats(self) -> tuple[Sourced[str], Sourced[str]]:
        """Number format of activations, and weight format; `--dtype fp8` means quantised weights."""
        dtype, quant = self.found("dtype"), self.found("quant")
        if dtype is not None and dtype.value:
            name = formats.parse(dtype.value).name
            if name not in formats.PLAIN_NAMES:
                if quant is None:
                    quant = Sourced(name, dtype.source)
                dtype = None
            else:
                dtype = Sourced(name, dtype.source)
        if quant is not None and quant.value not in ("none", ""):
            quant = Sourced(formats.parse(quant.value).name, quant.source)
        own_dtype = Sourced(self.defaults.dtype or "", "model")
        own_quant = Sourced(self.defaults.quant or "", "model")
        return dtype or own_dtype, quant or own_quant

    def kv_dtype(self) -> Sourced[str]:
        """Number format of the KV cache."""
        found = self.found("kv_dtype")
        if found is None:
            return Sourced(self.defaults.kv_dtype or "", "model")
        return Sourced(formats.parse(found.value).name, found.source)

    def logits(self, phase: str) -> Sourced[Any]:
        """Rows of the LM head; decode needs all of its few."""
        found = self.found("logits")
        if found is not None:
            return found
        if phase == "decode":
            return Sourced("last", "model")
        return Sourced(self.defaults.logits or "last", "assumed")
