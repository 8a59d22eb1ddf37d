"""What is computed once when the training is over: members of an ensemble, their calibration, the novelty."""

import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from lrsa.console import console
from lrsa.errors import LrsaError
from lrsa.objectives.named import Quantity
from lrsa.surrogate.calibration import FILE as CALIBRATION
from lrsa.surrogate.calibration import Calibration, calibrate
from lrsa.surrogate.ensemble import member_folder
from lrsa.surrogate.novelty import FILE as NOVELTY
from lrsa.surrogate.novelty import Novelty
from lrsa.surrogate.quantities import keyed_quantities, problem_quantities
from lrsa.surrogate.ranges import FILE as RANGES
from lrsa.surrogate.subsets import subset_size
from lrsa.surrogate.surrogate import Surrogate, load
from lrsa.training.config import RunConfig
from lrsa.training.survey import FILE as SURVEY
from lrsa.training.survey import split_cases

MEMBERS = 64
"""The most that an ensemble has."""
HELD_OUT = 0.2
"""Share of the training cases that an ensemble keeps for the calibration, unless it is told otherwise."""


def check_ensemble(members: int) -> None:
    if not 1 <= members <= MEMBERS:
        raise LrsaError(f"--ensemble takes 1 to {MEMBERS} members, not {members}")


def begin_member(run: Path, config: RunConfig, index: int) -> Path:
    """The folder of a member of the ensemble in `run`, made where it is not there yet."""
    folder = member_folder(run, index)
    if not (folder / "config.json").exists():
        folder.mkdir(parents=True, exist_ok=True)
        for name in (SURVEY, RANGES):
            if (run / name).exists():
                shutil.copyfile(run / name, folder / name)
        seed = config.train.seed + index
        replace(config, train=replace(config.train, seed=seed), ensemble=1, member=index).begin(folder)
    return folder


def train_members(run: Path, config: RunConfig, train: Callable[[Path], object]) -> None:
    """Train those members that follow the first, or go on with them."""
    for index in range(1, config.ensemble):
        folder = begin_member(run, config, index)
        if not (folder / "last.safetensors").exists():
            console.print(f"Member {index + 1} of {config.ensemble}, seed {config.train.seed + index}")
            train(folder)


def conclude(run: Path, config: RunConfig) -> None:
    """Novelty and calibration, where they are not there yet."""
    if not (run / NOVELTY).exists():
        surrogate = load(run)
        training, _ = split_cases(config)
        novelty = Novelty.of(surrogate, training)
        if novelty is not None:
            novelty.save(run)
    if not (run / CALIBRATION).exists() and (config.ensemble > 1 or config.train.quantities):
        theirs = problem_quantities(config.schema.name, config.train.metrics)
        found = calibrated(config, load(run), {**theirs, **keyed_quantities(config.train.quantities)})
        if found is not None:
            found.save(run)


def calibrated(
    config: RunConfig, surrogate: Surrogate, quantities: Mapping[str, Quantity]
) -> Calibration | None:
    """By the validation cases of a run, of quantities by definition; None where it has none."""
    _, validation = split_cases(config)
    return calibrate(surrogate, validation, quantities, subset_size(surrogate, config.train.points))
