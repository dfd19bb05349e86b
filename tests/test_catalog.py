"""The catalog: every fact has a source, every record is complete, and clusters are read from it."""

import shutil
from dataclasses import MISSING, fields

import pytest

from hwmodels import catalog
from hwmodels.errors import SpecError
from hwmodels.machine import Device, Fabric, Node
from hwmodels.stack import Stack

TABLES = ["devices", "communicators", "nodes", "fabrics", "switches", "stacks", "facilities"]
KINDS = set(catalog.FACT_KINDS)


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


DEVICES = [
    "v100-sxm-16gb", "v100-sxm-32gb", "a100-pcie-40gb", "a100-sxm-40gb", "a100-pcie-80gb", "a100-sxm-80gb",
    "a800-sxm-80gb",
    "h800-sxm", "h100-sxm", "h100-pcie", "h100-nvl", "h200-sxm", "b200-sxm", "b300-sxm", "gb200",
    "gb300", "l4", "l40s", "a10g", "rtx-4090", "rtx-5090", "mi250x", "mi300x", "mi325x", "mi355x", "mi455x",
    "gaudi2", "gaudi3",
]  # fmt: skip


def test_devices_that_people_train_on_are_known():
    assert set(DEVICES) <= set(catalog.devices())
    assert {"gb200-nvl72", "gb300-nvl72", "p5.48xlarge", "nd96isr-h100-v5", "a4-highgpu-8g", "bm.gpu.h100.8"} <= set(
        catalog.nodes()
    )


def test_rates_are_dense():
    # Sparse rates are twice as high; fp8 is twice bf16 where a device has it.
    assert catalog.device("h100-sxm").peak_bf16 == 989e12 and catalog.device("h100-sxm").peak_fp8 == 1979e12
    assert catalog.device("l40s").peak_bf16 == 362e12
    announced = {fact.name for fact in catalog.facts("devices") if fact.kind == "announced"}
    for device in (each for name, each in catalog.devices().items() if name not in announced):
        assert device.peak_fp8 <= 2.05 * device.peak_bf16 or not device.peak_fp8, device.name


def test_what_is_only_announced_is_marked_and_counted():
    assert {fact.kind for fact in catalog.facts("devices") if fact.name == "mi455x"} == {"announced", "estimate"}
    assert "mi455x.memory" in catalog.cluster_of("helios x 18").estimates


@pytest.mark.parametrize("name", sorted(catalog.nodes()))
def test_every_node_makes_a_cluster(name):
    cluster = catalog.cluster_of(f"{name} x 2")
    assert cluster.scaleout_bandwidth > 0
    assert sum(kind == "gpu" for _, kind in cluster.graph().nodes(data="kind")) == 2 * cluster.node.devices


def test_a_provider_may_stand_before_its_node():
    assert catalog.cluster_of("aws/p5.48xlarge x 2").node == catalog.node("p5.48xlarge")


HEAD = "name,field,value,unit,kind,source,date,note\n"


@pytest.mark.parametrize(("row", "found"), [
    ("x,memory,1,GB,published,,2026,", "no source"),
    ("x,memory,1,GB,published,somewhere,,", "no date"),
    ("x,memory,1,GB,rumour,somewhere,2026,", "'rumour'"),
])  # fmt: skip
def test_a_row_without_source_is_refused(row, found, tmp_path):
    path = tmp_path / "devices.csv"
    path.write_text(HEAD + row + "\n")
    with pytest.raises(SpecError, match=found) as caught:
        catalog.read_facts(path)
    assert caught.value.faults[0].path.startswith("line 2, x.memory")


def test_a_device_and_its_node_are_added_by_rows_alone(tmp_path, monkeypatch):
    shutil.copytree(catalog.DATA, tmp_path / "data")
    for table, name, like in (("devices", "newchip", "h200-sxm"), ("nodes", "newnode", "dgx-h200")):
        path = tmp_path / "data" / f"{table}.csv"
        rows = [line for line in path.read_text().splitlines() if line.startswith(f"{like},")]
        added = "\n".join(row.replace(like, name, 1).replace("h200-sxm", "newchip") for row in rows)
        path.write_text(path.read_text() + added + "\n")
    monkeypatch.setattr(catalog, "DATA", tmp_path / "data")
    caches = [catalog.facts, catalog.devices, catalog.nodes, catalog.fabrics, catalog.communicators]
    for cached in caches:
        cached.cache_clear()
    try:
        assert catalog.cluster_of("newnode x 4").device.name == "newchip"
    finally:
        monkeypatch.undo()
        for cached in caches:
            cached.cache_clear()
