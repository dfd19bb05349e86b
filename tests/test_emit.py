"""Launch files: complete, quoted, and accepted by the programs that read them."""

from __future__ import annotations

import re
import shlex
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from planner import cli
from planner.emit import TARGETS
from planner.emit.shell import plain_name
from planner.plan import Plan, load_plan

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.fixture(scope="module")
def plans(tmp_path_factory) -> dict[str, Plan]:
    folder = tmp_path_factory.mktemp("plans")
    for name in ("llama3-70b-64xh100", "tiny-llama-2xcpu"):
        assert cli.main(["search", str(EXAMPLES / f"{name}.yaml"), "--out", str(folder / name), "--json"]) == 0
    return {path.name: load_plan(path) for path in folder.iterdir()}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", ["llama3-70b-64xh100", "tiny-llama-2xcpu"])
def test_scripts_parse_and_carry_the_plan(plans, tmp_path, target, name):
    files = TARGETS[target](plans[name])
    for file, text in files.items():
        (tmp_path / file).write_text(text)
        if file != "plan.yaml":
            subprocess.run(["bash", "-n", str(tmp_path / file)], check=True)
    assert load_plan(tmp_path / "plan.yaml") == plans[name]


def options(script: str) -> list[str]:
    """The words of the torchrun command."""
    command = script[script.index("torchrun \\") :].replace("\\\n", " ")
    return shlex.split(command)


def test_torchrun_starts_one_process_per_device_on_every_node(plans):
    words = options(TARGETS["torchrun"](plans["llama3-70b-64xh100"])["launch.sh"])
    assert {"--nnodes=8", "--nproc-per-node=8", "--node-rank=$NODE_RANK"} <= set(words)
    assert words[-4:] == ["-m", "executor", "plan.yaml", "$@"]
    single = options(TARGETS["torchrun"](plans["tiny-llama-2xcpu"])["launch.sh"])
    assert {"--standalone", "--nproc-per-node=2"} <= set(single)


def test_slurm_asks_for_the_nodes_and_devices_of_the_plan(plans):
    script = TARGETS["slurm"](plans["llama3-70b-64xh100"])["job.sbatch"]
    header = set(re.findall(r"^#SBATCH (\S+)$", script, flags=re.M))
    assert {"--nodes=8", "--ntasks-per-node=1", "--gpus-per-node=8", "--job-name=llama3-70b"} <= header
    assert {"--nnodes=8", "--nproc-per-node=8", "--rdzv-backend=c10d"} <= set(options(script))
    assert "gpus-per-node" not in TARGETS["slurm"](plans["tiny-llama-2xcpu"])["job.sbatch"]


def test_names_from_outside_cannot_leave_their_place(plans, tmp_path):
    plan = plans["tiny-llama-2xcpu"]
    hostile = "x\ntouch hacked; $(touch hacked) `touch hacked` '\"#SBATCH --uid=0"
    plan = replace(plan, job=replace(plan.job, model=replace(plan.job.model, name=hostile)))
    for target in TARGETS.values():
        for name, text in target(plan).items():
            if name == "plan.yaml":
                continue
            code = [line for line in text.splitlines() if not line.startswith("#")]
            assert not any("hacked" in line for line in code)
            assert not any(line.startswith("#SBATCH --uid") for line in text.splitlines())


@pytest.mark.parametrize("name, plain", [("llama3-70b", "llama3-70b"), ("a b/c\n", "a-b-c"), ("--", "meshwright")])
def test_plain_names(name, plain):
    assert plain_name(name) == plain


def test_emit_writes_into_a_new_folder_and_never_over_other_content(plans, tmp_path, capsys):
    plan = tmp_path / "plan.yaml"
    assert cli.main(["search", str(EXAMPLES / "tiny-llama-2xcpu.yaml"), "--out", str(plan), "--json"]) == 0
    command = ["emit", str(plan), "--target", "torchrun", "--out", str(tmp_path / "a" / "b")]
    assert cli.main(command) == 0
    script = tmp_path / "a" / "b" / "launch.sh"
    assert script.stat().st_mode & 0o111
    script.write_text("mine")
    assert cli.main(command) == 2
    assert script.read_text() == "mine"
    assert cli.main([*command, "--force"]) == 0
    assert "torchrun" in script.read_text()
