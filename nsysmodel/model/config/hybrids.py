"""Families with recurrent mixers: Qwen3-Next and 3.5, Nemotron-H, Granite 4."""

from __future__ import annotations

from nsysmodel.model.config.fields import Fields
from nsysmodel.model.config.latent import latent
from nsysmodel.model.config.parts import Arch, Notes, compact, dense_first, experts, named, shared, state


def gated_delta(fields: Fields, arch: Arch, notes: Notes) -> None:
    """Qwen3-Next and Qwen3.5: delta net, with gated full attention every few layers."""
    layers = arch["layers"]
    every = fields.count("full_attention_interval", default=4) or 4
    types = fields.items("layer_types", layers)
    if types is None:
        types = ["full_attention" if (i + 1) % every == 0 else "linear_attention" for i in range(layers)]
    names = {"full_attention": "full", "linear_attention": "linear"}
    arch["mixers"] = compact(named(fields, "layer_types", types, names))
    arch["qk_norm"] = "head"
    arch["attn_gate"] = fields.switch("attn_output_gate", default=True)
    arch["linear_key_heads"] = fields.need("linear_num_key_heads")
    arch["linear_value_heads"] = fields.need("linear_num_value_heads")
    arch["linear_key_dim"] = fields.need("linear_key_head_dim")
    arch["linear_value_dim"] = fields.need("linear_value_head_dim")
    arch["linear_conv"] = fields.count("linear_conv_kernel_dim", default=4)
    arch["state_dtype"] = state(fields.text("mamba_ssm_dtype"))
    if arch["state_dtype"]:
        notes.append(
            f"Recurrent states are {arch['state_dtype']}, as the configuration says; engines may differ."
        )
    else:
        notes.append("Recurrent states are taken in the model's own format; some engines keep them in fp32.")
    if fields.inner.get("num_experts") is not None:
        experts(fields, arch, width=("moe_intermediate_size",))
        fields.get("decoder_sparse_step", "mlp_only_layers")
        arch["shared_intermediate"] = fields.count("shared_expert_intermediate_size", default=0)
        arch["shared_gate"] = bool(arch["shared_intermediate"])
    else:
        fields.get("mlp_only_layers")


def kimi_linear(fields: Fields, arch: Arch, notes: Notes) -> None:
    """Kimi K3: delta attention with latent attention every fourth layer, experts on a latent width."""
    linear = fields.get("linear_attn_config")
    if not isinstance(linear, dict):
        raise fields.error("linear_attn_config", "this is not an object.")
    layers = arch["layers"]
    numbers = [linear.get(name) for name in ("num_heads", "head_dim", "short_conv_kernel_size")]
    if any(not isinstance(value, int) or value < 1 for value in numbers):
        raise fields.error("linear_attn_config", "num_heads, head_dim or short_conv_kernel_size is wrong.")
    kda, full = linear.get("kda_layers"), linear.get("full_attn_layers")
    if not isinstance(kda, list) or not isinstance(full, list):
        raise fields.error("linear_attn_config.kda_layers", "this list is missing.")
    if {*map(str, kda), *map(str, full)} != {str(i + 1) for i in range(layers)}:
        raise fields.error("linear_attn_config.kda_layers", f"the lists do not cover {layers} layers.")
    if not linear.get("use_full_rank_gate"):
        raise fields.error("linear_attn_config.use_full_rank_gate", "low-rank gates are not modelled.")
    latent(fields, arch)
    heads, dim, taps = numbers
    arch["mixers"] = compact("kda" if i + 1 in kda else "mla" for i in range(layers))
    arch.update(linear_key_heads=heads, linear_value_heads=heads, linear_key_dim=dim, linear_value_dim=dim)
    arch["linear_conv"] = taps
    arch["attn_gate"] = fields.switch("mla_use_output_gate")
    if fields.switch("mla_use_nope"):
        arch["rotary_dim"] = 0
    arch["residual_blocks"] = fields.count("attn_res_block_size", default=0)
    experts(fields, arch, width=("moe_intermediate_size",))
    shared(fields, arch)
    dense_first(fields, arch)
    arch["expert_hidden"] = fields.count("routed_expert_hidden_size") or arch["hidden"]
    for name in ("latent_moe_use_norm", "moe_router_activation_func", "num_expert_group", "use_grouped_topk"):
        fields.get(name)
    notes.append("Recurrent states are taken in the model's own format; some engines keep them in fp32.")


def mamba(fields: Fields, arch: Arch, prefix: str) -> None:
    """Mamba-2 mixers."""
    names = {
        "": ("mamba_num_heads", "mamba_head_dim", "n_groups", "ssm_state_size", "conv_kernel", "chunk_size"),
        "mamba": (
            "mamba_n_heads",
            "mamba_d_head",
            "mamba_n_groups",
            "mamba_d_state",
            "mamba_d_conv",
            "mamba_chunk_size",
        ),
    }[prefix]
    arch["mamba_heads"] = fields.need(names[0])
    arch["mamba_head_dim"] = fields.need(names[1])
    arch["mamba_groups"] = fields.count(names[2], default=1)
    arch["mamba_state"] = fields.need(names[3])
    arch["mamba_conv"] = fields.count(names[4], default=4)
    arch["mamba_chunk"] = fields.count(names[5], default=256)
    arch["mamba_conv_bias"] = fields.switch("use_conv_bias", "mamba_conv_bias", default=True)
    arch["state_dtype"] = state(fields.text("mamba_ssm_cache_dtype"))
    fields.refuse("mamba_proj_bias", "use_bias", why="biases of Mamba projections are not modelled.")


def nemotron_h(fields: Fields, arch: Arch, notes: Notes) -> None:
    """Nemotron-H: each layer has one part, a Mamba-2 mixer, attention, an MLP or experts."""
    pattern = fields.text("hybrid_override_pattern")
    words = fields.get("layers_block_type")
    if not pattern and not isinstance(words, list):
        raise fields.error("hybrid_override_pattern", "this field is missing.")
    table = {"mamba": "M", "moe": "E", "attention": "*", "mlp": "-"}
    letters = list(pattern) if pattern else [table.get(str(word), str(word)) for word in words or []]
    wrong = [letter for letter in letters if letter not in "ME*-"]
    if wrong:
        raise fields.error(
            "hybrid_override_pattern", f"{wrong[0]!r} is not supported.", "Accepted: M, E, *, -."
        )
    arch["layers"] = len(letters)
    arch["mixers"] = compact({"M": "mamba", "*": "full"}.get(letter, "none") for letter in letters)
    arch["ffns"] = compact({"E": "moe", "-": "dense"}.get(letter, "none") for letter in letters)
    arch["rotary_dim"] = 0
    arch["o_bias"] = arch["qkv_bias"]
    mamba(fields, arch, "")
    fields.get("sliding_window")
    if "E" in letters:
        experts(fields, arch, width=("moe_intermediate_size",))
        shared = fields.count("n_shared_experts", default=0) or 0
        width = fields.count("moe_shared_expert_intermediate_size", default=arch["expert_intermediate"]) or 0
        arch["shared_intermediate"] = shared * width
        arch["expert_hidden"] = fields.count("moe_latent_size") or arch["hidden"]


def granite_hybrid(fields: Fields, arch: Arch, notes: Notes) -> None:
    """Granite 4: Mamba-2 with some attention, experts in every layer."""
    layers = arch["layers"]
    types = fields.items("layer_types", layers) or fields.items("layers_block_type", layers)
    if types is None:
        few = fields.need("num_attention_layers")
        fields.get("num_mamba_layers")
        types = [
            "attention" if (i % (layers // few)) == layers // few // 2 else "mamba" for i in range(layers)
        ]
        notes.append("The places of the attention layers are assumed to be evenly spread.")
    arch["mixers"] = compact(named(fields, "layer_types", types, {"attention": "full", "mamba": "mamba"}))
    mamba(fields, arch, "mamba")
    if fields.text("position_embedding_type") in ("nope", ""):
        arch["rotary_dim"] = 0
    arch["tied_embeddings"] = fields.switch("tie_word_embeddings", default=True)
    if fields.count("num_local_experts"):
        experts(fields, arch, width=("intermediate_size",))
        arch["shared_intermediate"] = fields.count("shared_intermediate_size", default=0)
    else:
        arch["intermediate"] = fields.need("shared_intermediate_size")
