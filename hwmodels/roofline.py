"""How long one operation takes on one device: the slower of arithmetic and memory traffic."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hwmodels.layout_table import Floats
from hwmodels.machine import Device, Precision

Numbers = Floats | NDArray[np.int64] | float
TILE = 128
"""Rows and columns of the output tile that one processor computes. Source: NVIDIA, Matrix Multiplication Background
User's Guide, section "Tile Quantization": 128 x 128 is among the tile sizes of every generation's library."""

SPLIT = 512
"""Shortest chunk of k that split-k matmuls take (estimate: a chunk must outlast the epilogue that adds the parts)."""


def matmul_rate(device: Device, precision: Precision) -> float:
    """FLOP/s of the device's best measured matmul shape: peak x efficiency; 0 where the device lacks the arithmetic."""
    efficient = device.matmul_efficiency_fp8 if precision == "fp8" else device.matmul_efficiency
    return device.peak(precision) * efficient


def matmul_time(device: Device, rate: float, item: int, m: Numbers, n: Numbers, k: Numbers) -> Floats:
    """Seconds of an (m x k) by (k x n) matmul at `rate` FLOP/s with operands of `item` bytes.

    max(2mnk x quantization / rate, (mk + kn + mn) x item / memory rate).
    """
    m, n, k = (
        np.asarray(m, dtype=np.float64),
        np.asarray(n, dtype=np.float64),
        np.asarray(k, dtype=np.float64),
    )
    compute = 2.0 * m * n * k * quantization(device, m, n, k) / rate
    return np.maximum(compute, streaming_time(device, item * (m * k + k * n + m * n)))


def quantization(device: Device, m: Floats, n: Floats, k: Floats) -> Floats:
    """Work done over work needed, at least 1: partly filled tiles, and a last wave that leaves processors idle.

    Where there are fewer tiles than processors, the library splits k into chunks of at least `SPLIT` to fill them.
    Source: NVIDIA, Matrix Multiplication Background User's Guide, sections "Tile" and "Wave Quantization"; NVIDIA
    CUTLASS documentation, "Efficient GEMM", section "Split K".
    """
    if device.kind == "cpu":
        return np.ones(np.broadcast_shapes(m.shape, n.shape, k.shape))
    rows, columns = _tile(m), _tile(n)
    tiles = np.ceil(m / rows) * np.ceil(n / columns)
    splits = np.maximum(1, np.minimum(device.processors // tiles, k // SPLIT))
    waves = np.ceil(tiles * splits / device.processors)
    overwork: Floats = waves * device.processors / splits * rows * columns / (m * n)
    return overwork


def _tile(length: Floats) -> Floats:
    """Side of the tile for a matrix side of `length`: a power of two from 16 (tensor cores) to `TILE`."""
    side: Floats = np.clip(2.0 ** np.ceil(np.log2(np.maximum(length, 1.0))), 16, TILE)
    return side


def streaming_time(device: Device, nbytes: Numbers) -> Floats:
    """Seconds to move `nbytes` through the device's memory at its streaming rate."""
    return np.asarray(nbytes, dtype=np.float64) / (device.memory_bandwidth * device.memory_efficiency)
