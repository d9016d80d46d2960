"""What configurations of all families share: widths, windows, experts, dense layers."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Any

from nsysmodel.model.config.fields import Fields

Arch = dict[str, Any]
Notes = list[str]
_GATED = ("silu", "gelu", "gelu_pytorch_tanh", "swish", "swigluoai", "swiglu", "situ")
_PLAIN = ("relu2", "relu", "squared_relu")


def compact(entries: Iterable[str]) -> list[str]:
    """Repeats as `name*N`; a short pattern that repeats is written once.

    >>> compact(["dense", "dense", "moe", "moe", "moe"]), compact(["a", "a", "b"] * 3)
    (['dense*2', 'moe*3'], ['a*2', 'b'])
    """
    items = list(entries)
    for period in range(1, min(13, len(items))):
        if all(item == items[index % period] for index, item in enumerate(items)):
            items = items[:period]
            break
    runs = [(name, len(list(group))) for name, group in groupby(items)]
    return [name if times == 1 else f"{name}*{times}" for name, times in runs]


def common(fields: Fields) -> Arch:
    """What all families share."""
    heads = fields.need("num_attention_heads")
    hidden = fields.need("hidden_size")
    head_dim = fields.count("head_dim", "attention_head_dim") or hidden // heads
    act = (
        fields.text("hidden_act")
        or fields.text("hidden_activation")
        or fields.text("mlp_hidden_act")
        or "silu"
    )
    if act not in (*_GATED, *_PLAIN):
        raise fields.error(
            "hidden_act", f"{act!r} is not supported.", f"Accepted: {', '.join((*_GATED, *_PLAIN))}."
        )
    # Some configurations spell the layers out instead of counting them.
    spelt = fields.get("hybrid_override_pattern") or fields.get("layers_block_type")
    arch: Arch = {
        "hidden": hidden,
        "layers": (fields.count if spelt else fields.need)("num_hidden_layers"),
        "heads": heads,
        "kv_heads": fields.count("num_key_value_heads", default=heads),
        "head_dim": head_dim,
        "vocab": fields.need("vocab_size"),
        "tied_embeddings": fields.switch("tie_word_embeddings"),
        "intermediate": fields.count("intermediate_size", default=0),
        "gated": act in _GATED,
        "mlp_bias": fields.switch("mlp_bias"),
        "qkv_bias": fields.switch("attention_bias", "qkv_bias"),
    }
    part = fields.fraction("partial_rotary_factor")
    rotary = fields.count("rotary_dim")
    if rotary is not None or part is not None:
        arch["rotary_dim"] = rotary if rotary is not None else round(head_dim * (part or 0))
    return arch


def windows(fields: Fields, arch: Arch) -> None:
    """Sliding windows by `layer_types`, or everywhere where there are none."""
    window = fields.count("sliding_window", default=0)
    if fields.get("use_sliding_window") is False:
        window = 0
    types = fields.items("layer_types", arch["layers"])
    if not window:
        if types and any(kind != "full_attention" for kind in types):
            raise fields.error("layer_types", "windows are named, but sliding_window is missing.")
        return
    if types is None:
        arch["window"] = window
        return
    names = {"full_attention": "full", "sliding_attention": "sliding"}
    arch["mixers"] = compact(named(fields, "layer_types", types, names))
    arch["variants"] = {"sliding": {"of": "full", "window": window}}


def named(fields: Fields, name: str, items: list[Any], names: dict[Any, str]) -> list[str]:
    """Our names for what a list per layer holds."""
    accepted = list(names)  # a file may hold lists where names are expected
    for item in items:
        if item not in accepted:
            raise fields.error(name, f"{item!r} is not supported.", f"Accepted: {', '.join(names)}.")
    return [names[item] for item in items]


def experts(fields: Fields, arch: Arch, *, width: tuple[str, ...]) -> None:
    """Routed experts."""
    arch["experts"] = fields.need("num_experts", "num_local_experts", "n_routed_experts")
    arch["top_k"] = fields.need(
        "num_experts_per_tok", "top_k_experts", "num_experts_per_token", "experts_per_token"
    )
    arch["expert_intermediate"] = fields.need(*width)
    router = fields.text("moe_router_dtype")
    if router in ("float32", "fp32"):
        arch["router_dtype"] = "fp32"


def dense_first(fields: Fields, arch: Arch) -> None:
    """Which layers are dense: the first ones, or as `moe_layer_freq` and `mlp_layer_types` say."""
    layers = arch["layers"]
    first = fields.count("first_k_dense_replace", default=0) or 0
    frequency = fields.get("moe_layer_freq")
    types = fields.items("mlp_layer_types", layers)
    if types is not None:
        feeds = named(fields, "mlp_layer_types", types, {"dense": "dense", "sparse": "moe"})
    elif isinstance(frequency, list):
        if len(frequency) < layers:
            raise fields.error("moe_layer_freq", f"this has no entry for each of {layers} layers.")
        feeds = ["moe" if item else "dense" for item in frequency[:layers]]
    else:
        every = frequency or 1
        feeds = ["moe" if i >= first and i % every == 0 else "dense" for i in range(layers)]
    arch["ffns"] = compact(feeds)


def only(fields: Fields, name: str, value: Any) -> None:
    """Raises where a list per layer holds anything but `value`."""
    items = fields.get(name) or []
    if not isinstance(items, list) or any(item != value for item in items):
        raise fields.error(name, "this is not supported.", f"Accepted: {value!r} for every layer.")


def shared(fields: Fields, arch: Arch) -> None:
    """Shared experts of the width of routed ones."""
    count = fields.count("n_shared_experts", "num_shared_experts", default=0) or 0
    arch["shared_intermediate"] = count * arch["expert_intermediate"]


def state(name: str) -> str | None:
    """Our name for the format of a recurrent state; None where the file has none."""
    return {"float32": "fp32", "bfloat16": "bf16", "float16": "fp16"}.get(name)
