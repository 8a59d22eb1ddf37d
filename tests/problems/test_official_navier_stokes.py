"""The published Navier-Stokes file, small ones in its formats: read back equal, or refused in one line."""

from pathlib import Path

import numpy as np
import pytest
from matlab import SAVES, Arrays, Save, save_v73

from lrsa.errors import LrsaError
from lrsa.problems.catalogue import get, open_dataset
from lrsa.problems.navier_stokes.official import NAVIER_STOKES, read_navier_stokes
from lrsa.problems.navier_stokes.solver import NavierStokes
from lrsa.problems.official import import_official, recognise


def arrays(cases: int = 1203, size: int = 4, frames: int = 11, dtype: str = "float32") -> Arrays:
    """All that the published file holds."""
    rng = np.random.default_rng(0)
    u = rng.standard_normal((cases, size, size, frames)).astype(dtype)
    return {"a": u[..., 0] + 1, "t": np.arange(1.0, frames + 1)[None], "u": u}


@pytest.fixture(params=SAVES)
def save(request: pytest.FixtureRequest) -> Save:
    return request.param


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("stride", "side"), [(1, 4), (2, 2), (3, 2)])
def test_the_first_1000_and_the_last_200_cases_read_back_equal(
    tmp_path: Path, save: Save, dtype: str, stride: int, side: int
) -> None:
    raw = arrays(dtype=dtype)
    save(tmp_path / NAVIER_STOKES, raw)
    splits = read_navier_stokes(tmp_path, stride)
    assert {split: len(cases) for split, cases in splits.items()} == {"train": 1000, "test": 200}
    for split, first in (("train", 0), ("test", 1003)):
        for i in (0, 7, len(splits[split]) - 1):
            case = splits[split][i]
            assert case.grid == (side, side)
            assert case.f is None
            assert case.u is not None
            assert case.times is not None
            assert case.times.tolist() == list(range(1, 12))
            assert case.u.dtype == np.float32
            for t in range(11):
                theirs = raw["u"][first + i, ::stride, ::stride, t].astype(np.float32)
                assert np.array_equal(case.u[t].reshape(side, side), theirs), (split, i, t)


def test_official_and_generated_cases_have_one_schema(tmp_path: Path, save: Save) -> None:
    generated = NavierStokes(resolution=16, stride=4, frames=11).sample(np.random.default_rng(0))
    save(tmp_path / NAVIER_STOKES, arrays(1200))
    official = read_navier_stokes(tmp_path)["test"][0]
    assert official.grid == generated.grid
    assert official.names == generated.names
    kinds = [{k: (v.shape, v.dtype) for k, v in case.arrays().items()} for case in (official, generated)]
    assert kinds[0] == kinds[1]
    for name in ("x", "weights", "times"):
        assert np.array_equal(official.arrays()[name], generated.arrays()[name]), name


def test_the_frames_of_a_case_are_views_of_what_was_read(tmp_path: Path) -> None:
    save_v73(tmp_path / NAVIER_STOKES, arrays())
    case = read_navier_stokes(tmp_path)["train"][3]
    assert case.u is not None
    assert case.u.base is not None


def test_the_file_is_imported_with_the_protocol_of_the_benchmark(tmp_path: Path, save: Save) -> None:
    raw = arrays()
    save(tmp_path / NAVIER_STOKES, raw)
    assert recognise(tmp_path) == recognise(tmp_path / NAVIER_STOKES) == "navier-stokes"
    out, counts = import_official(tmp_path / NAVIER_STOKES, get("navier-stokes"), tmp_path / "ns.h5")
    assert (out.name, counts) == ("ns.h5", {"train": 1000, "test": 200})
    stored = open_dataset(tmp_path / "ns.h5", split="test")
    assert stored.fixed_points
    assert (stored.schema.protocol, stored.schema.source) == ("autoregressive", "official")
    case = stored[199]
    assert case.u is not None
    assert case.times is not None
    assert case.times[-1] == 11
    assert np.array_equal(case.u[..., 0], np.moveaxis(raw["u"][-1], -1, 0).reshape(11, -1))


def refusal(folder: Path) -> str:
    with pytest.raises(LrsaError) as caught:
        read_navier_stokes(folder)
    line = str(caught.value)
    assert "\n" not in line
    assert NAVIER_STOKES in line
    return line


def test_the_missing_file_is_named(tmp_path: Path) -> None:
    assert "does not exist. Put it into" in refusal(tmp_path)


@pytest.mark.parametrize(
    ("u", "words"),
    [
        (None, 'no array "u" (it has: a, t)'),
        (np.ones((1200, 4, 20)), '"u" of shape (1200, 4, 20)'),
        (np.ones((1200, 4, 5, 20)), '"u" of shape (1200, 4, 5, 20)'),
        (np.ones((20, 4, 4, 1200)), "has 20 cases, not the 1200 published"),
        (np.ones((1199, 4, 4, 2)), "has 1199 cases, not the 1200 published"),
    ],
)
def test_an_ill_shaped_array_is_named(tmp_path: Path, save: Save, u: np.ndarray | None, words: str) -> None:
    content = {key: value for key, value in {**arrays(3), "u": u}.items() if value is not None}
    save(tmp_path / NAVIER_STOKES, content)
    line = refusal(tmp_path)
    assert words in line
    assert "Download it again" in line


@pytest.mark.parametrize("share", [0.0, 0.001, 0.1, 0.5, 0.9, 0.99])
def test_a_truncated_file_is_refused(tmp_path: Path, save: Save, share: float) -> None:
    save(tmp_path / NAVIER_STOKES, {"u": arrays()["u"]})
    whole = (tmp_path / NAVIER_STOKES).read_bytes()
    (tmp_path / NAVIER_STOKES).write_bytes(whole[: int(share * len(whole))])
    assert "Download it again" in refusal(tmp_path)


@pytest.mark.parametrize("content", [b"<html>404 Not Found</html>\n" * 40, bytes(1000), b"PK\x03\x04" * 99])
def test_a_foreign_file_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / NAVIER_STOKES).write_bytes(content)
    assert "Download it again" in refusal(tmp_path)
