"""The unified view: every mixing layer equals Out(U G Vᵀ HW), and what follows from it."""

from collections.abc import Callable

import pytest
import torch
from conftest import assert_same, make_mixer, unsettle
from torch import Tensor, nn
from torch.func import jacrev
from torch.nn.attention import SDPBackend, sdpa_kernel

from lrsa.analysis import lowrank
from lrsa.analysis.factors import factors
from lrsa.analysis.lowrank import Factors, OnGrid, effective_rank, jacobian
from lrsa.context import Context
from lrsa.errors import LrsaError
from lrsa.geometry.eigenbasis import box_eigenfunctions
from lrsa.models.baselines.lno import TiedLatents
from lrsa.models.baselines.perceiver_io import LatentBackbone
from lrsa.models.mixers.eigenbasis import EigenbasisMix
from lrsa.models.mixers.eigenbasis_gated import GatedEigenbasis, GridGatedEigenbasis
from lrsa.models.mixers.factformer import FactorisedAttention
from lrsa.models.mixers.factorised_fourier import FactorisedFourierMix
from lrsa.models.mixers.flare import FlareAttention
from lrsa.models.mixers.fourier import FourierMix, SpectralConvolution
from lrsa.models.mixers.galerkin import GalerkinAttention
from lrsa.models.mixers.linear_no import GridLinearAttention, LinearAttention
from lrsa.models.mixers.transolver import GridPhysicsAttention, PhysicsAttention
from lrsa.models.mixers.transolver_plus import EideticAttention
from lrsa.models.template import GlobalMix

GRID, WIDTH, RANK = (8, 7), 16, 5
LINEAR: dict[str, Callable[[], GlobalMix]] = {
    "transolver": lambda: PhysicsAttention(WIDTH, 2, RANK),
    "transolver on grids": lambda: GridPhysicsAttention(WIDTH, 2, RANK),
    "transolver++": lambda: EideticAttention(WIDTH, 2, RANK),
    "linear-no": lambda: LinearAttention(WIDTH, 2, RANK),
    "linear-no with temperature": lambda: LinearAttention(WIDTH, 2, RANK, (0.1, 5.0), deep_output=True),
    "linear-no on grids": lambda: GridLinearAttention(WIDTH, 2, RANK),
    "flare": lambda: FlareAttention(WIDTH, 2, RANK, qk_norm=True),
    "galerkin": lambda: GalerkinAttention(WIDTH, 4, coord_dim=2),
    "norm": lambda: EigenbasisMix(WIDTH, RANK),
    "hpm": lambda: GatedEigenbasis(WIDTH, 2, RANK),
    "hpm on grids": lambda: GridGatedEigenbasis(WIDTH, 2, RANK),
    "factformer": lambda: FactorisedAttention(WIDTH, 4, kernel_multiplier=1),
    "fourier": lambda: FourierMix(WIDTH, 3),
    "fourier, all modes": lambda: FourierMix(WIDTH, 9),
    "fourier of images": lambda: OnGrid(SpectralConvolution(WIDTH, 3)),
    "factorised fourier": lambda: FactorisedFourierMix(WIDTH, (3, 9)),
}
LATENT_NETWORKS: dict[str, Callable[[], GlobalMix]] = {
    "lrsa": make_mixer,
    "lrsa, symmetric": lambda: make_mixer(symmetric=True, qk_norm=True),
    "lrsa without latent attention": lambda: make_mixer(latent_attention=False),
    "perceiver io": lambda: LatentBackbone(WIDTH, 2, 4, RANK, 12),
    "lno": lambda: TiedLatents(WIDTH - RANK - 1, 2, 5, RANK + 1),
}
WEIGHTED = {"transolver", "transolver++", "linear-no", "flare", "galerkin", "norm", "hpm", *LATENT_NETWORKS}


def sample(weighted: bool) -> tuple[Tensor, Tensor, Context]:
    """h (1, N, d), x (1, N, 2) and the context of a grid with its eigenfunctions."""
    axes = [(torch.arange(n, dtype=torch.float64) + 0.5) / n for n in GRID]
    x = torch.stack(torch.meshgrid(*axes, indexing="ij"), -1).reshape(1, -1, 2)
    basis = torch.from_numpy(box_eigenfunctions(GRID, RANK + 1)[1]).double()[None]
    weights = 0.1 + torch.rand(1, x.shape[1], dtype=torch.float64)
    h = torch.sin(3 * x @ torch.randn(2, WIDTH, dtype=torch.float64)) + 0.3 * torch.randn(
        1, x.shape[1], WIDTH, dtype=torch.float64
    )
    return h, x, Context(grid=GRID, basis=basis, weights=weights if weighted else None).normalised()


def made(make: Callable[[], GlobalMix]) -> GlobalMix:
    layer = make().double().eval()
    unsettle(layer)
    return layer


def views() -> list[tuple[str, Callable[[], GlobalMix], bool]]:
    every = {**LINEAR, **LATENT_NETWORKS}
    return [(n, make, w) for n, make in every.items() for w in (False, True) if not w or n in WEIGHTED]


@pytest.mark.parametrize(
    ("name", "make", "weighted"), views(), ids=lambda v: v if isinstance(v, str) else str(v)[:5]
)
def test_the_layer_equals_its_factors(name: str, make: Callable[[], GlobalMix], weighted: bool) -> None:
    layer, (h, x, context) = made(make), sample(weighted)
    view = factors(layer, h, x, context)
    assert view.linear == (name in LINEAR)
    assert_same(view.apply(), layer(h, x, context)[0], 1e-10)


@pytest.mark.parametrize("make", [LINEAR["norm"], LINEAR["fourier"], LINEAR["factorised fourier"]])
def test_layers_that_are_linear_altogether_have_factors_that_do_not_depend_on_the_features(
    make: Callable[[], GlobalMix],
) -> None:
    layer, (h, x, context) = made(make), sample(False)
    a, b = factors(layer, h, x, context), factors(layer, torch.randn_like(h), x, context)
    assert torch.equal(a.u, b.u)
    assert torch.equal(a.v, b.v)
    assert_same(a.kernel()[0], jacobian(layer, h, x, context).total(), 1e-10)


@pytest.mark.parametrize("name", ["transolver", "linear-no", "flare", "galerkin", "norm", "hpm", "lrsa"])
def test_the_rank_of_the_interaction_is_at_most_the_number_of_latents(name: str) -> None:
    layer, (h, x, context) = made({**LINEAR, **LATENT_NETWORKS}[name]), sample(True)
    view = factors(layer, h, x, context)
    sigma = torch.linalg.svdvals(view.kernel())
    latents = view.u.shape[-1]
    assert latents < view.u.shape[1]
    assert (sigma[:, latents:] < 1e-12 * sigma[:, :1]).all()
    assert_same(view.singular_values(), sigma[:, :latents])
    assert (effective_rank(sigma) <= latents).all()


def test_the_rank_of_fourier_modes_is_at_most_twice_their_number() -> None:
    view = factors(made(lambda: FourierMix(WIDTH, 2)), *sample(False))
    sigma, modes = torch.linalg.svdvals(view.kernel()), view.u.shape[-1]
    assert modes == 8
    assert (sigma[:, 2 * modes :] < 1e-12 * sigma[:, :1]).all()
    assert_same(view.singular_values(), sigma[:, : 2 * modes])


def test_a_known_kernel_has_the_singular_values_and_the_effective_rank_it_was_made_with() -> None:
    sigma = torch.tensor([4.0, 2.0, 1.0, 1.0], dtype=torch.float64)
    u, v = (torch.linalg.qr(torch.randn(40, 4, dtype=torch.float64))[0] for _ in range(2))
    view = Factors(u[None], v[None], torch.zeros(1, 40, 3, dtype=torch.float64), torch.diag(sigma)[None])
    assert_same(view.singular_values()[0], sigma)
    assert_same(torch.linalg.svdvals(view.kernel())[0, :4], sigma)
    # p = 1/2, 1/4, 1/8, 1/8: the entropy is (1/2 + 2/4 + 3/8 + 3/8) log 2.
    assert_same(effective_rank(sigma), torch.tensor(2**1.75, dtype=torch.float64))


def test_effective_rank_counts_equal_modes_and_ignores_scale_and_zeros() -> None:
    assert_same(effective_rank(torch.tensor([7.0, 7.0, 7.0, 0.0])), torch.tensor(3.0), 1e-6)
    assert_same(effective_rank(torch.tensor([1e-30, 0.0])), torch.tensor(1.0), 1e-6)
    assert effective_rank(torch.zeros(4)) == 0


@pytest.mark.parametrize("name", ["lrsa", "perceiver io", "galerkin", "hpm", "transolver on grids"])
def test_the_jacobian_is_the_derivative_of_the_layer(name: str) -> None:
    layer, (h, x, context) = made({**LINEAR, **LATENT_NETWORKS}[name]), sample(name in WEIGHTED)
    with sdpa_kernel(SDPBackend.MATH):
        whole = jacrev(lambda points: layer(points[None], x, context)[0])(h[0])  # (N, d, N, d)
    expected = torch.einsum("icjc->ij", whole) / WIDTH
    assert_same(jacobian(layer, h, x, context).total(), expected, 1e-10)


def test_the_latent_network_of_a_linear_process_contracts_to_its_matrix() -> None:
    """G acts alike on all channels here, so its contraction must give it back."""
    g = torch.randn(2, 5, 5, dtype=torch.float64)
    maps = torch.randn(2, 2, 9, 5, dtype=torch.float64)
    values = torch.randn(2, 9, 3, dtype=torch.float64)
    network = Factors(maps[0], maps[1], values, lambda z: g @ z + 1)
    assert_same(network.mixing(), g)
    assert_same(network.kernel(), Factors(maps[0], maps[1], values, g).kernel())


def test_what_cannot_be_afforded_or_is_not_known_is_refused_with_a_cure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    layer, (h, x, context) = made(make_mixer), sample(False)
    with pytest.raises(LrsaError, match="one sample at a time"):
        factors(layer, h.expand(2, -1, -1), x, context)
    with pytest.raises(LrsaError, match="has no trace"):
        jacobian(made(LATENT_NETWORKS["lno"]), h, x, context)
    monkeypatch.setattr(lowrank, "POINTS", 10)
    for refused in (lambda: jacobian(layer, h, x, context), lambda: factors(layer, h, x, context).kernel()):
        with pytest.raises(LrsaError, match="--stride"):
            refused()

    class Unknown(GlobalMix):
        def forward(self, h: Tensor, x: Tensor, context: Context) -> Tensor:
            return nn.functional.relu(h)

    with pytest.raises(LrsaError, match="no factors are known of Unknown"):
        factors(Unknown(), h, x, context)
