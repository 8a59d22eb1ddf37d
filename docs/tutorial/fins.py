"""A folder of cooling fins: one mesh, and two parameters that differ from case to case.

    python docs/tutorial/fins.py FOLDER --cases 60 [--seed 0]

A straight fin of length 1 and thickness 0.2, held at temperature 1 at its root and cooled along its skin: the
exact two-dimensional series (Carslaw and Jaeger), with the tip insulated. Parameters: conductivity k and heat
transfer h. `fin_NNN.vts` holds the temperature, `cases.csv` the parameters.
"""

import argparse
import csv
from pathlib import Path

import numpy as np
import pyvista
from scipy.optimize import brentq

LENGTH, HALF, TERMS = 1.0, 0.1, 12


def temperature(x: np.ndarray, y: np.ndarray, k: float, h: float) -> np.ndarray:
    """Σ cₙ cos(λₙ y) cosh(λₙ (L - x)) / cosh(λₙ L), λₙ d tan(λₙ d) = h d / k."""
    biot, total = h * HALF / k, np.zeros_like(x)
    for n in range(TERMS):
        low, high = n * np.pi + 1e-9, n * np.pi + np.pi / 2 - 1e-9
        root = float(brentq(lambda z: z * np.sin(z) - biot * np.cos(z), low, high))  # pyright: ignore
        wave = root / HALF
        c = 2 * np.sin(root) / (root + np.sin(root) * np.cos(root))
        # cosh a / cosh b without its overflow.
        fall = np.exp(-wave * x) * (1 + np.exp(-2 * wave * (LENGTH - x))) / (1 + np.exp(-2 * wave * LENGTH))
        total += c * np.cos(wave * y) * fall
    return total


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--cases", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(options.seed)
    x, y = np.meshgrid(np.linspace(0, LENGTH, 41), np.linspace(-HALF, HALF, 11), indexing="ij")
    rows = []
    for i in range(options.cases):
        k, h = rng.uniform(1, 10), rng.uniform(0.2, 5)
        mesh = pyvista.StructuredGrid(x[..., None], y[..., None], np.zeros_like(x)[..., None])
        points = np.asarray(mesh.points)
        mesh.point_data["temperature"] = temperature(points[:, 0], points[:, 1], k, h)
        mesh.save(options.folder / f"fin_{i:03d}.vts")
        rows.append((f"fin_{i:03d}", k, h))
    with open(options.folder / "cases.csv", "w", newline="") as file:
        csv.writer(file).writerows([("case", "k", "h"), *rows])


if __name__ == "__main__":
    main()
