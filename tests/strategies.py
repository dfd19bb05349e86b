"""Hypothesis strategies that several tests share."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from hwmodels.layout import OFFLOADS, RECOMPUTE, SCHEDULES, Layout


@st.composite
def huggingface_configs(draw: st.DrawFn) -> dict[str, Any]:
    """Configurations of every supported model type, with small, odd sizes."""
    kind = draw(st.sampled_from(("llama", "mistral", "qwen2", "qwen3", "gpt2")))
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
    biases = {"llama": ("attention_bias", "mlp_bias"), "qwen3": ("attention_bias",)}.get(kind, ())
    return config | {key: draw(st.booleans()) for key in biases}


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
