"""Quantities of interest: exact integrals of simple fields, on every kind of mesh that carries them."""

from dataclasses import replace

import numpy as np
import pytest

from lrsa.errors import LrsaError
from lrsa.objectives.quantities import definitions
from lrsa.pointset import Names, PointSet
from lrsa.surrogate.quantities import user_quantities

NAMES = Names(("x", "y"), (), ("p", "tau_x", "tau_y"), ("speed", "angle"), parts=("left",))


def value(text: str, case: PointSet, u: np.ndarray | None = None) -> float:
    """Of one quantity, called q."""
    assert case.u is not None
    return user_quantities(f"q={text}", case)["q"](case, case.u if u is None else u)


def circle(n: int = 400, clockwise: bool = False) -> PointSet:
    """A curve around the unit disk, with p = y and a shear of 1 along x; its left half is a part."""
    angle = 2 * np.pi * np.arange(n) / n * (-1 if clockwise else 1)
    x = np.stack([np.cos(angle), np.sin(angle)], 1)
    cells = np.stack([np.arange(n), (np.arange(n) + 1) % n], 1)
    u = np.stack([x[:, 1], np.ones(n), np.zeros(n)], 1)
    parts = (x[:, :1] < 0.0).astype(bool)
    return PointSet(x, u=u, cells=cells, parts=parts, globals=np.array([3.0, 0.5]), names=NAMES)


def ring(n: int = 200, layers: int = 8) -> PointSet:
    """The plane from radius 1 to 2, whose inner edge is the surface; p = y."""
    angle, radius = np.meshgrid(2 * np.pi * np.arange(n) / n, np.linspace(1, 2, layers), indexing="ij")
    x = np.stack([radius * np.cos(angle), radius * np.sin(angle)], -1).reshape(-1, 2)
    i, j = np.meshgrid(np.arange(n), np.arange(layers - 1), indexing="ij")
    ahead = (i + 1) % n
    cells = np.stack([i * layers + j, i * layers + j + 1, ahead * layers + j + 1, ahead * layers + j], -1)
    u = np.stack([x[:, 1], np.ones(len(x)), np.zeros(len(x))], 1)
    inner = np.isclose(np.hypot(*x.T), 1)
    return PointSet(
        x, u=u, cells=cells.reshape(-1, 4), surface=inner, globals=np.array([3.0, 0.5]), names=NAMES
    )


def sphere(cut: int = 40) -> PointSet:
    """A closed surface in space with p = z, as triangles."""
    pyvista = pytest.importorskip("pyvista")
    mesh = pyvista.Sphere(theta_resolution=2 * cut, phi_resolution=cut).triangulate()
    cells = mesh.faces.reshape(-1, 4)[:, 1:]
    x = 2 * mesh.points.astype(float)
    names = Names(("x", "y", "z"), (), ("p",))
    return PointSet(x, u=x[:, 2:], cells=cells, names=names)


@pytest.mark.parametrize("clockwise", [False, True])
def test_a_body_in_a_pressure_that_grows_upwards_is_pushed_down_by_its_volume(clockwise):
    """F = -∫ y n dA = -V e_y, whichever way the curve runs."""
    case = circle(clockwise=clockwise)
    assert value("force:p,along=y", case) == pytest.approx(-np.pi, rel=1e-3)
    assert value("force:p,along=-y", case) == pytest.approx(np.pi, rel=1e-3)
    assert value("force:p,along=x", case) == pytest.approx(0, abs=1e-9)


def test_the_force_on_a_body_is_the_same_by_the_mesh_around_it_as_by_its_own_surface():
    assert value("force:p@surface,along=y", ring()) == pytest.approx(-np.pi, rel=1e-3)
    assert value("force:p,along=0:1", ring()) == pytest.approx(-np.pi, rel=1e-3)


def test_in_space_a_closed_surface_is_pushed_by_its_volume():
    assert value("force:p,along=z", sphere()) == pytest.approx(-4 / 3 * np.pi, rel=0.01)
    assert value("moment:p,along=y,about=1:0:0", sphere()) == pytest.approx(-4 / 3 * np.pi, rel=0.01)


def test_cell_centres_with_normals_and_measures_carry_forces_too():
    """As import leaves them where the arrays are those of cells."""
    case = circle()
    middle = (case.x + np.roll(case.x, -1, 0)) / 2
    length = np.linalg.norm(np.roll(case.x, -1, 0) - case.x, axis=1)
    names = replace(NAMES, inputs=("normal_x", "normal_y"), parts=())
    normal = middle / np.linalg.norm(middle, axis=1, keepdims=True)
    u = np.stack([middle[:, 1], np.ones(len(case)), np.zeros(len(case))], 1)
    cells = PointSet(middle, normal, u, weights=length, globals=case.globals, names=names)
    assert value("force:p,along=y", cells) == pytest.approx(-np.pi, rel=1e-3)


def test_shear_adds_to_the_pressure():
    assert value("force:p:tau,along=x", circle()) == pytest.approx(2 * np.pi, rel=1e-3)


def test_a_moment_in_the_plane_turns_counter_clockwise_about_its_point():
    case = circle()
    lifted = value("moment:p,about=-1:0", case)
    assert lifted == pytest.approx(-np.pi, rel=1e-3)
    assert value("moment:p", case) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("text", ["force:p,along=y", "force:p:tau,across=1:0", "moment:p,about=-1:0"])
def test_a_plane_that_is_stored_in_space_gives_the_same(text):
    flat = circle()
    assert flat.u is not None
    names = replace(NAMES, coords=("x", "y", "z"), targets=(*NAMES.targets, "tau_z"))
    space = replace(
        flat,
        x=np.column_stack([flat.x, np.full(len(flat), 0.3)]),
        u=np.column_stack([flat.u, np.zeros(len(flat))]),
        names=names,
    )
    assert value(text, space) == pytest.approx(value(text, flat), abs=1e-9)


def test_coefficients_divide_by_half_density_speed_squared_and_area():
    plain = value("force:p,along=y", circle())
    scaled = value("force:p,along=y,area=2,density=1.2,speed=speed", circle())
    assert scaled == pytest.approx(plain / (0.5 * 1.2 * 9 * 2))


def test_lift_is_to_the_left_of_the_stream_and_drag_along_it():
    case = replace(circle(), globals=np.array([0.0, 2.0]))  # the stream comes from below
    assert value("force:p,along=speed:angle", case) == pytest.approx(-np.pi, rel=1e-3)
    assert value("force:p:tau,across=speed:angle", case) == pytest.approx(-2 * np.pi, rel=1e-3)


def test_integrals_means_and_extremes_over_the_domain_the_surface_and_a_part():
    case = ring()
    one = np.ones_like(case.u)
    assert value("integral:p", case, one) == pytest.approx(3 * np.pi, rel=1e-3)
    assert value("integral:p@surface", case, one) == pytest.approx(2 * np.pi, rel=1e-3)
    assert value("mean:p@surface", case, one) == pytest.approx(1)
    assert value("max:p", case) == pytest.approx(2, rel=1e-3)
    assert value("max:p@surface", case) == pytest.approx(1, rel=1e-3)
    assert value("max:tau@volume", case) == pytest.approx(1)
    half = circle()
    assert value("integral:p@left", half, np.ones_like(half.u)) == pytest.approx(np.pi, rel=0.02)
    assert value("min:p@left", half) == pytest.approx(-1, rel=1e-3)


def test_the_mean_weighs_points_by_what_they_stand_for():
    """However fine one end of an interval is cut."""
    x = np.concatenate([np.linspace(0, 0.1, 500), np.linspace(0.11, 1, 90)])
    names = Names(("x", "y"), (), ("p",))
    grid = np.stack(np.meshgrid(x, [0.0, 1.0], indexing="ij"), -1).reshape(-1, 2)
    case = PointSet(grid, u=grid[:, :1], grid=(len(x), 2), names=names)
    assert value("mean:p", case) == pytest.approx(0.5, rel=1e-3)


def test_frames_give_the_largest_of_all_and_the_mean_force():
    case = circle()
    assert case.u is not None
    frames = np.stack([case.u, 3 * case.u])
    assert value("max:p", case, frames) == pytest.approx(3, rel=1e-3)
    assert value("force:p,along=y", case, frames) == pytest.approx(-2 * np.pi, rel=1e-3)


def test_points_at_which_a_field_is_unknown_do_not_count():
    case = circle()
    assert case.u is not None
    mask = np.ones(case.u.shape, bool)
    mask[case.x[:, 1] > 0.5] = False
    assert value("max:p", replace(case, u_mask=mask)) == pytest.approx(0.5, abs=0.02)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("max:p", "no quantity"),
        ("q=largest:p", "There are: integral"),
        ("q=max", "one field"),
        ("q=max:p:tau_x", "one field"),
        ("q=max:p,along=x", "takes no options"),
        ("q=force:p,along=x,size=2", "takes along"),
        ("q=force:p,along=x,across=y", "two directions"),
        ("q=force:p@volume,along=x", "not on the volume"),
        ("q=max:p;q=min:p", "two quantities"),
    ],
)
def test_what_is_no_quantity_is_refused_whatever_the_data(text, said):
    with pytest.raises(LrsaError, match=said):
        definitions(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("q=max:pp", "Did you mean p"),
        ("q=max:p@wing", "no part"),
        ("q=force:p", "needs a direction"),
        ("q=force:p,along=1:0:0", "is none in 2 coordinates"),
        ("q=force:p,along=x,speed=velocity", "neither a number nor a parameter"),
        ("q=force:p:p,along=x", "components, not 2"),
        ("q=force:p,along=x,area=0", "a divisor is 0"),
    ],
)
def test_what_the_data_cannot_answer_is_refused_before_the_training(text, said):
    with pytest.raises(LrsaError, match=said):
        user_quantities(text, circle())


def test_points_without_cells_carry_no_force_and_say_what_to_do():
    case = replace(circle(), cells=None, cell_types=None)
    with pytest.raises(LrsaError, match="Import meshes"):
        user_quantities("q=force:p,along=x", case)
    with pytest.raises(LrsaError, match="Import meshes"):
        user_quantities("q=integral:p", case)
    assert value("mean:p", case) == pytest.approx(0, abs=1e-9)
