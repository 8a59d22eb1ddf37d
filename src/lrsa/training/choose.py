"""Which options a run has before the user changes any: of a benchmark's scale, or chosen by the data."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from lrsa.context import needs_of
from lrsa.data.store import Dataset
from lrsa.models.presets import PRESETS
from lrsa.models.registry import DATA_ARGUMENTS, SIZES, get, model_options
from lrsa.problems.problem import Problem, Scale
from lrsa.training.config import TrainConfig
from lrsa.training.recipes import Recipe, settings_of

MINUTES, EPOCHS = 10, 500
"""What a user's own data gets, whichever is less."""
UNBOUNDED = 10**6
"""Epochs, where minutes alone decide."""
LATENT_GRID = (32, 32)
"""Of the small scales, where a model projects the points to a grid: about as many points as they have."""
LONG = 4
"""A domain whose sides differ more is long: each of its axes is normalised by itself."""


@dataclass(frozen=True)
class Choice:
    """Options of the model and of the training, and why."""

    model: Mapping[str, Any] = field(default_factory=dict)
    train: Mapping[str, Any] = field(default_factory=dict)
    why: str = ""


def settled(
    choice: Choice, recipe: Recipe, options: Mapping[str, Any], train: Mapping[str, Any]
) -> tuple[dict[str, Any], TrainConfig]:
    """What a run is made of: the choice, over it the recipe, over both what was typed.

    Of epochs and minutes, what was typed stands alone.
    """
    chosen = dict(choice.train)
    if "epochs" in train:
        chosen.pop("minutes", None)
    elif "minutes" in train:
        chosen["epochs"] = UNBOUNDED
    return {**choice.model, **options}, replace(TrainConfig(), **{**chosen, **settings_of(recipe), **train})


def for_problem(problem: Problem, scale: Scale, model: str) -> Choice:
    """The published form of the model for this benchmark, at the sizes of the scale.

    LRSA takes the scale as it stands, and so does another mixer in its backbone. Any other model keeps the
    form in which it was published for the benchmark (convolutions, reference positions, ...), and takes over
    what is a size, unless it was published with a smaller one.
    """
    known = model_options(model)
    settings: dict[str, Any] = {}
    if scale.preset is not None:
        row = PRESETS[scale.preset]
        settings = {k: getattr(row, k) for k in ("epochs", "batch_size", "max_lr", "weight_decay")}
    if get(model).family in ("lrsa", "backbone"):
        options = {**(PRESETS[scale.preset].model if scale.preset else {}), **scale.model}
    else:
        published = get(model).all_presets()
        options = dict(get(model).preset(problem.name)) if problem.name in published else {}
        sizes = scale.model if scale.preset is None else {} if options else PRESETS[scale.preset].model
        for k in SIZES:
            if k in known and k in sizes:
                largest = options.get(k, known[k].default)
                options[k] = min(sizes[k], largest) if isinstance(largest, int) else sizes[k]
        if scale.preset is None and options.get("latent_grid"):
            options["latent_grid"] = LATENT_GRID
    options = {k: v for k, v in options.items() if k in known and k not in DATA_ARGUMENTS}
    named = {"loss": problem.loss, "metrics": problem.metrics}
    settings |= {name: words for name, words in named.items() if words != getattr(TrainConfig, name)}
    settings |= scale.train
    if coordinates := needs_of(get(model).build()).coordinates:
        settings["coordinates"] = coordinates
    return Choice(options, settings, scale.about)


def for_data(data: Dataset, model: str) -> Choice:
    """A model and a training that suit the size of the data."""
    points = sorted(data.sizes.tolist())
    n, cases = points[len(points) // 2], len(data)
    large = cases * n > 2_000_000
    options: dict[str, Any] = {
        "width": 128 if large else 64,
        "depth": 6 if large else 4,
        "heads": 8 if large else 4,
        "rank": 64 if n > 2000 else 32,
    }
    if data.grid is not None and len(data.grid) == 2:
        options["local"] = "depthwise"
    batch = 4 if n <= 5000 else 2 if n <= 20000 else 1
    options = {k: v for k, v in options.items() if k in model_options(model)}
    settings: dict[str, Any] = {"batch_size": batch, "minutes": MINUTES, "epochs": EPOCHS}
    sides = np.ptp(data[0].x.astype(float), axis=0)
    sides = sides[sides > 0]
    if len(sides) and sides.max() > LONG * sides.min():
        settings["coordinates"] = "axis"
    size = f"{points[0]}" if points[0] == points[-1] else f"{points[0]} to {points[-1]}"
    why = f"{cases} training cases of {size} points in {data[0].x.shape[1]} coordinates"
    return Choice(options, settings, why)
