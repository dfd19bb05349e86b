"""The cluster of a measured row: the node of the catalog with its device, and the network that its text names."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from hwmodels import catalog
from hwmodels.machine import Cluster, Device, Fabric, Node, Pool
from planner.ledger import Ledger

_PORTS = re.compile(r"(\d+)\s*(?:x\s*|\w+ links per node\s*\()[^,;:]*?(\d+)\s*G(?:b|\b)")
_PER_DEVICE = re.compile(r"(\d+)\s*G(?:bps|b/s)?(?: per |/)GPU")
_PER_NODE = re.compile(r"(\d+)\s*Gb(?:ps|/s)? inter")
_INFINIBAND = {"EDR": 100, "HDR": 200, "NDR": 400, "XDR": 800}
"""Gb/s of a port. Source: InfiniBand Trade Association, roadmap."""
_ETHERNET = re.compile(r"RoCE|Ethernet|EFA|Slingshot", re.IGNORECASE)


_EFA = re.compile(r"EFA(?: v(\d))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """What a text says of the network between nodes: ports per node (0: not said) and Gb/s of each."""

    ports: int
    gigabits: int
    ethernet: bool


def measured_cluster(ledger: Ledger) -> Cluster | None:
    """The cluster of the row, or None after noting in `ledger` why there is none."""
    row = ledger.row
    if row.device not in catalog.devices():
        ledger.refuse(f"device {row.device!r} is not in the catalog")
    if row.n_devices is None:
        ledger.refuse("the number of devices is not stated")
    if ledger.reasons or row.n_devices is None:
        return None
    node = _node_with(ledger, catalog.device(row.device))
    per_node = ledger.stated("devices_per_node", node.devices, f"node {node.name}")
    node = _resized(node, min(per_node, row.n_devices))
    if row.n_devices % node.devices:
        ledger.refuse("the devices do not make up whole nodes")
        return None
    node, fabric = _connected(ledger, node)
    pool = Pool(node=node, count=row.n_devices // node.devices)
    return Cluster(name=f"{node.name} x {pool.count}", pools=(pool,), fabric=fabric)


def stated_network(text: str, devices: int) -> Network | None:
    """The network that `text` names for nodes of `devices` devices, or None where it names no speed.

    Understood are "8x ... 200Gb/s", "400 Gb/s per GPU", the generations of InfiniBand, and "400 Gbps inter-node", which
    is the sum over a node.
    """
    ethernet = bool(_ETHERNET.search(text))
    compute = text.partition("Compute:")[2] or text
    if found := _PORTS.search(compute):
        return Network(ports=int(found[1]), gigabits=int(found[2]), ethernet=ethernet)
    if found := _PER_DEVICE.search(text):
        return Network(ports=devices, gigabits=int(found[1]), ethernet=ethernet)
    for generation, gigabits in _INFINIBAND.items():
        if re.search(rf"\b{generation}\b", text):
            return Network(ports=0, gigabits=gigabits, ethernet=False)
    if found := _PER_NODE.search(text):
        return Network(ports=1, gigabits=int(found[1]), ethernet=ethernet)
    return None


def _node_with(ledger: Ledger, device: Device) -> Node:
    """A node of the catalog with this device: first one with as many devices as the row states, then a DGX."""
    everyone = catalog.nodes().values()
    own = [node for node in everyone if node.device.name == device.name]
    if not own:
        near = max(everyone, key=lambda node: _shared_start(node.device.name, device.name))
        ledger.fill("node", near.name, "the node with the most similar device, with its devices exchanged")
        return replace(near, device=device)
    count = ledger.row.devices_per_node
    return max(own, key=lambda node: (node.devices == count, node.name.startswith("dgx")))


def _shared_start(name: str, other: str) -> int:
    """Length of the longest beginning that two names share."""
    return next((i for i, (a, b) in enumerate(zip(name, other, strict=False)) if a != b), min(len(name), len(other)))


def _resized(node: Node, devices: int) -> Node:
    """`node` with this many devices, and as many network cards for each of them."""
    if devices == node.devices:
        return node
    domain = node.domain if node.domain > node.devices else devices
    return replace(node, devices=devices, domain=domain, nics=max(1, round(node.nics * devices / node.devices)))


def _connected(ledger: Ledger, node: Node) -> tuple[Node, Fabric]:
    network = stated_network(ledger.row.fabric, node.devices)
    if network is None:
        return node, catalog.fabric(ledger.fill("fabric", node.default_fabric, f"node {node.name}"))
    kind = "ethernet" if network.ethernet else "infiniband"
    rate = network.gigabits * 1e9 / 8
    like = [fabric for fabric in catalog.fabrics().values() if fabric.kind == kind]
    efa = _EFA.search(ledger.row.fabric)
    wanted = "efa-v1" if efa and efa[1] == "1" else "efa" if efa else ""
    near = min(like, key=lambda fabric: (not _is_called(fabric, wanted), abs(fabric.link_bandwidth - rate)))
    fabric = replace(
        near,
        name=f"{network.gigabits} Gb/s {kind}",
        link_bandwidth=rate,
        in_network_reduction="SHARP" in ledger.row.fabric,
    )
    return replace(node, nics=network.ports or node.nics, nic_bandwidth=rate), fabric


def _is_called(fabric: Fabric, wanted: str) -> bool:
    """Whether `fabric` is of the `wanted` service: "efa-v1", "efa" of a later version, or none ("")."""
    service = "efa-v1" if fabric.name.startswith("efa-v1") else fabric.name.partition("-")[0]
    return service == wanted or (not wanted and not service.startswith("efa"))
