"""The HDF5 store: what goes in comes out, lazily; a failed write leaves everything as it was."""

import errno
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import h5py
import numpy as np
import pytest
from cases import NAMES, OPTIONAL, assert_equal, case_lists, make_case
from hypothesis import given
from hypothesis import strategies as st

from lrsa.data.store import FORMAT, VERSION, Dataset, Schema, Selection, is_path
from lrsa.data.writing import write_dataset
from lrsa.errors import LrsaError
from lrsa.pointset import Names, PointSet
from lrsa.problems.catalogue import open_dataset

SCHEMA = Schema("mine", "official", "autoregressive", NAMES, {"seed": 3, "parameters": {"tau": 0.1}})


def read(path: Path, split: str = "train") -> list[PointSet]:
    return list(Dataset(path, split))


def folder(path: Path) -> dict[str, bytes]:
    """All files and what is in them."""
    return {str(p.relative_to(path)): p.read_bytes() for p in path.rglob("*") if p.is_file()}


@given(cases=case_lists(), others=st.integers(0, 3))
def test_every_combination_of_fields_survives(
    tmp_path_factory: pytest.TempPathFactory, cases: list[PointSet], others: int
) -> None:
    path = tmp_path_factory.mktemp("store") / "a.h5"
    write_dataset(path, {"train": cases, "test": cases[:others]})
    for got, given_case in zip(read(path), cases, strict=True):
        assert_equal(got, given_case)
    if others:
        for got, given_case in zip(read(path, "test"), cases[:others], strict=True):
            assert_equal(got, given_case)


@given(shared=st.sets(st.sampled_from(["x", "f_mask", "u_mask", "weights", "surface", "cells", "times"])))
def test_what_all_cases_share_is_kept_once(
    tmp_path_factory: pytest.TempPathFactory, shared: set[str]
) -> None:
    path = tmp_path_factory.mktemp("store") / "a.h5"
    one = make_case(0, 6, OPTIONAL, cells=np.array([[0, 1, 2], [2, 3, -1]]))
    same = {name: one.arrays()[name] for name in [*shared, *(["cell_types"] if "cells" in shared else [])]}
    cases = [replace(make_case(i, 6, OPTIONAL), **same) for i in range(1, 6)]
    write_dataset(path, {"train": cases[:3], "test": cases[3:]})
    with h5py.File(path) as file:
        assert {name for name in [*OPTIONAL, "x"] if f"shared/{name}" in file} == shared
    data = Dataset(path, "train")
    assert data.fixed_points == ("x" in shared)
    for split, part in (("train", cases[:3]), ("test", cases[3:])):
        for got, given_case in zip(read(path, split), part, strict=True):
            assert_equal(got, given_case)


@pytest.mark.parametrize("own", ["cells", "cell_types"])
def test_cells_and_their_types_are_shared_each_for_itself(tmp_path: Path, own: str) -> None:
    cells = np.array([[0, 1, 2, 3], [2, 3, 4, -1]])
    arrays = {"cells": [cells, cells[:, ::-1], cells + 1], "cell_types": [[9, 5], [10, 5], [4, 7]]}
    cases = [
        make_case(
            i, 6, (), **{name: np.array(values[i if name == own else 0]) for name, values in arrays.items()}
        )
        for i in range(3)
    ]
    write_dataset(tmp_path / "a.h5", {"train": cases})
    with h5py.File(tmp_path / "a.h5") as file:
        assert {name for name in arrays if f"train/{name}" in file} == {own}
    for got, case in zip(read(tmp_path / "a.h5"), cases, strict=True):
        assert_equal(got, case)


@pytest.mark.parametrize("count", [1, 2], ids=["shared", "own"])
def test_files_from_before_cells_had_types_get_them_by_the_rule(tmp_path: Path, count: int) -> None:
    cells = [np.array([[0, 1, 2, 3], [2, 3, 4, -1]])[: 2 - i] for i in range(count)]
    cases = [make_case(i, 8, (), cells=cells[i % count]) for i in range(4)]
    path = tmp_path / "a.h5"
    write_dataset(path, {"train": cases})
    with h5py.File(path, "r+") as file:
        del file["shared/cell_types" if count == 1 else "train/cell_types"]
    for got, case in zip(read(path), cases, strict=True):
        assert_equal(got, case)
        assert got.arrays()["cell_types"].tolist() == [9, 5][: len(got.arrays()["cells"])]


def test_a_grid_survives_whether_or_not_it_is_the_same_for_all(tmp_path: Path) -> None:
    same = [make_case(i, 6, grid=(2, 3)) for i in range(4)]
    write_dataset(tmp_path / "same.h5", {"train": same})
    assert Dataset(tmp_path / "same.h5", "train").grid == (2, 3)
    different = [make_case(0, 6, grid=(2, 3)), make_case(1, 6, grid=(3, 2)), make_case(2, 4, grid=(4, 1))]
    write_dataset(tmp_path / "different.h5", {"train": different[:2], "test": different[2:]})
    assert Dataset(tmp_path / "different.h5", "train").grid is None
    for got, case in zip(
        [*read(tmp_path / "different.h5"), *read(tmp_path / "different.h5", "test")], different, strict=True
    ):
        assert_equal(got, case)


@pytest.mark.parametrize(
    ("field", "given_type", "stored"),
    [
        ("f", "float64", "float32"),
        ("f", "int32", "float32"),
        ("f", "bool", "float32"),
        ("x", "int64", "float32"),
        ("u_mask", "float64", "bool"),
        ("surface", "uint8", "bool"),
        ("cells", "uint16", "int64"),
        ("cell_types", "int64", "uint8"),
    ],
)
def test_each_field_has_one_type_whatever_is_given(
    tmp_path: Path, field: str, given_type: str, stored: str
) -> None:
    """A file mixes cases with integers and cases with floats."""
    plain = make_case(0, 5, OPTIONAL)
    other = make_case(1, 5, OPTIONAL)
    value = (np.abs(np.nan_to_num(other.arrays()[field] * 3)) % 5).astype(given_type)
    write_dataset(tmp_path / "a.h5", {"train": [plain, replace(other, **{field: value})]})
    got = read(tmp_path / "a.h5")[1].arrays()[field]
    assert got.dtype == stored
    assert np.array_equal(got, value.astype(stored))


def test_names_units_and_provenance_survive(tmp_path: Path) -> None:
    cases = [make_case(i, 4) for i in range(3)]
    write_dataset(tmp_path / "a.h5", cases, SCHEMA)
    assert Dataset(tmp_path / "a.h5", "test").schema == SCHEMA
    write_dataset(tmp_path / "b.h5", cases)
    assert Dataset(tmp_path / "b.h5", "train").schema == Schema("b", names=NAMES)
    write_dataset(tmp_path / "c.h5", cases, Schema("c", protocol="static"))
    assert read(tmp_path / "c.h5")[0].names == NAMES


@pytest.mark.parametrize("count", [1, 2, 3, 10, 37])
def test_a_list_is_split_once_and_for_all(tmp_path: Path, count: int) -> None:
    cases = [make_case(i, 3, globals=np.array([i])) for i in range(count)]

    def labels(name: str, split: str) -> list[int]:
        return [int(case.arrays()["globals"][0]) for case in read(tmp_path / name, split)]

    for name in ("a.h5", "b.h5"):
        write_dataset(tmp_path / name, cases)
    train, test = labels("a.h5", "train"), labels("a.h5", "test") if count > 1 else []
    assert sorted(train + test) == list(range(count))
    assert len(test) == (max(1, round(count / 5)) if count > 1 else 0)
    assert labels("b.h5", "train") == train
    if count > 9:
        assert test != list(range(len(test)))


def test_opening_a_file_reads_no_arrays_and_a_case_only_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_dataset(tmp_path / "a.h5", [make_case(i, 5 + i % 2, OPTIONAL) for i in range(8)])
    monkeypatch.setattr(h5py.Dataset, "__getitem__", lambda *_: pytest.fail("read"))
    data = Dataset(tmp_path / "a.h5", "train")
    case = data[1]
    for name in ("x", "f", "u", "u_mask", "weights", "surface", "cells", "cell_types", "globals"):
        assert isinstance(case.arrays()[name], np.memmap), name


def test_a_dataset_is_a_sequence_of_its_cases(tmp_path: Path) -> None:
    cases = [make_case(i, 4) for i in range(5)]
    write_dataset(tmp_path / "a.h5", {"train": cases})
    data = Dataset(tmp_path / "a.h5", "train")
    assert len(data) == 5
    assert_equal(data[-1], cases[-1])
    assert_equal(data[np.int64(2)], cases[2])  # type: ignore[index]
    for outside in (5, -6):
        with pytest.raises(IndexError):
            data[outside]
    assert "f" in data
    assert "cells" not in data


def test_a_selection_picks_and_thins_and_says_which_case_it_is(tmp_path: Path) -> None:
    cases = [make_case(i, 6, grid=(2, 3)) for i in range(5)]
    write_dataset(tmp_path / "a.h5", {"train": cases})
    chosen = Selection(Dataset(tmp_path / "a.h5", "train"), np.array([3, 1]), stride=2)
    assert len(chosen) == 2
    assert_equal(chosen[0], cases[3].strided(2))
    assert chosen.label(1) == f"case 1 of train in {tmp_path / 'a.h5'}"


def poison(i: int, **values: Any) -> Callable[[], list[PointSet]]:
    return lambda: [make_case(k, 4, **(values if k == i else {})) for k in range(12)]


def spoilt(shape: tuple[int, ...], value: float) -> np.ndarray:
    array = np.zeros(shape, np.float32)
    array.flat[-1] = value
    return array


FAILURES: dict[str, tuple[Callable[[], Any], str]] = {
    "NaN": (poison(9, u=spoilt((4, 2), np.nan)), "case 9 has NaN in target T"),
    "infinity": (poison(0, f=spoilt((4, 2), np.inf)), "case 0 has infinite values in input b"),
    "too large": (poison(5, x=np.full((4, 2), 1e200)), "case 5 has infinite values in coordinate x"),
    "other channels": (poison(7, f=np.zeros((4, 3))), r"case 7 has f \(3,\).* but the first has f \(2,\)"),
    "a missing field": (poison(7, f=None), "case 7 has u .* but the first has f "),
    "no points": (
        poison(6, x=np.zeros((0, 2)), f=np.zeros((0, 2)), u=np.zeros((0, 2))),
        "case 6 has no points",
    ),
    "a grid in some": (poison(6, grid=(2, 2)), r"grid \(2,\)"),
    "no cases": (list, "no cases"),
    "no cases in any split": (lambda: {"train": [], "test": []}, "no cases"),
    "splits that differ": (
        lambda: {"train": [make_case(0, 4)], "test": [make_case(1, 4, globals=np.ones(1))]},
        r"test has .*globals \(1,\).* but train has",
    ),
    "a reserved split": (lambda: {"shared": [make_case(0, 4)]}, "shared"),
}


@pytest.mark.parametrize("before", [False, True], ids=["new file", "file there"])
@pytest.mark.parametrize(("cases", "words"), FAILURES.values(), ids=FAILURES.keys())
def test_a_refused_write_leaves_everything_as_it_was(
    tmp_path: Path, cases: Callable[[], Any], words: str, before: bool
) -> None:
    if before:
        write_dataset(tmp_path / "a.h5", [make_case(i, 3) for i in range(4)])
    files = folder(tmp_path)
    with pytest.raises(LrsaError, match=words):
        write_dataset(tmp_path / "a.h5", cases())
    assert folder(tmp_path) == files


def test_an_empty_split_is_left_out(tmp_path: Path) -> None:
    write_dataset(tmp_path / "a.h5", {"train": [], "test": [make_case(0, 4)]})
    assert len(Dataset(tmp_path / "a.h5", "test")) == 1
    with pytest.raises(LrsaError, match=r'no split "train" \(it has: test\)'):
        Dataset(tmp_path / "a.h5", "train")


@given(cases=case_lists())
def test_the_space_asked_for_is_that_of_the_file(
    tmp_path_factory: pytest.TempPathFactory, cases: list[PointSet]
) -> None:
    """One byte less than the file, and it is refused before it is begun; a header more, and it is not."""
    path = tmp_path_factory.mktemp("store") / "a.h5"
    write_dataset(path, {"train": cases}, SCHEMA)
    size = path.stat().st_size
    with pytest.MonkeyPatch.context() as patch:
        usage = SimpleNamespace(free=size - 1)
        patch.setattr(shutil, "disk_usage", lambda _: usage)
        with pytest.raises(LrsaError, match="no space for"):
            write_dataset(path.with_name("b.h5"), {"train": cases}, SCHEMA)
        usage.free = size + 2**16
        write_dataset(path.with_name("b.h5"), {"train": cases}, SCHEMA)
    assert path.with_name("b.h5").read_bytes() == path.read_bytes()


class FullDisk(Sequence[PointSet]):
    """Cases that can be looked at twice (the checks) and then fill the disk in the middle."""

    def __init__(self, error: Exception) -> None:
        self.reads, self.error = 0, error

    def __len__(self) -> int:
        return 6

    def __getitem__(self, index: int) -> PointSet:  # type: ignore[override]
        if not 0 <= index < 6:
            raise IndexError(index)
        self.reads += index == 4
        if self.reads > 2:
            raise self.error
        return make_case(index, 500, x=np.zeros((500, 2)))


@pytest.mark.parametrize("before", [False, True], ids=["new file", "file there"])
@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "full"), KeyboardInterrupt()], ids=repr)
def test_a_write_that_breaks_off_leaves_everything_as_it_was(
    tmp_path: Path, error: Exception, before: bool
) -> None:
    if before:
        write_dataset(tmp_path / "a.h5", [make_case(i, 3) for i in range(4)])
    files, full = folder(tmp_path), FullDisk(error)
    with pytest.raises(type(error)):
        write_dataset(tmp_path / "a.h5", {"train": full})
    assert full.reads == 3
    assert folder(tmp_path) == files


def test_a_disk_that_is_really_full_is_an_error_and_not_a_crash(tmp_path: Path) -> None:
    """A limit on the size of files, set in a process of its own: HDF5 would take the process with it."""
    program = (
        "import sys, numpy as np\n"
        "from lrsa.pointset import PointSet\n"
        "from lrsa.data.writing import write_dataset\n"
        "cases = [PointSet(np.random.rand(500, 2), u=np.random.rand(500, 1)) for _ in range(100)]\n"
        "try:\n"
        "    write_dataset(sys.argv[1], cases)\n"
        "except OSError as error:\n"
        "    sys.exit(error.errno)\n"
    )
    write_dataset(tmp_path / "a.h5", [make_case(i, 3) for i in range(4)])
    files = folder(tmp_path)
    ended = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "a.h5")],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000)),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ended.returncode == errno.EFBIG, ended.stderr
    assert ended.stderr == ""
    assert folder(tmp_path) == files


def one_line(path: Path, split: str = "train") -> str:
    with pytest.raises(LrsaError) as caught:
        Dataset(path, split)
    message = str(caught.value)
    assert "\n" not in message
    assert str(path) in message
    return message


def test_a_file_cut_off_anywhere_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    write_dataset(path, [make_case(i, 4 + i % 2, OPTIONAL) for i in range(6)])
    whole = path.read_bytes()
    for size in [*range(0, len(whole), 97), len(whole) - 1]:
        path.write_bytes(whole[:size])
        assert "truncated" in one_line(path)


def test_files_of_other_kinds_are_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    assert "does not exist" in one_line(path)
    path.write_text("x,y\n1,2\n")
    assert "not a readable HDF5 file" in one_line(path)
    with h5py.File(path, "w") as file:
        file["u"] = np.zeros(3)
    assert "of another kind" in one_line(path)
    for version in (None, VERSION + 1):
        with h5py.File(path, "w") as file:
            file.attrs.update({"format": FORMAT} | ({} if version is None else {"version": version}))
        assert f"data format {version}" in one_line(path)
    tmp_path.joinpath("folder.h5").mkdir()
    assert "not a readable" in one_line(tmp_path / "folder.h5")


def test_a_file_of_another_user_is_not_called_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system's word is put in its mouth: whoever runs the tests as root may read everything."""
    path = tmp_path / "a.h5"
    write_dataset(path, [make_case(0, 4)])
    path.chmod(0)

    def refuse(*_: object) -> None:
        raise PermissionError(errno.EACCES, "Unable to open file")

    monkeypatch.setattr(h5py, "File", refuse)
    message = one_line(path)
    assert "may not be read by you: ask its owner" in message
    assert "damaged" not in message


@pytest.mark.parametrize("lost", ["schema", "shared", "train", "train/samples", "train/u"])
def test_a_file_that_lost_something_is_refused(tmp_path: Path, lost: str) -> None:
    path = tmp_path / "a.h5"
    write_dataset(path, [make_case(i, 4) for i in range(6)])
    with h5py.File(path, "r+") as file:
        where: Any = file["train"] if "/" in lost else file
        name = lost.split("/")[-1]
        del (where.attrs if name in where.attrs else where)[name]
        if lost == "train/u":
            where.create_group("u")
    assert one_line(path)


def test_a_file_compressed_by_somebody_reads_the_same(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    cases = [make_case(i, 5 + i % 2, OPTIONAL) for i in range(6)]
    write_dataset(path, {"train": cases})
    with h5py.File(path, "r+") as file:
        group: Any = file["train"]
        for name in list(group):
            values = group[name][...]
            del group[name]
            group.create_dataset(name, data=values, chunks=True, compression="gzip")
    for got, case in zip(read(path), cases, strict=True):
        assert_equal(got, case)


def test_a_file_may_be_written_over_while_it_is_read(tmp_path: Path) -> None:
    """Even from itself: its cases, memory-mapped, are the source of the new one."""
    path = tmp_path / "a.h5"
    cases = [make_case(i, 5 + i % 2, OPTIONAL) for i in range(6)]
    write_dataset(path, {"train": cases})
    old = Dataset(path, "train")
    held = old[0]
    write_dataset(path, {"train": [old[5], old[4]]})
    assert_equal(held, cases[0])
    assert_equal(old[3], cases[3])
    new = read(path)
    assert len(new) == 2
    assert_equal(new[0], cases[5])


def test_fields_without_entries_survive(tmp_path: Path) -> None:
    none = {
        "f": np.zeros((4, 0), np.float32),
        "cells": np.zeros((0, 3), int),
        "globals": np.zeros(0, np.float32),
    }
    cases = [make_case(i, 4, **none) for i in range(3)]
    write_dataset(tmp_path / "a.h5", {"train": cases})
    for got, case in zip(read(tmp_path / "a.h5"), cases, strict=True):
        assert_equal(got, case)


def test_a_point_set_of_one_point_survives(tmp_path: Path) -> None:
    case = PointSet(np.ones((1, 1), np.float32))
    write_dataset(tmp_path / "a.h5", [case])
    assert_equal(read(tmp_path / "a.h5")[0], case)


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("darcy", False),
        ("navier-stokes", False),
        ("my.h5", True),
        ("./darcy", True),
        ("a/b", True),
        ("/d", True),
    ],
)
def test_a_separator_or_a_suffix_makes_a_path(name: str, path: bool) -> None:
    assert is_path(name) == path


def test_a_benchmark_that_is_misspelt_or_not_made_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LRSA_HOME", str(tmp_path))
    with pytest.raises(LrsaError, match=r"Did you mean darcy\?"):
        open_dataset("darci")
    with pytest.raises(LrsaError, match="lrsa data make darcy"):
        open_dataset("darcy")
    write_dataset(tmp_path / "data" / "darcy-default-seed0.h5", [make_case(i, 4) for i in range(4)])
    assert len(open_dataset("darcy")) == 3
    assert len(open_dataset(tmp_path / "data" / "darcy-default-seed0.h5", "test")) == 1


def test_an_empty_name_has_no_channels() -> None:
    assert Schema.from_json(Schema().to_json()) == Schema(names=Names())
