"""The whole operator: symmetries, padding, quadrature weights, other points, precision, refusals."""

from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import torch
from conftest import KINDS, Points, ablations, assert_same, make_operator, make_points
from torch import Tensor, nn

import lrsa
from lrsa.context import Context, Needs
from lrsa.errors import LrsaError
from lrsa.models.operator import LRSA

# --- permutation ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@ablations
def test_permuting_the_points_permutes_the_output(options: dict[str, bool], kind: str) -> None:
    model, points = make_operator(**options), make_points(3, 12)
    order = torch.randperm(12)
    moved = Points(points.x[:, order], points.f[:, order], points.mask[:, order], points.weights[:, order])
    before = model(points.x, points.f, points.context(kind))
    assert_same(model(moved.x, moved.f, moved.context(kind)), before[:, order])


def test_every_point_hears_every_other() -> None:
    """Without this the properties below would hold for a pointwise map."""
    model, points = make_operator(), make_points(1, 12)
    f = points.f.clone()
    f[0, 3] += 1
    change = (model(points.x, f) - model(points.x, points.f)).detach().abs().amax(-1)
    assert float(change.min()) > 1e-4


# --- padding -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["mask", "mask and weights"])
@ablations
def test_a_padded_batch_equals_each_case_alone(options: dict[str, bool], kind: str) -> None:
    """Output, and gradients with respect to parameters and inputs."""
    model, points = make_operator(**options), make_points(3, 12)

    def loss(u: Tensor) -> Tensor:
        return (u * torch.linspace(1, 2, u.shape[-1]).to(u)).square().sum()

    padded = points.leaves()
    u = model(padded.x, padded.f, padded.context(kind))
    together = gradients(loss(u[points.mask]), model, padded)
    alone = {name: torch.zeros_like(gradient) for name, gradient in together.items()}
    for b, n in enumerate(points.mask.sum(1).tolist()):
        case = Points(*(t[b : b + 1, :n] for t in (points.x, points.f, points.mask, points.weights))).leaves()
        u_case = model(case.x, case.f, replace(case.context(kind), mask=None))
        assert_same(u[b, :n], u_case[0])
        for name, gradient in gradients(loss(u_case), model, case).items():
            if name in ("x", "f"):
                alone[name][b, :n] = gradient[0]
            else:
                alone[name] += gradient
    for name, gradient in together.items():
        assert_same(gradient, alone[name], 1e-11)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("garbage", [-7.0, 1e6, 1e30])
def test_what_stands_in_padded_slots_does_not_matter(garbage: float, dtype: torch.dtype) -> None:
    model, points = make_operator(frequencies=2).to(dtype), make_points(3, 12)
    context = points.context("mask and weights")
    x, f, weights = points.x.to(dtype), points.f.to(dtype), points.weights.to(dtype)

    def at(value: float) -> Tensor:
        spoiled = [t.masked_fill(~points.mask[..., None], value) for t in (x, f)]
        bad_weights = weights.masked_fill(~points.mask, abs(value))
        return model(*spoiled, replace(context, weights=bad_weights))[points.mask]

    assert_same(at(garbage), at(0.0), 1e-12 if dtype == torch.float64 else 1e-5)


def test_derivatives_with_respect_to_weights_are_finite_beside_padding() -> None:
    model, points = make_operator(), make_points(3, 12).leaves()
    model(points.x, points.f, points.context("mask and weights"))[points.mask].sum().backward()
    assert points.weights.grad is not None
    assert bool(points.weights.grad[points.mask].isfinite().all())


# --- quadrature weights --------------------------------------------------------------------------------


def test_a_point_split_in_two_halves_changes_nothing() -> None:
    """The discrete sum stands for the same integral; without weights the copy counts twice."""
    model, points = make_operator(), make_points(2, 12)
    weights = points.weights.clone()
    weights[:, 4] /= 2
    twice = [torch.cat([t, t[:, 4:5]], dim=1) for t in (points.x, points.f, weights)]
    expected = model(points.x, points.f, points.context("weights"))
    actual = model(twice[0], twice[1], Context(weights=twice[2]))
    assert_same(actual[:, :12], expected)
    assert_same(actual[:, 12], expected[:, 4])
    unweighted = model(twice[0], twice[1])[:, :12] - model(points.x, points.f)
    assert float(unweighted.detach().abs().max()) > 1e-3


@pytest.mark.parametrize("scale", [1e-9, 3.0, 1e9])
def test_only_the_ratios_of_weights_matter(scale: float) -> None:
    """Each sample has its own scale."""
    model, points = make_operator(), make_points(2, 12)
    scales = torch.tensor([[scale], [1.0]], dtype=torch.float64)
    for kind in ("weights", "mask and weights"):
        expected = model(points.x, points.f, points.context(kind))
        context = replace(points.context(kind), weights=points.weights * scales)
        assert_same(model(points.x, points.f, context), expected)


def test_normalised_weights_have_mean_one_over_the_real_points_of_each_sample() -> None:
    points = make_points(3, 12)
    weights = points.context("mask and weights").normalised().weights
    assert weights is not None
    assert_same((weights * points.mask).sum(1) / points.mask.sum(1), torch.ones(3, dtype=torch.float64))
    assert_same(weights / weights[:, :1], points.weights / points.weights[:, :1])


def test_equal_weights_are_no_weights() -> None:
    model, points = make_operator(), make_points(2, 12)
    weights = torch.ones_like(points.weights)
    assert_same(model(points.x, points.f, Context(weights=weights)), model(points.x, points.f))


def test_a_point_of_no_weight_is_unheard_by_the_others() -> None:
    model, points = make_operator(), make_points(2, 12)
    weights = points.weights.clone()
    weights[:, 10:] = 0
    actual = model(points.x, points.f, Context(weights=weights))
    expected = model(points.x[:, :10], points.f[:, :10], Context(weights=weights[:, :10]))
    assert_same(actual[:, :10], expected)


@ablations
@pytest.mark.parametrize("way", ["whole", "chunks"])
def test_points_of_no_weight_only_read(options: dict[str, bool], way: str) -> None:
    """The union of inputs, with weights, and outputs, without: decode(encode(inputs), outputs).

    Output and gradients; in chunks too, of which some hold no input at all.
    """
    model, inputs, outputs = make_operator(**options), make_points(2, 9), make_points(2, 30, seed=1)
    x, f = torch.cat([inputs.x, outputs.x], 1), torch.cat([inputs.f, outputs.f], 1)
    weights = torch.cat([inputs.weights, torch.zeros_like(outputs.weights)], 1)
    order = torch.randperm(39, generator=torch.Generator().manual_seed(0)) if way == "whole" else slice(None)
    x, f, weights = x[:, order], f[:, order], weights[:, order]
    asked = weights[0] == 0

    def gradient(u: Tensor) -> list[Tensor]:
        return list(torch.autograd.grad((u * u.detach().cos()).sum(), list(model.parameters())))

    context = Context(weights=weights)
    union = model(x, f, context) if way == "whole" else lrsa.stream(model, x, f, context, chunk=7)
    state = model.encode(inputs.x, inputs.f, Context(weights=inputs.weights))
    decoded = model.decode(state, x[:, asked], f[:, asked])
    assert_same(union[:, asked], decoded)
    for mine, theirs in zip(gradient(union[:, asked]), gradient(decoded), strict=True):
        assert_same(mine, theirs, 1e-11)
    everyone = model(x, f).detach()
    assert float((everyone[:, asked] - decoded.detach()).abs().max()) > 1e-3, "compressing all is another map"


# --- other points --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@ablations
def test_decoding_at_the_same_points_is_the_forward_pass(options: dict[str, bool], kind: str) -> None:
    """Output and gradients."""
    model, points = make_operator(**options), make_points(3, 12)
    real = points.mask if "mask" in kind else torch.ones_like(points.mask)
    found: list[dict[str, Tensor]] = []
    outputs: list[Tensor] = []
    for way in ("forward", "encode and decode"):
        given = points.leaves()
        context = given.context(kind)
        if way == "forward":
            u = model(given.x, given.f, context)
        else:
            u = model.decode(model.encode(given.x, given.f, context), given.x, given.f)
        outputs.append(u[real])
        found.append(gradients((u * u.detach().cos())[real].sum(), model, given))
    assert_same(outputs[1], outputs[0])
    for name, gradient in found[0].items():
        assert_same(found[1][name], gradient, 1e-11)


@pytest.mark.parametrize("kind", KINDS)
def test_queries_do_not_hear_each_other(kind: str) -> None:
    """Any other number of points is legal, and decoding some of them is some of the decoding."""
    model, points, queries = make_operator(), make_points(3, 12), make_points(3, 30, seed=1)
    state = model.encode(points.x, points.f, points.context(kind))
    everywhere = model.decode(state, queries.x, queries.f)
    some = torch.randperm(30)[:7]
    assert_same(model.decode(state, queries.x[:, some], queries.f[:, some]), everywhere[:, some])


def test_a_state_keeps_the_time_of_its_sample() -> None:
    model, points = make_operator(time=True), make_points(2, 12)
    context = Context(time=torch.tensor([0.2, 5.0], dtype=torch.float64), weights=points.weights)
    state = model.encode(points.x, points.f, context)
    assert_same(model.decode(state, points.x, points.f), model(points.x, points.f, context))


# --- local variants ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("local", "weights"), [("depthwise", 9 * 16), ("conv", 9 * 16 * 16)])
def test_a_local_ffn_adds_its_convolution_and_one_norm(local: Any, weights: int) -> None:
    """9 d or 9 d² weights, d biases, and 2 d of the LayerNorm, in each of the 2 blocks."""
    assert count(make_operator(local=local)) - count(make_operator()) == 2 * (weights + 16 + 2 * 16)


@pytest.mark.parametrize("local", ["depthwise", "conv"])
def test_a_local_ffn_moves_with_a_shift_of_the_grid(local: Any) -> None:
    """And each point is heard by its eight neighbours on the row-major index grid, no further."""
    model = make_operator(local=local)
    grid = (6, 9)
    image = torch.zeros(1, 16, *grid, dtype=torch.float64)
    image[:, :, 2:3, 2:4] = torch.randn(1, 16, 1, 2, dtype=torch.float64)

    def run(image: Tensor) -> Tensor:
        h = image.flatten(2).transpose(1, 2)
        return model.each_block()[0].ffn(h, Context(grid=grid)).transpose(1, 2).unflatten(2, grid)

    before, after = run(image), run(image.roll((1, 2), (2, 3)))
    assert_same(after, before.roll((1, 2), (2, 3)))
    changed = (before - before[..., :1, :1]).abs().amax((0, 1)) > 1e-9
    expected = torch.zeros(grid, dtype=torch.bool)
    expected[1:4, 1:5] = True  # the two points and their eight neighbours each
    assert torch.equal(changed, expected)
    corner = run(image.roll((-2, -2), (2, 3)))  # nor across the border
    assert_same(corner[:, :, 2:], before[:, :, 4:5, 6:7].expand_as(corner[:, :, 2:]))
    assert_same(corner[..., 3:], before[:, :, 4:5, 6:7].expand_as(corner[..., 3:]))


@pytest.mark.parametrize("local", ["depthwise", "conv"])
def test_a_local_ffn_refuses_what_is_not_a_full_grid(local: Any) -> None:
    model, points = make_operator(local=local), make_points(2, 12)
    assert model.needs == Needs(grid=True)
    assert model(points.x, points.f, Context(grid=(3, 4))).shape == (2, 12, 2)
    with pytest.raises(LrsaError, match=r"a local FFN needs Context\.grid"):
        model(points.x, points.f)
    with pytest.raises(LrsaError, match=r"full grid of two axes.*local=pointwise"):
        model(points.x, points.f, Context(grid=(3, 4), mask=points.mask))
    with pytest.raises(LrsaError, match=r"full grid of two axes.*local=pointwise"):
        model(points.x, points.f, Context(grid=(3, 2, 2)))
    with pytest.raises(LrsaError, match=r"cannot encode: the 3x3 convolution.*local=pointwise"):
        model.encode(points.x, points.f, Context(grid=(3, 4)))


def test_an_unknown_local_variant_is_refused() -> None:
    local: Any = "dense"
    with pytest.raises(LrsaError, match="pointwise"):
        make_operator(local=local)


# --- precision -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["plain", "mask and weights"])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.bfloat16, 1e-2), (torch.float16, 2e-3)])
def test_autocast_stays_near_fp32(dtype: torch.dtype, tolerance: float, kind: str) -> None:
    """Relative L2 distance of the output, and of the gradient, to those of fp32."""
    model, points = LRSA(2, 1, 2, width=16, depth=2, heads=4, rank=5), make_points(2, 24)
    x, f, context = points.x.float(), points.f.float(), points.context(kind)

    def run(enabled: bool) -> tuple[Tensor, Tensor]:
        model.zero_grad()
        with torch.autocast("cpu", dtype, enabled=enabled):
            u = model(x, f, context)
        u.float()[points.mask].square().sum().backward()
        grads = [p.grad.flatten() for p in model.parameters() if p.grad is not None]
        return u.detach().float()[points.mask], torch.cat(grads)

    for low, full in zip(run(True), run(False), strict=True):
        assert bool(low.isfinite().all())
        assert float((low - full).norm() / full.norm()) < tolerance


@pytest.mark.parametrize("kind", ["plain", "mask and weights"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_half_precision_model_runs(dtype: torch.dtype, kind: str) -> None:
    model, points = LRSA(2, 1, 2, width=16, depth=2, heads=4, rank=5), make_points(2, 24)
    context = points.context(kind)
    with torch.no_grad():
        full = model(points.x.float(), points.f.float(), context)[points.mask]
        half = model.to(dtype)(points.x.to(dtype), points.f.to(dtype), context)[points.mask]
    assert half.dtype == dtype
    assert float((half.float() - full).norm() / full.norm()) < 1e-2


# --- time, and refusals --------------------------------------------------------------------------------


def test_the_output_depends_on_the_time() -> None:
    model, points = make_operator(time=True), make_points(1, 12)
    assert model.needs == Needs(time=True)

    def at(time: float) -> Tensor:
        return model(points.x, points.f, Context(time=torch.tensor([time], dtype=torch.float64))).detach()

    assert float((at(0.1) - at(0.2)).abs().max()) > 1e-4
    assert_same(at(0.1), at(0.1), 0)
    with pytest.raises(LrsaError, match=r"the time encoding needs Context\.time"):
        model(points.x, points.f)


def test_a_plain_operator_needs_nothing() -> None:
    assert make_operator().needs == Needs()


def test_a_wrong_number_of_features_is_refused_with_the_numbers() -> None:
    model, points = make_operator(), make_points(2, 12)
    with pytest.raises(LrsaError, match="2 coordinates and 1 features per point, not 2 and 0"):
        model(points.x)
    with pytest.raises(LrsaError, match="2 coordinates and 1 features per point, not 2 and 3"):
        model(points.x, points.f.expand(-1, -1, 3))
    with pytest.raises(LrsaError, match="2 coordinates and 1 features per point, not 1 and 1"):
        model.encode(points.x[..., :1], points.f)
    with pytest.raises(LrsaError, match="2 coordinates and 0 features per point, not 2 and 1"):
        make_operator(in_features=0)(points.x, points.f)
    with pytest.raises(LrsaError, match="1 features per point, not 2 and 0"):
        model.decode(model.encode(points.x, points.f), points.x)


@pytest.mark.parametrize("heads", [3, 32, 0, -4])
def test_a_width_that_heads_do_not_divide_is_refused_with_the_numbers(heads: int) -> None:
    with pytest.raises(LrsaError, match=f"width 16 is not a multiple of heads {heads}"):
        make_operator(heads=heads)


@pytest.mark.parametrize(
    ("context", "words"),
    [
        (Context(mask=torch.ones(2, 11).bool()), r"mask of \(2, 11\): not the same points"),
        (Context(weights=torch.ones(12)), r"weights of \(12,\): not the same points"),
        (Context(mask=torch.ones(2, 12)), "Context.mask is of torch.float32, not of torch.bool"),
        (Context(time=torch.rand(3)), r"x has 2 samples, and time is of shape \(3,\)"),
    ],
)
def test_a_context_of_other_points_or_samples_is_refused(context: Context, words: str) -> None:
    model, points = make_operator(), make_points(2, 12)
    for use in (model, model.encode, partial(lrsa.stream, model, chunk=5)):
        with pytest.raises(LrsaError, match=words):
            use(points.x, points.f, context=context)


def test_points_of_one_sample_are_refused_with_the_shape_that_is_taken() -> None:
    with pytest.raises(LrsaError, match=r"x is of shape \(12, 2\), not \(B, N, p\)"):
        make_operator()(torch.rand(12, 2), torch.rand(12, 1))


# --- helpers -------------------------------------------------------------------------------------------


def gradients(loss: Tensor, model: nn.Module, points: Points) -> dict[str, Tensor]:
    """With respect to every parameter, the coordinates and the features."""
    leaves = dict(model.named_parameters()) | {"x": points.x, "f": points.f}
    return dict(zip(leaves, torch.autograd.grad(loss, list(leaves.values())), strict=True))


def count(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())
