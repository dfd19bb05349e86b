"""Parameter counts: by hand, as published, and as transformers builds the same configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings

from hwmodels.huggingface import model_from_config
from hwmodels.model import ModelSpec
from hwmodels.models import model, models, published_config
from hwmodels.parameters import (
    embedding_parameters,
    final_norm_parameters,
    head_parameters,
    layer_parameters,
    layers_parameters,
    parameter_count,
)
from tests.strategies import huggingface_configs, latent_configs
from tests.worlds import SMALL

# Sizes of the published weights, as their pages on the Hugging Face Hub state them.
PUBLISHED = {
    "llama2-7b": 6_738_415_616,
    "llama2-13b": 13_015_864_320,
    "llama2-70b": 68_976_648_192,
    "llama3-8b": 8_030_261_248,
    "llama3-70b": 70_553_706_496,
    "llama3.1-405b": 405_853_388_800,
    "mistral-7b": 7_241_732_096,
    "qwen2-7b": 7_615_616_512,
    "qwen2.5-32b": 32_763_876_352,
    "qwen2.5-72b": 72_706_203_648,
    "qwen3-8b": 8_190_735_360,
    "qwen3-32b": 32_762_123_264,
    "gpt2": 124_439_808,
    "gpt2-xl": 1_557_611_200,
}


def transformers_count(config: Mapping[str, Any]) -> int:
    """Parameters of the model that transformers builds, without memory for them; shared ones are counted once."""
    import torch
    import transformers

    built = transformers.CONFIG_MAPPING[config["model_type"]].from_dict(dict(config))
    with torch.device("meta"):
        network = transformers.AutoModelForCausalLM.from_config(built)
    return sum(parameter.numel() for parameter in network.parameters())


def test_a_small_layer_by_hand() -> None:
    # q: 1024 x 1024, k and v: 1024 x 512 each, o: 1024 x 1024; gate, up and down: 1024 x 4096 each; two norms.
    layer = layer_parameters(SMALL)
    assert layer.attention == 1_048_576 + 2 * 524_288 + 1_048_576
    assert layer.mlp == 3 * 4_194_304
    assert layer.norm == 2 * 1024
    assert layer.total == 3_145_728 + 12_582_912 + 2048
    assert embedding_parameters(SMALL) == head_parameters(SMALL) == 8192 * 1024
    assert final_norm_parameters(SMALL) == 1024
    assert parameter_count(SMALL) == 2 * 8_388_608 + 8 * 15_730_688 + 1024


def test_biases_tied_embeddings_and_positions_by_hand() -> None:
    spec = ModelSpec(
        name="by-hand", layers=2, hidden=12, ffn_hidden=20, heads=3, kv_heads=1, head_dim=5, vocab=7, gated_mlp=False,
        norm="layernorm", qkv_bias=True, attention_output_bias=True, mlp_bias=True, qk_norm=True, tied_embeddings=True,
        learned_positions=9,
    )  # fmt: skip
    layer = layer_parameters(spec)
    assert layer.attention == (12 * 25 + 25) + (15 * 12 + 12)
    assert layer.mlp == (12 * 20 + 20) + (20 * 12 + 12)
    assert layer.norm == 2 * 24 + 2 * 10
    assert embedding_parameters(spec) == (7 + 9) * 12
    assert head_parameters(spec) == 0
    assert parameter_count(spec) == 192 + 2 * (325 + 192 + 260 + 252 + 68) + 24


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_sizes(name: str) -> None:
    assert parameter_count(model(name)) == PUBLISHED[name]


def test_gpt3_is_the_papers_175_billion() -> None:
    assert parameter_count(model("gpt3-175b")) == pytest.approx(175e9, rel=0.005)


@pytest.mark.parametrize("name", models())
def test_catalog_counts_equal_those_of_transformers(name: str) -> None:
    assert parameter_count(model(name)) == transformers_count(published_config(name))


@settings(max_examples=60, deadline=None)
@given(config=huggingface_configs())
def test_counts_of_odd_sizes_equal_those_of_transformers(config: dict[str, Any]) -> None:
    assert parameter_count(model_from_config(config, "odd")) == transformers_count(config)


@settings(max_examples=30, deadline=None)
@given(config=latent_configs())
def test_counts_of_latent_attention_equal_those_of_transformers(config: dict[str, Any]) -> None:
    assert parameter_count(model_from_config(config, "odd")) == transformers_count(config)


def test_experts_and_latent_attention_by_hand() -> None:
    spec = ModelSpec(
        name="by-hand", layers=3, hidden=8, ffn_hidden=20, heads=2, kv_heads=2, head_dim=5, vocab=7, experts=4,
        experts_per_token=2, expert_hidden=6, shared_hidden=12, dense_layers=1, query_latent=3, kv_latent=4,
        rope_head_dim=2, value_head_dim=3,
    )  # fmt: skip
    (one, dense), (two, sparse) = layers_parameters(spec)
    assert (one, two) == (1, 2)
    # Up: 3 x 10 queries, 4 x 2 x (3 + 3) keys and values, 6 x 8 output. Down, replicated: 8 x 3 + 3, 8 x (4 + 2) + 4.
    assert dense.attention == sparse.attention == 30 + 48 + 48
    assert dense.norm == 2 * 8 + 27 + 52 and sparse.norm == dense.norm + 4 * 8
    assert (dense.mlp, dense.experts) == (3 * 8 * 20, 0)
    assert (sparse.mlp, sparse.experts) == (3 * 8 * 12, 4 * 3 * 8 * 6)
    assert parameter_count(spec) == 2 * 56 + 8 + dense.total + 2 * sparse.total
