"""Metrics that a problem or a user names, spelled as in `words`: `mse:p@surface,gradient,spearman:max:p`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lrsa.errors import LrsaError, nearest
from lrsa.objectives.metrics import mean_of, relative_l2
from lrsa.objectives.words import Word, word
from lrsa.pointset import PointSet

Quantity = Callable[[PointSet, np.ndarray], float]
"""(case, its fields (..., N, o), predicted or true) -> a number of the whole case, such as its drag."""

NAMED = {
    "relative-l2": "‖û - u‖₂ / ‖u‖₂ of the named fields together; mean over cases",
    "mse": "mean of ((û - u) / σ)² over points and the named fields, σ the deviation of a field in training;"
    " mean over cases",
    "gradient": "‖∇û - ∇u‖₂ / ‖∇u‖₂ by central differences on a structured grid (L_g of the paper);"
    " mean over cases",
    "relative-error": "|q̂ - q| / |q| of a quantity q of the case; mean over cases",
    "spearman": "Spearman's rank correlation of the predicted and the true quantity over the cases",
}
OF_QUANTITIES = ("relative-error", "spearman")
"""Followed by the name of a quantity: `spearman:drag`, `spearman:max:p@surface`."""
REDUCTIONS: dict[str, Callable[[np.ndarray], float]] = {"mean": np.mean, "max": np.max, "min": np.min}
"""The quantities that all data has, each of one field: `max:p`."""


@dataclass(frozen=True)
class Answer:
    """A prediction beside the truth, both (..., N, o), of one case."""

    case: PointSet
    prediction: np.ndarray
    truth: np.ndarray
    targets: Sequence[str]
    scale: np.ndarray
    """(o,) deviation of each target in training."""

    def counted(self, word: Word) -> np.ndarray:
        """(..., N, o) bool: what the word is about."""
        found = word.counted(self.targets, self.case.u_mask, self.case.surface, np.array)
        return np.broadcast_to(True if found is None else found, self.truth.shape)


@dataclass(frozen=True)
class Metric:
    """One of them, for data of these targets."""

    word: Word
    quantities: Mapping[str, Quantity]

    @property
    def quantity(self) -> Word:
        """`max:p@surface` of `spearman:max:p@surface`."""
        name, *fields = self.word.fields
        return Word(name, tuple(fields), self.word.where)

    def check(self, targets: Sequence[str], case: PointSet) -> None:
        """Refuse data that it cannot be measured on."""
        grid = case.grid or ()
        if self.word.name == "gradient" and (len(grid) != case.x.shape[1] or min(grid) < 2):
            raise LrsaError('the metric "gradient" needs a structured grid of as many axes as coordinates')
        if self.word.name not in OF_QUANTITIES:
            return self.word.check(targets, case.surface is not None)
        name, known = self.quantity.name, (*REDUCTIONS, *self.quantities)
        if name not in known:
            there = ", ".join(known)
            raise LrsaError(f'"{self.word}": no quantity "{name}".{nearest(name, known)} There are: {there}')
        if name in self.quantities and (self.quantity.fields or self.quantity.where):
            raise LrsaError(f'"{self.word}": {name} takes neither fields nor points')
        if name in REDUCTIONS and len(self.quantity.fields) != 1:
            raise LrsaError(f'"{self.word}": {name} is that of one field, as in {name}:{targets[0]}')
        return self.quantity.check(targets, case.surface is not None)

    def of_case(self, answer: Answer) -> dict[str, float]:
        """What one case contributes: its value, or the quantity as predicted and as it is."""
        if self.word.name not in OF_QUANTITIES:
            return {str(self.word): CASEWISE[self.word.name](answer, self.word)}
        predicted, true = (self._quantity(answer, u) for u in (answer.prediction, answer.truth))
        return {f"{self.quantity}": predicted, f"{self.quantity}, true": true}

    def overall(self, cases: Sequence[Mapping[str, float]]) -> float:
        """Over all cases."""
        if self.word.name not in OF_QUANTITIES:
            return mean_of(case[str(self.word)] for case in cases)
        predicted, true = (
            np.array([case[f"{self.quantity}{more}"] for case in cases]) for more in ("", ", true")
        )
        if self.word.name == "spearman":
            return spearman(predicted, true)
        return mean_of(abs(p - t) / abs(t) if t else np.nan for p, t in zip(predicted, true, strict=True))

    def _quantity(self, answer: Answer, u: np.ndarray) -> float:
        if self.quantity.name in self.quantities:
            return float(self.quantities[self.quantity.name](answer.case, u))
        values = u[answer.counted(self.quantity)].astype(float)
        return float(REDUCTIONS[self.quantity.name](values)) if len(values) else np.nan


def metrics_of(
    text: str, targets: Sequence[str], case: PointSet, quantities: Mapping[str, Quantity] | None = None
) -> list[Metric]:
    """The metrics that are spelled so, if they can be measured on cases like this one."""
    made = [Metric(word, quantities or {}) for word in check_metrics(text)]
    for metric in made:
        metric.check(targets, case)
    return made


def check_metrics(text: str) -> list[Word]:
    """The words of a list of metrics; refuse what is none, whatever the data."""
    words = [word(part, "metric", NAMED) for part in text.split(",")] if text else []
    for each in words:
        if each.name in OF_QUANTITIES and not each.fields:
            raise LrsaError(f'"{each}" needs a quantity, as in {each}:max:p')
    return words


def spearman(a: np.ndarray, b: np.ndarray) -> float:
    """Pearson's correlation of the ranks of two (S,) arrays; NaN where all values of one agree."""
    from scipy.stats import rankdata  # takes half a second, and few ask for it

    return float(np.corrcoef(rankdata(a), rankdata(b))[0, 1]) if np.ptp(a) and np.ptp(b) else np.nan


def gradient(u: np.ndarray, x: np.ndarray, grid: tuple[int, ...]) -> np.ndarray:
    """∇u of fields (..., N, o) on a grid with the coordinates x (N, p): (..., N, o, p).

    With ξ the indices: ∂u/∂x = ∂u/∂ξ (∂x/∂ξ)⁻¹, by central differences, one-sided on the boundary.
    """
    n, p = x.shape
    steps, values = (
        np.stack([np.gradient(v.astype(float), axis=axis) for axis in range(-p - 1, -1)], axis=-1)
        for v in (x.reshape(*grid, p), u.reshape(*u.shape[:-2], *grid, u.shape[-1]))
    )
    return (values @ np.linalg.inv(steps)).reshape(*u.shape[:-2], n, u.shape[-1], p)


def _relative_l2(answer: Answer, word: Word) -> float:
    return relative_l2(answer.prediction, answer.truth, answer.counted(word))


def _mse(answer: Answer, word: Word) -> float:
    scale, counted = np.where(answer.scale > 0, answer.scale, 1), answer.counted(word)
    square = np.square((answer.prediction.astype(float) - answer.truth) / scale)
    return float(square[counted].mean()) if counted.any() else np.nan


def _gradient(answer: Answer, word: Word) -> float:
    case = answer.case
    if case.grid is None or (case.u_mask is not None and not case.u_mask.all()):  # neighbours are needed
        return np.nan
    slopes = [gradient(u, case.x, case.grid) for u in (answer.prediction, answer.truth)]
    return relative_l2(*slopes, known=answer.counted(word)[..., None])


CASEWISE: dict[str, Callable[[Answer, Word], float]] = {
    "relative-l2": _relative_l2,
    "mse": _mse,
    "gradient": _gradient,
}
"""Those of which each case has a value."""
