"""The published AirfRANS files, small ones in the same format: read back equal, or refused in one line."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
import pyvista

from lrsa.errors import LrsaError
from lrsa.problems.airfrans.forces import lift_and_drag
from lrsa.problems.airfrans.official import read_airfrans
from lrsa.problems.airfrans.problem import PROBLEM
from lrsa.problems.airfrans.solver import NAMES
from lrsa.problems.official import import_official, recognise

AROUND, LAYERS = 8, 3
NAME = "airFoil2D_SST_58.831_-3.563_{}_4.984_0.0_10.347"


def mesh() -> tuple[pyvista.UnstructuredGrid, pyvista.PolyData]:
    """Rings around a small circle, whose points the second file has in another order."""
    rng = np.random.default_rng(0)
    angles = 2 * np.pi * np.arange(AROUND) / AROUND
    ring = np.stack([np.cos(angles), np.sin(angles), 0 * angles], axis=1)
    points = np.concatenate([(1 + j) * ring for j in range(LAYERS)]).astype(np.float32)
    points[:, 2] = 0.5
    corner = [(j * AROUND + i, j * AROUND + (i + 1) % AROUND) for j in range(LAYERS) for i in range(AROUND)]
    quads = [(a, a + AROUND, b + AROUND, b) for a, b in corner[: AROUND * (LAYERS - 1)]]
    cells = np.column_stack([np.full(len(quads), 4), quads]).ravel()
    internal = pyvista.UnstructuredGrid(cells, np.full(len(quads), 9, np.uint8), points)
    wall = np.arange(len(points)) < AROUND
    velocity = rng.uniform(1, 2, (len(points), 3)).astype(np.float32)
    velocity[wall] = 0
    internal.point_data["U"] = velocity
    internal.point_data["p"] = rng.standard_normal(len(points)).astype(np.float32)
    internal.point_data["nut"] = np.where(wall, 0, rng.random(len(points))).astype(np.float32)
    internal.point_data["implicit_distance"] = 1 - np.linalg.norm(points[:, :2], axis=1)
    order = rng.permutation(AROUND)
    lines = [(2, k, int(np.flatnonzero(order == (order[k] + 1) % AROUND)[0])) for k in range(AROUND)]
    airfoil = pyvista.PolyData(points[order], lines=np.array(lines).ravel())
    airfoil.point_data["Normals"] = -ring[order]  # into the body
    return internal, airfoil


def publish(folder: Path) -> list[str]:
    """A manifest of 800 + 200 cases, all of them links to the files of one."""
    names = [NAME.format(f"{i}.0") for i in range(1000)]
    files = dict(zip(("internal.vtu", "aerofoil.vtp"), mesh(), strict=True))
    for name in names:
        (folder / "Dataset" / name).mkdir(parents=True)
        for suffix, data in files.items():
            path = folder / "Dataset" / name / f"{name}_{suffix}"
            if name == names[0]:
                data.save(path)
            else:
                os.link(folder / "Dataset" / names[0] / f"{names[0]}_{suffix}", path)
    manifest = {"full_train": names[:800], "full_test": names[800:], "few": names[:4]}
    (folder / "Dataset" / "manifest.json").write_text(json.dumps(manifest))
    return names


def test_a_case_is_what_the_files_say(tmp_path: Path) -> None:
    names = publish(tmp_path)
    splits = read_airfrans(tmp_path)
    assert {split: len(cases) for split, cases in splits.items()} == {"train": 800, "test": 200}
    assert recognise(tmp_path) == "airfrans"
    internal, _ = mesh()
    case = splits["test"][0]
    assert splits["test"].names[0] == names[800]  # pyright: ignore
    assert case.names == NAMES
    assert case.f is not None
    assert case.u is not None
    assert case.surface is not None
    x = np.asarray(internal.points)[:, :2]
    assert np.array_equal(case.x, x)
    assert np.array_equal(case.surface, np.arange(24) < 8)
    angle = np.radians(-3.563)
    assert case.f[:, :2] == pytest.approx(np.tile([58.831 * np.cos(angle), 58.831 * np.sin(angle)], (24, 1)))
    assert case.f[:, 2] == pytest.approx(np.linalg.norm(x, axis=1) - 1, abs=1e-6)
    assert case.f[:8, 3:] == pytest.approx(x[:8], abs=1e-6)
    assert (case.f[8:, 3:] == 0).all()
    assert np.array_equal(case.u[:, :2], internal.point_data["U"][:, :2])
    assert np.array_equal(case.u[:, 2], internal.point_data["p"])
    assert np.array_equal(case.u[:, 3], internal.point_data["nut"])
    lift_and_drag(case)


def test_the_manifest_may_be_named_in_three_ways(tmp_path: Path) -> None:
    publish(tmp_path)
    first = read_airfrans(tmp_path)["train"][5]
    for place in (tmp_path / "Dataset", tmp_path / "Dataset" / "manifest.json"):
        again = read_airfrans(place, stride=2)["train"][5]
        assert np.array_equal(again.x, first.x[::2])


def test_a_data_set_is_made_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(tmp_path)
    monkeypatch.setattr("lrsa.problems.airfrans.official.SPLITS", {"train": ("few", 4)})
    _, counts = import_official(tmp_path, PROBLEM, tmp_path / "a.h5")
    assert counts == {"train": 4}


def damage(folder: Path, kind: str) -> None:
    place = folder / "Dataset" / NAME.format("0.0") / NAME.format("0.0")
    internal, airfoil = mesh()
    if kind == "field":
        del internal.point_data["nut"]
        internal.save(f"{place}_internal.vtu")
    elif kind == "columns":
        internal.point_data["p"] = np.zeros((24, 2))
        internal.save(f"{place}_internal.vtu")
    elif kind == "place":
        airfoil.points[3] += 0.1
        airfoil.save(f"{place}_aerofoil.vtp")
    elif kind == "file":
        Path(f"{place}_aerofoil.vtp").unlink()
    else:
        (folder / "Dataset" / "manifest.json").write_text(kind)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("field", 'no point array "nut"'),
        ("columns", '"p" of shape'),
        ("place", "has no point at"),
        ("file", "aerofoil.vtp"),
        ("{", "no readable JSON"),
        ("[]", "no list of tasks"),
        ('{"full_train": 3}', '"full_train"'),
        ('{"full_train": ["a"]}', "1 cases of full_train, not 800"),
    ],
)
def test_what_is_damaged_is_named_in_one_line(tmp_path: Path, kind: str, words: str) -> None:
    publish(tmp_path)
    damage(tmp_path, kind)
    with pytest.raises(LrsaError, match=words) as caught:
        read_airfrans(tmp_path)["train"][0]
    assert len(caught.value.lines) == 1


def test_names_that_tell_no_stream_and_folders_without_a_manifest_are_refused(tmp_path: Path) -> None:
    with pytest.raises(LrsaError, match=r"manifest.json does not exist"):
        read_airfrans(tmp_path)
    names = publish(tmp_path)
    (tmp_path / "Dataset" / names[0]).rename(tmp_path / "Dataset" / "a")
    for suffix in ("internal.vtu", "aerofoil.vtp"):
        (tmp_path / "Dataset" / "a" / f"{names[0]}_{suffix}").rename(
            tmp_path / "Dataset" / "a" / f"a_{suffix}"
        )
    manifest = {"full_train": ["a", *names[1:800]], "full_test": names[800:]}
    (tmp_path / "Dataset" / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(LrsaError, match="does not name speed and angle"):
        read_airfrans(tmp_path)["train"][0]
