"""Switches, cables and transceivers that a fabric takes: counted from radix and oversubscription, without a graph."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from hwmodels.machine import Cluster, Fabric


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchPlan:
    """How many switches of each level, and how their ports are used.

    A leaf has `down` ports to network cards and `up` to spines. Leaves and spines are grouped in `pods`; each leaf of a
    pod is linked to each of its spines. Cores, or in a dragonfly the other pods, take the upper ports of spines.
    `rails` is the number of leaves that the cards of one node are spread over.
    """

    rails: int
    down: int
    up: int
    leaves: int
    spines: int
    cores: int
    pods: int

    @property
    def switches(self) -> int:
        """All switches."""
        return self.leaves + self.spines + self.cores

    @property
    def spines_per_pod(self) -> int:
        """Spines that each leaf is linked to."""
        return self.spines // self.pods

    @property
    def leaves_per_pod(self) -> int:
        """Leaves of a full pod."""
        return ceil(self.leaves / self.pods)


@dataclass(frozen=True, slots=True, kw_only=True)
class BillOfMaterials:
    """What is bought for the network: switches, cables of each tier, and transceivers (two for each cable)."""

    switches: int
    card_cables: int
    leaf_cables: int
    core_cables: int
    transceivers: int


def switch_plan(cluster: Cluster) -> SwitchPlan:
    """The smallest fabric of the cluster's topology that connects every card at the fabric's oversubscription.

    One switch where it has enough ports. Leaves split their radix into down = radix x o / (o + 1) and up = radix - down
    ports. Two levels reach down x radix cards; three levels, in pods of radix / 2 leaves, as many as there are.
    Source: Al-Fares et al. 2008, A Scalable, Commodity Data Center Network Architecture (fat trees); Shpiner et al.
    2017, Dragonfly+; NVIDIA DGX SuperPOD reference architecture (rail-optimized leaves, switch counts).
    """
    fabric = cluster.fabric
    cards = sum(pool.count * pool.node.nics for pool in cluster.pools)
    if fabric.topology == "flat" or cards <= fabric.radix:
        return SwitchPlan(rails=1, down=max(fabric.radix, cards), up=0, leaves=1, spines=0, cores=0, pods=1)
    down = int(fabric.radix * fabric.oversubscription / (fabric.oversubscription + 1))
    up = fabric.radix - down
    rails = _rails(cluster)
    leaves = rails * ceil(sum(_cards_per_rail(pool.count, pool.node.nics, rails) for pool in cluster.pools) / down)
    if fabric.topology == "dragonfly+":
        return _dragonfly(fabric, rails, leaves)
    if leaves <= fabric.radix:
        spines = ceil(leaves * up / fabric.radix)
        return SwitchPlan(rails=rails, down=down, up=up, leaves=leaves, spines=spines, cores=0, pods=1)
    half = fabric.radix // 2
    pods = ceil(leaves / half)
    return SwitchPlan(
        rails=rails, down=down, up=up, leaves=leaves, spines=pods * up, cores=ceil(pods * up * half / fabric.radix),
        pods=pods,
    )  # fmt: skip


def bill_of_materials(cluster: Cluster) -> BillOfMaterials:
    """Switches and cables of the cluster's network."""
    plan = switch_plan(cluster)
    cards = sum(pool.count * pool.node.nics for pool in cluster.pools)
    leaf_cables = plan.leaves * plan.up
    core_cables = plan.cores * cluster.fabric.radix or _between_pods(cluster.fabric, plan)
    return BillOfMaterials(
        switches=plan.switches,
        card_cables=cards,
        leaf_cables=leaf_cables,
        core_cables=core_cables,
        transceivers=2 * (cards + leaf_cables + core_cables),
    )


def _between_pods(fabric: Fabric, plan: SwitchPlan) -> int:
    return plan.spines * (fabric.radix // 2) // 2 if fabric.topology == "dragonfly+" and plan.pods > 1 else 0


def _rails(cluster: Cluster) -> int:
    """One leaf for each card of a node where the fabric is rail-optimized and every node has as many cards."""
    counts = {pool.node.nics for pool in cluster.pools}
    return counts.pop() if cluster.fabric.topology == "rail" and len(counts) == 1 else 1


def _cards_per_rail(nodes: int, nics: int, rails: int) -> int:
    return nodes * (nics // rails)


def _dragonfly(fabric: Fabric, rails: int, leaves: int) -> SwitchPlan:
    """Pods of radix / 2 leaves and as many spines, half of whose ports go to other pods."""
    half = fabric.radix // 2
    pods = ceil(leaves / half)
    return SwitchPlan(rails=rails, down=half, up=half, leaves=leaves, spines=pods * half, cores=0, pods=pods)
