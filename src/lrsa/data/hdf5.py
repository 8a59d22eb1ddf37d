"""HDF5 files that are all in one: whoever sends a file must not choose what else of this machine is read."""

from typing import Any

import h5py

from lrsa.errors import LrsaError

HDF5 = (".h5", ".hdf5")
"""How such files are called."""


def item_of(group: h5py.Group, name: str) -> Any:
    """`group[name]`, a path of groups and a group or array, unless it leads out of the file.

    External links are refused unopened. What other links lead out by, an external link on their way, and
    arrays that are stored in or put together from other files, are seen in what they lead to.
    """
    item: Any = group
    for part in name.split("/"):
        link = item.get(part, getlink=True)
        if not isinstance(link, h5py.ExternalLink):
            item = item[part]
        outside = isinstance(link, h5py.ExternalLink) or item.file.filename != group.file.filename
        if outside or getattr(item, "external", None) or getattr(item, "is_virtual", False):
            raise LrsaError(
                f'{group.file.filename} takes "{name}" from another file. Give a file that has all in one'
            )
    return item


def items_of(group: h5py.Group) -> dict[str, Any]:
    """All groups and arrays of a group, by name; links that lead nowhere are left out."""
    links = {str(name): group.get(name, getlink=True) for name in group}
    return {
        name: item_of(group, name)
        for name, link in links.items()
        if isinstance(link, h5py.ExternalLink) or group.get(name) is not None
    }
