"""Files that real machines print, read into what they say of a cluster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hwmodels.errors import Fault, SpecError
from hwmodels.loading import read_text
from hwmodels.readers import ibnetdiscover, kubernetes, nccl_xml, nvidia_smi, slurm
from hwmodels.readers.findings import Findings


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """One format: its name, how it is recognized, and how it is read."""

    name: str
    matches: Callable[[str], bool]
    read: Callable[[str], Findings]


FORMATS: tuple[Format, ...] = (
    Format(name=kubernetes.NAME, matches=kubernetes.matches, read=kubernetes.read),
    Format(name=nccl_xml.NAME, matches=nccl_xml.matches, read=nccl_xml.read),
    Format(name=nvidia_smi.NAME, matches=nvidia_smi.matches, read=nvidia_smi.read),
    Format(name=ibnetdiscover.NAME, matches=ibnetdiscover.matches, read=ibnetdiscover.read),
    Format(name=slurm.SHOW, matches=slurm.is_show, read=slurm.read_show),
    Format(name=slurm.CONF, matches=slurm.is_conf, read=slurm.read_conf),
    Format(name=slurm.YAML, matches=slurm.is_yaml, read=slurm.read_yaml),
)


def read_machine_file(path: Path) -> Findings:
    """What the file at `path` says, in whichever of `FORMATS` it is. Raises `SpecError` naming the file."""
    text = read_text(path)
    known = next((each for each in FORMATS if each.matches(text)), None)
    if known is None:
        legal = "the output of " + "; ".join(each.name for each in FORMATS)
        raise SpecError([Fault(path="", found="a file of no known format", legal=legal)], str(path))
    try:
        return known.read(text)
    except SpecError as error:
        raise error.within(str(path)) from None
