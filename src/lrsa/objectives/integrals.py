"""Integrals over surfaces, the forces and the moments of a flow on a body: numpy arrays in, numbers out.

    F = ∫ (-p n + τ) dA,    M = ∫ (x - x₀) × (-p n + τ) dA

Faces (F, k, d) are segments in the plane (k = d = 2), triangles or quadrilaterals in space (k = 3 or 4,
d = 3). Their normals n point out of the body, into the fluid: in the plane to the left of a segment, in space
to where the corners run counter-clockwise. Values are those of the faces, (F,) or (F, ·); `at_faces` makes
them of values at points. Pressure and shear may be divided by the density; then forces are so, too.
"""

from dataclasses import dataclass

import numpy as np


def area_vectors(faces: np.ndarray) -> np.ndarray:
    """(F, d) normals of the length of the segment, or the size of the area."""
    if faces.shape[1:] == (2, 2):
        along = faces[:, 1] - faces[:, 0]
        return np.stack([-along[:, 1], along[:, 0]], axis=1)
    if faces.shape[2] != 3 or faces.shape[1] not in (3, 4):
        raise ValueError(f"faces are (F, 2, 2), (F, 3, 3) or (F, 4, 3), not {faces.shape}")
    # Half the product of the diagonals, which is exact for a quadrilateral that is not flat, too.
    return np.cross(faces[:, 2] - faces[:, 0], faces[:, -1] - faces[:, 1]) / 2


def at_faces(values: np.ndarray, faces: np.ndarray) -> np.ndarray:
    """Values (N, ...) at points -> (F, ...) means over the corners of faces of point numbers (F, k)."""
    return values[faces].mean(axis=1)


def plane_wall(cells: np.ndarray, surface: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The sides (F, 2) of quadrilaterals (C, 4) with both ends on the surface, and the other corners (F, 2).

    The corners of a cell run counter-clockwise, so that the fluid is on the left of its sides.
    """
    turned = np.stack([np.roll(cells, -k, axis=1) for k in range(4)], axis=1)  # (C, 4, 4): each side first
    on = surface[turned]
    mine = turned[on[..., :2].all(-1) & ~on[..., 2:].any(-1)]
    return mine[:, :2], mine[:, 2:]


def force(faces: np.ndarray, pressure: np.ndarray, shear: np.ndarray | None = None) -> np.ndarray:
    """(d,) of the pressure (F,) and, where given, the shear (F, d) of the fluid on the body."""
    return _loads(faces, pressure, shear).sum(axis=0)


def moment(
    faces: np.ndarray, pressure: np.ndarray, shear: np.ndarray | None = None, about: np.ndarray | None = None
) -> np.ndarray:
    """() in the plane, counter-clockwise, or (3,) in space, about a point (d,), by default the origin."""
    arms = faces.mean(axis=1) - (0 if about is None else about)
    loads = _loads(faces, pressure, shear)
    if faces.shape[2] == 2:
        return (arms[:, 0] * loads[:, 1] - arms[:, 1] * loads[:, 0]).sum()
    return np.cross(arms, loads).sum(axis=0)


def wall_shear(
    faces: np.ndarray,
    points: np.ndarray,
    velocity: np.ndarray,
    viscosity: float,
    at_wall: float | np.ndarray = 0.0,
) -> np.ndarray:
    """(F, d) τ = ν ∂u/∂n along a wall that stands still, by the points beside each of its faces.

    Args:
        faces: (F, k, d) of the wall.
        points: (F, m, d) those of the cell at the face that are not on the wall.
        velocity: (F, m, d) there.
        viscosity: Kinematic for a pressure divided by the density, else dynamic.
        at_wall: Further viscosity at the wall, of a wall function; one number, or (F, 1).
    """
    vectors = area_vectors(faces)
    normal = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True))[:, None]
    height = ((points - faces.mean(axis=1)[:, None]) * normal).sum(-1, keepdims=True)
    along = velocity - (velocity * normal).sum(-1, keepdims=True) * normal
    return (viscosity + at_wall) * along.mean(axis=1) / height.mean(axis=1)


@dataclass(frozen=True)
class Coefficients:
    """A force over the pressure of the stream times an area (a length in the plane)."""

    drag: float
    """Along the stream."""
    lift: float
    """Across it."""


def coefficients(
    force: np.ndarray,
    velocity: np.ndarray,
    area: float = 1.0,
    density: float = 1.0,
    up: np.ndarray | None = None,
) -> Coefficients:
    """C = 2 F / (ρ U² A) of a force (d,) in a stream of velocity (d,).

    Lift is along `up` (d,) less its part along the stream; by default to the left in the plane, z in space.
    """
    velocity = np.asarray(velocity, float)
    stream = velocity / np.linalg.norm(velocity)
    if up is None:
        up = np.array([-stream[1], stream[0]]) if len(stream) == 2 else np.array([0.0, 0.0, 1.0])
    across = up - (up @ stream) * stream
    scale = 0.5 * density * float(velocity @ velocity) * area
    return Coefficients(float(force @ stream) / scale, float(force @ across / np.linalg.norm(across)) / scale)


def _loads(faces: np.ndarray, pressure: np.ndarray, shear: np.ndarray | None) -> np.ndarray:
    """(F, d) the force on every face."""
    vectors = area_vectors(faces)
    loads = -pressure[:, None] * vectors
    return loads if shear is None else loads + shear * np.linalg.norm(vectors, axis=1)[:, None]
