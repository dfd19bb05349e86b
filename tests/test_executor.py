"""The executor trains in every layout exactly as one process does, and refuses what it cannot run."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from executor.measurement import RunRecord, StepRecord, append_measurement
from executor.preflight import preflight
from hwmodels.errors import SpecError
from hwmodels.layout import Layout
from planner import cli
from planner.measurements import read_measurements
from planner.plan import Plan, load_plan
from planner.validation import validate
from tests.executor_cases import CASES

ROOT = Path(__file__).parent.parent
TEXT = ROOT / "ARCHITECTURE.md"
TOLERANCE = 1e-9
"""For fp64; measured differences are below 1e-13."""


def spawn(world: int, folder: Path) -> dict[str, dict[str, float]]:
    out = folder / f"{world}.json"
    command = [
        sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(world), "-m",
        "tests.executor_worker", str(out),
    ]  # fmt: skip
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(out.read_text())


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> dict[str, dict[str, float]]:
    folder = tmp_path_factory.mktemp("parity")
    return spawn(2, folder) | spawn(4, folder)


@pytest.mark.parametrize("name", [case.name for case in CASES])
def test_layout_trains_as_one_process_does(results, name):
    found = results[name]
    assert found["smallest_norm"] > 0.05, "clipping has to act"
    for kind in ("loss", "norm", "gradients", "parameters"):
        assert found[kind] < TOLERANCE, kind


def test_cases_cover_every_technique_and_their_pairs():
    layouts = [case.layout for case in CASES]
    names = " ".join(case.name for case in CASES)
    assert len(layouts) == len({case.name for case in CASES}) >= 90
    for kind in ("ddp", "zero1", "zero2", "zero3"):
        for other in ("tp", "tp-sp", "pp", "interleaved"):
            assert f"{kind} x {other} " in names
    assert {layout.recompute for layout in layouts} == {"none", "selective", "full"}
    assert {layout.zero_stage for layout in layouts} == {0, 1, 2, 3}


@pytest.fixture(scope="module")
def plan_file(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("plan") / "tiny.yaml"
    assert cli.main(["search", str(ROOT / "examples" / "tiny-llama-2xcpu.yaml"), "--out", str(path), "--json"]) == 0
    return path


@pytest.fixture(scope="module")
def plan(plan_file) -> Plan:
    return load_plan(plan_file)


def test_plan_run_learns_and_writes_a_measurement_that_validates(plan_file, tmp_path, capfd):
    out = tmp_path / "m.csv"
    words = ["run", str(plan_file), "--data", str(TEXT), "--steps", "12", "--out", str(out), "--json"]
    assert cli.main(words) == 0
    stdout, stderr = capfd.readouterr()
    found = json.loads(stdout)
    assert found["last_loss"] < found["first_loss"] - 0.5
    assert found["measured"]["step_time_s"] > 0 and found["predicted"]["step_time_s"] > 0
    assert "planned" in stderr and "12/12" in stderr
    row = validate(read_measurements(out)).rows[0]
    assert row.status == "ok"
    assert row.measured_step_time_s == pytest.approx(found["measured"]["step_time_s"], rel=1e-5)
    # The same job, priced from the row alone, as when it was planned.
    assert row.predicted_step_time_s == pytest.approx(found["predicted"]["step_time_s"], rel=1e-6)


def test_plan_run_names_bad_input_and_exits_with_2(plan_file, tmp_path, capfd):
    missing, other = tmp_path / "nothing.txt", tmp_path / "other.csv"
    other.write_text("a,b\n")
    assert cli.main(["run", str(plan_file), "--data", str(missing), "--out", str(other)]) == 2
    stderr = capfd.readouterr().err
    assert f"{missing}: no such file" in stderr and f"{other}: a file of other columns" in stderr
    assert "Traceback" not in stderr
    assert other.read_text() == "a,b\n"


def test_a_loss_that_is_no_number_ends_the_run_with_a_reason(plan_file, capfd):
    words = ["run", str(plan_file), "--data", str(TEXT), "--steps", "5", "--learning-rate", "1e30"]
    assert cli.main(words) == 1
    stderr = capfd.readouterr().err
    assert "the loss of step" in stderr and "--learning-rate" in stderr and "Traceback" not in stderr


def test_plans_of_several_nodes_are_sent_to_emit(tmp_path, capsys):
    path = tmp_path / "plan.yaml"
    cli.main(["search", str(ROOT / "examples" / "llama3-70b-64xh100.yaml"), "--out", str(path), "--json"])
    assert cli.main(["run", str(path), "--data", str(TEXT)]) == 2
    assert "plan emit" in capsys.readouterr().err


def faults(plan: Plan, processes: int | None = None, data: tuple[Path, ...] = (TEXT,)) -> set[str]:
    return {fault.path for fault in preflight(plan, data, None, processes)}


def test_preflight_finds_all_faults_at_once(plan, tmp_path):
    assert faults(plan) == faults(plan, processes=2) == set()
    job = replace(plan.job, precision="fp8", model=replace(plan.job.model, vocab=100, layers=3), global_batch_size=7)
    layout = Layout(pipeline_parallel=2, data_parallel=2, context_parallel=2, expert_parallel=2)
    wrong = replace(plan, job=job, layout=layout)
    short = tmp_path / "short.txt"
    short.write_text("short")
    assert faults(wrong, processes=4, data=(short,)) == {
        "processes", "job.precision", "job.model.vocab", "job.global_batch_size", "job.model.layers",
        "layout.context_parallel", "layout.expert_parallel", "--data",
    }  # fmt: skip


def test_measurements_are_appended_and_never_replace_other_files(plan, tmp_path):
    steps = tuple(StepRecord(seconds=s, loss=1.0, gradient_norm=1.0) for s in (9.0, 8.0, 7.0, 2.0, 1.0, 3.0))
    record = RunRecord(steps=steps, peak_memory=5e8, software="torch")
    assert record.warm_up == 3 and record.step_time == 2.0
    out = tmp_path / "m.csv"
    append_measurement(out, plan, record)
    append_measurement(out, plan, record)
    rows = read_measurements(out)
    assert len(rows) == 2
    assert rows[0].measured.step_time_s == 2.0 and rows[0].measured.peak_memory_gb == 0.5
    assert rows[0].measured.tokens_per_s_per_device == 8 * 128 / 2.0 / 2


def test_a_damaged_plan_is_refused_before_anything_starts(plan_file, tmp_path):
    broken = tmp_path / "plan.yaml"
    broken.write_text(plan_file.read_text()[:700])
    with pytest.raises(SpecError):
        load_plan(broken)
    assert cli.main(["run", str(broken), "--data", str(TEXT)]) == 2
