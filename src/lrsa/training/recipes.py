"""The two recipes: how any model is trained, whatever the data.

`paper` is AdamW under OneCycle as printed; `ours` is Muon on the hidden matrices, which takes these short
trainings three to five times further at the same number of steps. A table names its recipe, and all its rows
have the same.
"""

from collections.abc import Mapping
from typing import Any, Literal

from lrsa.errors import LrsaError, nearest

Recipe = Literal["ours", "paper"]
RECIPES: Mapping[Recipe, Mapping[str, Any]] = {
    "paper": {},
    "ours": {"optimiser": "muon", "muon_lr": 0.01, "max_lr": 2e-3, "warmup": 0.1},
}
"""Settings of the training, over those of the scale."""


def settings_of(recipe: Recipe) -> Mapping[str, Any]:
    """The settings of that recipe, or a line that names the nearest one."""
    if recipe not in RECIPES:
        raise LrsaError(f'no recipe "{recipe}".{nearest(recipe, RECIPES)} There are: {", ".join(RECIPES)}')
    return RECIPES[recipe]


def default_recipe(scale: str | None) -> Recipe:
    """Of a scale, or of the user's own data (None)."""
    return "paper" if scale == "paper" else "ours"
