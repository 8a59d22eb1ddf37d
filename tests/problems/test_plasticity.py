"""Forging: the law of the material, the elements, the contact, the balances of whole runs, the samples."""

from copy import deepcopy
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest

from lrsa.data.store import Dataset
from lrsa.data.writing import write_dataset
from lrsa.errors import Failure
from lrsa.problems.plasticity import solver as plasticity
from lrsa.problems.plasticity.contact import PENETRATION, SPEED, die_at, nearest, touch
from lrsa.problems.plasticity.die import (
    HEIGHT,
    RIGHT,
    RISE,
    TOP,
    WIDTH,
    die_heights,
    die_pieces,
    random_heights,
)
from lrsa.problems.plasticity.dynamics import (
    FINISHED,
    FLOOR,
    INVERTED,
    LEFT,
    LOSS,
    PLASTIC,
    PUSH_X,
    PUSH_Y,
    SHORTEST,
    THIN,
    WORK,
    Forging,
    Material,
    Workpiece,
    at_rest,
    forge,
    resist,
)
from lrsa.problems.plasticity.flow import ROWS, TILE, longest_step, return_map
from lrsa.problems.plasticity.solver import Plasticity, deepest, passed, smallest_corner
from lrsa.report.datacard import about

STEEL = Material(200e3, 0.3, 70.0, 7.85e-3)
COARSE = Plasticity(young=200e3 / 16, columns=40, rows=12)
HEIGHTS = np.array([0, -0.3, -1.0, -0.4, -0.1, -0.6, -0.5, 0])


@lru_cache
def forged(solver: Plasticity = COARSE) -> Forging:
    return solver.forge(HEIGHTS)


def crooked(columns: int = 4, rows: int = 3) -> Workpiece:
    """A small block with displaced nodes, the map from the square still being one."""
    block = at_rest(columns, rows, STEEL.density)
    rng = np.random.default_rng(0)
    for place in (block.x, block.y):
        place += 0.2 * (HEIGHT / rows) * rng.uniform(-1, 1, place.shape)
    return block


def tile() -> np.ndarray:
    made = np.zeros(ROWS * TILE)
    made[:TILE] = made[4 * TILE : 5 * TILE] = 1.0
    return made


def stresses(block: Workpiece) -> np.ndarray:
    """(columns, rows, points, 3), of blocks with one tile for a column."""
    state = block.state[:, 0].reshape(len(block.state), 4, 3, TILE)
    return np.moveaxis(state, 3, 1)[:, : block.x.shape[1] - 1]


def test_the_return_is_exact_in_tension_and_in_shear() -> None:
    young, nu, limit, _ = STEEL
    strain = 1e-3
    # At the yield stress in tension, plastic strain goes as (1, -½): the stress must not move.
    p, m = limit + young / (1 - nu) * strain / 2, limit + young / (1 + nu) * strain * 1.5
    p, m, tau, gamma = return_map(p, m, 0.0, young, nu, limit)
    assert np.allclose([p, m], limit, rtol=1e-11, atol=0)
    assert tau == 0
    assert np.isclose(gamma * 2 / 3 * limit, strain, rtol=1e-11, atol=0)
    p, m, tau, _ = return_map(0.0, 0.0, 3 * limit, young, nu, limit)
    assert p == m == 0
    assert np.isclose(tau, limit / np.sqrt(3), rtol=1e-11, atol=0)


def test_the_return_ends_on_the_yield_surface_along_its_normal() -> None:
    young, nu, limit, _ = STEEL
    rng = np.random.default_rng(0)
    for trial in limit * rng.uniform(-1.2, 1.2, (300, 3)):
        p, m, tau, gamma = return_map(*trial, young, nu, limit)
        equivalent = np.sqrt(p * p / 4 + 0.75 * m * m + 3 * tau * tau)
        if gamma == 0:
            assert np.allclose([p, m, tau], trial, rtol=1e-15)
            assert equivalent <= limit
        else:
            assert np.isclose(equivalent, limit, rtol=1e-11, atol=0)
            plastic = (trial - (p, m, tau)) * [(1 - nu) / young, (1 + nu) / young, (1 + nu) / young]
            assert np.allclose(plastic, gamma * np.array([p / 3, m, tau]), rtol=1e-9, atol=1e-18)


def test_a_rigid_motion_turns_the_stress_and_makes_none() -> None:
    block = crooked()
    resist(block, STEEL, 1.0, tile())
    assert np.abs(stresses(block)).max() == 0
    block.state[:, 0].reshape(4, 4, 3, TILE)[:] = np.array([30.0, -10.0, 20.0])[:, None]
    angle = 0.4
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    for _ in range(5):
        x = np.stack([block.x, block.y])
        moved = np.tensordot(turn, x, 1) + np.array([3.0, -1.0])[:, None, None]
        block.vx[:], block.vy[:] = moved - x
        block.x[:], block.y[:] = moved
        resist(block, STEEL, 1.0, tile())
    whole = np.linalg.matrix_power(turn, 5)
    stress = whole @ np.array([[30.0, 20.0], [20.0, -10.0]]) @ whole.T
    assert np.allclose(stresses(block), [stress[0, 0], stress[1, 1], stress[0, 1]], rtol=0, atol=1e-8)


def test_a_linear_motion_of_crooked_elements_gives_one_stress() -> None:
    block = crooked()
    gradient = 1e-5 * np.array([[3.0, 1.0], [-2.0, 4.0]])
    motion = np.tensordot(gradient, np.stack([block.x, block.y]), 1)
    block.vx[:], block.vy[:] = motion
    block.x[:], block.y[:] = np.stack([block.x, block.y]) + motion
    resist(block, STEEL, 1.0, tile())
    found = stresses(block)
    assert np.allclose(found, found[0, 0, 0], rtol=1e-9)
    young, nu = STEEL.young, STEEL.nu
    assert np.isclose(found[0, 0, 0, 0], young / (1 - nu**2) * (3e-5 + nu * 4e-5), rtol=1e-4)


def test_the_forces_of_the_elements_have_no_resultant_and_no_moment() -> None:
    block = crooked()
    rng = np.random.default_rng(1)
    block.vx[:], block.vy[:] = rng.uniform(-0.05, 0.05, (2, *block.x.shape))
    resist(block, STEEL, 1.0, tile())
    largest = np.abs(block.fx).max()
    assert largest > 10
    moment = (block.x * block.fy - block.y * block.fx).sum()
    assert max(abs(block.fx.sum()), abs(block.fy.sum()), abs(moment) / WIDTH) < 1e-12 * largest


def test_the_step_is_below_the_stability_limit_and_not_far_below() -> None:
    """Against the largest eigenvalue of the assembled stiffness, by differences of the forces."""
    for squeeze in (1.0, 0.1):
        block = crooked()
        block.y[:] *= squeeze
        size, tiny = block.x.size, 1e-7
        stiffness = np.zeros((2 * size, 2 * size))
        for k in range(2 * size):
            one = deepcopy(block)
            unit = np.zeros(2 * size)
            unit[k] = tiny
            one.vx[:], one.vy[:] = unit.reshape(2, *block.x.shape)
            resist(one, STEEL, 1.0, tile())
            stiffness[:, k] = np.concatenate([one.fx.ravel(), one.fy.ravel()]) / tiny
        # Thickness at the Jacobian as it is, not as at rest: the bound has the volume at rest, as the law.
        mass = np.tile(block.mass.ravel(), 2)
        fastest = np.sqrt(np.linalg.eigvals(stiffness / mass[:, None]).real.max())
        step, smallest = longest_step(block, STEEL)
        assert smallest > 0
        assert 0.5 < step * fastest / 2 <= 1


def test_a_flat_die_compresses_the_block_as_the_theory_says() -> None:
    """Uniaxial: σ_yy = -σ_Y, the width grows as the square root of the height that is lost."""
    flat = np.zeros((4, 7))
    flat[3] = TOP
    block = at_rest(8, 4, STEEL.density)
    run = forge(block, STEEL, flat, 0.9, 0.01)
    assert run.end == FINISHED
    height = HEIGHT - 5.7
    assert np.allclose(run.frames[-1, :, 0, 1], TOP - 5.7, atol=1e-5)
    width = np.ptp(run.frames[-1, :, :, 0], axis=0)
    assert np.allclose(width, WIDTH * np.sqrt(HEIGHT / height), rtol=3e-3)
    assert np.isclose(run.ledger[WORK], 70 * WIDTH * HEIGHT * np.log(HEIGHT / height), rtol=5e-3)
    assert np.allclose(stresses(block)[..., 1], -70, rtol=2e-2)


def test_the_impulses_of_die_and_floor_are_the_momentum() -> None:
    run = forged()
    ledger = run.ledger
    assert run.end == FINISHED
    assert ledger[PUSH_Y] < 0 < ledger[FLOOR]
    assert np.isclose(run.momentum[0], ledger[PUSH_X], rtol=1e-9, atol=1e-9 * ledger[FLOOR])
    assert np.isclose(run.momentum[1], ledger[PUSH_Y] + ledger[FLOOR], rtol=1e-9, atol=1e-9 * ledger[FLOOR])


def test_the_work_of_the_die_is_found_again() -> None:
    run = forged()
    assert abs(run.energy_error) < 3e-4
    assert run.ledger[PLASTIC] > 0.9 * run.ledger[WORK]
    assert 0 <= run.ledger[LOSS] < 1e-3 * run.ledger[WORK]


def test_no_node_is_above_the_die_and_no_element_inverted() -> None:
    run = forged()
    assert run.ledger[LEFT] < 1e-3
    assert deepest(run.frames, HEIGHTS) < 1e-4
    assert smallest_corner(run.frames) > 0
    assert passed(run, HEIGHTS)
    assert np.abs(run.frames[:, :, -1, 1] - (TOP - HEIGHT)).max() == 0


@pytest.mark.slow
def test_a_step_half_as_long_changes_little() -> None:
    once, twice = forged().frames, forged(replace(COARSE, safety=0.45)).frames
    assert np.linalg.norm(once - twice) < 0.02 * np.linalg.norm(twice - twice[0])


def test_a_mirrored_die_makes_a_mirrored_forging() -> None:
    there, back = forged().frames, COARSE.forge(HEIGHTS[::-1]).frames
    mirrored = back[:, ::-1] * [-1, 1] + [2 * RIGHT - WIDTH, 0]
    assert np.linalg.norm(there - mirrored) < 0.02 * np.linalg.norm(there - there[0])


def test_contact_ends_penetration_and_only_pushes() -> None:
    pieces = die_pieces(HEIGHTS)
    rng = np.random.default_rng(0)
    block = at_rest(100, 1, STEEL.density)
    block.y[:, 0] = die_heights(pieces, block.x[:, 0]) - 1 + rng.uniform(-2e-4, 2e-4, 101)
    x, y = block.x[:, 0].copy(), block.y[:, 0].copy()
    contacts = np.zeros((201, 5))
    assert touch(block.x, block.y, block.mass, pieces, 1.0, contacts) < 5 * PENETRATION
    assert (contacts[:, 0] >= 0).all()
    middle = [(a[1:] + a[:-1]) / 2 for a in (block.x[:, 0], block.y[:, 0])]
    above = [b - die_heights(pieces, a) + 1 for a, b in ((block.x[:, 0], block.y[:, 0]), middle)]
    assert max(a.max() for a in above) < 1e-4
    push = block.mass[:, 0] * (block.y[:, 0] - y)
    assert np.isclose(push.sum(), -(contacts[:, 0] * contacts[:, 3]).sum())
    assert np.abs(block.x[:, 0] - x).max() < 2e-2


def test_the_nearest_tangent_of_the_die() -> None:
    pieces = die_pieces(HEIGHTS)
    for at in np.linspace(RIGHT - WIDTH + 1, RIGHT - 1, 40):
        height, slope, _ = die_at(pieces, at)
        normal = np.array([-slope, 1]) / np.hypot(slope, 1)
        nx, ny, offset = nearest(pieces, *(np.array([at, height]) + 1e-3 * normal))
        assert np.allclose([nx, ny], normal, atol=1e-7)
        assert np.isclose(offset, normal @ [at, height], atol=1e-9)


def test_the_dies_touch_the_block_and_end_high() -> None:
    x = np.linspace(RIGHT - WIDTH, RIGHT, 20001)
    for seed in range(20):
        die = die_heights(die_pieces(random_heights(np.random.default_rng(seed))), x)
        assert np.allclose(die[[0, -1]], TOP + RISE)
        assert np.isclose(die.min(), TOP, atol=1e-5)


def test_folded_elements_are_seen() -> None:
    x = np.stack(np.meshgrid([1.0, 0.0], [1.0, 0.0], indexing="ij"), axis=-1)[None]
    assert smallest_corner(x) == 1
    dented = x.copy()
    dented[0, 0, 0] = 0.4
    assert smallest_corner(dented) < 0


def test_dies_that_invert_or_flatten_elements_fail() -> None:
    thin = replace(COARSE, thinnest=0.9).forge(HEIGHTS)
    assert thin.end == THIN
    assert thin.ledger[SHORTEST] < 0.9
    assert not passed(thin, HEIGHTS)
    block = at_rest(4, 3, STEEL.density)
    block.y[2, 1] += 20
    assert forge(block, STEEL, die_pieces(HEIGHTS), 0.9, 0.01).end == INVERTED


def test_failed_dies_are_drawn_again_and_counted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    solver = Plasticity(young=200e3 / 16, columns=10, rows=3)
    first = solver.sample(np.random.default_rng(5))
    assert first.redraws == 0
    answers = iter([False, False, True])
    monkeypatch.setattr(plasticity, "passed", lambda *_: next(answers))
    third = solver.sample(np.random.default_rng(5))
    assert third.redraws == 2
    rng = np.random.default_rng(5)
    drawn = [die_heights(die_pieces(random_heights(rng)), third.x[:, 0]) for _ in range(3)]
    assert third.f is not None
    assert [np.allclose(die, third.f[:, 0], atol=1e-5) for die in drawn] == [False, False, True]
    write_dataset(tmp_path / "d.h5", {"train": [first, third], "test": [third]})
    train = Dataset(tmp_path / "d.h5", "train")
    assert [case.redraws for case in train] == [0, 2]
    assert "; 4 draws failed and were made again" in about(train)
    monkeypatch.setattr(plasticity, "passed", lambda *_: False)
    monkeypatch.setattr(plasticity, "DRAWS", 3)
    with pytest.raises(Failure, match="3 dies in a row failed"):
        solver.sample(np.random.default_rng(5))


def test_a_sample_has_the_published_layout() -> None:
    case = replace(COARSE, columns=100, rows=30).case(HEIGHTS, _at_rest(), 0)
    assert case.grid == (101, 31)
    assert case.f is not None
    assert case.u is not None
    assert case.u.shape == (20, 3131, 4)
    x = case.x.reshape(101, 31, 2)
    assert np.allclose(x[:, 0, 0], 0.35 - 0.5 * np.arange(101), atol=1e-5)
    assert np.allclose(x[0, :, 1], 14.9 - 0.5 * np.arange(31), atol=1e-5)
    assert np.allclose(case.u[0], np.concatenate([case.x, 0 * case.x], axis=1))
    assert (np.ptp(case.f.reshape(101, 31), axis=1) == 0).all()
    assert case.weights is not None
    assert np.isclose(case.weights.sum(), WIDTH * HEIGHT)
    assert case.times is not None
    assert np.allclose(case.times * SPEED, 0.3 * np.arange(20))


def _at_rest() -> Forging:
    frames = np.repeat(plasticity.nodes()[None], 20, axis=0)
    return Forging(frames, FINISHED, np.zeros(9), 0.0, 0.0, (0.0, 0.0))


def test_the_same_generator_makes_the_same_sample() -> None:
    solver = Plasticity(young=200e3 / 16, columns=10, rows=3)
    one, two = (solver.sample(np.random.default_rng(3)) for _ in range(2))
    for name, array in one.arrays().items():
        assert array.dtype == (np.int64 if name == "redraws" else np.float32)
        assert np.array_equal(array, two.arrays()[name])
