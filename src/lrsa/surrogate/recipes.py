"""The recipe of a run: which arrays of a new file are its inputs and targets."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from lrsa.errors import LrsaError
from lrsa.mesh.recipe import Recipe
from lrsa.surrogate.surrogate import Surrogate


def recipe_of(surrogate: Surrogate, inputs: Sequence[str], run: Path) -> tuple[Recipe, bool]:
    """The recipe of the run's data, its inputs renamed; and whether the data was imported by one.

    Data that was not is taken to have an array for every channel.
    """
    kept = surrogate.schema.provenance.get("recipe")
    names = surrogate.schema.names
    if kept is not None:
        recipe = Recipe.from_dict(kept)
    else:
        targets = names.targets or numbered("u", len(surrogate.normaliser.u_shift))
        recipe = Recipe(names.inputs, targets, globals=names.globals)
    if kept is None:
        return replace(recipe, inputs=tuple(inputs) or recipe.inputs), False
    if not inputs:
        return recipe, True
    if len(inputs) != len(recipe.inputs):
        raise LrsaError(
            f"{run} was trained with {len(recipe.inputs)} input arrays ({', '.join(recipe.inputs)}),"
            f" but --inputs names {len(inputs)}"
        )
    renamed = dict(zip(recipe.inputs, inputs, strict=True))
    channels = {renamed.get(name, name): count for name, count in recipe.channels.items()}
    return replace(recipe, inputs=tuple(inputs), channels=channels), True


def numbered(name: str, count: int) -> tuple[str, ...]:
    """Names for channels that have none."""
    return (name,) if count == 1 else tuple(f"{name}{i}" for i in range(count))
