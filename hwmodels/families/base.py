"""What a model type of a Hugging Face configuration is: defaults of its keys, and what these are in a `ModelSpec`.

Source: transformers 5.24, configuration_*.py (keys, defaults) and modeling_*.py (biases, norms, experts) of each type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from hwmodels.model import Activation

Values = dict[str, Any]
DEFAULT_ROPE_THETA = 10_000.0
ACTIVATIONS: dict[str, Activation] = {
    "silu": "silu", "swish": "silu",
    "gelu": "gelu", "gelu_new": "gelu", "gelu_fast": "gelu", "gelu_pytorch_tanh": "gelu", "quick_gelu": "gelu",
    "relu": "relu", "relu2": "relu2",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """One `model_type`: the default of each key that is read, the key of each plain field, and the other fields."""

    defaults: Mapping[str, object]
    keys: Mapping[str, str]
    spec: Callable[[Values], Values]


def sliding_layers(values: Values) -> int:
    """Layers that attend within a window only."""
    if values["sliding_window"] is None or not values["use_sliding_window"]:
        return 0
    if values["layer_types"]:
        return sum(kind == "sliding_attention" for kind in values["layer_types"])
    full: int = min(values["max_window_layers"], values["num_hidden_layers"])
    return int(values["num_hidden_layers"]) - full
