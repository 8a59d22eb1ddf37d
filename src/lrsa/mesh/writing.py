"""Predicted fields into files: points, cells and arrays as they came in, and new arrays beside them.

VTK's own formats come out as they came in. Formats that VTK reads but does not write (OpenFOAM, CGNS, XDMF,
EnSight, ...) or that carry no fields (STL, PLY, OBJ) come out in the VTK format of the same kind of mesh. A
series in time is one file for each time and a `.pvd` that lists them.
"""

import csv
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal
from xml.sax.saxutils import quoteattr

import numpy as np

from lrsa.data.hdf5 import HDF5
from lrsa.errors import LrsaError
from lrsa.files import atomic, ready
from lrsa.mesh.arrays import read_npz, write_npz
from lrsa.mesh.tables import ARRAYS, TABLES, delimiter

Fields = Mapping[str, np.ndarray]
"""name -> (n,) or (n, k), n the points or the cells of the whole mesh."""
Location = Literal["point", "cell"]

SUFFIXES = {
    "UnstructuredGrid": (".vtu", ".vtk"),
    "PolyData": (".vtp", ".vtk"),
    "StructuredGrid": (".vts", ".vtk"),
    "RectilinearGrid": (".vtr", ".vtk"),
    "ImageData": (".vti", ".vtk"),
    "MultiBlock": (".vtm", ".vtmb"),
}
"""What VTK writes for each kind of mesh, the first by default."""
HEADER = 4096
"""Bytes that are enough for what HDF5 writes about one array."""


def mesh_file(mesh: Any, out: Path) -> Path:
    """`out`, with another suffix where a mesh of this kind cannot be written under that one."""
    suffixes = SUFFIXES.get(type(mesh).__name__)
    if suffixes is None:
        raise LrsaError(f"cannot write {out}: VTK has no format for a {type(mesh).__name__}")
    return out if out.suffix.lower() in suffixes else out.with_suffix(suffixes[0])


def write_mesh(mesh: Any, out: Path, fields: Fields, location: Location, time: float | None = None) -> Path:
    """The mesh with these fields added, under `out` or its nearest writable name, which is returned."""
    out = mesh_file(mesh, out)
    with _staged(out) as staged:
        save_mesh(mesh, staged, fields, location, time)
    return out


def write_series(frames: Iterable[tuple[float, Any, Fields]], out: Path, location: Location) -> Path:
    """(time, mesh, fields) for every time, as files in a folder beside the `.pvd` that is returned."""
    out = out.with_suffix(".pvd")
    with _staged(out) as staged:
        pieces = staged.with_suffix("")
        pieces.mkdir()
        rows = []
        for i, (time, mesh, fields) in enumerate(frames):
            piece = mesh_file(mesh, pieces / f"{out.stem}_{i:04d}")
            save_mesh(mesh, piece, fields, location, time)
            named = quoteattr(f"{out.stem}/{piece.name}")
            rows.append(f'<DataSet timestep="{time!r}" part="0" file={named}/>')
        listed = "\n".join(rows)
        staged.write_text(
            f'<VTKFile type="Collection" version="0.1">\n<Collection>\n{listed}\n</Collection>\n</VTKFile>\n'
        )
    return out


def write_table(source: Path, out: Path, fields: Fields) -> Path:
    """The table or arrays of `source` with these arrays added, in a file of the same format.

    Arrays of HDF5 groups are called `group/name`; vectors become columns `name:0, name:1, ...` of tables.
    """
    check_table(source, out)
    suffix = source.suffix.lower()
    if suffix == ".npz":
        write_npz(out, {**read_npz(source), **fields})
    elif suffix in HDF5:
        _write_hdf5(source, out, fields)
    elif suffix == ".parquet":
        _write_parquet(source, out, columns_of(fields))
    else:
        _write_csv(source, out, columns_of(fields))
    return out


def is_table(path: Path) -> bool:
    """Whether this is a file of arrays or columns, not a mesh."""
    return path.suffix.lower() in (*ARRAYS, *TABLES)


def check_table(source: Path, out: Path) -> None:
    """Refuse to turn one format into another."""
    kinds = [".h5" if path.suffix.lower() in HDF5 else path.suffix.lower() for path in (source, out)]
    if kinds[0] != kinds[1]:
        raise LrsaError(f"cannot predict {source} into {out}: both must be {kinds[0]} files")


def columns_of(fields: Fields) -> dict[str, np.ndarray]:
    """One column for every component, called as ParaView does."""
    return {
        name if values.ndim == 1 else f"{name}:{i}": column
        for name, values in fields.items()
        for i, column in enumerate(values.reshape(len(values), -1).T)
    }


def save_mesh(mesh: Any, path: Path, fields: Fields, location: Location, time: float | None) -> None:
    """The mesh with these fields added, under this very name."""
    _attach(mesh, fields, location)
    if time is not None:
        mesh.field_data["TimeValue"] = np.array([time])
    if not _written(mesh, path):
        raise LrsaError(f"{path.name} could not be written by VTK. Is the disk full? Nothing was changed")


def _written(mesh: Any, path: Path) -> bool:
    """Write a mesh; whether VTK had nothing to complain about, for it goes on where the disk is full."""
    import pyvista
    from vtkmodules.vtkIOXML import vtkXMLDataSetWriter, vtkXMLMultiBlockDataWriter

    with pyvista.vtk_verbosity("off"), pyvista.VtkErrorCatcher(send_to_logging=False) as said:
        if path.suffix.lower() == ".vtk":
            with suppress(OSError):
                mesh.save(path)
        else:
            # As mesh.save, but for arrays behind the XML: inline, VTK frees what it never had on a full disk.
            mesh._store_metadata()
            writer = vtkXMLMultiBlockDataWriter() if hasattr(mesh, "n_blocks") else vtkXMLDataSetWriter()
            writer.SetDataModeToAppended()
            writer.EncodeAppendedDataOff()
            writer.SetFileName(str(path))
            writer.SetInputData(mesh)
            writer.Write()
    return path.exists() and not said.error_events


def _attach(mesh: Any, fields: Fields, location: Location) -> None:
    """Add the fields, to every block its part."""
    from lrsa.mesh.reading import blocks_of

    blocks = blocks_of(mesh)
    counts = [block.n_points if location == "point" else block.n_cells for block in blocks]
    for name, values in fields.items():
        if len(values) != sum(counts):
            raise LrsaError(f"{name} has {len(values)} values for a mesh of {sum(counts)} {location}s")
        parts = np.split(values, np.cumsum(counts)[:-1])
        for block, part in zip(blocks, parts, strict=True):
            data = block.point_data if location == "point" else block.cell_data
            # set_array leaves the active scalars of the user's file as they were.
            data.set_array(np.ascontiguousarray(part), name)


@contextmanager
def _staged(out: Path) -> Iterator[Path]:
    """A name in a folder of its own; when all went well, that file and its pieces move to `out`."""
    ready(out.parent)
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}.") as folder:
        staged = Path(folder) / out.name
        yield staged
        pieces = sorted(staged.with_suffix("").glob("*"))
        for piece in pieces:
            home = out.with_suffix("") / piece.name
            home.parent.mkdir(exist_ok=True)
            shutil.move(piece, home)
        staged.replace(out)


def _write_hdf5(source: Path, out: Path, fields: Fields) -> None:
    import h5py

    size = source.stat().st_size + sum(values.nbytes + HEADER for values in fields.values())
    with atomic(out, size) as temporary:
        shutil.copyfile(source, temporary)
        # Room for all of it first: HDF5 ends the process where the disk is full, and gives back what is left.
        with open(temporary, "ab") as room:
            while (missing := size - room.tell()) > 0:
                room.write(bytes(min(missing, 1 << 24)))
        with h5py.File(temporary, "r+") as file:
            for name, values in fields.items():
                if name in file:
                    del file[name]
                file[name] = values


def _write_csv(source: Path, out: Path, columns: Mapping[str, np.ndarray]) -> None:
    """The text of the other columns stays as it was written."""
    with (
        open(source, newline="", encoding="utf-8-sig") as file,
        atomic(out, source.stat().st_size) as temporary,
        open(temporary, "w", newline="", encoding="utf-8") as target,
    ):
        mark = delimiter(source)
        reader = csv.reader(file, delimiter=mark)
        writer = csv.writer(target, delimiter=mark, lineterminator="\n")
        header = next(reader)
        kept = [i for i, name in enumerate(header) if name.strip() not in columns]
        writer.writerow([*(header[i] for i in kept), *columns])
        rows = (row for row in reader if row)
        for row, values in zip(rows, zip(*columns.values(), strict=True), strict=True):
            writer.writerow([*(row[i] for i in kept), *values])


def _write_parquet(source: Path, out: Path, columns: Mapping[str, np.ndarray]) -> None:
    from pyarrow import array, parquet

    table = parquet.read_table(source)
    for name, values in columns.items():
        if name in table.column_names:
            table = table.drop_columns([name])
        table = table.append_column(name, array(values))
    with atomic(out, table.nbytes) as temporary:
        parquet.write_table(table, temporary)
