"""The catalog: every fact has a source, every record is complete, and clusters are read from it."""

from dataclasses import MISSING, fields

import pytest

from hwmodels import catalog
from hwmodels.errors import SpecError
from hwmodels.machine import Device, Fabric, Node
from hwmodels.stack import Stack

TABLES = ["devices", "nodes", "fabrics", "stacks", "facilities"]
KINDS = {"published", "measured", "derived", "estimate"}


@pytest.mark.parametrize("table", TABLES)
def test_every_fact_has_unit_source_and_date(table):
    facts = catalog.facts(table)
    assert facts
    for fact in facts:
        assert fact.value and fact.unit and fact.source and fact.date, fact
        assert fact.kind in KINDS, fact
    assert len({(fact.name, fact.field) for fact in facts}) == len(facts)


def test_every_price_has_source_and_date():
    for price in catalog.prices():
        assert price.source and price.date and price.value > 0, price
        assert price.device in catalog.devices() and price.kind in {"on_demand", "spot", "reserved"}, price
        assert price.basis in {"published", "estimate"}


@pytest.mark.parametrize(
    ("table", "record"), [("devices", Device), ("nodes", Node), ("fabrics", Fabric), ("stacks", Stack)]
)
def test_every_field_has_a_row(table, record):
    needed = {f.name for f in fields(record) if f.default is MISSING} - {"name"}
    for name in {fact.name for fact in catalog.facts(table)}:
        assert needed <= {fact.field for fact in catalog.facts(table) if fact.name == name}, name


def test_estimates_are_named():
    assert "processors" in catalog.device("h100-sxm").estimates
    assert "memory_bandwidth" not in catalog.device("h100-sxm").estimates
    assert "h100-sxm.processors" in catalog.cluster_of("dgx-h100 x 2").estimates


@pytest.mark.parametrize(
    ("node", "device", "memory", "bf16", "scaleup", "network"),
    [
        ("dgx-a100", "a100-sxm-80gb", 80e9, 312e12, 300e9, 25e9),
        ("dgx-h100", "h100-sxm", 80e9, 989e12, 450e9, 50e9),
        ("dgx-h200", "h200-sxm", 141e9, 989e12, 450e9, 50e9),
        ("dgx-b200", "b200-sxm", 180e9, 2250e12, 900e9, 50e9),
    ],
)
def test_dgx_nodes_are_what_the_vendor_says(node, device, memory, bf16, scaleup, network):
    found = catalog.node(node)
    assert (found.device.name, found.devices, found.nics) == (device, 8, 8)
    assert (found.device.memory, found.device.peak_bf16) == (memory, bf16)
    assert (found.scaleup_bandwidth, found.nic_bandwidth) == (scaleup, network)


def test_cluster_by_name_and_count():
    cluster = catalog.cluster_of("dgx-h100 x 8")
    assert (cluster.nodes, cluster.devices, cluster.domain, cluster.fabric.name) == (8, 64, 8, "infiniband-ndr")
    # 400 Gb/s per device at 94%.
    assert cluster.scaleout_bandwidth == pytest.approx(47e9)


@pytest.mark.parametrize(
    ("text", "nearest"),
    [("dgx-h10 x 8", "dgx-h100"), ("dgx-h100 x 0", "dgx-h100 x 1"), ("dgx-h100", "dgx-h100 x 1"), ("", None)],
)
def test_bad_clusters_name_the_nearest(text, nearest):
    with pytest.raises(SpecError) as caught:
        catalog.cluster_of(text)
    assert caught.value.faults[0].nearest == nearest


def test_cluster_file(tmp_path):
    path = tmp_path / "cluster.yaml"
    path.write_text(
        "pools:\n- node: {base: dgx-h100, nics: 4, nic_bandwidth: 200 Gb/s}\n  count: 3\n"
        "fabric: {base: infiniband-hdr, oversubscription: 2.0}\n"
    )
    cluster = catalog.load_cluster(path)
    assert (cluster.devices, cluster.node.device) == (24, catalog.device("h100-sxm"))
    # 4 x 25 GB/s over 8 devices, 94%, half of it through an oversubscribed fabric.
    assert cluster.scaleout_bandwidth == pytest.approx(4 * 25e9 / 8 * 0.94 / 2)


def test_all_faults_of_a_cluster_file_at_once(tmp_path):
    path = tmp_path / "cluster.yaml"
    path.write_text("pools:\n- node: {base: dgx-h100, nics: x}\n  count: 3\n- node: zzz\nfabric: infiniband-nd\n")
    with pytest.raises(SpecError) as caught:
        catalog.load_cluster(path)
    assert {f.path for f in caught.value.faults} == {"pools[0].node.nics", "pools[1].node", "fabric"}
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("data", [{"pools": []}, {"pools": [{"node": "dgx-h100", "count": 0}]}, {}, {"pools": 3}])
def test_a_cluster_needs_nodes(data):
    with pytest.raises(SpecError, match="pools"):
        catalog.load_cluster(data)


def test_aliases_lead_to_stacks():
    assert catalog.stack("nemo-25.04") == catalog.stack("megatron-core-2025")
    assert set(catalog.stack_aliases().values()) <= set(catalog.stacks())
