"""Slurm: `topology.conf`, `topology.yaml` and `scontrol show node`.

Source: Slurm documentation, topology.conf(5), topology.yaml(5), scontrol(1).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import yaml

from hwmodels.readers.damage import damaged
from hwmodels.readers.findings import Findings, PoolFinding
from hwmodels.readers.hostlist import expand
from hwmodels.readers.names import device_of_name

CONF, YAML, SHOW = "topology.conf", "topology.yaml", "scontrol show node"
_GPU = re.compile(r"gpu(?::([A-Za-z][\w.-]*))?:(\d+)")


def is_conf(text: str) -> bool:
    """Whether `text` is a topology.conf."""
    return bool(re.search(r"^\s*(SwitchName|BlockName)\s*=", text, re.MULTILINE | re.IGNORECASE))


def read_conf(text: str) -> Findings:
    """The number of nodes under all switches or blocks. Raises `SpecError`."""
    nodes: list[str] = []
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.partition("#")[0].strip()
        if not line:
            continue
        words = dict(_words(line, number))
        if not {"switchname", "blockname", "blocksizes"} & set(words):
            raise damaged(CONF, line[:60], "SwitchName=... or BlockName=...", number)
        nodes.extend(_hosts(CONF, words.get("nodes", ""), number))
    return _counted(CONF, nodes)


def _words(line: str, number: int) -> Iterator[tuple[str, str]]:
    for word in line.split():
        key, equals, value = word.partition("=")
        if not equals or not value:
            raise damaged(CONF, word, "Key=Value", number)
        yield key.lower(), value


def is_yaml(text: str) -> bool:
    """Whether `text` is a topology.yaml."""
    return bool(re.search(r"^\s*-\s+topology\s*:", text, re.MULTILINE))


def read_yaml(text: str) -> Findings:
    """The number of nodes under all switches or blocks of the first topology that has some. Raises `SpecError`."""
    try:
        data = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise damaged(YAML, "text that breaks off", "complete YAML", mark.line + 1 if mark else None) from None
    for topology in data if isinstance(data, list) else []:
        nodes = [host for group in _groups(topology) for host in _hosts(YAML, str(group.get("nodes", "")), None)]
        if nodes:
            return _counted(YAML, nodes)
    raise damaged(YAML, "no nodes under any switch or block", "a topology with tree.switches or block.blocks")


def _groups(topology: Any) -> Iterator[dict[str, Any]]:
    for kind, members in (("tree", "switches"), ("block", "blocks")):
        section = topology.get(kind) if isinstance(topology, dict) else None
        listed = section.get(members) if isinstance(section, dict) else None
        yield from (group for group in listed or [] if isinstance(group, dict))


def is_show(text: str) -> bool:
    """Whether `text` is what `scontrol show node` prints."""
    return bool(re.search(r"^NodeName=\S+.*\b(Arch|CoresPerSocket|CPUTot)=", text, re.MULTILINE | re.DOTALL))


def read_show(text: str) -> Findings:
    """Nodes by the devices that they have; nodes without devices are left out. Raises `SpecError`."""
    kinds: Counter[tuple[str | None, int]] = Counter()
    for record in re.split(r"(?m)^(?=NodeName=)", text):
        name = re.match(r"NodeName=(\S+)", record)
        gres = re.search(r"(?m)\bGres=(\S+)", record)
        if name is None:
            continue
        if gres is None:
            raise damaged(SHOW, f"node {name[1]} without Gres=", "the whole record of each node")
        gpus = _GPU.findall(gres[1])
        if gpus:
            kinds[(device_of_name(gpus[0][0]), sum(int(count) for _, count in gpus))] += 1
    if not kinds:
        raise damaged(SHOW, "no node with Gres=gpu:...", "at least one node with devices")
    pools = (PoolFinding(device=kind, devices=size, count=number) for (kind, size), number in kinds.items())
    return Findings(pools=tuple(pools))


def _hosts(what: str, text: str, line: int | None) -> list[str]:
    try:
        return expand(text)
    except ValueError as error:
        raise damaged(what, str(error), "a host list, as in node[01-32]", line) from None


def _counted(what: str, nodes: list[str]) -> Findings:
    if not nodes:
        raise damaged(what, "no nodes", "switches or blocks with Nodes=")
    return Findings(pools=(PoolFinding(count=len(set(nodes))),))
