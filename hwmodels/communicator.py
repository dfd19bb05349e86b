"""The communication library of a node: its protocols, what each costs per call and step, and how wide it runs."""

from __future__ import annotations

from dataclasses import dataclass

from hwmodels.units import Bytes, BytesPerSecond, Fraction, Seconds

Curve = tuple[float, ...]
"""Fraction of a bandwidth at `SHORTEST` bytes and each further doubling; 1 where it is empty."""
SHORTEST = 64.0
"""Bytes of the first entry of a curve."""
_LL_TREES: Curve = (
    1, 1, 1, 1, 0.9, 0.8, 0.7, 0.7, 0.7, 0.7, 0.6, 0.5, 0.4, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1, 1, 1, 1,
)  # fmt: skip
_LL128_TREES: Curve = (
    1, 1, 1, 1, 1, 0.9, 0.8, 0.8, 0.8, 0.7, 0.6, 0.6, 0.6, 0.6, 0.6, 0.6, 0.8, 0.9, 0.9, 0.9, 0.9, 1, 1, 1,
)  # fmt: skip
_SIMPLE_TREES: Curve = (
    0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.8, 0.7, 0.6, 0.6, 0.5, 0.5, 0.5, 0.5, 0.6, 0.7, 0.8, 0.7, 0.7, 0.8, 0.9, 0.9,
    0.9, 1,
)  # fmt: skip
"""What trees reach of their bandwidth by message size, as the library corrects its own model; all of it from 1 GiB.
Source: NVIDIA, nccl src/graph/tuning.cc (treeCorrectionFactor)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Communicator:
    """Constants of a library in the manner of NCCL, with the protocols LL, LL128 and Simple.

    `*_base` is paid once per call, `*_inner` per step of a ring inside a scale-up domain, `*_outer` per step between
    domains, each on top of the latency of the links. `ll_share`, `ll128_share` are fractions of the bus bandwidth that
    carry data; 0 where the library has no such protocol (without LL, its trees need no correction). `ll_inner_cap`,
    `ll_outer_cap` bound the bus bandwidth of LL. `tree_share` is the fraction of the bandwidth that trees reach.
    `multicast_inner` is paid per member of a domain by reductions in the switch. `fill` is the time that a network step
    takes to fill its pipeline with a long message: a message of `fill_size` pays half of it. `pxn`: whether data
    for another rail first moves inside the node.
    """

    name: str
    ll_base: Seconds = 0.0
    ll_inner: Seconds = 0.0
    ll_outer: Seconds = 0.0
    ll_share: Fraction = 0.0
    ll_inner_cap: BytesPerSecond = 0.0
    ll_outer_cap: BytesPerSecond = 0.0
    ll128_base: Seconds = 0.0
    ll128_inner: Seconds = 0.0
    ll128_outer: Seconds = 0.0
    ll128_share: Fraction = 0.0
    simple_base: Seconds = 0.0
    simple_inner: Seconds = 0.0
    simple_outer: Seconds = 0.0
    tree_share: Fraction = 1.0
    multicast_base: Seconds = 0.0
    multicast_inner: Seconds = 0.0
    fill: Seconds = 0.0
    fill_size: Bytes = 1.0
    pxn: bool = True
    estimates: tuple[str, ...] = ()

    def protocols(self) -> tuple[Protocol, ...]:
        """The protocols that the library has, Simple last."""
        no_cap = float("inf")
        trees = (_LL_TREES, _LL128_TREES, _SIMPLE_TREES) if self.ll_share else ((), (), ())
        everyone = (
            Protocol(
                base=self.ll_base, inner=self.ll_inner, outer=self.ll_outer, share=self.ll_share,
                inner_cap=self.ll_inner_cap, outer_cap=self.ll_outer_cap, fill=0.0, trees=trees[0],
            ),
            Protocol(
                base=self.ll128_base, inner=self.ll128_inner, outer=self.ll128_outer, share=self.ll128_share,
                inner_cap=no_cap, outer_cap=no_cap, fill=0.0, trees=trees[1],
            ),
            Protocol(
                base=self.simple_base, inner=self.simple_inner, outer=self.simple_outer, share=1.0,
                inner_cap=no_cap, outer_cap=no_cap, fill=self.fill, trees=trees[2],
            ),
        )  # fmt: skip
        return tuple(protocol for protocol in everyone if protocol.share)


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """One protocol: seconds per call and per step, share of the bus bandwidth, and caps of it in B/s.

    `trees` is what trees reach of their bandwidth by message size.
    """

    base: float
    inner: float
    outer: float
    share: float
    inner_cap: float
    outer_cap: float
    fill: float
    trees: Curve


PLAIN = Communicator(name="plain")
"""A library that costs nothing beside its links."""
