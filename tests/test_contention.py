"""Traffic that shares links: fair rates by hand, and the closed form of collectives against routed flows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hwmodels.catalog import cluster_of
from hwmodels.collectives import RING_CARDS, all_reduce_time, group, reduce_scatter_time
from hwmodels.contention import capacities_of, fair_rates, finish_times, ring_usage, route
from hwmodels.layout import Layout
from tests.worlds import round_cluster

A, B, C = ("x", "a"), ("x", "b"), ("x", "c")


def test_progressive_filling_by_hand():
    # Link A of 10 carries flows 0 and 1, link B of 4 flows 1 and 2: B fills first, at 2 each; flow 0 takes what A has.
    usages = [{A: 1.0}, {A: 1.0, B: 1.0}, {B: 1.0}]
    assert fair_rates(usages, {A: 10.0, B: 4.0}) == pytest.approx([8, 2, 2])
    # A transfer that puts only half of its rate on a link may run twice as fast.
    assert fair_rates([{A: 0.5}], {A: 10.0}) == pytest.approx([20])
    assert fair_rates([], {}).shape == (0,)


def test_transfers_that_meet_on_a_card_slow_each_other_only_while_both_run():
    # 100 and 50 bytes at 10 B/s: together 5 B/s each until the second ends at 10 s; the first then ends at 15 s.
    both = finish_times([{A: 1.0}, {A: 1.0}], {A: 10.0}, [100, 50], [0, 0])
    assert both == pytest.approx([15, 10])
    # Staggered, neither waits for the other, and the last ends no later.
    staggered = finish_times([{A: 1.0}, {A: 1.0}], {A: 10.0}, [100, 50], [0, 10])
    assert staggered == pytest.approx([10, 15])
    assert finish_times([{A: 1.0}], {A: 10.0}, [0], [3]) == pytest.approx([3])


flows = st.lists(
    st.dictionaries(st.sampled_from([A, B, C]), st.floats(0.1, 2), min_size=1), min_size=1, max_size=6
)  # fmt: skip
rates = st.fixed_dictionaries({link: st.floats(1, 100) for link in (A, B, C)})


@given(usages=flows, capacities=rates)
def test_no_link_is_overfull_and_every_transfer_has_a_full_link(usages, capacities):
    found = fair_rates(usages, capacities)
    load = {link: sum(u.get(link, 0.0) * r for u, r in zip(usages, found, strict=True)) for link in capacities}
    assert all(load[link] <= capacities[link] * (1 + 1e-6) for link in capacities)
    for usage, rate in zip(usages, found, strict=True):
        assert rate > 0
        assert any(load[link] >= capacities[link] * (1 - 1e-6) for link in usage)


def test_routes_stay_on_their_rail():
    graph = cluster_of("dgx-h100 x 64").graph()
    inside = route(graph, "gpu0", "gpu5")
    assert set(inside) == {("gpu0", "nvswitch0"), ("nvswitch0", "gpu5")}
    rail = route(graph, "gpu3", "gpu11")
    assert [link[1] for link in rail] == ["pcie0.3", "nic0.3", "leaf3", "nic1.3", "pcie1.3", "gpu11"]
    # To another rail, the data first moves to the device on that rail, or moves there at the end, over NVLink.
    crossing = route(graph, "gpu3", "gpu12")
    assert not any("spine" in link[0] for link in crossing)
    # Between leaves, all spines carry an equal part.
    far = route(graph, "gpu0", "gpu511")
    spines = {link[1]: part for link, part in far.items() if link[1].startswith("spine")}
    assert len(spines) == 8 and sum(spines.values()) == pytest.approx(1)


def ring_rates(cluster, layout, axis):
    size, stride = layout.degree(axis), layout.stride(axis)
    graph = cluster.graph()
    inner = int(np.clip(cluster.domain // stride, 1, size))
    usages = [ring_usage(graph, ranks, inner) for ranks in layout.groups(axis)]
    return fair_rates(usages, capacities_of(graph))


@settings(deadline=None, max_examples=25)
@given(
    nodes=st.sampled_from([1, 2, 4, 6]),
    tp=st.sampled_from([1, 2, 4, 8]),
    link=st.floats(1e9, 1e11),
    axis=st.sampled_from(["tp", "dp", "pp"]),
    pp=st.sampled_from([1, 2]),
)
def test_closed_form_of_rings_equals_routed_flows(nodes, tp, link, axis, pp):
    cluster = round_cluster(nodes=nodes, link_bandwidth=link)
    cluster = replace(cluster, pools=(replace(cluster.pools[0], node=replace(
        cluster.node, nic_bandwidth=link, pcie_bandwidth=1e12)),))  # fmt: skip
    assume(8 * nodes % (tp * pp) == 0)
    layout = Layout(tensor_parallel=tp, pipeline_parallel=pp, data_parallel=8 * nodes // (tp * pp))
    size, stride = np.array([layout.degree(axis)]), np.array([layout.stride(axis)])
    assume(size[0] > 1)
    over = group(cluster, size, stride)
    # An odd ring of pairs cannot leave each domain by another card than it came in by.
    assume(over.inner[0] != 2 or over.outer[0] % 2 == 0 or over.outer[0] == 1)
    assert over.inner[0] <= RING_CARDS
    found = ring_rates(cluster, layout, axis)
    assert found == pytest.approx(np.full(len(found), over.ring[0]), rel=1e-6)


def thin_cluster(nodes, topology, oversubscription):
    """Nodes of two devices and cards, leaves of 8 ports, links inside nodes that never bind."""
    cluster = round_cluster(nodes=nodes, devices=2)
    node = replace(cluster.node, nic_bandwidth=25e9, pcie_bandwidth=1e12)
    fabric = replace(cluster.fabric, radix=8, link_bandwidth=25e9, topology=topology, oversubscription=oversubscription)
    return replace(cluster, pools=(replace(cluster.pools[0], node=node),), fabric=fabric)


@settings(deadline=None, max_examples=25)
@given(
    leaves=st.sampled_from([2, 4]),
    topology=st.sampled_from(["rail", "fat_tree"]),
    oversubscription=st.sampled_from([1.0, 3.0]),
    tp=st.sampled_from([1, 2]),
    pp=st.sampled_from([1, 2, 3, 4]),
    axis=st.sampled_from(["dp", "pp"]),
)
def test_closed_form_of_thin_uplinks_equals_routed_flows(leaves, topology, oversubscription, tp, pp, axis):
    down = 6 if oversubscription == 3 else 4
    nodes = leaves * (down if topology == "rail" else down // 2)
    cluster = thin_cluster(nodes, topology, oversubscription)
    assume(2 * nodes % (tp * pp) == 0)
    layout = Layout(tensor_parallel=tp, pipeline_parallel=pp, data_parallel=2 * nodes // (tp * pp))
    over = group(cluster, np.array([layout.degree(axis)]), np.array([layout.stride(axis)]))
    assume(over.size[0] > 1 and over.inner[0] == 1)
    leaf, span = (down if topology == "rail" else down // 2), layout.stride(axis) * over.size[0] // 2
    # Groups begin with a leaf or lie inside one, and their members are a whole number of them to a leaf.
    assume(layout.stride(axis) >= 2 and (leaf % span == 0 or span % leaf == 0))
    assume(leaf * 2 % layout.stride(axis) == 0 or layout.stride(axis) // 2 % leaf == 0)
    found = ring_rates(cluster, layout, axis)
    assert found.min() == pytest.approx(over.ring[0], rel=1e-6)


def test_rings_climb_once_from_a_leaf_and_hops_between_leaves_always():
    # 3 down for each up, 6 nodes to a leaf: rings over neighbouring nodes climb with 1 of 6 cards, so nothing binds.
    thin = thin_cluster(12, "rail", 3.0)
    over = group(thin, np.array([12, 2]), np.array([2, 12]))
    assert over.cards == pytest.approx([25e9, 25e9 / 3])
    # A member sends to all others: 6 of 11 lie beyond the leaf.
    assert over.spread == pytest.approx([25e9 / (3 * 6 / 11), 25e9 / 3])
    assert group(thin_cluster(12, "rail", 1.0), np.array([2]), np.array([12])).cards == 25e9


def test_without_pxn_messages_to_other_rails_take_the_spines():
    thin = thin_cluster(6, "rail", 3.0)
    plain = replace(thin.node.communicator, pxn=False)
    other = replace(thin, pools=(replace(thin.pools[0], node=replace(thin.node, communicator=plain)),))
    # All nodes share their leaves, but half of the messages are for the other rail: 25 / (3 / 2) GB/s a card.
    assert group(thin, np.array([12]), np.array([1])).spread == 2 * 25e9
    assert group(other, np.array([12]), np.array([1])).spread == pytest.approx(2 * 25e9 / 1.5)
    usages = [route(other.graph(), f"gpu{2 * a}", f"gpu{2 * b}") for a, b in ((0, 1), (1, 0))]
    assert not any("spine" in end for usage in usages for link in usage for end in link)


def test_axis_order_decides_which_traffic_leaves_the_node():
    cluster = cluster_of("dgx-h100 x 2")
    # The same degrees: data parallel inside the nodes, or across them.
    inside = ring_rates(cluster, Layout(pipeline_parallel=2, data_parallel=8), "dp").min()
    across = ring_rates(cluster, Layout(data_parallel=2, tensor_parallel=8), "dp").min()
    assert inside > 8 * across


def test_gradient_reduction_and_pipeline_sends_share_the_cards():
    cluster = round_cluster(nodes=4, devices=2)
    graph = cluster.graph()
    layout = Layout(pipeline_parallel=2, data_parallel=4)
    rings = [ring_usage(graph, ranks, 2) for ranks in layout.groups("dp")]
    sends = [route(graph, f"gpu{a}", f"gpu{b}") for a, b in layout.groups("pp")]
    alone = fair_rates(rings, capacities_of(graph))
    together = fair_rates([*rings, *sends], capacities_of(graph))
    # Each card of 25 GB/s carries half of a ring and one send: at equal rates, 25 / 1.5 GB/s.
    assert alone == pytest.approx(np.full(2, 50e9))
    assert together == pytest.approx(np.full(6, 25e9 / 1.5))


def test_a_hierarchical_reduction_of_two_buckets_staggers_over_two_networks():
    cluster = round_cluster(nodes=4, devices=2)
    graph = cluster.graph()
    room = capacities_of(graph)
    inside = [ring_usage(graph, ranks, 2) for ranks in Layout(tensor_parallel=2, data_parallel=4).groups("tp")]
    across = [ring_usage(graph, ranks, 1) for ranks in Layout(tensor_parallel=2, data_parallel=4).groups("dp")]
    nbytes = 8e9
    # In each node a reduce-scatter leaves half of the bucket to a device, then 3/4 of that passes every card twice.
    scatter, reduce = nbytes / 2, 2 * 3 / 4 * nbytes / 2
    first = finish_times(inside, room, [scatter] * 4, [0.0] * 4).max()
    assert first == pytest.approx(
        reduce_scatter_time(group(cluster, np.array([2]), np.array([1])), nbytes)[0], rel=1e-4
    )
    second = finish_times(across, room, [reduce] * 2, [first] * 2).max()
    slow = all_reduce_time(group(cluster, np.array([4]), np.array([2])), nbytes / 2)[0]
    assert second - first == pytest.approx(slow, rel=1e-3)
    # The next bucket is scattered in the nodes while this one crosses the network: neither waits for the other.
    starts = [first] * 2 + [first] * 4
    both = finish_times([*across, *inside], room, [reduce] * 2 + [scatter] * 4, starts)
    assert both[:2] == pytest.approx([second] * 2) and both[2:] == pytest.approx([2 * first] * 4)
    # All at once over flat rings, both buckets share the cards, and take longer than staggered ones.
    flat = ring_usage(graph, range(8), 2)
    ends = finish_times([flat, flat], room, [2 * 7 / 8 * nbytes] * 2, [0.0, 0.0])
    assert ends.max() == pytest.approx(2 * 2 * 7 / 8 * nbytes / 50e9)
    assert ends.max() > 2 * (second - first)


def test_a_slow_link_holds_back_the_rings_that_cross_it_and_no_other():
    cluster = round_cluster(nodes=2)
    graph = cluster.graph()
    rings = [ring_usage(graph, ranks, 1) for ranks in Layout(data_parallel=2, tensor_parallel=8).groups("dp")]
    graph["nic1.3"][next(n for n in graph["nic1.3"] if n.startswith("leaf"))]["bandwidth"] /= 5
    found = fair_rates(rings, capacities_of(graph))
    assert found[3] == pytest.approx(5e9)
    assert np.delete(found, 3) == pytest.approx(np.full(7, 25e9))


def test_oversubscription_binds_where_traffic_crosses_spines():
    cluster = cluster_of("dgx-h100 x 64")
    thin = replace(cluster, fabric=replace(cluster.fabric, oversubscription=4.0, topology="fat_tree"))
    graph = thin.graph()
    # Every device of the first leaf's nodes sends to a node of another leaf.
    sends = [route(graph, f"gpu{rank}", f"gpu{rank + 256}") for rank in range(0, 48)]
    assert fair_rates(sends, capacities_of(graph)).min() == pytest.approx(50e9 / 4, rel=0.1)


def test_a_hundred_thousand_devices_are_priced_without_a_graph():
    cluster = cluster_of("dgx-h100 x 12500")
    over = group(cluster, np.array([100_000, 12_500]), np.array([1, 8]))
    # 99,999 of 100,000 parts twice over 8 cards of 47 GB/s a node, or over one of them.
    assert over.ring == pytest.approx([8 * 47e9, 47e9])
    # The same bandwidth as two nodes have, whose routed flows agree with the closed form.
    assert over.ring[0] == group(cluster_of("dgx-h100 x 2"), np.array([16]), np.array([1])).ring[0]
