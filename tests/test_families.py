"""Every family that is read has exactly the parameters that transformers builds."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hwmodels.families import FAMILIES
from hwmodels.huggingface import model_from_config
from hwmodels.job import TrainingJob
from hwmodels.parameters import parameter_count
from planner.search import search
from planner.space import SearchSpec
from tests.test_parameters import transformers_count
from tests.worlds import ROUND_STACK, round_cluster

SIZES: dict[str, dict[str, Any]] = {
    "gemma": {"head_dim": 6, "num_key_value_heads": 2},
    "gemma2": {"head_dim": 6, "num_key_value_heads": 2},
    "gemma3_text": {"head_dim": 6, "num_key_value_heads": 2},
    "phi3": {"num_key_value_heads": 2},
    "olmo": {"num_key_value_heads": 2},
    "olmo2": {"num_key_value_heads": 2},
    "cohere": {"num_key_value_heads": 2},
    "stablelm": {"num_key_value_heads": 2},
    "phi": {"num_key_value_heads": 2},
    "starcoder2": {"num_key_value_heads": 2},
    "gpt_neox": {}, "gptj": {"rotary_dim": 2}, "opt": {}, "bloom": {}, "falcon": {}, "mpt": {},
}  # fmt: skip
VARIANTS: list[tuple[str, dict[str, Any]]] = [
    ("gemma", {"attention_bias": True}), ("olmo2", {"tie_word_embeddings": True}),
    ("stablelm", {"use_qkv_bias": True, "use_parallel_residual": True}), ("gpt_neox", {"attention_bias": False}),
    ("gptj", {"n_inner": 7}), ("opt", {"enable_bias": False}), ("opt", {"max_position_embeddings": 33}),
    ("falcon", {"bias": True, "alibi": True}), ("falcon", {"multi_query": False}), ("falcon", {"parallel_attn": False}),
    ("falcon", {"new_decoder_architecture": True, "num_kv_heads": 2}),
    ("falcon", {"new_decoder_architecture": True, "num_kv_heads": 2, "num_ln_in_parallel_attn": 1}),
    ("starcoder2", {"use_bias": False, "tie_word_embeddings": False}), ("mpt", {"expansion_ratio": 4}),
]  # fmt: skip


def config_of(kind: str, layers: int, heads: int, width: int, **changes: Any) -> dict[str, Any]:
    """A small configuration: heads x width elements of the hidden state."""
    keys = FAMILIES[kind].keys
    config = {"model_type": kind, keys["layers"]: layers, keys["hidden"]: heads * width, keys["heads"]: heads}
    config["vocab_size"] = 90
    for key in ("intermediate_size", "ffn_dim"):
        if key in FAMILIES[kind].defaults:
            config[key] = 22
    special = {"bos_token_id": None, "eos_token_id": None, "pad_token_id": None}
    return {**config, **special, **SIZES[kind], **changes}


@pytest.mark.parametrize("kind", SIZES)
@settings(max_examples=6, deadline=None)
@given(layers=st.integers(1, 3), heads=st.sampled_from([2, 4]), width=st.sampled_from([4, 6]))
def test_counts_equal_those_of_transformers(kind: str, layers: int, heads: int, width: int) -> None:
    config = config_of(kind, layers, heads, width)
    assert parameter_count(model_from_config(config, "x")) == transformers_count(config)


@pytest.mark.parametrize(("kind", "changes"), VARIANTS)
def test_counts_of_variants_equal_those_of_transformers(kind: str, changes: dict[str, Any]) -> None:
    config = config_of(kind, 2, 4, 4, **changes)
    assert parameter_count(model_from_config(config, "x")) == transformers_count(config)


def test_layers_without_a_window() -> None:
    gemma2 = model_from_config({"model_type": "gemma2"}, "x")
    assert (gemma2.sliding_window, gemma2.full_layers, gemma2.layers) == (4096, 13, 26)
    gemma3 = model_from_config({"model_type": "gemma3_text", "num_hidden_layers": 62}, "x")
    assert (gemma3.full_layers, gemma3.qk_norm, gemma3.layer_norms) == (10, True, 4)


@pytest.mark.parametrize("kind", sorted(FAMILIES))
def test_every_family_can_be_planned(kind: str) -> None:
    model = model_from_config({"model_type": kind}, kind)
    length = min(1024, model.learned_positions or 1024)
    job = TrainingJob(model=model, global_batch_size=64, sequence_length=length, stack=ROUND_STACK)
    result = search(job, round_cluster(nodes=8), SearchSpec(micro_batch_size=(1,)), top=1)
    assert result.evaluated > 0
