"""Pipe turbulence by OpenFOAM: the mesh and the inflow, a recorded flow, the live solver."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lrsa.data.making import case_rng
from lrsa.errors import Failure, LrsaError
from lrsa.numerics import openfoam
from lrsa.numerics.openfoam import FoamFailed, run
from lrsa.pointset import PointSet
from lrsa.problems.catalogue import get
from lrsa.problems.making import make_dataset
from lrsa.problems.pipe_turbulence.problem import PROBLEM
from lrsa.problems.pipe_turbulence.solver import (
    LEAST,
    Frames,
    Inflow,
    PipeTurbulence,
    Unsolved,
    at_nodes,
    patches,
    pipe,
    to_nodes,
    worst_residual,
)

RECORDED = Path(__file__).parents[1] / "data" / "pipe_turbulence"
"""The velocities of a run at 12 and 13 s, and the lines of its log that tell of times and equations."""
FAST = PipeTurbulence(**PROBLEM.fidelities["fast"])
RNG = np.random.default_rng
INFLOW = Inflow.draw(RNG(0), FAST.start)
LOG = """
Time = 0.1

smoothSolver:  Solving for Ux, Initial residual = 0.5, Final residual = 2e-07, No Iterations 3
GAMG:  Solving for p, Initial residual = 0.4, Final residual = 0.01, No Iterations 2
GAMG:  Solving for p, Initial residual = 0.1, Final residual = 3e-07, No Iterations 20

Time = 0.2

GAMG:  Solving for p, Initial residual = 0.1, Final residual = 1e-07, No Iterations 20
"""


@pytest.fixture(scope="module")
def frames() -> Frames:
    return FAST.read(RECORDED, (RECORDED / "log.pimpleFoam").read_text())


@pytest.fixture(scope="module")
def recorded(frames: Frames) -> PointSet:
    return FAST.case_of(INFLOW, frames)


def test_the_mesh_has_the_published_number_of_nodes_and_its_outline() -> None:
    mesh = pipe(0)
    assert len(mesh.nodes) == 2673
    sides = patches(0)
    lengths = {
        name: np.linalg.norm(np.diff(mesh.nodes[edges], axis=1), axis=-1).sum()
        for name, (_, edges) in sides.items()
    }
    assert lengths["inlet"] == pytest.approx(1)
    assert lengths["outlet"] == pytest.approx(1)
    quarters = np.pi / 2 * (0.25 + 0.5) * 2 - 2 * 2 * (0.25 + 0.5)
    assert lengths["wall"] == pytest.approx(2 * (7 + 2) + quarters, rel=2e-3)
    corners = 2 * (1 - np.pi / 4) * (0.25**2 - 0.5**2)  # filled inside, cut off outside
    assert mesh.areas.sum() == pytest.approx(7 + 2 + corners, rel=2e-3)
    for name, (kind, edges) in patches(1).items():
        assert len(edges) == 2 * len(sides[name][1])
        assert kind == ("wall" if name == "wall" else "patch")


def test_the_first_nodes_of_a_finer_mesh_are_those_of_the_benchmark() -> None:
    assert np.array_equal(pipe(1).nodes[:2673], pipe(0).nodes)
    assert len(pipe(1).triangles) == 4 * len(pipe(0).triangles)
    with pytest.raises(LrsaError, match="from 0 on"):
        pipe(-1)


def test_nodes_get_the_mean_of_their_cells() -> None:
    """Constants exactly; linear fields inside up to the unevenness of the mesh, halved with its size."""
    inside = np.ones(2673, bool)
    for _, edges in patches(0).values():
        inside[edges] = False
    errors = []
    for refinement in (0, 1):
        mesh, between = pipe(refinement), to_nodes(refinement)
        assert np.allclose(between.sum(axis=1), 1)
        centres = mesh.nodes[mesh.triangles].mean(1)
        errors.append(np.abs((between @ centres - pipe(0).nodes)[inside]).max())
    assert errors[0] < 0.02
    assert errors[1] < 0.6 * errors[0]


def test_an_inflow_pulsates_and_is_constant_from_the_first_frame_on() -> None:
    rng = RNG(0)
    inflows = [Inflow.draw(rng, 12.0) for _ in range(200)]
    speeds = np.stack([inflow.at(np.linspace(0, 13, 131)) for inflow in inflows])
    assert speeds.min() > LEAST
    assert speeds.mean() == pytest.approx(1, abs=0.05)
    assert (speeds[:, 120:] == speeds[:, 120:121]).all()
    deviation = (speeds[:, :120] - speeds[:, :120].mean(1, keepdims=True)).std()
    assert deviation == pytest.approx(0.15 * np.sqrt(WAVES_HALF), rel=0.2)


WAVES_HALF = 2.0
"""Four waves, each of half the square of its amplitude."""


def test_no_trajectory_is_on_both_sides_or_twice_on_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every case of every split is a flow of its own."""
    drawn: list[Inflow] = []

    def solve(self: PipeTurbulence, inflow: Inflow) -> Frames:
        drawn.append(inflow)
        cells = np.ones((len(pipe(self.refinement).triangles), 2))
        return Frames(cells, cells, 1, 0.0)

    monkeypatch.setattr(PipeTurbulence, "solve", solve)
    for split in ("train", "test"):
        for i in range(20):
            FAST.sample(case_rng("pipe-turbulence", PROBLEM.version, 0, split, i))
    assert len(set(drawn)) == len(drawn) == 40


def test_a_recorded_flow_becomes_a_case(recorded: PointSet) -> None:
    recorded.check_finite("it")
    arrays, sides = recorded.arrays(), patches(0)
    first, later = arrays["f"][:, 0], arrays["u"][:, 0]
    wall = np.unique(sides["wall"][1])
    assert not first[wall].any()
    assert not later[wall].any()
    inlet = np.setdiff1d(sides["inlet"][1], wall)
    assert first[inlet] == pytest.approx(np.full(15, INFLOW.at(np.array([12.0]))[0]), rel=1e-6)
    assert np.array_equal(first[inlet], later[inlet]), "the inflow is constant between the frames"
    assert 0.05 < np.linalg.norm(later - first) / np.linalg.norm(later) < 0.5, "and the flow is not"
    assert arrays["weights"].sum() == pytest.approx(pipe(0).areas.sum(), rel=1e-5)
    assert (recorded.redraws, recorded.iterations) == (0, 325)
    assert 0 < arrays["residual"] <= FAST.tolerance


def test_what_flows_in_flows_out_of_the_recorded_flow(frames: Frames) -> None:
    """Through the outlet, and through the middle of the part that climbs, at both times."""
    mesh, between = pipe(0), to_nodes(0)
    for values, time in ((frames.first, 12.0), (frames.later, 13.0)):
        inflow = float(INFLOW.at(np.array([time]))[0])
        velocity = at_nodes(values, between, inflow)
        ends = patches(0)["outlet"][1]
        width = np.abs(np.diff(mesh.nodes[ends, 1], axis=1)).ravel()
        assert velocity[ends, 0].mean(1) @ width == pytest.approx(inflow, rel=0.04)
        strip = np.abs(mesh.nodes[mesh.triangles].mean(1)[:, 1] - 1.5) < 0.15
        climbing = (values[strip, 1] * mesh.areas[strip]).sum() / mesh.areas[strip].sum()
        assert climbing == pytest.approx(inflow, rel=0.02)


def test_the_worst_residual_is_that_after_the_last_correction_of_a_step() -> None:
    assert worst_residual(LOG) == 3e-7
    assert worst_residual("it said nothing") == np.inf
    assert worst_residual((RECORDED / "log.pimpleFoam").read_text()) <= FAST.tolerance


def test_a_flow_that_is_not_solved_is_drawn_again_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[Inflow] = []

    def solve(self: PipeTurbulence, inflow: Inflow) -> Frames:
        tried.append(inflow)
        if len(tried) < 3:
            raise Unsolved("no") if len(tried) == 1 else FoamFailed("crash")
        cells = np.ones((len(pipe(0).triangles), 2))
        return Frames(cells, cells, 7, 0.0)

    monkeypatch.setattr(PipeTurbulence, "solve", solve)
    case = FAST.sample(RNG(0))
    assert (case.redraws, case.iterations) == (2, 7)
    rng = RNG(0)
    assert tried == [Inflow.draw(rng, FAST.start) for _ in range(3)]
    tried.clear()
    monkeypatch.setattr("lrsa.problems.pipe_turbulence.solver.DRAWS", 2)
    with pytest.raises(Failure, match="Take smaller steps"):
        FAST.sample(RNG(0))


def test_without_openfoam_one_line_says_how_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LRSA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(openfoam, "PLACES", (str(tmp_path / "nowhere*"),))
    with pytest.raises(LrsaError, match="apt-get install openfoam") as caught:
        FAST.sample(RNG(0))
    assert len(caught.value.lines) == 1


def test_the_time_that_making_takes_is_announced() -> None:
    assert "CPU minutes" in PROBLEM.cost("fast", 40)
    assert get("pipe-turbulence") is PROBLEM


@pytest.mark.slow
def test_openfoam_finds_nothing_wrong_with_the_meshes(tmp_path: Path) -> None:
    for refinement in (0, 1):
        folder = tmp_path / str(refinement)
        folder.mkdir()
        replace(FAST, refinement=refinement).write(folder, INFLOW)
        assert "Mesh OK." in run(folder, "checkMesh")


@pytest.mark.slow
def test_the_live_solver_repeats_the_recorded_flow(recorded: PointSet, tmp_path: Path) -> None:
    again = FAST.case_of(INFLOW, FAST.solve(INFLOW))
    for name in ("f", "u"):
        assert np.allclose(again.arrays()[name], recorded.arrays()[name], rtol=1e-3, atol=1e-3)
    short = tmp_path / "a.h5"
    make_dataset(PROBLEM, samples=1, test=1, fidelity="fast", out=short, workers=2)
    assert short.stat().st_size < 1e6


@pytest.mark.slow
def test_equations_that_are_not_solved_are_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps so long that the flow runs away, or an equation does not reach its tolerance, or it crashes."""
    monkeypatch.setenv("LRSA_HOME", str(tmp_path))
    with pytest.raises((Unsolved, FoamFailed)):
        replace(FAST, step=1.0, tolerance=1e-15).solve(INFLOW)
    assert len(list((tmp_path / "logs").iterdir())) == 1
    assert not list((tmp_path / "scratch").iterdir())


@pytest.mark.slow
def test_a_laminar_flow_in_the_inlet_is_that_of_a_developing_pipe() -> None:
    """At a Reynolds number of 50, ten widths would do to develop: at 2 widths the middle is near 3/2."""
    slow = replace(FAST, refinement=1, step=0.04, viscosity=0.02)
    steady = Inflow(1.0, (0.0,) * 4, (0.0,) * 4, slow.start)
    velocity = at_nodes(slow.solve(steady).later, to_nodes(1), 1.0)
    x, y = pipe(0).nodes.T
    middle = velocity[(np.abs(x - 2) < 0.05) & (np.abs(y - 0.5) < 0.05), 0]
    assert middle.mean() == pytest.approx(1.5, abs=0.08)
