"""The topology graph, against reference architectures."""

import time
from collections import Counter
from dataclasses import replace

import networkx as nx
import pytest

from hwmodels.catalog import cluster_of
from hwmodels.errors import SpecError
from hwmodels.machine import Pool
from hwmodels.switches import bill_of_materials, switch_plan
from planner.search import search
from planner.space import SearchSpec
from tests.worlds import round_job


def kinds(graph):
    return Counter(kind for _, kind in graph.nodes(data="kind"))


SUPERPOD = {64: (16, 8, 0), 128: (32, 16, 0), 256: (64, 32, 0), 512: (128, 128, 64), 1024: (256, 256, 128),
            2048: (512, 512, 256)}  # fmt: skip
"""Nodes -> leaves, spines, cores. Source: NVIDIA DGX SuperPOD B200 reference architecture."""


@pytest.mark.parametrize("nodes", SUPERPOD)
def test_superpod_switch_counts(nodes):
    cluster = cluster_of(f"dgx-b200 x {nodes}")
    plan = switch_plan(cluster)
    assert (plan.leaves, plan.spines, plan.cores) == SUPERPOD[nodes]
    bill = bill_of_materials(cluster)
    assert bill.switches == sum(SUPERPOD[nodes])
    assert bill.card_cables == bill.leaf_cables == 8 * nodes
    assert bill.core_cables == (8 * nodes if nodes > 256 else 0)
    assert bill.transceivers == 2 * (bill.card_cables + bill.leaf_cables + bill.core_cables)


@pytest.mark.parametrize(("nodes", "leaves", "spines"), [(72, 8, 4), (144, 16, 8), (1296, 144, 72)])
def test_superpod_xdr_switch_counts(nodes, leaves, spines):
    # NVIDIA DGX SuperPOD B300 XDR reference architecture: switches of 144 ports.
    plan = switch_plan(cluster_of(f"dgx-b300 x {nodes}"))
    assert (plan.leaves, plan.spines, plan.cores) == (leaves, spines, 0)


VARIANTS = [
    ("dgx-h100 x 16", {}), ("dgx-h100 x 100", {}), ("dgx-h100 x 300", {}), ("dgx-h100 x 600", {}),
    ("dgx-h100 x 100", {"oversubscription": 3.0}), ("dgx-h100 x 600", {"oversubscription": 2.0}),
    ("dgx-h100 x 100", {"topology": "fat_tree"}), ("dgx-h100 x 300", {"topology": "dragonfly+"}),
    ("dgx-h100 x 100", {"topology": "flat"}), ("mi300x-8 x 200", {"radix": 32}), ("gb200-nvl72 x 180", {}),
    ("p4d.24xlarge x 40", {}),
]  # fmt: skip


@pytest.mark.parametrize(("text", "changes"), VARIANTS)
def test_counts_agree_with_the_graph(text, changes):
    cluster = cluster_of(text)
    cluster = replace(cluster, fabric=replace(cluster.fabric, **changes))
    plan, graph, rate = switch_plan(cluster), cluster.graph(), cluster.fabric.link_bandwidth
    assert nx.is_connected(graph)
    found = kinds(graph)
    assert found["gpu"] == cluster.devices and found["nic"] == cluster.nodes * cluster.node.nics
    # A leaf without a card is bought where rails need one, but has nothing to be drawn for.
    assert found["leaf"] <= plan.leaves and (found["spine"], found["core"]) == (plan.spines, plan.cores)
    level = dict(graph.nodes(data="kind"))
    uplinks = sum(d["bandwidth"] for a, b, d in graph.edges(data=True) if {level[a], level[b]} == {"leaf", "spine"})
    assert uplinks == pytest.approx(plan.leaves * plan.up * rate if plan.spines else 0)


def test_few_nodes_share_one_leaf():
    assert kinds(cluster_of("dgx-h100 x 8").graph())["leaf"] == 1


def test_rails_keep_equal_cards_on_one_leaf():
    graph = cluster_of("dgx-h100 x 64").graph()
    for card in range(8):
        leaves = {next(n for n in graph[f"nic{server}.{card}"] if n.startswith("leaf")) for server in range(32)}
        assert len(leaves) == 1


def test_rack_wide_domain_joins_its_nodes():
    graph = cluster_of("gb200-nvl72 x 36").graph()
    assert kinds(graph)["nvswitch"] == 2
    assert nx.shortest_path(graph, "gpu0", "gpu71") == ["gpu0", "nvswitch0", "gpu71"]


def test_every_device_reaches_every_other():
    graph = cluster_of("dgx-h100 x 64").graph()
    assert nx.is_connected(graph)
    path = nx.shortest_path(graph, "gpu0", "gpu511")
    assert [graph.nodes[n]["kind"] for n in path].count("nic") == 2


def test_cut_bandwidth_of_a_non_blocking_tree():
    cluster = cluster_of("dgx-h100 x 64")
    graph, tree = cluster.graph(), switch_plan(cluster)
    assert tree.up == tree.down == 32
    uplinks = sum(data["bandwidth"] for a, b, data in graph.edges(data=True) if "spine" in a + b)
    downlinks = sum(data["bandwidth"] for a, b, data in graph.edges(data=True) if "leaf" in a + b and "nic" in a + b)
    assert uplinks == pytest.approx(downlinks)
    thin = replace(cluster, fabric=replace(cluster.fabric, oversubscription=3.0))
    assert (switch_plan(thin).down, switch_plan(thin).up) == (48, 16)


def test_pools_may_differ():
    large, small = cluster_of("dgx-h100 x 4"), cluster_of("gb200-nvl72 x 2")
    mixed = replace(large, pools=(*large.pools, *small.pools))
    graph = mixed.graph()
    assert kinds(graph)["gpu"] == 4 * 8 + 2 * 4 and nx.is_connected(graph)
    assert not mixed.uniform
    with pytest.raises(SpecError, match="plan each pool by itself"):
        search(round_job(), mixed, SearchSpec())


def test_clusters_joined_by_a_thin_link():
    one = cluster_of("dgx-h100 x 40")
    joined = replace(one, pools=(*one.pools, Pool(node=one.node, count=40)), pool_bandwidth=12.5e9)
    graph = joined.graph()
    cut = sum(data["bandwidth"] for _, _, data in graph.edges("link", data=True))
    assert cut == pytest.approx(2 * 12.5e9)
    assert "link" in nx.shortest_path(graph, "gpu0", "gpu639")
    assert "link" not in nx.shortest_path(graph, "gpu0", "gpu319")


def test_cards_and_devices_of_one_rail_share_a_pcie_switch():
    graph = cluster_of("dgx-h100 x 2").graph()
    assert nx.shortest_path(graph, "gpu3", "nic0.3") == ["gpu3", "pcie0.3", "nic0.3"]
    assert graph["pcie0.0"]["numa0.0"]["bandwidth"] == graph["pcie0.7"]["numa0.1"]["bandwidth"] == 63e9
    shared = cluster_of("p4d.24xlarge x 2").graph()
    assert set(shared["nic0.0"]) & set(shared["gpu0"]) & set(shared["gpu1"]) == {"pcie0.0"}


def test_ten_thousand_devices_build_in_a_second():
    started = time.perf_counter()
    graph = cluster_of("dgx-h100 x 1250").graph()
    # A generous bound on a busy machine; benchmarks/topology_speed.py reports the figure.
    assert kinds(graph)["gpu"] == 10000 and time.perf_counter() - started < 5
