"""Mixtures of experts, and latent attention.

Source: transformers 5.24, configuration and modeling of mixtral, qwen2_moe, qwen3_moe, deepseek_v2, deepseek_v3.
"""

from __future__ import annotations

from hwmodels.families.base import ACTIVATIONS, Family, Values, sliding_layers
from hwmodels.families.llama import LLAMA_DEFAULTS, LLAMA_KEYS

_MIXTRAL_DEFAULTS = LLAMA_DEFAULTS | {
    "intermediate_size": 14336, "num_key_value_heads": 8, "rms_norm_eps": 1e-5, "sliding_window": None,
    "num_local_experts": 8, "num_experts_per_tok": 2, "rope_theta": 1e6,
}  # fmt: skip
_QWEN_MOE_DEFAULTS = LLAMA_DEFAULTS | {
    "vocab_size": 151936, "hidden_size": 2048, "intermediate_size": 6144, "num_hidden_layers": 24,
    "num_key_value_heads": 4, "num_experts": 128, "num_experts_per_tok": 8, "moe_intermediate_size": 768,
    "decoder_sparse_step": 1, "mlp_only_layers": [], "use_sliding_window": False, "sliding_window": 4096,
    "max_window_layers": 28, "layer_types": [],
}  # fmt: skip
_QWEN2_MOE_DEFAULTS = _QWEN_MOE_DEFAULTS | {
    "intermediate_size": 5632, "num_attention_heads": 16, "num_key_value_heads": 16, "num_experts": 60,
    "num_experts_per_tok": 4, "moe_intermediate_size": 1408, "shared_expert_intermediate_size": 5632, "qkv_bias": True,
}  # fmt: skip
_DEEPSEEK_DEFAULTS = LLAMA_DEFAULTS | {
    "vocab_size": 129280, "hidden_size": 7168, "intermediate_size": 18432, "num_hidden_layers": 61,
    "num_attention_heads": 128, "num_key_value_heads": 128, "attention_bias": False, "n_routed_experts": 256,
    "n_shared_experts": 1, "num_experts_per_tok": 8, "moe_intermediate_size": 2048, "first_k_dense_replace": 3,
    "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
    "qk_head_dim": None,
}  # fmt: skip
_DEEPSEEK_V2_DEFAULTS = _DEEPSEEK_DEFAULTS | {
    "vocab_size": 102400, "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 32, "n_routed_experts": 64, "n_shared_experts": 2,
    "num_experts_per_tok": 6, "moe_intermediate_size": 1407, "first_k_dense_replace": 0,
}  # fmt: skip


def _mixtral(values: Values) -> Values:
    return {
        "activation": ACTIVATIONS[values["hidden_act"]], "sliding_window": values["sliding_window"] or 0,
        "experts": values["num_local_experts"], "experts_per_token": values["num_experts_per_tok"],
        "expert_hidden": values["intermediate_size"],
    }  # fmt: skip


def _qwen3_moe(values: Values) -> Values:
    bias = values["attention_bias"]
    return {**_qwen_experts(values), "qkv_bias": bias, "attention_output_bias": bias, "qk_norm": True}


def _qwen2_moe(values: Values) -> Values:
    shared = {"shared_hidden": values["shared_expert_intermediate_size"], "shared_gate": True}
    return {**_qwen_experts(values), **shared, "qkv_bias": values["qkv_bias"]}


def _qwen_experts(values: Values) -> Values:
    """Every `decoder_sparse_step`-th layer has experts, unless it is among `mlp_only_layers`."""
    step, plain = values["decoder_sparse_step"], values["mlp_only_layers"]
    layers = range(values["num_hidden_layers"])
    sparse = sum((layer + 1) % step == 0 and layer not in plain for layer in layers)
    window = values["sliding_window"] if sliding_layers(values) else 0
    return {
        "activation": ACTIVATIONS[values["hidden_act"]], "sliding_window": window or 0,
        "experts": values["num_experts"], "experts_per_token": values["num_experts_per_tok"],
        "expert_hidden": values["moe_intermediate_size"], "dense_layers": len(layers) - sparse,
    }  # fmt: skip


def _deepseek(values: Values) -> Values:
    bias = values["attention_bias"]
    return {
        "activation": ACTIVATIONS[values["hidden_act"]], "qkv_bias": bias, "attention_output_bias": bias,
        "experts": values["n_routed_experts"], "experts_per_token": values["num_experts_per_tok"],
        "expert_hidden": values["moe_intermediate_size"],
        "shared_hidden": (values["n_shared_experts"] or 0) * values["moe_intermediate_size"],
        "dense_layers": min(values["first_k_dense_replace"], values["num_hidden_layers"]),
        "query_latent": values["q_lora_rank"] or 0, "kv_latent": values["kv_lora_rank"],
        "rope_head_dim": values["qk_rope_head_dim"], "value_head_dim": values["v_head_dim"],
        "head_dim": values["qk_nope_head_dim"] + values["qk_rope_head_dim"], "kv_heads": values["num_attention_heads"],
    }  # fmt: skip


EXPERTS = {
    "mixtral": Family(defaults=_MIXTRAL_DEFAULTS, keys=LLAMA_KEYS, spec=_mixtral),
    "qwen3_moe": Family(defaults=_QWEN_MOE_DEFAULTS | {"attention_bias": False}, keys=LLAMA_KEYS, spec=_qwen3_moe),
    "qwen2_moe": Family(defaults=_QWEN2_MOE_DEFAULTS, keys=LLAMA_KEYS, spec=_qwen2_moe),
    "deepseek_v2": Family(defaults=_DEEPSEEK_V2_DEFAULTS, keys=LLAMA_KEYS, spec=_deepseek),
    "deepseek_v3": Family(defaults=_DEEPSEEK_DEFAULTS, keys=LLAMA_KEYS, spec=_deepseek),
    "kimi_k2": Family(defaults=_DEEPSEEK_DEFAULTS, keys=LLAMA_KEYS, spec=_deepseek),
}
