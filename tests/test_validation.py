"""From measured rows to predictions: what is stated, what is filled in, what is skipped, and what it comes to."""

import argparse
import csv
import io
import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr

from hwmodels import catalog
from hwmodels.errors import SpecError
from hwmodels.layout import Layout
from planner.candidate import Candidate
from planner.collective_measurements import validate_collectives
from planner.commands import validate as command
from planner.framework_defaults import _defaults, default, family
from planner.measured_cluster import Network, stated_network
from planner.measurements import COLUMNS, Configuration, Measured, Measurement, read_measurements, shipped, step_time
from planner.reconstruction import Case, Skip, reconstruct
from planner.search import score
from planner.validation import rank_correlation, validate
from sim.step import MEMORY_KINDS, StepEstimate

GPT22B = Configuration(
    id="row", stack="megatron-2022", year=2022, model="GPT 22B", device="a100-sxm-80gb", n_devices=8,
    devices_per_node=8, n_layers=48, hidden=6144, ffn_hidden=24576, n_heads=64, n_kv_heads=64, head_dim=96, vocab=51200,
    seq_len=2048, precision="fp16", gbs=4, mbs=4, tp=8, pp=1, vp=1, cp=1, dp=1, sequence_parallel=False, zero=0,
    recompute="full",
)  # fmt: skip
LLAMA = Configuration(
    id="row", stack="nemo-25.04", year=2025, model="Llama 3.1 70b BF16", device="h100-sxm", n_devices=64,
    devices_per_node=8, n_layers=80, hidden=8192, ffn_hidden=28672, n_heads=64, n_kv_heads=8, head_dim=128,
    vocab=128256, seq_len=8192, precision="bf16", gbs=128, mbs=1, tp=4, pp=4, vp=5, cp=2, dp=2,
)  # fmt: skip


def case(row):
    found = reconstruct(row)
    assert isinstance(found, Case), found
    return found


def written(tmp_path, *rows):
    """A measurement file with these rows, each a mapping from column to text."""
    path = tmp_path / "measured.csv"
    columns = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns)
    writer.writeheader()
    writer.writerows(rows)
    path.write_text(text.getvalue())
    return path


CELLS = {"id": "a", "stack": "nemo-25.04", "model": "GPT", "device": "h100-sxm", "n_devices": "8", "seq_len": "2048",
         "gbs": "8"}  # fmt: skip


def test_a_complete_row_is_taken_as_it_is():
    found = case(GPT22B)
    assert found.layout == Layout(tensor_parallel=8, micro_batch_size=4, recompute="full")
    assert (found.job.global_batch_size, found.job.sequence_length, found.job.precision) == (4, 2048, "fp16")
    model = found.job.model
    assert (model.layers, model.hidden, model.ffn_hidden, model.heads, model.vocab) == (48, 6144, 24576, 64, 51200)
    assert (
        not model.gated_mlp and model.norm == "layernorm" and model.tied_embeddings and model.learned_positions == 2048
    )
    assert found.cluster.devices == 8 and found.cluster.device.name == "a100-sxm-80gb"
    assert set(found.filled) <= {"generation", "fabric"}


def test_what_is_blank_is_filled_from_the_framework_and_noted():
    found = case(LLAMA)
    assert found.layout.zero_stage == 1 and found.layout.shard_group == 4 and found.layout.sequence_parallel
    assert found.layout.schedule == "interleaved_1f1b" and found.layout.virtual_stages == 5
    assert found.job.model.gated_mlp and not found.job.model.tied_embeddings
    filled = {name: each.value for name, each in found.filled.items()}
    assert filled["zero"] == 1 and filled["shard_group"] == 4 and filled["sequence_parallel"] is True
    assert filled["recompute"] == "none"
    assert "NeMo" in found.filled["zero"].source


def test_the_same_row_of_another_framework_is_filled_in_another_way():
    found = case(replace(LLAMA, stack="torchtitan-2025"))
    assert found.layout.zero_stage == 3
    found = case(replace(LLAMA, stack="megatron-2021", year=2021, device="a100-sxm-80gb", cp=1, dp=4))
    assert found.layout.zero_stage == 0 and found.layout.shard_group == 1 and not found.layout.sequence_parallel


def test_the_dimensions_of_a_known_model_come_from_the_catalog():
    row = replace(LLAMA, model="LLAMA3.1_70B", n_layers=None, hidden=None, ffn_hidden=None, n_heads=None,
                  n_kv_heads=None, head_dim=None, vocab=None)  # fmt: skip
    model = case(row).job.model
    expected = case(LLAMA).job.model
    assert replace(model, name=expected.name) == expected
    assert case(row).filled["n_kv_heads"].value == 8


def test_a_proxy_with_fewer_layers_keeps_its_own_layers():
    model = case(replace(LLAMA, n_layers=8, pp=1, vp=1, dp=8, ffn_hidden=None)).job.model
    assert (model.layers, model.ffn_hidden) == (8, 28672)


def test_dimensions_without_a_catalog_model_follow_the_family():
    row = replace(GPT22B, ffn_hidden=None, n_kv_heads=None, head_dim=None, vocab=None)
    found = case(row)
    model = found.job.model
    # 50257 padded to a multiple of 128 x 8.
    assert (model.ffn_hidden, model.kv_heads, model.head_dim, model.vocab) == (24576, 64, 96, 51200)
    assert {"ffn_hidden", "n_kv_heads", "head_dim", "vocab"} <= set(found.filled)


@pytest.mark.parametrize(
    ("name", "gated", "tied"),
    [("LLAMA3_70B", True, False), ("Qwen2.5 7B", True, False), ("InternLM-7B", True, False), ("GPT5B", False, True),
     ("NeMo Megatron 24.11 BF16", False, True), ("MT-NLG 530B", False, True), ("Nemotron4 340b", False, False),
     ("nanotron-llama-1B", True, True), ("nanotron-llama-8B", True, False)],
)  # fmt: skip
def test_the_family_follows_from_the_name(name, gated, tied):
    assert (family(name).gated_mlp, family(name).tied_embeddings) == (gated, tied)


@given(blank=st.sampled_from(["tp", "pp", "dp"]), degrees=st.tuples(*[st.sampled_from([1, 2, 4])] * 3))
def test_one_blank_degree_follows_from_the_others(blank, degrees):
    tp, pp, dp = degrees
    row = replace(GPT22B, tp=tp, pp=pp, dp=dp, n_devices=tp * pp * dp, gbs=64, mbs=1)
    found = case(replace(row, **{blank: None}))
    assert found.layout.degrees == (pp, dp, 1, tp)
    assert found.filled[blank].value == getattr(row, blank)


def test_interleaving_without_a_number_takes_the_smallest_that_divides_the_layers():
    row = replace(GPT22B, n_layers=105, n_devices=56, pp=7, vp=None, schedule="interleaved_1f1b", gbs=56, mbs=1)
    # 15 layers a stage: 3 chunks of 5.
    assert case(row).layout.virtual_stages == 3


def test_torchtitan_takes_as_many_micro_batches_as_stages():
    row = replace(LLAMA, stack="torchtitan-2024", year=2024, tp=2, pp=8, vp=1, cp=1, dp=4, mbs=None, gbs=128)
    assert case(row).layout.micro_batch_size == 4


@pytest.mark.parametrize(
    ("change", "reason"),
    [({"task": "lora"}, "task lora"), ({"n_experts": 8}, "experts_per_token"), ({"model": "DeepSeek-V3"}, "latent"),
     ({"schedule": "zb-v"}, "schedule zb-v"), ({"precision": "nvfp4"}, "precision nvfp4"),
     ({"recompute": "selective:mlp"}, "selective:mlp"), ({"recompute": "full:5"}, "full:5"),
     ({"tp": None, "pp": None}, "layout is not stated"), ({"dp": 4}, "not the number of devices"),
     ({"device": "abacus"}, "'abacus' is not in the catalog"), ({"gbs": None}, "global batch"),
     ({"seq_len": None}, "sequence length"), ({"n_layers": None, "model": "GPT"}, "architecture"),
     ({"gbs": 1}, "smaller than mbs x dp"), ({"n_kv_heads": 7}, "kv_heads"), ({"n_devices": None}, "devices")],
)  # fmt: skip
def test_what_cannot_be_priced_is_skipped_with_its_reason(change, reason):
    found = reconstruct(replace(LLAMA, **change))
    assert isinstance(found, Skip)
    assert reason in found.reason


def test_a_precision_that_the_device_lacks_is_infeasible():
    row = Measurement(configuration=replace(GPT22B, precision="fp8"), measured=Measured())
    (result,) = validate([row]).rows
    assert result.status == "infeasible" and "fp8" in result.reason and result.predicted_step_time_s is None


def test_mxfp8_is_priced_as_fp8_and_says_so():
    found = case(replace(LLAMA, precision="mxfp8"))
    assert found.job.precision == "fp8" and "mxfp8" in found.filled["precision"].source


def test_a_stack_that_is_not_known_takes_the_nearest_generation():
    assert (
        case(replace(LLAMA, stack="megatron-core-next", year=None)).filled["generation"].value == "megatron-core-2025"
    )
    assert case(replace(GPT22B, stack="somebody-2021", year=2021)).filled["generation"].value == "megatron-2021"


@pytest.mark.parametrize(
    ("text", "expected"),
    [("not stated", None), ("NVLINK Gen4 900 GB/s + NVSWITCH Gen3; N/A", None), ("single node NVLink", None),
     ("Selene: DGX A100 nodes, 8x A100 80GB SXM, NVLink; 8x Mellanox 200Gb/s HDR IB HCAs per node", (8, 200, False)),
     ("4x100Gb RoCE per node", (4, 100, True)), ("DGX A100, NVLink; 8x HDR IB", (0, 200, False)),
     ("4 OmniPath links per node (100 Gb/s class)", (4, 100, False)), ("RDMA 400 Gb/s per GPU", (8, 400, False)),
     ("InfiniBand Quantum (400G/GPU)", (8, 400, False)), ("400 Gbps inter-node", (1, 400, False)),
     ("NVLink intra, IB NDR 400Gbps inter", (0, 400, False)), ("RoCEv2 8x400G (CX-7)", (8, 400, True)),
     ("Storage: 2x ConnectX-7 IB NDR 400Gb/s, Compute: 8x ConnectX-7 IB NDR 400Gb/s", (8, 400, False))],
)  # fmt: skip
def test_the_network_is_read_from_the_text(text, expected):
    network = expected and Network(ports=expected[0], gigabits=expected[1], ethernet=expected[2])
    assert stated_network(text, devices=8) == network


def test_a_stated_network_is_used():
    cluster = case(replace(LLAMA, fabric="4x100Gb RoCE per node")).cluster
    assert (cluster.node.nics, cluster.node.nic_bandwidth, cluster.fabric.link_bandwidth) == (4, 12.5e9, 12.5e9)
    assert cluster.fabric.kind == "ethernet"


def test_a_node_is_resized_with_its_network_cards():
    cluster = case(replace(GPT22B, n_devices=2, tp=2)).cluster
    whole = case(GPT22B).cluster
    assert (cluster.devices, cluster.node.devices) == (2, 2)
    assert cluster.node.nics * 4 == whole.node.nics


@settings(deadline=None, max_examples=30)
@given(
    measured=st.builds(
        Measured,
        step_time_s=st.none() | st.floats(1e-3, 1e4),
        tokens_per_s_per_device=st.none() | st.floats(1e-3, 1e6),
        peak_memory_gb=st.none() | st.floats(1e-3, 1e3),
        outcome=st.sampled_from(["", "oom", "oom_or_crash"]),
    ),
    row=st.sampled_from([GPT22B, LLAMA]),
)
def test_no_prediction_depends_on_what_was_measured(measured, row):
    (seen,) = validate([Measurement(configuration=row, measured=measured)]).rows
    (blind,) = validate([Measurement(configuration=row, measured=Measured())]).rows
    assert seen.predicted_step_time_s == blind.predicted_step_time_s
    assert seen.predicted_memory_bytes == blind.predicted_memory_bytes
    assert (seen.fits, seen.status, seen.filled) == (blind.fits, blind.status, blind.filled)


COUNTS = st.none() | st.sampled_from([1, 2, 3, 7, 8, 64, 4096, 2**31 - 1])


@settings(deadline=None, max_examples=300)
@given(
    row=st.sampled_from([GPT22B, LLAMA]),
    counts=st.dictionaries(
        st.sampled_from(["n_layers", "hidden", "ffn_hidden", "n_heads", "n_kv_heads", "head_dim", "vocab", "seq_len",
                         "n_devices", "devices_per_node", "gbs", "mbs", "tp", "pp", "vp", "cp", "dp", "shard_group"]),
        COUNTS, max_size=4,
    ),
    stack=st.sampled_from(["megatron-2021", "torchtitan-2024", "kempnerforge-2026", "unheard-of"]),
    device=st.sampled_from(["a100-sxm-80gb", "gb200", "h100-sxm-94gb", "cpu-core"]),
    zero=st.none() | st.integers(0, 3),
)  # fmt: skip
def test_every_row_is_priced_or_says_why_not(row, counts, stack, device, zero):
    changed = replace(row, **counts, stack=stack, device=device, zero=zero)
    (result,) = validate([Measurement(configuration=changed, measured=Measured())]).rows
    if result.status == "ok":
        assert 0 < result.predicted_step_time_s < float("inf") and 0 < result.predicted_memory_bytes < float("inf")
    else:
        assert result.reason


def test_a_measured_rate_is_a_step_time():
    row = Measurement(configuration=LLAMA, measured=Measured(tokens_per_s_per_device=1024.0))
    assert step_time(row) == 128 * 8192 / (1024 * 64)
    assert step_time(Measurement(configuration=LLAMA, measured=Measured())) is None


def fixed_score(*seconds):
    """A stand-in for the estimate that answers with these step times, in order, and 10 GB, of which 2 are reserve."""
    times = iter(seconds)

    def answer(job, cluster, layout):
        memory = {**dict.fromkeys(MEMORY_KINDS, 0.0), "weights": 8e9, "reserve": 2e9}
        estimate = StepEstimate(
            step_time=next(times), tokens_per_second=1.0, devices=1, model_flop=1.0, mfu=0.5, hfu=0.5, breakdown={},
            memory=memory, capacity=80e9, estimates=0,
        )  # fmt: skip
        return Candidate(layout=layout, estimate=estimate)

    return answer


def test_errors_by_hand():
    measured = [1.0, 2.0, 3.0, 4.0]
    rows = [
        Measurement(
            configuration=replace(GPT22B, id=str(t), stack="megatron-2022" if t < 4 else "megatron-2021"),
            measured=Measured(step_time_s=t, peak_memory_gb=10.0),
        )
        for t in measured
    ]
    report = validate(rows, fixed_score(1.1, 1.6, 3.9, 4.0))
    # Errors +10%, -20%, +30%, 0.
    assert report.time.count == 4
    assert report.time.median == pytest.approx(0.15)
    assert report.time.p90 == pytest.approx(0.27)
    assert report.time.bias == pytest.approx(0.05)
    assert report.time.rank_correlation == pytest.approx(1.0)
    assert report.time_by_stack["megatron-2022"].median == pytest.approx(0.20)
    assert report.time_by_stack["megatron-2021"].rank_correlation is None
    # The allocator does not see the reserve: 8 GB against 10.
    assert report.memory.bias == pytest.approx(-0.2)
    assert (report.fit.ran, report.fit.ran_and_fits, report.fit.failed) == (4, 4, 0)


def test_memory_of_the_whole_device_includes_the_reserve():
    row = Measurement(
        configuration=replace(GPT22B, stack="megatron-deepspeed-2022"), measured=Measured(peak_memory_gb=10)
    )
    (result,) = validate([row], fixed_score(1.0)).rows
    assert (result.measured_memory_bytes, result.predicted_memory_bytes) == (10e9, 10e9)


def test_the_unit_of_memory_is_the_stated_one_or_the_frameworks():
    def bytes_of(stack, unit):
        row = Measurement(
            configuration=replace(GPT22B, stack=stack), measured=Measured(peak_memory_gb=1.0, memory_unit=unit)
        )
        return validate([row], fixed_score(1.0)).rows[0].measured_memory_bytes

    assert bytes_of("mcore-ci", None) == 2**30
    assert bytes_of("mcore-ci", "GB") == 1e9
    assert bytes_of("bridge-2025", None) == 1e9


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=3, max_size=30))
def test_rank_correlation_is_spearmans(pairs):
    a, b = np.array(pairs, dtype=float).T
    found = rank_correlation(a, b)
    if len(set(a)) == 1 or len(set(b)) == 1:
        assert found is None
    else:
        assert found == pytest.approx(spearmanr(a, b).statistic)


def test_all_faults_of_a_file_come_at_once(tmp_path):
    bad = {
        **CELLS,
        "gbs": "eight",
        "tp": "0",
        "zero": "4",
        "step_time_s": "-1",
        "sequence_parallel": "maybe",
        "speed": "1",
    }
    path = written(tmp_path, bad, {**CELLS, "id": "", "gbs": "1.5", "n_devices": "99999999999"})
    with pytest.raises(SpecError) as raised:
        read_measurements(path)
    assert raised.value.source == str(path)
    assert [fault.path for fault in raised.value.faults] == [
        "header", "line 2, gbs", "line 2, tp", "line 2, zero", "line 2, step_time_s", "line 2, sequence_parallel",
        "line 3, n_devices", "line 3, gbs",
    ]  # fmt: skip
    assert "unknown column 'speed'" in str(raised.value)


def test_missing_columns_and_cells_are_named(tmp_path):
    path = written(tmp_path, {k: v for k, v in CELLS.items() if k not in ("gbs", "stack")})
    with pytest.raises(SpecError) as raised:
        read_measurements(path)
    found = [(fault.path, fault.found) for fault in raised.value.faults]
    assert found == [("header", "no column 'stack'"), ("header", "no column 'gbs'"), ("line 2, stack", "nothing")]


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"", "an empty file"), (b"id,id\n", "column 'id' twice"), (b"id,stack\na,b,c\n", "3 cells"),
     (b"\xff\xfe", "not UTF-8"), (b'id,stack\n"a', "unexpected end of data")],
)  # fmt: skip
def test_a_file_that_is_no_table(tmp_path, content, message):
    path = tmp_path / "bad.csv"
    path.write_bytes(content)
    with pytest.raises(SpecError, match=message):
        read_measurements(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(SpecError, match=r"absent\.csv"):
        read_measurements(tmp_path / "absent.csv")


def test_a_byte_order_mark_blank_lines_and_whole_floats_are_read(tmp_path):
    path = written(tmp_path, {**CELLS, "tp": "8.0", "vp": "max (each layer a chunk)", "n_layers": "22", "pp": "8"})
    path.write_text("\ufeff" + path.read_text() + "\n,,\n", encoding="utf-8")
    (row,) = read_measurements(path)
    # 22 layers over 8 stages: at most 3 a stage.
    assert (row.configuration.tp, row.configuration.vp) == (8, 3)


def test_every_column_of_the_shipped_tables_has_a_meaning():
    for name in ("training", "small_runs", "layout_sweep", "small_models_memory", "heterogeneous"):
        rows = read_measurements(shipped(name))
        assert len({row.configuration.id for row in rows}) == len(rows) > 100
    assert "n_layers" in COLUMNS


def test_defaults_name_generations_of_the_catalog_and_have_sources():
    for row in _defaults():
        assert row.source
        if row.field == "generation":
            assert catalog.stack(row.value).name == row.value
    for field in ("zero", "sequence_parallel", "mbs", "precision", "recompute", "overlap", "memory_unit", "vocab"):
        assert default("anything", None, field) is not None


def test_each_published_row_is_predicted_or_says_why_not():
    report = validate(read_measurements(shipped()))
    assert len(report.rows) == 944
    for row in report.rows:
        if row.status == "ok":
            assert row.predicted_step_time_s > 0 and row.predicted_memory_bytes > 0 and row.reason is None
        else:
            assert row.reason and row.predicted_step_time_s is None
    assert report.time.count > 580


def run(capsys, *arguments):
    parser = argparse.ArgumentParser()
    command.configure(parser)
    assert command.run(parser.parse_args([str(argument) for argument in arguments])) == 0
    return capsys.readouterr()


def test_the_command_prints_a_table_of_100_columns(capsys):
    printed = run(capsys)
    assert max(map(len, printed.out.splitlines())) <= 100
    for part in ("megatron-2022", "not predicted:", "task lora", "filled in", "furthest off:"):
        assert part in printed.out


def test_the_command_prints_one_json_document(capsys, tmp_path):
    cells = {**CELLS, "n_layers": "8", "hidden": "1024", "n_heads": "8", "tp": "8", "dp": "1", "step_time_s": "0.5"}
    document = json.loads(run(capsys, written(tmp_path, cells, {**cells, "task": "lora"}), "--json").out)
    ok, skipped = document["rows"]
    assert ok["status"] == "ok" and ok["measured_step_time_s"] == 0.5 and ok["predicted_step_time_s"] > 0
    assert ok["measured_memory_bytes"] is None and ok["fits"] is True and ok["reason"] is None
    assert ok["filled"]["zero"] == {"value": 1, "from": default("nemo-25.04", None, "zero").source}
    assert skipped["status"] == "skipped" and skipped["reason"] == "task lora is not priced"
    assert document["summary"]["step_time"]["count"] == 1
    assert document["summary"]["not_predicted"] == {"task lora is not priced": 1}


def test_an_empty_table_is_no_error(capsys, tmp_path):
    path = tmp_path / "none.csv"
    path.write_text(",".join(CELLS) + "\n")
    assert "0 rows" in run(capsys, path).out
    assert json.loads(run(capsys, path, "--json").out)["rows"] == []


def test_the_plot_is_a_picture_and_overwrites_nothing(capsys, tmp_path):
    cells = {**CELLS, "n_layers": "8", "hidden": "1024", "n_heads": "8", "tp": "8", "dp": "1", "step_time_s": "0.5"}
    path, out = written(tmp_path, cells), tmp_path / "parity.png"
    run(capsys, path, "--plot", out)
    assert out.read_bytes().startswith(b"\x89PNG")
    with pytest.raises(SpecError, match="exists"):
        run(capsys, path, "--plot", out)
    with pytest.raises(SpecError, match=r"\.png, \.pdf, \.svg"):
        run(capsys, path, "--plot", tmp_path / "parity.txt")


COLLECTIVE = {"table_id": "T1", "collective": "all_reduce", "gpu": "H100-80GB SXM (DGX H100)", "n_gpus": "8",
              "n_nodes": "1", "gpus_per_node": "8", "scaleout_fabric": "none (single node)", "size_bytes": "1073741824",
              "time_us": "4000"}  # fmt: skip


def test_collectives_are_recognized_by_their_columns(capsys, tmp_path):
    path = written(tmp_path, COLLECTIVE, {**COLLECTIVE, "collective": "gather"})
    ok, skipped = json.loads(run(capsys, path, "--json").out)["rows"]
    assert ok["key"] == ["T1", "all_reduce", 1073741824]
    assert ok["measured_time_s"] == pytest.approx(4e-3) and 1e-3 < ok["predicted_time_s"] < 10e-3
    assert skipped["predicted_time_s"] is None and "gather" in skipped["reason"]
    assert "all_reduce" in run(capsys, path).out


def test_a_bus_bandwidth_is_a_time(tmp_path):
    row = {**COLLECTIVE, "time_us": "", "busbw_GBps": "480"}
    (result,) = validate_collectives(written(tmp_path, row)).rows
    # 2 x 7/8 x 2^30 / 480 GB/s.
    assert result.measured_time_s == pytest.approx(2 * 7 / 8 * 2**30 / 480e9)


def predicted_collective(tmp_path, **cells):
    (result,) = validate_collectives(written(tmp_path, {**COLLECTIVE, **cells})).rows
    return result.predicted_time_s


def test_a_process_that_starts_every_device_takes_its_time(tmp_path):
    short = {"size_bytes": "1024"}
    assert predicted_collective(tmp_path, **short) < 20e-6
    assert predicted_collective(tmp_path, **short, note="single process, -g 8") == pytest.approx(40e-6)
    assert predicted_collective(tmp_path, note="-g 8") == predicted_collective(tmp_path)


def test_collectives_fill_what_the_row_leaves_open(tmp_path):
    full = predicted_collective(tmp_path, n_gpus="16", n_nodes="2")
    assert predicted_collective(tmp_path, n_gpus="16", n_nodes="", gpus_per_node="") == full
    named = predicted_collective(tmp_path, gpu="A100", scaleup="NVLink3 NVSwitch")
    assert named == predicted_collective(tmp_path, gpu="A100 SXM")


def test_score_takes_every_case_of_a_stack():
    found = case(GPT22B)
    assert score(found.job, found.cluster, found.layout).estimate.step_time > 0
