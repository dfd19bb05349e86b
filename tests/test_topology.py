"""The topology graph, against reference architectures."""

from collections import Counter
from dataclasses import replace

import networkx as nx
import pytest

from hwmodels.catalog import cluster_of
from hwmodels.topology import fat_tree


def kinds(graph):
    return Counter(kind for _, kind in graph.nodes(data="kind"))


@pytest.mark.parametrize(("nodes", "leaves", "spines"), [(64, 16, 8), (128, 32, 16), (256, 64, 32)])
def test_superpod_switch_counts(nodes, leaves, spines):
    # NVIDIA DGX SuperPOD B200 reference architecture: 16/8, 32/16 and 64/32 leaf and spine switches.
    graph = cluster_of(f"dgx-b200 x {nodes}").graph()
    assert kinds(graph) == {"gpu": 8 * nodes, "nic": 8 * nodes, "nvswitch": nodes, "leaf": leaves, "spine": spines}


def test_one_node_has_no_network():
    assert kinds(cluster_of("dgx-h100 x 1").graph()) == {"gpu": 8, "nvswitch": 1}


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
    graph, tree = cluster.graph(), fat_tree(cluster)
    assert tree.up == tree.down == 32
    uplinks = sum(data["bandwidth"] for a, b, data in graph.edges(data=True) if "spine" in a + b)
    downlinks = sum(data["bandwidth"] for a, b, data in graph.edges(data=True) if "leaf" in a + b and "nic" in a + b)
    assert uplinks == pytest.approx(downlinks)
    thin = replace(cluster, fabric=replace(cluster.fabric, oversubscription=3.0))
    assert (fat_tree(thin).down, fat_tree(thin).up) == (48, 16)
