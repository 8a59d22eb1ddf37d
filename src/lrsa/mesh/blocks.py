"""Named blocks of a mesh: the patches of OpenFOAM, the zones of CGNS, the blocks of a VTM."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lrsa.errors import LrsaError, nearest


def chosen(path: Path, mesh: Any, patches: Sequence[str]) -> Any:
    """A mesh of the named blocks alone, in the order of the file; the mesh as it is where none is named."""
    if not patches:
        return mesh
    import pyvista

    there = dict(named_blocks(mesh))
    check_blocks(path, patches, list(there))
    made = pyvista.MultiBlock()
    for name, block in there.items():
        if name in patches:
            made.append(block, name)
    return made


def check_blocks(path: Path, patches: Sequence[str], there: Sequence[str]) -> None:
    """Refuse a name that is none of those that are there."""
    for name in patches:
        if name not in there:
            listed = f"It has: {', '.join(there)}" if there else "It has no named blocks"
            raise LrsaError(f'{path} has no block "{name}".{nearest(name, there)} {listed}')


def parts_of(mesh: Any, patches: Sequence[str]) -> dict[str, np.ndarray]:
    """(N,) bool for each of them: its points among those of all blocks, one after the other."""
    if not patches:
        return {}
    sizes = {name: block.n_points for name, block in named_blocks(mesh)}
    ends = np.cumsum(list(sizes.values()))
    every = np.arange(ends[-1])
    return {
        name: (every >= end - size) & (every < end)
        for (name, size), end in zip(sizes.items(), ends, strict=True)
    }


def named_blocks(mesh: Any, found: set[str] | None = None) -> Iterator[tuple[str, Any]]:
    """The blocks that have points, by their own names, whatever they are nested in."""
    found = set() if found is None else found
    if not hasattr(mesh, "n_blocks"):
        return
    for i in range(mesh.n_blocks):
        block, name = mesh[i], str(mesh.get_block_name(i))
        if hasattr(block, "n_blocks"):
            yield from named_blocks(block, found)
        elif block is not None and block.n_points and name not in found:
            found.add(name)
            yield name, block
