"""Which files of a folder are cases, what they are called, and what belongs to them.

A case is one mesh file, one collection over time (PVD, EnSight, XDMF), one multiblock, one OpenFOAM folder,
one table or one group of an HDF5 file. Pieces of collections and tables beside geometry are not cases.
"""

import glob
import hashlib
import os
import re
from collections.abc import Collection, Sequence
from pathlib import Path

from lrsa.errors import LrsaError
from lrsa.mesh.pool import COLLECTIONS, Call, shared_pool
from lrsa.mesh.tables import ARRAYS, TABLES, hdf5_groups, hdf5_part

GEOMETRY = (".stl", ".ply", ".obj")
"""Formats without fields of their own: a table beside them has them."""
PLAIN = (".vtu", ".vtp", ".vtk", ".vti", ".vts", ".vtr", ".vtkhdf", ".cgns", ".case", ".foam")
MESHES = (*PLAIN, *COLLECTIONS, *GEOMETRY)
MENTIONED = re.compile(r'(?:file|Source)\s*=\s*"([^"]+)"|>\s*([^<>"]+?\.h5)\s*:')
"""How collections name their pieces: XML attributes, and `data.h5:/array` in XDMF."""
GLOB = set("*?[")


def find_cases(source: str | Path, leave_out: Collection[Path] = ()) -> list[Path]:
    """The cases of a file, a folder (with its subfolders) or a glob, sorted by path."""
    text = str(source)
    if not text.strip():
        raise LrsaError('an empty name is no file and no folder. For the current folder name "."')
    path = Path(text)
    if path.is_file() or hdf5_part(path)[1]:
        found = [path]
    elif path.is_dir():
        found = _walk(path)
    elif GLOB & set(text):
        named = [Path(name) for name in glob.glob(text, recursive=True)]
        found = [p for name in named for p in (_walk(name) if name.is_dir() else [name])]
    else:
        raise LrsaError(
            f"{source} does not exist. Name a file, a folder or a quoted pattern such as 'runs/*.vtu'"
        )
    without = {p.resolve() for p in leave_out}
    found = sorted({p for p in found if p.resolve() not in without and (p == path or _is_case(p))})
    pieces = {piece.resolve() for p in found for piece in pieces_of(p)}
    cases = [p for p in found if p.resolve() not in pieces]
    if any(p.suffix.lower() not in TABLES for p in cases):
        cases = [p for p in cases if p.suffix.lower() not in TABLES]
    cases = [part for p in cases for part in _parts(p)]
    if not cases:
        raise LrsaError(
            f"{source} holds no case. Known are {', '.join((*MESHES, *ARRAYS, *TABLES))} and OpenFOAM folders"
        )
    return cases


def tables_in(source: str | Path, cases: Sequence[Path]) -> list[Path]:
    """The tables in a folder that are no cases and belong to none: one of them may hold the parameters."""
    folder = (
        Path(source)
        if Path(source).is_dir()
        else Path(os.path.commonpath([p.parent.resolve() for p in cases]))
    )
    used = {p.resolve() for case in cases for p in (case, *pieces_of(case))}
    found = (p for p in folder.iterdir() if p.suffix.lower() in TABLES)
    return sorted(p for p in found if p.resolve() not in used)


def case_names(paths: Sequence[Path]) -> list[str]:
    """A name of each case: its file without suffix, or as much of its path as tells the cases apart."""
    stems = [_stem(p) for p in paths]
    if len(set(stems)) == len(stems):
        return stems
    common = Path(os.path.commonpath([p.parent for p in paths]))
    folders = [p.parent.relative_to(common).as_posix() for p in paths]
    if len(set(folders)) == len(folders):
        return folders
    full = [f"{folder}/{stem}" for folder, stem in zip(folders, stems, strict=True)]
    return full if len(set(full)) == len(full) else [p.relative_to(common).as_posix() for p in paths]


def labels_of(path: Path, name: str) -> list[str]:
    """What a table may call a case."""
    return [name, path.name, _stem(path), str(path), path.parent.name]


def is_openfoam(folder: Path) -> bool:
    return folder.is_dir() and (folder / "constant" / "polyMesh").is_dir()


def pieces_of(path: Path) -> list[Path]:
    """The other files that a case is made of."""
    suffix = path.suffix.lower()
    if is_openfoam(path) or suffix == ".foam":
        folder = path if path.is_dir() else path.parent
        return [p for p in folder.rglob("*") if p.is_file() and p != path]
    if suffix in GEOMETRY:
        return [p for p in (path.with_suffix(s) for s in TABLES) if p.is_file()]
    if suffix in COLLECTIONS and path.is_file():
        text = path.read_text(encoding="utf-8", errors="replace")
        names = [a or b for a, b in MENTIONED.findall(text)]
        members = [path.parent / name.strip() for name in dict.fromkeys(names)]
        members = [member for member in members if member.is_file() and member != path]
        return [piece for member in members for piece in (member, *_inner(member))]
    if suffix == ".case" and path.is_file():
        return [
            p
            for p in path.parent.glob(f"{path.stem}*")
            if p != path and p.suffix.lower() not in (*MESHES, *ARRAYS)
        ]
    return []


def fingerprint(path: Path, *about: str) -> str:
    """Changes when the files of a case change, or what is made of them."""
    file, _ = hdf5_part(path)
    stats = [(str(p), p.stat().st_mtime_ns, p.stat().st_size) for p in (file, *sorted(pieces_of(file)))]
    return hashlib.sha256(repr((str(path), stats, about)).encode()).hexdigest()[:24]


def _inner(member: Path) -> list[Path]:
    return pieces_of(member) if member.suffix.lower() in COLLECTIONS else []


def _walk(folder: Path) -> list[Path]:
    found: list[Path] = []
    for here, folders, files in os.walk(folder):
        if is_openfoam(Path(here)):
            foam = sorted(name for name in files if name.endswith(".foam"))
            found.append(Path(here) if not foam or len(foam) > 1 else Path(here) / foam[0])
            folders.clear()
            continue
        folders[:] = sorted(f for f in folders if not f.startswith(".") and not f.endswith(".parts"))
        found += [Path(here) / name for name in files if not name.startswith(".")]
    return found


def _is_case(path: Path) -> bool:
    return path.suffix.lower() in (*MESHES, *ARRAYS, *TABLES) or is_openfoam(path)


def _parts(path: Path) -> list[Path]:
    """The groups of an HDF5 file that holds several cases; a file that cannot be opened is told of later."""
    if path.suffix.lower() not in (".h5", ".hdf5") or not path.is_file():
        return [path]
    try:
        groups = shared_pool().one(Call(hdf5_groups, (path,), path))
    except LrsaError:
        return [path]
    return [path / group for group in groups] or [path]


def _stem(path: Path) -> str:
    if path.suffix.lower() == ".foam":
        return path.parent.name if path.stem in ("", "case", "open", "openfoam") else path.stem
    return (
        path.stem
        if path.suffix.lower() in (*MESHES, *ARRAYS, *TABLES) and not is_openfoam(path)
        else path.name
    )
