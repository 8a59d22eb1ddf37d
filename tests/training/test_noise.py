"""Noise on input frames: which frames, how much, and the same again when a run is resumed."""

import numpy as np
import pytest

from lrsa.pointset import PointSet
from lrsa.training.config import TrainConfig
from lrsa.training.examples import noisy, waves

HISTORY = 10


@pytest.fixture
def example() -> PointSet:
    """A window of eleven frames of two fields of different size, far from zero."""
    rng = np.random.default_rng(0)
    u = rng.standard_normal((HISTORY + 1, 500, 2)) * [1, 100] + [50, 1e4]
    times = np.arange(HISTORY + 1, dtype=np.float32)
    return PointSet(rng.random((500, 2)).astype(np.float32), u=u.astype(np.float32), times=times)


def test_inputs_are_disturbed_by_a_share_of_what_they_vary_and_the_truth_is_not(example: PointSet) -> None:
    made = noisy(example, HISTORY, TrainConfig(noise=0.1), [0, 0, 0])
    assert made.u is not None
    assert example.u is not None
    np.testing.assert_array_equal(made.u[HISTORY:], example.u[HISTORY:])
    noise = (made.u - example.u)[:HISTORY]
    np.testing.assert_allclose(noise.std(axis=(0, 1)), [0.1, 10], rtol=0.15)
    assert made.u.dtype == example.u.dtype


def test_seed_epoch_and_example_decide_the_noise(example: PointSet) -> None:
    def drawn(key: list[int], seed: int = 0) -> np.ndarray:
        u = noisy(example, HISTORY, TrainConfig(noise=0.1, seed=seed), key).u
        assert u is not None
        return u

    np.testing.assert_array_equal(drawn([1, 2, 3]), drawn([1, 2, 3]))
    others = [drawn([0, 2, 3]), drawn([1, 0, 3]), drawn([1, 2, 0]), drawn([1, 2, 3], seed=1)]
    assert all((other != drawn([1, 2, 3])).any() for other in others)


def test_without_noise_the_example_is_as_it_is(example: PointSet) -> None:
    assert noisy(example, HISTORY, TrainConfig(), [0, 0, 0]) is example


def torus(side: int) -> np.ndarray:
    axis = np.arange(side, dtype=np.float32) / side
    return np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)


def test_noise_is_of_all_lengths_and_closes_on_a_torus() -> None:
    """A tenth of its energy or more in each of four octaves, and no more at the seam than elsewhere."""
    side = 32
    drawn = waves(torus(side), frames=400, fields=1, rng=np.random.default_rng(0)).reshape(-1, side, side)
    energy = np.square(np.abs(np.fft.fft2(drawn))).mean(axis=0)
    whole = np.abs(np.fft.fftfreq(side, 1 / side))
    length = np.hypot(*np.meshgrid(whole, whole))
    octaves = [energy[(length >= 2**k - 0.5) & (length < 2 ** (k + 1) - 0.5)].sum() for k in range(4)]
    assert min(octaves) > 0.1 * energy.sum()
    jumps = np.square(np.diff(drawn, axis=1, append=drawn[:, :1])).mean(axis=(0, 2))
    assert jumps[-1] < 1.1 * jumps[:-1].mean()


def test_noise_has_the_variance_one_on_any_points() -> None:
    rng = np.random.default_rng(0)
    for x in (rng.random((2000, 1)), 80 * rng.random((2000, 3)) - 40, np.array([[1, 0], [2, 0], [3, 0]])):
        drawn = waves(x.astype(np.float32), frames=300, fields=2, rng=rng)
        assert drawn.shape == (300, len(x), 2)
        np.testing.assert_allclose(drawn.std(axis=(0, 1)), 1, rtol=0.15)
