"""Training data: windows by hand, and an order that no layout changes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from executor.data import batch_of, data_faults, open_windows, step_windows
from hwmodels.errors import SpecError


@pytest.fixture
def files(tmp_path):
    for name, text in (("a", "abcdefgh"), ("b", "xy"), ("c", "0123456")):
        (tmp_path / name).write_text(text)
    return [tmp_path / name for name in "abc"]


def test_windows_share_one_byte_and_stay_in_their_file(files):
    data = open_windows(files, 3)
    texts = [bytes(data.window(i)).decode() for i in range(len(data))]
    assert texts == ["abcd", "defg", "0123", "3456"]
    assert batch_of(data, np.array([2, 0])).tolist() == [[48, 49, 50, 51], [97, 98, 99, 100]]


@given(windows=st.integers(1, 30), batch=st.integers(1, 20), seed=st.integers(0, 5))
def test_every_epoch_takes_every_window_once(windows, batch, seed):
    taken = np.concatenate([step_windows(windows, batch, step, seed) for step in range(2 * windows)])
    for epoch in range(2):
        assert sorted(taken[epoch * windows : (epoch + 1) * windows]) == list(range(windows))


def test_order_depends_on_the_seed_and_the_epoch():
    first = [step_windows(50, 50, step, 1).tolist() for step in (0, 1)]
    assert first[0] != first[1]
    assert first[0] == step_windows(50, 50, 0, 1).tolist() != step_windows(50, 50, 0, 2).tolist()


def test_all_unreadable_files_are_named(tmp_path, files):
    bad = [tmp_path / "none", tmp_path, *files]
    found = [fault.found for fault in data_faults(bad, 3)]
    assert len(found) == 2 and "no such file" in found[0] and "not a file" in found[1]
    with pytest.raises(SpecError, match="at most 8 bytes"):
        open_windows(files, 8)
