"""Seconds of a collective over equal groups of ranks, by a hierarchical latency-bandwidth model.

A group is given by its `size` and its `stride` in ranks. Members that share a scale-up domain exchange over it; the
rest goes through the network cards, of which a group uses as many as it has members in a domain. Other groups of the
same axis run at the same time on the remaining cards, so a device never has more than its own share.
Source: Thakur, Rabenseifner, Gropp, Optimization of Collective Communication Operations in MPICH, 2005 (ring and tree
costs); NVIDIA, nccl-tests PERFORMANCE.md (bus bandwidth).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hwmodels.layout_table import Floats, Ints
from hwmodels.machine import Cluster
from hwmodels.roofline import Numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Columns that describe one group of each layout: ranks, ranks in one domain, domains, bus bandwidth in B/s."""

    size: Ints
    inner: Ints
    outer: Ints
    bandwidth: Floats
    inner_latency: float
    outer_latency: float


def group(cluster: Cluster, size: Ints, stride: Ints) -> Group:
    """The groups of `size` ranks that lie `stride` ranks apart."""
    inner = np.clip(cluster.domain // stride, 1, size)
    outer = -(-size // inner)
    scaleup = cluster.node.scaleup_bandwidth * cluster.node.scaleup_efficiency
    through_cards = np.minimum(scaleup, inner * cluster.scaleout_bandwidth)
    return Group(
        size=size,
        inner=inner,
        outer=outer,
        bandwidth=np.where(outer > 1, through_cards, scaleup),
        inner_latency=cluster.node.scaleup_latency,
        outer_latency=cluster.fabric.latency,
    )


def all_gather_time(over: Group, nbytes: Numbers) -> Floats:
    """Seconds until every rank holds all `nbytes`, of which it held 1/n: (n-1)/n x nbytes / bandwidth + latencies."""
    steps = (over.inner - 1) * over.inner_latency + (over.outer - 1) * over.outer_latency
    return np.where(over.size > 1, _ring_bytes(over, nbytes) / over.bandwidth + steps, 0.0)


def reduce_scatter_time(over: Group, nbytes: Numbers) -> Floats:
    """Seconds until every rank holds the sum of its 1/size of `nbytes`; moves what an all-gather moves."""
    return all_gather_time(over, nbytes)


def all_reduce_time(over: Group, nbytes: Numbers) -> Floats:
    """Seconds until every rank holds the sum of all `nbytes`: twice the bytes of an all-gather.

    Between domains the latency is that of the shallower of a ring and a tree.
    """
    hops = np.minimum(over.outer - 1, np.ceil(np.log2(np.maximum(over.outer, 1))))
    steps = 2 * ((over.inner - 1) * over.inner_latency + hops * over.outer_latency)
    return np.where(over.size > 1, 2 * _ring_bytes(over, nbytes) / over.bandwidth + steps, 0.0)


def send_time(cluster: Cluster, size: Ints, stride: Ints, nbytes: Numbers) -> Floats:
    """Seconds to send `nbytes` to the next of `size` ranks `stride` apart, over the slowest link between neighbours."""
    scaleup = cluster.node.scaleup_bandwidth * cluster.node.scaleup_efficiency
    leaves = size * stride > cluster.domain
    bandwidth = np.where(leaves, min(scaleup, cluster.scaleout_bandwidth), scaleup)
    latency = np.where(leaves, cluster.fabric.latency, cluster.node.scaleup_latency)
    return np.where(size > 1, np.asarray(nbytes, dtype=np.float64) / bandwidth + latency, 0.0)


def _ring_bytes(over: Group, nbytes: Numbers) -> Floats:
    return np.asarray(nbytes, dtype=np.float64) * (over.size - 1) / over.size
