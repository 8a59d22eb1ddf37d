"""Composite: the duct is a duct, its bricks pass their patch tests, and its solver solves the equation."""

import numpy as np
import pytest
import scipy.sparse as sp

from lrsa.data.store import Dataset
from lrsa.data.symmetry import Symmetry
from lrsa.problems.catalogue import get
from lrsa.problems.composite.bricks import (
    Bricks,
    Held,
    Material,
    bricks_of,
    in_place,
    shape_functions,
    shares,
)
from lrsa.problems.composite.duct import WALL, duct, place, quarters
from lrsa.problems.composite.solver import CARBON, Composite, held, volumes
from lrsa.problems.making import make_dataset

STEEL = Material((200.0, 200.0, 200.0), (G := 200 / 2.6, G, G), (0.3, 0.3, 0.3), (12e-6, 12e-6, 12e-6))
FAST = Composite(finer=1)
RNG = np.random.default_rng


def bent_box(count: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Bricks with curved sides in [0, 1]³."""
    axis = np.linspace(0, 1, 2 * count + 1)
    x = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), axis=-1).reshape(-1, 3)
    inner = np.prod(np.sin(np.pi * x), axis=1, keepdims=True)
    number = np.arange(len(x)).reshape((2 * count + 1,) * 3)
    return x + 0.15 * inner * np.array([1.0, -0.5, 0.7]), bricks_of(number)


def test_the_duct_has_the_published_number_of_nodes_and_its_wall_is_even() -> None:
    mesh = duct()
    skin = mesh.points[mesh.skin]
    assert skin.shape == (8232, 3)
    assert mesh.bricks.shape == (42 * 24, 27)
    assert np.array_equal(np.unique(mesh.bricks), np.arange(len(mesh.points)))
    inside, outside = skin[::2], skin[1::2]
    assert np.linalg.norm(outside - inside, axis=1) == pytest.approx(np.full(4116, WALL), rel=1e-9)
    away = (outside - inside) @ np.array([0.0, 0, 1]) * np.sin(mesh.parameters[::3, 0])
    assert (away[np.abs(np.sin(mesh.parameters[::3, 0])) > 0.5] > 0).all(), "from the middle outwards"
    assert len(mesh.inlet) == 84 * 3
    assert np.abs(mesh.points[mesh.inlet, 0]).max() < 1e-6


def test_a_finer_duct_has_the_nodes_of_the_coarse_one() -> None:
    fine = duct(2)
    assert np.allclose(fine.points.reshape(*fine.shape, 3)[::2, ::2].reshape(-1, 3), duct().points)
    assert np.allclose(place(fine.parameters), fine.points)


def test_the_cells_of_a_case_are_the_wall_once() -> None:
    case = FAST.sample(RNG(0))
    assert case.cells is not None
    assert np.array_equal(case.cells, quarters((84, 49)))
    assert case.cells.shape == (84 * 48, 8)
    corners = case.x[case.cells].astype(float)
    assert (np.linalg.det(corners[:, [1, 3, 4]] - corners[:, :1]) > 0).all()
    faces = np.sort(case.cells[:, [[0, 1, 2, 3], [4, 5, 6, 7]]].reshape(-1, 4), axis=1)
    assert len(np.unique(faces, axis=0)) == 2 * len(case.cells)
    assert case.weights is not None
    assert case.weights.sum() == pytest.approx(duct_volume(), rel=2e-3)


def duct_volume() -> float:
    """∫ |∂P/∂(θ, s, ζ)| by the midpoint rule."""
    grid = [(np.arange(n) + 0.5) / n for n in (240, 120)]
    theta, s = (v.ravel() for v in np.meshgrid(2 * np.pi * grid[0], grid[1], indexing="ij"))
    where, h = np.stack([theta, s, 0 * s], axis=1), 1e-5
    sides = [place(where + h * e) - place(where - h * e) for e in np.eye(3)]
    return float(np.abs(np.linalg.det(np.stack(sides, axis=1))).mean() / (2 * h) ** 3 * 2 * np.pi * 2)


def test_the_law_is_that_of_its_constants() -> None:
    """Tension along each axis gives Young's modulus and Poisson's ratios; steel is isotropic."""
    for material in (CARBON, STEEL):
        compliance = np.linalg.inv(material.stiffness())
        assert np.allclose(1 / np.diag(compliance)[:3], material.young)
        assert -compliance[0, 1] * material.young[0] == pytest.approx(material.poisson[2])
        assert np.linalg.eigvalsh(material.stiffness()).min() > 0
    lame = 200 * 0.3 / (1.3 * 0.4)
    assert STEEL.stiffness()[0, 1] == pytest.approx(lame)
    assert STEEL.stiffness()[0, 0] == pytest.approx(lame + 200 / 1.3)


def test_patches_of_bent_bricks_are_exact_for_linear_displacements() -> None:
    """The forces inside are 0, and the energy is that of the constant strain in an isotropic body."""
    points, cells = bent_box()
    body = Bricks(points, cells, STEEL)
    gradient = RNG(1).standard_normal((3, 3)) * 1e-3
    u = (points @ gradient.T).ravel()
    rim = ((points == 0) | (np.abs(points - 1) < 1e-12)).any(axis=1)
    forces = (body.stiffness @ u).reshape(-1, 3)
    assert np.abs(forces[~rim]).max() < 1e-12 * np.abs(forces[rim]).max() + 1e-14
    e = (gradient + gradient.T) / 2
    strain = np.array([e[0, 0], e[1, 1], e[2, 2], 2 * e[1, 2], 2 * e[0, 2], 2 * e[0, 1]])
    assert u @ body.stiffness @ u == pytest.approx(strain @ STEEL.stiffness() @ strain, rel=1e-12)
    assert shares(points, cells).sum() == pytest.approx(1, rel=1e-12)


def rigid(points: np.ndarray) -> list[np.ndarray]:
    turns = [np.cross(axis, points) for axis in np.eye(3)]
    return [np.tile(axis, (len(points), 1)) for axis in np.eye(3)] + turns


def test_a_duct_that_moves_as_a_whole_has_no_stress() -> None:
    body = held(1).body
    scale = abs(body.stiffness).max()
    for u in rigid(body.points):
        assert np.abs(body.stiffness @ u.ravel()).max() < 1e-10 * scale * np.abs(u).max()


@pytest.mark.parametrize("rise", ["constant", "linear"])
def test_a_free_isotropic_duct_expands_without_stress(rise: str) -> None:
    """A constant rise scales it; a linear one T = g·x bends it: u = α (T x - ½ |x|² g), both of no stress.

    Quadratic elements hold both exactly up to the curvature of the mesh; so the forces of heat must equal
    those of the known displacement.
    """
    points, cells = (duct().points / 100, duct().bricks) if rise == "constant" else straight_box()
    body = Bricks(points, cells, STEEL)
    slope = np.array([0.3, -0.2, 0.5])
    heat = np.full(len(points), 100.0) if rise == "constant" else points @ slope
    exact = points * heat[:, None] - (0 if rise == "constant" else 0.5 * (points**2).sum(1)[:, None] * slope)
    forces = body.load @ heat
    assert np.abs(body.stiffness @ (12e-6 * exact).ravel() - forces).max() < 1e-10 * np.abs(forces).max()
    given = np.zeros(3 * len(points), bool)
    a, b, c = 0, int(np.abs(points - points[0]).sum(1).argmax()), len(points) // 3
    given[[3 * a, 3 * a + 1, 3 * a + 2, 3 * b, 3 * b + 1, 3 * c]] = True
    found: Held = body.fixed(given)
    u = found.heated(heat)
    strainless = u - 12e-6 * exact
    basis = np.stack([r.ravel() for r in rigid(points)], axis=1)
    rest = strainless.ravel() - basis @ np.linalg.lstsq(basis, strainless.ravel())[0]
    assert np.abs(rest).max() < 1e-7 * np.abs(exact * 12e-6).max()


def straight_box() -> tuple[np.ndarray, np.ndarray]:
    points, cells = bent_box()
    axis = np.linspace(0, 1, 5)
    return np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), axis=-1).reshape(points.shape), cells


def test_third_order_on_a_manufactured_solution() -> None:
    """u = sin: body forces of an isotropic law on a box whose outside does not move, by an L2 norm."""
    errors = [manufactured(count) for count in (3, 4, 6)]
    orders = [np.log(errors[i] / errors[i + 1]) / np.log(ratio) for i, ratio in enumerate((4 / 3, 6 / 4))]
    assert orders[0] > 2.7
    assert orders[1] > 3


def manufactured(count: int) -> float:
    points, cells = bent_box(count)
    body = Bricks(points, cells, STEEL)
    lame, shear = 200 * 0.3 / (1.3 * 0.4), 200 / 2.6
    s, c = np.sin(np.pi * points), np.cos(np.pi * points)
    exact = np.zeros_like(points)
    exact[:, 0] = s.prod(1)  # u = (p, 0, 0), p = sin sin sin: -∇·σ = -(λ + μ) ∇ ∂p/∂x - μ Δp e_x
    force = np.stack(
        [
            np.pi**2 * ((lame + shear) + 3 * shear) * s.prod(1),
            -(np.pi**2) * (lame + shear) * c[:, 0] * c[:, 1] * s[:, 2],
            -(np.pi**2) * (lame + shear) * c[:, 0] * s[:, 1] * c[:, 2],
        ],
        axis=1,
    )
    rim = np.flatnonzero((np.abs(points - 0.5) > 0.5 - 1e-12).any(axis=1))
    mass = mass_of(points, cells)
    found = body.held(rim).loaded((mass @ force).ravel())
    difference = found - exact
    return float(np.sqrt(np.einsum("ni,ni->", difference, mass @ difference)))


def mass_of(points: np.ndarray, cells: np.ndarray) -> sp.csr_array:
    """(N, N) ∫ φᵢ φⱼ."""
    values, (_, measure) = shape_functions()[0], in_place(points[cells])
    local = np.einsum("ng,eg,mg->enm", values, measure, values)
    rows, columns = np.repeat(cells, 27, axis=1).ravel(), np.tile(cells, 27).ravel()
    return sp.coo_array((local.ravel(), (rows, columns)), (len(points),) * 2).tocsr()


def test_the_deformation_is_proportional_to_the_rise_and_zero_where_the_duct_is_held() -> None:
    mesh, solve = duct(), held(1)
    rise = RNG(0).uniform(50, 150, len(mesh.points))
    u = solve.heated(rise)
    assert not u[mesh.inlet].any()
    np.testing.assert_allclose(solve.heated(2 * rise), 2 * u, rtol=1e-9, atol=1e-12)
    warm = np.linalg.norm(solve.heated(np.full(len(rise), 130.0)), axis=1)
    assert 0.1 < warm.max() < 10, "mm, of a duct of 900 mm"


def test_a_mirrored_temperature_has_the_mirrored_deformation() -> None:
    """The duct is the same at y and -y, that is at θ and π - θ."""
    mesh = duct()
    mirror = np.arange(len(mesh.points)).reshape(mesh.shape)[(42 - np.arange(84)) % 84].ravel()
    assert np.allclose(mesh.points[mirror], mesh.points * [1, -1, 1], atol=1e-6)
    rise = RNG(0).uniform(50, 150, len(mesh.points))
    u, v = held(1).heated(rise), held(1).heated(rise[mirror])
    np.testing.assert_allclose(v, u[mirror] * [1, -1, 1], atol=1e-7 * np.abs(u).max())


def test_the_named_symmetry_mirrors_the_places_and_keeps_the_fields() -> None:
    case = FAST.sample(RNG(0))
    _, mirror = Symmetry.of(get("composite").symmetry, [case]).elements(case)
    moved = mirror(case).arrays()
    assert np.allclose(moved["x"], case.x * [1, -1, 1])
    assert np.array_equal(moved["f"], case.arrays()["f"])
    assert np.array_equal(moved["u"], case.arrays()["u"])


def test_temperatures_have_the_deviation_that_they_are_drawn_with() -> None:
    rng, mesh = RNG(0), duct()
    some = [FAST.temperature(rng.standard_normal((2, 2, 9, 13)), mesh) for _ in range(300)]
    values = np.stack(some).reshape(300, *mesh.shape)
    inner = values[:, :, 12:-12]  # cosines double the variance at the ends
    assert inner.mean() == pytest.approx(150, abs=8)
    assert np.sqrt(inner[..., 1].var(axis=0).mean()) == pytest.approx(40, rel=0.1)
    half = (inner[..., 2] - inner[..., 0]) / 2
    assert np.sqrt(half.var(axis=0).mean()) == pytest.approx(8, rel=0.1)
    assert np.allclose(values[..., 1], (values[..., 0] + values[..., 2]) / 2)


def test_a_case_has_the_temperature_and_the_size_of_the_displacement_of_its_nodes() -> None:
    case, mesh = FAST.sample(RNG(3)), duct()
    rise = FAST.temperature(RNG(3).standard_normal((2, 2, 9, 13)), mesh)
    u = np.linalg.norm(held(1).heated(rise - 20), axis=1)
    arrays = case.arrays()
    assert np.allclose(arrays["x"], mesh.points[mesh.skin], atol=1e-3)
    assert np.allclose(arrays["f"][:, 0], rise[mesh.skin], rtol=1e-5)
    assert np.allclose(arrays["u"][:, 0], u[mesh.skin], rtol=1e-4, atol=1e-6)
    assert np.allclose(arrays["weights"], volumes())
    assert set(arrays["cell_types"]) == {12}


def test_the_set_keeps_the_mesh_once(tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("composite") / "composite.h5"
    make_dataset(get("composite"), samples=2, test=1, fidelity="fast", out=path, workers=1)
    assert path.stat().st_size < 2e6
    assert Dataset(path, "train").fixed_points


@pytest.mark.slow
def test_finer_elements_change_three_cases_by_a_thousandth() -> None:
    """The default against 1.5 times as many each way; half as many are ten times worse."""
    for seed in range(3):
        coarse, ours, fine = (Composite(finer=k).sample(RNG(seed)).arrays()["u"] for k in (1, 2, 3))
        errors = [float(np.linalg.norm(u - fine) / np.linalg.norm(fine)) for u in (coarse, ours)]
        assert errors[1] < 1e-3 < errors[0] < 1e-2
