"""Points that only give inputs, and points that only ask: sensors to a field, a boundary to a volume.

A case is a mesh, where the targets are, and a second file with the points at which the inputs are known: its
pattern has `{}` for the name of the case and is relative to the folder of the mesh, as in `{}_sensors.csv` or
`../boundary/{}.vtp`. Together they are one case: the points of the mesh, then those of the inputs.

    f        the inputs, known at the points that give them, and `given`, which says which those are
    u        known at the points of the mesh only
    weights  0 at the points of the mesh, which only read; at the others 1, or with --derive measure that
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from lrsa.errors import LrsaError
from lrsa.mesh.building import build_case, names_of
from lrsa.mesh.roles import RawCase, Roles
from lrsa.pointset import PointSet

MARK = "{}"


def check_pattern(pattern: str, derive: Sequence[str], inputs: Sequence[str]) -> None:
    """Refuse what cannot be joined."""
    if MARK not in pattern:
        raise LrsaError(
            f'--input-points {pattern} needs {MARK} for the name of the case, as in "{MARK}_in.csv"'
        )
    if not inputs:
        raise LrsaError("--input-points gives inputs: name them with --inputs")
    others = [name for name in derive if name in ("normals", "sdf")]
    if others:
        raise LrsaError(
            f"--derive {','.join(others)} belongs to all points, not to --input-points. Leave it out"
        )


def inputs_file(pattern: str, path: Path, name: str) -> Path | None:
    """The second file of a case; None where the inputs are in the mesh itself."""
    return path.parent / pattern.replace(MARK, name) if pattern else None


def without_inputs(paths: Sequence[Path], names: Sequence[str], pattern: str) -> list[Path]:
    """The cases among the files: those that are not the second file of another."""
    if not pattern:
        return list(paths)
    second = {
        file.resolve()
        for path, name in zip(paths, names, strict=True)
        if (file := inputs_file(pattern, path, name)) is not None and file.exists()
    }
    return [path for path in paths if path.resolve() not in second]


def joined_case(
    mesh: RawCase, inputs: RawCase, roles: Roles, parameters: np.ndarray | None, targets: bool = True
) -> PointSet:
    """The union of a mesh and the points of its inputs; `targets` as in `build_case`."""
    asks = build_case(mesh, asking(roles), parameters, targets)
    gives = build_case(_in_space_of(mesh, inputs), giving(roles))
    assert gives.f is not None
    n, m, channels = len(asks), len(gives), gives.f.shape[1]
    flags = np.arange(n + m) >= n
    f = np.column_stack([np.concatenate([np.zeros((n, channels)), gives.f]), flags]).astype(np.float32)
    known = np.column_stack([*[flags] * channels, np.ones(n + m, bool)])
    u, u_mask = asks.u, None
    if u is not None:
        u = np.concatenate([u, np.zeros((*u.shape[:-2], m, u.shape[-1]), u.dtype)], axis=-2)
        mask = np.ones((n, u.shape[-1]), bool) if asks.u_mask is None else asks.u_mask
        u_mask = np.concatenate([mask, np.zeros((m, u.shape[-1]), bool)])
    weights = np.ones(m, np.float32) if gives.weights is None else gives.weights
    pad = [(0, m)]
    return PointSet(
        np.concatenate([asks.x, gives.x]),
        f,
        u,
        u_mask,
        weights=np.concatenate([np.zeros(n, np.float32), weights]),
        cells=asks.cells,
        cell_types=asks.cell_types,
        surface=None if asks.surface is None else np.pad(asks.surface, pad),
        parts=None if asks.parts is None else np.pad(asks.parts, [(0, m), (0, 0)]),
        globals=asks.globals,
        times=asks.times,
        f_mask=known,
        names=names_of(roles, asks.x.shape[1]),
    )


def asking(roles: Roles) -> Roles:
    """What is asked of the mesh: targets, and what follows from its cells but measures."""
    return replace(roles, inputs=(), derive=tuple(d for d in roles.derive if d == "surface"), input_points="")


def giving(roles: Roles) -> Roles:
    """What is asked of the other file: inputs, and the measure of its points."""
    derive = tuple(d for d in roles.derive if d == "measure")
    return replace(
        roles, targets=(), derive=derive, globals=(), patches=(), input_points="", location="point"
    )


def _in_space_of(mesh: RawCase, inputs: RawCase) -> RawCase:
    """The points of the inputs with as many coordinates as the mesh: flat ones lie in its plane."""
    missing = mesh.points.shape[1] - inputs.points.shape[1]
    if missing < 0 or (missing and np.ptp(mesh.points[:, -missing:], axis=0).any()):
        raise LrsaError(
            f"{inputs.path} has {inputs.points.shape[1]} coordinates, but {mesh.path} {mesh.points.shape[1]}"
        )
    if not missing:
        return inputs
    plane = np.broadcast_to(mesh.points[:1, -missing:], (len(inputs.points), missing))
    return replace(inputs, points=np.concatenate([inputs.points, plane], axis=1))
