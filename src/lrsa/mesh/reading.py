"""Any file as a `RawCase`: meshes through PyVista, tables and arrays by themselves.

The blocks of a multiblock are merged in order: the points of the first, then those of the second, and so
on; the same for cells. `blocks_of(open_mesh(path))` gives them in that order, so what is predicted for the
merged case is cut into the blocks by their lengths. An array that some blocks do not have is NaN there.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from lrsa.errors import LrsaError
from lrsa.mesh.blocks import check_blocks, chosen, named_blocks, parts_of
from lrsa.mesh.finding import GEOMETRY, MESHES, find_cases, is_openfoam
from lrsa.mesh.merging import merge, series
from lrsa.mesh.pool import Call, ReaderPool, shared_pool
from lrsa.mesh.roles import RawCase
from lrsa.mesh.tables import (
    TABLES,
    hdf5_part,
    read_hdf5_case,
    read_npz_case,
    read_point_table,
    read_table,
    vectors,
)

__all__ = ["block_names", "blocks_of", "find_cases", "open_mesh", "read_raw", "read_raw_safely", "times_of"]


def read_raw(path: Path, patches: Sequence[str] = ()) -> RawCase:
    """Read a case, or the named blocks of it, in this process. Files of unknown origin: `read_raw_safely`."""
    suffix = path.suffix.lower()
    if suffix in MESHES or is_openfoam(path):
        return _read_mesh(path, patches)
    if patches:
        raise LrsaError(f"{path} has no blocks: leave out --patches")
    if suffix == ".npz":
        return read_npz_case(path)
    if suffix in TABLES:
        return read_point_table(path)
    if suffix in (".h5", ".hdf5") or hdf5_part(path)[1]:
        return read_hdf5_case(path)
    reason = "is of no known format" if path.exists() else "does not exist"
    raise LrsaError(
        f"{path} {reason} (known: {', '.join(MESHES)}, .npz, .h5, .csv, .parquet, OpenFOAM folders)"
    )


def read_raw_safely(path: Path, timeout: float | None = None, patches: Sequence[str] = ()) -> RawCase:
    """The same in a process that may die or hang, in which case an error names the file."""
    if timeout is None:
        return shared_pool().one(Call(read_raw, (path, patches), path))
    with ReaderPool(1, timeout) as pool:
        return pool.one(Call(read_raw, (path,), path))


def open_mesh(path: Path, time: float | None = None, patches: Sequence[str] = ()) -> Any:
    """The DataSet or MultiBlock of a mesh file, at one of its `times_of` (default: the first)."""
    with _errors_named(path):
        reader = _reader(path, patches)
        times = _times(reader)
        if len(times):
            reader.set_active_time_value(times[0] if time is None else time)
        return chosen(path, reader.read(), patches)


def block_names(path: Path) -> list[str]:
    """What --patches may name in a file; empty where it has no named blocks."""
    if path.suffix.lower() not in MESHES and not is_openfoam(path):
        return []
    with _errors_named(path):
        reader = _reader(path)
        if hasattr(reader, "patch_array_names"):  # OpenFOAM, of which only what is named is read
            return [str(name).rpartition("/")[2] for name in reader.patch_array_names]
        return [name for name, _ in named_blocks(reader.read())]


def times_of(path: Path) -> list[float]:
    """The times of a collection; empty where the file carries none."""
    with _errors_named(path):
        return _times(_reader(path))


def blocks_of(mesh: Any) -> list[Any]:
    """The data sets of a mesh in the order in which their points are merged; empty ones do not count."""
    if not hasattr(mesh, "n_blocks"):
        return [mesh] if mesh is not None and mesh.n_points else []
    return [leaf for i in range(mesh.n_blocks) for leaf in blocks_of(mesh[i])]


def _read_mesh(path: Path, patches: Sequence[str] = ()) -> RawCase:
    with _errors_named(path):
        reader = _reader(path, patches)
        times = _times(reader)
        frames = []
        for time in times or [None]:
            if time is not None:
                reader.set_active_time_value(time)
            mesh = chosen(path, reader.read(), patches)
            frames.append(replace(merge(path, blocks_of(mesh)), parts=parts_of(mesh, patches)))
    raw = frames[0] if len(frames) == 1 else series(path, frames, np.asarray(times))
    return _with_table(raw) if path.suffix.lower() in GEOMETRY else raw


def _reader(path: Path, patches: Sequence[str] = ()) -> Any:
    pyvista = _pyvista()
    if not path.exists():
        raise LrsaError(f"{path} does not exist")
    if path.is_file() and not path.stat().st_size and path.suffix.lower() != ".foam":
        raise LrsaError(f"{path} is empty")
    reader: Any
    if is_openfoam(path):
        reader = pyvista.OpenFOAMReader(path / "system" / "controlDict")
    elif path.suffix.lower() in (".xdmf", ".xmf"):
        reader = _Xdmf(path)
    else:
        reader = pyvista.get_reader(path)
    if isinstance(reader, pyvista.OpenFOAMReader):
        # Boundary patches repeat points of the internal mesh: only who asks for them has each point twice.
        reader.skip_zero_time = True
        names = [str(name).rpartition("/")[2] for name in reader.patch_array_names]
        check_blocks(path, patches, names)
        for name in reader.patch_array_names:
            wanted = name.rpartition("/")[2] in (patches or ("internalMesh",))
            (reader.enable_patch_array if wanted else reader.disable_patch_array)(name)
    return reader


def _times(reader: Any) -> list[float]:
    try:
        return [float(t) for t in reader.time_values]
    except (AttributeError, TypeError):  # no times in the format, or none in the file
        return []


class _Xdmf:
    """PyVista's reader of XDMF refuses files without times; this one takes both."""

    def __init__(self, path: Path) -> None:
        from vtkmodules.vtkIOXdmf2 import vtkXdmfReader

        self.reader = vtkXdmfReader()
        self.reader.SetFileName(str(path))
        self.reader.UpdateInformation()
        pipeline: Any = self.reader.GetExecutive()
        self.time_values = pipeline.GetOutputInformation(0).Get(pipeline.TIME_STEPS())

    def set_active_time_value(self, time: float) -> None:
        self.reader.UpdateTimeStep(time)

    def read(self) -> Any:
        """The grids; the grid that those of a series refer to (meshio writes one) is not there twice."""
        self.reader.Update()
        mesh = _pyvista().wrap(self.reader.GetOutputDataObject(0))
        first, *others = blocks_of(mesh) or [mesh]
        return first if all(np.array_equal(other.points, first.points) for other in others) else mesh


class _errors_named:
    """VTK says on its output window what is wrong, and goes on; here that is an error naming the file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.catcher = _pyvista().VtkErrorCatcher(send_to_logging=False)

    def __enter__(self) -> None:
        self.catcher.__enter__()

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        self.catcher.__exit__(None, None, None)
        if isinstance(error, LrsaError) or (error is not None and not isinstance(error, Exception)):
            return
        said = [str(event.alert) for event in self.catcher.error_events] or ([str(error)] if error else [])
        if said:
            raise LrsaError(f"{self.path} is not readable: {' '.join(said[0].split())[:160]}") from error


def _with_table(raw: RawCase) -> RawCase:
    """Geometry with the fields of the table beside it: a row for each point, or for each cell."""
    table = next((p for p in (raw.path.with_suffix(s) for s in TABLES) if p.is_file()), None)
    if table is None:
        return raw
    fields = vectors(read_table(table))
    rows, cells = len(next(iter(fields.values()), ())), 0 if raw.cells is None else len(raw.cells)
    if rows == len(raw.points):
        return RawCase(
            raw.path, raw.points, {**raw.point_data, **fields}, raw.cell_data, raw.cells, raw.cell_types
        )
    if rows == cells:
        return RawCase(
            raw.path, raw.points, raw.point_data, {**raw.cell_data, **fields}, raw.cells, raw.cell_types
        )
    raise LrsaError(f"{table} has {rows} rows, but {raw.path} has {len(raw.points)} points and {cells} cells")


def _pyvista() -> Any:
    try:
        import pyvista
    except ImportError as error:
        raise LrsaError("meshes need PyVista. Install it with `pip install lrsa[mesh]`") from error
    return pyvista
