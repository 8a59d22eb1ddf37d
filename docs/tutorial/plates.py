"""Plates with a hole under load: a folder of VTU files such as a finite-element program leaves behind.

    python docs/tutorial/plates.py plates --cases 300 --seed 0

Plane stress, -∇·σ(v) = 0 with σ = C : ε(v); the left side is clamped, a traction pulls at the right side.
Hole, mesh density and traction differ from case to case, and so does the number of nodes. Each file holds
the displacement and the von Mises stress at the nodes; `cases.csv` holds the tractions.
"""

import argparse
from pathlib import Path

import numpy as np
import pyvista as pv
from skfem import Basis, ElementTriP1, ElementTriP2, ElementVector, FacetBasis, MeshTri, condense, solve
from skfem.assembly import LinearForm
from skfem.helpers import ddot, eye, sym_grad, trace
from skfem.models.elasticity import lame_parameters, linear_elasticity

YOUNG, POISSON = 1.0, 0.3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--cases", type=int, default=120)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(options.seed)
    rows = ["case,pull,shear"]
    for i in range(options.cases):
        traction = rng.uniform([0.5, -0.5], [1.5, 0.5])
        mesh = plate(rng)
        write(options.folder / f"plate_{i:03d}.vtu", mesh, *elasticity(mesh, traction))
        rows.append(f"plate_{i:03d},{traction[0]:.6f},{traction[1]:.6f}")
    (options.folder / "cases.csv").write_text("\n".join(rows) + "\n")


def plate(rng: np.random.Generator) -> MeshTri:
    """The square (-1, 1)² with a random ellipse cut out, as rings from the hole to the edge."""
    around, rings = 4 * int(rng.integers(9, 16)), int(rng.integers(7, 12))
    angle = 2 * np.pi * (np.arange(around) + 0.5) / around
    direction = np.stack([np.cos(angle), np.sin(angle)])
    edge = direction / np.abs(direction).max(axis=0)
    corner = np.argsort(np.abs(np.abs(direction[0]) - np.abs(direction[1])), kind="stable")
    for sign in ((1, 1), (-1, 1), (-1, -1), (1, -1)):  # a node on every corner of the square
        near = next(i for i in corner if (np.sign(direction[:, i]) == sign).all())
        edge[:, near] = sign
    tilt = rng.uniform(0, np.pi)
    rotation = np.array([[np.cos(tilt), -np.sin(tilt)], [np.sin(tilt), np.cos(tilt)]])
    radii, centre = rng.uniform(0.2, 0.5, (2, 1)), rng.uniform(-0.25, 0.25, (2, 1))
    hole = rotation @ (radii * (rotation.T @ direction)) + centre
    depth = np.linspace(0, 1, rings + 1)[:, None, None] ** 1.3
    nodes = ((1 - depth) * hole + depth * edge).transpose(1, 0, 2).reshape(2, -1)
    ring, step = np.meshgrid(np.arange(rings), np.arange(around), indexing="ij")
    a, b = (ring * around + step).ravel(), (ring * around + (step + 1) % around).ravel()
    return MeshTri(nodes, np.concatenate([[a, b, a + around], [b, b + around, a + around]], axis=1))


def elasticity(mesh: MeshTri, traction: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Displacement (N, 2) and von Mises stress (N,) at the nodes, from quadratic elements."""
    first, shear = lame_parameters(YOUNG, POISSON)
    first = 2 * first * shear / (first + 2 * shear)  # plane stress
    basis = Basis(mesh, ElementVector(ElementTriP2()))
    right = FacetBasis(mesh, basis.elem, facets=mesh.facets_satisfying(lambda x: x[0] > 1 - 1e-9))
    load = LinearForm(lambda v, w: traction[0] * v[0] + traction[1] * v[1]).assemble(right)
    clamped = basis.get_dofs(lambda x: x[0] < -1 + 1e-9)
    displacement = solve(*condense(linear_elasticity(first, shear).assemble(basis), load, D=clamped))

    strain = sym_grad(basis.interpolate(displacement))
    stress = 2 * shear * strain + eye(first * trace(strain), 2)
    mises = np.sqrt(1.5 * ddot(stress, stress) - 0.5 * trace(stress) ** 2)
    nodal = basis.with_element(ElementTriP1()).project(mises)
    at_nodes = np.stack([displacement[basis.nodal_dofs[k]] for k in (0, 1)], axis=1)
    return at_nodes, np.maximum(nodal, 0)


def write(path: Path, mesh: MeshTri, displacement: np.ndarray, mises: np.ndarray) -> None:
    flat = np.zeros((mesh.p.shape[1], 1))
    grid = pv.UnstructuredGrid({pv.CellType.TRIANGLE: mesh.t.T}, np.concatenate([mesh.p.T, flat], axis=1))
    grid.point_data["displacement"] = np.concatenate([displacement, flat], axis=1)
    grid.point_data["von_mises"] = mises
    grid.save(path)


if __name__ == "__main__":
    main()
