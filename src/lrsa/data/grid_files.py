"""Published sets in which every case has a structured grid of its own: three numpy files X, Y and Q."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from lrsa.errors import LrsaError
from lrsa.geometry.measures import cell_areas, shared_areas
from lrsa.pointset import Names, PointSet

SPLITS = {"train": slice(0, 1000), "test": slice(1000, 1200)}
_CURE = "Download it again, as it was published"


class GridFiles(NamedTuple):
    """Three files of a benchmark: abscissae and ordinates (cases, i, j), fields (cases, fields, i, j)."""

    what: str
    files: dict[str, str]
    """By X, Y and Q."""
    fields: int
    """How many are published."""
    target: int
    """Which of the fields is learned; those behind it may be missing."""
    smallest: tuple[int, int]
    """Nodes along each axis, at the least."""

    def maps(self, folder: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(cases, i, j) abscissae, ordinates and target, none of them read; or what is wrong, in one line."""
        folder = folder.parent if folder.is_file() else folder
        x, y, q = (_map(folder / file) for file in self.files.values())
        self._check(folder, x, y, q)
        return x, y, q[:, self.target]

    def _check(self, folder: Path, x: np.ndarray, y: np.ndarray, q: np.ndarray) -> None:
        wanted = {
            "X": "(cases, i, j)",
            "Y": "(cases, i, j) like X",
            "Q": f"(cases, {self.fields}, i, j) like X",
        }
        right = {
            "X": x.ndim == 3 and x.shape[1] >= self.smallest[0] and x.shape[2] >= self.smallest[1],
            "Y": y.shape == x.shape,
            "Q": q.ndim == 4 and q.shape[1] > self.target and (len(q), *q.shape[2:]) == x.shape,
        }
        for axis, array in zip("XYQ", (x, y, q), strict=True):
            if array.dtype.kind not in "fiu" or not right[axis]:
                raise LrsaError(
                    f"{folder / self.files[axis]} holds {array.dtype} of shape {array.shape}, not numbers of"
                    f" shape {wanted[axis]} as published. {_CURE}"
                )
        if len(x) <= SPLITS["test"].start:
            raise LrsaError(
                f"the {self.what} files in {folder} hold {len(x)} cases; the test set begins at case"
                f" {SPLITS['test'].start}. Download them again, as they were published"
            )


@dataclass(frozen=True)
class GridsOfTheirOwn(Sequence[PointSet]):
    """Cases that each have their own nodes, read from the maps when asked for."""

    x: np.ndarray
    """(S, I, J) abscissae."""
    y: np.ndarray
    """(S, I, J) ordinates."""
    u: np.ndarray
    """(S, I, J) the target."""
    stride: int
    names: Names
    surface: np.ndarray | None = None
    """(I, J) where the body is."""

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, index: int) -> PointSet:  # pyright: ignore[reportIncompatibleMethodOverride]
        nodes = np.stack([self.x[index], self.y[index]], axis=-1)
        # Areas are positive whichever way round the axes are numbered.
        areas = np.abs(cell_areas(nodes.astype(np.float64)))
        case = PointSet(
            x=nodes.reshape(-1, 2).astype(np.float32),
            u=np.asarray(self.u[index], np.float32).reshape(-1, 1),
            weights=shared_areas(areas).ravel().astype(np.float32),
            surface=None if self.surface is None else self.surface.ravel(),
            grid=nodes.shape[:2],
            names=self.names,
        )
        return case.strided(self.stride)


def _map(path: Path) -> np.ndarray:
    """The array of a file, without reading it."""
    if not path.is_file():
        raise LrsaError(f"{path} does not exist. Put it into {path.parent}, under its published name")
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except Exception as error:  # a damaged file fails in every way that its parser has
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise LrsaError(
            f"{path} is no readable numpy file, truncated or foreign ({reason}). {_CURE}"
        ) from error
