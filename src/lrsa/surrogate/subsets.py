"""Large cases by models that do not stream: random subsets of their points, as AirfRANS is published.

Such a model, trained on so many random points of a case, is asked for as many: fresh ones again and again,
until every point has been among them, and each point has the mean of its answers. Models that stream answer
all points at once, exactly.
"""

import numpy as np

from lrsa.pointset import PointSet
from lrsa.surrogate.surrogate import Surrogate, streams


def subset_size(surrogate: Surrogate, trained: int | None) -> int | None:
    """The points of a subset, where a model trained on so many of a case is asked so; None: all at once."""
    return None if streams(surrogate.model) else trained


def answers_of(surrogate: Surrogate, case: PointSet, size: int | None) -> np.ndarray:
    """(K, ..., N, o) what every member says of a case; by subsets of `size` points, where it has more."""
    if size is None or size >= len(case):
        return surrogate.answers([case])[0]
    return answers_by_subsets(surrogate, case, size)


def answers_by_subsets(surrogate: Surrogate, case: PointSet, size: int, seed: int = 0) -> np.ndarray:
    """(K, ..., N, o) the means of the answers of every member at random subsets of `size` points."""
    rng, count = np.random.default_rng(seed), np.zeros(len(case), int)
    total = np.zeros(1)
    while not count.all():
        chosen = np.sort(rng.choice(len(case), size, replace=False))
        (answer,) = surrogate.answers([case.subset(chosen)])
        if not count.any():
            total = np.zeros((*answer.shape[:-2], len(case), answer.shape[-1]))
        total[..., chosen, :] += answer
        count[chosen] += 1
    return (total / count[:, None]).astype(np.float32)
