"""Surfaces in space through VTK, in a process of its own.

    python -m lrsa.report.render JOBS.npz IMAGES.npz

Off-screen rendering needs a graphics driver or a software one; where there is none VTK can end the process
instead of raising. The caller then draws by itself.
"""

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

PIXELS = (640, 500)
TIMEOUT = 180.0
VIEWS = ((1.0, -1.5, 0.9), (-1.0, 1.5, 0.6))
"""Where the eye is, in the frame of (along, across, up): before and behind."""
GAP = 12
"""Pixels between the views."""
UNKNOWN = "#dfe4ea"


@dataclass(frozen=True)
class Surface:
    """Values at the points of a triangulated surface; NaN where they are not known."""

    points: np.ndarray
    triangles: np.ndarray
    values: np.ndarray
    cmap: str
    low: float
    high: float
    up: int = 2
    """The axis that points upwards."""


def turned(points: np.ndarray, up: int) -> np.ndarray:
    """(N, 3) points in a right-handed frame whose last axis is upwards."""
    return points[:, [(up + 1) % 3, (up + 2) % 3, up]]


def stacked(images: Sequence[np.ndarray]) -> np.ndarray:
    """Views of one thing above each other, each without its empty margins and in the middle."""
    cut = [cropped(image) for image in images]
    width = max(image.shape[1] for image in cut)
    rows = []
    for image in cut:
        left = (width - image.shape[1]) // 2
        rows.append(np.pad(image, ((0, GAP), (left, width - image.shape[1] - left), (0, 0))))
    return np.concatenate(rows)[:-GAP]


def cropped(image: np.ndarray) -> np.ndarray:
    """(H, W, 4) without the rows and columns at its edges in which nothing is."""
    rows, columns = (np.flatnonzero(image[..., 3].any(axis)) for axis in (1, 0))
    return image[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1] if len(rows) else image


def render_surfaces(surfaces: Sequence[Surface]) -> list[np.ndarray] | None:
    """(H, W, 4) images, or None where VTK is missing or cannot draw."""
    with tempfile.TemporaryDirectory() as folder:
        jobs, images = Path(folder) / "jobs.npz", Path(folder) / "images.npz"
        arrays = {f"{k}-{i}": np.asarray(v) for i, s in enumerate(surfaces) for k, v in vars(s).items()}
        np.savez(jobs, **arrays)  # pyright: ignore[reportArgumentType]
        words = [sys.executable, "-m", "lrsa.report.render", str(jobs), str(images)]
        try:
            done = subprocess.run(words, capture_output=True, timeout=TIMEOUT, check=False)
        except (OSError, subprocess.TimeoutExpired):
            return None
        if done.returncode or not images.exists():
            return None
        with np.load(images) as file:
            return [file[f"image-{i}"] for i in range(len(surfaces))]


def main(jobs: str, images: str) -> None:
    """Draw every job of the file."""
    with np.load(jobs) as file:
        count = sum(name.startswith("points-") for name in file.files)
        made = {
            f"image-{i}": _draw(
                Surface(
                    file[f"points-{i}"],
                    file[f"triangles-{i}"],
                    file[f"values-{i}"],
                    str(file[f"cmap-{i}"]),
                    float(file[f"low-{i}"]),
                    float(file[f"high-{i}"]),
                    int(file[f"up-{i}"]),
                )
            )
            for i in range(count)
        }
    np.savez_compressed(images, **made)  # pyright: ignore[reportArgumentType]


def _draw(surface: Surface) -> np.ndarray:
    import pyvista

    faces = np.column_stack([np.full(len(surface.triangles), 3), surface.triangles])
    mesh = pyvista.PolyData(turned(surface.points.astype(float), surface.up), faces.ravel())
    plotter = pyvista.Plotter(off_screen=True, window_size=list(PIXELS))
    few = len(surface.triangles) < 6000
    plotter.add_mesh(
        mesh,
        scalars=surface.values.astype(float),
        cmap=surface.cmap,
        clim=(surface.low, surface.high),
        nan_color=UNKNOWN,
        show_scalar_bar=False,
        show_edges=few,
        edge_color="#26323f",
        edge_opacity=0.25,
        line_width=0.6,
        smooth_shading=not few,
        ambient=0.5,
        diffuse=0.55,
        specular=0.05,
    )
    plotter.enable_parallel_projection()  # pyright: ignore[reportCallIssue]
    plotter.enable_anti_aliasing("ssaa")
    images = []
    for view in VIEWS:  # as far away as the bounding sphere needs: nothing is cut off
        plotter.view_vector(view, viewup=(0, 0, 1))  # pyright: ignore[reportArgumentType, reportCallIssue]
        images.append(np.asarray(plotter.screenshot(transparent_background=True, return_img=True)))
    plotter.close()
    return stacked(images)


if __name__ == "__main__":
    main(*sys.argv[1:])
