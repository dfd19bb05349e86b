"""Job files: the format of the manual, every fault at once with its path, and what a search section means."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given

from hwmodels.errors import Fault, SpecError
from hwmodels.loading import unstructure
from hwmodels.models import model
from planner.jobfile import DEFAULT_STACK, load_job, read_job
from planner.space import SearchSpec
from tests.strategies import plain_data
from tests.worlds import SMALL, round_cluster

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.yaml"))

COMPLETE = """
model: llama3-70b                 # catalog name | path to a Hugging Face config.json | an inline spec
cluster: dgx-h100 x 8             # catalog node x count | path to cluster.yaml | an inline spec
training:
  global_batch_size: 512          # sequences
  sequence_length: 8192
  tokens: 1T
  precision: bf16                 # bf16 | fp16 | fp8 | fp32
  optimizer: adamw
search:                           # all optional: what may vary; a scalar pins, a list restricts
  tensor_parallel: [1, 2, 4, 8]
  objective: step_time            # step_time | cost | energy | time_to_train
deadline: 30 d
budget: 2M USD
"""


def small(**changes: Any) -> dict[str, Any]:
    """The content of a job file of a small world, with `changes` to its sections; None leaves a key out."""
    training = {"global_batch_size": 64, "sequence_length": 1024}
    data = {"model": unstructure(SMALL), "cluster": round_cluster(), "training": training, **changes}
    return {key: value for key, value in data.items() if value is not None}


def search_of(**section: Any) -> SearchSpec:
    return read_job(small(search=section), Path()).search


def faults_of(data: object, base_dir: Path = Path()) -> dict[str, Fault]:
    with pytest.raises(SpecError) as caught:
        read_job(data, base_dir)
    faults = {fault.path: fault for fault in caught.value.faults}
    assert len(faults) == len(caught.value.faults), "a path is blamed twice"
    return faults


def test_the_file_of_the_manual(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(COMPLETE)
    found = load_job(path)
    assert found.job.model == model("llama3-70b")
    assert found.cluster.devices == 64
    assert (found.job.global_batch_size, found.job.sequence_length, found.job.tokens) == (512, 8192, 1e12)
    assert (found.job.precision, found.job.optimizer, found.job.stack.name) == ("bf16", "adamw", DEFAULT_STACK)
    assert (found.job.deadline, found.job.budget) == (30 * 86400, 2e6)
    assert found.search == SearchSpec(tensor_parallel=(1, 2, 4, 8))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_loads(path: Path) -> None:
    found = load_job(path)
    devices = int("".join(filter(str.isdigit, path.stem.rsplit("-", 1)[1].split("x")[0])))
    assert found.cluster.devices == devices
    assert found.job.model.name in path.stem


def test_what_is_left_out_takes_its_default() -> None:
    found = read_job(small(search=None), Path())
    assert (found.job.tokens, found.job.deadline, found.job.budget) == (0.0, 0.0, 0.0)
    assert found.search == SearchSpec()
    assert read_job(small(deadline=None), Path()) == read_job({**small(), "deadline": None, "search": None}, Path())


def test_another_stack_by_name() -> None:
    training = {"global_batch_size": 64, "sequence_length": 1024, "stack": "megatron-2021"}
    assert read_job(small(training=training), Path()).job.stack.name == "megatron-2021"


def test_a_scalar_pins_and_a_list_restricts() -> None:
    found = search_of(tensor_parallel=2, pipeline_parallel=[1, 4], sequence_parallel=False, recompute="full")
    assert found == SearchSpec(
        tensor_parallel=(2,), pipeline_parallel=(1, 4), sequence_parallel=(False,), recompute=("full",)
    )
    assert search_of(recompute=["none", "selective"]).recompute == ("none", "selective")
    assert search_of(objective="cost").objective == "cost"
    assert search_of(micro_batch_size=None) == SearchSpec()
    assert search_of(micro_batch_size=[2, 1, 2]).micro_batch_size == (2, 1)


def test_faults_of_the_search_section() -> None:
    faults = faults_of(small(search={
        "tensor_parallel": [1, 0, "two"], "pipeline_parallel": 2.0, "micro_batch_size": [], "zero_stage": [1, "x"],
        "recompute": "selectiv", "sequence_parallel": ["yes"], "tensor_paralel": 2, "objective": "speed",
    }))  # fmt: skip
    assert faults["search.tensor_parallel[2]"].legal == "a whole number"
    assert faults["search.pipeline_parallel"] == Fault(
        path="search.pipeline_parallel", found="2.0", legal="a whole number", nearest="2"
    )
    assert faults["search.micro_batch_size"].found == "an empty list"
    assert faults["search.recompute"].nearest == "selective"
    assert faults["search.tensor_paralel"].nearest == "tensor_parallel"
    assert set(faults) >= {"search.zero_stage[1]", "search.sequence_parallel[0]", "search.objective"}
    assert len(faults) == 8


def test_values_out_of_range_name_their_position() -> None:
    faults = faults_of(small(search={"tensor_parallel": [1, 0], "micro_batch_size": -1, "zero_stage": 7}))
    assert set(faults) == {"search.tensor_parallel[1]", "search.micro_batch_size", "search.zero_stage"}
    assert faults["search.zero_stage"].nearest == "3"


def test_all_faults_of_all_sections_at_once() -> None:
    faults = faults_of({
        "model": "lama3-70b",
        "cluster": "dgx-h10 x 8",
        "training": {"global_batch_size": 1.5, "tokens": "1 TB", "precision": "bf61", "optimiser": "adamw"},
        "serch": {},
        "search": {"tensor_parallel": [1, "x"]},
        "deadline": "30",
        "budget": "2M",
    })  # fmt: skip
    assert faults["model"].nearest == "llama3-70b"
    assert "cluster" in faults
    assert faults["training.sequence_length"].found == "nothing"
    assert faults["training.precision"].nearest == "bf16"
    assert faults["training.optimiser"].nearest == "optimizer"
    assert faults["serch"].nearest == "search"
    assert set(faults) >= {"training.global_batch_size", "training.tokens", "search.tensor_parallel[1]"}
    assert set(faults) >= {"deadline", "budget"}
    assert len(faults) == 11


def test_faults_that_need_two_sections() -> None:
    data = small(model="gpt2", training={"global_batch_size": 0, "sequence_length": 2048})
    assert set(faults_of(data)) == {"training.global_batch_size"}
    faults = faults_of(small(model="gpt2", training={"global_batch_size": 8, "sequence_length": 2048, "stack": "x"}))
    assert faults["training.sequence_length"].nearest == "1024"
    assert set(faults) == {"training.sequence_length", "training.stack"}


@pytest.mark.parametrize("key", ["model", "cluster", "training"])
def test_a_section_that_is_missing_is_required(key: str) -> None:
    legal = "a value (this key is required)"
    assert faults_of(small(**{key: None})) == {key: Fault(path=key, found="nothing", legal=legal)}


@pytest.mark.parametrize("value", [2**31, 10**30])
def test_batches_beyond_64_bits_are_refused(value: int) -> None:
    training = {"global_batch_size": value, "sequence_length": value}
    faults = faults_of(small(training=training))
    assert set(faults) == {"training.global_batch_size", "training.sequence_length"}


@pytest.mark.parametrize("data", [None, [], "text", 3])
def test_what_is_no_job_file_is_refused(data: object) -> None:
    assert "model" in faults_of(data)[""].legal


@pytest.mark.parametrize("value", [3, [], "text", True])
@pytest.mark.parametrize("key", ["training", "search"])
def test_a_section_must_be_a_mapping(key: str, value: object) -> None:
    assert set(faults_of(small(**{key: value}))) == {key}


def test_paths_start_from_the_folder_of_the_job_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "jobs").mkdir()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "config.json").write_text(json.dumps({"model_type": "gpt2", "n_layer": 3}))
    cluster = unstructure(round_cluster())
    (tmp_path / "jobs" / "cluster.yaml").write_text(yaml.safe_dump(cluster))
    job = {**small(), "model": "../mine/config.json", "cluster": "cluster.yaml"}
    (tmp_path / "jobs" / "job.yaml").write_text(yaml.safe_dump(job))
    monkeypatch.chdir(tmp_path / "mine")
    found = load_job(Path("../jobs/job.yaml"))
    assert found.job.model.layers == 3
    assert found.cluster == round_cluster()


def test_faults_of_a_file_that_is_referred_to_name_it(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "gpt2", "n_layer": 0}))
    (tmp_path / "broken.json").write_text("{")
    faults = faults_of(small(model="config.json"), tmp_path)
    assert faults["model.n_layer"].found == f"0 in {tmp_path / 'config.json'}"
    assert str(tmp_path / "broken.json") in faults_of(small(model="broken.json"), tmp_path)["model.line 1"].found


@given(training=plain_data(), search=plain_data(), model=plain_data(), deadline=plain_data())
def test_any_content_is_a_job_or_a_spec_error(training: Any, search: Any, model: Any, deadline: Any) -> None:
    data = {**small(), "training": training, "search": search, "model": model, "deadline": deadline}
    assert faults_of(data)
    for key, value in (("training", training), ("search", search), ("model", model), ("deadline", deadline)):
        try:
            read_job({**small(), key: value}, Path())
        except SpecError as error:
            assert all(fault.path.startswith(key) for fault in error.faults)


def test_an_inline_cluster() -> None:
    assert read_job(small(cluster=unstructure(round_cluster())), Path()).cluster == round_cluster()


def test_the_error_names_the_job_file(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text("model: gpt2\n")
    with pytest.raises(SpecError) as caught:
        load_job(path)
    assert caught.value.source == str(path)
    path.write_text("model: gpt2\nmodel: gpt2-xl\n")
    with pytest.raises(SpecError, match="appears twice"):
        load_job(path)
