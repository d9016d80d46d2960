"""The form of a model file."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from nsysmodel.model.documents import Document


class _Form(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=80)]
Width = Annotated[int, Field(ge=1, le=10**9)]
Count = Annotated[int, Field(ge=0, le=10**9)]
Switch = Annotated[bool, Field(strict=True)]


def _text(value: Any) -> Any:
    """Numbers and switches of a parameter as the text of an expression."""
    if isinstance(value, bool):
        return "1" if value else "0"
    return repr(value) if isinstance(value, (int, float)) else value


Formula = Annotated[str, BeforeValidator(_text)]


class Variant(_Form):
    """A mixer or feed-forward that differs from its base in a few numbers."""

    model_config = ConfigDict(extra="allow", frozen=True)
    of: Literal["full", "gqa", "mla", "compressed", "linear", "kda", "mamba", "dense", "moe", "none"]


class Quantization(_Form):
    """Number formats of the weights.

    Attributes:
        format: format of every quantised product; None where only `modules` has some.
        exclude: modules that keep the model's own format.
        modules: format by module pattern, first match wins.
        kv: format of the KV cache; None for the model's own.
    """

    format: str | None = None
    exclude: tuple[str, ...] = ()
    modules: dict[str, str] = Field(default_factory=dict)
    kv: str | None = None


class Architecture(_Form):
    """What a model consists of; see docs/model-files.md for each field."""

    config: str | None = None
    hidden: Width | None = None
    layers: Annotated[int, Field(ge=1, le=2000)] | None = None
    heads: Width | None = None
    kv_heads: Width | None = None
    head_dim: Width | None = None
    v_head_dim: Width | None = None
    vocab: Width | None = None
    dtype: str = "bf16"
    tied_embeddings: Switch = False

    attention: Literal["gqa", "mla", "compressed"] = "gqa"
    rotary_dim: Count | None = None
    qkv_bias: Switch = False
    o_bias: Switch = False
    attn_gate: Switch = False
    qk_norm: Literal["none", "head", "full"] = "none"
    sinks: Switch = False
    k_eq_v: Switch = False
    sandwich: Switch = False
    split_qkv: Switch = False
    window: Count = 0
    chunk: Count = 0

    q_lora: Count = 0
    kv_lora: Count = 0
    qk_nope: Count = 0
    qk_rope: Count = 0
    index_heads: Count = 0
    index_dim: Count = 0
    index_topk: Count = 0
    ratio: Count = 0
    o_groups: Count = 0
    o_lora: Count = 0
    streams: Count = 0
    residual_blocks: Count = 0

    intermediate: Count = 0
    gated: Switch = True
    mlp_bias: Switch = False
    split_gate_up: Switch = False

    experts: Count = 0
    top_k: Count = 0
    expert_intermediate: Count = 0
    expert_bias: Switch = False
    expert_hidden: Width | None = None
    router_bias: Switch = False
    router_dtype: str | None = None
    shared_intermediate: Count = 0
    shared_gate: Switch = False

    linear_key_heads: Count = 0
    linear_value_heads: Count = 0
    linear_key_dim: Count = 0
    linear_value_dim: Count = 0
    linear_conv: Count = 4
    mamba_heads: Count = 0
    mamba_head_dim: Count = 0
    mamba_groups: Count = 1
    mamba_state: Count = 0
    mamba_conv: Count = 4
    mamba_conv_bias: Switch = True
    mamba_chunk: Width = 256
    state_dtype: str | None = None

    mixers: tuple[str, ...] = ("full",)
    ffns: tuple[str, ...] | None = None
    variants: dict[Name, Variant] = Field(default_factory=dict)
    quantization: Quantization | None = None


class Operation(_Form):
    """One op: a built-in kind with its parameters, or free expressions."""

    model_config = ConfigDict(extra="allow", frozen=True)
    id: Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_.+-]*$", max_length=80)]
    kind: str | None = None
    flop: Formula | None = None
    bytes: Formula | None = None
    activation_bytes: Formula | None = None
    dtype: str | None = None
    when: Formula | None = None
    modules: tuple[str, ...] | None = None
    classes: tuple[str, ...] | None = None
    pattern: str | None = None
    optional: Switch = False


class Block(_Form):
    """Ops of a bundled block at this place."""

    block: str


class Kernel(_Form):
    """One entry of a flat model."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.+ -]*$", max_length=80)]
    pattern: str
    flop: Formula = "0"
    bytes: Formula = "0"
    dtype: str = "bf16"
    kind: Literal["zero_copy"] | None = None
    threads: Formula | None = None
    bytes_per_thread: Formula | None = None
    latency: Formula | None = None
    link: Literal["host", "c2c", "pcie", "nvlink"] | None = None


class Defaults(_Form):
    """The workload that is assumed where nothing else is known."""

    phase: Literal["decode", "prefill"] | None = None
    batch: Width | None = None
    context: Count | None = None
    tokens: Width | None = None
    dtype: str | None = None
    quant: str | None = None
    kv_dtype: str | None = None
    tp: Width | None = None
    ep: Width | None = None
    dp: Width | None = None
    logits: Literal["last", "all"] | None = None


class ModelFile(_Form):
    """A model file: layered (`architecture`) or flat (`kernels`)."""

    name: Name | None = None
    aliases: tuple[Name, ...] = ()
    notes: tuple[str, ...] = ()
    published: dict[str, float] = Field(default_factory=dict)
    defaults: Defaults = Defaults()
    parameters: dict[Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")], Formula] = Field(
        default_factory=dict
    )
    architecture: Architecture | None = None
    layer_kinds: dict[Name, tuple[Operation | Block, ...]] | None = None
    layers: tuple[str, ...] | None = None
    head: tuple[Operation | Block, ...] | None = None
    tail: tuple[Operation | Block, ...] | None = None
    kernels: tuple[Kernel, ...] | None = None


def validate(document: Document) -> ModelFile:
    """The document as a model file.

    Raises:
        ModelError: naming file, line, field and the accepted values.
    """
    if not isinstance(document.data, dict):
        raise document.error((), "a model file is a mapping.", "Start with 'architecture:' or 'kernels:'.")
    try:
        return ModelFile.model_validate(document.data)
    except ValidationError as error:
        first = _clearest(error)
        path = tuple(step for step in first["loc"] if step not in ("Operation", "Block", "[key]"))
        raise document.error(path, *_explain(first, path)) from None


def _clearest(error: ValidationError) -> Any:
    """The error to show: of the two forms of an op, the one that the entry looks like."""
    details = error.errors(include_url=False)
    for detail in details:
        if "Block" in detail["loc"]:
            continue
        return detail
    return details[0]


def _explain(detail: Any, path: tuple[Any, ...]) -> tuple[str, str]:
    """Problem and hint of a validation error, in words."""
    import difflib

    kind, context = detail["type"], detail.get("ctx", {})
    if kind == "extra_forbidden":
        known = _fields(path[:-1])
        near = difflib.get_close_matches(str(path[-1]), known, 3)
        hint = f"Did you mean {', '.join(near)}? " if near else ""
        return "there is no such field.", f"{hint}Accepted: {', '.join(known)}."
    if kind == "missing":
        return "this field is missing.", "Add it; see docs/model-files.md."
    if kind == "literal_error":
        return f"{detail['input']!r} is not accepted.", f"Accepted: {context.get('expected')}."
    return f"{detail['msg'][:1].lower()}{detail['msg'][1:]} (here: {str(detail['input'])[:60]!r}).", ""


def _fields(path: tuple[Any, ...]) -> list[str]:
    """Fields that are accepted at a place."""
    if not path:
        return list(ModelFile.model_fields)
    forms: dict[str, type[BaseModel]] = {
        "architecture": Architecture,
        "defaults": Defaults,
        "kernels": Kernel,
        "quantization": Quantization,
    }
    for step in reversed(path):
        if step in forms:
            return list(forms[step].model_fields)
    return list(Operation.model_fields)
