"""A widely read claim: 200 to 400 Gb/s InfiniBand cut a 13B model's run on 32 nodes of H100 from 11 days to 4."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hwmodels.catalog import cluster_of, stack
from hwmodels.job import TrainingJob
from hwmodels.models import model
from planner.constraints import keeping
from planner.search import search
from planner.space import SearchSpec, layouts
from sim.estimate import estimate

JOB = TrainingJob(
    model=model("llama2-13b"), global_batch_size=1024, sequence_length=4096, tokens=1e12,
    stack=stack("megatron-core-2025"),
)  # fmt: skip
FSDP = SearchSpec(tensor_parallel=(1,), pipeline_parallel=(1,), context_parallel=(1,), zero_stage=(3,))


def cluster(gigabits, cards):
    base, rate = cluster_of("dgx-h100 x 32"), gigabits * 1e9 / 8
    node = replace(base.node, nic_bandwidth=rate, nics=cards)
    pool = replace(base.pools[0], node=node)
    return replace(base, pools=(pool,), fabric=replace(base.fabric, link_bandwidth=rate))


def best(gigabits, cards, space):
    return search(JOB, cluster(gigabits, cards), space, top=1).candidates[0].estimate.step_time


@pytest.mark.parametrize("cards", [8, 1])
def test_no_layout_gains_the_claimed_factor_from_the_network_alone(cards):
    slow, fast = cluster(200, cards), cluster(400, cards)
    table = layouts(JOB, slow, SearchSpec())
    table = table.take(keeping(JOB, slow, table))
    factor = estimate(JOB, slow, table).step_time / estimate(JOB, fast, table).step_time
    assert len(table) > 50_000
    assert np.all(factor >= 1) and factor.max() < 2 < 11 / 4
    # Some layouts do nothing but communicate.
    assert factor.max() > 1.9


def test_conditions_under_which_the_network_matters():
    # A card for each device and a good layout: all but nothing.
    assert best(200, 8, SearchSpec()) / best(400, 8, SearchSpec()) < 1.02
    # One card for eight devices: more, and most where all weights are gathered over it.
    assert 1.05 < best(200, 1, SearchSpec()) / best(400, 1, SearchSpec()) < 1.2
    assert 1.4 < best(200, 1, FSDP) / best(400, 1, FSDP) < 2
