"""From a `RawCase` and a `Roles` to a `PointSet`: the same for import and for prediction."""

from collections.abc import Mapping, Sequence

import numpy as np

from lrsa.errors import LrsaError, nearest
from lrsa.geometry.cells import dimensions
from lrsa.mesh.derive import Geometry
from lrsa.mesh.polyhedra import POLYHEDRON
from lrsa.mesh.roles import RawCase, Roles
from lrsa.pointset import Names, PointSet

AXES = "xyz"


class Problems(LrsaError):
    """Everything that is wrong, one line each."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.said = [" ".join(line.splitlines()) for line in lines]
        super().__init__("\n".join(self.said))

    @property
    def lines(self) -> list[str]:
        return self.said

    def __reduce__(self) -> tuple[type["Problems"], tuple[list[str]]]:
        return Problems, (self.said,)


def build_case(
    raw: RawCase, roles: Roles, parameters: np.ndarray | None = None, targets: bool = True
) -> PointSet:
    """The case that the roles makes of a file, in float32.

    Args:
        raw: The file.
        roles: Which of its arrays are what.
        parameters: (g,) the parameters of this case, where the roles has globals.
        targets: Whether the targets must be there. Without, `u` is None where one is missing.
    """
    lines = check_case(raw, roles, targets)
    if lines:
        raise Problems(lines)
    x = raw.points if roles.location == "point" else cell_centres(raw)
    series = {name: field_of(raw, name, roles) for name in (*roles.inputs, *roles.targets) if _has(raw, name)}
    inputs = [series[name][0] for name in roles.inputs]
    derived = _derived(raw, roles)
    inputs += [derived[name] for name in ("normals", "sdf") if name in derived]
    complete = bool(roles.targets) and all(name in series for name in roles.targets)
    u = u_mask = None
    if complete:
        u, u_mask = _targets([series[name] for name in roles.targets], raw.times is not None)
    f = np.concatenate(inputs, axis=1).astype(np.float32) if inputs else None
    given = roles.globals and parameters is not None
    grid = raw.grid if raw.grid is None or roles.location == "point" else tuple(n - 1 for n in raw.grid)
    meshed = roles.location == "point" and raw.cells is not None and len(raw.cells) > 0
    return PointSet(
        x.astype(np.float32),
        f,
        u,
        u_mask,
        weights=derived["measure"].astype(np.float32) if "measure" in derived else None,
        cells=raw.cells if meshed else None,
        cell_types=raw.cell_types if meshed else None,
        grid=grid,
        surface=derived.get("surface"),
        parts=_parts(raw, roles),
        globals=np.asarray(parameters, np.float32) if given else None,
        times=None if raw.times is None or u is None else raw.times.astype(np.float32),
        names=names_of(roles, x.shape[1]),
    )


def _parts(raw: RawCase, roles: Roles) -> np.ndarray | None:
    """(n, k) which points, or cells, are of each of the named blocks."""
    if not roles.patches:
        return None
    flags = np.stack([raw.parts[name] for name in roles.patches], axis=1)
    if roles.location == "point":
        return flags
    assert raw.cells is not None
    return np.all(flags[raw.cells] | (raw.cells < 0)[..., None], axis=1)


def check_case(raw: RawCase, roles: Roles, targets: bool = True) -> list[str]:
    """What is wrong with a file for this roles, one line each; nothing is wrong with an empty list."""
    lines = []
    if not _finite(raw.points).all():
        lines.append(f"{raw.path} has NaN or infinite coordinates. Remove the case")
    if roles.location == "cell" and (raw.cells is None or not len(raw.cells)):
        return [*lines, f"{raw.path} has no cells, but the named arrays are those of cells"]
    for name, role in _named(roles):
        if _has(raw, name):
            lines += _check_array(raw, roles, name, role)
        elif targets or role == "input":
            lines.append(_missing(raw, name, role))
    return lines


def field_of(raw: RawCase, name: str, roles: Roles) -> np.ndarray:
    """(T, n, k) an array where the cases live; T = 1 where it does not change in time."""
    if roles.location == "cell":
        return _frames(raw, raw.cell_data[name], len(raw.cells) if raw.cells is not None else 0)
    if name in raw.point_data:
        return _frames(raw, raw.point_data[name], len(raw.points))
    assert raw.cells is not None
    return to_points(_frames(raw, raw.cell_data[name], len(raw.cells)), raw.cells, len(raw.points))


def components(raw: RawCase, values: np.ndarray, count: int) -> int:
    """The channels of an array of `count` points or cells."""
    frames = raw.times is not None and values.ndim > 1 and values.shape[:2] == (len(raw.times), count)
    return int(np.prod(values.shape[2 if frames else 1 :]))


def dimension(raw: RawCase) -> int:
    """Of the cells, 0 where there are none, -1 where nothing can be derived from them."""
    if raw.cell_types is None:
        return 0
    of_cells = dimensions(raw.cell_types)
    if raw.faces is not None:
        of_cells = np.where(raw.cell_types == POLYHEDRON, 3, of_cells)
    return -1 if of_cells.min(initial=0) < 0 else int(of_cells.max(initial=0))


def to_points(values: np.ndarray, cells: np.ndarray, n: int) -> np.ndarray:
    """(T, C, k) -> (T, n, k): the mean of the known values around each point; NaN where there is none."""
    there = cells >= 0
    index, which = cells[there], np.broadcast_to(np.arange(len(cells))[:, None], cells.shape)[there]
    out = np.full((len(values), n, values.shape[2]), np.nan)
    for t, frame in enumerate(values):
        for k in range(values.shape[2]):
            column = frame[which, k]
            known = np.isfinite(column)
            count = np.bincount(index[known], minlength=n)
            summed = np.bincount(index[known], weights=column[known], minlength=n)
            np.divide(summed, count, out=out[t, :, k], where=count > 0)
    return out


def cell_centres(raw: RawCase) -> np.ndarray:
    """(C, p) the mean of the points of each cell."""
    assert raw.cells is not None
    there = raw.cells >= 0
    return (raw.points[raw.cells] * there[..., None]).sum(1) / np.maximum(there.sum(1, keepdims=True), 1)


def names_of(roles: Roles, dims: int) -> Names:
    """What the channels are called: a vector U gives U_x, U_y, U_z."""
    inputs = channel_names(roles.inputs, roles.channels)
    if "normals" in roles.derive:
        inputs += [f"normal_{axis}" for axis in AXES[:dims]]
    inputs += ["sdf"] * ("sdf" in roles.derive)
    inputs += ["given"] * bool(roles.input_points)
    targets = channel_names(roles.targets, roles.channels)
    return Names(tuple(AXES[:dims]), tuple(inputs), tuple(targets), roles.globals, parts=roles.patches)


def channel_names(arrays: Sequence[str], channels: Mapping[str, int]) -> list[str]:
    """The channels of arrays, in order."""
    return [label for name in arrays for label in _labels(name, channels.get(name, 1))]


def _labels(name: str, count: int) -> list[str]:
    if count == 1:
        return [name]
    return [f"{name}_{AXES[i] if count in (2, 3) else i}" for i in range(count)]


def _targets(series: Sequence[np.ndarray], in_time: bool) -> tuple[np.ndarray, np.ndarray | None]:
    """(N, o) or (T, N, o) targets with 0 where they are not known, and where they are, if not everywhere."""
    frames = max(len(part) for part in series)
    u = np.concatenate([np.broadcast_to(part, (frames, *part.shape[1:])) for part in series], axis=2)
    known = np.isfinite(u)
    u = np.where(known, u, 0).astype(np.float32)
    mask = np.asarray(known.all(0))
    return (u if in_time else u[0]), None if mask.all() else mask


def _derived(raw: RawCase, roles: Roles) -> dict[str, np.ndarray]:
    if not roles.derive:
        return {}
    geometry = Geometry(raw, roles.location)
    makers = {
        "normals": geometry.normals,
        "sdf": lambda: geometry.distance()[:, None],
        "measure": geometry.measure,
        "surface": geometry.surface,
    }
    return {name: makers[name]() for name in roles.derive}


def _frames(raw: RawCase, values: np.ndarray, count: int) -> np.ndarray:
    frames = raw.times is not None and values.ndim > 1 and values.shape[:2] == (len(raw.times), count)
    return np.asarray(values, np.float64).reshape(len(values) if frames else 1, count, -1)


def _check_array(raw: RawCase, roles: Roles, name: str, role: str) -> list[str]:
    on_points = roles.location == "point" and name in raw.point_data
    where = "points" if on_points else "cells"
    values = raw.point_data[name] if on_points else raw.cell_data.get(name)
    if values is None:
        return [f'{raw.path} has "{name}" on its points, but the other files have it on their cells']
    count = len(raw.points) if on_points else len(raw.cells) if raw.cells is not None else 0
    if count not in values.shape[:2] or (raw.times is None and values.shape[0] != count):
        return [f'{raw.path} has "{name}" of shape {values.shape}, but {count} {where}']
    lines, found = [], components(raw, values, count)
    wanted = roles.channels.get(name, found)
    if found != wanted:
        lines.append(f'{raw.path} has "{name}" with {found} components, but the first file has {wanted}')
    finite = _finite(values)
    if role == "input" and not finite.all():
        kind = "NaN" if np.isnan(values).any() else "infinite values"
        bad = f"{int((~finite).sum())} of {values.size}"
        lines.append(f'{raw.path} has {kind} in input "{name}" ({bad}). Remove the case')
    elif (~finite & ~np.isnan(values)).any():
        lines.append(f'{raw.path} has infinite values in target "{name}". Mark what is unknown with NaN')
    elif not finite.any():
        lines.append(f'{raw.path} has nothing but NaN in target "{name}". Remove the case')
    return lines


def _finite(values: np.ndarray) -> np.ndarray:
    """Where values are finite in the single precision in which they are stored."""
    with np.errstate(over="ignore"):
        return np.isfinite(np.asarray(values).astype(np.float32))


def _missing(raw: RawCase, name: str, role: str) -> str:
    there = list(dict.fromkeys([*raw.point_data, *raw.cell_data]))
    example = next(iter(there), "")
    listed = f"(it has: {', '.join(there)})" if there else "(it has none)"
    cure = f". Name the {role}s with --{role}s, e.g. --{role}s {example}" if there else ""
    return f'{raw.path} has no array "{name}" {listed}{nearest(name, there) or cure}'


def _named(roles: Roles) -> list[tuple[str, str]]:
    return [(name, "input") for name in roles.inputs] + [(name, "target") for name in roles.targets]


def _has(raw: RawCase, name: str) -> bool:
    return name in raw.point_data or name in raw.cell_data
