"""What is trained on: devices, nodes, fabrics, and the cluster that they make."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from hwmodels.communicator import PLAIN, Communicator
from hwmodels.errors import Fault, positive_faults, refuse
from hwmodels.units import Bytes, BytesPerSecond, FlopPerSecond, Fraction, Seconds, Watts

if TYPE_CHECKING:
    import networkx as nx

Precision = Literal["bf16", "fp16", "fp8", "fp32"]
Topology = Literal["rail", "fat_tree", "dragonfly+", "flat"]
PRECISIONS: tuple[Precision, ...] = ("bf16", "fp16", "fp8", "fp32")


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One accelerator. Rates are dense; a peak of 0 means that the device has no such arithmetic.

    `matmul_efficiency` is the best measured fraction of peak over matmul shapes, `memory_efficiency` the fraction of
    the memory bandwidth that streaming kernels reach. `estimates` names the fields without a published source.
    """

    name: str
    kind: Literal["gpu", "cpu"] = "gpu"
    memory: Bytes
    memory_bandwidth: BytesPerSecond
    peak_bf16: FlopPerSecond = 0.0
    peak_fp16: FlopPerSecond = 0.0
    peak_fp8: FlopPerSecond = 0.0
    peak_fp32: FlopPerSecond = 0.0
    matmul_efficiency: Fraction
    matmul_efficiency_fp8: Fraction = 0.0
    memory_efficiency: Fraction
    processors: int
    power: Watts
    estimates: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        refuse(
            positive_faults(self, "memory", "memory_bandwidth", "matmul_efficiency", "memory_efficiency", "processors")
        )

    def peak(self, precision: Precision) -> float:
        """Dense peak of the linear layers in FLOP/s; 0 where the device has no such arithmetic."""
        rate: float = getattr(self, f"peak_{precision}")
        return rate


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One server: `devices` accelerators, joined in scale-up domains of `domain` devices, and its network cards.

    `scaleup_bandwidth` is per device and direction, `scaleup_efficiency` the part of it that rings reach,
    `multicast_efficiency` the part that reductions in the switch reach (0: it has none). `scaleup_latency` is per step,
    on top of the steps of the `communicator`. `nic_bandwidth` is per network card and direction. `domain` may exceed
    `devices` where the scale-up network spans a rack. `pcie_bandwidth` is per device and direction, by default that of
    16 lanes of PCIe 5. Source: stas00/ml-engineering, network/README.md.
    """

    name: str
    device: Device
    devices: int
    domain: int
    scaleup: str
    scaleup_bandwidth: BytesPerSecond
    scaleup_latency: Seconds
    scaleup_efficiency: Fraction
    nics: int
    nic_bandwidth: BytesPerSecond
    power: Watts
    default_fabric: str
    communicator: Communicator = PLAIN
    multicast_efficiency: Fraction = 0.0
    pcie_bandwidth: BytesPerSecond = 63e9
    numa_domains: int = 2
    estimates: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        refuse(
            positive_faults(
                self, "devices", "domain", "scaleup_bandwidth", "scaleup_efficiency", "pcie_bandwidth", "numa_domains"
            )
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Fabric:
    """The network between nodes. `link_bandwidth` is per port and direction; `radix` is ports per switch.

    `topology`: a fat tree with a leaf for each card of a node (`rail`) or for whole nodes (`fat_tree`), `dragonfly+`,
    or one switch (`flat`). `latency` is per step, on top of the steps of the communicator; `efficiency` the part of the
    bandwidth that collectives reach. `oversubscription` is the ratio of a leaf switch's downlink to uplink capacity (1
    is non-blocking). `in_network_reduction`: whether switches add up (SHARP).
    """

    name: str
    kind: Literal["infiniband", "ethernet"]
    topology: Topology = "rail"
    link_bandwidth: BytesPerSecond
    latency: Seconds
    efficiency: Fraction
    radix: int
    oversubscription: float = 1.0
    in_network_reduction: bool = False
    estimates: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        refuse(self._faults())

    def _faults(self) -> Iterator[Fault]:
        yield from positive_faults(self, "link_bandwidth", "efficiency", "radix")
        if self.oversubscription < 1:
            yield Fault(path="oversubscription", found=str(self.oversubscription), legal="1 or more", nearest="1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """`count` equal nodes."""

    node: Node
    count: int

    def __post_init__(self) -> None:
        refuse(positive_faults(self, "count"))


def _records(node: Node) -> tuple[Node, Device, Communicator]:
    return node, node.device, node.communicator


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Pools of nodes and the fabric that joins them.

    With a `pool_bandwidth`, each pool has such a fabric of its own, and reaches the others by a link of that many B/s
    in each direction.
    """

    name: str
    pools: tuple[Pool, ...]
    fabric: Fabric
    pool_bandwidth: BytesPerSecond = 0.0

    def __post_init__(self) -> None:
        refuse(self._faults())

    def _faults(self) -> Iterator[Fault]:
        if not self.pools:
            yield Fault(path="pools", found="no nodes", legal="at least one pool of nodes", nearest="dgx-h100 x 1")

    @property
    def node(self) -> Node:
        """The node of the first pool, and of the others where the cluster is `uniform`."""
        return self.pools[0].node

    @property
    def device(self) -> Device:
        """The device of the first pool, and of the others where the cluster is `uniform`."""
        return self.node.device

    @property
    def uniform(self) -> bool:
        """Whether all nodes are equal and share one fabric."""
        return all(pool.node == self.node for pool in self.pools) and (len(self.pools) == 1 or not self.pool_bandwidth)

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return sum(pool.count for pool in self.pools)

    @property
    def devices(self) -> int:
        """Number of devices."""
        return sum(pool.count * pool.node.devices for pool in self.pools)

    @property
    def domain(self) -> int:
        """Devices that share one scale-up network."""
        return min(self.node.domain, self.devices)

    @property
    def card_bandwidth(self) -> float:
        """B/s per device and direction that collectives reach on its network cards.

        nics x min(card, port) / devices x efficiency.
        """
        port = min(self.node.nic_bandwidth, self.fabric.link_bandwidth)
        return self.node.nics * port / self.node.devices * self.fabric.efficiency

    @property
    def scaleout_bandwidth(self) -> float:
        """B/s per device and direction where all devices send to other leaves: the card's / oversubscription."""
        return self.card_bandwidth / self.fabric.oversubscription

    @property
    def estimates(self) -> tuple[str, ...]:
        """Fields of this cluster's records that rest on an estimate, as record.field."""
        records = {(record.name, record.estimates) for p in self.pools for record in _records(p.node)}
        records.add((self.fabric.name, self.fabric.estimates))
        return tuple(sorted(f"{name}.{field}" for name, fields in records for field in fields))

    def graph(self) -> nx.Graph[str]:
        """The topology: GPU, NVSwitch, NIC, leaf and spine nodes, edges with `bandwidth` in B/s and direction."""
        from hwmodels.topology import build_graph

        return build_graph(self)
