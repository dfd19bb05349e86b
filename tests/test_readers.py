"""What real machines print becomes a cluster file; what they leave out is asked for by name; damage has one message."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from hwmodels.catalog import load_cluster
from hwmodels.errors import SpecError
from hwmodels.readers import read_machine_file
from hwmodels.readers.findings import PoolFinding
from hwmodels.readers.hostlist import expand
from planner import cli

SAMPLES = Path(__file__).parent / "data" / "topology"
H100, A100 = 50e9, 25e9
"""B/s of a card of 400 and of 200 Gb/s."""
EXPECTED = {
    "nvidia-smi-h100.txt": [PoolFinding(devices=8, domain=8, nics=8)],
    "nvidia-smi-dgx2.txt": [PoolFinding(devices=16, domain=16, nics=8)],
    "nvidia-smi-pcie.txt": [PoolFinding(devices=2)],
    "nvidia-smi-mp.txt": [PoolFinding(devices=8, nics=8)],
    "nccl-h100.xml": [PoolFinding(device="h100-sxm", devices=8, domain=8, nics=8, nic_bandwidth=H100)],
    "nccl-a100.xml": [PoolFinding(device="a100-sxm-80gb", devices=8, domain=8, nics=8, nic_bandwidth=A100)],
    "nccl-v100-no-cards.xml": [PoolFinding(device="v100-sxm-32gb", devices=4, domain=4)],
    "rccl-mi300x.xml": [PoolFinding(device="mi300x", devices=8, domain=8, nics=8, nic_bandwidth=H100)],
    "ibnetdiscover-hdr.txt": [PoolFinding(nics=1, nic_bandwidth=A100, count=4)],
    "ibnetdiscover-ndr-rails.txt": [PoolFinding(nics=8, nic_bandwidth=H100, count=16)],
    "topology.conf": [PoolFinding(count=16)],
    "topology-block.conf": [PoolFinding(count=36)],
    "topology.yaml": [PoolFinding(count=4)],
    "scontrol.txt": [PoolFinding(devices=8, count=4)],
    "scontrol-mixed.txt": [
        PoolFinding(device="a100-sxm-80gb", devices=4, count=3), PoolFinding(device="h100-sxm", devices=8, count=2),
    ],
    "kubectl-h100.json": [PoolFinding(device="h100-sxm", devices=8, count=4)],
    "kubectl-eks.json": [PoolFinding(node="p5.48xlarge", device="h100-sxm", devices=8, count=2)],
}  # fmt: skip


@pytest.mark.parametrize("name", EXPECTED)
def test_samples_say_what_they_say_and_no_more(name):
    assert list(read_machine_file(SAMPLES / name).pools) == EXPECTED[name]


def test_every_sample_has_a_source_and_a_test():
    sources = (SAMPLES / "SOURCES.md").read_text()
    assert {path.name for path in SAMPLES.iterdir()} == {*EXPECTED, "SOURCES.md"}
    assert all(name in sources for name in EXPECTED)


def test_fabric_of_infiniband_switches():
    thin = read_machine_file(SAMPLES / "ibnetdiscover-hdr.txt").fabric
    assert (thin.name, thin.radix, thin.oversubscription) == ("infiniband-hdr", 40, 2.0)
    rails = read_machine_file(SAMPLES / "ibnetdiscover-ndr-rails.txt").fabric
    assert (rails.name, rails.radix, rails.oversubscription) == ("infiniband-ndr", 64, 1.0)


REST = {
    "nvidia-smi-h100.txt": ["device=h100-sxm", "nic_bandwidth=400 Gb/s", "count=4", "fabric=infiniband-ndr"],
    "nvidia-smi-dgx2.txt": ["node=v100-nvlink-8", "nic_bandwidth=100 Gb/s", "count=1", "fabric=infiniband-edr"],
    "nvidia-smi-pcie.txt": ["node=cpu-2", "count=1"],
    "nvidia-smi-mp.txt": ["device=h100-sxm", "domain=8", "nic_bandwidth=400 Gb/s", "count=2", "fabric=ethernet-400g"],
    "nccl-h100.xml": ["count=2", "fabric=infiniband-ndr"],
    "nccl-a100.xml": ["count=2", "fabric=infiniband-hdr"],
    "nccl-v100-no-cards.xml": [
        "node=v100-nvlink-8", "nics=4", "nic_bandwidth=100 Gb/s", "count=2", "fabric=infiniband-edr"
    ],
    "rccl-mi300x.xml": ["count=2", "fabric=ethernet-400g"],
    "ibnetdiscover-hdr.txt": ["node=dgx-a100", "nics=1"],
    "ibnetdiscover-ndr-rails.txt": ["device=h100-sxm", "devices=8", "domain=8"],
    "topology.conf": ["node=dgx-h100"],
    "topology-block.conf": ["node=gb200-nvl72"],
    "topology.yaml": ["node=mi300x-8"],
    "scontrol.txt": ["device=h100-sxm", "domain=8", "nics=8", "nic_bandwidth=400 Gb/s", "fabric=infiniband-ndr"],
    "scontrol-mixed.txt": [
        "pools[0].domain=4", "pools[1].domain=8", "nics=8", "nic_bandwidth=200 Gb/s", "fabric=infiniband-hdr"],
    "kubectl-h100.json": ["domain=8", "nics=8", "nic_bandwidth=400 Gb/s", "fabric=ethernet-400g"],
    "kubectl-eks.json": [],
}  # fmt: skip
"""What each sample leaves out."""


def run(capsys, *words):
    code = cli.main([str(word) for word in words])
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    return code, out, err


def settings(texts):
    return [word for text in texts for word in ("--set", text)]


@pytest.mark.parametrize("name", EXPECTED)
def test_samples_import_to_a_cluster_file_that_loads(name, capsys, tmp_path):
    out = tmp_path / "cluster.yaml"
    code, text, err = run(capsys, "topology", "import", SAMPLES / name, *settings(REST[name]), "--out", out)
    assert code == 0, err
    cluster = load_cluster(out)
    counts = [pool.count for pool in EXPECTED[name] if pool.count]
    assert not counts or [pool.count for pool in cluster.pools] == counts
    assert str(cluster.devices) in text and cluster.graph().number_of_nodes() > cluster.devices


@pytest.mark.parametrize("name", [name for name in EXPECTED if REST[name]])
def test_what_is_left_out_is_asked_for_by_name(name, capsys, tmp_path):
    out = tmp_path / "cluster.yaml"
    code, _, err = run(capsys, "topology", "import", SAMPLES / name, "--out", out)
    assert code == 2 and not out.exists()
    for text in REST[name]:
        key = text.partition("=")[0]
        if key != "node":
            assert f"{key}: found not in the files" in err or key == "nics"
    assert "--set" in err


def test_files_complete_each_other(capsys, tmp_path):
    out = tmp_path / "cluster.yaml"
    files = [SAMPLES / "nccl-h100.xml", SAMPLES / "ibnetdiscover-ndr-rails.txt"]
    assert run(capsys, "topology", "import", *files, "--out", out)[0] == 0
    assert yaml.safe_load(out.read_text())["pools"] == [{"node": "dgx-h100", "count": 16}]


def test_files_that_disagree_are_refused(capsys, tmp_path):
    files = [SAMPLES / "nccl-h100.xml", SAMPLES / "nccl-a100.xml"]
    code, _, err = run(capsys, "topology", "import", *files, "--out", tmp_path / "c.yaml")
    assert code == 2 and "node.device: found a100-sxm-80gb; legal: h100-sxm, as the other files say" in err


def test_existing_cluster_files_are_kept(capsys, tmp_path):
    out = tmp_path / "cluster.yaml"
    out.write_text("mine")
    assert run(capsys, "topology", "import", SAMPLES / "kubectl-eks.json", "--out", out)[0] == 2
    assert out.read_text() == "mine"


def cut(share):
    return lambda text: text[: int(len(text) * share)]


DAMAGED = [
    ("nvidia-smi-h100.txt", cut(0.25), "GPU"),
    ("nvidia-smi-h100.txt", lambda t: t.replace("NV18", "XX18", 1), "links of GPU0"),
    ("nvidia-smi-pcie.txt", lambda t: t.replace("\tGPU1\tCPU", "\tTPU1\tCPU"), "no known format"),
    ("nccl-h100.xml", cut(0.7), "complete XML"),
    ("nccl-h100.xml", lambda t: t.replace('speed="400000"', 'speed="fast"'), "a rate in Mb/s"),
    ("nccl-h100.xml", lambda t: '<!DOCTYPE x [<!ENTITY a "b">]>' + t, "document type"),
    ("ibnetdiscover-hdr.txt", lambda t: t.replace("4xHDR", "4xZZZ", 1), "rate ZZZ"),
    ("ibnetdiscover-hdr.txt", lambda t: t.replace('"node02 mlx5_0"', '"node01 mlx5_0"', 1), "as many cards each"),
    ("ibnetdiscover-hdr.txt", lambda t: t.replace("lid 5 4xHDR", "", 1), 'GUID'),
    ("topology.conf", lambda t: t.replace("[001-008]", "[008-001]"), "range '008-001'"),
    ("topology.conf", lambda t: t.replace("gpu[001-008]", "gpu[001-008"), "unclosed bracket"),
    ("topology.conf", lambda t: t.replace("SwitchName=spine", "spine"), "Key=Value"),
    ("topology.yaml", lambda t: t.replace("tree:", "tree: [", 1), "YAML"),
    ("topology.yaml", lambda t: "- topology: x\n  flat: true\n", "no nodes"),
    ("scontrol.txt", lambda t: t.replace("Gres=gpu", "Grs=gpu"), "without Gres="),
    ("scontrol.txt", lambda t: t.replace("gpu:h100:8(S:0-1)", "(null)"), "Gres=gpu"),
    ("kubectl-h100.json", cut(0.6), "complete JSON"),
    ("kubectl-h100.json", lambda t: t.replace('"status"', '"state"'), "status.capacity"),
    ("kubectl-h100.json", lambda t: t.replace('"nvidia.com/gpu": "8"', '"cpu2": "8"'), "without devices"),
    ("kubectl-h100.json", lambda t: "hello\n", "no known format"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "damage", "message"), DAMAGED)
def test_damaged_files_give_one_clear_message(name, damage, message, capsys, tmp_path):
    path = tmp_path / name
    text = (SAMPLES / name).read_text()
    path.write_text(damage(text))
    assert path.read_text() != text
    code, _, err = run(capsys, "topology", "import", path, "--out", tmp_path / "c.yaml")
    assert code == 2 and message in err and str(path) in err, err


@given(data=st.data(), name=st.sampled_from(sorted(EXPECTED)))
def test_no_damage_brings_a_traceback(data, name, tmp_path_factory):
    text = (SAMPLES / name).read_text()
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    path = tmp_path_factory.mktemp("damaged") / name
    path.write_text(text[:start] + data.draw(st.text(max_size=5).filter(str.isprintable)) + text[end:])
    try:
        read_machine_file(path)
    except SpecError as error:
        assert error.faults and str(path) in str(error)


def test_host_lists():
    assert expand("n[1-3,7],login1") == ["n1", "n2", "n3", "n7", "login1"]
    assert expand("r[1-2]n[08-10]") == ["r1n08", "r1n09", "r1n10", "r2n08", "r2n09", "r2n10"]
    assert expand("") == []
    for text in ("n[1-", "n[3-1]", "n]1", "n[a]"):
        with pytest.raises(ValueError, match=r"."):
            expand(text)


PICTURES = ["dgx-h100 x 1", "dgx-h100 x 8", "dgx-h100 x 1024", "p4d.24xlarge x 40", "gb200-nvl72 x 36", "cpu-4 x 1"]


@pytest.mark.parametrize("cluster", PICTURES)
def test_pictures_are_drawn_and_never_replace_others_unasked(cluster, capsys, tmp_path):
    for suffix, head in ((".png", b"\x89PNG"), (".svg", b"<?xml")):
        out = tmp_path / f"picture{suffix}"
        assert run(capsys, "topology", "draw", cluster, "--out", out)[0] == 0
        assert out.read_bytes().startswith(head)
        assert run(capsys, "topology", "draw", cluster, "--out", out)[0] == 2
    code, _, err = run(capsys, "topology", "draw", cluster, "--out", tmp_path / "x.txt")
    assert code == 2 and ".svg or .png" in err


def test_show_counts_switches_and_cables(capsys):
    code, out, _ = run(capsys, "topology", "show", "dgx-b200 x 512")
    assert code == 0 and "128 leaves, 128 spines, 64 cores" in out and "4096 to cards" in out
