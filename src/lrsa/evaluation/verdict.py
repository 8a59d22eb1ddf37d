"""How a surrogate stands to the simple rules, and what to do where one of them is better."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from lrsa.evaluation.fitted import POD, RADIAL
from lrsa.evaluation.outcome import Evaluation
from lrsa.models.registry import get
from lrsa.training.config import RunConfig, TrainConfig

CLEARLY = 1.05
"""By this factor the error must be smaller than that of the best null baseline."""
ALIKE = "A loss that adds their errors, as --train.loss mse, lets all fields count alike"
FITTED = {RADIAL: "pod-rbf", POD: "pod-rbf"}
"""The model that a null baseline is, where it is one."""


@dataclass(frozen=True)
class Verdict:
    """A sentence, and another where something else is to be done."""

    text: str
    learned: bool
    cure: str = ""


def verdict(config: RunConfig, evaluation: Evaluation) -> Verdict | None:
    """Beside the best of the null baselines; a model that is one of them is not compared with itself."""
    own = get(config.model).family == "fitted"
    nulls = {k: v for k, v in evaluation.nulls.items() if not math.isnan(v) and not (own and k in FITTED)}
    if not evaluation.fields or not nulls or math.isnan(evaluation.relative_l2):
        return None
    name, best = min(nulls.items(), key=lambda item: item[1])
    ratio = best / evaluation.relative_l2 if evaluation.relative_l2 else math.inf
    if ratio >= CLEARLY:
        worse = _worse(evaluation, list(nulls))
        but = f", but larger than that of one for {', '.join(worse)}" if worse else ""
        said = f"{ratio:.2g} times smaller than the best null baseline ({name}){but}."
        return Verdict(said, True, ALIKE if worse and config.train.loss == TrainConfig.loss else "")
    text = f"Not clearly better than a null baseline ({name}, {best:.2g}): little was learned."
    return Verdict(text, False, _cure(config, name))


def _worse(evaluation: Evaluation, nulls: Sequence[str]) -> list[str]:
    """The fields for which one of the null baselines is better: in one norm a small field does not show."""
    return [
        field
        for field, errors in evaluation.fields.items()
        if any(errors["relative_l2"] > CLEARLY * evaluation.null_fields[field][null] for null in nulls)
    ]


def _cure(config: RunConfig, name: str) -> str:
    data = config.data.path
    if config.scale is not None:
        official = " --source official" if config.schema.source == "official" else ""
        data = f"{config.schema.name} --scale {config.scale}{official}"
    if name in FITTED:
        return f"Use it: `lrsa train {data} --model {FITTED[name]}`"
    other = "More cases help most"
    return other if config.scale is not None else f"`lrsa tune {data}` tries others. {other}"
