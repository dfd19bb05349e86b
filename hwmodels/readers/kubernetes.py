"""`kubectl get nodes -o json`: devices by the resources and labels of nodes.

Source: NVIDIA, gpu-feature-discovery (labels nvidia.com/gpu.product, gpu.count); AMD, k8s-device-plugin (amd.com/gpu);
Kubernetes documentation, well-known labels (node.kubernetes.io/instance-type).
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from hwmodels.readers.damage import damaged
from hwmodels.readers.findings import Findings, PoolFinding
from hwmodels.readers.names import device_of_name, node_of_instance

NAME = "kubectl get nodes -o json"
_RESOURCES = ("nvidia.com/gpu", "amd.com/gpu", "habana.ai/gaudi")
_PRODUCTS = ("nvidia.com/gpu.product", "amd.com/gpu.product-name")
_INSTANCE = "node.kubernetes.io/instance-type"


def matches(text: str) -> bool:
    """Whether `text` is such a document."""
    return text.lstrip().startswith("{") and '"items"' in text


def read(text: str) -> Findings:
    """Nodes by their kind; nodes without devices are left out. Raises `SpecError`."""
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise damaged(NAME, error.msg, "complete JSON", error.lineno) from None
    items = data.get("items")
    if not isinstance(items, list):
        raise damaged(NAME, f"items: {type(items).__name__}", "items: a list of nodes")
    kinds: Counter[tuple[str | None, str | None, int]] = Counter()
    for number, item in enumerate(items):
        if found := _kind(item, number):
            kinds[found] += 1
    if not kinds:
        raise damaged(NAME, f"{len(items)} nodes without devices", f"nodes with {' or '.join(_RESOURCES)}")
    return Findings(pools=tuple(
        PoolFinding(node=node, device=device, devices=size, count=number)
        for (node, device, size), number in kinds.items()
    ))  # fmt: skip


def _kind(item: Any, number: int) -> tuple[str | None, str | None, int] | None:
    """Node and device of the catalog, where known, and the number of devices."""
    try:
        labels = item["metadata"].get("labels", {})
        capacity = item["status"]["capacity"]
        sizes = [int(capacity[resource]) for resource in _RESOURCES if resource in capacity]
    except (KeyError, TypeError, AttributeError, ValueError):
        legal = "a node with metadata.labels and status.capacity"
        raise damaged(f"{NAME}, items[{number}]", "something else", legal) from None
    if not sum(sizes):
        return None
    product = next((labels[label] for label in _PRODUCTS if label in labels), "")
    return node_of_instance(labels.get(_INSTANCE, "")), device_of_name(product), sum(sizes)
