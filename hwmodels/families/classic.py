"""GPT-2 and its kind: layer norms with offsets, plain MLPs, biases.

Source: transformers 5.24, configuration and modeling of gpt2, gpt_neox, gptj, opt, bloom, falcon, mpt, phi, starcoder2.
"""

from __future__ import annotations

from hwmodels.families.base import ACTIVATIONS, DEFAULT_ROPE_THETA, Family, Values

_GPT2_KEYS = {
    "layers": "n_layer", "hidden": "n_embd", "heads": "n_head", "vocab": "vocab_size",
    "learned_positions": "n_positions", "norm_eps": "layer_norm_epsilon", "tied_embeddings": "tie_word_embeddings",
}  # fmt: skip
_GPT2_DEFAULTS: dict[str, object] = {
    "vocab_size": 50257, "n_positions": 1024, "n_embd": 768, "n_layer": 12, "n_head": 12, "n_inner": None,
    "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5, "tie_word_embeddings": True,
}  # fmt: skip


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


_KEYS = {
    "layers": "num_hidden_layers", "hidden": "hidden_size", "heads": "num_attention_heads", "vocab": "vocab_size",
    "tied_embeddings": "tie_word_embeddings",
}  # fmt: skip
_NEOX_DEFAULTS: dict[str, object] = {
    "vocab_size": 50432, "hidden_size": 6144, "num_hidden_layers": 44, "num_attention_heads": 64,
    "intermediate_size": 24576, "hidden_act": "gelu", "layer_norm_eps": 1e-5, "tie_word_embeddings": False,
    "attention_bias": True,
}  # fmt: skip
_GPTJ_DEFAULTS: dict[str, object] = {
    "vocab_size": 50400, "n_positions": 2048, "n_embd": 4096, "n_layer": 28, "n_head": 16, "n_inner": None,
    "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5, "tie_word_embeddings": False,
}  # fmt: skip
_OPT_DEFAULTS: dict[str, object] = {
    "vocab_size": 50272, "hidden_size": 768, "num_hidden_layers": 12, "ffn_dim": 3072, "num_attention_heads": 12,
    "max_position_embeddings": 2048, "activation_function": "relu", "enable_bias": True, "tie_word_embeddings": True,
    "do_layer_norm_before": True, "word_embed_proj_dim": None,
}  # fmt: skip
_BLOOM_DEFAULTS: dict[str, object] = {
    "vocab_size": 250880, "hidden_size": 64, "n_layer": 2, "n_head": 8, "layer_norm_epsilon": 1e-5,
    "tie_word_embeddings": True,
}  # fmt: skip
_FALCON_DEFAULTS: dict[str, object] = {
    "vocab_size": 65024, "hidden_size": 4544, "num_hidden_layers": 32, "num_attention_heads": 71, "num_kv_heads": None,
    "layer_norm_epsilon": 1e-5, "new_decoder_architecture": False, "multi_query": True, "parallel_attn": True,
    "bias": False, "ffn_hidden_size": None, "num_ln_in_parallel_attn": None, "activation": "gelu",
    "tie_word_embeddings": True,
}  # fmt: skip
_MPT_DEFAULTS: dict[str, object] = {
    "vocab_size": 50368, "d_model": 2048, "n_heads": 16, "n_layers": 24,
    "layer_norm_epsilon": 1e-5, "tie_word_embeddings": True,
}  # fmt: skip
_PHI_DEFAULTS: dict[str, object] = {
    "vocab_size": 51200, "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 24,
    "num_attention_heads": 32, "num_key_value_heads": None, "hidden_act": "gelu_new", "layer_norm_eps": 1e-5,
    "tie_word_embeddings": False, "rope_theta": DEFAULT_ROPE_THETA,
}  # fmt: skip
_STARCODER_DEFAULTS: dict[str, object] = {
    "vocab_size": 49152, "hidden_size": 3072, "intermediate_size": 12288, "num_hidden_layers": 30,
    "num_attention_heads": 24, "num_key_value_heads": 2, "hidden_act": "gelu_pytorch_tanh", "norm_epsilon": 1e-5,
    "use_bias": True, "tie_word_embeddings": True, "rope_theta": DEFAULT_ROPE_THETA, "sliding_window": None,
}  # fmt: skip


def _biased(activation: str, eps: float, *, attention: bool = True, mlp: bool = True) -> Values:
    """Layer norms and a plain MLP, with biases everywhere unless said otherwise."""
    return {
        "activation": ACTIVATIONS[activation], "gated_mlp": False, "norm": "layernorm", "norm_eps": eps,
        "qkv_bias": attention, "attention_output_bias": attention, "mlp_bias": mlp,
    }  # fmt: skip


def _neox(values: Values) -> Values:
    return {**_biased(values["hidden_act"], values["layer_norm_eps"], attention=values["attention_bias"]),
            "ffn_hidden": values["intermediate_size"]}  # fmt: skip


def _gptj(values: Values) -> Values:
    return {
        **_biased(values["activation_function"], values["layer_norm_epsilon"], attention=False), "layer_norms": 1,
        "ffn_hidden": values["n_inner"] or 4 * values["n_embd"], "head_bias": not values["tie_word_embeddings"],
    }  # fmt: skip


def _opt(values: Values) -> Values:
    bias = values["enable_bias"]
    return {
        **_biased(values["activation_function"], 1e-5, attention=bias, mlp=bias), "ffn_hidden": values["ffn_dim"],
        # Two more rows than positions, for padding.
        "learned_positions": values["max_position_embeddings"] + 2,
    }  # fmt: skip


def _bloom(values: Values) -> Values:
    return {**_biased("gelu", values["layer_norm_epsilon"]), "ffn_hidden": 4 * values["hidden_size"],
            "embedding_norm": True}  # fmt: skip


def _falcon(values: Values) -> Values:
    bias, new = values["bias"], values["new_decoder_architecture"]
    norms = (values["num_ln_in_parallel_attn"] or 2) if new else (1 if values["parallel_attn"] else 2)
    heads = values["num_attention_heads"]
    grouped = (values["num_kv_heads"] or heads) if new else (1 if values["multi_query"] else heads)
    return {
        **_biased(values["activation"], values["layer_norm_epsilon"], attention=bias, mlp=bias), "layer_norms": norms,
        "ffn_hidden": values["ffn_hidden_size"] or 4 * values["hidden_size"], "kv_heads": grouped,
    }  # fmt: skip


def _mpt(values: Values) -> Values:
    return {**_biased("gelu", values["layer_norm_epsilon"], attention=False, mlp=False), "norm_bias": False,
            "ffn_hidden": 4 * values["d_model"]}  # fmt: skip


def _phi(values: Values) -> Values:
    return {**_biased(values["hidden_act"], values["layer_norm_eps"]), "layer_norms": 1, "head_bias": True,
            "ffn_hidden": values["intermediate_size"]}  # fmt: skip


def _starcoder(values: Values) -> Values:
    bias = values["use_bias"]
    return {**_biased(values["hidden_act"], values["norm_epsilon"], attention=bias, mlp=bias),
            "ffn_hidden": values["intermediate_size"], "sliding_window": values["sliding_window"] or 0}  # fmt: skip


_SHORT_KEYS = {**_KEYS, "layers": "n_layer", "heads": "n_head"}
CLASSIC = {
    "gpt2": Family(defaults=_GPT2_DEFAULTS, keys=_GPT2_KEYS, spec=_gpt2),
    "gpt_neox": Family(defaults=_NEOX_DEFAULTS, keys=_KEYS, spec=_neox),
    "gptj": Family(defaults=_GPTJ_DEFAULTS, keys={**_SHORT_KEYS, "hidden": "n_embd"}, spec=_gptj),
    "opt": Family(defaults=_OPT_DEFAULTS, keys=_KEYS, spec=_opt),
    "bloom": Family(defaults=_BLOOM_DEFAULTS, keys=_SHORT_KEYS, spec=_bloom),
    "falcon": Family(defaults=_FALCON_DEFAULTS, keys=_KEYS, spec=_falcon),
    "mpt": Family(
        defaults=_MPT_DEFAULTS, keys={**_KEYS, "layers": "n_layers", "heads": "n_heads", "hidden": "d_model"}, spec=_mpt
    ),
    "phi": Family(defaults=_PHI_DEFAULTS, keys=_KEYS, spec=_phi),
    "starcoder2": Family(defaults=_STARCODER_DEFAULTS, keys=_KEYS, spec=_starcoder),
}
