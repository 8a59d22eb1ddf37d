"""The powers of the template hold for every mixer in our backbone, or are refused in one clear line."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from lrsa import Context, LrsaError, NeuralOperator, stream
from lrsa.models.create import create_model
from lrsa.models.listing import list_models
from lrsa.models.registry import get
from lrsa.models.template import LowRankMix

BACKBONES = [name for name in list_models() if get(name).family == "backbone"]
LOW_RANK = [
    *("backbone-transolver", "backbone-transolver-plus", "backbone-linear-no"),
    *("backbone-hpm", "backbone-norm", "backbone-galerkin", "backbone-flare"),
]
GRID_ONLY = [name for name in BACKBONES if name not in LOW_RANK]
WITH_BASIS = ("backbone-hpm", "backbone-norm")
# The 1e-5 in the denominator of a slice and in the joint norm of a spectrum are as published.
SPLIT = {"backbone-transolver": 1e-4, "backbone-transolver-plus": 1e-4, "backbone-hpm": 1e-4}
POINTS, GRID = 42, (6, 7)


@pytest.fixture(params=LOW_RANK)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def operator(name: str) -> NeuralOperator:
    return build(name)


def build(name: str) -> NeuralOperator:
    torch.manual_seed(0)
    model = create_model(name, coord_dim=2, in_features=1, out_features=2, width=16, depth=2, heads=2, rank=5)
    assert isinstance(model, NeuralOperator)
    model = model.double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return model


def sample(name: str, points: int = POINTS) -> tuple[Tensor, Tensor, Context]:
    generator = torch.Generator().manual_seed(1)
    x = torch.rand(2, points, 2, generator=generator).double()
    f = torch.rand(2, points, 1, generator=generator).double()
    basis = torch.randn(2, points, 5, generator=generator).double() if name in WITH_BASIS else None
    return x, f, Context(basis=basis)


def weighted(name: str) -> tuple[Tensor, Tensor, Context]:
    x, f, context = sample(name)
    mask = torch.arange(POINTS)[None] < torch.tensor([[POINTS], [30]])
    weights = torch.rand(2, POINTS, generator=torch.Generator().manual_seed(2)).double() + 0.1
    return x, f, replace(context, mask=mask, weights=weights)


def close(a: Tensor, b: Tensor, tolerance: float = 1e-10) -> bool:
    return bool((a - b).abs().max() <= tolerance * b.abs().max())


def test_every_backbone_is_covered():
    assert set(LOW_RANK) | set(GRID_ONLY) == set(BACKBONES)
    assert set(GRID_ONLY) == {"backbone-fno", "backbone-f-fno", "backbone-factformer"}


# Beyond 30 the second part of the second case is nothing but padding.
@pytest.mark.parametrize("cut", [1, 20, 35])
def test_the_partials_of_two_parts_merge_to_the_compression(operator: NeuralOperator, name: str, cut: int):
    x, f, context = weighted(name)
    context = context.normalised()
    block = operator.each_block()[0]
    mix = block.mix
    assert isinstance(mix, LowRankMix)
    h = block.norm_mix(operator.lift(x, f, context))
    whole = mix.compress(h, x, context)
    parts = [mix.partial(h[:, p], x[:, p], context.at(p)) for p in (slice(cut), slice(cut, None))]
    assert close(parts[0].merge(parts[1]).finish(), whole)
    assert close(parts[1].merge(parts[0]).finish(), whole)


@pytest.mark.parametrize("chunk", [1, 5, 41, 100])
def test_chunked_equals_whole(operator: NeuralOperator, name: str, chunk: int):
    x, f, context = weighted(name)
    whole = operator(x, f, context)
    assert context.mask is not None
    assert close(stream(operator, x, f, context, chunk)[context.mask], whole[context.mask])


def test_a_padded_case_equals_the_case_alone(operator: NeuralOperator, name: str):
    x, f, context = weighted(name)
    padded = operator(x, f, context)[1, :30]
    alone = operator(x[1:, :30], f[1:, :30], replace(context.at(slice(30)), mask=None, **first(context)))
    assert close(alone[0], padded)


def first(context: Context) -> dict[str, Tensor | None]:
    """The per-point tensors of the second case, without its padding."""
    tensors = {"weights": context.weights, "basis": context.basis}
    return {key: None if value is None else value[1:, :30] for key, value in tensors.items()}


def test_fields_follow_the_points(operator: NeuralOperator, name: str):
    x, f, context = sample(name)
    order = torch.randperm(POINTS, generator=torch.Generator().manual_seed(3))
    basis = None if context.basis is None else context.basis[:, order]
    assert close(operator(x[:, order], f[:, order], Context(basis=basis)), operator(x, f, context)[:, order])


def test_a_point_split_in_two_halves_changes_nothing(operator: NeuralOperator, name: str):
    x, f, context = sample(name)
    twice = torch.cat([torch.arange(POINTS), torch.tensor([0])])
    weights = torch.ones(2, POINTS).double()
    halved = weights[:, twice].clone()
    halved[:, [0, POINTS]] = 0.5
    basis = None if context.basis is None else context.basis[:, twice]
    once = operator(x, f, replace(context, weights=weights))
    split = operator(x[:, twice], f[:, twice], Context(basis=basis, weights=halved))
    assert close(split[:, :POINTS], once, SPLIT.get(name, 1e-10))


def test_the_scale_of_the_weights_does_not_matter(operator: NeuralOperator, name: str):
    x, f, context = weighted(name)
    assert context.weights is not None
    assert close(operator(x, f, replace(context, weights=7 * context.weights)), operator(x, f, context))


def test_decoding_at_the_same_points_is_the_forward_pass(operator: NeuralOperator, name: str):
    x, f, context = sample(name)
    if name in WITH_BASIS:
        # Eigenfunctions are known at the points of the mesh only.
        with pytest.raises(LrsaError, match="basis"):
            operator.decode(operator.encode(x, f, context), x, f)
        return
    assert close(operator.decode(operator.encode(x, f, context), x, f), operator(x, f, context))


@pytest.mark.parametrize("name", GRID_ONLY)
def test_what_needs_its_grid_refuses_to_be_cut_up(name: str):
    operator = build(name)
    x, f, _ = sample(name)
    with pytest.raises(LrsaError, match="grid"):
        operator(x, f)
    with pytest.raises(LrsaError, match="cannot stream"):
        stream(operator, x, f, Context(grid=GRID))
    with pytest.raises(LrsaError, match="cannot encode"):
        operator.encode(x, f, Context(grid=GRID))
    with pytest.raises(LrsaError):
        operator(x, f, Context(grid=GRID, mask=torch.ones(2, POINTS, dtype=torch.bool)))
    assert operator(x, f, Context(grid=GRID)).shape == (2, POINTS, 2)


@pytest.mark.parametrize("name", GRID_ONLY)
def test_what_is_of_the_index_grid_takes_no_notice_of_weights(name: str):
    operator = build(name)
    x, f, _ = sample(name)
    weights = torch.linspace(0.1, 2.0, POINTS).double().expand(2, -1)
    plain = operator(x, f, Context(grid=GRID))
    assert torch.equal(operator(x, f, Context(grid=GRID, weights=weights)), plain)
