"""What a training step sees of an example: some of its points, and input frames that are not quite true.

Both are drawn by the seed and a key of the example: a resumed run sees what an uninterrupted one does.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from lrsa.pointset import PointSet
from lrsa.training.config import TrainConfig

CHOICE, NOISE = 11, 13
"""Set their random numbers apart from each other and from those that order the cases."""
WAVES = 8
"""Of every frame and field."""


def noisy(example: PointSet, history: int, config: TrainConfig, key: Sequence[int]) -> PointSet:
    """The example with noise on its first `history` frames, which are inputs; the frame to come stays true.

    Rolled out, a model is given its own frames, and errors in these: what it was never shown it may amplify.
    Such errors are smooth, so noise by points, which a mean over neighbours removes, teaches less.
    """
    if not config.noise or example.u is None:
        return example
    inputs = example.u[:history]  # (T, N, o)
    size = config.noise * inputs.std(axis=(0, 1))  # (o,)
    rng = np.random.default_rng([NOISE, config.seed, *key])
    disturbed = inputs + size * waves(example.x, inputs.shape[0], inputs.shape[2], rng)
    return replace(example, u=np.concatenate([disturbed, example.u[history:]]).astype(example.u.dtype))


def waves(x: np.ndarray, frames: int, fields: int, rng: np.random.Generator) -> np.ndarray:
    """(T, N, o), each frame and field by itself √(2/J) Σ_j cos(2π k_j·x + φ_j), of variance 1, at x (N, p).

    x is in units of the box of the points and k_j whole, so that a wave closes on itself where a torus does;
    the lengths are from that of the box down to two points of a grid, every octave alike.
    """
    count, dimensions = x.shape
    side = count ** (1 / dimensions)
    extent = np.ptp(x, axis=0)
    unit = (x - x.min(axis=0)) / np.where(extent > 0, extent, 1) * (1 - 1 / side)
    total = np.zeros((count, frames * fields), np.float32)
    for _ in range(WAVES):
        direction = rng.standard_normal((dimensions, frames * fields))
        direction /= np.linalg.norm(direction, axis=0)
        number = np.rint(direction * (side / 2) ** rng.random(frames * fields))
        phase = 2 * np.pi * rng.random(frames * fields)
        total += np.cos((unit @ (2 * np.pi * number) + phase).astype(np.float32))
    return np.sqrt(np.float32(2 / WAVES)) * total.reshape(count, frames, fields).swapaxes(0, 1)


def thinned(example: PointSet, config: TrainConfig, key: Sequence[int]) -> PointSet:
    """So many of its points as a run takes, in their order; which ones, the seed and the key decide.

    Where inputs and fields are at different points, those that only give an input all stay.
    """
    gives = np.zeros(len(example), bool)
    if example.f_mask is not None and example.u_mask is not None:
        gives = ~example.u_mask.any(axis=-1)
    asked = np.flatnonzero(~gives)
    if config.points is None or config.points >= len(asked):
        return example
    rng = np.random.default_rng([CHOICE, config.seed, *key])
    chosen = asked[rng.choice(len(asked), config.points, replace=False)]
    return example.subset(np.sort(np.concatenate([chosen, np.flatnonzero(gives)])))
