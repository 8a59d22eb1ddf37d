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

PIXELS = (560, 440)
TIMEOUT = 180.0
VIEW = (1.0, -1.5, 0.9)
"""Where the eye is; z is up."""
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
                )
            )
            for i in range(count)
        }
    np.savez_compressed(images, **made)  # pyright: ignore[reportArgumentType]


def _draw(surface: Surface) -> np.ndarray:
    import pyvista

    faces = np.column_stack([np.full(len(surface.triangles), 3), surface.triangles])
    mesh = pyvista.PolyData(surface.points.astype(float), faces.ravel())
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
    plotter.view_vector(VIEW, viewup=(0, 0, 1))  # pyright: ignore[reportArgumentType, reportCallIssue]
    plotter.camera.zoom(1.15)
    image = plotter.screenshot(transparent_background=True, return_img=True)
    plotter.close()
    return np.asarray(image)


if __name__ == "__main__":
    main(*sys.argv[1:])
