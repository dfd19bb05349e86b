"""The model types of Hugging Face configurations: defaults of their keys, and what these are in a `ModelSpec`.

Source: transformers 5.24, configuration_*.py (keys, defaults) and modeling_*.py (biases, norms, experts) of each type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from hwmodels.model import Activation

Values = dict[str, Any]
_DEFAULT_ROPE_THETA = 10_000.0
ACTIVATIONS: dict[str, Activation] = {
    "silu": "silu", "swish": "silu",
    "gelu": "gelu", "gelu_new": "gelu", "gelu_fast": "gelu", "gelu_pytorch_tanh": "gelu", "quick_gelu": "gelu",
    "relu": "relu", "relu2": "relu2",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """One `model_type`: the default of each key that is read, the key of each plain field, and the other fields."""

    defaults: Mapping[str, object]
    keys: Mapping[str, str]
    spec: Callable[[Values], Values]


def sliding_layers(values: Values) -> int:
    """Layers that attend within a window only."""
    if values["sliding_window"] is None or not values["use_sliding_window"]:
        return 0
    if values["layer_types"]:
        return sum(kind == "sliding_attention" for kind in values["layer_types"])
    full: int = min(values["max_window_layers"], values["num_hidden_layers"])
    return int(values["num_hidden_layers"]) - full


_LLAMA_KEYS = {
    "layers": "num_hidden_layers", "hidden": "hidden_size", "ffn_hidden": "intermediate_size",
    "heads": "num_attention_heads", "vocab": "vocab_size", "norm_eps": "rms_norm_eps", "rope_theta": "rope_theta",
    "tied_embeddings": "tie_word_embeddings",
}  # fmt: skip
_GPT2_KEYS = {
    "layers": "n_layer", "hidden": "n_embd", "heads": "n_head", "vocab": "vocab_size",
    "learned_positions": "n_positions", "norm_eps": "layer_norm_epsilon", "tied_embeddings": "tie_word_embeddings",
}  # fmt: skip
_LLAMA_DEFAULTS: dict[str, object] = {
    "vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": None, "head_dim": None, "hidden_act": "silu",
    "rms_norm_eps": 1e-6, "tie_word_embeddings": False, "rope_theta": _DEFAULT_ROPE_THETA,
}  # fmt: skip
_MISTRAL_DEFAULTS = _LLAMA_DEFAULTS | {
    "intermediate_size": 14336, "num_key_value_heads": 8, "sliding_window": 4096,
}  # fmt: skip
_QWEN_DEFAULTS = _LLAMA_DEFAULTS | {
    "vocab_size": 151936, "intermediate_size": 22016, "num_key_value_heads": 32, "use_sliding_window": False,
    "sliding_window": 4096, "max_window_layers": 28, "layer_types": [],
}  # fmt: skip
_GPT2_DEFAULTS: dict[str, object] = {
    "vocab_size": 50257, "n_positions": 1024, "n_embd": 768, "n_layer": 12, "n_head": 12, "n_inner": None,
    "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5, "tie_word_embeddings": True,
}  # fmt: skip


def _llama(values: Values) -> Values:
    bias = values["attention_bias"]
    return {
        "activation": ACTIVATIONS[values["hidden_act"]],
        "qkv_bias": bias,
        "attention_output_bias": bias,
        "mlp_bias": values["mlp_bias"],
    }


def _mistral(values: Values) -> Values:
    return {"activation": ACTIVATIONS[values["hidden_act"]], "sliding_window": values["sliding_window"] or 0}


def _qwen2(values: Values) -> Values:
    window = values["sliding_window"] if sliding_layers(values) else 0
    return {"activation": ACTIVATIONS[values["hidden_act"]], "qkv_bias": True, "sliding_window": window}


def _qwen3(values: Values) -> Values:
    bias = values["attention_bias"]
    return {**_qwen2(values), "qkv_bias": bias, "attention_output_bias": bias, "qk_norm": True}


def _gpt2(values: Values) -> Values:
    return {
        "ffn_hidden": values["n_inner"] or 4 * values["n_embd"],
        "activation": ACTIVATIONS[values["activation_function"]],
        "gated_mlp": False,
        "norm": "layernorm",
        "qkv_bias": True,
        "attention_output_bias": True,
        "mlp_bias": True,
    }


_MIXTRAL_DEFAULTS = _LLAMA_DEFAULTS | {
    "intermediate_size": 14336, "num_key_value_heads": 8, "rms_norm_eps": 1e-5, "sliding_window": None,
    "num_local_experts": 8, "num_experts_per_tok": 2, "rope_theta": 1e6,
}  # fmt: skip
_QWEN_MOE_DEFAULTS = _LLAMA_DEFAULTS | {
    "vocab_size": 151936, "hidden_size": 2048, "intermediate_size": 6144, "num_hidden_layers": 24,
    "num_key_value_heads": 4, "num_experts": 128, "num_experts_per_tok": 8, "moe_intermediate_size": 768,
    "decoder_sparse_step": 1, "mlp_only_layers": [], "use_sliding_window": False, "sliding_window": 4096,
    "max_window_layers": 28, "layer_types": [],
}  # fmt: skip
_QWEN2_MOE_DEFAULTS = _QWEN_MOE_DEFAULTS | {
    "intermediate_size": 5632, "num_attention_heads": 16, "num_key_value_heads": 16, "num_experts": 60,
    "num_experts_per_tok": 4, "moe_intermediate_size": 1408, "shared_expert_intermediate_size": 5632, "qkv_bias": True,
}  # fmt: skip
_DEEPSEEK_DEFAULTS = _LLAMA_DEFAULTS | {
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
        **_mistral(values), "experts": values["num_local_experts"], "experts_per_token": values["num_experts_per_tok"],
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


FAMILIES = {
    "llama": Family(
        defaults=_LLAMA_DEFAULTS | {"attention_bias": False, "mlp_bias": False}, keys=_LLAMA_KEYS, spec=_llama
    ),
    "mistral": Family(defaults=_MISTRAL_DEFAULTS, keys=_LLAMA_KEYS, spec=_mistral),
    "qwen2": Family(defaults=_QWEN_DEFAULTS, keys=_LLAMA_KEYS, spec=_qwen2),
    "qwen3": Family(
        defaults=_QWEN_DEFAULTS | {"head_dim": 128, "attention_bias": False}, keys=_LLAMA_KEYS, spec=_qwen3
    ),
    "gpt2": Family(defaults=_GPT2_DEFAULTS, keys=_GPT2_KEYS, spec=_gpt2),
    "mixtral": Family(defaults=_MIXTRAL_DEFAULTS, keys=_LLAMA_KEYS, spec=_mixtral),
    "qwen3_moe": Family(defaults=_QWEN_MOE_DEFAULTS | {"attention_bias": False}, keys=_LLAMA_KEYS, spec=_qwen3_moe),
    "qwen2_moe": Family(defaults=_QWEN2_MOE_DEFAULTS, keys=_LLAMA_KEYS, spec=_qwen2_moe),
    "deepseek_v2": Family(defaults=_DEEPSEEK_V2_DEFAULTS, keys=_LLAMA_KEYS, spec=_deepseek),
    "deepseek_v3": Family(defaults=_DEEPSEEK_DEFAULTS, keys=_LLAMA_KEYS, spec=_deepseek),
    "kimi_k2": Family(defaults=_DEEPSEEK_DEFAULTS, keys=_LLAMA_KEYS, spec=_deepseek),
}
"""Every `model_type` that can be read."""
