"""Names that are none, and archives that are larger than they look."""

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest
from small import refusal

from lrsa.errors import LrsaError
from lrsa.mesh.arrays import read_npz
from lrsa.mesh.tables import read_npz_case

pytest_plugins = ["small_runs"]
pytestmark = pytest.mark.usefixtures("home")


@pytest.mark.parametrize("name", ["", "  "])
def test_an_empty_name_does_not_import_the_current_folder(
    name: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.savez(home / "case.npz", x=np.zeros((3, 2)), f=np.zeros(3), u=np.zeros(3))
    for more in ([], ["--inputs", "f", "--targets", "u", "--out", "out.h5"]):
        assert "an empty name is no file" in refusal(capsys, "data", "import", name, *more)


def test_a_bomb_of_zeros_is_refused_before_it_is_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    np.savez_compressed(tmp_path / "bomb.npz", x=np.zeros((10**6, 2)))
    with zipfile.ZipFile(tmp_path / "bomb.npz") as archive:
        assert sum(entry.compress_size for entry in archive.infolist()) < 10**5
    assert read_npz(tmp_path / "bomb.npz")["x"].shape == (10**6, 2)
    monkeypatch.setattr("lrsa.machine.memory", lambda: 3 * 10**7)
    for read in (read_npz, read_npz_case):
        with pytest.raises(LrsaError, match=r"bomb\.npz, unpacked and at work, takes 0\.032 GB"):
            read(tmp_path / "bomb.npz")


def test_where_the_memory_is_not_known_archives_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    np.savez(tmp_path / "case.npz", x=np.zeros((3, 2)))
    monkeypatch.delattr("os.sysconf")  # as on Windows
    assert read_npz(tmp_path / "case.npz")["x"].shape == (3, 2)


@pytest.mark.parametrize("points", [10**10, 10**15, 10**30])
def test_an_array_that_says_it_is_larger_than_it_is_is_refused(tmp_path: Path, points: int) -> None:
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, {"descr": "<f8", "fortran_order": False, "shape": (points, 2)})
    with zipfile.ZipFile(tmp_path / "lie.npz", "w") as archive:
        archive.writestr("x.npy", head.getvalue() + bytes(64))
    for read in (read_npz, read_npz_case):
        with pytest.raises(LrsaError, match=r"lie\.npz is not a readable NPZ file"):
            read(tmp_path / "lie.npz")
