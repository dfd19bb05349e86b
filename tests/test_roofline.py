"""Roofline of one operation, against numbers computed by hand."""

import numpy as np
import pytest

from hwmodels.roofline import matmul_rate, matmul_time, quantization, streaming_time
from tests.worlds import ROUND_DEVICE


def test_rate_is_peak_times_efficiency():
    assert matmul_rate(ROUND_DEVICE, "bf16") == 100e12
    assert matmul_rate(ROUND_DEVICE, "fp8") == 0.0


def test_streaming_uses_the_efficient_bandwidth():
    assert streaming_time(ROUND_DEVICE, 1e9) == pytest.approx(1e-3)


def test_full_waves_cost_no_more_than_their_flop():
    # 10 x 10 tiles of 128 fill 100 processors exactly once.
    seconds = matmul_time(ROUND_DEVICE, 100e12, 2, 1280, 1280, 12800)
    assert seconds == pytest.approx(2 * 1280 * 1280 * 12800 / 100e12)


def test_one_tile_more_costs_a_second_wave():
    # 101 tiles of 128 rows: two waves where 1.01 are needed.
    over = quantization(ROUND_DEVICE, np.array(101 * 128.0), np.array(128.0), np.array(256.0))
    assert over == pytest.approx(200 / 101)


def test_few_tiles_split_their_depth():
    # 10 tiles leave 90 processors idle; k = 5120 splits ten times, each chunk 512 deep.
    over = quantization(ROUND_DEVICE, np.array(1280.0), np.array(128.0), np.array(5120.0))
    assert over == pytest.approx(1.0)
    shallow = quantization(ROUND_DEVICE, np.array(1280.0), np.array(128.0), np.array(512.0))
    assert shallow == pytest.approx(10.0)


def test_partly_filled_tile():
    # 96 of 128 rows used in each of 100 tiles.
    over = quantization(ROUND_DEVICE, np.array(96.0), np.array(12800.0), np.array(256.0))
    assert over == pytest.approx(128 / 96)


def test_thin_matmul_is_bound_by_memory():
    # m = 1: the weights, 8192 x 8192 x 2 bytes, dominate.
    seconds = matmul_time(ROUND_DEVICE, 100e12, 2, 1, 8192, 8192)
    assert seconds == pytest.approx(2 * (8192 + 8192 * 8192 + 8192) / 1e12)
