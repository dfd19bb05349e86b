"""torchrun by hand: one script that is started on every node.

Source: torch.distributed.run (torch 2.13), options of the command line.
"""

from __future__ import annotations

from planner.emit.shell import EXECUTOR, PLAN_FILE, PORT, comment, description, word
from planner.plan import Plan, dump_plan


def files(plan: Plan) -> dict[str, str]:
    """The plan, and a script that trains it; its arguments go to the executor."""
    return {PLAN_FILE: dump_plan(plan), "launch.sh": _script(plan)}


def _script(plan: Plan) -> str:
    nodes = plan.cluster.nodes
    usage = "./launch.sh --data FILE..." if nodes == 1 else "MASTER_ADDR=HOST NODE_RANK=0 ./launch.sh --data FILE..."
    lines = [
        "#!/usr/bin/env bash",
        *description(plan),
        comment(f"Usage{'' if nodes == 1 else f', on each of {nodes} nodes'}: {usage}"),
        "set -euo pipefail",
        'cd "$(dirname "${BASH_SOURCE[0]}")"',
        'export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"',
        *(_checks(nodes) if nodes > 1 else []),
        "exec torchrun \\",
        *(f"  {option} \\" for option in _options(plan)),
        f'  -m {word(EXECUTOR)} {word(PLAN_FILE)} "$@"',
    ]
    return "\n".join(lines) + "\n"


def _checks(nodes: int) -> list[str]:
    return [
        ': "${MASTER_ADDR:?the host name of node 0}"',
        f': "${{NODE_RANK:?the number of this node, 0 to {nodes - 1}}}"',
    ]


def _options(plan: Plan) -> list[str]:
    per_node = f"--nproc-per-node={word(plan.cluster.node.devices)}"
    if plan.cluster.nodes == 1:
        return ["--standalone", per_node]
    return [
        f"--nnodes={word(plan.cluster.nodes)}",
        per_node,
        '--node-rank="$NODE_RANK"',
        '--master-addr="$MASTER_ADDR"',
        f'--master-port="${{MASTER_PORT:-{PORT}}}"',
    ]
