"""LNO, Galerkin Transformer, FactFormer, FLARE and Perceiver IO: what is special to each of them."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TypeVar

import pytest
import torch
from torch import Tensor, nn

import lrsa
from lrsa.context import Context, Needs, needs_of
from lrsa.errors import LrsaError
from lrsa.models.baselines.factformer import FactFormer
from lrsa.models.baselines.flare import FLARE
from lrsa.models.baselines.galerkin import GalerkinTransformer
from lrsa.models.baselines.lno import LNO, PRESETS
from lrsa.models.baselines.perceiver_io import PerceiverIO
from lrsa.models.mixers.factformer import FactorisedAttention
from lrsa.models.mixers.galerkin import GalerkinAttention
from lrsa.models.operator import NeuralOperator

Make = Callable[..., NeuralOperator]
M = TypeVar("M", bound=nn.Module)

MODELS: dict[str, Make] = {
    "lno": partial(LNO, width=64, depth=1, heads=4, rank=16, mlp_layers=1),
    "galerkin": partial(GalerkinTransformer, width=32, depth=2, heads=4),
    "flare": partial(FLARE, width=32, depth=2, heads=4, rank=8, kv_layers=1, ffn_layers=1),
    "perceiver-io": partial(PerceiverIO, width=32, depth=1, heads=4, rank=16, frequencies=2),
    "factformer": partial(FactFormer, width=32, depth=1, heads=4),
}
POINTWISE = [name for name in MODELS if name != "factformer"]
GRID = (12, 10)


@pytest.mark.parametrize(
    ("preset", "in_features", "count"),
    [
        ("darcy", 1, 762_113),
        ("plasticity", 1, 762_756),
        ("airfoil", 2, 1_292_161),  # the reference feeds the coordinates twice
        ("pipe", 2, 1_292_161),
        ("elasticity", 0, 1_831_745),
        ("navier-stokes", 10, 5_076_481),
    ],
)
def test_lno_has_the_published_number_of_parameters(preset: str, in_features: int, count: int) -> None:
    model = LNO(**{**PRESETS[preset], "in_features": in_features})
    assert sum(p.numel() for p in model.parameters()) == count


@pytest.mark.parametrize("name", POINTWISE)
def test_streaming_and_decoding_equal_the_whole(name: str) -> None:
    model, x, f, context = random_case(name)
    with torch.no_grad():
        whole = model(x, f, context)
        assert_close(lrsa.stream(model, x, f, context, chunk=17), whole)
        decoded = model.decode(model.encode(x, f, context), x, f)
        assert_close(decoded[context.mask], whole[context.mask])


@pytest.mark.parametrize("name", POINTWISE)
def test_a_point_split_in_two_changes_nothing(name: str) -> None:
    """Quadrature weights: the discrete sum stands for the same integral."""
    model, x, f, context = random_case(name)
    context = replace(context, mask=None)
    assert context.weights is not None
    twice = torch.cat([context.weights[:, :1] / 2, context.weights[:, 1:], context.weights[:, :1] / 2], dim=1)
    with torch.no_grad():
        split = model(torch.cat([x, x[:, :1]], 1), torch.cat([f, f[:, :1]], 1), Context(weights=twice))
        assert_close(split[:, :-1], model(x, f, context))


@pytest.mark.parametrize("name", POINTWISE)
def test_padding_changes_nothing_whatever_it_holds(name: str) -> None:
    model, x, f, _ = random_case(name)
    mask = torch.ones(x.shape[:2], dtype=torch.bool)
    mask[:, 30:] = False
    x[:, 30:], f[:, 30:] = torch.nan, torch.nan
    with torch.no_grad():
        assert_close(model(x, f, Context(mask=mask))[:, :30], model(x[:, :30], f[:, :30]))


@pytest.mark.parametrize("name", MODELS)
def test_time_is_asked_for_and_matters(name: str) -> None:
    torch.manual_seed(0)
    x, f, context = sample()
    model = MODELS[name](2, 1, 1, time=True)
    assert needs_of(model).time
    with pytest.raises(LrsaError, match="time"):
        model(x, f, context)
    early, late = (model(x, f, replace(context, time=torch.full((2,), t))) for t in (0.1, 0.9))
    assert (early - late).abs().max() > 1e-6


def test_lno_decodes_at_points_without_features() -> None:
    """The scores come from the trunk, which sees coordinates only."""
    model, x, f, context = random_case("lno")
    state = model.encode(x, f, context)
    assert len(state.latents) == 1
    assert torch.equal(model.decode(state, x), model.decode(state, x, f))


@pytest.mark.parametrize("coord_dim", [0, 2])
def test_galerkin_is_queries_times_moments_over_the_number_of_points(coord_dim: int) -> None:
    torch.manual_seed(0)
    heads, points = 4, 50
    mix = noisy(GalerkinAttention(32, heads, coord_dim))
    h, x = torch.randn(2, points, 32), torch.rand(2, points, 2)
    heads_of = []
    for i in range(heads):
        part = slice(8 * i, 8 * i + 8)
        q, k, v = mix.query(h)[..., part], mix.key(h)[..., part], mix.value(h)[..., part]
        k, v = (
            nn.functional.layer_norm(values, (8,), norm.weight[i, 0], norm.bias[i, 0])
            for values, norm in ((k, mix.norm_key), (v, mix.norm_value))
        )
        if coord_dim:
            q, k, v = (torch.cat([x, values], dim=-1) for values in (q, k, v))
        dense = q @ k.transpose(1, 2) / points  # (B, N, N), the kernel that the layer never forms
        heads_of.append(dense @ v)
    assert_close(mix(h, x, Context()), mix.output(torch.cat(heads_of, dim=-1)))


@pytest.mark.parametrize("grid", [(5,), (4, 3), (3, 2, 4)])
def test_factformer_kernels_are_a_dense_kernel_in_factors(grid: tuple[int, ...]) -> None:
    """κ¹ ⊗ … ⊗ κⁿ as an N x N matrix, applied at once, equals one axis after the other."""
    torch.manual_seed(0)
    mix = FactorisedAttention(16, 2, axes=len(grid))
    points = int(torch.tensor(grid).prod())
    h = torch.randn(2, points, 16)
    v, kernels = mix.value(h), mix.axis_kernels(h, grid)
    z = mix.integrate(v, kernels, grid)
    for sample in range(2):
        for head in range(2):
            dense = torch.ones(1, 1)
            for kernel in kernels:
                dense = torch.kron(dense, kernel[sample, head].contiguous())
            part = slice(8 * head, 8 * head + 8)
            assert dense.shape == (points, points)
            assert_close(z[sample, :, part], dense @ v[sample, :, part])


def test_factformer_refuses_what_has_no_axes() -> None:
    x, f, context = sample()
    model = MODELS["factformer"](2, 1, 1)
    assert needs_of(model) == Needs(grid=True)
    with pytest.raises(LrsaError, match=r"Context\.grid"):
        model(x, f)
    with pytest.raises(LrsaError, match="mask"):
        model(x, f, replace(context, mask=torch.ones(x.shape[:2], dtype=torch.bool)))
    with pytest.raises(LrsaError, match="axes=3"):
        model(x, f, Context(grid=(2, 6, 10)))
    with pytest.raises(LrsaError, match="121 points"):
        model(x, f, Context(grid=(11, 11)))
    with pytest.raises(LrsaError, match="cannot stream"):
        lrsa.stream(model, x, f, context)


@pytest.mark.parametrize("make", [LNO, GalerkinTransformer, FactFormer, FLARE, PerceiverIO])
def test_heads_that_do_not_divide_the_width_are_refused(make: Make) -> None:
    with pytest.raises(LrsaError, match="not a multiple of heads"):
        make(2, 1, 1, width=30, heads=4)


@pytest.mark.parametrize("name", ["lno", "perceiver-io"])
def test_the_latents_are_the_backbone(name: str) -> None:
    """Where all latents are the same, every point reads the same: nothing leads around them."""
    model, x, f, context = random_case(name)
    state = model.encode(x, f, context)
    with torch.no_grad():
        same = replace(state, latents=(state.latents[0][:, :1].expand_as(state.latents[0]),))
        u = model.decode(same, x, f)
        assert_close(u, u[:, :1].expand_as(u))
        assert model.decode(state, x, f).std(1).min() > 1e-3


def sample() -> tuple[Tensor, Tensor, Context]:
    """Two smooth inputs on a grid."""
    axes = [torch.linspace(-1, 1, n) for n in GRID]
    x = torch.stack(torch.meshgrid(*axes, indexing="ij"), dim=-1).reshape(1, -1, 2).repeat(2, 1, 1)
    return x, torch.sin(2 * x[..., :1] + torch.tensor([1.0, -1.0])[:, None, None]), Context(grid=GRID)


def random_case(name: str) -> tuple[NeuralOperator, Tensor, Tensor, Context]:
    """A model with parameters so large that no softmax is flat, and a padded, weighted sample."""
    torch.manual_seed(0)
    model = noisy(MODELS[name](2, 1, 3))
    mask = torch.ones(2, 40, dtype=torch.bool)
    mask[1, 25:] = False
    weights = torch.rand(2, 40) + 0.1
    return model, 3 * torch.randn(2, 40, 2), 3 * torch.randn(2, 40, 1), Context(mask=mask, weights=weights)


def noisy(module: M) -> M:
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.15 * torch.randn_like(parameter))
    return module


def assert_close(ours: Tensor, expected: Tensor) -> None:
    worst = (ours - expected).abs().max() / expected.abs().max()
    assert worst < 1e-5, f"differs by {worst:.2e}"
