"""Training by chunks: the gradient of the whole point set, in memory that grows by the features alone."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from conftest import HEADS, KINDS, RANK, WIDTH, assert_same, make_operator, make_points
from torch import Tensor

import lrsa
from lrsa.context import Context
from lrsa.errors import LrsaError
from lrsa.models.registry import model_options
from lrsa.objectives.losses import relative_l2
from lrsa.surrogate.surrogate import streams

BOTH = ("transolver", "transolver-plus", "linear-no", "hpm", "galerkin", "flare")
STREAMING = ("lrsa", "perceiver-io", "lno", "backbone-norm", *BOTH, *(f"backbone-{name}" for name in BOTH))


def test_every_model_that_streams_is_tested_here() -> None:
    assert {name for name in lrsa.list_models() if streams(small(name))} == set(STREAMING)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", STREAMING)
def test_gradients_by_chunks_are_those_of_the_whole(name: str, kind: str) -> None:
    """Of all parameters, the coordinates, the features, the weights and the basis; 19 points, 5 at a time."""
    model, points = small(name), make_points(2, 19)
    basis = torch.randn(2, 19, 6, dtype=torch.float64)

    def gradients(run: Callable[..., Tensor]) -> list[Tensor | None]:
        leaves = points.leaves()
        functions = basis.clone().requires_grad_()
        context = replace(leaves.context(kind), basis=functions)
        known = points.mask[..., None] if "mask" in kind else None
        u = run(leaves.x, leaves.f, context)
        loss = relative_l2(u, torch.ones_like(u), known).mean()
        wanted = [*model.parameters(), leaves.x, leaves.f, leaves.weights, functions]
        return list(torch.autograd.grad(loss, wanted, allow_unused=True))

    whole = gradients(model)
    chunked = gradients(lambda *inputs: lrsa.stream(model, *inputs, chunk=5))
    assert sum(g is not None for g in whole) > len(list(model.parameters())) // 2
    for ours, theirs in zip(chunked, whole, strict=True):
        assert_same(zero(ours), zero(theirs), 1e-10)


@pytest.mark.parametrize("name", STREAMING)
def test_gradients_by_chunks_are_right_to_rounding_in_fp32(name: str) -> None:
    model, points = small(name).float(), make_points(1, 700)
    x, f, basis = points.x.float(), points.f.float(), torch.randn(1, 700, 6)
    context = Context(weights=points.weights.float(), basis=basis)

    def gradient(run: Callable[..., Tensor]) -> Tensor:
        loss = relative_l2(run(x, f, context), torch.sin(3 * x)).mean()
        return torch.cat([g.flatten() for g in torch.autograd.grad(loss, list(model.parameters()))])

    whole = gradient(model)
    chunked = gradient(lambda *inputs: lrsa.stream(model, *inputs, chunk=90))
    assert float((chunked - whole).norm() / whole.norm()) < 1e-5


def test_the_gradient_arrives_as_from_any_other_loss() -> None:
    """In `.grad`, added to what is there; nothing for a frozen parameter; of the time too; twice if asked."""
    model, points = make_operator(time=True), make_points(2, 11)
    model.lift_ffn.requires_grad_(False)
    times = [torch.tensor([0.3, 2.0], dtype=torch.float64, requires_grad=True) for _ in range(2)]
    lrsa.stream(model, points.x, points.f, Context(time=times[0]), chunk=4).square().sum().backward()
    ours = {name: p.grad for name, p in model.named_parameters()}
    model.zero_grad()
    loss = model(points.x, points.f, Context(time=times[1])).square().sum()
    loss.backward()
    for name, p in model.named_parameters():
        assert (ours[name] is None) == (p.grad is None) == name.startswith("lift_ffn"), name
        assert_same(zero(ours[name]), zero(p.grad), 1e-10)
    assert_same(zero(times[0].grad), zero(times[1].grad), 1e-10)
    loss = lrsa.stream(model, points.x, points.f, Context(time=times[1]), chunk=4).square().sum()
    loss.backward(retain_graph=True)
    loss.backward()
    for name, p in model.named_parameters():
        assert_same(zero(p.grad), 3 * zero(ours[name]), 1e-10)


def test_what_is_kept_grows_with_the_points_by_the_features_of_each_block_alone() -> None:
    """L (B, N, d) tensors, inputs and outputs, and a few partials a chunk; all else is of one chunk."""
    depth, chunk = 3, 40
    model = make_operator(depth=depth)

    def growth(run: Callable[..., Tensor]) -> float:
        return (peak_of_saved(run, 400) - peak_of_saved(run, 200)) / 200

    features, inputs, outputs, partial = depth * WIDTH, 2 + 1, 2, RANK * (WIDTH + 2 * HEADS)
    chunked = growth(lambda *inputs: lrsa.stream(model, *inputs, chunk=chunk))
    assert features <= chunked <= features + inputs + outputs + 3 * partial / chunk
    assert growth(model) > 10 * chunked


def test_parameters_changed_before_the_backward_pass_are_noticed() -> None:
    model, points = make_operator(), make_points(1, 9)
    loss = lrsa.stream(model, points.x, points.f, chunk=4).sum()
    with torch.no_grad():
        next(model.head.parameters()).mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_chunks_are_computed_again_in_the_precision_of_the_forward_pass() -> None:
    """And weights that were cast without a graph do not lose their gradient."""
    model, points = make_operator(depth=1).float(), make_points(1, 60)
    x, f = points.x.float(), points.f.float()

    def gradients(run: Callable[..., Tensor]) -> list[Tensor]:
        with torch.autocast("cpu", torch.bfloat16):
            loss = run(x, f).float().square().mean()
        return list(torch.autograd.grad(loss, list(model.parameters())))

    whole, chunked = gradients(model), gradients(lambda *inputs: lrsa.stream(model, *inputs, chunk=25))
    exact = torch.autograd.grad(model(x, f).square().mean(), list(model.parameters()))
    flat = [torch.cat([g.flatten() for g in gradient]) for gradient in (whole, chunked, exact)]
    ours, theirs = (float((g - flat[2]).norm() / flat[2].norm()) for g in flat[1::-1])
    assert 1e-4 < ours < 2 * theirs


def test_a_mixer_that_needs_its_grid_refuses() -> None:
    model, points = small("backbone-fno"), make_points(1, 36)
    with pytest.raises(LrsaError, match="cannot stream: FourierMix needs all points of its grid"):
        lrsa.stream(model, points.x, points.f, Context(grid=(6, 6)), chunk=6)


def test_a_model_without_low_rank_blocks_refuses() -> None:
    points = make_points(1, 9)
    with pytest.raises(LrsaError, match="cannot stream: DeepONet needs all points at once"):
        lrsa.stream(small("deeponet"), points.x, points.f)


def small(name: str) -> Any:
    """A model of that name in eval mode, all parameters off their initial values."""
    sizes = {"width": WIDTH, "depth": 2, "heads": 4, "rank": 6}
    options: dict[str, Any] = {key: value for key, value in sizes.items() if key in model_options(name)}
    model = lrsa.create_model(name, coord_dim=2, in_features=1, out_features=2, **options)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.05 * torch.randn_like(parameter)
    return model.double().eval()


def zero(gradient: Tensor | None) -> Tensor:
    """No gradient is a gradient of 0."""
    return torch.zeros((), dtype=torch.float64) if gradient is None else gradient


class Saved:
    """A tensor that autograd keeps, counted while it does."""

    now = peak = 0

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor
        Saved.now += tensor.numel()
        Saved.peak = max(Saved.peak, Saved.now)

    def __del__(self) -> None:
        Saved.now -= self.tensor.numel()


def peak_of_saved(run: Callable[..., Tensor], count: int) -> int:
    """The most numbers that autograd held at once in a forward and backward pass."""
    points = make_points(1, count)
    Saved.now = Saved.peak = 0
    with torch.autograd.graph.saved_tensors_hooks(Saved, lambda saved: saved.tensor):
        run(points.x, points.f).square().sum().backward()
    return Saved.peak
