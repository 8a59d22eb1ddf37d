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


def noisy(example: PointSet, history: int, config: TrainConfig, key: Sequence[int]) -> PointSet:
    """The example with noise on its first `history` frames, which are inputs; the frame to come stays true.

    Rolled out, a model is given its own frames, and errors in these: what it was never shown it may amplify.
    """
    if not config.noise or example.u is None:
        return example
    inputs = example.u[:history]  # (T, N, o)
    size = config.noise * inputs.std(axis=(0, 1))  # (o,)
    rng = np.random.default_rng([NOISE, config.seed, *key])
    disturbed = inputs + size * rng.standard_normal(inputs.shape, dtype=np.float32)
    return replace(example, u=np.concatenate([disturbed, example.u[history:]]).astype(example.u.dtype))


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
