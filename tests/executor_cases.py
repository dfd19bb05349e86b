"""The layouts in which the executor has to train exactly as one process does."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from hwmodels import catalog
from hwmodels.job import TrainingJob
from hwmodels.layout import Layout
from hwmodels.model import ModelSpec
from planner.constraints import keeping
from planner.layout_text import show_layout
from planner.space import SearchSpec, layouts
from tests.worlds import ROUND_STACK

UNTIED = ModelSpec(
    name="untied", layers=4, hidden=16, ffn_hidden=24, heads=4, kv_heads=2, head_dim=4, vocab=37, qk_norm=True
)
"""Llama-like, with query and key norms; 37 tokens divide over no two ranks."""
TIED = ModelSpec(
    name="tied", layers=4, hidden=16, ffn_hidden=24, heads=4, kv_heads=4, head_dim=4, vocab=37, gated_mlp=False,
    activation="gelu", norm="layernorm", qkv_bias=True, attention_output_bias=True, mlp_bias=True,
    tied_embeddings=True, learned_positions=12,
)  # fmt: skip
"""GPT-2-like: learned positions, biases everywhere, one table for embedding and head."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One layout of one job; `bucket_elements` makes several buckets."""

    name: str
    job: TrainingJob
    layout: Layout
    bucket_elements: int = 1000


def _job(model: ModelSpec, global_batch_size: int = 8) -> TrainingJob:
    return TrainingJob(
        model=model, global_batch_size=global_batch_size, sequence_length=8, precision="fp32", stack=ROUND_STACK
    )


_ZERO = {"ddp": (0, 1), "zero1": (1, 2), "zero2": (2, 2), "zero3": (3, 2)}


def _data_parallel(layout: Layout, kind: str, degree: int) -> Layout:
    stage, _ = _ZERO[kind]
    return replace(layout, data_parallel=degree, zero_stage=stage, shard_group=degree if stage else 1)


_TP = {
    "tp": Layout(tensor_parallel=2),
    "tp-sp": Layout(tensor_parallel=2, sequence_parallel=True),
}
_PP = {
    "pp": Layout(pipeline_parallel=2),
    "interleaved": Layout(pipeline_parallel=2, virtual_stages=2, schedule="interleaved_1f1b"),
}


def _two_ranks() -> dict[str, Layout]:
    alone = {kind: _data_parallel(Layout(), kind, 2) for kind in _ZERO}
    return {**alone, **_TP, **_PP}


def _four_ranks() -> dict[str, Layout]:
    four = {kind: _data_parallel(Layout(), kind, 4) for kind in _ZERO}
    hybrid = {f"zero{stage}-shard2": Layout(data_parallel=4, zero_stage=stage, shard_group=2) for stage in (1, 2, 3)}
    with_data = {
        f"{kind} x {name}": _data_parallel(layout, kind, 2)
        for kind, (name, layout) in product(_ZERO, {**_TP, **_PP}.items())
    }
    both = {
        f"{tp} x {pp}": replace(_PP[pp], tensor_parallel=2, sequence_parallel=_TP[tp].sequence_parallel)
        for tp, pp in product(_TP, _PP)
    }
    return {**four, **hybrid, **with_data, **both}


def _planned(world: int, count: int) -> dict[str, Layout]:
    """`count` of the layouts that the planner may choose for `world` processes, drawn with a fixed seed."""
    job = replace(_job(UNTIED), stack=catalog.stack("meshwright"))
    cluster = catalog.cluster_of(f"cpu-{world} x 1")
    everything = layouts(job, cluster, SearchSpec())
    legal = everything.take(keeping(job, cluster, everything))
    rows = np.random.default_rng(world).choice(len(legal), count, replace=False)
    chosen = [legal.row(row) for row in sorted(rows.tolist())]
    return {show_layout(layout): layout for layout in chosen}


def _cases() -> list[Case]:
    named = [
        Case(name=f"{name} {model.name} {layout.world_size}", job=_job(model), layout=layout)
        for world in (_two_ranks(), _four_ranks())
        for name, layout in world.items()
        for model in (UNTIED, TIED)
    ]
    planned = [
        Case(name=f"planned {name} {layout.world_size}", job=_job(UNTIED), layout=layout)
        for world, count in ((2, 8), (4, 16))
        for name, layout in _planned(world, count).items()
    ]
    return [*named, *planned]


CASES = _cases()
