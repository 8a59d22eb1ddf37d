"""The exact distance from points to segments or triangles, by a tree of their centres."""

import numpy as np
from scipy.spatial import KDTree


def distance_to(points: np.ndarray, pieces: np.ndarray) -> np.ndarray:
    """(N,) distance from each point to the nearest of the segments or triangles.

    A piece whose centre is at distance c is at least c - r away, r being its radius. So the nearest centres
    are tried until the next one is farther than the best so far by r; by classes of size, as r varies.
    """
    centres = pieces.mean(1)
    radii = np.linalg.norm(pieces - centres[:, None], axis=2).max(1)
    scale = np.floor(np.log2(np.maximum(radii, radii.max() * 2.0**-40))).astype(int)
    best = np.full(len(points), np.inf)
    for size in np.unique(scale):
        mine = scale == size
        tree, parts, radius = KDTree(centres[mine]), pieces[mine], float(radii[mine].max())
        open_, k = np.arange(len(points)), min(8, int(mine.sum()))
        while len(open_):
            reach, near = (found.reshape(-1, k) for found in tree.query(points[open_], k=k))
            exact = _piece_distance(points[open_], parts[near])
            best[open_] = np.minimum(best[open_], exact.min(1))
            open_ = open_[reach[:, -1] - radius < best[open_]] if k < len(parts) else open_[:0]
            k = min(4 * k, len(parts))
    return best


def _piece_distance(points: np.ndarray, pieces: np.ndarray) -> np.ndarray:
    """(n, k) distances of (n, 3) points to their (n, k, c, 3) pieces."""
    from_corner = points[:, None, None] - pieces
    along = np.roll(pieces, -1, axis=2) - pieces
    square = np.maximum((along**2).sum(-1), np.finfo(float).tiny)
    t = np.clip((from_corner * along).sum(-1) / square, 0, 1)
    nearest = np.linalg.norm(from_corner - t[..., None] * along, axis=-1).min(-1)
    if pieces.shape[2] == 2:
        return nearest
    normal = np.cross(along[..., 0, :], along[..., 1, :])
    length = np.linalg.norm(normal, axis=-1)
    sides = (np.cross(along, from_corner) * normal[..., None, :]).sum(-1)
    inside = (sides >= 0).all(-1) & (length > 0)
    height = np.abs((from_corner[..., 0, :] * normal).sum(-1)) / np.maximum(length, np.finfo(float).tiny)
    return np.where(inside, height, nearest)
