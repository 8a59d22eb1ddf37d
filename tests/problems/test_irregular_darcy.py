"""Irregular Darcy: the mesh that is kept, the coefficient on it, the solutions and their own error."""

import numpy as np
import pytest

from lrsa.errors import LrsaError
from lrsa.problems.irregular_darcy.solver import IrregularDarcy, domain, interpolated


def pressure(seed: int, refinement: int) -> np.ndarray:
    u = IrregularDarcy(refinement=refinement).sample(np.random.default_rng(seed)).u
    assert u is not None
    return u[:, 0].astype(np.float64)


def relative(value: np.ndarray, truth: np.ndarray) -> float:
    return float(np.linalg.norm(value - truth) / np.linalg.norm(truth))


def test_the_mesh_has_the_published_number_of_nodes_and_even_triangles() -> None:
    mesh = domain(0)
    assert mesh.nodes.shape == (2290, 2)
    assert mesh.nodes.min() >= 0
    assert mesh.nodes.max() <= 1
    assert np.array_equal(np.unique(mesh.triangles), np.arange(2290))
    corners = mesh.nodes[mesh.triangles]
    edges = corners - np.roll(corners, 1, axis=1)
    quality = 4 * np.sqrt(3) * mesh.areas / (edges**2).sum(axis=(1, 2))
    assert quality.min() > 0.7
    assert mesh.areas.max() < 3 * mesh.areas.min()


def test_the_domain_is_a_pentagon_without_the_arc_and_the_slit() -> None:
    """Area by hand: regular pentagon 1 wide, less a segment of a circle, less a slit with a round end."""
    radius = 0.5 / np.sin(0.4 * np.pi)
    pentagon = 2.5 * radius**2 * np.sin(0.4 * np.pi)
    half, rise = radius * np.sin(0.2 * np.pi), 0.12
    round_ = (half**2 + rise**2) / (2 * rise)
    angle = np.arcsin(half / round_)
    segment = round_**2 * (angle - np.sin(angle) * np.cos(angle))
    slit = 0.34 * 0.04 + np.pi * 0.02**2 / 2
    assert abs(domain(0).areas.sum() - (pentagon - segment - slit)) < 3e-4
    rim = domain(0).nodes[domain(0).rim]
    assert len(rim) == 217
    # One boundary: as many edges as nodes, and as many triangles as a domain without holes has.
    assert len(domain(0).triangles) == 2 * (2290 - 1) - 217


def test_the_spline_gives_the_cosines_of_the_field_back() -> None:
    centres = (np.arange(64) + 0.5) / 64
    places = np.random.default_rng(0).random((500, 2))
    places[:2] = [[0, 0], [1, 1]]  # beyond the outermost centres
    for j, k in ((1, 0), (3, 2), (0, 8)):
        field = np.outer(np.cos(np.pi * j * centres), np.cos(np.pi * k * centres))
        exact = np.cos(np.pi * j * places[:, 0]) * np.cos(np.pi * k * places[:, 1])
        assert np.abs(interpolated(field, places) - exact).max() < 2e-3


def test_a_case_has_the_coefficient_the_pressure_and_the_cells() -> None:
    case = IrregularDarcy(refinement=0).sample(np.random.default_rng(0))
    assert case.names == IrregularDarcy.names
    assert {name: array.dtype for name, array in case.arrays().items()} == {
        **dict.fromkeys(("x", "f", "u", "weights"), np.float32),
        "cells": np.int64,
        "cell_types": np.uint8,
    }
    assert case.f is not None
    assert case.u is not None
    assert case.weights is not None
    assert case.cell_types is not None
    assert set(np.unique(case.f)) == {3.0, 12.0}
    rim = domain(0).rim
    assert not case.u[rim].any()
    assert case.u[~rim].min() > 0
    assert set(case.cell_types) == {5}
    assert abs(case.weights.sum(dtype=float) - domain(0).areas.sum()) < 1e-6


def test_the_question_does_not_depend_on_the_refinement_and_the_bits_only_on_the_seed() -> None:
    coarse, fine = (IrregularDarcy(refinement=r).sample(np.random.default_rng(3)) for r in (0, 1))
    for name in ("x", "f", "weights", "cells"):
        assert np.array_equal(coarse.arrays()[name], fine.arrays()[name])
    same, other = (IrregularDarcy(refinement=1).sample(np.random.default_rng(seed)) for seed in (3, 4))
    for name, array in fine.arrays().items():
        assert array.tobytes() == same.arrays()[name].tobytes()
    assert not np.array_equal(fine.arrays()["f"], other.arrays()["f"])


def test_a_constant_coefficient_scales_the_pressure() -> None:
    low, high = (
        IrregularDarcy(refinement=0, low=a, high=a).sample(np.random.default_rng(0)).u for a in (1.0, 4.0)
    )
    assert low is not None
    assert high is not None
    assert np.allclose(low, 4 * high, rtol=1e-6)


def test_the_refinements_err_as_they_say() -> None:
    fine = pressure(0, 2)
    errors = [relative(pressure(0, refinement), fine) for refinement in (0, 1)]
    assert errors[0] < 0.03, errors
    assert errors[1] < 0.01, errors


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_the_default_is_near_a_mesh_of_half_the_size(seed: int) -> None:
    assert relative(pressure(seed, 2), pressure(seed, 3)) < 0.005


def test_a_refinement_below_zero_is_refused() -> None:
    with pytest.raises(LrsaError, match="refinement of -1"):
        IrregularDarcy(refinement=-1).sample(np.random.default_rng(0))
