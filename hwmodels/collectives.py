"""Seconds of a collective over equal groups of ranks, as the communication library would choose to run it.

A group is given by its `size` and its `stride` in ranks. Members that share a scale-up domain exchange over it; the
rest goes through the network cards, of which a group uses as many as it has members in a domain. Other groups of the
same axis run at the same time on the remaining cards, so a device never has more than its own share.

Every algorithm is priced with every protocol as latency + bytes / bandwidth, and the fastest is taken, as NCCL does.
Source: NVIDIA, nccl src/graph/tuning.cc (latencies, bandwidths, choice); nccl-tests PERFORMANCE.md (bus bandwidth);
Thakur, Rabenseifner, Gropp, Optimization of Collective Communication Operations in MPICH, 2005 (rings, trees).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce

import numpy as np

from hwmodels.communicator import SHORTEST, Communicator, Curve, Protocol
from hwmodels.layout_table import Floats, Ints
from hwmodels.machine import Cluster
from hwmodels.roofline import Numbers
from hwmodels.uplinks import hop_share, leaves_of, spread_share

RING_CARDS = 8
"""Devices of one domain whose cards rings use at most: rings are limited to 16 channels between domains, two to a card
(estimate; 1440 GB200 in 20 domains reach 406 GB/s, as 8 cards of 400 Gb/s do)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Columns that describe one group of each layout, and the links that it uses.

    `size` ranks, `inner` of them in one domain, `outer` domains. In B/s: `links` is what a member's links inside the
    domain reach, `cards` what the network cards that the group uses in one domain reach between neighbours, `spread`
    what they reach towards all domains, `ring` the bus bandwidth of rings, `reduction` the rate at which one domain
    reduces and spreads a message.
    """

    size: Ints
    inner: Ints
    outer: Ints
    links: float
    ring: Floats
    cards: Floats
    spread: Floats
    reduction: Floats
    multicast: bool
    adds_in_network: bool
    inner_latency: float
    outer_latency: float
    communicator: Communicator


def group(cluster: Cluster, size: Ints, stride: Ints) -> Group:
    """The groups of `size` ranks that lie `stride` ranks apart."""
    node, library = cluster.node, cluster.node.communicator
    inner = np.clip(cluster.domain // stride, 1, size)
    outer = -(-size // inner)
    rings = node.scaleup_bandwidth * node.scaleup_efficiency
    leaves, apart = leaves_of(cluster), inner * stride / node.devices
    whole = inner.astype(np.float64) * cluster.card_bandwidth
    cards = whole * hop_share(leaves, apart, outer)
    ring_cards = cards * (np.minimum(inner, RING_CARDS) / inner)
    if node.multicast_efficiency:
        # Every member sends its S and receives its share, then sends that and receives S: (1 + 1/n) S each way.
        reduction = node.scaleup_bandwidth * node.multicast_efficiency * inner / (inner + 1)
    else:
        # A chain of members passes S up and down.
        reduction = np.where(inner > 1, rings * library.tree_share / 2, np.inf)
    return Group(
        size=size,
        inner=inner,
        outer=outer,
        links=rings,
        # Between domains, one of the `inner` hops of a ring's round is over a card instead of the links.
        ring=np.where(outer > 1, np.minimum(rings * inner / np.maximum(inner - 1, 1), ring_cards), rings),
        cards=cards,
        spread=whole * spread_share(leaves, apart, inner, outer, library.pxn),
        reduction=reduction,
        multicast=node.multicast_efficiency > 0,
        adds_in_network=cluster.fabric.in_network_reduction,
        inner_latency=node.scaleup_latency,
        outer_latency=cluster.fabric.latency,
        communicator=library,
    )


def all_gather_time(over: Group, nbytes: Numbers) -> Floats:
    """Seconds until every rank holds all `nbytes`, of which it held 1/n; by a ring: (n-1)/n x nbytes / bandwidth."""
    inner, outer = over.size - over.outer, over.outer - 1
    return _fastest(over, (_ring(over, each, nbytes, inner, outer, 1) for each in over.communicator.protocols()))


def reduce_scatter_time(over: Group, nbytes: Numbers) -> Floats:
    """Seconds until every rank holds the sum of its 1/size of `nbytes`; moves what an all-gather moves."""
    return all_gather_time(over, nbytes)


def all_reduce_time(over: Group, nbytes: Numbers) -> Floats:
    """Seconds until every rank holds the sum of all `nbytes`: by a ring, with twice an all-gather's bytes, or a tree.

    Inside a domain, switches that add up do so at `reduction` B/s.
    """
    return _fastest(over, _all_reduces(over, nbytes))


def _all_reduces(over: Group, nbytes: Numbers) -> Iterator[Floats]:
    inner, outer = 2 * (over.size - over.outer), 2 * (over.outer - 1)
    for protocol in over.communicator.protocols():
        yield _ring(over, protocol, nbytes, inner, outer, 2)
        yield _tree(over, protocol, nbytes)
    if over.multicast:
        yield _multicast(over, over.communicator.protocols()[-1], nbytes)


def broadcast_time(over: Group, nbytes: Numbers) -> Floats:
    """Seconds until every rank holds the `nbytes` of one rank, passed along a ring in small pieces."""
    inner, outer = over.size - over.outer, over.outer - 1
    factor = over.size / np.maximum(over.size - 1, 1)
    whole = (_ring(over, each, nbytes * factor, inner, outer, 1) for each in over.communicator.protocols())
    return _fastest(over, whole)


def reduce_time(over: Group, nbytes: Numbers) -> Floats:
    """Seconds until one rank holds the sum of all `nbytes`; moves what a broadcast moves, the other way."""
    return broadcast_time(over, nbytes)


def exchange_time(over: Group, nbytes: Numbers) -> Floats:
    """Seconds until every rank has sent `nbytes` to the next rank, and received as much from the one before.

    Where the group leaves a domain, the last member of each sends over its own card. Source: nccl-tests, sendrecv.
    """
    protocol, leaves = over.communicator.protocols()[-1], over.outer > 1
    bandwidth = np.where(leaves, np.minimum(over.links, over.cards / over.inner), over.links)
    inside, outside = protocol.inner + over.inner_latency, protocol.outer + over.outer_latency
    seconds = protocol.base + np.where(leaves, outside, inside) + np.asarray(nbytes, dtype=np.float64) / bandwidth
    return np.where(over.size > 1, seconds, 0.0)


def all_to_all_time(over: Group, nbytes: Numbers) -> Floats:
    """Seconds until every rank has sent 1/n of its `nbytes` to each of the n ranks.

    The part for the own domain and the part for other domains go at the same time; on the network each card takes the
    messages of its own rail where the library does PXN.
    """
    share = np.asarray(nbytes, dtype=np.float64) / over.size
    inside = share * (over.inner - 1) / over.links
    outside = share * (over.size - over.inner) / (over.spread / over.inner)
    protocol = over.communicator.protocols()[-1]
    steps = (over.inner - 1) * (protocol.inner + over.inner_latency)
    steps = steps + np.where(over.outer > 1, protocol.outer + over.outer_latency, 0.0)
    return np.where(over.size > 1, np.maximum(inside, outside) + protocol.base + steps, 0.0)


def send_time(cluster: Cluster, size: Ints, stride: Ints, nbytes: Numbers) -> Floats:
    """Seconds to send `nbytes` to the next of `size` ranks `stride` apart, over the slowest link between neighbours."""
    node, protocol = cluster.node, cluster.node.communicator.protocols()[-1]
    scaleup = node.scaleup_bandwidth * node.scaleup_efficiency
    leaves = size * stride > cluster.domain
    cards = cluster.card_bandwidth * hop_share(leaves_of(cluster), np.maximum(stride / node.devices, 1), size)
    bandwidth = np.where(leaves, np.minimum(scaleup, cards), scaleup)
    inside, outside = protocol.inner + node.scaleup_latency, protocol.outer + cluster.fabric.latency
    seconds = np.asarray(nbytes, dtype=np.float64) / bandwidth + protocol.base + np.where(leaves, outside, inside)
    return np.where(size > 1, seconds, 0.0)


def _fastest(over: Group, choices: Iterator[Floats]) -> Floats:
    return np.where(over.size > 1, reduce(np.minimum, choices), 0.0)


def _ring(over: Group, protocol: Protocol, nbytes: Numbers, inner: Ints, outer: Ints, passes: int) -> Floats:
    """`passes` x (n-1)/n x nbytes over the ring, and the latencies of its steps."""
    cap = np.where(over.outer > 1, protocol.outer_cap, protocol.inner_cap)
    bandwidth = np.minimum(over.ring * protocol.share, cap)
    moved = passes * np.asarray(nbytes, dtype=np.float64) * (over.size - 1) / over.size
    steps = inner * (protocol.inner + over.inner_latency) + outer * (protocol.outer + over.outer_latency)
    return protocol.base + steps + _fill(over, protocol, nbytes) + moved / bandwidth


def _tree(over: Group, protocol: Protocol, nbytes: Numbers) -> Floats:
    """A chain in each domain, two trees over the domains, each for half of the message."""
    rate = np.minimum(over.reduction * protocol.share, _through_cards(over) * protocol.share)
    if over.multicast:
        chain = over.ring * over.communicator.tree_share / 2
        rate = np.where(over.inner > 1, np.minimum(chain, rate), rate)
    rate = np.minimum(rate, np.where(over.outer > 1, protocol.outer_cap, protocol.inner_cap) / 2)
    steps = 2 * (over.inner - 1) * (protocol.inner + over.inner_latency) + _climb(over, protocol)
    size = np.asarray(nbytes, dtype=np.float64)
    return protocol.base + steps + _fill(over, protocol, nbytes) + size / (rate * _at(protocol.trees, size))


def _at(curve: Curve, size: Floats) -> Floats:
    """The fraction of the bandwidth at a message of `size` bytes."""
    if not curve:
        return np.ones(())
    return np.interp(np.log2(np.maximum(size, SHORTEST) / SHORTEST), np.arange(len(curve)), curve)


def _multicast(over: Group, protocol: Protocol, nbytes: Numbers) -> Floats:
    """Reductions in the switch of each domain, trees over the domains; a node of a tree has two others below it.

    Where switches of the network add up, each domain sends to them and receives from them only.
    """
    below = 1 if over.adds_in_network else np.where(over.outer > 2, 2, 1)
    inside = np.where(over.inner > 1, over.reduction, np.inf) / below
    rate = np.minimum(inside, _through_cards(over))
    library = over.communicator
    steps = library.multicast_base + library.multicast_inner * over.inner + _climb(over, protocol)
    return steps + _fill(over, protocol, nbytes) + np.asarray(nbytes, dtype=np.float64) / rate


def _through_cards(over: Group) -> Floats:
    """B/s of S between domains: with two, S goes once each way; with more, a tree's node has twice that."""
    if over.adds_in_network:
        return np.where(over.outer > 1, over.cards, np.inf)
    return np.where(over.outer > 2, over.cards / 2, np.where(over.outer > 1, over.cards, np.inf))


def _climb(over: Group, protocol: Protocol) -> Floats:
    """Seconds of the steps up and down the trees over the domains."""
    return 2 * np.ceil(np.log2(over.outer)) * (protocol.outer + over.outer_latency)


def _fill(over: Group, protocol: Protocol, nbytes: Numbers) -> Floats:
    """Seconds until a long message fills the pipeline of the network steps; a tree's depth up and down."""
    if not protocol.fill:
        return np.zeros(())
    size = np.asarray(nbytes, dtype=np.float64)
    return 2 * np.ceil(np.log2(over.outer)) * protocol.fill * size / (size + over.communicator.fill_size)
