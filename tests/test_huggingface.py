"""Reading models: Hugging Face configurations, the catalog, paths and inline specs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hwmodels.errors import SpecError
from hwmodels.families import FAMILIES
from hwmodels.huggingface import model_from_config
from hwmodels.loading import unstructure
from hwmodels.model import ModelSpec
from hwmodels.models import load_model, model, model_source, models
from tests.worlds import LLAMA3_70B, SMALL

TYPES = (
    "llama", "mistral", "qwen2", "qwen3", "gpt2", "mixtral", "qwen2_moe", "qwen3_moe", "deepseek_v3", "gemma", "gemma2",
    "gemma3_text", "phi", "phi3", "gpt_neox", "gptj", "opt", "bloom", "falcon", "mpt", "olmo", "olmo2", "starcoder2",
    "stablelm", "cohere",
)  # fmt: skip


def faults_of(config: dict[str, Any]) -> dict[str, tuple[str, str, str | None]]:
    with pytest.raises(SpecError) as caught:
        model_from_config(config, "bad")
    return {fault.path: (fault.found, fault.legal, fault.nearest) for fault in caught.value.faults}


def test_llama3_70b_is_read_as_published() -> None:
    assert model("llama3-70b") == ModelSpec(
        **{**unstructure(LLAMA3_70B), "name": "llama3-70b", "norm_eps": 1e-5, "rope_theta": 500000.0}
    )


def test_gpt2_is_read_as_published() -> None:
    assert model("gpt2") == ModelSpec(
        name="gpt2", layers=12, hidden=768, ffn_hidden=3072, heads=12, kv_heads=12, head_dim=64, vocab=50257,
        gated_mlp=False, activation="gelu", norm="layernorm", qkv_bias=True, attention_output_bias=True, mlp_bias=True,
        tied_embeddings=True, learned_positions=1024, norm_eps=1e-5,
    )  # fmt: skip


@pytest.mark.parametrize("kind", TYPES)
def test_defaults_are_those_of_transformers(kind: str) -> None:
    import transformers

    written_out = transformers.CONFIG_MAPPING[kind]().to_dict()
    assert model_from_config({"model_type": kind}, "x") == model_from_config(written_out, "x")


@pytest.mark.parametrize("kind", TYPES)
def test_no_key_of_transformers_counts_as_misspelt(kind: str) -> None:
    import transformers

    every_key = transformers.CONFIG_MAPPING[kind]().to_dict()
    others = {key: value for key, value in every_key.items() if key not in FAMILIES[kind].defaults}
    assert model_from_config({**others, "model_type": kind}, "x").layers > 0


def test_kv_heads_and_head_dim_follow_where_they_are_null_or_absent() -> None:
    config = {"model_type": "llama", "hidden_size": 96, "num_attention_heads": 6, "head_dim": None}
    spec = model_from_config({**config, "num_key_value_heads": None}, "x")
    assert (spec.kv_heads, spec.head_dim) == (6, 16)
    assert model_from_config({**config, "head_dim": 10}, "x").query_width == 60


def test_biases_and_norms_of_each_type() -> None:
    llama = model_from_config({"model_type": "llama", "attention_bias": True, "mlp_bias": True}, "x")
    assert (llama.qkv_bias, llama.attention_output_bias, llama.mlp_bias, llama.qk_norm) == (True, True, True, False)
    qwen2 = model_from_config({"model_type": "qwen2"}, "x")
    assert (qwen2.qkv_bias, qwen2.attention_output_bias, qwen2.mlp_bias, qwen2.qk_norm) == (True, False, False, False)
    sizes = {"hidden_size": 1000, "num_attention_heads": 8, "num_key_value_heads": 4}
    qwen3 = model_from_config({"model_type": "qwen3", **sizes}, "x")
    assert (qwen3.qkv_bias, qwen3.attention_output_bias, qwen3.qk_norm, qwen3.head_dim) == (False, False, True, 128)


@pytest.mark.parametrize(
    ("extra", "theta"),
    [
        ({}, 10000.0),
        ({"rope_theta": 5e5}, 5e5),
        ({"rope_parameters": {"rope_type": "default", "rope_theta": 3e5}}, 3e5),
        ({"rope_parameters": {"rope_type": "default", "rope_theta": 3e5}, "rope_theta": 5e5}, 3e5),
        ({"rope_scaling": {"rope_type": "linear", "factor": 2.0}, "rope_theta": 5e5}, 5e5),
        ({"rope_scaling": None, "rope_theta": 5e5}, 5e5),
    ],
)
def test_rotary_base_is_where_transformers_finds_it(extra: dict[str, Any], theta: float) -> None:
    import transformers

    config = {"model_type": "llama", **extra}
    assert model_from_config(config, "x").rope_theta == theta
    assert transformers.LlamaConfig.from_dict(config).rope_parameters["rope_theta"] == theta


@pytest.mark.parametrize(
    ("config", "window"),
    [
        ({"model_type": "mistral"}, 4096),
        ({"model_type": "mistral", "sliding_window": None}, 0),
        ({"model_type": "mistral", "sliding_window": 100}, 100),
        ({"model_type": "qwen2"}, 0),
        ({"model_type": "qwen2", "sliding_window": 100, "max_window_layers": 0}, 0),
        ({"model_type": "qwen2", "use_sliding_window": True, "sliding_window": 100, "max_window_layers": 0}, 100),
        ({"model_type": "qwen2", "use_sliding_window": True, "sliding_window": 100, "max_window_layers": 32}, 0),
        ({"model_type": "qwen3", "use_sliding_window": True, "layer_types": ["sliding_attention"] * 32}, 4096),
        ({"model_type": "qwen3", "use_sliding_window": True, "layer_types": ["full_attention"] * 32}, 0),
    ],
)
def test_sliding_window(config: dict[str, Any], window: int) -> None:
    assert model_from_config(config, "x").sliding_window == window


def test_layers_that_differ_in_their_window_are_refused() -> None:
    faults = faults_of({"model_type": "qwen2", "use_sliding_window": True})
    assert faults["max_window_layers"][0] == "sliding attention in 4 of 32 layers"


def test_all_faults_at_once_each_with_its_key() -> None:
    faults = faults_of({
        "model_type": "llama", "hiden_size": 64, "num_attention_heads": 7.0, "num_key_value_heads": -1,
        "hidden_act": "silly", "vocab_size": True, "rms_norm_eps": float("nan"), "tie_word_embeddings": "no",
        "intermediate_size": None, "rope_parameters": {"rope_theta": 0},
    })  # fmt: skip
    assert set(faults) == {
        "hiden_size", "num_attention_heads", "num_key_value_heads", "hidden_act", "vocab_size", "rms_norm_eps",
        "tie_word_embeddings", "intermediate_size", "rope_parameters.rope_theta",
    }  # fmt: skip
    assert faults["hiden_size"][2] == "hidden_size"
    assert faults["num_attention_heads"][2] == "7"
    assert faults["hidden_act"][2] == "silu"


def test_sizes_that_do_not_divide_are_named_as_the_file_names_them() -> None:
    faults = faults_of({"model_type": "llama", "num_attention_heads": 12, "num_key_value_heads": 5})
    assert faults["hidden_size"] == ("4096", "a multiple of num_attention_heads=12, or a head_dim beside it", "4092")
    assert faults["num_key_value_heads"] == ("5", "a divisor of num_attention_heads=12", "4")
    assert faults_of({"model_type": "gpt2", "n_embd": 100})["n_embd"] == ("100", "a multiple of n_head=12", "96")


@pytest.mark.parametrize("found", ["mamba2", "t5", "bert", 3, None, ["llama"]])
def test_an_unsupported_type_is_one_fault_that_names_the_way_out(found: object) -> None:
    faults = faults_of({"model_type": found, "hidden_size": "x"})
    assert set(faults) == {"model_type"}
    _, legal, nearest = faults["model_type"]
    assert legal.startswith("bloom, cohere, deepseek_v2, deepseek_v3, falcon, gemma, ")
    assert "ffn_hidden" in legal
    assert nearest is None


def test_the_nearest_type_is_named_only_for_another_spelling() -> None:
    assert faults_of({"model_type": "GPT-2"})["model_type"][2] == "gpt2"


@pytest.mark.parametrize("key", ["num_local_experts", "num_experts", "n_routed_experts", "add_cross_attention"])
def test_experts_and_cross_attention_are_refused(key: str) -> None:
    assert set(faults_of({"model_type": "llama", key: 8})) == {key}


def test_every_model_of_the_catalog_loads_and_has_a_source() -> None:
    assert len(models()) >= 16
    assert list(models()) == sorted(models())
    for name in models():
        assert model(name).name == name
        assert model_source(name)


def test_an_unknown_name_names_the_nearest() -> None:
    with pytest.raises(SpecError) as caught:
        load_model("lama3-70b", Path())
    assert caught.value.faults[0].nearest == "llama3-70b"
    with pytest.raises(SpecError):
        model("../models/gpt2")


def test_a_file_is_found_from_the_given_folder(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"model_type": "gpt2", "n_layer": 3}))
    (tmp_path / "other.json").write_text(json.dumps({"model_type": "gpt2", "n_layer": 4}))
    for reference, name, layers in (
        ("mine", "mine", 3), ("mine/", "mine", 3), ("mine/config.json", "mine", 3), ("other.json", "other", 4),
    ):  # fmt: skip
        spec = load_model(reference, tmp_path)
        assert (spec.name, spec.layers) == (name, layers)


def test_a_name_of_the_catalog_comes_before_a_folder(tmp_path: Path) -> None:
    (tmp_path / "gpt2").mkdir()
    (tmp_path / "gpt2" / "config.json").write_text(json.dumps({"model_type": "gpt2", "n_layer": 3}))
    assert load_model("gpt2", tmp_path).layers == 12
    assert load_model("./gpt2", tmp_path).layers == 3


def test_faults_of_a_file_name_it(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "gpt2", "n_layer": 0}))
    with pytest.raises(SpecError) as caught:
        load_model("config.json", tmp_path)
    assert caught.value.source == str(tmp_path / "config.json")
    assert caught.value.faults[0].path == "n_layer"
    (tmp_path / "list.json").write_text("[]")
    for reference in ("list.json", "no/such/config.json"):
        with pytest.raises(SpecError) as caught:
            load_model(reference, tmp_path)
        assert caught.value.source == str(tmp_path / reference)


def test_inline_specs_of_both_kinds() -> None:
    assert load_model(unstructure(SMALL), Path()) == SMALL
    assert load_model(SMALL, Path()) is SMALL
    assert load_model({"model_type": "gpt2", "n_layer": 3}, Path()).layers == 3
    with pytest.raises(SpecError) as caught:
        load_model({"layers": 2, "hiden": 8}, Path())
    assert {fault.path for fault in caught.value.faults} >= {"hiden", "hidden", "heads"}


@pytest.mark.parametrize("reference", [None, 7, "", " ", ["gpt2"], "x" * 5000, "a\0b"])
def test_what_is_no_reference_is_refused(reference: object) -> None:
    with pytest.raises(SpecError):
        load_model(reference, Path())
