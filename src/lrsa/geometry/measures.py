"""Measures of the cells of structured meshes, and their shares at the nodes."""

import numpy as np


def cell_areas(nodes: np.ndarray) -> np.ndarray:
    """(I + 1, J + 1, 2) nodes of a curved grid -> (I, J), signed by the orientation."""
    one, two = nodes[1:, 1:] - nodes[:-1, :-1], nodes[:-1, 1:] - nodes[1:, :-1]
    return 0.5 * (one[..., 1] * two[..., 0] - one[..., 0] * two[..., 1])


def shared_areas(areas: np.ndarray) -> np.ndarray:
    """(I, J) areas of cells -> (I + 1, J + 1): a quarter of each to every corner."""
    padded = np.pad(areas, 1)
    return (padded[:-1, :-1] + padded[1:, :-1] + padded[:-1, 1:] + padded[1:, 1:]) / 4
