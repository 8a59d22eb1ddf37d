"""Cars by OpenFOAM: shapes that close, a recorded flow, the live solver."""

from collections import Counter
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.spatial import KDTree

from lrsa.data.symmetry import Symmetry
from lrsa.errors import Failure
from lrsa.numerics.openfoam import FoamFailed, read_field, run
from lrsa.objectives.integrals import area_vectors, at_faces, force, wall_shear
from lrsa.pointset import PointSet
from lrsa.problems.catalogue import open_dataset
from lrsa.problems.making import make_dataset
from lrsa.problems.shapenet_car.features import DENSITY, VISCOSITY
from lrsa.problems.shapenet_car.forces import drag, frontal_area
from lrsa.problems.shapenet_car.problem import PROBLEM
from lrsa.problems.shapenet_car.shape import RANGES, Car, stl
from lrsa.problems.shapenet_car.solver import (
    Flow,
    ShapeNetCar,
    Unsettled,
    case_of,
    last_residual,
    on_surface,
    read_flow,
)
from lrsa.report.datacard import about

RECORDED = Path(__file__).parents[1] / "data" / "shapenet_car"
RNG = np.random.default_rng
CAR = Car.draw(RNG(0))
FAST = ShapeNetCar(**PROBLEM.fidelities["fast"])


@pytest.fixture(scope="module")
def flow() -> Flow:
    """Around the first car, on the fast mesh; made by simpleFoam."""
    return read_flow(RECORDED, FAST.averaged)


@pytest.fixture(scope="module")
def recorded(flow: Flow) -> PointSet:
    return case_of(CAR, flow, FAST.volume, RNG(1))


def random_cars(count: int) -> list[Car]:
    """Half of them with every parameter at one of its ends."""
    rng = RNG(2)
    ends = [
        Car(**{field.name: RANGES[field.name][rng.integers(2)] for field in fields(Car)})
        for _ in range(count // 2)
    ]
    return [*(Car.draw(rng) for _ in range(count - len(ends))), *ends]


def test_cars_are_watertight_and_turned_outwards() -> None:
    """Every edge belongs to two quadrilaterals, which go along it in opposite directions."""
    for car in random_cars(6):
        points, quads = car.surface()
        assert (len(points), len(quads)) == (3682, 3680)
        edges = np.stack([quads, np.roll(quads, -1, axis=1)], axis=-1).reshape(-1, 2).tolist()
        there = Counter(map(tuple, edges))
        assert set(there.values()) == {1}
        assert all((b, a) in there for a, b in there)
        vectors = area_vectors(points[quads])
        assert np.abs(vectors.sum(0)).max() < 1e-12
        volume = (vectors * points[quads].mean(1)).sum() / 3
        box = np.ptp(points, axis=0).prod()
        assert 0.5 * box < volume < box


def test_cars_do_not_cross_themselves() -> None:
    """The map from the box grows along each axis, so no two of its points meet."""
    rng = RNG(3)
    for car in random_cars(20):
        box = rng.uniform(-1, 1, (500, 3))
        for axis in range(3):
            further = box + 1e-4 * np.eye(3)[axis]
            assert ((car.bent(further) - car.bent(box))[:, axis] > 0).all()
        assert np.allclose(car.bent(box)[:, 1:], car.bent(box * [-1, 1, 1])[:, 1:])


def test_cars_are_as_large_as_they_say_and_stand_over_the_road() -> None:
    for car in random_cars(6):
        points, _ = car.surface()
        low, high = points.min(0), points.max(0)
        assert high[2] == pytest.approx(car.length / 2)
        assert low[2] == -high[2]
        assert high[0] == -low[0] <= car.width / 2
        assert high[0] > 0.4 * car.width
        assert low[1] == pytest.approx(car.clearance, abs=1e-9)
        assert 0.8 * car.height < high[1] - low[1] <= car.height + 1e-9
        assert 0.6 * car.width * car.height < frontal_area(points) < car.width * car.height
        fine, _ = car.surface(2)
        assert KDTree(fine).query(points)[0].max() < 1e-12


def test_a_car_is_written_as_triangles_that_enclose_its_volume() -> None:
    points, quads = CAR.surface()
    content = stl(points, quads)
    assert len(content) == 84 + 50 * 2 * len(quads)
    assert int.from_bytes(content[80:84], "little") == 2 * len(quads)
    rows = np.frombuffer(content[84:], [("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("rest", "<u2")])
    corners = rows["corners"].astype(float)
    enclosed = np.linalg.det(corners).sum() / 6
    volume = (area_vectors(points[quads]) * points[quads].mean(1)).sum() / 3
    assert enclosed == pytest.approx(volume, rel=1e-3)


def test_a_recorded_flow_has_openfoams_drag_by_our_metric(flow: Flow, recorded: PointSet) -> None:
    """The published one is that of pressure. With the friction of the same run it is all of forceCoeffs."""
    ours = drag(recorded)
    assert ours == pytest.approx(flow.pressure_drag, rel=0.02)
    points, quads = CAR.surface()
    faces, nearest = points[quads], KDTree(flow.faces)
    turn = np.where(faces.mean(1)[:, :1] < 0, [-1, 1, 1], [1, 1, 1])  # to the half that is solved
    middle = faces.mean(1) * turn
    cell = KDTree(flow.centres).query(middle)[1]
    wall = read_field(RECORDED / "400" / "nut", "car")[nearest.query(middle)[1], None]
    shear = wall_shear(
        faces,
        (flow.centres[cell] * turn)[:, None],
        (flow.velocity[cell] * turn)[:, None],
        VISCOSITY / DENSITY,
        wall,
    )
    friction = force(faces, np.zeros(len(faces)), shear)[2] / (0.5 * 20**2 * frontal_area(points))
    assert friction == pytest.approx(flow.drag - flow.pressure_drag, rel=0.25)
    assert ours + friction == pytest.approx(flow.drag, rel=0.02)
    assert recorded.u is not None
    assert drag(recorded, 4 * recorded.u) == pytest.approx(4 * ours, rel=1e-6)


def test_a_recorded_flow_becomes_a_case(flow: Flow, recorded: PointSet) -> None:
    recorded.check_finite("it")
    assert recorded.f is not None
    assert recorded.u is not None
    assert recorded.surface is not None
    assert recorded.u_mask is not None
    x, f, u, wall = recorded.x, recorded.f, recorded.u, recorded.surface
    assert (len(x), wall.sum()) == (16000, 3682)
    assert (x.min(0) >= [-1.5, 0, -4]).all()
    assert (x.max(0) <= [1.5, 2, 4]).all()
    assert len(np.unique(x, axis=0)) == len(x)
    assert (u[wall, :3] == 0).all()
    assert (f[wall, 0] == 0).all()
    assert (f[~wall, 0] > 0).all()
    assert np.linalg.norm(f[:, 1:], axis=1) == pytest.approx(np.ones(16000), abs=1e-5)
    assert np.array_equal(recorded.u_mask[:, 3], wall)
    assert u[:, 3].max() == pytest.approx(0.5 * DENSITY * 20**2, rel=0.05)  # where the stream stops
    ahead = ~wall & (x[:, 2] < -3.5)
    assert u[ahead, 2].mean() == pytest.approx(20, rel=0.05)
    behind = ~wall & (np.abs(x[:, 0]) < 0.3) & (x[:, 2] > 2.3) & (x[:, 2] < 2.8) & (x[:, 1] < 1)
    assert u[behind, 2].mean() < 5
    assert (recorded.redraws, recorded.iterations) == (0, 400)
    assert recorded.residual == pytest.approx(flow.residual)
    assert 0 < flow.residual < 0.05


def test_the_flow_is_mirrored(flow: Flow) -> None:
    """The symmetry that the problem names: the other half of the points has the other half of the flow."""
    case = case_of(CAR, flow, FAST.volume, RNG(1))
    _, mirror = Symmetry.of(PROBLEM.symmetry, [case]).elements(case)
    moved = mirror(case)
    assert case.u is not None
    assert case.f is not None
    assert np.allclose(moved.x, case.x * [-1, 1, 1])
    assert np.allclose(moved.u, case.u * [-1, 1, 1, 1])  # pyright: ignore
    distance, there = KDTree(case.x[case.surface]).query(moved.x[case.surface])
    assert distance.max() < 1e-6
    assert np.allclose(case.u[case.surface][there], moved.u[case.surface], atol=1e-3)  # pyright: ignore
    assert np.allclose(case.f[case.surface][there], moved.f[case.surface], atol=1e-5)  # pyright: ignore


def test_the_pressure_on_the_car_is_exact_where_it_is_linear(flow: Flow) -> None:
    """But for the bend of the surface between its faces."""
    points, _ = CAR.surface()
    slope = np.array([0.0, 2.0, -1.0])  # the same on both sides
    found = on_surface(points, replace(flow, pressure=3 + flow.faces @ slope))
    error = np.abs(found - 3 - points @ slope)
    assert error.max() < 0.04
    assert error.mean() < 0.005
    constant = on_surface(points, replace(flow, pressure=np.full(len(flow.faces), 5.0)))
    assert constant == pytest.approx(np.full(len(points), 5.0), rel=1e-6)
    assert at_faces(constant, CAR.surface()[1]) == pytest.approx(np.full(3680, 5.0), rel=1e-6)


def test_a_mesh_with_too_few_cells_is_refused(flow: Flow) -> None:
    with pytest.raises(Failure, match="too few for 50000 points"):
        case_of(CAR, flow, 50000, RNG(0))


def test_the_residual_is_the_largest_of_the_last_iteration() -> None:
    line = "smoothSolver:  Solving for {}, Initial residual = {}, Final residual = 1e-9, No Iterations 3\n"
    log = "".join(line.format(*row) for row in (("Ux", 0.9), ("p", 0.8), ("Ux", 0.1), ("p", 2e-3)))
    assert last_residual(log) == 0.1


def test_a_car_that_does_not_settle_is_drawn_again_and_counted(
    flow: Flow, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[Car] = []

    def solve(self: ShapeNetCar, car: Car) -> Flow:
        tried.append(car)
        if len(tried) < 3:
            raise Unsettled("no") if len(tried) == 1 else FoamFailed("crash")
        return flow

    monkeypatch.setattr(ShapeNetCar, "solve", solve)
    case = FAST.sample(RNG(0))
    assert case.redraws == 2
    rng = RNG(0)
    assert tried == [Car.draw(rng) for _ in range(3)]
    tried.clear()
    monkeypatch.setattr("lrsa.problems.shapenet_car.solver.DRAWS", 1)
    with pytest.raises(Failure, match="Allow more iterations"):
        FAST.sample(RNG(0))


def test_the_time_that_making_takes_is_announced() -> None:
    assert PROBLEM.cost("default", 125) == " (about 135 CPU minutes)"


@pytest.mark.slow
def test_openfoam_finds_nothing_wrong_with_the_meshes(tmp_path: Path) -> None:
    for k, car in enumerate(random_cars(4)):
        folder = tmp_path / str(k)
        folder.mkdir()
        FAST.write(folder, car)
        assert "Surface is closed" in run(folder, "surfaceCheck", "constant/triSurface/car.stl")
        run(folder, "blockMesh")
        run(folder, "snappyHexMesh", "-overwrite")
        assert "Mesh OK." in run(folder, "checkMesh")


@pytest.mark.slow
def test_the_live_solver_repeats_the_recorded_flow(flow: Flow) -> None:
    again = FAST.solve(CAR)
    assert again.drag == pytest.approx(flow.drag, rel=1e-3)
    assert np.allclose(again.centres, flow.centres, atol=1e-5)


@pytest.mark.slow
def test_a_set_made_by_openfoam_tells_of_its_iterations_and_residuals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LRSA_HOME", str(tmp_path))
    coarse = {"cell": 0.8, "iterations": 30, "averaged": 10, "volume": 1000, "drift": 10.0}
    problem = replace(PROBLEM, fidelities={"default": coarse})
    path = make_dataset(problem, samples=1, test=1, workers=1, out=tmp_path / "cars.h5")
    assert "; 30 iterations, residuals up to 0." in about(open_dataset(path))
    assert not list((tmp_path / "scratch").iterdir())


@pytest.mark.slow
def test_a_drag_that_drifts_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LRSA_HOME", str(tmp_path))
    solver: Any = ShapeNetCar(cell=0.8, iterations=20, averaged=20, drift=1e-6)
    with pytest.raises(Unsettled, match="drifts by"):
        solver.solve(CAR)
    assert len(list((tmp_path / "logs").iterdir())) == 1
