"""Turbulent flow around airfoils: steady incompressible Reynolds-averaged Navier-Stokes, k-ω SST.

    ∇·(U U) = -∇p + ∇·((ν + ν_t)(∇U + ∇Uᵀ)),   ∇·U = 0,   p divided by the density

Profiles, Reynolds numbers and angles follow the published law (`profile`), the free stream has the published
turbulence. OpenFOAM's simpleFoam (SIMPLEC, second order upwind for U) on a C-grid (`mesh`) that resolves the
wall (y⁺ about 1), coarser than the published one. A flow that does not settle, or whose grid folds, is drawn
again from the same generator; the case says how often that was.
"""

import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from lrsa.errors import Failure
from lrsa.files import scratch
from lrsa.geometry.distances import distance_to
from lrsa.geometry.measures import cell_areas
from lrsa.numerics.foam_mesh import write_plane_mesh
from lrsa.numerics.openfoam import FoamFailed, keep, last_time, read_field, run, write_case
from lrsa.pointset import Names, PointSet
from lrsa.problems.airfrans.mesh import CGrid, c_grid
from lrsa.problems.airfrans.profile import VISCOSITY, Flow

CASE = Path(__file__).with_name("case")
DRAWS = 20
"""Flows after which there is no hope."""
RELAXATION = 0.9, 0.7
"""Of the velocity; the turbulence has 0.1 less."""
DOMAIN = 200.0
"""Length by which the published turbulence of the free stream is set: k = 10⁻³ U²/Re, ω = 5 U/L."""
BOX = np.array([[-2.0, -1.5], [4.0, 1.5]])
"""What of the flow is kept."""
NAMES = Names(
    ("x", "y"),
    ("u_inlet", "v_inlet", "sdf", "n_x", "n_y"),
    ("u", "v", "p", "nu_t"),
    units=dict.fromkeys(("x", "y", "sdf"), "m")
    | dict.fromkeys(("u_inlet", "v_inlet", "u", "v"), "m/s")
    | {"n_x": "1", "n_y": "1", "p": "m²/s²", "nu_t": "m²/s"},
)


class Unsettled(Failure):
    """A flow that is not steady after all iterations."""


@dataclass(frozen=True)
class Fields:
    """A settled flow: values in the cells of its grid, in their order."""

    velocity: np.ndarray
    """(C, 2)."""
    pressure: np.ndarray
    """(C,)."""
    viscosity: np.ndarray
    """(C,) ν_t."""
    iterations: int
    lift: float
    drag: float
    """Coefficients, as OpenFOAM integrates them."""


@dataclass(frozen=True)
class AirfRANS:
    """The benchmark: the place, the stream and the shape to velocity, pressure and eddy viscosity."""

    side: int = 68
    """Cells along each side of the profile."""
    wake: int = 34
    """Cells along the wake."""
    layers: int = 60
    """Cells from the profile to the far boundary."""
    y_plus: float = 1.0
    """Of the centres of the first layer, on a flat plate."""
    radius: float = 25.0
    """Chords to the far boundary."""
    tolerance: float = 1e-5
    """Of the normalised residuals of all equations, when a flow counts as settled."""
    iterations: int = 2000
    """After which one that is not settled is given up."""

    names: ClassVar[Names] = NAMES

    def sample(self, rng: np.random.Generator) -> PointSet:
        """One random flow, float32; weights are areas."""
        for failed in range(DRAWS):
            flow = Flow.draw(rng)
            try:
                grid = self.grid(flow)
                return case_of(flow, grid, self.solve(flow, grid), failed)
            except (Unsettled, FoamFailed):
                continue
        raise Failure(f"{DRAWS} flows in a row did not settle. Allow more iterations")

    def grid(self, flow: Flow) -> CGrid:
        friction = 0.013 * flow.reynolds ** (-1 / 7)  # half the coefficient of a flat plate
        first = 2 * self.y_plus * VISCOSITY / (flow.speed * math.sqrt(friction))
        return c_grid(flow.digits, flow.angle, self.side, self.wake, self.layers, first, self.radius)

    def solve(self, flow: Flow, grid: CGrid) -> Fields:
        """Run simpleFoam in a folder of its own; what breaks down at the start is tried in smaller steps."""
        try:
            return self._run(flow, grid, RELAXATION[0])
        except FoamFailed:
            return self._run(flow, grid, RELAXATION[1])

    def _run(self, flow: Flow, grid: CGrid, relaxation: float) -> Fields:
        with scratch("airfrans") as folder:
            self.write(folder, flow, grid, relaxation)
            log = run(folder, "simpleFoam")
            settled = re.search(r"SIMPLE solution converged in (\d+) iterations", log)
            if settled is None:
                keep(folder / "log.simpleFoam")
                raise Unsettled(f"a flow is not settled after {self.iterations} iterations")
            return read_fields(folder)

    def write(self, folder: Path, flow: Flow, grid: CGrid, relaxation: float = RELAXATION[0]) -> None:
        """The case in OpenFOAM's files."""
        u, v = flow.velocity
        k, omega = 1e-3 * flow.speed * VISCOSITY / DOMAIN, 5 * flow.speed / DOMAIN
        values = {"u": u, "v": v, "speed": flow.speed, "nu": VISCOSITY, "k": k, "omega": omega}
        limits = {"tolerance": self.tolerance, "iterations": self.iterations, "relaxation": relaxation}
        write_case(folder, CASE, values | limits)
        patches = {"airfoil": ("wall", grid.wall), "far": ("patch", grid.far)}
        write_plane_mesh(folder, grid.points, grid.cells, patches)


def read_fields(folder: Path) -> Fields:
    """What a case folder holds at its end."""
    end = last_time(folder)
    rows = np.loadtxt(next(folder.glob("postProcessing/forces/*/coefficient.dat")), ndmin=2)
    return Fields(
        read_field(end / "U")[:, :2],
        read_field(end / "p"),
        read_field(end / "nut"),
        int(end.name),
        lift=float(rows[-1, 3]),
        drag=float(rows[-1, 1]),
    )


def case_of(flow: Flow, grid: CGrid, fields: Fields, redraws: int = 0) -> PointSet:
    """The settled flow at the nodes in the box, before which so many draws failed."""
    values = np.column_stack([fields.velocity, fields.pressure, fields.viscosity])
    u, surface = at_nodes(values, grid), np.zeros(len(grid.points), bool)
    surface[grid.wall] = True
    u[surface, :2] = u[surface, 3] = 0
    sdf = np.zeros(len(u))
    sdf[~surface] = distance_to(grid.points[~surface], grid.points[grid.wall])
    stream = np.tile(flow.velocity, (len(u), 1))
    inside = ((grid.points >= BOX[0]) & (grid.points <= BOX[1])).all(axis=1)
    cells = grid.cells[inside[grid.cells].all(axis=1)]
    return PointSet(
        x=grid.points[inside].astype(np.float32),
        f=np.column_stack([stream, sdf, normals(grid)])[inside].astype(np.float32),
        u=u[inside].astype(np.float32),
        weights=_shares(grid)[inside].astype(np.float32),
        cells=(np.cumsum(inside) - 1)[cells],
        surface=surface[inside],
        redraws=np.array(redraws),
        iterations=np.array(fields.iterations),
        names=NAMES,
    )


def normals(grid: CGrid) -> np.ndarray:
    """(N, 2) out of the profile at its nodes, 0 elsewhere."""
    along = grid.points[grid.wall[:, 1]] - grid.points[grid.wall[:, 0]]
    outward = np.stack([-along[:, 1], along[:, 0]], axis=1) / np.linalg.norm(along, axis=1)[:, None]
    summed = np.zeros_like(grid.points)
    np.add.at(summed, grid.wall, outward[:, None])
    length = np.linalg.norm(summed, axis=1, keepdims=True)
    return np.divide(summed, length, out=summed, where=length > 0)


def at_nodes(values: np.ndarray, grid: CGrid) -> np.ndarray:
    """(C, o) values in the cells -> (N, o) at the nodes: linearly along the rays, then between them.

    At the wall the velocity and ν_t are 0, and p is that of the first cell.
    """
    columns, layers = (n - 1 for n in grid.nodes.shape[:2])
    inside = values.reshape(columns, layers, -1)
    middles = (grid.nodes[1:] + grid.nodes[:-1]) / 2  # (I, J + 1, 2)
    heights = np.linalg.norm(np.diff(middles, axis=1), axis=-1)[..., None]
    rays = np.empty((columns, layers + 1, values.shape[1]))
    rays[:, 1:-1] = _between(inside[:, :-1], inside[:, 1:], heights[:, :-1], heights[:, 1:])
    rays[:, -1] = inside[:, -1]
    rays[:, 0] = (inside[:, 0] + inside[::-1, 0]) / 2
    rays[grid.wake : columns - grid.wake, 0] = inside[grid.wake : columns - grid.wake, 0]
    widths = np.linalg.norm(np.diff(grid.nodes, axis=0), axis=-1)[..., None]
    nodes = np.concatenate([rays[:1], _between(rays[:-1], rays[1:], widths[:-1], widths[1:]), rays[-1:]])
    nodes = nodes.reshape(-1, values.shape[1])
    numbers = grid.index.ravel()
    summed = np.stack([np.bincount(numbers, column) for column in nodes.T], axis=1)
    return summed / np.bincount(numbers)[:, None]  # both sides of the wake, which share their nodes


def _between(one: np.ndarray, two: np.ndarray, width: np.ndarray, other: np.ndarray) -> np.ndarray:
    """At the face between cells of these widths, by the values in their middles."""
    return (one * other + two * width) / (width + other)


def _shares(grid: CGrid) -> np.ndarray:
    """(N,) areas: a quarter of each cell to every corner."""
    areas = np.abs(cell_areas(grid.nodes)).ravel()
    return np.bincount(grid.cells.ravel(), np.repeat(areas / 4, 4))
