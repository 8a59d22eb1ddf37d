"""What fits into the minutes of a run: the size of its model, and the number of its steps."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from lrsa.data.normalise import Normaliser
from lrsa.errors import LrsaError
from lrsa.training.assemble import trainer_of
from lrsa.training.budget import ENOUGH, TIMED, WARM, Pace, duration
from lrsa.training.choose import Level
from lrsa.training.config import RunConfig


def sized(run: Path, config: RunConfig, levels: Sequence[Level], normaliser: Normaliser) -> RunConfig:
    """The configuration at the last of the levels, from cheap to dear, at which there are enough steps."""
    if config.train.minutes is None:
        return config
    chosen = config
    for options, train in levels:
        dearer = replace(config, options={**config.options, **options}, train=replace(config.train, **train))
        if dearer == chosen:
            continue
        try:
            enough = timed_run(run, dearer, normaliser).allowed >= ENOUGH
        except LrsaError:  # it does not go with what was typed, such as heads that do not divide the width
            break
        if not enough:
            break
        chosen = dearer
    return chosen


def resized(config: RunConfig, factors: Mapping[str, float]) -> RunConfig:
    """The configuration with some sizes of the model multiplied, such as twice the rank; none becomes 0."""
    sizes = {name: max(1, round(factor * config.options[name])) for name, factor in factors.items()}
    return replace(config, options={**config.options, **sizes})


def untyped(levels: Sequence[Level], options: Mapping[str, Any], train: Mapping[str, Any]) -> list[Level]:
    """The levels without what was typed, which stands."""
    return [
        (
            {k: v for k, v in of_model.items() if k not in options},
            {k: v for k, v in of_run.items() if k not in train},
        )
        for of_model, of_run in levels
    ]


@dataclass(frozen=True)
class Timed:
    """How a run fits into its minutes."""

    config: RunConfig
    """With the epochs, the steps of each and the validations that were settled."""
    steps: int
    """Of an epoch."""
    seconds: float
    allowed: int
    """Steps for which there is time, whatever the epochs."""

    @property
    def words(self) -> str:
        """What is said of the time that it takes."""
        finish = datetime.now() + timedelta(seconds=self.seconds)
        when = f"{finish:%H:%M}" if self.seconds < 12 * 3600 else f"{finish:%Y-%m-%d %H:%M}"
        members = f"{self.config.ensemble} members of " if self.config.ensemble > 1 else ""
        epochs = f"{members}{self.config.train.epochs} epochs of {self.steps} steps"
        return f"{epochs} take about {duration(self.seconds)}: until {when}"


def timed_run(run: Path, config: RunConfig, normaliser: Normaliser) -> Timed:
    """The configuration with the epochs that its minutes allow, by steps that are measured."""
    # Enough epochs for the steps that are measured, whatever the schedule will be.
    trial = trainer_of(run, replace(config, train=replace(config.train, epochs=WARM + TIMED)), normaliser)
    pace, train, steps = Pace.of(trial), config.train, trial.steps
    within = train.epochs
    if train.minutes is not None:
        every = max(train.every, pace.every(trial.steps))
        within, steps = pace.within(train.minutes / config.ensemble, trial.steps, every)
        cut = steps if steps < trial.steps else train.steps
        train = replace(train, epochs=min(train.epochs, within), steps=cut, every=every)
    seconds = pace.seconds(train.epochs, steps, train.every) * config.ensemble
    return Timed(replace(config, train=train), steps, seconds, within * steps)
