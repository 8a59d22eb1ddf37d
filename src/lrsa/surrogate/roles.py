"""The roles of a run: which arrays of a new file are its inputs and targets."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from lrsa.errors import LrsaError
from lrsa.mesh.roles import Roles
from lrsa.surrogate.surrogate import Surrogate


def roles_of(surrogate: Surrogate, inputs: Sequence[str], run: Path) -> tuple[Roles, bool]:
    """The roles of the arrays of the run's data, inputs renamed; and whether it was imported by them.

    Data that was not is taken to have an array for every channel.
    """
    kept = surrogate.schema.provenance.get("recipe")
    names = surrogate.schema.names
    if kept is not None:
        roles = Roles.from_dict(kept)
    else:
        targets = names.targets or numbered("u", surrogate.normaliser.u_shift.shape[-1])
        roles = Roles(names.inputs, targets, globals=names.globals)
    if kept is None:
        return replace(roles, inputs=tuple(inputs) or roles.inputs), False
    if not inputs:
        return roles, True
    if len(inputs) != len(roles.inputs):
        raise LrsaError(
            f"{run} was trained with {len(roles.inputs)} input arrays ({', '.join(roles.inputs)}),"
            f" but --inputs names {len(inputs)}"
        )
    renamed = dict(zip(roles.inputs, inputs, strict=True))
    channels = {renamed.get(name, name): count for name, count in roles.channels.items()}
    return replace(roles, inputs=tuple(inputs), channels=channels), True


def numbered(name: str, count: int) -> tuple[str, ...]:
    """Names for channels that have none."""
    return (name,) if count == 1 else tuple(f"{name}{i}" for i in range(count))
