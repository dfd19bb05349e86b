"""The plan file: what is written is read back exactly, and what is not a plan is refused with a reason."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from hwmodels.errors import SpecError
from planner.jobfile import load_job
from planner.plan import Plan, dump_plan, load_plan, provenance, write_plan
from planner.search import search

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.yaml"))


def plan_of(path: Path) -> Plan:
    file = load_job(path)
    result = search(file.job, file.cluster, file.search, top=3)
    best, *others = result.candidates
    return Plan(
        job=file.job, cluster=file.cluster, layout=best.layout, estimate=best.estimate, runners_up=tuple(others),
        provenance=provenance("0123456789ab", result.evaluated, result.feasible),
    )  # fmt: skip


@pytest.fixture(scope="module")
def plan() -> Plan:
    return plan_of(EXAMPLES[0])


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_plans_of_all_examples_round_trip_exactly(example, tmp_path):
    plan = plan_of(example)
    write_plan(plan, tmp_path / "plan.yaml")
    assert load_plan(tmp_path / "plan.yaml") == plan


def refused(tmp_path: Path, text: str) -> SpecError:
    path = tmp_path / "plan.yaml"
    path.write_text(text)
    with pytest.raises(SpecError) as caught:
        load_plan(path)
    assert caught.value.source == str(path)
    return caught.value


def changed(plan: Plan, **changes: object) -> str:
    return yaml.safe_dump({**yaml.safe_load(dump_plan(plan)), **changes})


@pytest.mark.parametrize("version", [0, 2, "1", None])
def test_another_schema_version_is_refused(plan, tmp_path, version):
    error = refused(tmp_path, changed(plan, schema_version=version))
    assert [fault.path for fault in error.faults] == ["schema_version"]
    assert error.faults[0].nearest == "1"


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.99])
def test_a_plan_that_breaks_off_is_refused(plan, tmp_path, share):
    text = dump_plan(plan)
    assert refused(tmp_path, text[: int(share * len(text))]).faults


@pytest.mark.parametrize("text", ["", "[]", "plan", "{}", "a: b", "\0"])
def test_what_is_no_plan_is_refused(tmp_path, text):
    assert refused(tmp_path, text).faults


def test_unknown_keys_and_illegal_values_are_reported_together(plan, tmp_path):
    layout = {**yaml.safe_load(dump_plan(plan))["layout"], "tensor_parallel": 0, "tensor_paralel": 2}
    error = refused(tmp_path, changed(plan, layout=layout, sede=1))
    assert {fault.path for fault in error.faults} >= {"sede", "layout.tensor_paralel"}


def test_a_layout_of_another_world_size_is_refused(plan, tmp_path):
    layout = {**yaml.safe_load(dump_plan(plan))["layout"], "data_parallel": 3}
    error = refused(tmp_path, changed(plan, layout=layout))
    assert error.faults[0].path == "layout"


def test_no_plan_file_runs_code(tmp_path):
    assert refused(tmp_path, "!!python/object/apply:os.system ['true']").faults
