"""What quadrature weights are worth when meshes are refined where the training meshes were not.

    python studies/quadrature_weights.py --out results/quadrature-weights.md

-Δu = f on the unit square, u = 0 on its boundary, f three random Gaussians, quadratic finite elements. The
training meshes are even. The test cases are meshed twice: evenly, and refined towards one corner. The same
model is trained with and without weights (the area that each node stands for) and tested on both.
"""

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from skfem import Basis, BilinearForm, ElementTriP2, LinearForm, MeshTri, condense, solve
from skfem.helpers import dot, grad

import lrsa
from lrsa.evaluation.evaluate import evaluate

NAMES = lrsa.Names(("x", "y"), ("f",), ("u",))
MODEL = {"width": 48, "depth": 4, "heads": 4, "rank": 32}


def mesh(rng: np.random.Generator, corner: int = 0) -> MeshTri:
    """An even mesh with jittered nodes, refined `corner` times towards the origin."""
    cells = int(rng.integers(13, 18))
    even = MeshTri.init_tensor(*[np.linspace(0, 1, cells + 1)] * 2)
    inside = ((even.p > 0) & (even.p < 1)).all(axis=0)
    nodes = even.p + inside * rng.uniform(-0.25, 0.25, even.p.shape) / cells
    made = MeshTri(nodes, even.t)
    for level in range(corner):
        middle = made.p[:, made.t].mean(axis=1)
        made = made.refined(np.flatnonzero(np.hypot(*middle) < 0.5 / 1.5**level))
    return made


def poisson(made: MeshTri, centres: np.ndarray, heights: np.ndarray) -> lrsa.PointSet:
    """The case on this mesh: f and u at its nodes, and the area of each node."""

    def source(x: np.ndarray) -> np.ndarray:
        away = ((x[:, None] - centres.T.reshape(2, -1, *[1] * (x.ndim - 1))) ** 2).sum(axis=0)
        return (heights.reshape(-1, *[1] * (x.ndim - 1)) * np.exp(-away / 0.02)).sum(axis=0)

    basis = Basis(made, ElementTriP2())
    stiffness = BilinearForm(lambda u, v, w: dot(grad(u), grad(v))).assemble(basis)  # pyright: ignore
    load = LinearForm(lambda v, w: source(w.x) * v).assemble(basis)
    u = solve(*condense(stiffness, load, D=basis.get_dofs()))[basis.nodal_dofs[0]]  # pyright: ignore
    edges = made.p[:, made.t[1:]] - made.p[:, made.t[:1]]
    area = np.abs(edges[0, 0] * edges[1, 1] - edges[0, 1] * edges[1, 0]) / 6
    weights = np.bincount(made.t.ravel(), np.tile(area, 3), made.p.shape[1])
    return lrsa.PointSet(made.p.T, source(made.p)[:, None], u[:, None], weights=weights, names=NAMES)


def cases(count: int, seed: int, corner: int) -> list[lrsa.PointSet]:
    """The same right-hand sides for every `corner`, each on a mesh of its own."""
    made = []
    for i in range(count):
        rng = np.random.default_rng([seed, i])
        centres, heights = rng.uniform(0.15, 0.85, (3, 2)), rng.uniform(-1, 1, 3)
        made.append(poisson(mesh(rng, corner), centres, heights))
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # pyright: ignore
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--cases", type=int, default=300)
    parser.add_argument("--epochs", type=int, default=40)
    options = parser.parse_args()
    rows = []
    with TemporaryDirectory() as name:
        folder = Path(name)
        train = cases(options.cases, 0, 0)
        sets = {
            "even": cases(60, 1, 0),
            "refined twice": cases(60, 1, 2),
            "refined four times": cases(60, 1, 4),
        }
        for label, tests in sets.items():
            lrsa.write_dataset(folder / f"{label}.h5", {"train": train, "test": tests})
        for weights in (True, False):
            run = folder / f"run-{weights}"
            lrsa.fit(
                folder / "even.h5",
                out=run,
                options=MODEL,
                epochs=options.epochs,
                max_lr=2e-3,
                weights=weights,
            )
            errors = [evaluate(run, str(folder / f"{label}.h5")).relative_l2 for label in sets]
            rows.append(
                f"| {'with' if weights else 'without'} | " + " | ".join(f"{e:.4f}" for e in errors) + " |"
            )
        points = [f"{min(map(len, tests))} to {max(map(len, tests))}" for tests in sets.values()]
    text = [
        "# Quadrature weights on meshes refined in one corner",
        "",
        *[line for line in (__doc__ or "").splitlines()[4:] if line],
        "",
        f"`python studies/quadrature_weights.py --cases {options.cases} --epochs {options.epochs}"
        f" --out {options.out}`:",
        f"test relative L2 over 60 cases, generated, seed 0, lrsa {lrsa.__version__}. Model: {MODEL}.",
        "",
        "| weights | "
        + " | ".join(f"{label} ({n} nodes)" for label, n in zip(sets, points, strict=True))
        + " |",
        "|---|---|---|---|",
        *rows,
        "",
    ]
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text("\n".join(text))
    print("\n".join(text))


if __name__ == "__main__":
    main()
