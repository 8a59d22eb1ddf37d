"""Turbulent flow in a bent pipe: unsteady incompressible Reynolds-averaged Navier-Stokes, k-ω SST.

    ∂U/∂t + ∇·(U U) = -∇p + ∇·((ν + ν_t)(∇U + ∇Uᵀ)),   ∇·U = 0,   p divided by the density

The pipe is 1 m wide and given by its mesh of 2673 nodes (`studies/pipe_turbulence_mesh.py` made it). The
inflow pulsates at random until the first frame and keeps its speed from then on, so that the second frame, a
second later, follows from the first. Every case is a trajectory of its own, from rest: no two cases are of
one flow. OpenFOAM's pimpleFoam (PISO with three corrections, second order in time, second order upwind for U,
wall functions) on the mesh, its triangles cut into 4^refinement. A run in which an equation is not solved, or
the flow runs away, is drawn again from the same generator; the case says how often that was.

The published pipe, its inflow and the time between its frames are not known: this is an analogue.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

import numpy as np
import scipy.sparse as sp

from lrsa.errors import Failure
from lrsa.files import scratch
from lrsa.numerics.foam_mesh import write_plane_mesh
from lrsa.numerics.openfoam import FoamFailed, keep, read_field, run, write_case
from lrsa.numerics.triangles import Triangles, edges_once, refined
from lrsa.pointset import Names, PointSet

CASE, MESH = Path(__file__).with_name("case"), Path(__file__).with_name("mesh.npz")
TRIANGLE = 5
"""VTK's type."""
DRAWS = 5
"""Flows after which there is no hope."""
WAVES = 4
"""Of the pulsation, with periods from LONGEST to a quarter of it, s."""
LONGEST = 8.0
INTENSITY, MIXING = 0.05, 0.07
"""Of the turbulence that flows in, and its length over the width of the pipe."""
LEAST = 0.3
"""Of the speed of the inflow, m/s: slower pulsations are drawn again, which does not count as a failure."""
RUNAWAY = 6.0
"""How many times faster than the inflow nothing is."""
SOLVED = re.compile(r"Solving for (\w+), Initial residual = \S+, Final residual = (\S+), No Iterations (\d+)")
NAMES = Names(
    ("x", "y"),
    ("speed",),
    ("speed_later",),
    units={"x": "m", "y": "m", "speed": "m/s", "speed_later": "m/s"},
)


class Unsolved(Failure):
    """A run of which a step was not solved, or ran away."""


@dataclass(frozen=True)
class Inflow:
    """Speed over time: a mean and waves, constant from a time on."""

    mean: float
    amplitudes: tuple[float, ...]
    phases: tuple[float, ...]
    until: float

    @staticmethod
    def draw(rng: np.random.Generator, until: float) -> "Inflow":
        """One whose speed never falls below `LEAST`."""
        while True:
            amplitudes = (0.15 * rng.standard_normal(WAVES)).tolist()
            phases = rng.uniform(0, 2 * np.pi, WAVES).tolist()
            inflow = Inflow(float(rng.uniform(0.8, 1.2)), (*amplitudes,), (*phases,), until)
            if inflow.at(np.linspace(0, until, 400)).min() > LEAST:
                return inflow

    def at(self, times: np.ndarray) -> np.ndarray:
        """(T,) m/s."""
        turns = 2 * np.pi * np.minimum(times, self.until)[:, None] * np.arange(1, WAVES + 1) / LONGEST
        return self.mean + np.sin(turns + self.phases) @ np.array(self.amplitudes)


@dataclass(frozen=True)
class Frames:
    """Velocities (C, 2) in the cells at both times, the steps that were taken, and the worst residual."""

    first: np.ndarray
    later: np.ndarray
    steps: int
    residual: float


@dataclass(frozen=True)
class PipeTurbulence:
    """The benchmark: the speed at the nodes of a fixed mesh to that at a later time."""

    refinement: int = 1
    """How often the triangles of the mesh are cut into four, to solve on."""
    step: float = 0.02
    """s."""
    start: float = 12.0
    """The time of the first frame, s: the flow has gone through the pipe once."""
    later: float = 1.0
    """From the first frame to the second, s."""
    viscosity: float = 1e-5
    """m²/s: a Reynolds number of about 1e5."""
    tolerance: float = 1e-6
    """Of the residuals of all equations in every step."""

    names: ClassVar[Names] = NAMES

    def sample(self, rng: np.random.Generator) -> PointSet:
        """One random flow at two times, float32; weights are areas."""
        for failed in range(DRAWS):
            inflow = Inflow.draw(rng, self.start)
            try:
                return self.case_of(inflow, self.solve(inflow), failed)
            except (Unsolved, FoamFailed):
                continue
        raise Failure(f"{DRAWS} flows in a row were not solved. Take smaller steps")

    def solve(self, inflow: Inflow) -> Frames:
        """Run pimpleFoam in a folder of its own."""
        with scratch("pipe-turbulence") as folder:
            self.write(folder, inflow)
            log = run(folder, "pimpleFoam")
            frames = self.read(folder, log)
            fastest = max(np.linalg.norm(v, axis=1).max() for v in (frames.first, frames.later))
            unsolved = frames.residual > self.tolerance
            if unsolved or not fastest < RUNAWAY * inflow.at(np.array([self.start]))[0]:
                keep(folder / "log.pimpleFoam")
                raise Unsolved("a step of a flow was not solved" if unsolved else "a flow ran away")
            return frames

    def write(self, folder: Path, inflow: Inflow) -> None:
        """The case in OpenFOAM's files."""
        end = self.start + self.later
        times = np.linspace(0, end, 4 * round(end / self.step) // 4 + 1)
        k = 1.5 * (INTENSITY * inflow.mean) ** 2
        values = {
            "inflow": list(zip(times.tolist(), inflow.at(times).tolist(), strict=True)),
            "nu": self.viscosity,
            "intensity": INTENSITY,
            "mixing": MIXING,
            "k": k,
            "omega": k**0.5 / (0.09**0.25 * MIXING),
            "end": end,
            "step": self.step,
            "every": round(self.later / self.step),
            "tolerance": self.tolerance,
        }
        write_case(folder, CASE, values)
        mesh = pipe(self.refinement)
        write_plane_mesh(folder, mesh.nodes, mesh.triangles, patches(self.refinement))

    def read(self, folder: Path, log: str) -> Frames:
        """What a case folder holds of both times."""
        first, later = (read_field(folder / f"{t:.9g}" / "U")[:, :2] for t in self.times)
        return Frames(first, later, log.count("\nTime = "), worst_residual(log))

    @property
    def times(self) -> tuple[float, float]:
        return self.start, self.start + self.later

    def case_of(self, inflow: Inflow, frames: Frames, redraws: int = 0) -> PointSet:
        """The speed at the nodes of the benchmark, before which so many draws failed."""
        mesh, between = pipe(0), to_nodes(self.refinement)
        speed, later = (
            np.linalg.norm(at_nodes(v, between, float(inflow.at(np.array([t]))[0])), axis=1)
            for v, t in zip((frames.first, frames.later), self.times, strict=True)
        )
        return PointSet(
            x=mesh.nodes.astype(np.float32),
            f=speed.astype(np.float32)[:, None],
            u=later.astype(np.float32)[:, None],
            weights=mesh.shares().astype(np.float32),
            cells=mesh.triangles,
            cell_types=np.full(len(mesh.triangles), TRIANGLE, np.uint8),
            redraws=np.array(redraws),
            iterations=np.array(frames.steps),
            residual=np.array(frames.residual, np.float32),
            names=NAMES,
        )


def worst_residual(log: str) -> float:
    """Of all equations in all steps: that with which the last correction of a step left them."""
    steps = log.split("\nTime = ")[1:]
    return max((float(last) for step in steps for last in dict(_final(step)).values()), default=np.inf)


def _final(step: str) -> list[tuple[str, str]]:
    """Field and final residual in the order of the log: the last of a field counts."""
    return [(name, last) for name, last, _ in SOLVED.findall(step)]


@lru_cache(maxsize=3)
def pipe(refinement: int) -> Triangles:
    """The mesh that is solved on; its first nodes are those of the benchmark."""
    return refined(MESH, refinement)


@lru_cache(maxsize=3)
def patches(refinement: int) -> dict[str, tuple[str, np.ndarray]]:
    """The sides of the inlet on the left, the outlet on the right, and the walls."""
    mesh = pipe(refinement)
    sides = edges_once(mesh.triangles)
    x = mesh.nodes[sides, 0]
    inlet = (x < 1e-9).all(1)
    outlet = (x > mesh.nodes[:, 0].max() - 1e-9).all(1)
    return {
        "inlet": ("patch", sides[inlet]),
        "outlet": ("patch", sides[outlet]),
        "wall": ("wall", sides[~inlet & ~outlet]),
    }


@lru_cache(maxsize=3)
def to_nodes(refinement: int) -> sp.csr_array:
    """(N, C) from the cells to the nodes of the benchmark: means of their cells by 1 / distance."""
    mesh, count = pipe(refinement), len(pipe(0).nodes)
    centres = mesh.nodes[mesh.triangles].mean(axis=1)
    nodes, cells = mesh.triangles.ravel(), np.repeat(np.arange(len(mesh.triangles)), 3)
    nodes, cells = nodes[kept := nodes < count], cells[kept]
    weights = 1 / np.linalg.norm(centres[cells] - mesh.nodes[nodes], axis=1)
    weights /= np.bincount(nodes, weights)[nodes]
    return sp.csr_array((weights, (nodes, cells)), shape=(count, len(mesh.triangles)))


def at_nodes(values: np.ndarray, between: sp.csr_array, inflow: float) -> np.ndarray:
    """(N, 2) velocities at the nodes from those in the cells (C, 2); given at the inlet, 0 at walls."""
    found, sides = between @ values, patches(0)
    found[sides["inlet"][1]] = (inflow, 0)
    found[sides["wall"][1]] = 0
    return found
