"""What is given at the points of a case, as published: the distance to the car, and the way out of it.

Of a point in the volume it is that to the nearest point of the surface, and the direction from there; on the
surface 0, and the normal: the mean of those of the quadrilaterals around it, each counted alike.
"""

import numpy as np
from scipy.spatial import KDTree

from lrsa.pointset import Names, PointSet

SPEED = 72 / 3.6
"""Of the stream, along z, m/s."""
DENSITY, VISCOSITY = 0.3, 1.8e-5
"""kg/m³ and Pa s, by which drag is published; the gas of generated cases."""
QUADRILATERAL = 9
NAMES = Names(
    ("x", "y", "z"),
    ("sdf", "n_x", "n_y", "n_z"),
    ("u", "v", "w", "p"),
    units=dict.fromkeys(("x", "y", "z", "sdf"), "m")
    | dict.fromkeys(("n_x", "n_y", "n_z"), "1")
    | dict.fromkeys(("u", "v", "w"), "m/s")
    | {"p": "Pa"},
    up="y",
)


def assemble(
    volume: np.ndarray,
    surface: np.ndarray,
    quads: np.ndarray,
    normals: np.ndarray,
    velocity: np.ndarray,
    pressure: np.ndarray,
) -> PointSet:
    """One case: the points of the volume, then those of the surface, where alone pressure is known.

    Args:
        volume: (V, 3).
        surface: (S, 3).
        quads: (Q, 4) of the surface, counter-clockwise from outside.
        normals: (Q, 3) of them, of length 1.
        velocity: (V + S, 3).
        pressure: (S,) of the surface.
    """
    distance, nearest = KDTree(surface).query(volume)
    outward = (volume - surface[nearest]) / distance[:, None]
    f = np.zeros((len(volume) + len(surface), 4))
    f[: len(volume)] = np.column_stack([distance, outward])
    f[len(volume) :, 1:] = point_normals(len(surface), quads, normals)
    on_surface = np.arange(len(f)) >= len(volume)
    u = np.column_stack([velocity, np.zeros(len(f))])
    u[on_surface, 3] = pressure
    return PointSet(
        x=np.concatenate([volume, surface]).astype(np.float32),
        f=f.astype(np.float32),
        u=u.astype(np.float32),
        u_mask=np.column_stack([np.ones((len(f), 3), bool), on_surface]),
        cells=quads + len(volume),
        cell_types=np.full(len(quads), QUADRILATERAL, np.uint8),
        surface=on_surface,
        names=NAMES,
    )


def point_normals(count: int, quads: np.ndarray, normals: np.ndarray) -> np.ndarray:
    """(count, 3) unit vectors at the corners of quadrilaterals (Q, 4) by their normals (Q, 3)."""
    summed = np.zeros((count, 3))
    np.add.at(summed, quads, normals[:, None])
    length = np.linalg.norm(summed, axis=1, keepdims=True)
    return np.divide(summed, length, out=summed, where=length > 0)
