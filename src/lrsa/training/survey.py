"""The cases of a run: which it sees, and all that one pass over them tells before the first step."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from safetensors import SafetensorError
from safetensors.torch import load_file

from lrsa.data.batch import evenly_weighted
from lrsa.data.normalise import Normaliser, Statistics
from lrsa.data.store import Selection
from lrsa.errors import LrsaError
from lrsa.objectives.protocols import protocol
from lrsa.surrogate.ranges import Ranges
from lrsa.training.checkpoint import write_tensors
from lrsa.training.config import RunConfig

FILE = "normaliser.safetensors"


@dataclass(frozen=True)
class Survey:
    """Of the training cases: their normalisation, their ranges, whether their weights differ."""

    normaliser: Normaliser
    ranges: Ranges
    weighted: bool

    @staticmethod
    def of(config: RunConfig) -> "Survey":
        """One pass over the training cases, which are checked on the way."""
        cases, _ = split_cases(config)
        asked = config.train
        statistics = Statistics(asked.statistics, deviations=asked.deviations, change=asked.change)
        ranges, weighted = Ranges({}), False
        for i, case in enumerate(cases):
            case.check_finite(cases.label(i))
            statistics.add(case)
            ranges = ranges.widened(case)
            weighted = weighted or not evenly_weighted([case])
        history = protocol(config.schema.protocol).history
        normaliser = statistics.normaliser(history, config.train.coordinates)
        return Survey(normaliser, ranges, weighted and config.train.weights)

    def save(self, run: Path) -> None:
        """Keep it, so that the training and its continuation need no pass of their own."""
        write_tensors(run / FILE, self.normaliser.state_dict())
        self.ranges.save(run)


def normaliser_of(run: Path, config: RunConfig) -> Normaliser:
    """The normalisation that was kept with a run; of older runs it is computed again."""
    if not (run / FILE).exists():
        survey = Survey.of(config)
        survey.ranges.save(run)
        return survey.normaliser
    try:
        return Normaliser.holding(load_file(run / FILE))
    except (SafetensorError, OSError, KeyError, RuntimeError) as error:
        raise LrsaError(f"{run / FILE} is damaged: remove it, and it is computed again") from error


def split_cases(config: RunConfig) -> tuple[Selection, Selection]:
    """Training and validation cases; the test cases are never seen."""
    data = config.dataset("train")
    count = min(config.data.samples or len(data), len(data))
    order = np.random.default_rng(config.train.seed - config.member).permutation(count)
    share = config.train.validation
    kept = min(max(1, round(share * count)), count - 1) if share else 0
    return (
        Selection(data, np.sort(order[kept:]), config.data.stride),
        Selection(data, np.sort(order[:kept]), config.data.stride),
    )
