"""What groups keep of the rate of their network cards where leaves have fewer uplinks than downlinks.

All groups of an axis run at the same time, so that the uplinks of a leaf carry what all of its nodes send to other
leaves. Groups are taken to begin with a leaf or to lie inside one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hwmodels.layout_table import Floats
from hwmodels.machine import Cluster
from hwmodels.roofline import Numbers
from hwmodels.switches import switch_plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaves:
    """`nodes` nodes share a leaf, or as many leaves as there are `rails`; `ratio` is B/s down to B/s up.

    `alone`: all nodes of the cluster do.
    """

    nodes: int
    rails: int
    ratio: float
    alone: bool


def leaves_of(cluster: Cluster) -> Leaves | None:
    """The leaves of the cluster's fabric, or None where they slow nothing: one switch, or as much up as down."""
    node, fabric = cluster.node, cluster.fabric
    if fabric.oversubscription == 1 or cluster.nodes == 1:
        return None
    plan = switch_plan(cluster)
    if not plan.spines:
        return None
    nodes = max(plan.down * plan.rails // node.nics, 1)
    port = min(node.nic_bandwidth, fabric.link_bandwidth)
    ratio = nodes * node.nics / plan.rails * port / (plan.up * fabric.link_bandwidth)
    return Leaves(nodes=nodes, rails=plan.rails, ratio=ratio, alone=cluster.nodes <= nodes)


def hop_share(leaves: Leaves | None, apart: Numbers, outer: Numbers) -> Floats:
    """Share of the cards' rate for hops between neighbours `apart` nodes from each other, in groups of `outer`.

    A ring leaves each leaf once: of its nodes, min(apart, nodes) send to another leaf.
    """
    if leaves is None or leaves.alone:
        return np.ones(())
    climbing = np.where(apart * outer > leaves.nodes, np.minimum(apart, leaves.nodes) / leaves.nodes, 0.0)
    return 1 / np.maximum(climbing * leaves.ratio, 1.0)


def spread_share(leaves: Leaves | None, apart: Numbers, inner: Numbers, outer: Numbers, pxn: bool) -> Floats:
    """Share of the cards' rate where every member sends as much to each member of the `outer` domains of its group.

    With `pxn`, data moves inside the node to the device on the receiver's rail, so that it needs no spine. Without it,
    only 1 of the `inner` members of a node is on the sender's rail.
    Source: NVIDIA, Doubling all2all Performance with NCCL 2.12, 2022 (PXN).
    """
    if leaves is None:
        return np.ones(())
    near = np.where(apart * outer > leaves.nodes, np.clip(leaves.nodes / apart, 1, outer), outer)
    far = np.where(leaves.alone, 0.0, (outer - near) / np.maximum(outer - 1, 1))
    if leaves.rails > 1 and not pxn:
        far = 1 - (1 - far) / inner
    return 1 / np.maximum(far * leaves.ratio, 1.0)
