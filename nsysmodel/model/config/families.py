"""What the fields of each family of models mean."""

from __future__ import annotations

from collections.abc import Callable

from nsysmodel.model.config.fields import Fields
from nsysmodel.model.config.hybrids import gated_delta, granite_hybrid, kimi_linear, nemotron_h
from nsysmodel.model.config.latent import deepseek, deepseek_v4, sparse_latent
from nsysmodel.model.config.nas import read_blocks
from nsysmodel.model.config.parts import (
    Arch,
    Notes,
    common,
    compact,
    dense_first,
    experts,
    only,
    shared,
    windows,
)


def read_family(fields: Fields) -> tuple[Arch, Notes]:
    """Architecture and notes of a configuration.

    Raises:
        ModelError: the model type is not known, or a field is missing or not supported.
    """
    kind = fields.text("model_type")
    if kind not in FAMILIES:
        # a configuration around the language model may name it better (kimi_k25 around deepseek_v3)
        kind = str(fields.outer.get("model_type", kind))
    if kind not in FAMILIES:
        hint = f"Supported: {', '.join(sorted(FAMILIES))}; or write a model file."
        raise fields.error("model_type", f"{kind!r} is not supported.", hint)
    notes: Notes = []
    arch = common(fields)
    FAMILIES[kind](fields, arch, notes)
    only(fields, "attn_type_list", 1)
    mtp = fields.count("num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_modules", default=0)
    if mtp:
        notes.append("Multi-token-prediction layers are no part of the step.")
    return arch, notes


def _dense(fields: Fields, arch: Arch, notes: Notes) -> None:
    """Llama, Mistral, Phi-3: one kind of layer."""
    windows(fields, arch)
    arch["o_bias"] = arch["qkv_bias"]


def _qwen2(fields: Fields, arch: Arch, notes: Notes) -> None:
    """Biases on q, k, v only."""
    windows(fields, arch)
    arch["qkv_bias"] = fields.get("attention_bias", "qkv_bias") is not False


def _qwen3(fields: Fields, arch: Arch, notes: Notes) -> None:
    _dense(fields, arch, notes)
    arch["qk_norm"] = "head" if fields.switch("use_qk_norm", default=True) else "none"


def _qwen3_moe(fields: Fields, arch: Arch, notes: Notes) -> None:
    _qwen3(fields, arch, notes)
    experts(fields, arch, width=("moe_intermediate_size",))
    step = fields.count("decoder_sparse_step", default=1) or 1
    only_dense = fields.get("mlp_only_layers") or []
    feeds = ["moe" if (i + 1) % step == 0 and i not in only_dense else "dense" for i in range(arch["layers"])]
    arch["ffns"] = compact(feeds)


def _mixtral(fields: Fields, arch: Arch, notes: Notes) -> None:
    windows(fields, arch)
    experts(fields, arch, width=("intermediate_size",))


def _minimax_m2(fields: Fields, arch: Arch, notes: Notes) -> None:
    _mixtral(fields, arch, notes)
    fields.refuse("shared_intermediate_size", why="shared experts are not known in this family.")
    if fields.switch("use_qk_norm"):
        arch["qk_norm"] = "head" if fields.text("qk_norm_type") == "per_head" else "full"


def _minimax_m3(fields: Fields, arch: Arch, notes: Notes) -> None:
    """MiniMax M3: an indexer chooses blocks of entries for each KV head; dense layers first."""
    layers = arch["layers"]
    sparse = fields.get("sparse_attention_config")
    if not isinstance(sparse, dict) or not sparse.get("use_sparse_attention"):
        raise fields.error("sparse_attention_config", "this must be an object that uses sparse attention.")
    numbers = ("sparse_block_size", "sparse_topk_blocks", "sparse_num_index_heads", "sparse_index_dim")
    for name in numbers:
        if not isinstance(sparse.get(name), int) or sparse[name] < 1:
            raise fields.error(f"sparse_attention_config.{name}", "this is not a positive whole number.")
    block, count, heads, dim = (sparse[name] for name in numbers)
    which, no_values = sparse.get("sparse_attention_freq"), sparse.get("sparse_disable_index_value")
    if not isinstance(which, list) or len(which) < layers or which != no_values:
        problem = "each layer must be listed, and indexed ones without index values."
        raise fields.error("sparse_attention_config.sparse_attention_freq", problem)
    arch["index_heads"], arch["index_dim"] = heads, dim
    arch["mixers"] = compact("sparse" if item else "full" for item in which[:layers])
    arch["variants"] = {"sparse": {"of": "full", "index_topk": block * count}}
    arch["intermediate"] = fields.need("dense_intermediate_size")
    experts(fields, arch, width=("moe_intermediate_size", "intermediate_size"))
    shared(fields, arch)
    fields.get("shared_intermediate_size")
    dense_first(fields, arch)
    arch["router_dtype"] = "fp32"
    arch["qk_norm"] = "head" if fields.switch("use_qk_norm") else "none"
    fields.text("qk_norm_type")
    fields.refuse("attention_output_gate", why="this is not modelled.")


def _gpt_oss(fields: Fields, arch: Arch, notes: Notes) -> None:
    """Biases everywhere, sinks, every second layer with a window."""
    windows(fields, arch)
    experts(fields, arch, width=("intermediate_size",))
    arch.update(sinks=True, o_bias=arch["qkv_bias"], expert_bias=True, router_bias=True)


def _glm4_moe(fields: Fields, arch: Arch, notes: Notes) -> None:
    """GLM-4.5: grouped-query attention, biases on q, k, v, half of each head rotated."""
    experts(fields, arch, width=("moe_intermediate_size",))
    shared(fields, arch)
    dense_first(fields, arch)
    arch["qk_norm"] = "head" if fields.switch("use_qk_norm") else "none"
    arch.setdefault("rotary_dim", arch["head_dim"] // 2)


def _gemma(fields: Fields, arch: Arch, notes: Notes) -> None:
    """Gemma 2 and 3: two norms around each part, tied embeddings, windows."""
    windows(fields, arch)
    arch["sandwich"] = True
    arch["tied_embeddings"] = fields.switch("tie_word_embeddings", default=True)
    if fields.text("model_type").startswith("gemma3"):
        fields.get("use_qk_norm")
        arch["qk_norm"] = "head"


def _gemma4(fields: Fields, arch: Arch, notes: Notes) -> None:
    """Gemma 4: full layers have wider heads and, with `attention_k_eq_v`, keys that are values too."""
    _gemma(fields, arch, notes)
    arch["qk_norm"] = "head"
    arch.pop("rotary_dim", None)
    why = "this is not modelled."
    fields.refuse("hidden_size_per_layer_input", "num_kv_shared_layers", "use_double_wide_mlp", why=why)
    wide = fields.count("global_head_dim") or arch["head_dim"]
    full: Arch = {"of": "full", "head_dim": wide}
    if fields.switch("attention_k_eq_v"):
        full["k_eq_v"] = 1
        full["kv_heads"] = fields.count("num_global_key_value_heads") or arch["kv_heads"]
    else:
        fields.get("num_global_key_value_heads")
    arch["variants"] = {**arch.get("variants", {}), "global": full}
    arch["mixers"] = [entry.replace("full", "global") for entry in arch.get("mixers", ["full"])]
    if fields.switch("enable_moe_block"):
        experts(fields, arch, width=("moe_intermediate_size",))
        # the dense MLP runs beside the experts on every token, as a shared expert does
        arch["shared_intermediate"] = arch["intermediate"]
        arch["_modules"] = {".mlp": ".mlp.shared_experts", ".experts": ".mlp.experts"}
        notes.append("The dense MLP beside the experts is described as a shared expert.")
    else:
        fields.get("num_experts", "top_k_experts", "moe_intermediate_size")


def _llama4(fields: Fields, arch: Arch, notes: Notes) -> None:
    """Llama 4: chunked attention with full attention without RoPE every fourth layer."""
    layers = arch["layers"]
    chunk = fields.count("attention_chunk_size", default=0) or 0
    no_rope = fields.get("no_rope_layers") or [int((i + 1) % 4 != 0) for i in range(layers)]
    arch["mixers"] = compact("chunked" if item else "global" for item in no_rope[:layers])
    arch["variants"] = {
        "chunked": {"of": "full", "chunk": chunk},
        "global": {"of": "full", "rotary_dim": 0},
    }
    experts(fields, arch, width=("intermediate_size",))
    arch["shared_intermediate"] = arch["expert_intermediate"]
    arch["intermediate"] = fields.count("intermediate_size_mlp", default=arch["intermediate"])
    step = fields.count("interleave_moe_layer_step", default=1) or 1
    arch["ffns"] = compact("moe" if (i + 1) % step == 0 else "dense" for i in range(layers))
    arch["qk_norm"] = "head" if fields.switch("use_qk_norm", default=True) else "none"


def _mimo_v2(fields: Fields, arch: Arch, notes: Notes) -> None:
    """MiMo-V2-Flash: windows with sinks, other KV heads in windowed layers, values narrower than keys."""
    layers = arch["layers"]
    window = fields.need("sliding_window", "sliding_window_size", "attention_chunk_size")
    pattern = fields.items("hybrid_layer_pattern", layers)
    if pattern is None:
        raise fields.error("hybrid_layer_pattern", "this field is missing.")
    arch["v_head_dim"] = fields.need("v_head_dim")
    arch["mixers"] = compact("sliding" if item else "full" for item in pattern)
    arch["variants"] = {
        "sliding": {
            "of": "full",
            "window": window,
            "heads": fields.need("swa_num_attention_heads"),
            "kv_heads": fields.need("swa_num_key_value_heads"),
            "head_dim": fields.need("swa_head_dim"),
            "v_head_dim": fields.need("swa_v_head_dim"),
            "sinks": int(fields.switch("add_swa_attention_sink_bias")),
        }
    }
    arch["sinks"] = fields.switch("add_full_attention_sink_bias")
    experts(fields, arch, width=("moe_intermediate_size",))
    shared(fields, arch)
    dense_first(fields, arch)


def _step3(fields: Fields, arch: Arch, notes: Notes) -> None:
    """Step-3.7: windows, dense layers first, one shared expert."""
    windows(fields, arch)
    experts(fields, arch, width=("moe_intermediate_size",))
    width = fields.count("share_expert_dim", default=arch["expert_intermediate"]) or 0
    arch["shared_intermediate"] = width * (fields.count("n_shared_experts", default=1) or 0)
    dense_first(fields, arch)


def _nemotron_nas(fields: Fields, arch: Arch, notes: Notes) -> None:
    """Nemotron NAS (DeciLM): each layer has its own KV heads and width, or lacks a part."""
    read_blocks(fields, arch)
    arch["o_bias"] = arch["qkv_bias"]


FAMILIES: dict[str, Callable[[Fields, Arch, Notes], None]] = {
    "llama": _dense,
    "mistral": _dense,
    "ministral": _dense,
    "phi3": _dense,
    "qwen2": _qwen2,
    "mimo": _qwen2,
    "qwen3": _qwen3,
    "qwen3_vl_text": _qwen3,
    "qwen3_moe": _qwen3_moe,
    "qwen3_vl_moe_text": _qwen3_moe,
    "qwen3_next": gated_delta,
    "qwen3_5_text": gated_delta,
    "qwen3_5_moe_text": gated_delta,
    "mixtral": _mixtral,
    "minimax_m2": _minimax_m2,
    "minimax_m3": _minimax_m3,
    "gpt_oss": _gpt_oss,
    "deepseek_v2": deepseek,
    "deepseek_v3": deepseek,
    "kimi_k2": deepseek,
    "kimi_linear": kimi_linear,
    "deepseek_v32": sparse_latent,
    "glm_moe_dsa": sparse_latent,
    "deepseek_v4": deepseek_v4,
    "deepseek_ref": deepseek_v4,
    "glm4_moe": _glm4_moe,
    "gemma2": _gemma,
    "gemma3_text": _gemma,
    "gemma4_text": _gemma4,
    "llama4_text": _llama4,
    "nemotron_h": nemotron_h,
    "granitemoehybrid": granite_hybrid,
    "mimo_v2_flash": _mimo_v2,
    "step3p7": _step3,
    "nemotron-nas": _nemotron_nas,
}
