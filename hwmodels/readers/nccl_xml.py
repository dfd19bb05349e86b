"""The topology that NCCL or RCCL dumps as XML (NCCL_TOPO_DUMP_FILE): devices, their links, network cards and rates.

Source: NVIDIA, nccl src/graph/xml.cc (elements system, cpu, pci, gpu, nvlink, nic, net).
"""

from __future__ import annotations

from collections import Counter
from xml.etree import ElementTree as Xml

from hwmodels.readers.damage import damaged
from hwmodels.readers.findings import Findings, PoolFinding
from hwmodels.readers.names import device_of_pci

NAME = "NCCL topology dump"


def matches(text: str) -> bool:
    """Whether `text` is such a dump."""
    return "<system" in text[:2000]


def read(text: str) -> Findings:
    """Devices and their kind, those that NVLink or xGMI joins, cards and their rate. Raises `SpecError`."""
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise damaged(NAME, "a document type declaration", "elements only, as NCCL writes them")
    try:
        system = Xml.fromstring(text)  # noqa: S314 (declarations are refused above)
    except Xml.ParseError as error:
        raise damaged(NAME, str(error), "complete XML", error.position[0]) from None
    holders = [pci for pci in system.iter("pci") if pci.find("gpu") is not None]
    if not holders:
        raise damaged(NAME, "no element gpu", "at least one device")
    kinds = {device_of_pci(pci.get("vendor", ""), pci.get("device", "")) for pci in holders}
    linked = [pci for pci in holders if any(gpu.findall("nvlink") or gpu.findall("xgmi") for gpu in pci.iter("gpu"))]
    rates = Counter(_rate(net) for net in system.iter("net"))
    fastest = max(rates, default=None)
    pool = PoolFinding(
        device=kinds.pop() if len(kinds) == 1 else None,
        devices=len(holders),
        domain=len(holders) if len(linked) == len(holders) else 1,
        nics=rates[fastest] if fastest else None,
        nic_bandwidth=fastest,
    )
    return Findings(pools=(pool,))


def _rate(net: Xml.Element) -> float:
    """B/s of a card; the attribute is in Mb/s."""
    speed = net.get("speed", "")
    if not speed.isdigit() or int(speed) == 0:
        raise damaged(NAME, f"speed={speed!r} of net {net.get('name', '')}", "a rate in Mb/s")
    return int(speed) * 1e6 / 8
