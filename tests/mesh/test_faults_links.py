"""HDF5 files that lead out of themselves: what else is on the machine is nobody's business."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from small import grid_cases, write

from lrsa.data.hdf5 import items_of
from lrsa.data.matlab import read_part, shapes_in
from lrsa.data.store import Dataset, splits_of
from lrsa.errors import LrsaError
from lrsa.mesh.importing import import_meshes
from lrsa.mesh.tables import read_hdf5_case

SECRET = np.arange(64.0, dtype=np.float32)[:, None]


def external(group: Any, name: str, shape: tuple[int, ...]) -> None:
    group[name] = h5py.ExternalLink("secret.h5", "u")


def external_by_a_soft_link(group: Any, name: str, shape: tuple[int, ...]) -> None:
    group.file.create_group("aside")["away"] = h5py.ExternalLink("secret.h5", "/")
    group[name] = h5py.SoftLink("/aside/away/u")


def stored_elsewhere(group: Any, name: str, shape: tuple[int, ...]) -> None:
    group.create_dataset(name, shape, "f4", external=[("secret.bin", 0, h5py.h5f.UNLIMITED)])


def virtual(group: Any, name: str, shape: tuple[int, ...]) -> None:
    layout = h5py.VirtualLayout(shape, "f4")
    layout[...] = h5py.VirtualSource("secret.h5", "u", shape)
    group.create_virtual_dataset(name, layout)


LEADS = [external, external_by_a_soft_link, stored_elsewhere, virtual]
leads = pytest.mark.parametrize("lead", LEADS)


@pytest.fixture(autouse=True)
def secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of somebody else, in the folder from which names are looked up."""
    monkeypatch.chdir(tmp_path)
    with h5py.File("secret.h5", "w") as file:
        file["u"] = SECRET
    Path("secret.bin").write_bytes(SECRET.tobytes())


@leads
def test_arrays_from_elsewhere_are_not_imported(lead: Callable[[Any, str, tuple[int, ...]], None]) -> None:
    with h5py.File("case.h5", "w") as file:
        file["x"] = np.random.default_rng(0).random((64, 2))
        lead(file, "u", SECRET.shape)
    with pytest.raises(LrsaError, match=r'case\.h5 takes "u" from another file'):
        read_hdf5_case(Path("case.h5"))
    with pytest.raises(LrsaError, match=r'case\.h5 takes "u" from another file'):
        import_meshes(Path("case.h5").resolve(), Path("out.h5"), [], ["u"], workers=1)
    assert not Path("out.h5").exists()


@leads
def test_data_sets_of_ours_have_all_in_one(
    tmp_path: Path, lead: Callable[[Any, str, tuple[int, ...]], None]
) -> None:
    path = write(tmp_path / "d.h5", grid_cases(4))
    with h5py.File(path, "r+") as file:
        group: Any = file["train"]
        shape = group["u"].shape
        del group["u"]
        lead(group, "u", shape)
    with pytest.raises(LrsaError, match=r'd\.h5 takes "u" from another file'):
        Dataset(path, "train")


@leads
def test_published_files_have_all_in_one(lead: Callable[[Any, str, tuple[int, ...]], None]) -> None:
    with h5py.File("published.mat", "w") as file:
        lead(file, "u", SECRET.shape)
    for read in (
        lambda: shapes_in(Path("published.mat"), "u"),
        lambda: read_part(Path("published.mat"), "u"),
    ):
        with pytest.raises(LrsaError, match=r'takes "u" from another file'):
            read()


@pytest.mark.parametrize("name", ["train", "shared", "test"])
def test_groups_from_elsewhere_are_refused(tmp_path: Path, name: str) -> None:
    whole = write(tmp_path / "whole.h5", grid_cases(4), grid_cases(2))
    with h5py.File("d.h5", "w") as file, h5py.File(whole, "r") as theirs:
        file.attrs.update(theirs.attrs)
        for other in {"train", "shared", "test"} - {name}:
            theirs.copy(other, file)
        file[name] = h5py.ExternalLink("whole.h5", name)
    assert splits_of(Path("d.h5")) == ["train", "test"]
    with pytest.raises(LrsaError, match=f'd\\.h5 takes "{name}" from another file'):
        Dataset(Path("d.h5"), "train" if name == "shared" else name)


def test_a_case_that_is_a_link_is_refused_and_its_file_is_never_opened(tmp_path: Path) -> None:
    """A pipe that nobody writes to would wait forever."""
    os.mkfifo("pipe.h5")
    with h5py.File("all.h5", "w") as file:
        file["case/x"] = np.zeros((3, 2))
        file["case/u"] = h5py.ExternalLink("pipe.h5", "u")
        file["other"] = h5py.ExternalLink("pipe.h5", "/")
    for part in ("case", "other"):
        with pytest.raises(LrsaError, match="from another file"):
            read_hdf5_case(Path("all.h5") / part)


def test_links_within_a_file_are_followed_and_loose_ends_left_out() -> None:
    with h5py.File("case.h5", "w") as file:
        file["deep/u"] = SECRET
        file["u"] = h5py.SoftLink("/deep/u")
        file["twice"] = file["u"]
        file["loose"] = h5py.SoftLink("/nowhere")
        assert set(items_of(file)) == {"deep", "u", "twice"}
        assert np.array_equal(items_of(file)["u"][...], SECRET)
