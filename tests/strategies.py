"""Hypothesis strategies that several tests share."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from hwmodels.layout import OFFLOADS, RECOMPUTE, SCHEDULES, Layout


@st.composite
def huggingface_configs(draw: st.DrawFn) -> dict[str, Any]:
    """Configurations of every supported model type, with small, odd sizes."""
    kind = draw(st.sampled_from(("llama", "mistral", "qwen2", "qwen3", "gpt2", "mixtral", "qwen2_moe", "qwen3_moe")))
    kv_heads, group, head_dim = (draw(st.integers(1, 5)) for _ in range(3))
    heads, head_dim = kv_heads * group, 2 * head_dim
    sizes = {"vocab_size": draw(st.integers(8, 99)), "tie_word_embeddings": draw(st.booleans())}
    if kind == "gpt2":
        inner = draw(st.none() | st.integers(1, 99))
        return {
            **sizes, "model_type": kind, "n_embd": heads * head_dim, "n_head": heads, "n_inner": inner,
            "n_layer": draw(st.integers(1, 3)), "n_positions": draw(st.integers(1, 50)), "bos_token_id": None,
            "eos_token_id": None,
        }  # fmt: skip
    config = {
        **sizes, "model_type": kind, "hidden_size": heads * draw(st.integers(1, 9)), "num_attention_heads": heads,
        "num_key_value_heads": kv_heads, "head_dim": head_dim, "num_hidden_layers": draw(st.integers(1, 3)),
        "intermediate_size": draw(st.integers(1, 99)), "bos_token_id": None, "eos_token_id": None,
    }  # fmt: skip
    if kind in ("mixtral", "qwen2_moe", "qwen3_moe"):
        return config | draw(_experts(kind))
    biases = {"llama": ("attention_bias", "mlp_bias"), "qwen3": ("attention_bias",)}.get(kind, ())
    return config | {key: draw(st.booleans()) for key in biases}


@st.composite
def _experts(draw: st.DrawFn, kind: str) -> dict[str, Any]:
    """Keys of routed experts of one model type."""
    experts = draw(st.integers(1, 6))
    taken = {"num_experts_per_tok": draw(st.integers(1, experts))}
    if kind == "mixtral":
        return {**taken, "num_local_experts": experts}
    shared = {"shared_expert_intermediate_size": draw(st.integers(1, 40))} if kind == "qwen2_moe" else {}
    return {
        **taken, **shared, "num_experts": experts, "moe_intermediate_size": draw(st.integers(1, 40)),
        "decoder_sparse_step": draw(st.integers(1, 2)), "mlp_only_layers": draw(st.sampled_from([[], [0]])),
    }  # fmt: skip


@st.composite
def latent_configs(draw: st.DrawFn) -> dict[str, Any]:
    """Configurations with multi-head latent attention and experts, with small, odd sizes."""
    heads, rope = draw(st.integers(1, 4)), 2 * draw(st.integers(1, 5))
    sizes = {name: draw(st.integers(1, 30)) for name in (
        "intermediate_size", "moe_intermediate_size", "kv_lora_rank", "qk_nope_head_dim", "v_head_dim",
    )}  # fmt: skip
    experts = 4 * draw(st.integers(1, 2))
    return {
        **sizes, "hidden_size": heads * draw(st.integers(1, 9)),
        "model_type": draw(st.sampled_from(("deepseek_v2", "deepseek_v3"))),
        "vocab_size": draw(st.integers(8, 99)),
        "num_hidden_layers": draw(st.integers(1, 3)), "num_attention_heads": heads, "num_key_value_heads": heads,
        "qk_rope_head_dim": rope, "q_lora_rank": draw(st.none() | st.integers(1, 20)), "n_routed_experts": experts,
        "num_experts_per_tok": draw(st.integers(1, 4)), "n_shared_experts": draw(st.integers(1, 3)),
        "first_k_dense_replace": draw(st.integers(0, 3)), "attention_bias": draw(st.booleans()), "n_group": 1,
        "topk_group": 1, "tie_word_embeddings": False, "bos_token_id": None, "eos_token_id": None,
    }  # fmt: skip


def plain_data() -> st.SearchStrategy[Any]:
    """Whatever a YAML or JSON file may hold."""
    scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
    return st.recursive(
        scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=20), inner, max_size=4)
    )


def short_texts() -> st.SearchStrategy[str]:
    """Texts that are more or less a layout."""
    parts = st.sampled_from(["tp", "dp", "zero", "recompute", "sp", "=", ",", " ", "8", "-1", "x", "true", "full"])
    return st.lists(parts | st.text(max_size=3), max_size=12).map("".join)


@st.composite
def layouts(draw: st.DrawFn) -> Layout:
    """Layouts of any degrees and switches, whether or not a job can run in them."""
    degree = st.integers(1, 9)
    return Layout(
        tensor_parallel=draw(degree),
        pipeline_parallel=draw(degree),
        virtual_stages=draw(degree),
        data_parallel=draw(degree),
        context_parallel=draw(degree),
        expert_parallel=draw(degree),
        expert_tensor_parallel=draw(degree),
        sequence_parallel=draw(st.booleans()),
        zero_stage=draw(st.integers(0, 3)),
        shard_group=draw(degree),
        micro_batch_size=draw(degree),
        recompute=draw(st.sampled_from(RECOMPUTE)),
        schedule=draw(st.sampled_from(SCHEDULES)),
        offload=draw(st.sampled_from(OFFLOADS)),
        overlap=draw(st.booleans()),
    )
