"""Transolver, Transolver++, LinearNO and HPM: published sizes, what they can do, what they refuse."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from conftest import assert_same, unsettle
from torch import Tensor, nn

from lrsa import Context, stream
from lrsa.context import Needs
from lrsa.errors import LrsaError
from lrsa.models.baselines import hpm, linear_no, transolver, transolver_plus
from lrsa.models.baselines.hpm import HPM
from lrsa.models.baselines.linear_no import LinearNO
from lrsa.models.baselines.skeleton import BoxDistances, IndexDistances, TransolverSkeleton
from lrsa.models.baselines.transolver import Transolver
from lrsa.models.baselines.transolver_plus import TransolverPlus
from lrsa.models.mixers.transolver_plus import EideticAttention
from lrsa.models.template import LowRankMix

GRID, FREQUENCIES = (12, 10), 8
SIZES: dict[str, Any] = {"in_features": 1, "out_features": 2, "width": 32, "depth": 2, "heads": 4}
POINTWISE: dict[str, Callable[..., TransolverSkeleton]] = {
    "transolver": lambda: Transolver(2, **SIZES, rank=16),
    "transolver with reference positions in a box": lambda: Transolver(
        2, **SIZES, rank=16, reference=3, reference_box=(0.0, 1.0, -1.0, 1.0)
    ),
    "transolver_plus": lambda: TransolverPlus(2, **SIZES, rank=16, globals_dim=3),
    "linear_no linear": lambda: LinearNO(2, **SIZES, rank=16, temperature=False),
    "linear_no temp": lambda: LinearNO(2, **SIZES, rank=16, deep_output=True),
    "hpm": lambda: HPM(2, **SIZES, rank=FREQUENCIES, eigen_positions=4),
    "hpm structured, 1x1": lambda: HPM(2, **SIZES, rank=FREQUENCIES, structured=True, kernel_size=1),
}
STRUCTURED: dict[str, Callable[..., TransolverSkeleton]] = {
    "transolver": lambda: Transolver(2, **SIZES, rank=16, structured=True, reference=4, time=True),
    "linear_no conv": lambda: LinearNO(2, **SIZES, rank=16, structured=True, temperature=False),
    "linear_no conv_temp": lambda: LinearNO(2, **SIZES, rank=16, structured=True),
    "hpm": lambda: HPM(2, **SIZES, rank=FREQUENCIES, structured=True),
}
pointwise = pytest.mark.parametrize("make", POINTWISE.values(), ids=POINTWISE.keys())
structured = pytest.mark.parametrize("make", STRUCTURED.values(), ids=STRUCTURED.keys())

TRANSOLVER = {"elasticity": 713_665, "airfoil": 2_810_817, "pipe": 3_073_985, "shapenet-car": 3_860_804}
TRANSOLVER |= {"darcy": 2_826_945 - 128, "plasticity": 2_844_484 - 128, "navier-stokes": 11_232_321 - 256}
TRANSOLVER |= {"airfrans": 3_893_572}
LINEAR_NO = {"elasticity": 585_217, "airfoil": 1_765_889, "plasticity": 1_799_428 - 128}
LINEAR_NO |= {"darcy": 1_766_145 - 128, "navier-stokes": 3_377_921 - 256, "shapenet-car": 3_852_420 - 256}
LINEAR_NO |= {"airfrans": 3_358_788 - 256 - 8 * 8}
HPM_COUNTS = {"darcy": 2_864_321 - 128, "airfoil": 751_041, "plasticity": 2_881_860 - 128}
HPM_COUNTS |= {"navier-stokes": 11_306_817 - 256, "irregular-darcy": 381_729, "composite": 379_809}
HPM_COUNTS |= {"pipe-turbulence": 725_697}
PUBLISHED = (
    (Transolver, transolver.PRESETS, TRANSOLVER),
    (TransolverPlus, transolver_plus.PRESETS, {"elasticity": 590_793, "shapenet-car": 3_343_180}),
    (LinearNO, linear_no.PRESETS, LINEAR_NO),
    (HPM, hpm.PRESETS, HPM_COUNTS),
)


@pytest.mark.parametrize(
    ("make", "options", "count"),
    [
        pytest.param(make, presets[name], count, id=f"{make.__name__}-{name}")
        for make, presets, counts in PUBLISHED
        for name, count in counts.items()
    ],
)
def test_presets_have_the_published_number_of_live_parameters(
    make: type[nn.Module], options: dict[str, Any], count: int
) -> None:
    """The references also count what they never use: the placeholder (width) where there are input
    features, and on AirfRANS LinearNO's temperature (heads in each block)."""
    with torch.device("meta"):
        assert sum(parameter.numel() for parameter in make(**options).parameters()) == count


@pointwise
@pytest.mark.parametrize("chunk", [1, 37, 119])
def test_streamed_equals_whole(make: Callable[..., TransolverSkeleton], chunk: int) -> None:
    model, (x, f, context) = settled(make), sample(torch.float64)
    context = replace(context, mask=ragged(x), weights=0.1 + torch.rand_like(x[..., 0]))
    assert_same(stream(model, x, f, context, chunk)[context.mask], model(x, f, context)[context.mask])


@pointwise
def test_padding_changes_nothing_whatever_it_holds(make: Callable[..., TransolverSkeleton]) -> None:
    model, (x, f, context) = settled(make), sample(torch.float64)
    kept = 80
    alone = model(x[:, :kept], f[:, :kept], context.at(slice(kept)))
    mask = (torch.arange(x.shape[1]) < kept).expand(len(x), -1)
    assert context.basis is not None
    for values in (x, f, context.basis):
        values[:, kept:] = torch.nan
    assert_same(model(x, f, replace(context, mask=mask))[:, :kept], alone)


@pointwise
def test_a_point_split_in_two_changes_nothing(make: Callable[..., TransolverSkeleton]) -> None:
    """Up to the 1e-5 beside sums over points (Transolver) or beside their variance (HPM)."""
    model, (x, f, context) = settled(make), sample(torch.float64)
    assert context.basis is not None
    twice = torch.cat([torch.arange(120), torch.arange(40)])
    weights = torch.where(torch.arange(160) % 120 < 40, 0.5, 1.0).double().expand(2, -1)
    split = replace(context, basis=context.basis[:, twice], weights=weights)
    whole = model(x, f, context)
    assert_same(model(x[:, twice], f[:, twice], split)[:, :120], whole, tolerance=1e-4)
    unweighted = model(x[:, twice], f[:, twice], replace(split, weights=None))[:, :120]
    assert (unweighted - whole).abs().max() > 1e-3 * whole.abs().max()


@pointwise
def test_the_one_pass_forward_equals_the_steps_of_the_template(
    make: Callable[..., TransolverSkeleton],
) -> None:
    mixer = settled(make).each_block()[0].mix
    assert isinstance(mixer, LowRankMix)
    x, _, context = sample(torch.float64)
    h, context = torch.randn(2, 120, 32, dtype=torch.float64), replace(context, mask=ragged(x))
    steps = mixer.reconstruct(h, x, context, mixer.process(mixer.compress(h, x, context)))
    assert_same(mixer(h, x, context), steps)


@pytest.mark.parametrize("name", ["transolver", "transolver_plus", "linear_no linear", "linear_no temp"])
def test_decoded_at_its_own_points_equals_the_forward_pass(name: str) -> None:
    model, (x, f, context) = settled(POINTWISE[name]), sample(torch.float64)
    assert_same(model.decode(model.encode(x, f, context), x, f), model(x, f, context))


def test_gumbel_noise_is_drawn_in_training_only() -> None:
    model, (x, f, context) = settled(POINTWISE["transolver_plus"]), sample(torch.float64)
    assert torch.equal(model(x, f, context), model(x, f, context))
    model.train()
    assert not torch.allclose(model(x, f, context), model(x, f, context))
    torch.manual_seed(1)
    first = model(x, f, context)
    torch.manual_seed(1)
    assert torch.equal(model(x, f, context), first)


def test_linear_layers_start_small_and_convolutions_as_pytorch_has_them() -> None:
    def deviation(model: TransolverSkeleton, name: str) -> float:
        return model.blocks[0].get_parameter(name).detach().std().item()

    assert deviation(Transolver(2, 1, 1), "mix.project.weight") == pytest.approx(0.02, rel=0.03)
    conv = deviation(Transolver(2, 1, 1, structured=True), "mix.project.conv.weight")
    assert conv == pytest.approx((3 * 9 * 128) ** -0.5, rel=0.03)
    conv = deviation(HPM(2, 1, 1, structured=True, kernel_size=1), "mix.project.weight")
    assert conv == pytest.approx((3 * 128) ** -0.5, rel=0.03)
    conv = deviation(LinearNO(2, 1, 1, structured=True), "mix.project.conv.weight")
    assert conv == pytest.approx((2 / (9 * 128)) ** 0.5, rel=0.03)


def test_reference_positions_are_distances_to_the_anchors() -> None:
    x = torch.tensor([[[-2.0, -1.5], [1.0, 1.5]]])
    box = BoxDistances(2, 3, (-2.0, 4.0, -1.5, 1.5))(x, Context())
    assert_same(box[0, :, :2], x[0])
    assert_same(box[0, 0, 2:5], torch.tensor([0.0, 1.5, 3.0]))
    assert_same(box[0, 1, 2 + 5], torch.tensor(0.0))
    index = IndexDistances(2, 2)(x, Context(grid=(1, 2)))
    assert_same(index[0], torch.tensor([[0, 1, 1, 2**0.5], [1, 0, 2**0.5, 1]]), tolerance=1e-6)


@structured
def test_convolutional_forms_refuse_what_they_cannot_do(make: Callable[..., TransolverSkeleton]) -> None:
    model, (x, f, context) = make(), sample(torch.float32)
    assert model.needs.grid
    with pytest.raises(LrsaError, match="full grids"):
        model(x, f, replace(context, mask=ragged(x)))
    with pytest.raises(LrsaError, match="cannot stream"):
        stream(model, x, f, context)
    with pytest.raises(LrsaError, match="cannot encode"):
        model.encode(x, f, context)
    with pytest.raises(LrsaError, match=r"needs Context\.grid"):
        model(x, f, replace(context, grid=None))


def test_clear_refusals() -> None:
    x, f, context = sample(torch.float32)
    on_grid = LinearNO(2, **SIZES, rank=16, temperature=False, reference=4)
    assert on_grid.needs == Needs(grid=True)
    with pytest.raises(LrsaError, match="reference=0"):
        stream(on_grid, x, f, context)
    with pytest.raises(LrsaError, match="2 axes"):
        on_grid(x, f, replace(context, grid=(120,)))
    with pytest.raises(LrsaError, match="multiple of heads"):
        Transolver(2, 1, 1, width=30, heads=4)
    with pytest.raises(LrsaError, match="reference_box has 2"):
        Transolver(2, 1, 1, reference=8, reference_box=(0.0, 1.0))
    with pytest.raises(LrsaError, match="takes 2 coordinates and 1 features"):
        Transolver(2, **SIZES)(x)
    plus = POINTWISE["transolver_plus"]()
    assert plus.needs == Needs(globals=True)
    with pytest.raises(LrsaError, match=r"needs Context\.globals"):
        plus(x, f)


def test_hpm_says_what_it_needs_of_the_eigenvectors() -> None:
    x, f, context = sample(torch.float32)
    model = POINTWISE["hpm"]()
    assert model.needs == Needs(eigenfunctions=FREQUENCIES)
    with pytest.raises(LrsaError, match=r"needs Context\.basis"):
        model(x, f)
    with pytest.raises(LrsaError, match="lower rank"):
        HPM(2, **SIZES, rank=FREQUENCIES + 1)(x, f, context)
    with pytest.raises(LrsaError, match="eigen_positions is 9"):
        HPM(2, **SIZES, rank=FREQUENCIES, eigen_positions=9)(x, f, context)
    with pytest.raises(LrsaError, match=r"needs Context\.basis"):
        model.decode(model.encode(x, f, context), x, f)
    with pytest.raises(LrsaError, match="no input"):
        HPM(2, 0, 1, coordinates=False)


def sample(dtype: torch.dtype) -> tuple[Tensor, Tensor, Context]:
    """Two samples on a deformed grid: x (2, 120, 2), f (2, 120, 1), and every kind of context but padding."""
    rows, columns = (torch.linspace(0, 1, n, dtype=dtype) for n in GRID)
    x = torch.cartesian_prod(rows, columns).expand(2, -1, -1) + 0.02 * torch.rand(2, 120, 2, dtype=dtype)
    f = torch.sin(torch.tensor([4.0, 7.0], dtype=dtype)[:, None, None] * x.sum(-1, keepdim=True))
    waves = torch.arange(FREQUENCIES, dtype=dtype) * torch.pi
    basis = (x[..., :1] * waves).cos() + (x[..., 1:] * waves.flip(0)).cos()
    time, parameters = torch.rand(2, dtype=dtype), torch.rand(2, 3, dtype=dtype)
    return x, f, Context(grid=GRID, basis=basis, time=time, globals=parameters)


def settled(make: Callable[..., TransolverSkeleton]) -> TransolverSkeleton:
    """A model in float64 and evaluation mode, with every parameter off its initial value."""
    model = make().double().eval()
    unsettle(model)
    return model


def ragged(x: Tensor) -> Tensor:
    """(B, N) mask: 50 points of the first sample, all of the others."""
    mask = torch.ones(x.shape[:2], dtype=torch.bool)
    mask[0, 50:] = False
    return mask


def test_the_noise_of_transolver_plus_is_not_dropped_silently_in_training() -> None:
    mixer = EideticAttention(8, 2, 4).train()
    with pytest.raises(LrsaError, match=r"--train\.chunk"):
        mixer.partial(torch.rand(1, 5, 8), torch.rand(1, 5, 2), Context())
