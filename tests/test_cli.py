"""The command line: what it prints, what it writes, and how it refuses."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from planner import cli
from planner.plan import load_plan

EXAMPLES = Path(__file__).parent.parent / "examples"
LLAMA = str(EXAMPLES / "llama3-70b-64xh100.yaml")
SEVEN_HEADS = """
model: {layers: 4, hidden: 56, ffn_hidden: 64, heads: 7, kv_heads: 7, head_dim: 8, vocab: 256}
cluster: dgx-h100 x 1
training: {global_batch_size: 8, sequence_length: 8, tokens: 1M}
"""


@pytest.fixture(scope="module")
def plan_file(tmp_path_factory) -> str:
    path = tmp_path_factory.mktemp("plan") / "plan.yaml"
    assert cli.main(["search", LLAMA, "--out", str(path), "--json"]) == 0
    return str(path)


@pytest.fixture
def run(capsys, tmp_path, monkeypatch):
    """Run one command in an empty folder: exit code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)

    def call(*words):
        capsys.readouterr()
        code = cli.main([str(word) for word in words])
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return code, out, err

    return call


def job(tmp_path, text=SEVEN_HEADS, **replaced):
    for old, new in replaced.items():
        assert old in text
        text = text.replace(old, new)
    path = tmp_path / "job.yaml"
    path.write_text(text)
    return path


def test_search_shows_a_table_and_writes_the_best_as_a_plan(run):
    code, out, err = run("search", LLAMA)
    assert code == 0 and err == ""
    assert max(map(len, out.splitlines())) <= 100
    for word in ("layout", "step", "MFU", "memory of 80 GB", "1T tokens", "rent", "Why the first is first", "tp4 pp4"):
        assert word in out
    plan = load_plan(Path("plan.yaml"))
    assert plan.layout.world_size == 64 and plan.estimate.fits and len(plan.runners_up) == 4


def test_search_prints_one_json_document_with_the_contract_fields(run):
    code, out, _ = run("search", LLAMA, "--json", "--top", "3")
    document = json.loads(out)
    assert code == 0
    assert set(document) == {"plans", "evaluated", "feasible", "search_seconds", "nearest_misses"}
    times = [each["step_time_s"] for each in document["plans"]]
    assert len(times) == 3 and times == sorted(times)


def test_estimate_has_the_contract_fields_and_its_breakdown_sums_to_the_step(run):
    code, out, _ = run("estimate", LLAMA, "--layout", "tp=8,pp=4,mbs=1", "--json")
    found = json.loads(out)
    assert code == 0
    assert set(found) >= {
        "step_time_s", "tokens_per_s", "tokens_per_s_per_device", "model_tflops_per_device", "mfu", "hfu",
        "breakdown_s", "memory_bytes", "fits", "violations", "layout", "sources",
    }  # fmt: skip
    assert sum(found["breakdown_s"].values()) == pytest.approx(found["step_time_s"])
    memory = dict(found["memory_bytes"])
    assert memory.pop("total") == pytest.approx(sum(memory.values()))
    keys = "tp pp vp cp ep etp dp sp zero shard mbs gbs recompute schedule offload overlap precision"
    assert list(found["layout"]) == list(keys.split(" "))
    assert found["tokens_per_s_per_device"] == pytest.approx(512 * 8192 / found["step_time_s"] / 64)
    assert found["mfu"] == pytest.approx(found["model_tflops_per_device"] / 989.4, rel=2e-3)


def test_estimate_of_a_layout_that_does_not_fit_exits_with_3(run):
    code, out, err = run("estimate", LLAMA, "--layout", "tp=8,pp=1,zero=0", "--json")
    found = json.loads(out)
    assert code == 3 and not found["fits"]
    assert [each["rule"] for each in found["violations"]] == ["memory"]
    assert "does not fit" in err


def test_existing_files_are_kept_unless_the_user_asks(run):
    Path("plan.yaml").write_text("mine")
    code, out, err = run("search", LLAMA)
    assert code == 2 and "--force" in err and out == ""
    assert Path("plan.yaml").read_text() == "mine"
    assert run("search", LLAMA, "--force")[0] == 0
    code, out, _ = run("search", LLAMA)
    assert code == 0 and "plan.yaml is up to date" in out


def test_explain_shows_where_time_and_memory_go_and_other_ways(run, plan_file):
    code, out, _ = run("explain", plan_file)
    assert code == 0 and max(map(len, out.splitlines())) <= 100
    for word in ("where the time goes", "where the memory goes", "Why this layout", "runner-up", "FSDP (ZeRO-3)"):
        assert word in out
    assert "DDP" in out and re.search(r"needs \S+ TB of 80 GB", out)


def test_explain_says_why_not(run, plan_file):
    code, out, _ = run("explain", plan_file, "--why-not", "tp=16")
    assert code == 0 and "slower: tensor-parallel communication" in out
    code, out, _ = run("explain", plan_file, "--why-not", "tp=1,pp=1,cp=1,zero=0")
    assert code == 0 and "No layout" in out and "memory" in out
    code, out, _ = run("explain", plan_file, "--why-not", "tp=3")
    assert code == 0 and "No layout" in out


def test_cost_compares_rent_and_building(run, plan_file):
    code, out, _ = run("cost", plan_file, "--set", "price=2 USD/h")
    assert code == 0 and max(map(len, out.splitlines())) <= 100
    for word in ("rent", "own", "at once", "every month", "Building pays after", "cooling", "given"):
        assert word in out
    document = json.loads(run("cost", LLAMA, "--set", "price=2 USD/h", "--json")[1])
    assert document["rent_usd"] == pytest.approx(2 * document["device_hours"])


@pytest.mark.parametrize("limits, words", [
    ("deadline: 200 d\nbudget: 2M USD\n", ("keeps the deadline", "keeps the budget")),
    ("deadline: 100 d\nbudget: 500k USD\n", ("MISSES the deadline", "EXCEEDS the budget")),
])  # fmt: skip
def test_search_says_whether_deadline_and_budget_hold(run, tmp_path, limits, words):
    path = job(tmp_path, Path(LLAMA).read_text() + limits)
    out = run("search", path)[1]
    assert all(word in out for word in words)


BAD = {
    "seven heads on tp=2": (
        {}, ["estimate", "JOB", "--layout", "tp=2"], ["layout", "7 attention heads", "tp=1"], 2),
    "seven heads on pinned tp=2": (
        {"tokens: 1M}": "tokens: 1M}\nsearch: {tensor_parallel: 2}"}, ["search", "JOB"],
        ["search.tensor_parallel", "7 attention heads", "nearest legal value: 1"], 2),
    "batch that does not divide": (
        {"global_batch_size: 8": "global_batch_size: 10"}, ["estimate", "JOB", "--layout", "dp=8"],
        ["mbs x dp=8", "global batch of 10", "gbs=8"], 2),
    "batch that does not divide over pinned replicas": (
        {"global_batch_size: 8": "global_batch_size: 7", "tokens: 1M}": "tokens: 1M}\nsearch: {data_parallel: 8}"},
        ["search", "JOB"], ["search.data_parallel", "found 8", "nearest legal value: 1"], 2),
    "unknown key": ({"tokens": "tokns"}, ["search", "JOB"], ["training.tokns", "unknown key", "tokens"], 2),
    "bad unit": ({"tokens: 1M": "tokens: 1 MB"}, ["search", "JOB"], ["training.tokens", "1 MB", "1T"], 2),
    "no nodes": ({"x 1": "x 0"}, ["search", "JOB"], ["cluster", "0 nodes", "dgx-h100 x 1"], 2),
    "no pools": ({"dgx-h100 x 1": "{pools: []}"}, ["search", "JOB"], ["cluster.pools", "no nodes"], 2),
    "unknown node": ({"dgx-h100": "dgx-h10"}, ["search", "JOB"], ["cluster", "'dgx-h10'", "dgx-h100"], 2),
    "missing file": ({}, ["search", "jub.yaml"], ["jub.yaml", "no such file", "job.yaml"], 2),
    "folder": ({}, ["search", "."], ["directory"], 2),
    "not a plan": ({}, ["explain", "JOB"], ["schema_version", "plan search"], 2),
    "unknown command": ({}, ["serch", "JOB"], ["serch", "'search'"], 2),
    "unknown option": ({}, ["search", "JOB", "--jsn"], ["--jsn", "--json"], 2),
    "unknown layout key": ({}, ["estimate", "JOB", "--layout", "tq=2"], ["layout.tq", "tp"], 2),
    "unknown target": ({}, ["emit", "PLAN", "--target", "slrm", "--out", "x"], ["--target", "slurm"], 2),
    "unknown assumption": ({}, ["cost", "PLAN", "--set", "elektricity=1 USD/kWh"], ["electricity"], 2),
    "no such folder": ({}, ["search", "JOB", "--out", "nowhere/plan.yaml"], ["nowhere/plan.yaml", "no such"], 2),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input_gets_one_readable_message(run, tmp_path, plan_file, name):
    replaced, words, expected, wanted = BAD[name]
    text = SEVEN_HEADS
    for old, new in replaced.items():
        text = text.replace(old, new)
    path = job(tmp_path, text)
    code, out, err = run(*({"JOB": path, "PLAN": plan_file}.get(word, word) for word in words))
    assert code == wanted and out == ""
    assert all(word in err for word in expected), err


def test_all_faults_of_a_job_come_at_once(run, tmp_path):
    path = job(
        tmp_path, SEVEN_HEADS.replace("tokens", "tokns").replace("x 1", "x 0").replace("heads: 7,", "heads: -7,")
    )
    _, _, err = run("search", path)
    assert all(word in err for word in ("training.tokns", "cluster", "model", str(path)))


@pytest.mark.parametrize("words, expected", [
    (["models"], ["llama3-70b", "70.6B"]),
    (["devices"], ["h100-sxm", "989 TFLOP/s"]),
    (["devices", "h100-sxm"], ["3350 GB/s", "published", "peak_fp8"]),
    (["nodes", "H200"], ["dgx-h200"]),
    (["fabrics"], ["infiniband-ndr", "400 Gb/s"]),
    (["stacks", "megatron-2021"], ["arXiv 2205.05198", "estimate"]),
    (["prices", "lambda", "h100-sxm"], ["gpu_8x_h100_sxm5", "3.99"]),
    (["facilities"], ["electricity", "0.08 USD/kWh"]),
])  # fmt: skip
def test_catalog_lists_and_finds_facts(run, words, expected):
    code, out, _ = run("catalog", *words)
    assert code == 0 and max(map(len, out.splitlines())) <= 100
    assert all(word in out for word in expected)
    rows = json.loads(run("catalog", *words, "--json")[1])
    assert all(row["source"] for row in rows)


def test_catalog_names_what_is_nearest(run):
    assert "h100-sxm" in run("catalog", "devices", "h10-sxm")[2]
    code, _, err = run("catalog", "devises")
    assert code == 2 and "nearest legal value: devices" in err


def test_faults_are_json_where_json_was_asked_for(run, tmp_path):
    code, out, _ = run("search", job(tmp_path, SEVEN_HEADS.replace("tokens", "tokns")), "--json")
    assert code == 2
    assert json.loads(out)["faults"][0]["path"] == "training.tokns"


def test_nothing_feasible_exits_with_3_and_shows_the_nearest_misses(run, tmp_path):
    text = Path(EXAMPLES / "gpt3-175b-64xa100.yaml").read_text().replace("dgx-a100 x 8", "dgx-a100 x 1")
    code, out, _ = run("search", job(tmp_path, text))
    assert code == 3 and "nearest misses" in out and "at most 80 GB" in out
    assert not Path("plan.yaml").exists()
    code, out, _ = run("search", job(tmp_path, text), "--json")
    document = json.loads(out)
    assert code == 3 and document["plans"] == [] and document["nearest_misses"][0]["fits"] is False


def test_help_names_every_command_and_version(run):
    code, out, _ = run("--help")
    assert code == 0 and all(name in out for name in cli.COMMANDS)
    assert run()[0] == 2
    assert re.fullmatch(r"meshwright \d+\.\d+\.\d+\n", run("--version")[1])


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_command_has_help(run, name):
    code, out, _ = run(name, "--help")
    assert code == 0 and f"plan {name}" in out


def test_a_fault_of_ours_exits_with_1(capsys, monkeypatch):
    monkeypatch.setattr("planner.commands.search.load_job", lambda path: 1 / 0)
    assert cli.main(["search", LLAMA]) == 1
    assert "fault of meshwright" in capsys.readouterr().err


def test_planning_does_not_import_torch_or_plotting(tmp_path):
    code = (
        "import sys; from planner import cli; assert not cli.main(['search', sys.argv[1], '--out', sys.argv[2]]);"
        "bad = {'torch', 'matplotlib', 'pandas', 'networkx', 'executor'} & set(sys.modules);"
        "sys.exit(f'imported {bad}' if bad else 0)"
    )
    subprocess.run([sys.executable, "-c", code, LLAMA, str(tmp_path / "plan.yaml")], check=True, capture_output=True)


def test_a_closed_pipe_is_no_error():
    command = [sys.executable, "-c", "from planner.cli import main; raise SystemExit(main())", "catalog", "prices"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.close()
    assert b"Traceback" not in process.stderr.read()
    process.wait()
