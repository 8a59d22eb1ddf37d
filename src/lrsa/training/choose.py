"""Which options a run has before the user changes any: of a benchmark's scale, or chosen by the data."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from lrsa.context import needs_of
from lrsa.data.normalise import SMALLEST, Normaliser
from lrsa.data.store import Dataset
from lrsa.models.create import create_model
from lrsa.models.presets import PRESETS
from lrsa.models.registry import DATA_ARGUMENTS, SIZES, get, model_options
from lrsa.pointset import PointSet
from lrsa.problems.problem import Problem, Scale
from lrsa.training.config import TrainConfig
from lrsa.training.recipes import Recipe, settings_of

ON_GRIDS = "lrsa-fourier"
"""The model for users' grids."""
MINUTES, EPOCHS = 10, 500
"""What a user's own data gets, whichever is less."""
UNBOUNDED = 10**6
"""Epochs, where minutes alone decide."""
LATENT_GRID = (32, 32)
"""Of the small scales, where a model projects the points to a grid: about as many points as they have."""
WHOLE_CASES = 2
"""Of a step at most, where a model takes all frames of a case at once: as F-FNO was published."""
LONG = 4
"""A domain whose sides differ more is long: each of its axes is normalised by itself."""
LOOKED_AT = 3
"""Cases, about, whose extent tells that of all."""
SIZES_OF_MODELS: tuple[Mapping[str, int], ...] = (
    {"width": 32, "depth": 2, "heads": 4, "rank": 16},
    {"width": 48, "depth": 3, "heads": 4, "rank": 32},
    {"width": 64, "depth": 4, "heads": 4, "rank": 32},
    {"width": 96, "depth": 5, "heads": 8, "rank": 64},
    {"width": 128, "depth": 6, "heads": 8, "rank": 64},
)
"""Of models, from small to large."""
SMALL, MUCH = 3, 2_000_000
"""Sizes up to this one are enough where there are no more points than this in all cases together."""
MANY = 2000
"""Points of a case from which on it gets twice the rank."""
APART = 10
"""Times that the largest of the target fields may be the smallest, if one norm is to be that of all."""
THIN = (4096, 16384)
"""Points of a case that a step sees, where it has more and there is no time for all."""


Level = tuple[Mapping[str, Any], Mapping[str, Any]]
"""Options of the model and of the training."""


@dataclass(frozen=True)
class Choice:
    """Options of the model and of the training, and why."""

    model: Mapping[str, Any] = field(default_factory=dict)
    train: Mapping[str, Any] = field(default_factory=dict)
    why: str = ""
    levels: Sequence[Level] = ()
    """Options of model and training instead of those above where minutes are few, from cheap to dear."""


def settled(
    choice: Choice, recipe: Recipe, options: Mapping[str, Any], train: Mapping[str, Any]
) -> tuple[dict[str, Any], TrainConfig]:
    """What a run is made of: the choice, over it the recipe, over both what was typed.

    Of epochs and minutes, what was typed stands alone.
    """
    chosen, of_model = dict(choice.train), choice.model
    if "epochs" in train:
        chosen.pop("minutes", None)
    elif "minutes" in train:
        chosen["epochs"] = UNBOUNDED
    if choice.levels and ("minutes" in chosen or train.get("minutes") is not None):
        of_model, first = choice.levels[0]  # the others are tried against the clock
        chosen |= first
    return {**of_model, **options}, replace(TrainConfig(), **{**chosen, **settings_of(recipe), **train})


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
    of_data = {k: options[k] for k in DATA_ARGUMENTS if k in options}
    options = {k: v for k, v in options.items() if k in known and k not in DATA_ARGUMENTS}
    named = {"loss": problem.loss, "metrics": problem.metrics}
    settings |= {name: words for name, words in named.items() if words != getattr(TrainConfig, name)}
    settings |= scale.train
    if options.get("time_axis"):
        settings["batch_size"] = min(WHOLE_CASES, settings.get("batch_size", TrainConfig.batch_size))
    if "points" in settings and _needs_all_points(model, {**of_data, **options}):
        del settings["points"]
    if get(model).family == "fitted":
        return Choice({}, {"validation": 0.0}, scale.about)
    if coordinates := needs_of(get(model).build()).coordinates:
        settings["coordinates"] = coordinates
    return Choice(options, settings, scale.about)


def model_for(data: Dataset, options: Iterable[str] = ()) -> str:
    """The model for a user's data where none is named: LRSA, on a grid of two axes that with Fourier filters.

    It has a smaller error there after the same time, or about the same (results/automatic.md). Options that
    only LRSA has name that as well.
    """
    return ON_GRIDS if on_a_grid(data) and model_options(ON_GRIDS).keys() >= set(options) else "lrsa"


def on_a_grid(data: Dataset) -> bool:
    """Whether the points of all cases are one grid of two axes."""
    return data.grid is not None and len(data.grid) == 2


def for_data(data: Dataset, model: str) -> Choice:
    """A model and a training that suit the data, and cheaper ones for when there is little time."""
    points = sorted(data.sizes.tolist())
    n, cases = points[len(points) // 2], len(data)
    size = f"{points[0]}" if points[0] == points[-1] else f"{points[0]} to {points[-1]}"
    axes = len(_sides(data[0].x))
    why = f"{cases} training cases of {size} points in {axes} coordinate{'s' if axes > 1 else ''}"
    if get(model).family == "fitted":
        return Choice({}, {"validation": 0.0}, why)
    known = model_options(model)
    local = on_a_grid(data) and "local" in known
    settings: dict[str, Any] = {"batch_size": batch_for(n), "minutes": MINUTES, "epochs": EPOCHS}
    if (ratio := elongation(data)) > LONG:
        settings["coordinates"] = "axis"
        why += f", {ratio:.3g} times as long as wide (each axis has its own scale)"
    if on_a_grid(data):
        how = " (local mixing)" if local else " (Fourier filters)" if model == ON_GRIDS else ""
        why += f", on a grid of {' x '.join(map(str, data.grid or ()))}{how}"
    thins = not local and not _needs_all_points(model, {})
    levels = []
    for sizes, seen in _levels(n, cases * n > MUCH, thins):
        rank = min(64, sizes["rank"] * (2 if n > MANY else 1))
        options = {k: v for k, v in {**sizes, "rank": rank}.items() if k in known}
        options |= {"local": "depthwise"} if local else {}
        levels.append((options, {"points": seen, "batch_size": batch_for(seen or n)}))
    options, _ = levels[-1]
    return Choice(options, settings, why, levels)


def alike(choice: Choice, targets: Sequence[str], normaliser: Normaliser) -> Choice:
    """The choice with a loss in which fields of very different size count alike.

    In one norm of metres and pascals only the pascals would be learned. The components of a vector stay
    together: one of them that is nearly zero has no size of its own.
    """
    sizes = (
        (normaliser.u_scale.square() + normaliser.u_shift.square()).sqrt().reshape(-1, len(targets)).mean(0)
    )
    fields: dict[str, list[int]] = {}
    for i, name in enumerate(targets):
        fields.setdefault(re.sub(r"_[xyz]$", "", name), []).append(i)
    known = {tuple(some): size for some in fields.values() if (size := float(sizes[some].norm())) > 0}
    if (
        not known
        or max(known.values()) <= APART * min(known.values())
        or set(":+@*,") & set("".join(targets))
    ):
        return choice
    loss = "+".join(":".join([TrainConfig.loss, *(targets[i] for i in some)]) for some in known)
    why = f"{choice.why}, whose fields differ in size and count alike"
    return replace(choice, train={**choice.train, "loss": loss}, why=why)


def batch_for(points: int) -> int:
    """Cases of so many points in a step."""
    return 4 if points <= 5000 else 2 if points <= 20000 else 1


def elongation(data: Sequence[PointSet]) -> float:
    """The longest side of the domain over the shortest, as most cases have it; flat axes do not count."""
    ratios = []
    for i in range(0, len(data), max(1, len(data) // LOOKED_AT)):
        sides = _sides(data[i].x)
        ratios.append(sides.max() / sides.min() if len(sides) else 1.0)
    return float(np.median(ratios))


def _sides(x: np.ndarray) -> np.ndarray:
    """The extent of points (N, p) along the axes along which they extend."""
    sides = np.ptp(x.astype(float), axis=0)
    return sides[sides > SMALLEST * sides.max()]


def _levels(n: int, much: bool, thins: bool) -> Iterator[tuple[Mapping[str, int], int | None]]:
    """Sizes of a model and points of a case, from cheap to dear: first a fair model, then all points."""
    fair, large = SIZES_OF_MODELS[:SMALL], SIZES_OF_MODELS[SMALL:] if much else ()
    seen: list[int | None] = [*(points for points in THIN if thins and points < n), None]
    yield from ((sizes, seen[0]) for sizes in fair)
    yield from ((fair[-1], points) for points in seen[1:])
    yield from ((sizes, None) for sizes in large)


def _needs_all_points(model: str, options: Mapping[str, Any]) -> bool:
    """Whether the model, by these options, cannot do with some of the points."""
    plain = {"coord_dim": 2, "in_features": 1, "out_features": 1}
    needs = needs_of(create_model(model, **{**plain, **options}))
    return bool(needs.grid or needs.geometry or needs.sensors or needs.domains)
