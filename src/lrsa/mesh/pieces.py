"""A mesh in pieces, so that nobody has to hold the whole: a `.pvtu` and the `.vtu` files that it names."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

from lrsa.errors import LrsaError
from lrsa.mesh.merging import merge
from lrsa.mesh.reading import blocks_of, open_mesh
from lrsa.mesh.roles import RawCase

Arrays = Mapping[str, Mapping[str, tuple[str, int]]]
"""`PPointData` and `PCellData` -> name of an array -> its type as VTK's XML calls it, and its components."""


def pieces_in(path: Path) -> list[Path]:
    """The files of the pieces of a `.pvtu`, in order; all of them are there."""
    try:
        root = ElementTree.parse(path).getroot()
    except OSError as error:
        raise LrsaError(f"{path} does not exist") from error
    except ElementTree.ParseError as error:
        raise LrsaError(f"{path} is not readable: {error}") from error
    pieces = [path.parent / name for piece in root.iter("Piece") if (name := piece.get("Source"))]
    if not pieces:
        raise LrsaError(f"{path} names no pieces")
    for piece in pieces:
        if not piece.is_file():
            raise LrsaError(f"{path} names {piece}, which does not exist")
    return pieces


def dealt(pieces: Sequence[Path], count: int) -> list[slice]:
    """So many runs of pieces, none of them empty, with about as many bytes in each."""
    sizes = np.cumsum([piece.stat().st_size for piece in pieces])
    starts = [0]
    for k in range(1, count):
        fair = int(np.abs(sizes - sizes[-1] * k / count).argmin()) + 1
        starts.append(min(max(fair, starts[-1] + 1), len(pieces) - (count - k)))
    return [slice(*ends) for ends in zip(starts, [*starts[1:], len(pieces)], strict=True)]


def read_pieces(path: Path, pieces: Sequence[Path]) -> RawCase:
    """Some of the pieces as one case: their points one after the other, as VTK joins them."""
    blocks = [block for piece in pieces for block in blocks_of(open_mesh(piece))]
    if not blocks:
        raise LrsaError(f"{path}: {', '.join(piece.name for piece in pieces)} have no points. Leave them out")
    return merge(path, blocks)


def arrays_of(mesh: Any) -> Arrays:
    """The arrays of a piece that a summary can tell of."""
    found: dict[str, dict[str, tuple[str, int]]] = {}
    for what, data in (("PPointData", mesh.point_data), ("PCellData", mesh.cell_data)):
        arrays = {str(name): np.asarray(data[name]) for name in data.keys()}  # noqa: SIM118
        found[what] = {
            name: (_type(values), int(np.prod(values.shape[1:])))
            for name, values in arrays.items()
            if values.dtype.kind in "biuf"
        }
    found["PPoints"] = {"Points": (_type(np.asarray(mesh.points)), 3)}
    return found


def write_summary(path: Path, pieces: Sequence[str], arrays: Sequence[Arrays]) -> None:
    """The `.pvtu` of pieces with these arrays; it tells of those that all of them have."""
    root = ElementTree.Element("VTKFile", type="PUnstructuredGrid", version="1.0", byte_order="LittleEndian")
    grid = ElementTree.SubElement(root, "PUnstructuredGrid", GhostLevel="0")
    for what, known in arrays[0].items():
        group = ElementTree.SubElement(grid, what)
        for name, (kind, count) in known.items():
            if all(name in other[what] for other in arrays):
                about = {"type": kind, "Name": name, "NumberOfComponents": str(count)}
                ElementTree.SubElement(group, "PDataArray", about)
    for piece in pieces:
        ElementTree.SubElement(grid, "Piece", Source=piece)
    ElementTree.indent(root)
    ElementTree.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)


def _type(values: np.ndarray) -> str:
    """`Float32`, `UInt8`, ...; flags are bytes."""
    kind = np.uint8 if values.dtype == bool else values.dtype
    return np.dtype(kind).name.title().replace("Uint", "UInt")
