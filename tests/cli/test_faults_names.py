"""Names that are none, and archives that are larger than they look."""

import zipfile
from pathlib import Path

import numpy as np
import pytest
from small import refusal

from lrsa.errors import LrsaError
from lrsa.mesh.arrays import read_npz

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
    monkeypatch.setattr("lrsa.mesh.arrays.memory", lambda: 3 * 10**7)
    with pytest.raises(LrsaError, match=r"bomb\.npz unpacks to 0 GB, more than half"):
        read_npz(tmp_path / "bomb.npz")
