"""Protocols: taught with true frames, tested on its own; a padded batch is the mean of its cases."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from cases import make_case
from conftest import make_operator
from torch import Tensor

from lrsa.context import Context
from lrsa.data.batch import Batch, collate
from lrsa.errors import LrsaError
from lrsa.objectives.losses import relative_l2
from lrsa.objectives.protocols import Autoregressive, Protocol, Static, TimeConditioned, Windows, protocol
from lrsa.pointset import PointSet

FRAMES = 13
SIZES = (5, 9, 7)


def framed(seed: int, points: int, frames: int = FRAMES, **more: Any) -> PointSet:
    rng = np.random.default_rng(seed)
    u = rng.standard_normal((frames, points, 2)).astype(np.float32)
    return make_case(seed, points, ["f", "weights"], u=u, times=np.linspace(0, 1, frames), **more)


def double(batch: Batch) -> Batch:
    """The batch in float64, to compare beyond rounding."""

    def widen(value: Any) -> Any:
        return value.double() if isinstance(value, Tensor) and value.dtype == torch.float32 else value

    tensors = {name: widen(value) for name, value in vars(batch).items()}
    context = replace(batch.context, **{name: widen(value) for name, value in vars(batch.context).items()})
    return replace(batch, **{**tensors, "context": context})


def per_case(prediction: Tensor, truth: Tensor, batch: Batch) -> Tensor:
    return relative_l2(prediction, truth, batch.known)


def static_case(i: int) -> PointSet:
    mask = np.random.default_rng(i).random((SIZES[i], 2)) < 0.8
    return make_case(i, SIZES[i], ["f", "weights"], u_mask=mask)


EXAMPLES: dict[str, tuple[Callable[[int], PointSet], int, dict[str, Any]]] = {
    "static": (static_case, 2, {}),
    "autoregressive": (lambda i: framed(i, SIZES[i]), 2 + 10 * 2, {}),
    "time-conditioned": (lambda i: framed(i, SIZES[i]).frame(2 * i), 2, {"time": True}),
}


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.parametrize("weights", [False, True], ids=["plain", "weights"])
def test_a_padded_batch_has_the_mean_loss_and_gradient_of_its_cases(name: str, weights: bool) -> None:
    example, features, options = EXAMPLES[name]
    model = make_operator(in_features=features, **options)
    how, cases = protocol(name), [example(i) for i in range(3)]
    parameters = list(model.parameters())

    def loss_and_gradient(part: list[PointSet]) -> list[Tensor]:
        loss = how.loss(model, double(collate(part, weights)), per_case)
        gradients = torch.autograd.grad(loss, parameters, materialize_grads=True)
        return [loss.detach(), *gradients]

    whole = loss_and_gradient(cases)
    single = [loss_and_gradient([case]) for case in cases]
    for together, *each in zip(whole, *single, strict=True):
        torch.testing.assert_close(together, torch.stack(each).mean(0), rtol=1e-10, atol=1e-10)


def test_single_frames_have_the_loss_of_whole_cases_in_the_mean() -> None:
    model, single = make_operator(in_features=2 + 10 * 2), Windows()
    cases = [framed(i, 6) for i in range(2)]
    examples = [single.example(case, k) for case in cases for k in range(single.examples(case))]
    assert len(examples) == 2 * (FRAMES - 10)
    together = Autoregressive().loss(model, double(collate(cases)), per_case)
    apart = single.loss(model, double(collate(examples)), per_case)
    torch.testing.assert_close(together, apart, rtol=1e-10, atol=1e-10)


def test_teacher_forcing_is_a_loop_over_cases_and_steps_with_true_frames() -> None:
    model, how = make_operator(in_features=2 + 10 * 2), Autoregressive()
    cases = [framed(i, 6) for i in range(2)]
    losses = []
    for case in cases:
        one = double(collate([case]))
        assert one.u is not None
        assert one.f is not None
        for t in range(FRAMES - 10):
            window = torch.cat([one.f, *(one.u[:, t + k] for k in range(10))], dim=-1)
            frame = model(one.x, window, one.context)
            losses.append((frame - one.u[:, t + 10]).norm() / one.u[:, t + 10].norm())
    loss = how.loss(model, double(collate(cases)), per_case)
    torch.testing.assert_close(loss, torch.stack(losses).mean(), rtol=1e-12, atol=0)


def test_the_context_goes_along_with_every_step() -> None:
    """Three steps of two cases: the surrogate sees six, each with its own mask, weights, edges and so on."""
    cases = [framed(i, 5 + i, globals=np.array([i])) for i in range(2)]
    batch = collate(cases, weights=True)
    edges = torch.tensor([[0, 7], [1, 8]])
    batch = replace(batch, context=replace(batch.context, edges=edges, basis=torch.rand(2, 6, 3)))
    seen: list[Context] = []

    def surrogate(x: Tensor, f: Tensor | None, context: Context) -> Tensor:
        assert f is not None
        seen.append(context)
        return f[..., -2:]

    Autoregressive().loss(surrogate, batch, per_case)
    (context,) = seen
    for name in ("mask", "weights", "basis", "globals"):
        mine = getattr(batch.context, name)
        assert torch.equal(getattr(context, name), torch.cat([mine] * 3)), name
    assert context.edges is not None
    points = 2 * 6
    assert context.edges.tolist() == [[0, 7, 12, 19, 24, 31], [1, 8, 13, 20, 25, 32]]
    assert int(context.edges.max()) < 3 * points


def add_one(x: Tensor, f: Tensor | None, context: Context) -> Tensor:
    """The last frame of the window, plus one."""
    assert f is not None
    return f[..., -2:] + 1


@pytest.mark.parametrize("features", [True, False])
def test_a_roll_out_goes_on_from_its_own_predictions(features: bool) -> None:
    cases = [framed(i, 6) for i in range(2)]
    batch = collate([case if features else replace(case, f=None) for case in cases])
    how = Autoregressive()
    prediction = how.predict(add_one, batch)
    assert batch.u is not None
    assert prediction.shape == how.truth(batch).shape == (2, FRAMES - 10, 6, 2)
    for k in range(FRAMES - 10):
        torch.testing.assert_close(prediction[:, k], batch.u[:, 9] + k + 1)


def test_a_roll_out_never_looks_at_the_frames_it_predicts() -> None:
    case = framed(0, 6)
    spoilt = replace(case, u=np.concatenate([case.arrays()["u"][:10], np.full((3, 6, 2), np.nan)]))
    how = Autoregressive()
    one, other = (how.predict(add_one, collate([c])) for c in (case, spoilt))
    assert torch.equal(one, other)
    inputs = how.inputs(case)
    assert inputs.arrays()["u"].shape == (10, 6, 2)
    assert inputs.arrays()["times"].shape == (10,)


@pytest.mark.parametrize("name", ["static", "time-conditioned"])
def test_inputs_hold_no_answers(name: str) -> None:
    inputs = protocol(name).inputs(framed(0, 6))
    assert inputs.u is None
    assert inputs.times is None
    assert inputs.f is not None


def test_each_time_of_a_case_is_one_example() -> None:
    how, case = TimeConditioned(), framed(0, 6, frames=4)
    assert how.examples(case) == 4
    for index in range(4):
        example = how.example(case, index)
        assert np.array_equal(example.arrays()["u"], case.arrays()["u"][index])
        assert example.time == case.arrays()["times"][index]
    assert Static().examples(make_case(0, 4)) == Autoregressive().examples(case) == 1


def test_a_time_conditioned_surrogate_is_asked_for_each_time_of_each_case() -> None:
    """Cases with times of their own; the surrogate answers with the time."""
    cases = [replace(framed(i, 6, frames=4), times=np.arange(4) + 10.0 * i) for i in range(2)]

    def surrogate(x: Tensor, f: Tensor | None, context: Context) -> Tensor:
        assert context.time is not None
        return context.time[:, None, None].expand(len(x), x.shape[1], 2)

    how = TimeConditioned()
    prediction = how.predict(surrogate, collate(cases))
    assert prediction.shape == how.truth(collate(cases)).shape == (2, 4, 6, 2)
    expected = torch.tensor([[0.0, 1, 2, 3], [10, 11, 12, 13]])
    assert torch.equal(prediction, expected[:, :, None, None].expand(2, 4, 6, 2))
    examples = collate([how.example(case, 3) for case in cases])
    assert examples.u is not None
    wanted = (torch.tensor([3.0, 13])[:, None, None] - examples.u).flatten(1).norm(dim=1)
    loss = how.loss(surrogate, examples, per_case)
    torch.testing.assert_close(loss, (wanted / examples.u.flatten(1).norm(dim=1)).mean())


@pytest.mark.parametrize(
    ("how", "case", "words"),
    [
        (Static(), framed(0, 4), "its protocol is static"),
        (Autoregressive(), make_case(0, 4), "more than 10 frames in time, not 0"),
        (Autoregressive(), framed(0, 4, frames=10), "more than 10 frames in time, not 10"),
    ],
    ids=["frames for static", "no frames", "too few frames"],
)
def test_data_of_another_protocol_is_refused(how: Protocol, case: PointSet, words: str) -> None:
    batch = collate([case])
    with pytest.raises(LrsaError, match=words):
        how.loss(add_one, batch, per_case)
    with pytest.raises(LrsaError, match=words):
        how.predict(add_one, batch)


def test_a_case_without_times_is_no_time_conditioned_one() -> None:
    with pytest.raises(LrsaError, match="needs frames in time"):
        TimeConditioned().examples(make_case(0, 4))


def test_an_unknown_protocol_is_named_with_the_nearest() -> None:
    assert type(protocol("static")) is Static
    with pytest.raises(LrsaError, match=r'no protocol "autoregresive"\. Did you mean autoregressive\?'):
        protocol("autoregresive")
