"""Neighbours of points: graphs by radius or by number, and random pooling of them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial import KDTree


@dataclass(frozen=True)
class Level:
    """One pooling of a graph: a coarser set of points, its edges, and the way back."""

    kept: Any
    """(m,) the kept points, as indices into the finer level."""
    nearest: Any
    """(n,) for every point of the finer level its nearest kept one, as an index into this level."""
    edges: Any
    """(2, E) among the kept points."""


def pooling_levels(x: np.ndarray, ratio: float, radii: Sequence[float], neighbours: int) -> list[Level]:
    """Random pooling of the points x (n, p), a `Level` of numpy arrays for every radius.

    A point is kept by the hash of its coordinates: a draw that looks random, comes out the same every time,
    and does not depend on the order of the points.
    """
    levels: list[Level] = []
    rank = _hash(x)
    for radius in radii:
        kept = np.argsort(rank, kind="stable")[: math.ceil(ratio * len(x))]
        nearest = KDTree(x[kept]).query(x)[1]
        x, rank = x[kept], rank[kept]
        levels.append(Level(kept, nearest, near_edges(x, neighbours, radius)))
    return levels


def near_edges(
    x: np.ndarray, neighbours: int, radius: float = math.inf, self_loops: bool = True
) -> np.ndarray:
    """(2, E) edges to every point of x (n, p) from its nearest others within the radius, and from itself."""
    points = np.arange(len(x))
    asked = min(neighbours + 1, len(x))
    bound = np.nextafter(radius, math.inf)
    found = KDTree(x).query(x, asked, distance_upper_bound=bound)
    distance, source = (np.asarray(part).reshape(len(x), asked) for part in found)
    other = (distance <= radius) & (source < len(x)) & (source != points[:, None])
    other &= other.cumsum(axis=1) <= neighbours
    if self_loops:
        source = np.concatenate([points[:, None], source], axis=1)
        other = np.concatenate([np.ones((len(x), 1), bool), other], axis=1)
    target = np.broadcast_to(points[:, None], source.shape)
    return np.stack([source[other], target[other]])


def _hash(x: np.ndarray) -> np.ndarray:
    """(n, p) -> (n,) 64 bits of the coordinates in single precision, by the splitmix64 finaliser."""
    bits = (np.ascontiguousarray(x, np.float32) + np.float32(0)).view(np.uint32).astype(np.uint64)
    key = np.zeros(len(x), np.uint64)
    for column in bits.T:
        key = (key ^ column) + np.uint64(0x9E3779B97F4A7C15)
        key = (key ^ (key >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        key = (key ^ (key >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        key ^= key >> np.uint64(31)
    return key
