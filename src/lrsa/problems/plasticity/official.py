"""Reader of the published Plasticity file: the die and the block under it in 20 frames, as MATLAB arrays."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lrsa.data.matlab import CURE, read_frames, read_part, shapes_in
from lrsa.errors import LrsaError
from lrsa.pointset import PointSet
from lrsa.problems.plasticity.die import FRAMES, NAMES, nodes, shares, times

PLASTICITY = "plas_N987_T20.mat"
"""Holds `input` (987, 101), the die above the nodes, taken to be in the order of the nodes (its description
does not say), and `output` (987, 101, 31, 20, 4), x, y, u_x, u_y of every node at every time."""
TRAIN, TEST = 900, 80
"""The first cases, and the last ones."""


def read_plasticity(folder: Path, stride: int = 1) -> dict[str, Sequence[PointSet]]:
    """The published splits, every `stride`-th node along each axis of the grid.

    Args:
        folder: Where the file is, or the file.
        stride: 1 is the published one: 101 × 31 nodes.
    """
    path = folder if folder.is_file() else folder / PLASTICITY
    _check(path)
    die, u = read_part(path, "input"), read_frames(path, "output", axis=3)
    return {
        "train": Forgings(die[:TRAIN], u[:TRAIN], stride),
        "test": Forgings(die[-TEST:], u[-TEST:], stride),
    }


@dataclass(frozen=True)
class Forgings(Sequence[PointSet]):
    """Cases on the grid at rest, made when asked for; their frames are views of the array."""

    die: np.ndarray
    """(S, I) heights."""
    u: np.ndarray
    """(S, T, I, J, 4) places and displacements."""
    stride: int

    def __len__(self) -> int:
        return len(self.u)

    def __getitem__(self, index: int) -> PointSet:  # pyright: ignore[reportIncompatibleMethodOverride]
        u = self.u[index]
        frames, columns, rows, channels = u.shape
        x = nodes(columns - 1, rows - 1)
        case = PointSet(
            x=x.reshape(-1, 2).astype(np.float32),
            f=np.repeat(self.die[index], rows)[:, None],
            u=u.reshape(frames, -1, channels),
            weights=shares(columns - 1, rows - 1).ravel().astype(np.float32),
            times=times().astype(np.float32),
            grid=(columns, rows),
            names=NAMES,
        )
        return case.strided(self.stride)


def _check(path: Path) -> None:
    shapes = shapes_in(path, "input", "output")
    die, u = shapes["input"], shapes["output"]
    if len(u) != 5 or u[3:] != (FRAMES, 4) or min(u) < 1 or u[1] < 2 or u[2] < 2:
        raise LrsaError(
            f'{path} has "output" of shape {u}, not (cases, i, j, {FRAMES}, 4) as published. {CURE}'
        )
    if die != u[:2]:
        raise LrsaError(f'{path} has "input" of shape {die}, not {u[:2]}: (cases, i). {CURE}')
    if u[0] < TRAIN + TEST:
        raise LrsaError(
            f"{path} has {u[0]} cases, not the 987 published: the first {TRAIN} are for training, the last"
            f" {TEST} for the test. {CURE}"
        )
