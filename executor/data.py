"""Training data: the bytes of text files, memory-mapped, in an order that depends on the seed alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hwmodels.errors import Fault, refuse

VOCAB = 256
"""Byte values."""


@dataclass(frozen=True, slots=True)
class ByteWindows:
    """All windows of `length` + 1 bytes of some files: inputs and, one byte later, targets.

    Windows of one file follow each other without overlap of inputs; none crosses from one file to the next.
    """

    files: tuple[NDArray[np.uint8], ...]
    first: NDArray[np.int64]
    length: int

    def __len__(self) -> int:
        return int(self.first[-1])

    def window(self, index: int) -> NDArray[np.uint8]:
        """Window number `index`, 0 .. len - 1: [length + 1]."""
        file = int(np.searchsorted(self.first, index, side="right")) - 1
        start = (index - int(self.first[file])) * self.length
        return self.files[file][start : start + self.length + 1]


def open_windows(paths: Sequence[Path], length: int) -> ByteWindows:
    """The windows of the files at `paths`. Raises `SpecError` for files that cannot be read or are all too short."""
    refuse(data_faults(paths, length))
    files = tuple(np.memmap(path, dtype=np.uint8, mode="r") for path in paths if path.stat().st_size > length)
    counts = [(len(file) - 1) // length for file in files]
    return ByteWindows(files=files, first=np.cumsum([0, *counts]), length=length)


def data_faults(paths: Sequence[Path], length: int) -> Iterator[Fault]:
    """A fault for each file that cannot be read, or one where no file holds a window of `length` + 1 bytes."""
    unreadable = [fault for path in paths for fault in _file_faults(path)]
    yield from unreadable
    if not unreadable and all(path.stat().st_size <= length for path in paths):
        longest = max((path.stat().st_size for path in paths), default=0)
        yield Fault(path="--data", found=f"files of at most {longest} bytes",
                    legal=f"at least one file longer than the sequence length of {length} bytes")  # fmt: skip


def _file_faults(path: Path) -> Iterator[Fault]:
    try:
        if not path.is_file():
            found = "not a file" if path.exists() else "no such file"
            yield Fault(path="--data", found=f"{path}: {found}", legal="text files")
            return
        with path.open("rb") as file:
            file.read(1)
    except OSError as error:
        yield Fault(path="--data", found=f"{path}: {(error.strerror or 'unreadable').lower()}", legal="text files")


def step_windows(windows: int, batch: int, step: int, seed: int) -> NDArray[np.int64]:
    """Numbers of the windows of one step: [batch].

    Epoch after epoch goes through all windows, each in an order of its own; steps take the next `batch` of them.
    """
    positions = np.arange(step * batch, (step + 1) * batch)
    epochs, places = np.divmod(positions, windows)
    orders = {epoch: np.random.default_rng([seed, epoch]).permutation(windows) for epoch in np.unique(epochs).tolist()}
    return np.array([orders[epoch][place] for epoch, place in zip(epochs.tolist(), places.tolist(), strict=True)])


def batch_of(data: ByteWindows, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """The windows called `numbers`: [len(numbers), length + 1]."""
    return np.stack([data.window(number) for number in numbers.tolist()]).astype(np.int64)
