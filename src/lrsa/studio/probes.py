"""Values at places: the point that was clicked, and along a line between two of them."""

from typing import Any

import numpy as np
from scipy.spatial import KDTree

from lrsa.studio.cameras import Camera
from lrsa.studio.exploring import Exploration, Opened, Prediction
from lrsa.studio.shapes import VALUE, Shape
from lrsa.studio.words import named, short

SAMPLES = 200
"""Of a line."""
REACH = 0.02
"""A click beside a cloud takes the point that is nearer to its ray than this share of the distance."""


def picked(surface: Any, camera: Camera, across: float, up: float, aspect: float) -> np.ndarray | None:
    """(3,) the place of a surface that is seen at a place of its picture; None: nothing is there."""
    from vtkmodules.vtkCommonCore import mutable
    from vtkmodules.vtkCommonDataModel import vtkStaticCellLocator

    if not surface.n_points:
        return None
    origin, direction = camera.ray(across, up, aspect)
    if surface.n_verts == surface.n_cells:
        return _nearest_to_ray(np.asarray(surface.points, float), origin, direction)
    far = np.linalg.norm(np.asarray(surface.center) - origin) + surface.length
    locator: Any = vtkStaticCellLocator()
    locator.SetDataSet(surface)
    locator.BuildLocator()
    share, place, within, part = mutable(0.0), [0.0] * 3, [0.0] * 3, mutable(0)
    end = origin + direction * far
    hit = locator.IntersectWithLine(origin, end, 1e-9 * far, share, place, within, part)
    return np.array(place) if hit else None


def drawn_at(shape: Shape, points: np.ndarray | None) -> np.ndarray:
    """(N, 3) where the points of a panel are."""
    return shape.points if points is None else points


def moved_to(place: np.ndarray, points: np.ndarray, others: np.ndarray) -> np.ndarray:
    """A place (3,) among points (N, 3) that are elsewhere: the other place of the nearest of them."""
    return place if points is others else others[np.linalg.norm(points - place, axis=1).argmin()]


def probe(exploration: Exploration, opened: Opened, made: Prediction, place: np.ndarray) -> dict[str, Any]:
    """The point of the mesh that is nearest to a place: where it is, and every field there."""
    index = int(KDTree(opened.shape.points).query(place)[1])
    rows = []
    for i, name in enumerate(exploration.fields):
        predicted = float(made.u[index, i])
        known = None if made.truth is None else float(made.truth[index, i])
        known = known if known is not None and np.isfinite(known) else None
        rows.append(
            {
                "field": named(name, exploration.units.get(name, "")),
                "prediction": short(predicted, 5),
                "truth": "" if known is None else short(known, 5),
                "error": "" if known is None else short(abs(predicted - known), 3),
            }
        )
    where = ", ".join(short(v) for v in opened.case.x[index])
    return {"point": index, "where": where, "rows": rows}


def along(
    opened: Opened, made: Prediction, channel: int, start: np.ndarray, end: np.ndarray
) -> dict[str, np.ndarray]:
    """Distance (S,), and prediction and truth where they are known, on a line; NaN outside the mesh."""
    columns = {"prediction": made.u[:, channel]}
    if made.truth is not None and np.isfinite(made.truth[:, channel]).any():
        columns["truth"] = made.truth[:, channel]
    shares = np.linspace(0, 1, SAMPLES)[:, None]
    places = start + shares * (end - start)
    sampled = {"distance": np.linalg.norm(places - start, axis=1)}
    return sampled | {name: _at(opened, values, places) for name, values in columns.items()}


def _at(opened: Opened, values: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Values (N,) at places (S, 3): inside cells by their corners, in a cloud by the nearest point."""
    import pyvista

    shape = opened.shape
    if not shape.has_cells or shape.loose.any():
        return values[KDTree(shape.points).query(places)[1]]
    grid = shape.mesh.copy(deep=False)
    grid.point_data[VALUE] = values.astype(float)
    sampled: Any = pyvista.PolyData(places).sample(grid, tolerance=1e-4 * grid.length)
    inside = np.asarray(sampled["vtkValidPointMask"]) == 1
    return np.where(inside, np.asarray(sampled[VALUE]), np.nan)


def _nearest_to_ray(points: np.ndarray, origin: np.ndarray, direction: np.ndarray) -> np.ndarray | None:
    away = points - origin
    depth = away @ direction
    beside = np.linalg.norm(away - depth[:, None] * direction, axis=1)
    near = beside < REACH * float(np.ptp(points, axis=0).max())
    if not near.any():
        return None
    chosen = np.flatnonzero(near)
    return points[chosen[np.argmin(depth[chosen] + 10 * beside[chosen])]]
