"""Inputs at other points than targets, and named blocks: patches of OpenFOAM, blocks of a VTM."""

from pathlib import Path

import numpy as np
import pytest
from small import OPTIONS
from test_mesh_reading import write_openfoam

import lrsa
from lrsa.data.store import Dataset
from lrsa.errors import LrsaError
from lrsa.mesh.arrays import read_npz, write_npz
from lrsa.mesh.importing import import_meshes, propose
from lrsa.mesh.reading import read_raw
from lrsa.surrogate.predict_files import predict_path
from lrsa.surrogate.quantities import user_quantities

pv = pytest.importorskip("pyvista")
SENSORS = np.random.default_rng(0).random((6, 2))


def field(x: np.ndarray, a: np.ndarray) -> np.ndarray:
    return a[0] + a[1] * x[:, 0] + a[2] * x[:, 1]


@pytest.fixture
def sensed(tmp_path: Path) -> Path:
    """Six clouds, each with a table of what six sensors say."""
    folder = tmp_path / "sensed"
    folder.mkdir()
    for i in range(6):
        rng = np.random.default_rng(i)
        x, a = rng.random((20 + i, 2)), rng.standard_normal(3)
        write_npz(folder / f"case_{i}.npz", {"x": x, "T": field(x, a)})
        rows = [f"{p[0]},{p[1]},{v}" for p, v in zip(SENSORS, field(SENSORS, a), strict=True)]
        (folder / f"case_{i}_sensors.csv").write_text("x,y,said\n" + "\n".join(rows))
    return folder


def test_points_that_give_inputs_and_points_that_ask_become_one_case(sensed: Path, tmp_path: Path):
    out = tmp_path / "sensed.h5"
    import_meshes(sensed, out, ["said"], ["T"], workers=1, input_points="{}_sensors.csv")
    for split in ("train", "test"):
        for case in Dataset(out, split):
            n = len(case) - len(SENSORS)
            assert case.f is not None
            assert case.f_mask is not None
            assert case.u_mask is not None
            assert case.weights is not None
            np.testing.assert_allclose(case.x[n:], SENSORS, rtol=1e-6)
            assert case.f_mask[n:].all()
            assert not case.f_mask[:n, 0].any()
            assert case.f[:, 1].tolist() == [0.0] * n + [1.0] * len(SENSORS)
            assert case.u_mask[:n].all()
            assert not case.u_mask[n:].any()
            assert case.weights.tolist() == [0.0] * n + [1.0] * len(SENSORS)
            assert case.names.inputs == ("said", "given")


def test_a_prediction_reads_the_sensors_and_writes_the_points_that_asked(sensed: Path, tmp_path: Path):
    out = tmp_path / "sensed.h5"
    import_meshes(sensed, out, ["said"], ["T"], workers=1, input_points="{}_sensors.csv")
    surrogate = lrsa.fit(out, out=tmp_path / "run", epochs=1, validation=0.0, options=OPTIONS)
    predict_path(tmp_path / "run", sensed / "case_0.npz", tmp_path / "new.npz")
    made = read_npz(tmp_path / "new.npz")
    assert made["T_predicted"].shape == (20,)
    stored = Dataset(out, "train")
    index = stored.schema.provenance["cases"]["train"].index("case_0")
    whole = surrogate.predict(stored[index])
    np.testing.assert_allclose(made["T_predicted"], whole[:20, 0], atol=1e-5)


@pytest.mark.parametrize(
    ("pattern", "inputs", "said"),
    [
        ("sensors.csv", ["said"], "needs {}"),
        ("{}_sensors.csv", [], "name them with --inputs"),
        ("{}_none.csv", ["said"], "does not exist"),
        ("{}_sensors.csv", ["heard"], 'no array "heard"'),
    ],
)
def test_input_points_that_are_not_there_are_refused(sensed: Path, tmp_path: Path, pattern, inputs, said):
    with pytest.raises(LrsaError, match=said):
        import_meshes(sensed, tmp_path / "o.h5", inputs, ["T"], workers=1, input_points=pattern)


@pytest.fixture
def blocks(tmp_path: Path) -> Path:
    """Boxes of air with two walls as blocks of their own; the shear is known on the walls only."""
    folder = tmp_path / "blocks"
    for i in range(2):
        air = pv.ImageData(dimensions=(4, 4, 4)).cast_to_unstructured_grid()
        air.point_data["p"] = air.points[:, 2] + i
        floor, roof = (
            pv.Plane(center=(1.5, 1.5, z), i_size=3, j_size=3, i_resolution=3, j_resolution=3) for z in (0, 3)
        )
        for wall in (floor, roof):
            wall.point_data["p"] = wall.points[:, 2] + i
            wall.point_data["shear"] = np.tile([1.0 + i, 0.0, 0.0], (wall.n_points, 1))
        made = pv.MultiBlock({"internalMesh": air, "floor": floor, "roof": roof})
        (folder / str(i)).mkdir(parents=True)
        made.save(folder / str(i) / "case.vtm")
    return folder


def test_named_blocks_alone_are_a_surface_with_parts(blocks: Path, tmp_path: Path):
    import_meshes(
        blocks,
        tmp_path / "o.h5",
        [],
        ["p", "shear"],
        derive=["measure"],
        workers=1,
        patches=["floor", "roof"],
    )
    case = Dataset(tmp_path / "o.h5", "train")[0]
    assert case.names.parts == ("floor", "roof")
    assert case.parts is not None
    assert len(case) == 32
    assert case.parts.sum(0).tolist() == [16, 16]
    assert case.u is not None
    made = user_quantities("area=integral:shear@roof", case)
    shear = float(np.max(case.u[:, 1]))
    assert made["area"](case, case.u) == pytest.approx(9 * shear)


def test_the_internal_mesh_with_a_patch_has_that_patch_as_its_surface(blocks: Path, tmp_path: Path):
    patches = ["internalMesh", "floor"]
    import_meshes(
        blocks,
        tmp_path / "o.h5",
        [],
        ["p", "shear"],
        derive=["surface", "measure"],
        workers=1,
        patches=patches,
    )
    case = Dataset(tmp_path / "o.h5", "train")[0]
    assert case.surface is not None
    assert case.weights is not None
    assert case.u is not None
    assert case.u_mask is not None
    assert case.weights.sum() == pytest.approx(27)
    assert set(case.x[case.surface, 2]) == {0.0}
    assert not case.u_mask[:64, 1].any()  # the shear is on the wall only
    # The air above the floor pushes it down: out of the body is up.
    made = user_quantities("push=force:p@floor,along=z;drag=force:p:shear@floor,along=x", case)
    floor = float(case.u[0, 0])
    assert made["push"](case, case.u) == pytest.approx(-9 * floor, abs=1e-5)
    assert made["drag"](case, case.u) == pytest.approx(9 * float(case.u[-1, 1]), rel=1e-5)


def test_a_prediction_of_named_blocks_writes_these_blocks(blocks: Path, tmp_path: Path):
    import_meshes(blocks, tmp_path / "o.h5", [], ["p"], workers=1, patches=["roof", "floor"])
    lrsa.fit(tmp_path / "o.h5", out=tmp_path / "run", epochs=1, validation=0.0, options=OPTIONS)
    predict_path(tmp_path / "run", blocks / "0" / "case.vtm", tmp_path / "new.vtm")
    made = pv.read(tmp_path / "new.vtm")
    assert made.keys() == ["floor", "roof"]
    assert made["roof"].point_data["p_predicted"].shape == (16,)


def test_a_block_that_is_not_there_is_refused_with_those_that_are(blocks: Path, tmp_path: Path):
    with pytest.raises(LrsaError, match=r'no block "flor"\. Did you mean floor\?'):
        import_meshes(blocks, tmp_path / "o.h5", [], ["p"], workers=1, patches=["flor"])


def test_what_can_be_named_is_listed(blocks: Path, tmp_path: Path):
    listed = "blocks, of which --patches names those to read: internalMesh, "
    assert f"{listed}floor, roof" in propose(blocks, workers=1)
    write_openfoam(tmp_path / "foam")
    assert f"{listed}walls" in propose(tmp_path / "foam", workers=1)


def test_patches_of_openfoam_are_read_when_they_are_named(tmp_path: Path):
    write_openfoam(tmp_path)
    inside = read_raw(tmp_path)
    wall = read_raw(tmp_path, ["walls"])
    both = read_raw(tmp_path, ["internalMesh", "walls"])
    assert not inside.parts
    assert len(wall.cells if wall.cells is not None else ()) == 10
    assert wall.parts["walls"].all()
    assert len(both.points) == len(inside.points) + len(wall.points)
    assert both.parts["walls"].sum() == len(wall.points)
    assert "p" in wall.point_data
    with pytest.raises(LrsaError, match=r"Did you mean walls\? It has: internalMesh, walls"):
        read_raw(tmp_path, ["wall"])
