"""What others call the devices and nodes of the catalog: PCI ids, product names, instance types."""

from __future__ import annotations

import re
from functools import cache

from hwmodels.catalog import DATA, devices, nodes
from hwmodels.loading import read_text


@cache
def _names() -> dict[str, str]:
    """Product name or PCI id, in plain letters -> device."""
    import csv

    rows = csv.DictReader(read_text(DATA / "device_names.csv").splitlines())
    return {_plain(row["name"]): row["device"] for row in rows}


def device_of_pci(vendor: str, device: str) -> str | None:
    """The device with this PCI vendor and device id, as in 0x10de and 0x2330; None where it is not known."""
    return _names().get(_plain(f"{vendor}:{device}"))


def device_of_name(name: str) -> str | None:
    """The device that a product name or a name of the catalog stands for; None where it is not known."""
    known = {_plain(each): each for each in devices()}
    return known.get(_plain(name)) or _names().get(_plain(name)) if name else None


def node_of_instance(name: str) -> str | None:
    """The node of the catalog that is a cloud's instance type of this name; None where there is none."""
    known = {_plain(each): each for each in nodes()}
    return known.get(_plain(name)) if name else None


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())
