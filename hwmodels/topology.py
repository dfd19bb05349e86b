"""The topology of a cluster as a graph: devices, switches inside nodes, network cards, leaves, spines and cores."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hwmodels.machine import Cluster, Node, Pool
from hwmodels.switches import SwitchPlan, switch_plan

if TYPE_CHECKING:
    import networkx as nx

    Graph = nx.Graph[str]


def build_graph(cluster: Cluster) -> Graph:
    """Nodes carry `kind`, edges `bandwidth` in B/s and direction and `latency` in s.

    Kinds: gpu, nvswitch (the switches of a scale-up domain, as one), pcie (switch), numa (root of a socket), nic, leaf,
    spine, core, and link (what joins pools that have a fabric each). Devices are named gpu0 .. gpuN by rank, in the
    order of the pools. Several cables between two switches are one edge with their sum.
    """
    import networkx as nx

    graph: Graph = nx.Graph(name=cluster.name)
    _add_devices(graph, cluster)
    if cluster.nodes > 1:
        if cluster.pool_bandwidth:
            _add_joined_pools(graph, cluster)
        else:
            _add_network(graph, cluster, "")
    return graph


def _servers(cluster: Cluster) -> Iterator[tuple[int, int, Node]]:
    """Number of each server, rank of its first device, and what it is."""
    server, rank = 0, 0
    for pool in cluster.pools:
        for _ in range(pool.count):
            yield server, rank, pool.node
            server, rank = server + 1, rank + pool.node.devices


def _add_devices(graph: Graph, cluster: Cluster) -> None:
    domain, left = -1, 0
    for server, first, node in _servers(cluster):
        if left < node.devices:
            domain, left = domain + 1, max(node.domain, node.devices)
            graph.add_node(f"nvswitch{domain}", kind="nvswitch")
        left -= node.devices
        _add_server(graph, server, first, node, f"nvswitch{domain}")


def _add_server(graph: Graph, server: int, first: int, node: Node, switch: str) -> None:
    """A server's devices, and its cards behind the PCIe switches of the devices next to them."""
    for socket in range(node.numa_domains):
        graph.add_node(f"numa{server}.{socket}", kind="numa", node=server)
        if socket:
            graph.add_edge(f"numa{server}.0", f"numa{server}.{socket}", bandwidth=node.pcie_bandwidth, latency=0.0)
    for device in range(node.devices):
        gpu, pcie = f"gpu{first + device}", f"pcie{server}.{_pcie(node, device)}"
        graph.add_node(gpu, kind="gpu", node=server)
        graph.add_edge(gpu, switch, bandwidth=node.scaleup_bandwidth, latency=node.scaleup_latency / 2)
        if pcie not in graph:
            numa = f"numa{server}.{device * node.numa_domains // node.devices}"
            graph.add_node(pcie, kind="pcie", node=server)
            graph.add_edge(pcie, numa, bandwidth=node.pcie_bandwidth, latency=0.0)
        graph.add_edge(gpu, pcie, bandwidth=max(node.pcie_bandwidth, _cards_rate(node)), latency=0.0)


def _pcie(node: Node, device: int) -> int:
    """The PCIe switch of a device: it shares one with the devices that share its card."""
    return device * min(node.devices, max(node.nics, 1)) // node.devices


def _cards_rate(node: Node) -> float:
    return node.nic_bandwidth * node.nics / node.devices


def _add_joined_pools(graph: Graph, cluster: Cluster) -> None:
    """Each pool with a fabric of its own, whose top switches share one link of `pool_bandwidth` to the others."""
    graph.add_node("link", kind="link")
    start = 0
    for number, pool in enumerate(cluster.pools):
        tops = _add_network(graph, _alone(cluster, pool), f"{number}.", start)
        for top in tops:
            bandwidth = cluster.pool_bandwidth / len(tops)
            graph.add_edge(top, "link", bandwidth=bandwidth, latency=cluster.fabric.latency / 2)
        start += pool.count


def _alone(cluster: Cluster, pool: Pool) -> Cluster:
    return Cluster(name=cluster.name, pools=(pool,), fabric=cluster.fabric)


def _add_network(graph: Graph, cluster: Cluster, prefix: str, start: int = 0) -> list[str]:
    """Cards, leaves, spines and cores of servers number `start` and up. Returns the names of the top switches."""
    plan, fabric = switch_plan(cluster), cluster.fabric
    used: dict[int, int] = {}
    for server, _, node in _servers(cluster):
        port = min(node.nic_bandwidth, fabric.link_bandwidth)
        for card in range(node.nics):
            nic, pcie = f"nic{start + server}.{card}", f"pcie{start + server}.{_pcie_of_card(node, card)}"
            rail = card * plan.rails // node.nics
            leaf = f"leaf{prefix}{used.get(rail, 0) // plan.down * plan.rails + rail}"
            used[rail] = used.get(rail, 0) + 1
            graph.add_node(nic, kind="nic", node=start + server, rail=rail)
            graph.add_node(leaf, kind="leaf")
            graph.add_edge(nic, leaf, bandwidth=port, latency=fabric.latency / 2)
            graph.add_edge(pcie, nic, bandwidth=node.nic_bandwidth, latency=0.0)
    return _add_upper_levels(graph, cluster, plan, prefix)


def _pcie_of_card(node: Node, card: int) -> int:
    return card * min(node.devices, node.nics) // node.nics


def _add_upper_levels(graph: Graph, cluster: Cluster, plan: SwitchPlan, prefix: str) -> list[str]:
    rate, own = cluster.fabric.link_bandwidth, plan.spines_per_pod
    if not plan.spines:
        return [f"leaf{prefix}0"]
    for leaf in range(plan.leaves):
        pod = leaf // plan.leaves_per_pod
        for spine in range(pod * own, (pod + 1) * own):
            graph.add_node(f"spine{prefix}{spine}", kind="spine")
            graph.add_edge(f"leaf{prefix}{leaf}", f"spine{prefix}{spine}", bandwidth=plan.up / own * rate, latency=0.0)
    if cluster.fabric.topology == "dragonfly+":
        _link_pods(graph, plan, prefix, cluster.fabric.radix // 2 * rate)
    elif plan.cores:
        _add_cores(graph, plan, prefix, cluster.fabric.radix // 2 * rate)
        return [f"core{prefix}{core}" for core in range(plan.cores)]
    return [f"spine{prefix}{spine}" for spine in range(plan.spines)]


def _link_pods(graph: Graph, plan: SwitchPlan, prefix: str, upward: float) -> None:
    """Every two pods are linked, spine by spine; a spine spreads its upper ports over all other pods."""
    for one in range(plan.pods):
        for other in range(one + 1, plan.pods):
            for place in range(plan.spines_per_pod):
                ends = [f"spine{prefix}{pod * plan.spines_per_pod + place}" for pod in (one, other)]
                graph.add_edge(*ends, bandwidth=upward / (plan.pods - 1), latency=0.0)


def _add_cores(graph: Graph, plan: SwitchPlan, prefix: str, upward: float) -> None:
    """Spines of the same place in their pods share a set of cores."""
    own = plan.spines_per_pod
    for spine in range(plan.spines):
        place = spine % own
        first = place * plan.cores // own
        cores = range(first, max((place + 1) * plan.cores // own, first + 1))
        for core in cores:
            graph.add_node(f"core{prefix}{core}", kind="core")
            graph.add_edge(f"spine{prefix}{spine}", f"core{prefix}{core}", bandwidth=upward / len(cores), latency=0.0)
