"""Reader of the published Elasticity files: points and stress of 2000 cases, the case being the last axis."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lrsa.errors import LrsaError
from lrsa.pointset import Names, PointSet
from lrsa.problems.elasticity.solver import Elasticity

POINTS, STRESS = "Random_UnitCell_XY_10.npy", "Random_UnitCell_sigma_10.npy"
"""(972, 2, 2000) and (972, 2000). The third file, of the hole's radii, is no input of the benchmark."""
TRAIN, TEST = 1000, 200
"""The first cases, and the last ones."""


def read_elasticity(folder: Path, stride: int = 1) -> dict[str, Sequence[PointSet]]:
    """The published splits. The files hold no quadrature weights, and so the cases have none.

    Args:
        folder: Where both files are, one of the two, or a folder above (`elasticity`, which holds `Meshes`).
        stride: Every `stride`-th point is kept; 1 is the published one.
    """
    folder = _find(folder)
    x, sigma = _load(folder / POINTS), _load(folder / STRESS)
    if x.ndim != 3 or x.shape[1] != 2 or 0 in x.shape:
        raise LrsaError(f"{folder / POINTS} has the shape {x.shape}, not (points, 2, cases). {_CURE}")
    if sigma.shape != (x.shape[0], x.shape[2]):
        raise LrsaError(
            f"{folder / STRESS} has the shape {sigma.shape}, but the points ask for "
            f"{(x.shape[0], x.shape[2])}: (points, cases). {_CURE}"
        )
    if x.shape[2] < TRAIN + TEST:
        raise LrsaError(
            f"{folder / POINTS} has {x.shape[2]} cases, not the 2000 published: the first {TRAIN} are for "
            f"training, the last {TEST} for the test. {_CURE}"
        )
    return {
        split: PointCases(_cases(x[::stride], part), _cases(sigma[::stride, None], part), Elasticity.names)
        for split, part in (("train", slice(TRAIN)), ("test", slice(-TEST, None)))
    }


@dataclass(frozen=True)
class PointCases(Sequence[PointSet]):
    """Cases of as many points each, at places of their own, made when asked for; views of the arrays."""

    x: np.ndarray
    """(S, N, p) the points."""
    u: np.ndarray
    """(S, N, o) target fields."""
    names: Names

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, index: int) -> PointSet:  # pyright: ignore[reportIncompatibleMethodOverride]
        return PointSet(self.x[index], u=self.u[index], names=self.names)


_CURE = "Download it again, as it was published"


def _find(folder: Path) -> Path:
    """The folder of the files: this one, or `Meshes` in it, as they were packed."""
    folder = folder.parent if folder.is_file() else folder
    places = (folder, folder / "Meshes", folder / "elasticity" / "Meshes")
    return next((p for p in places if (p / POINTS).is_file() or (p / STRESS).is_file()), folder)


def _cases(array: np.ndarray, part: slice) -> np.ndarray:
    """(N, c, cases) to (S, N, c) float32."""
    return np.ascontiguousarray(array[..., part].transpose(2, 0, 1), dtype=np.float32)


def _load(path: Path) -> np.ndarray:
    if not path.is_file():
        raise LrsaError(f"{path} does not exist. Put it into {path.parent}, under its published name")
    try:
        array = np.load(path, allow_pickle=False)
        if not isinstance(array, np.ndarray) or array.dtype.kind not in "fiu":
            raise ValueError("it is no array of numbers")
    except Exception as error:  # a damaged file fails in every way that its parser has
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise LrsaError(f"{path} is no readable NumPy file ({reason}). Download it again") from error
    return array
