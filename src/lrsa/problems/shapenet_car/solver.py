"""Flow around cars: steady incompressible Reynolds-averaged Navier-Stokes, k-ω SST, 20 m/s along z.

    ∇·(U U) = -∇p + ∇·((ν + ν_t)(∇U + ∇Uᵀ)),   ∇·U = 0,   p divided by the density

Cars are those of `shape`, mirrored in x = 0, and so is the flow that is looked for: one half of it is solved,
over a road and between walls along which the air slips. OpenFOAM's blockMesh and snappyHexMesh make the mesh,
simpleFoam (SIMPLEC, second order upwind for U, wall functions) the flow. Wakes of cars do not come to rest:
the fields are means over the last iterations. A car whose drag still drifts, or whose run fails, is drawn
again from the same generator; the case says how often that was.
"""

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
from scipy.spatial import KDTree

from lrsa.errors import Failure
from lrsa.files import scratch
from lrsa.numerics.openfoam import FoamFailed, keep, last_time, read_field, run, write_case
from lrsa.objectives.integrals import area_vectors
from lrsa.pointset import Names, PointSet
from lrsa.problems.shapenet_car.features import DENSITY, NAMES, SPEED, VISCOSITY, assemble
from lrsa.problems.shapenet_car.forces import frontal_area
from lrsa.problems.shapenet_car.shape import Car, stl

CASE = Path(__file__).with_name("case")
DRAWS = 20
"""Cars after which there is no hope."""
FINER = 2
"""By how much the triangles of a car are finer than its points."""
TUNNEL = (4.0, 4.8, -8.0, 12.0)
"""The half of it: width, height, where it begins and where it ends."""
BOXES = (((0.0, 0.0, -4.4), (2.0, 2.4, 6.0)), ((0.0, 0.0, -2.8), (1.4, 2.0, 4.0)))
"""Least and largest corners; in each the cells have half the size, and at the car once more."""
SEEN = np.array([[-1.5, 0.0, -4.0], [1.5, 2.0, 4.0]])
"""Where the points of the volume are, as published."""
INTENSITY, THICK = 0.01, 10.0
"""Turbulence of the stream: k = 3/2 (I v)², and ν_t/ν."""
NEAR = 8
"""Faces of the mesh that tell the pressure at a point of the car."""
SMALL = 1e-9
RESIDUAL = re.compile(r"Solving for (\w+), Initial residual = (\S+),")


class Unsettled(Failure):
    """A flow whose drag still drifts after all iterations."""


@dataclass(frozen=True)
class Flow:
    """The mean flow around one half of a car."""

    centres: np.ndarray
    """(C, 3) of the cells."""
    velocity: np.ndarray
    """(C, 3)."""
    faces: np.ndarray
    """(F, 3) the centres of the faces of the car."""
    pressure: np.ndarray
    """(F,) there, divided by the density."""
    iterations: int
    residual: float
    """The largest of all equations, at the end."""
    drag: float
    """Coefficient, as OpenFOAM integrates it, with friction."""
    pressure_drag: float
    """Without."""
    drift: float
    """Between the halves of the iterations that are averaged, relative to the drag."""


@dataclass(frozen=True)
class ShapeNetCar:
    """The benchmark: the places around a car to velocity there, and pressure on it."""

    cell: float = 0.4
    """Size of the largest cells, m; at the car they are an eighth of it."""
    iterations: int = 400
    averaged: int = 200
    """The last ones."""
    volume: int = 28504
    """Points beside the 3682 on the car."""
    drift: float = 0.03
    """Of the drag, up to which a flow counts as settled."""

    names: ClassVar[Names] = NAMES

    def sample(self, rng: np.random.Generator) -> PointSet:
        """One random car, float32."""
        for failed in range(DRAWS):
            car = Car.draw(rng)
            try:
                return case_of(car, self.solve(car), self.volume, rng, failed)
            except (Unsettled, FoamFailed):
                continue
        raise Failure(f"{DRAWS} cars in a row did not settle. Allow more iterations")

    def solve(self, car: Car) -> Flow:
        """Mesh and flow, in a folder of its own."""
        with scratch("shapenet-car") as folder:
            self.write(folder, car)
            run(folder, "blockMesh")
            run(folder, "snappyHexMesh", "-overwrite")
            run(folder, "simpleFoam")
            flow = read_flow(folder, self.averaged)
            if not flow.drift <= self.drift:
                keep(folder / "log.simpleFoam")
                raise Unsettled(f"the drag of a car drifts by {flow.drift:.1%}")
            return flow

    def write(self, folder: Path, car: Car) -> None:
        """The case in OpenFOAM's files."""
        points, quads = car.surface(FINER)
        width, height, front, back = TUNNEL
        nu, k = VISCOSITY / DENSITY, 1.5 * (INTENSITY * SPEED) ** 2
        values = {
            "speed": SPEED,
            "nu": nu,
            "k": k,
            "omega": k / (THICK * nu),
            "area": frontal_area(car.surface()[0]),
            "iterations": self.iterations,
            "averaged": self.averaged,
            "width": width,
            "height": height,
            "front": front,
            "back": back,
            "cells": [round(side / self.cell) for side in (width, height, back - front)],
            "boxes": BOXES,
        }
        write_case(folder, CASE, values)
        place = folder / "constant" / "triSurface" / "car.stl"
        place.parent.mkdir()
        place.write_bytes(stl(points, quads))


def read_flow(folder: Path, averaged: int) -> Flow:
    """What a case folder holds at its end."""
    end = last_time(folder)
    total, pressed = _drags(folder)[-averaged:].T
    first, second = total[: averaged // 2].mean(), total[averaged // 2 :].mean()
    return Flow(
        read_field(end / "C"),
        read_field(end / "UMean"),
        read_field(end / "C", "car"),
        read_field(end / "pMean", "car"),
        iterations=int(end.name),
        residual=last_residual((folder / "log.simpleFoam").read_text()),
        drag=float(total.mean()),
        pressure_drag=float(pressed.mean()),
        drift=float(abs(second - first) / abs(total.mean())),
    )


def case_of(car: Car, flow: Flow, volume: int, rng: np.random.Generator, redraws: int = 0) -> PointSet:
    """The flow on both sides, at random cells and at the points of the car; so many draws failed before."""
    near = np.flatnonzero(((flow.centres >= SEEN[0]) & (flow.centres <= SEEN[1])).all(axis=1))
    if volume > 2 * len(near):
        raise Failure(f"a mesh has {len(near)} cells near the car, too few for {volume} points. Refine it")
    side, place = np.divmod(rng.permutation(2 * len(near))[:volume], len(near))
    mirror = np.column_stack([1 - 2 * side, np.ones((volume, 2))])
    surface, quads = car.surface()
    normals = area_vectors(surface[quads])
    case = assemble(
        flow.centres[near[place]] * mirror,
        surface,
        quads,
        normals / np.linalg.norm(normals, axis=1, keepdims=True),
        np.concatenate([flow.velocity[near[place]] * mirror, np.zeros_like(surface)]),
        DENSITY * on_surface(surface, flow),
    )
    return replace(
        case,
        redraws=np.array(redraws),
        iterations=np.array(flow.iterations),
        residual=np.array(flow.residual, np.float32),
    )


def on_surface(points: np.ndarray, flow: Flow) -> np.ndarray:
    """(N,) the pressure at points of the car: in its tangent plane linear between the nearest faces.

    By weighted least squares; the faces of the other half are those of this one, mirrored.
    """
    faces = np.concatenate([flow.faces, flow.faces * [-1, 1, 1]])
    distance, near = KDTree(faces).query(points, k=NEAR)
    scale = distance[:, -1:, None]
    away = (faces[near] - points[:, None]) / scale  # (N, k, 3)
    _, _, axes = np.linalg.svd(away - away.mean(1, keepdims=True))  # the last is across the faces
    terms = np.concatenate([np.ones((*near.shape, 1)), away @ axes[:, :2].swapaxes(1, 2)], axis=-1)
    weights = np.exp(-2 * (distance / scale[..., 0]) ** 2)
    square = np.einsum("nki,nk,nkj->nij", terms, weights, terms) + SMALL * np.eye(3)
    right = np.einsum("nki,nk,nk->ni", terms, weights, np.tile(flow.pressure, 2)[near])
    return np.linalg.solve(square, right[..., None])[:, 0, 0]


def last_residual(log: str) -> float:
    """The largest initial residual of the last iteration that a log tells of."""
    return max(float(value) for value in dict(RESIDUAL.findall(log)).values())


def _drags(folder: Path) -> np.ndarray:
    """(iterations, 2) drag coefficients of the whole car, with and without friction."""
    rows = np.loadtxt(next(folder.glob("postProcessing/coefficients/*/coefficient.dat")), ndmin=2)
    text = next(folder.glob("postProcessing/forces/*/force.dat")).read_text()
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    forces = np.array([line.translate({40: " ", 41: " "}).split() for line in lines], float)
    return np.column_stack([rows[:, 1], rows[:, 1] * forces[:, 6] / forces[:, 3]])
