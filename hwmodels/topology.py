"""The topology of a cluster as a graph: devices, switches inside nodes, network cards, leaf and spine switches."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

from hwmodels.machine import Cluster

if TYPE_CHECKING:
    import networkx as nx


@dataclass(frozen=True, slots=True, kw_only=True)
class FatTree:
    """Switch counts of a two-level fat tree: leaf ports down and up, leaves, spines.

    `rails` is the number of leaves that the cards of one node are spread over: one for each card where the node has as
    many cards as devices (rail-optimized), otherwise one for the whole node.
    """

    rails: int
    down: int
    up: int
    leaves: int
    spines: int


def fat_tree(cluster: Cluster) -> FatTree:
    """The smallest fat tree that connects every card at the fabric's oversubscription; no spine where one leaf does.

    Leaves split their radix into down = radix x o / (o + 1) and up = radix - down ports. Source: NVIDIA DGX SuperPOD
    reference architecture (rail-optimized leaves).
    """
    node, fabric = cluster.node, cluster.fabric
    rails = node.nics if node.nics == node.devices else 1
    cards = cluster.nodes * node.nics
    if cards <= fabric.radix:
        return FatTree(rails=1, down=fabric.radix, up=0, leaves=1, spines=0)
    down = int(fabric.radix * fabric.oversubscription / (fabric.oversubscription + 1))
    up = fabric.radix - down
    cards_per_leaf = cluster.nodes * (node.nics // rails)
    leaves = rails * ceil(cards_per_leaf / (down - down % (node.nics // rails) or down))
    return FatTree(rails=rails, down=down, up=up, leaves=leaves, spines=ceil(leaves * up / fabric.radix))


def build_graph(cluster: Cluster) -> nx.Graph[str]:
    """Nodes carry `kind` (gpu, nvswitch, nic, leaf, spine), edges `bandwidth` in B/s and direction and `latency` in s.

    Devices are named gpu0 .. gpuN by rank. Several cables between two switches are one edge with their sum.
    """
    import networkx as nx

    graph: nx.Graph[str] = nx.Graph(name=cluster.name)
    _add_domains(graph, cluster)
    if cluster.nodes > 1 and cluster.node.nics:
        _add_network(graph, cluster)
    return graph


def _add_domains(graph: nx.Graph[str], cluster: Cluster) -> None:
    node = cluster.node
    for rank in range(cluster.devices):
        gpu, switch = f"gpu{rank}", f"nvswitch{rank // node.domain}"
        graph.add_node(gpu, kind="gpu", node=rank // node.devices)
        graph.add_node(switch, kind="nvswitch")
        graph.add_edge(gpu, switch, bandwidth=node.scaleup_bandwidth, latency=node.scaleup_latency / 2)


def _add_network(graph: nx.Graph[str], cluster: Cluster) -> None:
    node, fabric, tree = cluster.node, cluster.fabric, fat_tree(cluster)
    port = min(node.nic_bandwidth, fabric.link_bandwidth)
    nodes_per_leaf = max(tree.down // (node.nics // tree.rails), 1)
    for server in range(cluster.nodes):
        for card in range(node.nics):
            nic = f"nic{server}.{card}"
            rail = card * tree.rails // node.nics
            leaf = f"leaf{server // nodes_per_leaf * tree.rails + rail}"
            graph.add_node(nic, kind="nic", node=server)
            graph.add_node(leaf, kind="leaf")
            graph.add_edge(nic, leaf, bandwidth=port, latency=fabric.latency / 2)
        for device in range(node.devices):
            for card in _cards_of(device, node.devices, node.nics):
                gpu, nic = f"gpu{server * node.devices + device}", f"nic{server}.{card}"
                graph.add_edge(gpu, nic, bandwidth=node.nic_bandwidth, latency=0.0)
    _add_spines(graph, cluster, tree)


def _cards_of(device: int, devices: int, nics: int) -> range:
    """The cards next to a device: its share of them, or the one that it shares with its neighbours."""
    first = device * nics // devices
    return range(first, max((device + 1) * nics // devices, first + 1))


def _add_spines(graph: nx.Graph[str], cluster: Cluster, tree: FatTree) -> None:
    leaves = [name for name in graph if graph.nodes[name]["kind"] == "leaf"]
    for spine in range(tree.spines):
        graph.add_node(f"spine{spine}", kind="spine")
        for leaf in leaves:
            bandwidth = tree.up / tree.spines * cluster.fabric.link_bandwidth
            graph.add_edge(leaf, f"spine{spine}", bandwidth=bandwidth, latency=0.0)
