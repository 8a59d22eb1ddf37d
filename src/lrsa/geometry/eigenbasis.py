"""The first eigenfunctions of the Laplace operator at the points of a case: -Δφ = λφ, ∂φ/∂n = 0.

Meshes: linear finite elements on triangles (in the plane or on a surface) or tetrahedra, into which cells of
all other types are split; beside volumes, cells of surfaces do not count. Structured grids: the unit box of
indices, whose eigenfunctions are products of cosines, so that all cases of a benchmark share one basis. Point
clouds: the robust Laplacian of N. Sharp and K. Crane (2020) on 30 neighbours, which takes points in space as
samples of a surface.
"""

import hashlib
import math
from functools import lru_cache
from pathlib import Path

import numpy as np
from scipy import linalg, sparse
from scipy.sparse.linalg import eigsh
from scipy.spatial import KDTree

from lrsa.errors import LrsaError
from lrsa.files import atomic, data_home
from lrsa.geometry.cells import dimensions, simplices, unknown
from lrsa.pointset import PointSet

VERSION = "1"
NEIGHBOURS = 30
SHIFT = -1e-8
"""Just below the spectrum, which starts at zero: the shifted operator is positive definite."""


def eigenbasis(case: PointSet, modes: int) -> np.ndarray:
    """(N, modes) float32, from the cache if it is there. Orthonormal in the mass matrix, the constant first.

    Points that belong to no cell of the mesh take the values of the nearest point that does.
    """
    if not 0 < modes <= len(case):
        raise LrsaError(f"{len(case)} points have no {modes} eigenfunctions. Use fewer modes")
    if case.grid is not None:
        return box_eigenfunctions(case.grid, modes)[1].astype(np.float32)
    path = _cache_path(case, modes)
    kept = _read(path, (len(case), modes))
    if kept is not None:
        return kept
    basis = solve(case, modes)[1].astype(np.float32)
    with atomic(path, basis.nbytes) as temporary, temporary.open("wb") as file:
        np.save(file, basis)
    return basis


def solve(case: PointSet, modes: int) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues (modes,) and eigenfunctions (N, modes) of a mesh or point cloud, in physical units."""
    size = float(np.ptp(case.x, axis=0).max())
    points = (case.x - case.x.mean(axis=0)).astype(np.float64) / size  # the shift below supposes unit size
    stiffness, mass, used = laplacian(points, case.cells, case.cell_types)
    if modes > len(used):
        raise LrsaError(f"{len(used)} points with cells have no {modes} eigenfunctions. Use fewer modes")
    values, functions = _smallest(stiffness, mass, modes)
    functions *= size ** (-0.5 * _manifold_dim(case)) * _signs(functions)
    if len(used) < len(points):
        functions = functions[KDTree(points[used]).query(points)[1]]
    return values / size**2, functions


@lru_cache(maxsize=4)
def box_eigenfunctions(grid: tuple[int, ...], modes: int) -> tuple[np.ndarray, np.ndarray]:
    """Of the unit box at the points of an index grid: Π √2 cos(π k i / (n - 1)) and π² Σ k²."""
    wave = np.stack(np.meshgrid(*(np.arange(n) for n in grid), indexing="ij"), axis=-1).reshape(-1, len(grid))
    wave = wave[np.argsort(np.square(wave).sum(axis=1), kind="stable")[:modes]]  # (K, axes)
    functions = np.ones((1, len(wave)))
    for axis, n in enumerate(grid):
        k = wave[:, axis]
        along = np.cos(np.pi * np.arange(n)[:, None] * k / max(n - 1, 1)) * np.where(k, math.sqrt(2), 1.0)
        functions = (functions[:, None] * along).reshape(-1, len(wave))
    return np.pi**2 * np.square(wave).sum(axis=1), functions


def laplacian(
    points: np.ndarray, cells: np.ndarray | None, types: np.ndarray | None
) -> tuple[sparse.csc_matrix, sparse.csc_matrix, np.ndarray]:
    """Stiffness and mass (n, n) at the points with cells, and the indices (n,) of those points."""
    if cells is None or types is None:
        return *_cloud(points), np.arange(len(points))
    if (names := unknown(types)) or dimensions(types).max(initial=0) == 0:
        raise LrsaError(
            f"no eigenfunctions for {names or 'cells without extent'}: split them into triangles or"
            " tetrahedra, or leave the cells out to take the points as a cloud"
        )
    parts = simplices(cells, types)
    used, parts = np.unique(parts, return_inverse=True)
    return *_linear_elements(points[used], parts.reshape(-1, parts.shape[-1])), used


def _linear_elements(points: np.ndarray, parts: np.ndarray) -> tuple[sparse.csc_matrix, sparse.csc_matrix]:
    """Stiffness and mass of linear elements on simplices of any dimension in any space."""
    corners = points[parts]  # (C, k + 1, p)
    edges = corners[:, 1:] - corners[:, :1]  # (C, k, p)
    metric = edges @ edges.transpose(0, 2, 1)
    k = metric.shape[1]
    volume = np.sqrt(np.maximum(np.linalg.det(metric), 0)) / math.factorial(k)
    solid = volume > 1e-12 * volume.max()  # collapsed cells carry nothing
    parts, metric, volume = parts[solid], metric[solid], volume[solid]
    gradients = np.concatenate([-np.ones((k, 1)), np.eye(k)], axis=1)  # of the corner functions, in edges
    local_stiffness = volume[:, None, None] * (gradients.T @ np.linalg.solve(metric, gradients[None]))
    local_mass = volume[:, None, None] * (np.ones((k + 1, k + 1)) + np.eye(k + 1)) / ((k + 1) * (k + 2))
    rows, columns = np.repeat(parts, k + 1, axis=1).ravel(), np.tile(parts, (1, k + 1)).ravel()
    shape = (len(points), len(points))
    stiffness, mass = (
        sparse.csc_matrix((local.ravel(), (rows, columns)), shape) for local in (local_stiffness, local_mass)
    )
    return stiffness, mass


def _cloud(points: np.ndarray) -> tuple[sparse.csc_matrix, sparse.csc_matrix]:
    try:
        import robust_laplacian
    except ImportError as error:
        raise LrsaError(
            "eigenfunctions of a point cloud need robust_laplacian. Install the extra `spectral`:"
            " pip install 'lrsa[spectral]'"
        ) from error
    if points.shape[1] not in (2, 3):
        raise LrsaError(f"no eigenfunctions for a cloud of {points.shape[1]} coordinates; it takes 2 or 3")
    lifted = np.zeros((len(points), 3))
    lifted[:, : points.shape[1]] = points
    stiffness, mass = robust_laplacian.point_cloud_laplacian(
        lifted, n_neighbors=min(NEIGHBOURS, len(points) - 1)
    )
    return sparse.csc_matrix(stiffness), sparse.csc_matrix(mass)


def _smallest(
    stiffness: sparse.csc_matrix, mass: sparse.csc_matrix, modes: int
) -> tuple[np.ndarray, np.ndarray]:
    n = len(stiffness.indptr) - 1
    if n < 4 * modes:  # Lanczos iterations win only where few of the modes are wanted
        return linalg.eigh(stiffness.toarray(), mass.toarray(), subset_by_index=(0, modes - 1))
    start = np.random.default_rng(0).standard_normal(n)
    values, functions = eigsh(stiffness, modes, mass, sigma=SHIFT, v0=start)
    order = np.argsort(values)
    return values[order], functions[:, order]


def _signs(functions: np.ndarray) -> np.ndarray:
    """(K,) such that the entry of largest size becomes positive."""
    peak = np.abs(functions).argmax(axis=0)
    return np.where(functions[peak, np.arange(functions.shape[1])] < 0, -1.0, 1.0)


def _manifold_dim(case: PointSet) -> int:
    return 2 if case.cell_types is None else int(dimensions(case.cell_types).max())


def _cache_path(case: PointSet, modes: int) -> Path:
    digest = hashlib.sha256(f"{VERSION} {modes}".encode())
    for array in (case.x, case.cells, case.cell_types):
        if array is not None:
            digest.update(f"{array.shape} {array.dtype}".encode())
            digest.update(np.ascontiguousarray(array).tobytes())
    return data_home().parent / "basis" / f"{digest.hexdigest()[:32]}.npy"


def _read(path: Path, shape: tuple[int, int]) -> np.ndarray | None:
    """A kept basis; None where there is none or the file is not one."""
    try:
        with path.open("rb") as file:
            basis = np.lib.format.read_array(file, allow_pickle=False)
    except (OSError, ValueError):
        return None
    fits = basis.shape == shape and basis.dtype == np.float32
    return basis if fits and np.isfinite(basis).all() else None
