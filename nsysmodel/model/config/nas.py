"""Nemotron NAS: a width, a number of KV heads, or nothing, chosen layer by layer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nsysmodel.model.config.fields import Fields
from nsysmodel.model.config.parts import compact

_STEP = 256


def read_blocks(fields: Fields, arch: dict[str, Any]) -> None:
    """Adds mixers, feed-forwards and variants from `block_configs`.

    A feed-forward is 2·ffn_mult·hidden/3 wide, rounded up to a multiple of 256.
    """
    blocks = fields.items("block_configs", arch["layers"])
    if blocks is None:
        raise fields.error("block_configs", "this field is missing.")
    variants: dict[str, dict[str, Any]] = {}
    mixers = [_mixer(fields, _part(fields, block, "attention"), arch, variants) for block in blocks]
    feeds = [_feed(fields, _part(fields, block, "ffn"), arch, variants) for block in blocks]
    arch["mixers"], arch["ffns"], arch["variants"] = compact(mixers), compact(feeds), variants


def _part(fields: Fields, block: Any, name: str) -> Mapping[str, Any]:
    part = block.get(name) if isinstance(block, Mapping) else None
    if not isinstance(part, Mapping):
        raise fields.error(f"block_configs.{name}", "this field is missing.")
    for field in ("replace_with_linear", "sparsify", "num_sink_tokens", "window_length"):
        if part.get(field):
            raise fields.error(f"block_configs.{name}.{field}", "this is not supported.")
    return part


def _mixer(fields: Fields, part: Mapping[str, Any], arch: dict[str, Any], variants: dict[str, Any]) -> str:
    if part.get("no_op"):
        return "none"
    group = part.get("n_heads_in_group")
    if not isinstance(group, int) or group < 1 or arch["heads"] % group:
        raise fields.error(
            "block_configs.attention.n_heads_in_group", f"{group!r} does not divide the heads."
        )
    name = f"group{group}"
    variants[name] = {"of": "full", "kv_heads": arch["heads"] // group}
    return name


def _feed(fields: Fields, part: Mapping[str, Any], arch: dict[str, Any], variants: dict[str, Any]) -> str:
    if part.get("no_op"):
        return "none"
    factor = part.get("ffn_mult")
    if isinstance(factor, bool) or not isinstance(factor, (int, float)) or not 0 < factor < 1000:
        raise fields.error("block_configs.ffn.ffn_mult", f"{factor!r} is not supported.")
    width = -(-int(2 * factor * arch["hidden"] / 3) // _STEP) * _STEP
    name = f"mlp{width}"
    variants[name] = {"of": "dense", "intermediate": width}
    return name
