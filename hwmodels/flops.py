"""Model FLOPs: what the mathematics of one step needs, whatever the layout recomputes or pads."""

from __future__ import annotations

from hwmodels.job import TrainingJob


def forward_flop_per_token(job: TrainingJob) -> float:
    """FLOP of one token's forward pass: 2 per matmul weight, attention over the whole sequence, and the output head.

    2 x layers x (q, k, v, o and MLP weights) + 4 x layers x sequence x query width + 2 x hidden x vocab. Attention is
    counted in full, without the causal half. Source: Narayanan et al. 2021 (arXiv 2104.04473), appendix; Chowdhery et
    al. 2022 (arXiv 2204.02311), appendix B.
    """
    model = job.model
    span = min(job.sequence_length, model.sliding_window or job.sequence_length)
    attention = model.hidden * (model.query_width + 2 * model.kv_width) + model.query_width * model.hidden
    mlp = (3 if model.gated_mlp else 2) * model.hidden * model.ffn_hidden
    return model.layers * (2.0 * (attention + mlp) + 4.0 * span * model.query_width) + 2.0 * model.hidden * model.vocab


def model_flop(job: TrainingJob) -> float:
    """FLOP of one optimizer step over all devices: 3 x forward x tokens per step."""
    return 3.0 * forward_flop_per_token(job) * job.tokens_per_step


def recompute_flop_share(job: TrainingJob) -> dict[str, float]:
    """Extra FLOPs of each kind of recomputation, as a fraction of the model FLOPs."""
    model = job.model
    span = min(job.sequence_length, model.sliding_window or job.sequence_length)
    core_attention = model.layers * 4.0 * span * model.query_width
    layers = forward_flop_per_token(job) - 2.0 * model.hidden * model.vocab
    total = 3.0 * forward_flop_per_token(job)
    return {"none": 0.0, "selective": core_attention / total, "full": layers / total}
