"""The layers of an architecture: which mixer and feed-forward each has, and the numbers of both."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nsysmodel.errors import ModelError
from nsysmodel.model.declare import ARCHITECTURE_NAMES, TEXT_FIELDS
from nsysmodel.model.documents import Document
from nsysmodel.model.schema import Architecture, Variant

MIXERS = ("full", "gqa", "mla", "compressed", "linear", "kda", "mamba", "none")
FFNS = ("dense", "moe", "none")
_ENTRY = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*?)(?:\*(\d*))?")
_NEEDS = {
    "gqa": ("heads", "head_dim"),
    "mla": ("heads", "kv_lora", "qk_nope", "qk_rope", "v_head_dim"),
    "compressed": ("heads", "head_dim", "q_lora", "window", "o_groups", "o_lora"),
    "linear": ("linear_key_heads", "linear_value_heads", "linear_key_dim", "linear_value_dim"),
    "kda": ("linear_key_heads", "linear_value_heads", "linear_key_dim", "linear_value_dim"),
    "mamba": ("mamba_heads", "mamba_head_dim", "mamba_state"),
    "dense": ("intermediate",),
    "moe": ("experts", "top_k", "expert_intermediate"),
}
_BLOCK_OF = {
    "gqa": "gqa",
    "mla": "mla",
    "compressed": "compressed",
    "linear": "delta_net",
    "kda": "kda",
    "mamba": "mamba",
}

Values = dict[str, Any]


@dataclass(frozen=True, slots=True)
class LayerShape:
    """What a kind of layer is made of.

    Attributes:
        mixer: block of the mixer, empty for none.
        ffn: block of the feed-forward, empty for none.
        values: numbers that differ from the architecture's.
    """

    mixer: str
    ffn: str
    values: Mapping[str, Any]

    def blocks(self) -> tuple[str, ...]:
        """Blocks in execution order. A layer with one part has one norm."""
        both = bool(self.mixer and self.ffn)
        parts = ["input_norm", self.mixer, "post_norm" if both else "", self.ffn, "end_norm" if both else ""]
        return tuple(part for part in parts if part)


def base_values(arch: Architecture, document: Document) -> Values:
    """The numbers of the architecture with what follows from others filled in.

    Raises:
        ModelError: a number that every model needs is missing.
    """
    values: Values = {}
    for name in (*ARCHITECTURE_NAMES, *TEXT_FIELDS):
        value = getattr(arch, name)
        values[name] = int(value) if isinstance(value, bool) else value
    for name in ("hidden", "layers", "vocab"):
        if values[name] is None:
            hint = "Every layered model has hidden, layers and vocab."
            raise document.error(("architecture", name), "this field is missing.", hint)
    values["qk_norm"] = ("none", "head", "full").index(arch.qk_norm)
    _derive(values)
    return values


def _derive(values: Values) -> None:
    """Fills in numbers that follow from others."""
    if values["kv_heads"] is None:
        values["kv_heads"] = values["heads"]
    if values["head_dim"] is None and values["heads"]:
        values["head_dim"] = values["hidden"] // values["heads"]
    if values["v_head_dim"] is None:
        values["v_head_dim"] = values["head_dim"]
    if values["rotary_dim"] is None:
        values["rotary_dim"] = values["head_dim"] or 0
    if values["expert_hidden"] is None:
        values["expert_hidden"] = values["hidden"]


def layer_shapes(arch: Architecture, document: Document) -> tuple[dict[str, LayerShape], tuple[str, ...]]:
    """Kinds of layers by name, and the kind of each layer.

    Raises:
        ModelError: an unknown mixer or feed-forward, a wrong count, or a missing number.
    """
    base = base_values(arch, document)
    count = base["layers"]
    ffns = arch.ffns or (("moe",) if arch.experts else ("dense",))
    mixers = _expand(arch.mixers, count, "mixers", arch, document)
    feeds = _expand(ffns, count, "ffns", arch, document)
    alone = len(set(mixers)) == 1, len(set(feeds)) == 1
    kinds: dict[str, LayerShape] = {}
    layers: list[str] = []
    for mixer, feed in zip(mixers, feeds, strict=True):
        name = _kind_name(mixer, feed, *alone)
        if name not in kinds:
            kinds[name] = _shape(mixer, feed, arch, base, document)
        layers.append(name)
    return kinds, tuple(layers)


def _kind_name(mixer: str, feed: str, one_mixer: bool, one_feed: bool) -> str:
    """`moe` where only feed-forwards differ, `sliding` where only mixers do, else `full_moe`."""
    if feed == "none" or (one_feed and not one_mixer):
        return mixer if mixer != "full" else "full_attention"
    if mixer == "none" or one_mixer:
        return feed
    return f"{mixer}_{feed}"


def _expand(
    entries: tuple[str, ...], count: int, name: str, arch: Architecture, document: Document
) -> list[str]:
    """One entry per layer: `moe*58` repeats, `moe*` fills up, a short list starts over."""
    place = ("architecture", name)
    allowed = (*(MIXERS if name == "mixers" else FFNS), *arch.variants)
    items: list[tuple[str, int | None]] = []
    for entry in entries:
        found = _ENTRY.fullmatch(entry)
        if found is None or found[1] not in allowed:
            hint = f"Accepted: {', '.join(allowed)}, each with *N or * behind it."
            raise document.error(place, f"{entry!r} is not accepted.", hint)
        items.append((found[1], None if found[2] == "" else int(found[2] or 1)))
    fixed = sum(times for _, times in items if times is not None)
    open_ends = [entry for entry, times in items if times is None]
    if len(open_ends) > 1 or fixed > count or not items:
        raise document.error(
            place, f"the entries make {fixed} layers of {count}.", "At most one may end in *."
        )
    flat = [entry for entry, times in items for _ in range(count - fixed if times is None else times)]
    if len(flat) < count:
        flat = [flat[index % len(flat)] for index in range(count)]
    return flat


def _shape(mixer: str, feed: str, arch: Architecture, base: Values, document: Document) -> LayerShape:
    """The shape of a layer with this mixer and feed-forward."""
    values: Values = {}
    mixer_base = _resolve(mixer, arch, base, values, document)
    feed_base = _resolve(feed, arch, base, values, document)
    if mixer_base == "full":
        mixer_base = arch.attention
    merged = {**base, **values}
    for part in (mixer_base, feed_base):
        check_needs(part, merged, document)
    return LayerShape(_BLOCK_OF.get(mixer_base, ""), feed_base if feed_base != "none" else "", values)


def check_needs(part: str, values: Mapping[str, Any], document: Document) -> None:
    """Raises where a number is missing that a mixer, a feed-forward or a block of that name needs.

    Raises:
        ModelError: naming the field.
    """
    part = next((mixer for mixer, block in _BLOCK_OF.items() if block == part), part)
    for need in _NEEDS.get(part, ()):
        if not values.get(need):
            hint = f"Layers of kind {part} need {', '.join(_NEEDS[part])}."
            raise document.error(("architecture", need), "this field is missing.", hint)


def _resolve(name: str, arch: Architecture, base: Values, values: Values, document: Document) -> str:
    """The base of a mixer or feed-forward; adds the variant's numbers to `values`."""
    variant = arch.variants.get(name)
    if variant is None:
        return name
    place = ("architecture", "variants", name)
    for field, value in _variant_numbers(variant).items():
        if field not in ARCHITECTURE_NAMES and field != "indexes":
            hint = f"Accepted: of, {', '.join(ARCHITECTURE_NAMES)}."
            raise document.error((*place, field), "there is no such field.", hint)
        if not isinstance(value, (int, bool)) or value < 0:
            raise document.error((*place, field), f"{value!r} is not a whole number.")
        values[field] = int(value)
    if "head_dim" in values:
        values.setdefault("v_head_dim", values["head_dim"])
        if base["rotary_dim"] == base["head_dim"]:
            values.setdefault("rotary_dim", values["head_dim"])
    return variant.of


def _variant_numbers(variant: Variant) -> dict[str, Any]:
    return dict(variant.model_extra or {})


def rank_values(values: Mapping[str, Any], tp: int, ep: int, dp: int) -> Values:
    """Widths on one rank of tp x dp.

    Heads are split over `tp`; KV heads are at least one per rank. Experts are spread over `ep` ranks and
    split in width over the others.

    Raises:
        ModelError: heads or experts do not divide.
    """
    ranks = tp * dp
    if ranks % ep:
        raise ModelError(
            f"Expert parallelism of {ep} does not divide tp x dp = {ranks} ranks.",
            "Say how attention is spread over them: --tp N (tensor-parallel) or --dp N (data-parallel).",
        )
    inside = ranks // ep
    rank: Values = {"ranks": ranks}
    for name in ("heads", "linear_key_heads", "linear_value_heads", "mamba_heads"):
        rank[f"rank_{name}"] = _split(values[name] or 0, tp, name)
    kv_heads = values["kv_heads"] or 0
    rank["rank_kv_heads"] = 1 if 0 < kv_heads < tp else _split(kv_heads, tp, "kv_heads")
    index_heads = values["index_heads"]
    rank["rank_index_heads"] = max(1, index_heads // tp) if index_heads else 0
    groups = values["mamba_groups"] or 0
    rank["rank_mamba_groups"] = max(1, groups // tp) if groups else 0
    rank["rank_intermediate"] = _ratio(values["intermediate"], tp)
    rank["rank_vocab"] = _ratio(values["vocab"], tp)
    rank["rank_experts"] = _split(values["experts"], ep, "experts")
    rank["rank_expert_width"] = _ratio(values["expert_intermediate"], inside)
    rank["rank_shared_width"] = _ratio(values["shared_intermediate"], tp)
    return rank


def _split(count: int, parts: int, name: str) -> int:
    if count % parts:
        raise ModelError(f"{count} {name} do not divide among {parts} ranks.", "Use another --tp or --ep.")
    return count // parts


def _ratio(count: int, parts: int) -> float:
    """An even share; engines pad where it is not whole, which is no part of the floor."""
    return count // parts if count % parts == 0 else count / parts
