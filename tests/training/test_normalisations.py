"""What a run may ask of its normalisation: logarithmic coordinates, deviations of nodes, changes."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small import OPTIONS, frames, grid_cases, quick, ragged_cases, refusal, write

import lrsa
from lrsa.data.normalise import Normaliser, Statistics
from lrsa.errors import LrsaError
from lrsa.pointset import PointSet
from lrsa.surrogate.surrogate import load

pytest_plugins = ["small_runs"]
pytestmark = pytest.mark.usefixtures("home")


def moving(count: int, seed: int = 0) -> list[PointSet]:
    return [frames(case, 12) for case in grid_cases(count, seed)]


def normaliser(cases: list[PointSet], coordinates: str = "box", history: int = 0, **asked: Any) -> Normaliser:
    statistics = Statistics(**asked)
    for case in cases:
        statistics.add(case)
    return statistics.normaliser(history, coordinates)  # pyright: ignore[reportArgumentType]


def test_the_logarithmic_map_is_straight_near_the_body_and_keeps_directions() -> None:
    """x -> x log(1 + r) / r about where the points are dense, however far the domain reaches."""
    rng = np.random.default_rng(0)
    near = rng.normal(size=(2000, 2)) * 0.5 + [3, 1]
    far = rng.uniform(-1000, 1000, size=(200, 2))
    made = normaliser([PointSet(np.concatenate([near, far]).astype(np.float32))], "log")
    assert np.abs(made.x_shift.numpy() - [3, 1]).max() < 0.1
    x = torch.tensor(np.concatenate([near, far]), dtype=torch.float32)[None]
    straight, bent = (x - made.x_shift) / made.x_scale, made.coordinates(x)
    assert torch.allclose(bent.norm(dim=-1), straight.norm(dim=-1).log1p(), rtol=1e-4)
    cosine = torch.nn.functional.cosine_similarity(straight, bent, dim=-1)
    assert torch.allclose(cosine, torch.ones_like(cosine), atol=1e-5)
    assert bent.abs().max() < 15
    assert torch.isfinite(made.coordinates(made.x_shift.expand(1, 1, 2))).all()


def test_deviations_of_nodes_have_unit_size_and_belong_to_their_mesh() -> None:
    rng = np.random.default_rng(1)
    place = rng.uniform(-40, 40, size=(50, 2))
    spread = rng.uniform(0.001, 0.1, size=(50, 2))
    cases = [PointSet((place + spread * rng.normal(size=(50, 2))).astype(np.float32)) for _ in range(200)]
    made = normaliser(cases, deviations=True)
    x = torch.tensor(np.stack([case.x for case in cases]))
    moved = made.features(x, None)
    assert moved is not None
    assert torch.allclose(moved.mean(0), torch.zeros(50, 2), atol=1e-2)
    assert torch.allclose(moved.std(0, correction=0), torch.ones(50, 2), atol=2e-2)
    with pytest.raises(LrsaError, match="each of 50 points and holds for that mesh alone, but 20"):
        made.features(x[:, :20], None)


def test_a_run_with_both_predicts_as_it_was_trained(home: Path) -> None:
    data = write(Path("d.h5"), grid_cases(6), grid_cases(2, seed=1))
    quick(data, "run", epochs=1, coordinates="log", deviations=True)
    case = lrsa.open_dataset(str(data), "test")[0]
    surrogate = load("run")
    assert surrogate.normaliser.nodes is not None
    whole = surrogate.predict(case)
    moved = surrogate.predict(replace(case, x=case.x + np.float32(0.01)))
    assert np.abs(whole - moved).max() > 0


def test_cases_of_several_topologies_have_no_deviations(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = write(Path("d.h5"), ragged_cases(6))
    assert "need one mesh for all cases" in refusal(capsys, "train", data, "--train.deviations")


def test_a_static_set_has_no_change(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = write(Path("d.h5"), grid_cases(6))
    assert "needs frames in time" in refusal(capsys, "train", data, "--train.change")


def test_an_untrained_change_stays_near_the_last_frame(home: Path) -> None:
    """u = last frame + change · deviation of the changes: nothing learned is persistence."""
    cases = moving(4)
    made = normaliser(cases, history=10, change=True)
    window = torch.as_tensor(np.stack([c.u[:10] for c in cases if c.u is not None])).float()
    f = window.transpose(1, 2).flatten(2)
    zero = -made.u_shift / made.u_scale
    assert torch.allclose(made.targets(zero.expand(*f.shape[:2], -1), f), window[:, 9], atol=1e-6)
    changes = np.concatenate(
        [np.diff(c.u, axis=0).reshape(-1, c.u.shape[-1]) for c in cases if c.u is not None]
    )
    assert np.allclose(made.u_scale.numpy(), changes.std(0), rtol=1e-4)


def test_changes_are_learned_and_kept(home: Path) -> None:
    data = write(Path("d.h5"), moving(6), moving(2, seed=1), protocol="autoregressive")
    run = lrsa.fit(data, out="run", options=OPTIONS, epochs=1, change=True)
    case = lrsa.open_dataset(str(data), "test")[0]
    again = load("run")
    assert again.normaliser.u_last is not None
    assert np.array_equal(run.predict(case), again.predict(case))
