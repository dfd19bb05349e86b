"""`ibnetdiscover`: switches, the cards on their ports, and the rates of the links.

Source: rdma-core, ibnetdiscover(8), section "Topology file format".
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field

from hwmodels.readers.damage import damaged
from hwmodels.readers.findings import FabricFinding, Findings, PoolFinding

NAME = "ibnetdiscover"
_SWITCH = re.compile(r'^Switch\s+(\d+)\s+"(S-[0-9a-f]+)"')
_CARD = re.compile(r'^Ca\s+\d+\s+"(H-[0-9a-f]+)"\s*#\s*"([^"]*)"')
_PORT = re.compile(r'^\[(\d+)\](?:\([0-9a-f]+\))?\s+"([SH]-[0-9a-f]+)"\[\d+\].*?#\s*"([^"]*)".*?(\d+)x([A-Z]+)\d*\s*$')
_GIGABITS = {"SDR": 2.5, "DDR": 5, "QDR": 10, "FDR": 14, "FDR10": 10, "EDR": 25, "HDR": 50, "NDR": 100, "XDR": 200}
"""Gb/s of one lane. Source: InfiniBand Trade Association, roadmap."""
_FABRICS = {"EDR": "infiniband-edr", "HDR": "infiniband-hdr", "NDR": "infiniband-ndr", "XDR": "infiniband-xdr"}


@dataclass(slots=True)
class _Switch:
    ports: int
    cards: list[tuple[str, int, str]] = field(default_factory=list)
    links: int = 0


def matches(text: str) -> bool:
    """Whether `text` is such a file."""
    return bool(re.search(r'^(Switch|Ca)\s+\d+\s+"[SH]-', text, re.MULTILINE))


def read(text: str) -> Findings:
    """Hosts with their cards, the rate of the links, ports of the switches, oversubscription of the leaves.

    Hosts are told by the first word of the description of their cards. Raises `SpecError`.
    """
    switches = _switches(text)
    cards = [card for switch in switches.values() for card in switch.cards]
    if not cards:
        raise damaged(NAME, "no card on any switch", "at least one switch with hosts")
    hosts: Counter[str] = Counter(host for host, _, _ in cards)
    sizes = Counter(hosts.values())
    lanes, rate = Counter((lanes, rate) for _, lanes, rate in cards).most_common(1)[0][0]
    if len(sizes) > 1:
        odd = min(hosts, key=lambda host: sizes[hosts[host]])
        listed = ", ".join(f"{number} hosts with {size} cards" for size, number in sizes.most_common())
        raise damaged(NAME, f"{listed}, as {odd}", "hosts with as many cards each")
    bandwidth = lanes * _GIGABITS[rate] * 1e9 / 8
    leaves = [switch for switch in switches.values() if switch.cards]
    ratio = max(len(leaf.cards) / leaf.links if leaf.links else 1.0 for leaf in leaves)
    return Findings(
        pools=(PoolFinding(nics=next(iter(sizes)), nic_bandwidth=bandwidth, count=len(hosts)),),
        fabric=FabricFinding(
            name=_FABRICS.get(rate),
            link_bandwidth=bandwidth,
            radix=max(switch.ports for switch in switches.values()),
            oversubscription=max(1.0, ratio),
        ),
    )


def _switches(text: str) -> dict[str, _Switch]:
    found: dict[str, _Switch] = defaultdict(lambda: _Switch(ports=0))
    current: _Switch | None = None
    for number, line in enumerate(text.splitlines(), 1):
        if switch := _SWITCH.match(line):
            current = found[switch[2]]
            # The last of an odd number of ports is the switch's own, where it adds up (SHARP).
            current.ports = int(switch[1]) // 2 * 2
        elif _CARD.match(line):
            current = None
        elif line.startswith("[") and current is not None:
            _add_port(current, line, number)
    return found


def _add_port(switch: _Switch, line: str, number: int) -> None:
    port = _PORT.match(line)
    if port is None:
        raise damaged(NAME, line.strip()[:60], '[port] "GUID"[port] # "name" lid N 4xRATE', number)
    if port[5] not in _GIGABITS:
        raise damaged(NAME, f"rate {port[5]}", ", ".join(_GIGABITS), number)
    if port[2].startswith("S-"):
        switch.links += 1
    else:
        words = port[3].split()
        if not words:
            raise damaged(NAME, "a card without a name", 'the host, as in "node01 mlx5_0"', number)
        switch.cards.append((words[0], int(port[4]), port[5]))
