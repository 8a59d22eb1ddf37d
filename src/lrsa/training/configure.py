"""From what was asked for to the configuration of a run: data, choice, recipe, sizes."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from lrsa.console import bar, console
from lrsa.context import needs_of
from lrsa.data.normalise import Normaliser
from lrsa.data.store import Dataset, is_path
from lrsa.errors import LrsaError
from lrsa.models.create import create_model
from lrsa.models.matching import matched_width, parameter_count
from lrsa.models.registry import check_sizes, model_options
from lrsa.models.registry import get as get_model
from lrsa.objectives.words import labels
from lrsa.problems.catalogue import get
from lrsa.problems.making import make_dataset
from lrsa.problems.problem import Problem, Scale, Source
from lrsa.surrogate.record import Record
from lrsa.surrogate.shipped import located
from lrsa.training.choose import Choice, alike, for_data, for_problem, model_for, settled
from lrsa.training.config import DataConfig, RunConfig
from lrsa.training.recipes import Recipe, default_recipe
from lrsa.training.survey import Survey


def named(data: str, model: str | None, options: Mapping[str, Any], init: str | Path | None) -> str:
    """The model, where none is named too: that of the weights to start from, or by the data of a user.

    A file that is not there is refused with all else that is.
    """
    if model is not None:
        return model
    if init is not None:
        return Record.load(located(init)).model
    if not (is_path(data) and Path(data).exists()):
        return "lrsa"
    return model_for(Dataset(Path(data), "train"), options)


def configured(
    data: str,
    model: str,
    source: Source,
    scale: str | None,
    recipe: Recipe | None,
    options: Mapping[str, Any],
    train: Mapping[str, Any],
    matched: bool,
    samples: int | None = None,
) -> tuple[RunConfig, Survey, Choice]:
    """What decides the outcome of a run, what its cases told, and why it was chosen; data is made.

    Of the training cases it sees the first `samples`, by default those of the scale, or all of a file.
    """
    problem = None if is_path(data) else get(data)
    for name, given in (("scale", scale), ("source", source == "official")):
        if problem is None and given:
            raise LrsaError(f"--{name} belongs to the benchmarks of the catalogue; {data} is a file")
    chosen = problem.scale(scale or "cpu") if problem else None
    if samples is not None and samples < 1:
        raise LrsaError(f"--samples must be at least 1, not {samples}")
    if chosen and samples is not None:
        chosen = replace(chosen, samples=samples, about=f"the first {samples} cases; {chosen.about}")
    recipe = recipe or default_recipe((scale or "cpu") if problem else None)
    settled(Choice(), recipe, options, train)  # refused before the data is made, which takes long
    check_sizes(options)
    seen = DataConfig(str(Path(data).resolve()), samples)
    if problem and chosen:
        path = data_for_scale(problem, chosen, source).resolve()
        seen = DataConfig(str(path), chosen.samples, chosen.test, chosen.stride[source])
    cases = Dataset(Path(seen.path), "train")
    if samples is not None and samples > len(cases):
        raise LrsaError(f"{seen.path} has {len(cases)} training cases, not {samples}. Lower --samples")
    if "u" not in cases:
        raise LrsaError(f"{seen.path} has no targets to learn")
    choose = partial(for_problem, problem, chosen) if problem and chosen else partial(for_data, cases)
    choice = choose(model)
    every, training = settled(choice, recipe, options, train)
    config = RunConfig(
        seen, cases.schema, model, every, training, recipe=recipe, scale=(scale or "cpu") if problem else None
    )
    survey = Survey.of(config)
    config = replace(_with_dimensions(config, survey.normaliser), weighted=survey.weighted)
    if problem is None and "loss" not in train and get_model(model).family != "fitted":
        targets = labels(cases.schema.names.targets, survey.normaliser.u_scale.shape[-1])
        choice = alike(choice, targets, survey.normaliser)
        config = replace(
            config, train=replace(config.train, loss=choice.train.get("loss", config.train.loss))
        )
    if matched:
        config = _matched(config, choose("lrsa").model, survey.normaliser)
    return config, survey, choice


def data_for_scale(problem: Problem, scale: Scale, source: Source) -> Path:
    """The file with the cases of a scale; what of the generated ones is not there yet is made."""
    if source == "official":
        if problem.official is None:
            raise LrsaError(f"{problem.name} has no official files. Leave out --source official")
        if not problem.official_path.exists():
            raise LrsaError(
                f"the official files of {problem.name} are not imported."
                f" Import them with `lrsa data import FOLDER --problem {problem.name}`"
            )
        return problem.official_path
    path = problem.path(scale.fidelity)
    new, total = not path.exists(), scale.samples + scale.test
    with bar(f"Making {problem.name}") as report:

        def progress(done: int, of: int, words: str) -> None:
            nonlocal new
            if new:  # said by the process that makes them, not by one that waits for it
                cost = problem.cost(scale.fidelity, total)
                console.print(
                    f"Making {total} cases of {problem.name} ({scale.fidelity}), once{cost}: {path}"
                )
                new = False
            report(done, of, words)

        make_dataset(problem, scale.samples, scale.test, scale.fidelity, progress=progress)
    return path


def _with_dimensions(config: RunConfig, normaliser: Normaliser) -> RunConfig:
    """The configuration with the sizes of the model that the data decides."""
    options = dict(config.options)
    conditioned = config.schema.protocol == "time-conditioned"
    if conditioned and "time" in model_options(config.model):
        options.setdefault("time", not options.get("time_axis", False))
    coordinates = len(normaliser.x_axes)
    options |= {"coord_dim": coordinates, "out_features": normaliser.u_shift.shape[-1]}
    features, g = normaliser.features_per_point, len(normaliser.g_shift)
    # What the model takes from the context is no feature of its points.
    needs = needs_of(create_model(config.model, **options, in_features=features + g + int(conditioned)))
    features += (0 if needs.globals else g) + int(conditioned and not (needs.time or needs.time_axis))
    coordinates += int(needs.time_axis)
    return replace(config, options={**options, "coord_dim": coordinates, "in_features": features})


def _matched(config: RunConfig, of_lrsa: Mapping[str, Any], normaliser: Normaliser) -> RunConfig:
    """The configuration at the width that gives the model the parameters of LRSA on this data."""
    ours = _with_dimensions(replace(config, model="lrsa", options=of_lrsa), normaliser).options
    width = matched_width(config.model, config.options, parameter_count("lrsa", ours))
    return replace(config, options={**config.options, "width": width})
