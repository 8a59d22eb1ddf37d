"""Damaged files: an error that names the file, or the case where no harm was done; never anything else."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import h5py
import numpy as np
import pytest
import pyvista as pv
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lrsa.errors import LrsaError
from lrsa.mesh.importing import Problems, import_meshes
from lrsa.mesh.parts import Job
from lrsa.mesh.pool import Call, ReaderPool
from lrsa.mesh.roles import Roles

SUFFIXES = (".vtu", ".npz", ".h5", ".csv")


def write(folder: Path) -> None:
    """The same case in four formats."""
    grid = pv.ImageData(dimensions=(4, 4, 3)).cast_to_unstructured_grid()
    x, p = np.asarray(grid.points, float), np.arange(48.0)
    grid["p"] = p
    grid.save(folder / "case.vtu")
    np.savez_compressed(folder / "case.npz", x=x, p=p)
    with h5py.File(folder / "case.h5", "w") as file:
        file["x"], file["p"] = x, p
    rows = "\n".join(",".join(map(repr, map(float, [*point, v]))) for point, v in zip(x, p, strict=True))
    (folder / "case.csv").write_text(f"x,y,z,p\n{rows}\n")


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("originals")
    write(folder)
    return folder


@pytest.fixture(scope="module")
def pool() -> Iterator[ReaderPool]:
    with ReaderPool(1, timeout=10) as pool:
        yield pool


@st.composite
def damages(draw: st.DrawFn) -> tuple[str, float, bytes]:
    kind = draw(st.sampled_from(["truncate", "flip", "delete", "insert", "empty"]))
    return kind, draw(st.floats(0, 1, exclude_max=True)), draw(st.binary(min_size=1, max_size=16))


def damaged(data: bytes, damage: tuple[str, float, bytes]) -> bytes:
    kind, where, noise = damage
    at = int(where * len(data))
    if kind == "truncate":
        return data[:at]
    if kind == "flip":
        return (
            data[:at] + bytes(a ^ b for a, b in zip(data[at:], noise, strict=False)) + data[at + len(noise) :]
        )
    if kind == "delete":
        return data[:at] + data[at + len(noise) :]
    return data[:at] + noise + data[at:] if kind == "insert" else b""


@pytest.mark.parametrize("suffix", SUFFIXES)
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(damage=damages())
def test_a_damaged_file_is_named_or_read(
    originals: Path, pool: ReaderPool, suffix: str, damage: tuple[str, float, bytes]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"case{suffix}"
        path.write_bytes(damaged((originals / path.name).read_bytes(), damage))
        job = Job.of(path, Roles((), ("p",)), None, Path(folder) / "parts")
        ((_, outcome),) = pool.run([Call(Job.make, (job,), path)])
        if isinstance(outcome, LrsaError):
            lines = outcome.lines if isinstance(outcome, Problems) else [str(outcome)]
            assert all(str(path) in line and "\n" not in line for line in lines)
            assert not list(Path(folder).glob("parts/*"))
        else:
            assert outcome.points > 0
            assert job.part.exists()


def test_broken_files_of_every_format_among_good_ones_are_all_named(originals: Path, tmp_path: Path) -> None:
    for suffix in SUFFIXES[:3]:
        data = (originals / f"case{suffix}").read_bytes()
        (tmp_path / f"good{suffix}").write_bytes(data)
        (tmp_path / f"half{suffix}").write_bytes(data[: len(data) // 2])
        (tmp_path / f"empty{suffix}").write_bytes(b"")
    with pytest.raises(Problems) as caught:
        import_meshes(tmp_path, tmp_path / "out.h5", [], ["p"], workers=1)
    *lines, last = caught.value.lines
    assert last.startswith("3 of 9 cases are built and kept in ")
    assert len(lines) == 6
    for suffix in SUFFIXES[:3]:
        for name in ("half", "empty"):
            assert sum(f"{name}{suffix}" in line for line in lines) == 1
    assert not (tmp_path / "out.h5").exists()


def test_a_file_that_vanishes_is_named(tmp_path: Path, pool: ReaderPool, originals: Path) -> None:
    with pytest.raises(LrsaError, match=r"gone\.vtu"):
        pool.one(
            Call(
                Job.make,
                (Job(tmp_path / "gone.vtu", Roles((), ("p",)), None, tmp_path / "x.npz"),),
                tmp_path / "gone.vtu",
            )
        )
