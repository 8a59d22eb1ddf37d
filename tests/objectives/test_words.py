"""Losses and metrics by name: each is its plain formula on ragged, masked, surface-flagged cases."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from cases import make_case
from conftest import assert_same, make_operator
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr
from torch import Tensor

import lrsa
from lrsa.data.batch import collate
from lrsa.errors import LrsaError
from lrsa.objectives.losses import loss_of
from lrsa.objectives.named import Answer, Metric, check_metrics, gradient, metrics_of
from lrsa.objectives.words import word
from lrsa.pointset import PointSet
from lrsa.training.config import TrainConfig

TARGETS = ("p", "T")
SCALE = np.array([2.0, 0.1])
AIRFRANS = "mse@volume+mse@surface"
CAR = "mse:T + 0.5*mse:p@surface"


def cases_of(seed: int, fields: Sequence[str] = ("u_mask", "surface")) -> list[PointSet]:
    return [make_case(seed + i, n, fields) for i, n in enumerate((5, 9, 7))]


def chosen(case: PointSet, fields: str = "pT", where: str = "") -> np.ndarray:
    """(N, o) what a word is about, point by point."""
    assert case.u is not None
    made = np.zeros(case.u.shape[-2:], bool)
    for i, c in np.ndindex(made.shape):
        known = case.u_mask is None or case.u_mask[i, c]
        here = not where or bool(case.surface[i]) == (where == "surface")  # pyright: ignore[reportOptionalSubscript]
        made[i, c] = known and here and TARGETS[c] in fields
    return made


def mean_square(p: np.ndarray, case: PointSet, *about: str) -> float:
    assert case.u is not None
    squares = [((p - case.u) / SCALE)[i, c] ** 2 for i, c in np.argwhere(chosen(case, *about))]
    return math.fsum(squares) / len(squares) if squares else 0.0


def relative(p: np.ndarray, case: PointSet, *about: str) -> float:
    assert case.u is not None
    where, u = chosen(case, *about), case.u.astype(float)
    return float(np.linalg.norm((p - u)[where]) / np.linalg.norm(u[where])) if where.any() else math.nan


FORMULAE: dict[str, Any] = {
    "mse": mean_square,
    "relative-l2": relative,
    "mse:T": lambda p, case: mean_square(p, case, "T"),
    "mse@surface": lambda p, case: mean_square(p, case, "pT", "surface"),
    "relative-l2:p:T@volume": lambda p, case: relative(p, case, "pT", "volume"),
    AIRFRANS: lambda p, case: mean_square(p, case, "pT", "volume") + mean_square(p, case, "pT", "surface"),
    CAR: lambda p, case: mean_square(p, case, "T") + 0.5 * mean_square(p, case, "p", "surface"),
}


def predicted(cases: Sequence[PointSet]) -> list[np.ndarray]:
    rng = np.random.default_rng(9)
    return [rng.standard_normal((len(case), 2)) for case in cases]


def loss_on(text: str, cases: Sequence[PointSet], predictions: Sequence[np.ndarray]) -> Tensor:
    """(B,) in double precision, of a padded batch; nonsense stands at the points that are none."""
    batch = collate(cases)
    assert batch.u is not None
    prediction = torch.full(batch.u.shape, 1e6, dtype=torch.float64)
    for row, p in zip(prediction, predictions, strict=True):
        row[: len(p)] = torch.from_numpy(p)
    return loss_of(text, TARGETS, torch.from_numpy(SCALE))(prediction, batch.u.double(), batch)


@pytest.mark.parametrize("text", FORMULAE)
@given(seed=st.integers(0, 99), masked=st.booleans())
def test_each_loss_is_its_formula(text: str, seed: int, masked: bool) -> None:
    cases = cases_of(seed, ("u_mask", "surface") if masked else ("surface",))
    predictions = predicted(cases)
    expected = [FORMULAE[text](p, case) for p, case in zip(predictions, cases, strict=True)]
    found = loss_on(text, cases, predictions)
    for ours, theirs in zip(found.tolist(), expected, strict=True):
        if not math.isnan(theirs):  # nothing is known of it
            assert ours == pytest.approx(theirs, rel=1e-10)


@pytest.mark.parametrize("text", ["mse", AIRFRANS, CAR])
@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_the_unit_of_a_target_does_not_matter(text: str, unit: float) -> None:
    """Prediction, truth and deviation in other units: the error of normalised targets is the same."""
    p, u = torch.randn(2, 3, 7, 2, dtype=torch.float64)
    batch = replace(collate([make_case(i, 7, ["surface"]) for i in range(3)]), u=u)
    units, scale = torch.tensor([unit, 1.0], dtype=torch.float64), torch.from_numpy(SCALE)
    ours = loss_of(text, TARGETS, scale * units)(p * units, u * units, batch)
    torch.testing.assert_close(ours, loss_of(text, TARGETS, scale)(p, u, batch))


def test_a_target_that_is_constant_in_training_has_a_finite_error() -> None:
    p, u = torch.zeros(1, 4, 2), torch.ones(1, 4, 2)
    loss = loss_of("mse", TARGETS, torch.tensor([0.0, 1.0]))(p, u, collate([make_case(0, 4)]))
    assert loss.item() == 1.0


@pytest.mark.parametrize("text", ["mse", AIRFRANS, CAR])
@pytest.mark.parametrize("fields", [("f", "surface"), ("f", "surface", "u_mask", "weights")])
def test_gradients_by_chunks_are_those_of_the_whole(text: str, fields: Sequence[str]) -> None:
    model, cases = make_operator(in_features=2), [make_case(i, n, fields) for i, n in enumerate((11, 19))]
    batch = collate(cases, weights=True)
    loss = loss_of(text, TARGETS, torch.from_numpy(SCALE))
    context = replace(
        batch.context, weights=None if batch.context.weights is None else batch.context.weights.double()
    )
    assert batch.f is not None
    assert batch.u is not None
    inputs = (batch.x.double(), batch.f.double(), context)
    whole, chunked = (
        torch.autograd.grad(loss(u, batch.u.double(), batch).mean(), list(model.parameters()))
        for u in (model(*inputs), lrsa.stream(model, *inputs, chunk=4))
    )
    for ours, theirs in zip(chunked, whole, strict=True):
        assert_same(ours, theirs, 1e-10)


def answer_of(case: PointSet, p: np.ndarray) -> Answer:
    assert case.u is not None
    return Answer(case, p, case.u, TARGETS, SCALE)


def value(text: str, answers: Sequence[Answer], **quantities: Any) -> float:
    (metric,) = metrics_of(text, TARGETS, answers[0].case, quantities)
    return metric.overall([metric.of_case(answer) for answer in answers])


@pytest.mark.parametrize("text", [text for text in FORMULAE if "+" not in text])
def test_a_metric_is_the_mean_of_the_loss_of_the_same_name(text: str) -> None:
    cases = cases_of(3)
    predictions = predicted(cases)
    answers = [answer_of(case, p) for case, p in zip(cases, predictions, strict=True)]
    assert value(text, answers) == pytest.approx(loss_on(text, cases, predictions).mean().item(), rel=1e-10)


def test_a_case_of_which_nothing_is_known_does_not_count() -> None:
    cases = [replace(case, surface=np.full(len(case), i > 0)) for i, case in enumerate(cases_of(3))]
    answers = [answer_of(case, p) for case, p in zip(cases, predicted(cases), strict=True)]
    for name in ("mse@surface", "relative-l2@surface"):
        assert value(name, answers) == value(name, answers[1:])


def curved(n: int) -> PointSet:
    """A smooth grid that is neither straight nor even, with p = x² y and T = sin x."""
    a, b = np.meshgrid(np.linspace(0, 1, n), np.linspace(0, 1, n), indexing="ij")
    x = np.stack([a + 0.2 * b**2, b + 0.3 * np.sin(2 * a)], -1).reshape(-1, 2)
    u = np.stack([x[:, 0] ** 2 * x[:, 1], np.sin(x[:, 0])], -1)
    return PointSet(x, u=u, grid=(n, n))


def test_gradients_on_a_curved_grid_are_exact_for_linear_fields_and_of_second_order_inside() -> None:
    case = curved(8)
    slopes = gradient(case.x @ np.array([[2.0, 0], [3, -1]]), case.x, (8, 8))
    np.testing.assert_allclose(slopes, np.broadcast_to([[2.0, 3], [0, -1]], slopes.shape), atol=1e-10)
    errors = []
    for n in (17, 33):
        case = curved(n)
        assert case.u is not None
        x, y = case.x.T
        exact = np.stack([np.stack([2 * x * y, x**2], -1), np.stack([np.cos(x), 0 * x], -1)], 1)
        error = (gradient(case.u, case.x, (n, n)) - exact).reshape(n, n, 2, 2)
        errors.append(np.abs(error[1:-1, 1:-1]).max())
    assert math.log2(errors[0] / errors[1]) > 1.8


def test_the_gradient_metric_sees_slopes_and_no_level() -> None:
    case = curved(9)
    assert case.u is not None
    assert value("gradient", [answer_of(case, case.u + 5.0)]) == pytest.approx(0, abs=1e-12)
    assert value("gradient:p", [answer_of(case, 1.25 * case.u)]) == pytest.approx(0.25)
    frames = PointSet(case.x, u=np.stack([case.u, 2 * case.u]), times=np.arange(2.0), grid=case.grid)
    assert frames.u is not None
    assert value("gradient", [answer_of(frames, 0.5 * frames.u)]) == pytest.approx(0.5)


def test_quantities_are_ranked_and_compared_over_the_cases() -> None:
    cases = [make_case(i, 6, ["surface"]) for i in range(8)]
    for case in cases:
        assert case.surface is not None
        case.surface[0] = True
    answers = [answer_of(case, p) for case, p in zip(cases, predicted(cases), strict=True)]

    def highest(u: np.ndarray, case: PointSet) -> float:
        return max(u[i, 0] for i in range(6) if case.surface[i])  # pyright: ignore[reportOptionalSubscript]

    ours = [highest(a.prediction, a.case) for a in answers]
    theirs = [highest(a.truth, a.case) for a in answers]
    rho: Any = spearmanr(ours, theirs)
    assert value("spearman:max:p@surface", answers) == pytest.approx(rho.statistic)
    error = np.mean([abs(a - b) / abs(b) for a, b in zip(ours, theirs, strict=True)])
    assert value("relative-error:max:p@surface", answers) == pytest.approx(error)

    def drag(case: PointSet, u: np.ndarray) -> float:
        return float(case.x[:, 0] @ u[:, 1]) + 7

    rising = [replace(answer, prediction=np.exp(0.1 * i) * answer.truth) for i, answer in enumerate(answers)]
    assert value("spearman:drag", [replace(a, prediction=a.truth) for a in rising], drag=drag) == 1
    assert value("relative-error:drag", [replace(a, prediction=a.truth) for a in rising], drag=drag) == 0
    assert math.isnan(value("spearman:drag", answers, drag=lambda case, u: 1.0))
    assert math.isnan(value("relative-error:drag", answers, drag=lambda case, u: 0.0))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"loss": "mze"}, 'no loss "mze". Did you mean mse? There are: relative-l2, mse'),
        ({"loss": ""}, 'no loss "". There are: relative-l2, mse'),
        ({"loss": "mse@wall"}, '"mse@wall": the points are those @surface or @volume, not @wall'),
        ({"loss": "mse:"}, '"mse:": a field has no name. Write it as in mse:p'),
        ({"loss": "two*mse"}, '"two*mse": a weight is a positive number, as in 0.5*mse'),
        ({"loss": "mse+-1*mse:p"}, '"-1*mse:p": a weight is a positive number, as in 0.5*mse'),
        ({"metrics": "spearmen:max:p"}, 'no metric "spearmen". Did you mean spearman?'),
        ({"metrics": "mse,spearman"}, '"spearman" needs a quantity, as in spearman:max:p'),
    ],
)
def test_what_is_no_loss_or_metric_is_refused_in_one_line(settings: dict[str, str], words: str) -> None:
    with pytest.raises(LrsaError) as error:
        TrainConfig(**settings)  # pyright: ignore[reportArgumentType]
    assert str(error.value).startswith(words)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("mse:pp", '"mse:pp": no target "pp". Did you mean p? There are: p, T'),
        ("mse@surface", '"mse@surface" needs to know which points are on the surface'),
        ("gradient", 'the metric "gradient" needs a structured grid of as many axes as coordinates'),
        (
            "spearman:drog",
            '"spearman:drog": no quantity "drog". Did you mean drag? There are: mean',
        ),
        ("spearman:drag:p", '"spearman:drag:p": drag takes neither fields nor points'),
        ("spearman:max", '"spearman:max": max is that of one field, as in max:p'),
        ("spearman:max:q", '"max:q": no target "q"'),
    ],
)
def test_data_that_a_metric_cannot_be_measured_on_is_refused(text: str, words: str) -> None:
    with pytest.raises(LrsaError) as error:
        metrics_of(text, TARGETS, make_case(0, 5), {"drag": lambda case, u: 0.0})
    assert str(error.value).startswith(words)


def test_words_are_spelled_back_as_typed() -> None:
    for text in ("mse", "mse:p:T@surface", "gradient@volume", "spearman:max:p@surface"):
        assert [str(each) for each in check_metrics(text)] == [text]
    assert Metric(word("spearman:max:p@surface", "metric", ["spearman"]), {}).quantity.fields == ("p",)
