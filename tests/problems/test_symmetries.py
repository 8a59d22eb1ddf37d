"""The symmetries that a problem names, on its solver: the moved question has the moved answer."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch

from lrsa.data.symmetry import Symmetry
from lrsa.pointset import PointSet
from lrsa.problems.airfoil.solver import Airfoil
from lrsa.problems.catalogue import get
from lrsa.problems.darcy.solver import Darcy, solve_darcy
from lrsa.problems.elasticity.solver import Elasticity
from lrsa.problems.navier_stokes.solver import NavierStokes
from lrsa.problems.obstacle_flow.solver import ObstacleFlow
from lrsa.problems.pipe.solver import Pipe
from lrsa.problems.plasticity.die import random_heights
from lrsa.problems.plasticity.solver import Plasticity

RNG = np.random.default_rng


def symmetry(problem: str, case: PointSet) -> Symmetry:
    return Symmetry.of(get(problem).symmetry, [case])


def mirrored(problem: str, case: PointSet) -> PointSet:
    """By the only element that is not the identity."""
    _, mirror = symmetry(problem, case).elements(case)
    return mirror(case)


def relative(ours: np.ndarray | None, theirs: np.ndarray | None) -> float:
    assert ours is not None
    assert theirs is not None
    return float(np.linalg.norm(ours - theirs) / np.linalg.norm(theirs))


def test_the_eight_of_the_square_commute_with_darcy() -> None:
    case = Darcy(resolution=21, stride=1).sample(RNG(0))
    assert case.f is not None
    answers = set()
    for element in symmetry("darcy", case).elements(case):
        moved = element(case)
        assert moved.x is case.x
        assert moved.f is not None
        u = solve_darcy(moved.f.reshape(21, 21), 1.0)
        assert relative(moved.u, u.reshape(-1, 1)) < 1e-6
        answers.add(moved.f.tobytes())
    assert len(answers) == 8


def test_the_points_of_every_darcy_scale_stay() -> None:
    for fidelity, strides in (("fast", (1,)), ("default", (1, 2))):
        solver = get("darcy").solver_at(fidelity)
        assert isinstance(solver, Darcy)
        x = solver.points()
        side = round(len(x) ** 0.5)
        for stride in strides:
            case = PointSet(x, grid=(side, side)).strided(stride)
            for element in symmetry("darcy", case).elements(case):
                assert element(case).x is case.x


def test_what_leaves_the_force_as_it_is_commutes_with_navier_stokes() -> None:
    solver = NavierStokes(resolution=16, stride=1, frames=2, viscosity=1e-3, dtype="float64")
    flow = solver.flow()

    def frames(start: np.ndarray) -> np.ndarray:
        spectrum = torch.fft.rfft2(torch.from_numpy(start), norm="forward").T[: flow.cut + 1]
        return np.stack([w.numpy() for w in flow.frames(spectrum, [0.5, 1.0])]).reshape(2, -1, 1)

    wave = torch.zeros(flow.cut + 1, 16, dtype=torch.complex128)
    wave[:3, :3] = torch.from_numpy(RNG(0).standard_normal((3, 3)) + 1j * RNG(1).standard_normal((3, 3)))
    start = flow.field(wave).numpy()
    times = np.arange(3.0)
    all_frames = np.concatenate([start.reshape(1, -1, 1), frames(start)])
    case = replace(solver.case(all_frames[..., 0]), times=times)
    assert relative(all_frames[-1], all_frames[0]) > 0.1
    group = symmetry("navier-stokes", case).elements(case)
    assert len(group) == 4 * 16
    for element in group[::3]:
        moved = element(case).u
        assert moved is not None
        assert relative(moved[1:], frames(moved[0].reshape(16, 16))) < 1e-10


def test_the_vorticity_changes_its_sign_by_the_mirrors_of_navier_stokes_alone() -> None:
    solver = NavierStokes(resolution=8, stride=1)
    case = solver.case(np.ones((1, 8, 8)))
    signs = [float(np.mean(np.asarray(g(case).u))) for g in symmetry("navier-stokes", case).elements(case)]
    assert sorted(signs) == [-1.0] * 16 + [1.0] * 16


def test_the_mirror_commutes_with_elasticity() -> None:
    """φ -> π - φ changes the sign of cos kφ for odd k and of sin kφ for even k."""
    signs = np.array([[-1, 1], [1, -1], [-1, 1], [1, -1], [-1, 1]]).ravel()
    draw = RNG(0).standard_normal(10)
    solver = Elasticity(refinement=1)
    case, other = (solver.sample(Given(theta)) for theta in (draw, signs * draw))
    moved = mirrored("elasticity", case)
    nearest = np.linalg.norm(moved.x[:, None] - other.x, axis=2).argmin(axis=1)
    assert np.abs(moved.x - other.x[nearest]).max() < 1e-6
    assert other.u is not None
    assert relative(moved.u, other.u[nearest]) < 1e-5


class Given(np.random.Generator):
    """Draws what it is told to."""

    def __init__(self, values: np.ndarray) -> None:
        super().__init__(np.random.PCG64(0))
        self.values = values

    def standard_normal(self, *_: object, **__: object) -> np.ndarray:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self.values


def assert_the_same(moved: PointSet, other: PointSet, tolerance: float) -> None:
    """Point by point: the grid keeps its sense."""
    assert np.abs(moved.x - other.x).max() < 1e-5
    assert relative(moved.weights, other.weights) < 1e-5
    assert relative(moved.u, other.u) < tolerance


def assert_commutes(
    problem: str,
    solve: Callable[[np.ndarray], PointSet],
    one: np.ndarray,
    other: np.ndarray,
    tolerance: float,
) -> None:
    """And would not without the mirror."""
    case, answer = solve(one), solve(other)
    assert relative(case.u, answer.u) > 30 * tolerance
    assert_the_same(mirrored(problem, case), answer, tolerance)


def test_the_mirror_commutes_with_pipe() -> None:
    theta = RNG(0).uniform(-1, 1, 9)
    assert_commutes("pipe", Pipe(elements=12).solve, theta, -theta, 1e-5)


def test_the_mirror_commutes_with_airfoil() -> None:
    """Without incidence; below from the left to above from the left."""
    shape = Airfoil().displacements(RNG(0))
    solver = Airfoil(around=60, behind=40, layers=40, first=1 / 30)
    assert_commutes("airfoil", solver.solve, shape, -shape[::-1], 1e-5)


def test_the_mirror_commutes_with_plasticity() -> None:
    solver = Plasticity(young=200e3 / 16, columns=20, rows=6)
    heights = random_heights(RNG(0))
    assert_commutes(
        "plasticity", lambda h: solver.case(h, solver.forge(h), 0), heights, heights[::-1].copy(), 1e-5
    )


def test_the_mirror_commutes_with_obstacle_flow() -> None:
    """The velocity across the channel changes its sign; the mask and the distance move with the obstacles."""
    solver = ObstacleFlow(resolution=64, stride=2)
    ellipses = solver.draw(RNG(0))
    below = ellipses * [1, -1, 1, 1, -1] + [0, 1, 0, 0, 0]
    case, answer = solver.solve(ellipses), solver.solve(below)
    moved = mirrored("obstacle-flow", case)
    assert moved.x is case.x
    assert relative(moved.f, answer.f) < 1e-6
    assert relative(moved.u, answer.u) < 1e-6
    assert relative(case.u, answer.u) > 0.1
