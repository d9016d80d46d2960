"""Families with latent or compressed attention: DeepSeek, Kimi K2, GLM-5."""

from __future__ import annotations

from nsysmodel.model.config.fields import Fields
from nsysmodel.model.config.parts import Arch, Notes, compact, dense_first, experts, named, only, shared


def latent(fields: Fields, arch: Arch) -> None:
    """Multi-head latent attention."""
    arch["attention"] = "mla"
    arch["q_lora"] = fields.count("q_lora_rank", default=0)
    arch["kv_lora"] = fields.need("kv_lora_rank")
    arch["qk_nope"] = fields.need("qk_nope_head_dim")
    arch["qk_rope"] = fields.need("qk_rope_head_dim")
    arch["v_head_dim"] = fields.need("v_head_dim")
    arch.pop("rotary_dim", None)
    fields.refuse("attention_bias", why="biases of latent attention are not modelled.")


def deepseek(fields: Fields, arch: Arch, notes: Notes) -> None:
    """DeepSeek V2, V3, R1, Kimi K2."""
    latent(fields, arch)
    experts(fields, arch, width=("moe_intermediate_size",))
    shared(fields, arch)
    dense_first(fields, arch)


def sparse_latent(fields: Fields, arch: Arch, notes: Notes) -> None:
    """DeepSeek V3.2, GLM-5: an indexer chooses the entries; some layers reuse another one's choice."""
    deepseek(fields, arch, notes)
    arch["index_heads"] = fields.need("index_n_heads")
    arch["index_dim"] = fields.need("index_head_dim")
    arch["index_topk"] = fields.need("index_topk")
    fields.refuse("index_topk_pattern", why="patterns of indexed layers are not modelled.")
    only(fields, "layer_types", "deepseek_sparse_attention")
    types = fields.items("indexer_types", arch["layers"])
    frequency = fields.count("index_topk_freq", default=1) or 1
    if types is None:
        if frequency > 1:
            problem = "layers share an index, but indexer_types does not say which."
            raise fields.error("index_topk_freq", problem)
        return
    arch["mixers"] = compact(named(fields, "indexer_types", types, {"full": "mla", "shared": "mla-shared"}))
    arch["variants"] = {"mla-shared": {"of": "mla", "indexes": 0}}


def deepseek_v4(fields: Fields, arch: Arch, notes: Notes) -> None:
    """DeepSeek V4: a window, compressed entries every 4 (indexed) or 128 tokens, hyper-connections."""
    layers = arch["layers"]
    ratios = fields.items("compress_ratios", layers)
    if ratios is None:
        raise fields.error("compress_ratios", "this field is missing.")
    few, names = fields.need("index_topk"), {0: "window", 4: "indexed", 128: "heavy"}
    arch.update(
        attention="compressed",
        q_lora=fields.need("q_lora_rank"),
        rotary_dim=fields.need("qk_rope_head_dim"),
        window=fields.need("sliding_window"),
        o_groups=fields.need("o_groups"),
        o_lora=fields.need("o_lora_rank"),
        streams=fields.need("hc_mult"),
        index_heads=fields.need("index_n_heads"),
        index_dim=fields.need("index_head_dim"),
        mixers=compact(named(fields, "compress_ratios", ratios, names)),
        variants={
            "window": {"of": "compressed"},
            "indexed": {"of": "compressed", "ratio": 4, "index_topk": few},
            "heavy": {"of": "compressed", "ratio": 128},
        },
    )
    if arch["kv_heads"] != 1:
        raise fields.error("num_key_value_heads", "this must be 1 in this family.")
    fields.refuse("attention_bias", why="biases of compressed attention are not modelled.")
    for name in ("num_hash_layers", "hc_sinkhorn_iters", "compress_rope_theta"):
        fields.get(name)
    experts(fields, arch, width=("moe_intermediate_size",))
    shared(fields, arch)
    arch["ffns"] = ["moe"]
    arch["_modules"] = {".ffn.experts": ".mlp.experts"}
