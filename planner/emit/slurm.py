"""Slurm: one batch script that starts one torchrun on every node.

Source: Slurm documentation, sbatch and srun; torch.distributed.run (torch 2.13), options of the command line.
"""

from __future__ import annotations

from planner.emit.shell import EXECUTOR, PLAN_FILE, PORT, comment, description, plain_name, word
from planner.plan import Plan, dump_plan


def files(plan: Plan) -> dict[str, str]:
    """The plan, and a batch script that trains it; the script's arguments go to the executor."""
    return {PLAN_FILE: dump_plan(plan), "job.sbatch": _script(plan)}


def _script(plan: Plan) -> str:
    node = plan.cluster.node
    accelerators = [f"#SBATCH --gpus-per-node={node.devices}"] if node.device.kind == "gpu" else []
    lines = [
        "#!/usr/bin/env bash",
        f"#SBATCH --job-name={plain_name(plan.job.model.name)}",
        f"#SBATCH --nodes={plan.cluster.nodes}",
        "#SBATCH --ntasks-per-node=1",
        *accelerators,
        "#SBATCH --exclusive",
        "#SBATCH --output=%x-%j.log",
        *description(plan),
        comment("Usage, in the folder of this file: sbatch job.sbatch --data FILE..."),
        "set -euo pipefail",
        'cd "$SLURM_SUBMIT_DIR"',
        'export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"',
        'head_node=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | sed -n 1p)',
        "srun --kill-on-bad-exit=1 torchrun \\",
        f"  --nnodes={word(plan.cluster.nodes)} \\",
        f"  --nproc-per-node={word(node.devices)} \\",
        '  --rdzv-id="$SLURM_JOB_ID" \\',
        "  --rdzv-backend=c10d \\",
        f'  --rdzv-endpoint="$head_node:${{MASTER_PORT:-{PORT}}}" \\',
        f'  -m {word(EXECUTOR)} {word(PLAN_FILE)} "$@"',
    ]
    return "\n".join(lines) + "\n"
