"""The rules that a layout must keep. Each is one function over columns; `RULES` is all of them.

A rule answers with a mask and, for a row that breaks it, what was found, what is legal and the nearest legal value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hwmodels.divisors import nearest_divisor
from hwmodels.job import TrainingJob
from hwmodels.layout import SCHEDULES
from hwmodels.layout_table import Bools, Ints, LayoutTable
from hwmodels.machine import Cluster
from hwmodels.units import show
from planner.candidate import Violation
from sim.estimate import StepTable


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Which rows keep a rule, and the violation of a row that does not."""

    keeps: Bools
    explain: Callable[[int], Violation]


Rule = Callable[[TrainingJob, Cluster, LayoutTable], Verdict]


def devices_used(job: TrainingJob, cluster: Cluster, table: LayoutTable) -> Verdict:
    """tp x pp x dp x cp is the number of devices."""

    def explain(row: int) -> Violation:
        others = int(table.world_size[row] // table.data_parallel[row])
        legal = f"tp x pp x dp x cp = {cluster.devices} devices"
        nearest = f"dp={cluster.devices // others}" if cluster.devices % others == 0 else None
        return Violation(rule="devices", found=f"{table.world_size[row]} ranks", legal=legal, nearest=nearest)

    return Verdict(keeps=table.world_size == cluster.devices, explain=explain)


def heads_divide(job: TrainingJob, cluster: Cluster, table: LayoutTable) -> Verdict:
    """tp divides the attention heads. Source: Megatron-LM, transformer_config.py."""
    return _divides("heads", "tp", table.tensor_parallel, "attention heads", job.model.heads)


def kv_heads_divide(job: TrainingJob, cluster: Cluster, table: LayoutTable) -> Verdict:
    """tp divides the key-value heads, or is a multiple of them (they are then replicated). Source: Megatron-LM,
    transformer_config.py."""
    kv, tp = job.model.kv_heads, table.tensor_parallel

    def explain(row: int) -> Violation:
        legal = f"tp divides the {kv} key-value heads or is a multiple of them"
        nearest = f"tp={nearest_divisor(kv, int(tp[row]))}"
        return Violation(rule="kv_heads", found=f"tp={tp[row]}", legal=legal, nearest=nearest)

    return Verdict(keeps=(kv % tp == 0) | (tp % kv == 0), explain=explain)


def ffn_divides(job: TrainingJob, cluster: Cluster, table: LayoutTable) -> Verdict:
    """tp divides the width of the MLP."""
    return _divides("ffn", "tp", table.tensor_parallel, "MLP columns", job.model.ffn_hidden)


def layers_divide(job: TrainingJob, cluster: Cluster, table: LayoutTable) -> Verdict:
    """pp x vp divides the layers. Source: Megatron-LM, arguments.py."""
    chunks = table.pipeline_parallel * table.virtual_stages
    return _divides("layers", "pp x vp", chunks, "layers", job.model.layers)


def batch_divides(job: TrainingJob, cluster: Cluster, table: LayoutTable) -> Verdict:
    """mbs x dp divides the global batch. Source: Megatron-LM, num_microbatches_calculator.py."""
    shares, batch = table.micro_batch_size * table.data_parallel, job.global_batch_size

    def explain(row: int) -> Violation:
        share = int(shares[row])
        legal = f"a divisor of the global batch of {batch} sequences"
        nearest = f"gbs={max(1, round(batch / share)) * share}"
        return Violation(rule="batch", found=f"mbs x dp={share}", legal=legal, nearest=nearest)

    return Verdict(keeps=batch % shares == 0, explain=explain)


def sequence_divides(job: TrainingJob, cluster: Cluster, table: LayoutTable) -> Verdict:
    """The sequence splits evenly over 2 x cp chunks, and over tp too under sequence parallelism.

    Source: Megatron-LM, arguments.py (context parallelism balances the causal mask with two chunks a rank).
    """
    over_tp = np.where(table.sequence_parallel == 1, table.tensor_parallel, 1)
    parts = np.where(table.context_parallel > 1, 2 * table.context_parallel, 1) * over_tp
    return _divides("sequence", "parts of a sequence", parts, "tokens", job.sequence_length)


def sequence_parallel_has_tp(job: TrainingJob, cluster: Cluster, table: LayoutTable) -> Verdict:
    """Sequence parallelism needs tp > 1. Source: Megatron-LM, model_parallel_config.py."""
    keeps = (table.sequence_parallel == 0) | (table.tensor_parallel > 1)
    return Verdict(keeps=keeps, explain=lambda row: Violation(
        rule="sequence_parallel", found="sp with tp=1", legal="sp with tp > 1", nearest="sp=false"))  # fmt: skip


def schedule_matches(job: TrainingJob, cluster: Cluster, table: LayoutTable) -> Verdict:
    """Interleaving needs vp > 1 and pp > 1, and vp > 1 needs interleaving."""
    interleaved = table.schedule == SCHEDULES.index("interleaved_1f1b")
    several = table.virtual_stages > 1
    keeps = (interleaved == several) & (~several | (table.pipeline_parallel > 1))

    def explain(row: int) -> Violation:
        found = (
            f"{SCHEDULES[table.schedule[row]]} with vp={table.virtual_stages[row]}, pp={table.pipeline_parallel[row]}"
        )
        return Violation(rule="schedule", found=found, legal="interleaved_1f1b with vp > 1, pp > 1; or 1f1b with vp=1",
                         nearest="schedule=1f1b,vp=1")  # fmt: skip

    return Verdict(keeps=keeps, explain=explain)


def interleaving_fills(job: TrainingJob, cluster: Cluster, table: LayoutTable) -> Verdict:
    """Interleaving takes micro-batches in rounds of pp. Source: Megatron-LM, schedules.py."""
    shares = table.micro_batch_size * table.data_parallel
    count, pp = job.global_batch_size // shares, table.pipeline_parallel
    keeps = (table.virtual_stages == 1) | ((count % pp == 0) & (count > 0))

    def explain(row: int) -> Violation:
        legal = f"a multiple of pp={pp[row]} micro-batches under interleaving"
        nearest = f"{max(1, round(count[row] / pp[row])) * pp[row]} micro-batches, or vp=1"
        return Violation(rule="interleaving", found=f"{count[row]} micro-batches", legal=legal, nearest=nearest)

    return Verdict(keeps=keeps, explain=explain)


def shard_group_divides(job: TrainingJob, cluster: Cluster, table: LayoutTable) -> Verdict:
    """ZeRO shards over a group that divides dp x cp; without ZeRO there is none."""
    ranks = table.data_parallel * table.context_parallel
    keeps = np.where(table.zero_stage == 0, table.shard_group == 1, ranks % table.shard_group == 0)

    def explain(row: int) -> Violation:
        found = f"shard={table.shard_group[row]} under zero={table.zero_stage[row]}"
        if table.zero_stage[row] == 0:
            return Violation(rule="shard", found=found, legal="shard=1 without ZeRO", nearest="shard=1")
        nearest = f"shard={nearest_divisor(int(ranks[row]), int(table.shard_group[row]))}"
        return Violation(rule="shard", found=found, legal=f"a divisor of dp x cp = {ranks[row]}", nearest=nearest)

    return Verdict(keeps=keeps.astype(bool), explain=explain)


def experts_divide(job: TrainingJob, cluster: Cluster, table: LayoutTable) -> Verdict:
    """ep divides the experts; a dense model has none to spread. Source: Megatron-LM, transformer_config.py."""
    experts = max(job.model.experts, 1)
    keeps = experts % table.expert_parallel == 0
    if not job.model.experts:
        keeps = keeps & (table.expert_tensor_parallel == 1)

    def explain(row: int) -> Violation:
        ep, etp = int(table.expert_parallel[row]), int(table.expert_tensor_parallel[row])
        if job.model.experts:
            nearest = f"ep={nearest_divisor(experts, ep)}"
            return Violation(rule="experts", found=f"ep={ep}", legal=f"a divisor of {experts} experts", nearest=nearest)
        legal = "ep=1 and etp=1 for a dense model"
        return Violation(rule="experts", found=f"ep={ep}, etp={etp}", legal=legal, nearest="ep=1,etp=1")

    return Verdict(keeps=keeps, explain=explain)


def expert_ranks_divide(job: TrainingJob, cluster: Cluster, table: LayoutTable) -> Verdict:
    """ep x etp divides the ranks of one pipeline stage, tp x cp x dp. Source: Megatron-LM, parallel_state.py."""
    ranks = table.tensor_parallel * table.context_parallel * table.data_parallel
    spread = table.expert_parallel * table.expert_tensor_parallel

    def explain(row: int) -> Violation:
        legal = f"a divisor of tp x cp x dp = {ranks[row]}"
        nearest = f"ep x etp={nearest_divisor(int(ranks[row]), int(spread[row]))}"
        return Violation(rule="expert_ranks", found=f"ep x etp={spread[row]}", legal=legal, nearest=nearest)

    return Verdict(keeps=ranks % spread == 0, explain=explain)


def expert_width_divides(job: TrainingJob, cluster: Cluster, table: LayoutTable) -> Verdict:
    """etp is 1 or tp, and divides the width of an expert. Source: Megatron-LM, arguments.py."""
    etp, width = table.expert_tensor_parallel, job.model.expert_hidden
    keeps = (etp == 1) | ((etp == table.tensor_parallel) & (width % etp == 0)) | (job.model.experts == 0)

    def explain(row: int) -> Violation:
        legal = f"etp of 1 or tp={table.tensor_parallel[row]}, which divides {width} columns of an expert"
        return Violation(rule="expert_tensor", found=f"etp={etp[row]}", legal=legal, nearest="etp=1")

    return Verdict(keeps=keeps, explain=explain)


def stack_has_context_parallel(job: TrainingJob, cluster: Cluster, table: LayoutTable) -> Verdict:
    """cp > 1 only where the software stack has context parallelism."""
    keeps = (table.context_parallel == 1) | job.stack.context_parallel

    def explain(row: int) -> Violation:
        legal = f"cp=1: {job.stack.name} has no context parallelism"
        return Violation(rule="stack", found=f"cp={table.context_parallel[row]}", legal=legal, nearest="cp=1")

    return Verdict(keeps=keeps, explain=explain)


def stack_has_zero_with_pipeline(job: TrainingJob, cluster: Cluster, table: LayoutTable) -> Verdict:
    """With pp > 1, ZeRO only up to the stage that the software stack combines with pipelines.

    Source: DeepSpeed, runtime/pipe/engine.py (ZeRO-2 and -3 refused); Megatron-LM, arguments.py (FSDP needs pp=1).
    """
    limit = job.stack.zero_with_pipeline

    def explain(row: int) -> Violation:
        found = f"zero={table.zero_stage[row]} with pp={table.pipeline_parallel[row]}"
        legal = f"zero up to {limit} with pp > 1 on {job.stack.name}"
        return Violation(rule="zero_with_pipeline", found=found, legal=legal, nearest=f"zero={limit}, or pp=1")

    return Verdict(keeps=(table.pipeline_parallel == 1) | (table.zero_stage <= limit), explain=explain)


RULES: tuple[Rule, ...] = (
    devices_used,
    heads_divide,
    kv_heads_divide,
    ffn_divides,
    layers_divide,
    batch_divides,
    sequence_divides,
    sequence_parallel_has_tp,
    schedule_matches,
    interleaving_fills,
    shard_group_divides,
    experts_divide,
    expert_ranks_divide,
    expert_width_divides,
    stack_has_context_parallel,
    stack_has_zero_with_pipeline,
)


def memory_fits(job: TrainingJob, cluster: Cluster, found: StepTable) -> Verdict:
    """The fullest device's peak is within its memory. Applied after the estimate, unlike `RULES`."""
    capacity = cluster.device.memory

    def explain(row: int) -> Violation:
        total = float(found.memory_total[row])
        kinds = sorted(found.memory, key=lambda kind: -found.memory[kind][row])[:2]
        parts = " and ".join(f"{show(float(found.memory[kind][row]), 'B')} of {kind}" for kind in kinds)
        return Violation(
            rule="memory",
            found=f"{show(total, 'B')}, mostly {parts}",
            legal=f"at most {show(capacity, 'B')} on {cluster.device.name}",
        )

    return Verdict(keeps=found.memory_total <= capacity, explain=explain)


def keeping(job: TrainingJob, cluster: Cluster, table: LayoutTable) -> Bools:
    """The rows that keep every rule of `RULES`."""
    kept: Bools = np.all([rule(job, cluster, table).keeps for rule in RULES], axis=0)
    return kept


def violations(verdicts: list[Verdict], row: int) -> tuple[Violation, ...]:
    """The violations of one row, in the order of the verdicts."""
    return tuple(verdict.explain(row) for verdict in verdicts if not verdict.keeps[row])


def _divides(rule: str, name: str, divisor: Ints, what: str, number: int) -> Verdict:
    def explain(row: int) -> Violation:
        found = int(divisor[row])
        nearest = f"{name}={nearest_divisor(number, found)}"
        return Violation(rule=rule, found=f"{name}={found}", legal=f"a divisor of {number} {what}", nearest=nearest)

    return Verdict(keeps=number % divisor == 0, explain=explain)
