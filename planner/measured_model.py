"""The model of a measured row: the dimensions that it states, completed from the catalog and from its family."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from hwmodels.errors import SpecError
from hwmodels.model import ModelSpec
from hwmodels.models import model, models
from planner.framework_defaults import Family, family
from planner.ledger import Ledger
from planner.measurements import Configuration

VOCAB_MULTIPLE = 128
"""Megatron-LM pads the vocabulary to a multiple of 128 x tp. Source: arguments.py, --make-vocab-size-divisible-by."""


def measured_model(ledger: Ledger) -> ModelSpec | None:
    """The model of the row, or None after noting in `ledger` why there is none.

    Stated dimensions are kept. A blank one is taken from the model of the catalog that the name stands for, if that has
    the same hidden width; else kv heads = heads, head width = hidden / heads, and the MLP is as wide as in the family.
    """
    row, kind = ledger.row, family(ledger.row.model)
    if kind.unsupported:
        ledger.refuse(kind.unsupported + " is not priced")
    known = _known(row)
    if known is None and kind.latent:
        ledger.refuse("the widths of latent attention are not stated")
    layers = row.n_layers or _from_catalog(ledger, known, "n_layers", "layers")
    hidden = row.hidden or _from_catalog(ledger, known, "hidden", "hidden")
    if not layers or not hidden:
        ledger.refuse("the architecture is not stated")
    if ledger.reasons or not layers or not hidden:
        return None
    ffn = row.ffn_hidden or _from_catalog(ledger, known, "ffn_hidden", "ffn_hidden")
    ffn = ffn or _family_ffn(ledger, kind, hidden) or row.moe_ffn_hidden
    heads = row.n_heads or _from_catalog(ledger, known, "n_heads", "heads") or _default_heads(ledger)
    if not ffn or not heads:
        ledger.refuse("the MLP width is not stated" if not ffn else "the number of attention heads is not stated")
        return None
    kv = row.n_kv_heads or _from_catalog(ledger, known, "n_kv_heads", "kv_heads")
    width = row.head_dim or _from_catalog(ledger, known, "head_dim", "head_dim")
    vocab = row.vocab or _from_catalog(ledger, known, "vocab", "vocab") or _default_vocab(ledger)
    special = {**_experts(ledger, known, ffn, layers), **_latent(known)}
    return _checked(ledger, kind, special, {
        "layers": layers, "hidden": hidden, "ffn_hidden": ffn, "heads": heads, "vocab": vocab,
        "kv_heads": kv or ledger.fill("n_kv_heads", heads, "multi-head attention: as many as heads"),
        "head_dim": special.get("head_dim")
        or width or ledger.fill("head_dim", max(hidden // heads, 1), "hidden / heads"),
    })  # fmt: skip


_LATENT = ("query_latent", "kv_latent", "rope_head_dim", "value_head_dim")


def _latent(known: ModelSpec | None) -> dict[str, int]:
    """Latent attention is that of the catalog's model; no row states its widths."""
    if known is None or not known.kv_latent:
        return {}
    return {**{name: int(getattr(known, name)) for name in _LATENT}, "head_dim": known.head_dim}


def _experts(ledger: Ledger, known: ModelSpec | None, ffn: int, layers: int) -> dict[str, int]:
    """Routed experts as stated; shared ones and dense layers those of the catalog's model."""
    row = ledger.row
    experts = row.n_experts or _from_catalog(ledger, known, "n_experts", "experts") or 0
    if experts < 2:
        return {}
    taken = row.topk or _from_catalog(ledger, known, "topk", "experts_per_token") or 0
    width = row.moe_ffn_hidden or _from_catalog(ledger, known, "moe_ffn_hidden", "expert_hidden")
    found = {
        "experts": experts, "experts_per_token": taken,
        "expert_hidden": width or ledger.fill("moe_ffn_hidden", ffn, "as wide as the MLP"),
    }  # fmt: skip
    if known is None or not known.experts:
        return found
    dense = min(known.dense_layers, layers - 1)
    return {**found, "shared_hidden": known.shared_hidden, "dense_layers": dense}


def _checked(
    ledger: Ledger, kind: Family, special: Mapping[str, int], dimensions: Mapping[str, int]
) -> ModelSpec | None:
    notes = ledger.row.notes
    positions = ledger.row.seq_len if kind.learned_positions else 0
    try:
        return ModelSpec(
            name=ledger.row.model,
            **{**special, **dimensions},  # type: ignore[arg-type]
            gated_mlp=kind.gated_mlp or "swiglu" in notes,
            activation=kind.activation,  # type: ignore[arg-type]
            norm=kind.norm,  # type: ignore[arg-type]
            qkv_bias=kind.qkv_bias,
            attention_output_bias=kind.attention_output_bias,
            mlp_bias=kind.mlp_bias,
            qk_norm=kind.qk_norm,
            tied_embeddings=kind.tied_embeddings and "untie-embeddings" not in notes,
            learned_positions=positions or 0,
        )
    except SpecError as error:
        ledger.refuse(f"the architecture is not legal: {error.faults[0]}")
        return None


def _from_catalog(ledger: Ledger, known: ModelSpec | None, name: str, field: str) -> int | None:
    return None if known is None else ledger.fill(name, int(getattr(known, field)), f"catalog model {known.name}")


def _family_ffn(ledger: Ledger, kind: Family, hidden: int) -> int | None:
    return ledger.fill("ffn_hidden", round(kind.ffn_ratio * hidden), kind.source) if kind.ffn_ratio else None


def _default_heads(ledger: Ledger) -> int | None:
    value, source = ledger.default("n_heads")
    return ledger.fill("n_heads", int(value), source) if value else None


def _default_vocab(ledger: Ledger) -> int:
    value, source = ledger.default("vocab")
    multiple = VOCAB_MULTIPLE * (ledger.row.tp or 1)
    return ledger.fill("vocab", -(-int(value) // multiple) * multiple, source)


def _known(row: Configuration) -> ModelSpec | None:
    """The model of the catalog with the longest name that is part of the row's, unless the row states another width."""
    spoken = _plain(row.model)
    found = max((name for name in _catalog_names() if _plain(name) in spoken), key=len, default=None)
    known = _catalog_model(found) if found else None
    return None if known and row.hidden not in (None, known.hidden) else known


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


@cache
def _catalog_names() -> tuple[str, ...]:
    return models()


@cache
def _catalog_model(name: str) -> ModelSpec:
    return model(name)
