"""Llama and what follows it: root-mean-square norms, gated MLPs, rotary positions.

Source: transformers 5.24, configuration and modeling of llama, mistral, qwen2, qwen3, gemma, gemma2, gemma3, phi3,
olmo, olmo2, cohere, stablelm.
"""

from __future__ import annotations

from hwmodels.families.base import ACTIVATIONS, DEFAULT_ROPE_THETA, Family, Values, sliding_layers

LLAMA_KEYS = {
    "layers": "num_hidden_layers", "hidden": "hidden_size", "ffn_hidden": "intermediate_size",
    "heads": "num_attention_heads", "vocab": "vocab_size", "norm_eps": "rms_norm_eps", "rope_theta": "rope_theta",
    "tied_embeddings": "tie_word_embeddings",
}  # fmt: skip
LLAMA_DEFAULTS: dict[str, object] = {
    "vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": None, "head_dim": None, "hidden_act": "silu",
    "rms_norm_eps": 1e-6, "tie_word_embeddings": False, "rope_theta": DEFAULT_ROPE_THETA,
}  # fmt: skip
_MISTRAL_DEFAULTS = LLAMA_DEFAULTS | {
    "intermediate_size": 14336, "num_key_value_heads": 8, "sliding_window": 4096,
}  # fmt: skip
_QWEN_DEFAULTS = LLAMA_DEFAULTS | {
    "vocab_size": 151936, "intermediate_size": 22016, "num_key_value_heads": 32, "use_sliding_window": False,
    "sliding_window": 4096, "max_window_layers": 28, "layer_types": [],
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


_GEMMA_DEFAULTS = LLAMA_DEFAULTS | {
    "vocab_size": 256000, "hidden_size": 3072, "intermediate_size": 24576, "num_hidden_layers": 28,
    "num_attention_heads": 16, "num_key_value_heads": 16, "head_dim": 256, "hidden_act": "gelu_pytorch_tanh",
    "tie_word_embeddings": True, "attention_bias": False,
}  # fmt: skip
_GEMMA2_DEFAULTS = _GEMMA_DEFAULTS | {
    "hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 26, "num_attention_heads": 8,
    "num_key_value_heads": 4, "sliding_window": 4096, "layer_types": [], "hidden_activation": "gelu_pytorch_tanh",
}  # fmt: skip
_GEMMA3_DEFAULTS = _GEMMA2_DEFAULTS | {
    "vocab_size": 262208, "sliding_window_pattern": 6, "_sliding_window_pattern": 6, "rope_theta": 1e6,
}  # fmt: skip
_PHI3_DEFAULTS = LLAMA_DEFAULTS | {
    "vocab_size": 32064, "hidden_size": 3072, "intermediate_size": 8192, "num_key_value_heads": None,
    "rms_norm_eps": 1e-5, "sliding_window": None,
}  # fmt: skip
_OLMO_DEFAULTS = LLAMA_DEFAULTS | {"vocab_size": 50304, "attention_bias": False, "rms_norm_eps": 1e-5}
_COHERE_DEFAULTS = LLAMA_DEFAULTS | {
    "vocab_size": 256000, "hidden_size": 8192, "intermediate_size": 22528, "num_hidden_layers": 40,
    "num_attention_heads": 64, "layer_norm_eps": 1e-5, "tie_word_embeddings": True, "attention_bias": False,
    "use_qk_norm": False, "rope_theta": 5e5,
}  # fmt: skip
_STABLELM_DEFAULTS = LLAMA_DEFAULTS | {
    "vocab_size": 50304, "hidden_size": 2560, "intermediate_size": 6912, "num_key_value_heads": 32,
    "layer_norm_eps": 1e-5, "use_qkv_bias": False, "use_parallel_residual": False, "rope_theta": DEFAULT_ROPE_THETA,
}  # fmt: skip


def _gemma(values: Values) -> Values:
    bias = values["attention_bias"]
    return {"activation": ACTIVATIONS[values["hidden_act"]], "qkv_bias": bias, "attention_output_bias": bias}


def _gemma2(values: Values) -> Values:
    return {**_gemma(values), "activation": ACTIVATIONS[values["hidden_activation"]], "layer_norms": 4,
            **_mixed_window(values, 2)}  # fmt: skip


def _gemma3(values: Values) -> Values:
    return {**_gemma2(values), **_mixed_window(values, values["sliding_window_pattern"]), "qk_norm": True}


def _mixed_window(values: Values, pattern: int) -> Values:
    """The window, and the layers without one: as listed, or each `pattern`-th."""
    layers = values["num_hidden_layers"]
    listed = values["layer_types"]
    full = sum(kind == "full_attention" for kind in listed) if listed else layers // pattern
    return {"sliding_window": values["sliding_window"] or 0, "full_layers": full if values["sliding_window"] else 0}


def _phi3(values: Values) -> Values:
    return _mistral(values)


def _olmo(values: Values) -> Values:
    return {**_gemma(values), "norm": "none"}


def _olmo2(values: Values) -> Values:
    return {**_gemma(values), "qk_norm": True, "qk_norm_wide": True}


def _cohere(values: Values) -> Values:
    norms = {"norm": "layernorm", "norm_bias": False, "layer_norms": 1, "norm_eps": values["layer_norm_eps"]}
    return {**_gemma(values), **norms}


def _stablelm(values: Values) -> Values:
    norms = 1 if values["use_parallel_residual"] else 2
    return {"activation": ACTIVATIONS[values["hidden_act"]], "norm": "layernorm", "layer_norms": norms,
            "qkv_bias": values["use_qkv_bias"], "norm_eps": values["layer_norm_eps"]}  # fmt: skip


LLAMA_LIKE = {
    "llama": Family(
        defaults=LLAMA_DEFAULTS | {"attention_bias": False, "mlp_bias": False}, keys=LLAMA_KEYS, spec=_llama
    ),
    "mistral": Family(defaults=_MISTRAL_DEFAULTS, keys=LLAMA_KEYS, spec=_mistral),
    "qwen2": Family(defaults=_QWEN_DEFAULTS, keys=LLAMA_KEYS, spec=_qwen2),
    "qwen3": Family(defaults=_QWEN_DEFAULTS | {"head_dim": 128, "attention_bias": False}, keys=LLAMA_KEYS, spec=_qwen3),
    "gemma": Family(defaults=_GEMMA_DEFAULTS, keys=LLAMA_KEYS, spec=_gemma),
    "gemma2": Family(defaults=_GEMMA2_DEFAULTS, keys=LLAMA_KEYS, spec=_gemma2),
    "gemma3_text": Family(defaults=_GEMMA3_DEFAULTS, keys=LLAMA_KEYS, spec=_gemma3),
    "phi3": Family(defaults=_PHI3_DEFAULTS, keys=LLAMA_KEYS, spec=_phi3),
    "olmo": Family(defaults=_OLMO_DEFAULTS, keys=LLAMA_KEYS, spec=_olmo),
    "olmo2": Family(defaults=_OLMO_DEFAULTS, keys=LLAMA_KEYS, spec=_olmo2),
    "cohere": Family(defaults=_COHERE_DEFAULTS, keys=LLAMA_KEYS, spec=_cohere),
    "stablelm": Family(defaults=_STABLELM_DEFAULTS, keys=LLAMA_KEYS, spec=_stablelm),
}
