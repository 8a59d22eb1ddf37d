"""Random NACA airfoils in a stream, as VTU curves with the pressure coefficient, and a table of the stream.

    python docs/tutorial/airfoils.py airfoils --cases 400 --seed 0

Ideal flow around a four-digit profile of random camber and thickness at a random angle, by panels of linear
vorticity (Kuethe & Chow, Foundations of Aerodynamics): no flow through the middles of the panels, none around
the trailing edge. Every airfoil has its own number of panels; `cp` is known at their middles, which the curve
joins. `cases.csv` holds the direction of the stream.
"""

import argparse
from pathlib import Path

import numpy as np
import pyvista as pv


def profile(camber: float, place: float, thickness: float, panels: int) -> np.ndarray:
    """(panels + 1, 2) corners of a NACA profile, clockwise from the trailing edge, which is closed."""
    x = 0.5 * (1 + np.cos(2 * np.pi * np.arange(panels + 1) / panels))
    half = 5 * thickness * (0.2969 * np.sqrt(x) - 0.126 * x - 0.3516 * x**2 + 0.2843 * x**3 - 0.1036 * x**4)
    front = x < place
    rear = (1 - 2 * place + x * (2 * place - x)) / (1 - place) ** 2
    line = np.where(front, x * (2 * place - x) / place**2, rear)
    slope = np.where(front, 2 * (place - x) / place**2, 2 * (place - x) / (1 - place) ** 2)
    turn = np.arctan(camber * slope)
    side = np.where(np.arange(panels + 1) <= panels / 2, -1.0, 1.0)  # the lower side first
    return np.stack([x - side * half * np.sin(turn), camber * line + side * half * np.cos(turn)], axis=1)


def pressure(corners: np.ndarray, angle: float) -> tuple[np.ndarray, np.ndarray]:
    """(n, 2) middles of the panels between the corners, and (n,) cp = 1 - v² at an angle of attack."""
    middle, along = (corners[1:] + corners[:-1]) / 2, np.diff(corners, axis=0)
    length, turn = np.hypot(*along.T), np.arctan2(along[:, 1], along[:, 0])
    n = len(middle)
    dx, dy = (middle[:, None] - corners[None, :-1]).transpose(2, 0, 1)
    other, mine = turn[None], turn[:, None]
    a = -dx * np.cos(other) - dy * np.sin(other)
    b = dx**2 + dy**2
    c, d = np.sin(mine - other), np.cos(mine - other)
    e = dx * np.sin(other) - dy * np.cos(other)
    f = np.log(1 + length * (length + 2 * a) / b)
    g = np.arctan2(e * length, b + a * length)
    p = dx * np.sin(mine - 2 * other) + dy * np.cos(mine - 2 * other)
    q = dx * np.cos(mine - 2 * other) - dy * np.sin(mine - 2 * other)
    normal_2 = d + 0.5 * q * f / length - (a * c + d * e) * g / length
    normal_1 = 0.5 * d * f + c * g - normal_2
    tangent_2 = c + 0.5 * p * f / length + (a * d - c * e) * g / length
    tangent_1 = 0.5 * c * f - d * g - tangent_2
    for matrix, value in ((normal_1, -1), (normal_2, 1), (tangent_1, np.pi / 2), (tangent_2, np.pi / 2)):
        np.fill_diagonal(matrix, value)
    system, tangents = np.zeros((n + 1, n + 1)), np.zeros((n, n + 1))
    for target, first, second in ((system[:n], normal_1, normal_2), (tangents, tangent_1, tangent_2)):
        target[:, :-1] += first
        target[:, 1:] += second
    system[n, [0, n]] = 1  # the Kutta condition
    vorticity = np.linalg.solve(system, [*np.sin(turn - angle), 0.0])
    speed = np.cos(turn - angle) + tangents @ vorticity
    return middle, 1 - speed**2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--cases", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(asked.seed)
    rows = ["case,u_inlet,v_inlet"]
    for i in range(asked.cases):
        camber, place, thickness = rng.uniform(0, 0.06), rng.uniform(0.3, 0.6), rng.uniform(0.08, 0.18)
        angle, panels = np.deg2rad(rng.uniform(-4, 8)), 2 * int(rng.integers(36, 56))
        x, cp = pressure(profile(camber, place, thickness, panels), angle)
        n = len(x)
        lines = np.column_stack([np.full(n, 2), np.arange(n), (np.arange(n) + 1) % n])
        mesh = pv.UnstructuredGrid(lines.ravel(), np.full(n, 3), np.column_stack([x, np.zeros(n)]))
        mesh.point_data["cp"] = cp
        mesh.save(asked.folder / f"airfoil_{i:03d}.vtu")
        rows.append(f"airfoil_{i:03d},{np.cos(angle):.8f},{np.sin(angle):.8f}")
    (asked.folder / "cases.csv").write_text("\n".join(rows) + "\n")


if __name__ == "__main__":
    main()
