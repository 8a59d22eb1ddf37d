"""Pictures of fields on points: one image for each field of a case, without axes or words."""

import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.figure import Figure
from matplotlib.tri import Triangulation
from PIL import Image

from lrsa.pointset import Names, PointSet
from lrsa.report.axes import upward
from lrsa.report.render import UNKNOWN, VIEWS, Surface, cropped, render_surfaces, stacked, turned
from lrsa.report.triangles import seen_axes, segments_of, triangles_of

matplotlib.use("Agg")
FIELD, ERROR = "viridis", "magma_r"
"""One colour map for fields, one for errors."""
WIDTH, DPI = 2.8, 180
FAR = 8
"""A body is looked at from nearby where the domain is so many times as large."""
FEW = 6000
"""Triangles up to which the edges of the mesh are drawn."""


@dataclass(frozen=True)
class Picture:
    """One scalar at the points of a case, between two ends of a colour scale."""

    case: PointSet
    values: np.ndarray
    """(N,)."""
    low: float
    high: float
    cmap: str = FIELD
    known: np.ndarray | None = None
    """(N,) bool: elsewhere the mesh is grey."""
    largest: float | None = None
    """Of the values, where the scale ends before it."""


def moves(names: Names) -> bool:
    """Whether the first targets are places of the points: x_t of x, and so on."""
    coords = names.coords
    return bool(coords) and names.targets[: len(coords)] == tuple(f"{name}_t" for name in coords)


def placed(case: PointSet, u: np.ndarray) -> PointSet:
    """The case where its points are by its targets u (N, o), if they move."""
    return replace(case, x=u[:, : case.x.shape[1]]) if moves(case.names) else case


def picture_of(case: PointSet, values: np.ndarray, channel: int = 0, cmap: str = FIELD) -> Picture:
    """A target with the scale of its own known values."""
    known = None if case.u_mask is None else case.u_mask[:, channel]
    seen = values if known is None else values[known]
    low, high = (float(seen.min()), float(seen.max())) if len(seen) else (0.0, 1.0)
    return Picture(case, values, low, high, cmap, known)


def draw_pictures(pictures: Sequence[Picture]) -> list[np.ndarray]:
    """(H, W, 4) images, one for each picture; surfaces in space are drawn by VTK where it works."""
    surfaces = {i: s for i, p in enumerate(pictures) if (s := _surface(p)) is not None}
    rendered = render_surfaces(list(surfaces.values())) if surfaces else None
    images = dict(zip(surfaces, rendered, strict=True)) if rendered else {}
    return [images[i] if i in images else _draw(p, surfaces.get(i)) for i, p in enumerate(pictures)]


def draw_field(axes: Axes, picture: Picture, view: tuple[float, float, float] = VIEWS[0]) -> Any:
    """On the grid of the case, its triangles, or as dots; points in space are projected."""
    case, values = picture.case, picture.values
    x = case.x[:, seen_axes(case.x)]
    options: dict[str, Any] = {"cmap": picture.cmap, "vmin": picture.low, "vmax": picture.high}
    known = np.ones(len(x), bool) if picture.known is None else picture.known
    if x.shape[1] == 1:
        return axes.scatter(x[known, 0], values[known], c=values[known], s=6, **options)
    if (lines := segments_of(case)) is not None:
        return _draw_curve(axes, x, lines, picture)
    axes.set_aspect("equal")
    if case.grid is not None and len(case.grid) == 2 and x.shape[1] == 2 and known.all():
        a, b, c = (v.reshape(case.grid) for v in (x[:, 0], x[:, 1], values))
        return axes.pcolormesh(a, b, c, shading="gouraud", **options)
    mesh = triangles_of(case) if x.shape[1] == 2 else None
    if mesh is not None:
        return _draw_triangles(axes, x, mesh.points, values, known, options)
    return _draw_dots(axes, x, values, _visible(case, known), options, view)


def png(image: np.ndarray) -> bytes:
    """The image on white as a small PNG file: a colour map has no more colours than a palette."""
    file = io.BytesIO()
    opaque = Image.new("RGB", image.shape[1::-1], "white")
    picture = Image.fromarray(np.ascontiguousarray(image))
    opaque.paste(picture, mask=picture.getchannel("A"))
    opaque.quantize(256, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE).save(file, "PNG")
    return file.getvalue()


def _draw_triangles(
    axes: Axes, x: np.ndarray, triangles: np.ndarray, values: np.ndarray, known: np.ndarray, options: Any
) -> Any:
    whole = known[triangles].all(1)
    if not whole.all():
        grey = PolyCollection(
            list(x[triangles[~whole]]), facecolors=UNKNOWN, edgecolors="face", linewidths=0.5
        )
        axes.add_collection(grey)
    axes.update_datalim(x)
    axes.autoscale_view()
    shown = Triangulation(x[:, 0], x[:, 1], triangles[whole] if whole.any() else triangles)
    # Unknown values may be anything: they belong to no triangle that is drawn.
    drawn = axes.tripcolor(shown, np.where(known, values, options["vmin"]), shading="gouraud", **options)
    if not whole.any():
        drawn.set_visible(False)
    if len(triangles) < FEW:
        axes.triplot(shown, color="#26323f", linewidth=0.25, alpha=0.35)
    return drawn


def _draw_curve(axes: Axes, x: np.ndarray, lines: np.ndarray, picture: Picture) -> Any:
    """The values along a curve over its longest coordinate, between the ends of the scale."""
    along = x[:, int(np.ptp(x, axis=0).argmax())]
    drawn = LineCollection(list(np.stack([along, picture.values], axis=1)[lines]), linewidths=1.6)
    drawn.set(array=picture.values[lines].mean(1), cmap=picture.cmap, clim=(picture.low, picture.high))
    axes.add_collection(drawn)
    room = 0.04 * ((picture.high - picture.low) or 1.0)
    axes.set(xlim=(along.min(), along.max()), ylim=(picture.low - room, picture.high + room), aspect="auto")
    axes.axhline(picture.low - room, color="#b6c0ca", linewidth=0.8)
    return drawn


def _draw_dots(
    axes: Axes,
    x: np.ndarray,
    values: np.ndarray,
    shown: np.ndarray,
    options: Any,
    view: tuple[float, float, float],
) -> Any:
    if x.shape[1] > 2:
        x = _project(turned(x[:, :3], upward(x[:, :3])), view)
        shown = shown[np.argsort(x[shown, 2])]
    size = float(np.clip(9000 / max(len(shown), 1), 0.8, 40))
    return axes.scatter(x[shown, 0], x[shown, 1], c=values[shown], s=size, linewidths=0, **options)


def _visible(case: PointSet, known: np.ndarray) -> np.ndarray:
    """The points to draw of a cloud: the surface of the body, where it is known which points those are."""
    if case.surface is not None and (known & case.surface).any():
        known = known & case.surface
    return np.flatnonzero(known)


def _surface(picture: Picture) -> Surface | None:
    """The surface in space that a picture shows, if it is one."""
    case = picture.case
    axes = seen_axes(case.x)
    mesh = triangles_of(case) if len(axes) == 3 else None
    if mesh is None:
        return None
    chosen = mesh.points
    if mesh.boundary:
        # The outer box of a domain would hide the body that the field is known on.
        chosen = next(
            (t for mask in (picture.known, case.surface) if len(t := _inside(chosen, mask))), chosen
        )
    values = picture.values.astype(float)
    if picture.known is not None:
        values = np.where(picture.known, values, np.nan)
    used, triangles = np.unique(chosen, return_inverse=True)
    up = (
        case.names.coords.index(case.names.up) if case.names.up in case.names.coords else upward(case.x[used])
    )
    return Surface(
        case.x[used],
        triangles.reshape(-1, 3),
        values[used],
        picture.cmap,
        picture.low,
        picture.high,
        up,
    )


def shown_points(case: PointSet) -> np.ndarray:
    """The numbers of the points that a picture of a case shows: of its cells, or of its surface, or all."""
    if case.cells is not None and len(case.cells):
        used = np.unique(case.cells)
        return used[used >= 0]
    return _visible(case, np.ones(len(case), bool))


def _inside(triangles: np.ndarray, mask: np.ndarray | None) -> np.ndarray:
    return triangles[:0] if mask is None else triangles[mask[triangles].all(1)]


def _draw(picture: Picture, surface: Surface | None) -> np.ndarray:
    views = VIEWS[:1] if surface is None and len(seen_axes(picture.case.x)) < 3 else VIEWS
    return stacked([_draw_view(picture, surface, view) for view in views])


def _draw_view(picture: Picture, surface: Surface | None, view: tuple[float, float, float]) -> np.ndarray:
    figure = Figure(figsize=(WIDTH, WIDTH), dpi=DPI)
    axes = figure.add_axes((0.01, 0.01, 0.98, 0.98))
    axes.axis("off")
    if surface is None:
        draw_field(axes, picture, view)
        _look_at_body(axes, picture.case)
    else:
        _paint(axes, surface, view)
    file = io.BytesIO()
    figure.savefig(file, format="rgba", dpi=DPI, transparent=True)
    pixels = round(WIDTH * DPI)
    return cropped(np.frombuffer(file.getvalue(), np.uint8).reshape(pixels, pixels, 4))


def _look_at_body(axes: Axes, case: PointSet) -> None:
    """A body in a plane that is a speck in its domain fills a third of the picture."""
    x = case.x[:, seen_axes(case.x)]
    if x.shape[1] != 2 or case.surface is None or not case.surface.any():
        return
    low, high = x[case.surface].min(0), x[case.surface].max(0)
    size = float((high - low).max())
    if 0 < size < np.ptp(x, axis=0).max() / FAR:
        for bounds, middle in zip((axes.set_xlim, axes.set_ylim), (low + high) / 2, strict=True):
            bounds(middle - 1.5 * size, middle + 1.5 * size)


def _paint(axes: Axes, surface: Surface, view: tuple[float, float, float]) -> None:
    """Triangles from the farthest to the nearest, shaded by the angle to the light."""
    seen = _project(turned(surface.points, surface.up), view)[surface.triangles]
    order = np.argsort(seen[..., 2].mean(1))
    normals = np.cross(seen[:, 1] - seen[:, 0], seen[:, 2] - seen[:, 0])
    length = np.maximum(np.linalg.norm(normals, axis=1), 1e-30)
    light = 0.45 + 0.55 * np.abs(normals @ np.array([0.2, 0.4, 0.9])) / length
    level = np.clip((surface.values - surface.low) / ((surface.high - surface.low) or 1.0), 0, 1)
    map = matplotlib.colormaps[surface.cmap].with_extremes(bad=UNKNOWN)
    colours = map(np.ma.masked_invalid(level[surface.triangles].mean(1)))
    colours[:, :3] *= np.minimum(light, 1.0)[:, None]
    polygons = PolyCollection(
        list(seen[order][..., :2]), facecolors=colours[order], edgecolors="face", linewidths=0.4
    )
    axes.add_collection(polygons)
    axes.set_aspect("equal")
    axes.autoscale_view()


def _project(x: np.ndarray, view: tuple[float, float, float]) -> np.ndarray:
    """(N, 3) points -> right, up and towards the eye, without perspective."""
    towards = np.array(view) / np.linalg.norm(view)
    right = np.cross([0.0, 0.0, 1.0], towards)
    right /= np.linalg.norm(right)
    return x @ np.stack([right, np.cross(towards, right), towards], axis=1)
