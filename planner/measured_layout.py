"""The layout of a measured row: the degrees and switches that it states, completed by its framework's defaults."""

from __future__ import annotations

from hwmodels.divisors import divisors
from hwmodels.layout import Layout, Recompute
from planner.ledger import Ledger

_PRICED_SCHEDULES = (None, "1f1b", "interleaved_1f1b")
_CHEAP_MODULES = {"core_attn", "layernorm"}
"""Modules whose recomputation counts as that of core attention: norms add next to nothing to it."""
_SEQUENCE_PARALLEL = {"off": (False, False), "tp>1": (True, True), "tp>1 and pp=1": (True, False)}
"""Default -> whether it is on where tp > 1, without and with a pipeline."""


def measured_layout(ledger: Ledger, layers: int, has_experts: bool = False) -> Layout | None:
    """The layout of the row, whose model has `layers` layers, or None after noting in `ledger` why there is none."""
    row = ledger.row
    if row.schedule not in _PRICED_SCHEDULES:
        ledger.refuse(f"schedule {row.schedule} is not priced")
    recompute = _recompute(ledger)
    degrees = _degrees(ledger)
    if ledger.reasons or degrees is None or recompute is None:
        return None
    tp, pp, cp, dp = degrees
    vp = _virtual_stages(ledger, layers, pp)
    mbs = _micro_batch_size(ledger, pp * vp, dp)
    if row.gbs is None or mbs * dp > row.gbs:
        ledger.refuse("the global batch is smaller than mbs x dp")
        return None
    zero = _zero(ledger)
    overlap, _ = ledger.default("overlap")
    ep, etp = _expert_degrees(ledger, tp, tp * cp * dp, has_experts)
    return Layout(
        expert_parallel=ep,
        expert_tensor_parallel=etp,
        tensor_parallel=tp,
        pipeline_parallel=pp,
        virtual_stages=vp,
        data_parallel=dp,
        context_parallel=cp,
        sequence_parallel=_sequence_parallel(ledger, tp, pp),
        zero_stage=zero,
        shard_group=_shard_group(ledger, zero, dp * cp),
        micro_batch_size=mbs,
        recompute=recompute,
        schedule="interleaved_1f1b" if vp > 1 else "1f1b",
        overlap=overlap == "true",
    )


def _degrees(ledger: Ledger) -> tuple[int, int, int, int] | None:
    """tp, pp, cp and dp; a blank cp is 1, and one other blank degree follows from the number of devices."""
    row = ledger.row
    if row.n_devices is None:
        ledger.refuse("the number of devices is not stated")
        return None
    world = row.n_devices
    cp = ledger.stated("cp", 1, "no context parallelism where none is stated")
    known = {name: value for name, value in (("tp", row.tp), ("pp", row.pp), ("dp", row.dp)) if value}
    rest, left = divmod(world, cp * _product(known))
    blank = [name for name in ("tp", "pp", "dp") if name not in known]
    if not known or (len(blank) > 1 and rest != 1):
        ledger.refuse("the layout is not stated")
        return None
    if left or (rest != 1 and not blank):
        ledger.refuse("tp x pp x cp x dp is not the number of devices")
        return None
    for name in blank:
        known[name] = ledger.fill(name, rest, "devices / product of the other degrees")
    return known["tp"], known["pp"], cp, known["dp"]


def _expert_degrees(ledger: Ledger, tp: int, ranks: int, has_experts: bool) -> tuple[int, int]:
    """ep and etp; a blank etp is tp, which Megatron-LM takes, unless ep x tp is more than the ranks of a stage."""
    if not has_experts:
        return 1, 1
    ep = ledger.stated("ep", 1, "no expert parallelism where none is stated")
    usual = tp if ranks % (ep * tp) == 0 else 1
    etp = ledger.stated("etp", usual, "Megatron-LM, arguments.py: as many as tp")
    if ranks % (ep * etp):
        ledger.refuse("ep x etp does not divide tp x cp x dp")
        return 1, 1
    return ep, etp


def _product(degrees: dict[str, int]) -> int:
    product = 1
    for degree in degrees.values():
        product *= degree
    return product


def _virtual_stages(ledger: Ledger, layers: int, pp: int) -> int:
    """Virtual stages per rank. A blank one under interleaving is the smallest above 1 that divides the layers."""
    row = ledger.row
    if pp == 1:
        return 1
    if row.vp is not None:
        return row.vp
    if row.schedule != "interleaved_1f1b":
        return ledger.fill("vp", 1, "no interleaving where none is stated")
    per_stage = max(layers // pp, 1)
    dividing = divisors(per_stage)[1:] if layers % pp == 0 else []
    smallest = dividing[0] if dividing else min(2, per_stage)
    return ledger.fill("vp", smallest, "the smallest interleaving that divides the layers")


def _micro_batch_size(ledger: Ledger, stages: int, dp: int) -> int:
    """Sequences per micro-batch: a default is cut to what one data-parallel rank has of the global batch."""
    value, source = ledger.default("mbs")
    local = max((ledger.row.gbs or 0) // dp, 1)
    usual = max(local // stages, 1) if value == "pipeline stages" else min(int(value), local)
    return ledger.stated("mbs", usual, source)


def _sequence_parallel(ledger: Ledger, tp: int, pp: int) -> bool:
    value, source = ledger.default("sequence_parallel")
    if tp == 1:
        return False
    return ledger.stated("sequence_parallel", _SEQUENCE_PARALLEL[value][pp > 1], source)


def _zero(ledger: Ledger) -> int:
    value, source = ledger.default("zero")
    return ledger.stated("zero", int(value), source)


def _shard_group(ledger: Ledger, zero: int, ranks: int) -> int:
    return ledger.stated("shard_group", ranks, "all of dp x cp") if zero else 1


def _recompute(ledger: Ledger) -> Recompute | None:
    value, source = ledger.default("recompute")
    stated = ledger.stated("recompute", value, source)
    kind, _, modules = stated.partition(":")
    if kind == "none" or (kind == "full" and not modules):
        return "none" if kind == "none" else "full"
    if kind == "selective" and set((modules or "core_attn").split("+")) <= _CHEAP_MODULES:
        return "selective"
    ledger.refuse(f"recomputation {stated} is not priced")
    return None
