"""The model types of Hugging Face configurations that can be read."""

from __future__ import annotations

from hwmodels.families.base import ACTIVATIONS, Family, Values, sliding_layers
from hwmodels.families.classic import CLASSIC
from hwmodels.families.experts import EXPERTS
from hwmodels.families.llama import LLAMA_LIKE

FAMILIES: dict[str, Family] = {**LLAMA_LIKE, **CLASSIC, **EXPERTS}
"""Every `model_type` that can be read."""

__all__ = ["ACTIVATIONS", "FAMILIES", "Family", "Values", "sliding_layers"]
