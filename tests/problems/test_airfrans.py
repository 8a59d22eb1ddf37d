"""Airfoils by OpenFOAM: profiles and grids against their definitions, a recorded flow, the live solver."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad

from lrsa.data.symmetry import Symmetry
from lrsa.errors import Failure
from lrsa.geometry.measures import cell_areas
from lrsa.numerics.openfoam import FoamFailed, run
from lrsa.pointset import PointSet
from lrsa.problems.airfrans.forces import lift_and_drag
from lrsa.problems.airfrans.mesh import c_grid, growing
from lrsa.problems.airfrans.problem import PROBLEM
from lrsa.problems.airfrans.profile import Flow, mean_line, nose_radius, profile
from lrsa.problems.airfrans.solver import (
    AirfRANS,
    Fields,
    Unsettled,
    at_nodes,
    case_of,
    read_fields,
)
from lrsa.problems.catalogue import get

RECORDED = Path(__file__).parents[1] / "data" / "airfrans"
FLOW = Flow((2.0, 4.0, 12.0), 3e6, 4.0)
FAST = AirfRANS(**PROBLEM.fidelities["fast"])
X = np.linspace(0, 1, 2001)
RNG = np.random.default_rng
THINNEST = 1100
"""Times as long as high is a cell at a wall at most; OpenFOAM warns from 1000 on."""


@pytest.fixture(scope="module")
def recorded() -> PointSet:
    """NACA 2412 at 4 degrees, Re 3e6, on the fast grid; made by simpleFoam."""
    return case_of(FLOW, FAST.grid(FLOW), read_fields(RECORDED))


def test_the_profiles_have_the_thickness_and_camber_of_their_digits() -> None:
    lower, upper = profile((0.0, 0.0, 12.0), X)
    assert np.allclose(upper, lower * [1, -1])
    assert 2 * upper[:, 1].max() == pytest.approx(0.12, rel=2e-3)
    assert upper[-1] == pytest.approx([1, 0], abs=1e-12)
    line, slope = mean_line((4.0, 4.0, 12.0), X)
    assert line.max() == pytest.approx(0.04)
    assert X[line.argmax()] == pytest.approx(0.4)
    assert np.allclose(np.gradient(line, X)[1:-1], slope[1:-1], atol=1e-3)
    x = 1e-6
    assert profile((0.0, 0.0, 12.0), np.array([x]))[1][0, 1] == pytest.approx(
        np.sqrt(2 * nose_radius((0.0, 0.0, 12.0)) * x), rel=1e-2
    )


@pytest.mark.parametrize("place", [3.0, 4.5, 8.0])
def test_a_mean_line_of_five_digits_has_its_design_lift_in_thin_airfoil_theory(place: float) -> None:
    """c_l = 2 ∫ y_c' cos θ dθ at the ideal angle, x = (1 - cos θ)/2; its highest point is at P/20."""

    def integrand(theta: float) -> float:
        _, slope = mean_line((2.0, place, 0.0, 12.0), np.array([(1 - np.cos(theta)) / 2]))
        return float(2 * slope[0] * np.cos(theta))

    lift, _ = quad(integrand, 0, np.pi, limit=200)
    assert lift == pytest.approx(0.3, rel=1e-4)
    line, _ = mean_line((2.0, place, 0.0, 12.0), X)
    assert X[line.argmax()] == pytest.approx(place / 20, abs=1e-3)


def test_a_reflexed_line_is_smooth_and_ends_on_the_chord() -> None:
    for place in (3.0, 5.0, 8.0):
        line, slope = mean_line((3.0, place, 1.0, 12.0), X)
        assert line[[0, -1]] == pytest.approx([0, 0], abs=1e-12)
        assert np.allclose(np.gradient(line, X)[1:-1], slope[1:-1], atol=5e-3)


def test_draws_follow_the_published_law() -> None:
    rng = RNG(0)
    flows = [Flow.draw(rng) for _ in range(2000)]
    four = [flow.digits for flow in flows if len(flow.digits) == 3]
    five = [flow.digits for flow in flows if len(flow.digits) == 4]
    assert len(four) == pytest.approx(1000, abs=120)
    assert np.mean([p == 0 for _, p, _ in four]) == pytest.approx(1.5 / 7, abs=0.05)
    assert min(p for _, p, _ in four if p) >= 1.5
    assert {q for _, _, q, _ in five} == {0.0, 1.0}
    for values, low, high in (
        ([f.reynolds for f in flows], 2e6, 6e6),
        ([f.angle for f in flows], -5, 15),
        ([f.digits[-1] for f in flows], 5, 20),
        ([d[1] for d in five], 3, 8),
    ):
        assert low <= min(values) < low + 0.05 * (high - low)
        assert high - 0.05 * (high - low) < max(values) <= high


def test_grids_are_regular_and_have_the_asked_height_at_the_wall() -> None:
    """Over random flows: no cell inside out, no corner worse than 35 degrees from a right angle."""
    rng = RNG(1)
    for _ in range(20):
        flow = Flow.draw(rng)
        grid = c_grid(flow.digits, flow.angle, 68, 34, 60, 2e-5, 25.0)
        nodes = grid.nodes
        assert cell_areas(nodes).max() < 0
        one, two = nodes[1:, :-1] - nodes[:-1, :-1], nodes[:-1, 1:] - nodes[:-1, :-1]
        cosine = (one * two).sum(-1) / np.linalg.norm(one, axis=-1) / np.linalg.norm(two, axis=-1)
        assert np.degrees(np.arcsin(np.abs(cosine))).max() < 35
        wall = slice(grid.wake, len(nodes) - grid.wake)
        heights = np.linalg.norm(nodes[wall, 1] - nodes[wall, 0], axis=-1)
        assert heights == pytest.approx(np.full(137, 2e-5), rel=0.02)
        distance = np.linalg.norm(nodes[:, -1] - [0.5, 0], axis=-1)
        assert distance.min() > 20


def test_the_wall_of_a_grid_is_the_profile_and_the_wake_is_closed() -> None:
    digits = (4.0, 3.0, 0.0, 15.0)
    grid = c_grid(digits, 8.0, 30, 15, 30, 1e-4, 20.0)
    lower, upper = profile(digits, (1 - np.cos(np.pi * np.linspace(0, 1, 20001))) / 2)
    curve = np.concatenate([lower, upper])
    wall = grid.points[np.unique(grid.wall)]
    assert np.linalg.norm(wall[:, None] - curve, axis=-1).min(1).max() < 2e-4
    assert len(grid.wall) == 60
    assert grid.wall[0, 0] == grid.wall[-1, 1]
    assert grid.points[grid.wall[0, 0]] == pytest.approx([1, 0], abs=1e-9)
    assert np.array_equal(grid.index[:16, 0], grid.index[::-1][:16, 0])
    assert len(grid.points) == 91 * 31 - 16
    assert np.allclose(grid.points[grid.index], grid.nodes)


def test_steps_that_do_not_fit_are_refused() -> None:
    steps = np.diff(growing(0.01, 20))
    assert steps[0] == pytest.approx(0.01)
    assert np.allclose(steps[1:] / steps[:-1], steps[1] / steps[0])
    for first, cells in ((0.2, 10), (1e-9, 5)):
        with pytest.raises(Failure, match="do not suit"):
            growing(first, cells)


def test_nodes_get_the_value_between_the_cells() -> None:
    """A linear field is met up to the curvature of the grid, half the error on a grid twice as fine."""
    errors = []
    for k in (1, 2):
        grid = c_grid((0.0, 0.0, 12.0), 0.0, 30 * k, 15 * k, 30 * k, 1e-3 / k, 20.0)
        values = grid.points[grid.cells].mean(1)
        inner = np.ones(len(grid.points), bool)
        inner[grid.wall] = inner[grid.far] = False
        near = inner & (np.abs(grid.points) < 2).all(1)
        errors.append(np.abs(at_nodes(values, grid) - grid.points)[near].max())
    assert errors[1] < 0.55 * errors[0]
    assert errors[1] < 0.02


def test_a_recorded_flow_has_openfoams_lift_and_drag_by_our_integrals(recorded: PointSet) -> None:
    """From the fields at the nodes, against forceCoeffs of the same run."""
    fields, ours = read_fields(RECORDED), lift_and_drag(recorded)
    assert ours.lift == pytest.approx(fields.lift, rel=0.02)
    assert ours.drag == pytest.approx(fields.drag, rel=0.02)
    assert recorded.u is not None
    assert lift_and_drag(recorded, 4 * recorded.u).lift == pytest.approx(4 * ours.lift, rel=1e-6)


def test_a_recorded_flow_becomes_a_case(recorded: PointSet) -> None:
    recorded.check_finite("it")
    assert recorded.f is not None
    assert recorded.u is not None
    assert recorded.surface is not None
    assert recorded.weights is not None
    x, f, u, wall = recorded.x, recorded.f, recorded.u, recorded.surface
    assert (x.min(0) >= [-2, -1.5]).all()
    assert (x.max(0) <= [4, 1.5]).all()
    assert wall.sum() == 68
    assert (f[wall, 2] == 0).all()
    assert (f[~wall, 2] > 0).all()
    assert (u[wall][:, [0, 1, 3]] == 0).all()
    assert np.hypot(*f[wall, 3:].T) == pytest.approx(np.ones(68), rel=1e-5)
    assert (f[~wall, 3:] == 0).all()
    assert ((x[wall] - [0.5, 0.02]) * f[wall, 3:]).sum(1).min() > -0.02
    assert f[0, :2] == pytest.approx(FLOW.velocity, rel=1e-6)
    head = u[:, 2] + 0.5 * (u[:, 0] ** 2 + u[:, 1] ** 2)
    outside = (f[:, 2] > 0.2) & (x[:, 0] < 0.5)
    assert head[outside] == pytest.approx(np.full(outside.sum(), 0.5 * FLOW.speed**2), rel=0.02)
    assert recorded.weights.sum() == pytest.approx(18, rel=0.1)
    assert (recorded.redraws, recorded.iterations) == (0, 269)


def test_a_flow_that_does_not_settle_is_drawn_again_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[Flow] = []

    def solve(self: AirfRANS, flow: Flow, grid: Any) -> Fields:
        tried.append(flow)
        if len(tried) == 1:
            raise Unsettled("no")
        if len(tried) == 2:
            raise FoamFailed("crash")
        cells = len(grid.cells)
        return Fields(np.ones((cells, 2)), np.ones(cells), np.ones(cells), 7, 0.0, 0.0)

    monkeypatch.setattr(AirfRANS, "solve", solve)
    case = FAST.sample(RNG(0))
    assert (case.redraws, case.iterations) == (2, 7)
    rng = RNG(0)
    assert tried == [Flow.draw(rng) for _ in range(3)]
    assert case.f is not None
    assert case.f[0, :2] == pytest.approx(tried[2].velocity)
    tried.clear()
    monkeypatch.setattr("lrsa.problems.airfrans.solver.DRAWS", 1)
    with pytest.raises(Failure, match="Allow more iterations"):
        FAST.sample(RNG(0))


def test_the_mirrored_flow_has_the_mirrored_grid() -> None:
    """The symmetry that the problem names, on a profile without camber."""
    up, down = (FAST.grid(Flow((0.0, 0.0, 12.0), 3e6, angle)).nodes for angle in (6.0, -6.0))
    assert np.allclose(up, down[::-1] * [1, -1], atol=1e-9)


def test_the_named_symmetry_turns_stream_normals_and_velocity(recorded: PointSet) -> None:
    _, mirror = Symmetry.of(PROBLEM.symmetry, [recorded]).elements(recorded)
    moved = mirror(recorded)
    assert recorded.f is not None
    assert recorded.u is not None
    assert np.allclose(moved.x, recorded.x * [1, -1])
    assert np.allclose(moved.f, recorded.f * [1, -1, 1, 1, -1])  # pyright: ignore
    assert np.allclose(moved.u, recorded.u * [1, -1, 1, 1])  # pyright: ignore


def test_the_time_that_making_takes_is_announced_where_it_is_long() -> None:
    assert PROBLEM.cost("default", 250) == " (about 83 CPU minutes)"
    assert PROBLEM.cost("fast", 5) == get("darcy").cost("default", 10**5) == ""


@pytest.mark.slow
def test_openfoam_finds_nothing_wrong_with_the_grids_but_that_cells_at_the_wall_are_thin(
    tmp_path: Path,
) -> None:
    rng, solver = RNG(2), AirfRANS()
    for k in range(5):
        flow, folder = Flow.draw(rng), tmp_path / str(k)
        folder.mkdir()
        solver.write(folder, flow, solver.grid(flow))
        log = run(folder, "checkMesh")
        assert [line for line in log.splitlines() if "***" in line and "High aspect ratio" not in line] == []
        longest = re.search(r"Max aspect ratio *[:=] *([\d.]+)", log)
        assert longest is not None
        assert float(longest[1]) < THINNEST


@pytest.mark.slow
def test_the_live_solver_repeats_the_recorded_flow_to_the_bit(recorded: PointSet) -> None:
    grid = FAST.grid(FLOW)
    again = case_of(FLOW, grid, FAST.solve(FLOW, grid))
    assert again.u is not None
    assert recorded.u is not None
    assert np.allclose(again.u, recorded.u, rtol=1e-4, atol=1e-4)
    assert np.array_equal(case_of(FLOW, grid, FAST.solve(FLOW, grid)).u, again.u)  # pyright: ignore


@pytest.mark.slow
def test_a_run_that_is_cut_short_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LRSA_HOME", str(tmp_path))
    with pytest.raises(Unsettled, match="after 5 iterations"):
        replace(FAST, iterations=5).solve(FLOW, FAST.grid(FLOW))
    assert len(list((tmp_path / "logs").iterdir())) == 1
    assert not list((tmp_path / "scratch").iterdir())
    assert json.dumps(PROBLEM.schema("fast", 0).provenance)
