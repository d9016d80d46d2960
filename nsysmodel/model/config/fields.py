"""The fields of a configuration: each is taken, known to be harmless, or refused."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from nsysmodel.errors import ModelError
from nsysmodel.model.documents import Document

_HARMLESS = re.compile(
    r".*(?:_token_id|_token_index|_token_ids|dropout|_coef|_eps|_epsilon|eps|initializer_range|_theta|"
    r"softcapping|_scaling|_scaling_factor|_name_or_path|_version|attn_scalar|_prefix|_limit|_alpha|_beta)"
)
HARMLESS = frozenset(
    # a list of words reads better than a list of literals
    """
    architectures model_type auto_map torch_dtype dtype use_cache max_position_embeddings transformers_version
    rope_scaling rope_theta rope_local_base_freq rope_interleave indexer_rope_interleave
    max_window_layers pretraining_tp ep_size norm_topk_prob scoring_func topk_group n_group topk_method
    seq_aux output_router_logits id2label label2id is_decoder is_encoder_decoder torchscript return_dict
    use_bfloat16 tokenizer_class prefix problem_type pruned_heads task_specific_params add_cross_attention
    chunk_size_feed_forward cross_attention_hidden_size decoder_start_token_id finetuning_task
    output_attentions output_hidden_states tie_encoder_decoder bad_words_ids begin_suppress_tokens
    diversity_penalty do_sample early_stopping encoder_no_repeat_ngram_size exponential_decay_length_penalty
    forced_bos_token_id forced_eos_token_id length_penalty max_length min_length no_repeat_ngram_size
    num_beam_groups num_beams num_return_sequences remove_invalid_values repetition_penalty
    return_dict_in_generate suppress_tokens temperature top_p top_k typical_p ignore_index
    use_mamba_kernels rescale_prenorm_residual residual_in_fp32 num_logits_to_keep time_step_floor
    time_step_max time_step_min time_step_rank mamba_hidden_act use_mrope initial_context_length
    moe_shared_expert_overlap mamba_expand expand mtp_use_dedicated_embeddings use_bidirectional_attention
    index_share_for_mtp_iteration index_skip_topk_offset router_jitter_noise moe_router_scaling_factor
    use_gemma_norm use_unified_vision_chunk vision_config audio_config text_config
    num_mtp_modules mtp_transformer_layers use_mtp mtp_hybrid_override_pattern mtp_layers_block_type
    mtp_num_hidden_layers use_routing_bias use_moe_router_bias qk_head_dim attention_value_scale
    vocab_size_per_layer_input output_gate_type moe_renormalize name_or_path swiglu_limit
    attn_temperature_tuning floor_scale attn_scale for_llm_compressor
    """.split()  # noqa: SIM905
)
_EMPTY: tuple[Any, ...] = (None, False, 0, "", [], {})


class Fields:
    """The fields of a configuration, with a record of which were read.

    Attributes:
        document: the file, for errors.
        inner: the language model's fields.
        outer: fields around it (multimodal models), read where `inner` has none.
    """

    def __init__(self, document: Document, inner: Mapping[str, Any], outer: Mapping[str, Any]) -> None:
        self.document = document
        self.inner = inner
        self.outer = outer
        self.taken: set[str] = set()

    def get(self, *names: str) -> Any:
        """The first of these fields that has a value; all count as read."""
        self.taken.update(names)
        for name in names:
            for level in (self.inner, self.outer):
                if level.get(name) is not None:
                    return level[name]
        return None

    def text(self, name: str) -> str:
        """A text, empty where there is none."""
        value = self.get(name)
        if value is not None and not isinstance(value, str):
            raise self.error(name, f"{value!r} is not a text.")
        return (value or "").removeprefix("torch.")

    def count(self, *names: str, default: int | None = None) -> int | None:
        """A whole number that is not negative."""
        value = self.get(*names)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 10**9:
            raise self.error(names[0], f"{value!r} is not a whole number from 0 to 1e9.")
        return value

    def need(self, *names: str) -> int:
        """A whole number that must be there and positive."""
        value = self.count(*names)
        if not value:
            raise self.error(names[0], "this field is missing.", "The work of the model depends on it.")
        return value

    def switch(self, *names: str, default: bool = False) -> bool:
        """True or false."""
        value = self.get(*names)
        if value is None:
            return default
        if not isinstance(value, (bool, int)):
            raise self.error(names[0], f"{value!r} is neither true nor false.")
        return bool(value)

    def fraction(self, name: str) -> float | None:
        """A number from 0 to 1, also looked for in `rope_parameters`."""
        value = self.get(name)
        rope = self.inner.get("rope_parameters")
        if value is None and isinstance(rope, Mapping):
            value = rope.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
            raise self.error(name, f"{value!r} is not a number from 0 to 1.")
        return float(value)

    def items(self, name: str, length: int) -> list[Any] | None:
        """A list with one entry per layer; longer ones (with MTP layers) are cut."""
        value = self.get(name)
        if value is None:
            return None
        if not isinstance(value, list) or len(value) < length:
            raise self.error(name, f"this is not a list with an entry for each of {length} layers.")
        return value[:length]

    def refuse(self, *names: str, why: str) -> None:
        """Raises where one of these fields asks for something that is not modelled."""
        for name in names:
            if self.get(name) not in _EMPTY:
                raise self.error(name, why, "Write a model file with ops of its own for this model.")

    def error(self, name: str, problem: str, hint: str = "") -> ModelError:
        """An error at a field."""
        return ModelError(f"{self.document.name}: {name}: {problem}", hint)

    def finish(self) -> None:
        """Raises where a field was neither read nor is known to change no work."""
        for name, value in self.inner.items():
            if name in self.taken or name in HARMLESS or value in _EMPTY or _HARMLESS.fullmatch(name):
                continue
            if name == "rope_parameters":
                continue
            raise self.error(
                name,
                "this field is not known, and it may change the work.",
                "Remove it if it does not, or write a model file (architecture: with config: and ops).",
            )
