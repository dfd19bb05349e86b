"""Profiles of collectives: bus bandwidth and health by hand, logs of nccl-tests, and the calibration that results."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import yaml

from hwmodels.catalog import cluster_of, load_cluster
from hwmodels.errors import SpecError
from hwmodels.readers import nccl_tests
from planner import cli
from planner.collective_profile import Pair, Point, Profile, bus_bandwidth, calibration, fit, suspicions

LOG = """# nThread 1 nGpus 1 minBytes 8388608 maxBytes 8589934592 step: 2(factor) warmup iters: 5 iters: 20
#
# Using devices
#  Rank  0 Group  0 Pid  11021 on    host-a device  0 [0x18] NVIDIA H100 80GB HBM3
#  Rank  1 Group  0 Pid  11022 on    host-a device  1 [0x2a] NVIDIA H100 80GB HBM3
#  Rank  2 Group  0 Pid  11023 on    host-b device  0 [0x18] NVIDIA H100 80GB HBM3
#  Rank  3 Group  0 Pid  11024 on    host-b device  1 [0x2a] NVIDIA H100 80GB HBM3
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
     8388608       2097152     float     sum      -1    200.0   41.94   62.91      0    199.0   42.15   63.23      0
  1073741824     268435456     float     sum      -1  20000.0   53.69   80.53      0  19990.0   53.71   80.57      0
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 71.8
"""


def point(name, nbytes, seconds, slow=None):
    return Point(collective=name, nbytes=nbytes, seconds=seconds, slow_seconds=slow or seconds)


def profile(*points, ranks=4, nodes=1, pairs=()):
    return Profile(ranks=ranks, nodes=nodes, software="test, gloo", points=points, pairs=pairs)


def test_bus_bandwidth_is_that_of_nccl_tests():
    # 1 GiB in 20 ms on 4 ranks: 53.69 GB/s of the algorithm, x 2 x 3/4 on the bus, as in the log.
    assert bus_bandwidth(point("all_reduce", 2**30, 20e-3), 4) == pytest.approx(80.53e9, rel=1e-4)
    assert bus_bandwidth(point("all_gather", 8e6, 1e-3), 4) == pytest.approx(6e9)
    assert bus_bandwidth(point("broadcast", 8e6, 1e-3), 4) == pytest.approx(8e9)


def test_fit_finds_the_latency_and_bandwidth_that_made_the_times():
    def ring(name, passes, nbytes):
        return point(name, nbytes, passes * 3 * 10e-6 + passes * 0.75 * nbytes / 2e9)

    points = [ring(name, passes, size) for name, passes in (("all_reduce", 2), ("all_gather", 1))
              for size in (4, 16, 2**20, 2**30, 2**32)]  # fmt: skip
    found = fit(profile(*points))
    assert found.latency == pytest.approx(10e-6, rel=1e-3)
    assert found.bandwidth == pytest.approx(2e9, rel=1e-3)
    assert found.error < 1e-2


def test_logs_of_nccl_tests():
    log = nccl_tests.read(LOG)
    assert (log.collective, log.ranks, log.hosts) == (None, 4, 2)
    assert [size for size, _ in log.rows] == [8388608, 1073741824]
    assert [seconds for _, seconds in log.rows] == pytest.approx([200e-6, 20e-3])
    assert nccl_tests.read("# all_reduce_perf\n" + LOG).collective == "all_reduce"
    assert nccl_tests.read("# alltoall_perf\n" + LOG).collective == "all_to_all"
    for damaged in ("", "hello", LOG.replace("Rank", "Rnk"), "\n".join(LOG.splitlines()[:10])):
        with pytest.raises(SpecError, match="nccl-tests"):
            nccl_tests.read(damaged)


def test_a_slow_rank_and_a_slow_pair_are_named():
    fast = {(0, 1), (1, 2), (3, 0), (0, 2)}
    pairs = [Pair(ranks=ranks, nbytes=10**6, seconds=1e-3) for ranks in fast]
    one = [*pairs, Pair(ranks=(2, 3), nbytes=10**6, seconds=2e-3)]
    assert list(suspicions(profile(pairs=tuple(one)), None)) == ["Ranks 2 and 3: 500 MB/s, where pairs reach 1 GB/s."]
    rank = [replace(pair, seconds=3e-3) if 3 in pair.ranks else pair for pair in [*pairs, *one[-1:]]]
    assert "Rank 3 is slow with every partner." in list(suspicions(profile(pairs=tuple(rank)), None))
    assert list(suspicions(profile(pairs=tuple(pairs)), None)) == []


def test_a_link_under_its_rate_and_unsteady_times_are_named():
    cluster = cluster_of("dgx-h100 x 1")
    healthy = point("all_gather", 2**30, 0.875 * 2**30 / 360e9)
    assert list(suspicions(profile(healthy, ranks=8), cluster)) == []
    halved = replace(healthy, seconds=2 * healthy.seconds, slow_seconds=2 * healthy.seconds)
    (found,) = suspicions(profile(halved, ranks=8), cluster)
    assert "all_gather of 1.07 GB reaches 180 GB/s" in found and "of the cluster's" in found
    (found,) = suspicions(profile(replace(healthy, slow_seconds=3 * healthy.seconds), ranks=8), cluster)
    assert "unsteady: one in ten takes 3.0 x" in found


def test_a_calibration_comes_before_the_catalog(tmp_path):
    measured = profile(point("all_gather", 2**30, 0.875 * 2**30 / 300e9), ranks=8)
    document = calibration(measured, cluster_of("dgx-h100 x 1"), {"date": "2026-12-01"})
    (tmp_path / "calibration.yaml").write_text(yaml.safe_dump(document))
    (tmp_path / "cluster.yaml").write_text("pools:\n- {node: dgx-h100, count: 4}\ncalibration: calibration.yaml\n")
    cluster = load_cluster(tmp_path / "cluster.yaml")
    assert cluster.node.scaleup_efficiency == pytest.approx(300 / 450)
    assert cluster.fabric.name == "infiniband-ndr" and cluster.nodes == 4
    across = replace(measured, nodes=2, ranks=16, points=(point("all_gather", 2**30, 15 / 16 * 2**30 / 300e9),))
    (tmp_path / "calibration.yaml").write_text(yaml.safe_dump(calibration(across, cluster_of("dgx-h100 x 2"), {})))
    assert load_cluster(tmp_path / "cluster.yaml").fabric.efficiency == pytest.approx(0.75)


@pytest.mark.parametrize("text", ["", "[]", "schema_version: 2\nkind: collectives\n", "hello: {"])
def test_what_is_no_calibration_is_refused(text, tmp_path):
    (tmp_path / "calibration.yaml").write_text(text)
    (tmp_path / "cluster.yaml").write_text("pools:\n- {node: dgx-h100, count: 4}\ncalibration: calibration.yaml\n")
    with pytest.raises(SpecError, match=r"calibration\.yaml"):
        load_cluster(tmp_path / "cluster.yaml")


def test_the_command_reads_a_log_and_compares_it(tmp_path, capsys):
    log = tmp_path / "log.txt"
    log.write_text(LOG)
    words = [
        "profile",
        "collectives",
        "--from-log",
        str(log),
        "--collective",
        "all_reduce",
        "--cluster",
        "dgx-h100 x 2",
    ]
    assert cli.main([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["ranks"] == 4 and found["collectives"][1]["bus_bandwidth_bytes_per_s"] == pytest.approx(
        80.53e9, rel=1e-4
    )
    assert cli.main(words[:4]) == 2
    assert "--collective" in capsys.readouterr().err


def test_collectives_of_this_machine_are_measured(tmp_path, capfd):
    out = tmp_path / "calibration.yaml"
    words = ["profile", "collectives", "--processes", "2", "--max-bytes", "256 KiB", "--out", str(out), "--json"]
    assert cli.main(words) == 0
    found = json.loads(capfd.readouterr().out)
    assert {each["collective"] for each in found["collectives"]} == {
        "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast",
    }  # fmt: skip
    assert all(each["time_s"] > 0 for each in found["collectives"])
    assert yaml.safe_load(out.read_text())["node"].keys() == {
        "scaleup_bandwidth", "scaleup_efficiency", "scaleup_latency",
    }  # fmt: skip
    assert cli.main([*words[:4], "--max-bytes", "3 parsecs"]) == 2
