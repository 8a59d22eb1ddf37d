"""The spectral models: FNO, F-FNO, LSM and NORM, and their mixers in our backbone."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from lrsa.context import Context, Needs, needs_of
from lrsa.errors import LrsaError
from lrsa.geometry.eigenbasis import box_eigenfunctions
from lrsa.models.attention import FFN
from lrsa.models.baselines import f_fno, fno, lsm, norm
from lrsa.models.baselines.f_fno import FFNO, FFNOLinear
from lrsa.models.baselines.fno import FNO, index_grid, reference_distances
from lrsa.models.baselines.lsm import LSM
from lrsa.models.baselines.norm import NORM
from lrsa.models.mixers.eigenbasis import EigenbasisMix
from lrsa.models.mixers.factorised_fourier import FactorisedFourierMix
from lrsa.models.mixers.fourier import FourierMix, SpectralConvolution
from lrsa.models.operator import Backbone
from lrsa.streaming.stream import stream

GRID = (12, 10)
SMALL: dict[str, Callable[[], nn.Module]] = {
    "fno": lambda: FNO(2, 1, 1, width=16, modes=6),
    "f-fno": lambda: FFNO(2, 1, 1, width=16, depth=3, modes=(8, 8)),
    "f-fno-linear": lambda: FFNOLinear(2, 1, 1, width=16, depth=2, modes=(8, 8)),
    "lsm": lambda: LSM(2, 1, 1, width=8, heads=2, tokens=2, bases=6),
    "norm": lambda: NORM(2, 1, 1, width=16, modes=20),
}
small = pytest.mark.parametrize("make", SMALL.values(), ids=SMALL.keys())


def sample(batch: int = 2, grid: tuple[int, int] = GRID, modes: int = 20) -> tuple[Tensor, Tensor, Context]:
    """Points of a bent grid, a rough feature, and a context that all models can use."""
    x = index_grid(grid).float()
    x = torch.stack([x[:, 0], x[:, 1] + 0.2 * torch.sin(3 * x[:, 0])], dim=-1).expand(batch, -1, -1)
    basis = torch.from_numpy(box_eigenfunctions(grid, modes)[1]).float().expand(batch, -1, -1)
    return x, torch.randn(batch, x.shape[1], 1), Context(grid=grid, basis=basis)


@pytest.mark.parametrize(
    ("make", "preset", "options", "published"),
    [
        (FNO, fno.PRESETS["darcy"], {}, "37.9M"),
        (FNO, fno.PRESETS["navier-stokes"], {}, "9.47M"),
        (FFNO, f_fno.PRESETS["airfoil"], {}, "10.25M"),
        (FFNO, f_fno.PRESETS["pipe"], {}, "7.10M"),
        (FFNO, f_fno.PRESETS["plasticity"], {}, "11.03M"),
        (FFNO, f_fno.PRESETS["navier-stokes"], {"in_features": 1}, "1.07M"),
        (FFNOLinear, f_fno.LINEAR_PRESETS["darcy"], {}, "6.36M"),
        (FFNOLinear, f_fno.LINEAR_PRESETS["navier-stokes"], {}, "155K"),
        # The reference feeds the coordinates of these two twice, as features too.
        (FFNOLinear, f_fno.LINEAR_PRESETS["airfoil"], {"in_features": 2}, "397K"),
        (FFNOLinear, f_fno.LINEAR_PRESETS["pipe"], {"in_features": 2}, "6.34M"),
        (FFNOLinear, f_fno.LINEAR_PRESETS["plasticity"], {}, "6.38M"),
        (LSM, lsm.PRESETS["pipe"], {}, "4.81M"),
        (LSM, lsm.PRESETS["darcy"], {}, "19.2M"),
        (NORM, norm.PRESETS["irregular-darcy"], {}, "532961"),
        (NORM, norm.PRESETS["pipe-turbulence"], {}, "532961"),
        (NORM, norm.PRESETS["composite"], {}, "532929"),
    ],
)
def test_the_published_parameter_counts(
    make: Callable[..., nn.Module], preset: dict[str, Any], options: dict[str, int], published: str
) -> None:
    """To every printed digit; complex weights count as two."""
    with torch.device("meta"):
        count = sum(parameter.numel() for parameter in make(**{**preset, **options}).parameters())
    number = published.rstrip("KM")
    scale = {"K": 1e3, "M": 1e6}.get(published[-1], 1)
    assert f"{count / scale:.{len(number.partition('.')[2])}f}" == number


@small
def test_the_grid_is_not_stored(make: Callable[[], nn.Module]) -> None:
    model = make().eval()
    for grid in ((12, 10), (21, 33)):
        x, f, context = sample(grid=grid)
        assert model(x, f, context).shape == (2, grid[0] * grid[1], 1)


@small
def test_it_runs_in_bfloat16(make: Callable[[], nn.Module]) -> None:
    model = make().eval().requires_grad_(False)
    x, f, context = sample()
    exact = model(x, f, context)
    with torch.autocast("cpu", torch.bfloat16):
        rough = model(x, f, context)
    assert float((rough - exact).norm() / exact.norm()) < 0.05


@pytest.mark.parametrize("make", [FNO, FFNOLinear, LSM])
def test_time_changes_the_answer_and_is_asked_for(make: Callable[..., nn.Module]) -> None:
    model = make(2, 1, 1, width=16, time=True).eval()
    assert needs_of(model) == Needs(grid=True, time=True)
    x, f, context = sample()
    early, late = (model(x, f, Context(grid=GRID, time=torch.full((2,), t))) for t in (0.0, 1.0))
    assert not torch.allclose(early, late)
    with pytest.raises(LrsaError, match="time"):
        model(x, f, context)


def test_the_distance_to_reference_points_takes_the_place_of_the_coordinates() -> None:
    model = FNO(2, 1, 1, width=8, modes=4, reference=3)
    x, f, context = sample()
    assert torch.equal(model(x, f, context), model(torch.zeros_like(x), f, context))
    distances = reference_distances((3, 5), 3)
    assert distances[0, 8] == pytest.approx(2**0.5)  # corner to corner
    assert distances[1, 1] == pytest.approx(0.25)  # (0, 1/4) to (0, 1/2)
    assert distances.diagonal()[0] == 0


@pytest.mark.parametrize("mixer", [FourierMix(8, 3), FactorisedFourierMix(8, (3, 4))])
def test_a_shift_of_the_periodic_grid_shifts_the_result(mixer: FourierMix | FactorisedFourierMix) -> None:
    mixer = mixer.double()
    h = torch.randn(2, 12, 10, 8, dtype=torch.float64)
    context, x = Context(grid=GRID), torch.zeros(2, 120, 2)
    shifted = mixer(h.roll((5, 3), (1, 2)).flatten(1, 2), x, context)
    expected = mixer(h.flatten(1, 2), x, context).unflatten(1, GRID).roll((5, 3), (1, 2)).flatten(1, 2)
    torch.testing.assert_close(shifted, expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize("grid", [(12, 10), (7, 9), (3, 4)])
def test_the_spectral_convolution_is_the_plain_two_axis_transform(grid: tuple[int, int]) -> None:
    """Including modes that the grid does not have: they count as zero."""
    modes, layer = 4, SpectralConvolution(3, 4).double()
    h = torch.randn(2, *grid, 3, dtype=torch.float64)
    spectrum = torch.fft.rfft2(h, dim=(1, 2))
    mixed, weight = torch.zeros_like(spectrum), torch.view_as_complex(layer.weight.detach())
    for row in range(grid[0]):
        k1 = row if row < (grid[0] + 1) // 2 else row - grid[0]
        for k2 in range(min(modes, grid[1] // 2 + 1)):
            if -modes <= k1 < modes:
                mixed[:, row, k2] = spectrum[:, row, k2] @ weight[k1 % (2 * modes), k2]
    expected = torch.fft.irfft2(mixed, s=grid, dim=(1, 2))
    torch.testing.assert_close(layer(h), expected, rtol=0, atol=1e-13)


def test_the_backbone_takes_every_mixer() -> None:
    for mixer in (
        lambda: FourierMix(16, 4),
        lambda: FactorisedFourierMix(16, (4, 4)),
        lambda: EigenbasisMix(16, 20),
    ):
        model = Backbone(2, 1, 1, mixer, width=16, depth=2, ffn=lambda: FFN(16, 16))
        assert model.needs == mixer().needs
        x, f, context = sample()
        model(x, f, context).square().mean().backward()
        assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


def eigen_mixer() -> tuple[EigenbasisMix, Tensor, Tensor]:
    mixer = EigenbasisMix(5, 12).double()
    basis = torch.from_numpy(box_eigenfunctions((9, 8), 14)[1]).expand(2, -1, -1)
    return mixer, torch.randn(2, 72, 5, dtype=torch.float64), basis


def test_functions_in_the_span_of_the_basis_pass_unchanged_through_unit_matrices() -> None:
    mixer, _, basis = eigen_mixer()
    with torch.no_grad():
        mixer.weight.copy_(torch.eye(5).expand(12, -1, -1))
    h = basis[..., :12] @ torch.randn(2, 12, 5, dtype=torch.float64)
    weights = torch.rand(2, 72, dtype=torch.float64) + 0.1
    for context in (Context(basis=basis), Context(basis=basis, weights=weights)):
        torch.testing.assert_close(mixer(h, h, context), h, rtol=0, atol=1e-12)


def test_the_sign_and_scale_of_an_eigenfunction_do_not_matter() -> None:
    mixer, h, basis = eigen_mixer()
    scaled = basis * torch.linspace(-2, 3, 14, dtype=torch.float64)
    torch.testing.assert_close(
        mixer(h, h, Context(basis=scaled)), mixer(h, h, Context(basis=basis)), rtol=0, atol=1e-12
    )


def test_the_projections_of_two_halves_merge_to_that_of_the_whole() -> None:
    mixer, h, basis = eigen_mixer()
    context = Context(basis=basis, weights=torch.rand(2, 72, dtype=torch.float64) + 0.1)
    parts = [mixer.partial(h[:, s], h[:, s], context.at(s)) for s in (slice(0, 5), slice(5, None))]
    torch.testing.assert_close(
        parts[0].merge(parts[1]).finish(), mixer.compress(h, h, context), rtol=0, atol=1e-12
    )


def test_norm_streams_where_it_does_not_number_its_nodes() -> None:
    x, f, context = sample()
    x, f, context = x.double(), f.double(), Context(basis=context.need("basis", "this test").double())
    model = NORM(2, 1, 1, width=8, modes=20, node_index=False).double()
    torch.testing.assert_close(
        stream(model, x, f, context, chunk=17), model(x, f, context), rtol=0, atol=1e-11
    )
    with pytest.raises(LrsaError, match="node_index=False"):
        stream(NORM(2, 1, 1, width=8, modes=20).double(), x, f, context)


@pytest.mark.parametrize("node_index", [True, False])
def test_padding_does_not_change_norm(node_index: bool) -> None:
    x, f, context = sample()
    model = NORM(2, 1, 1, width=8, modes=20, node_index=node_index)
    padded = [
        torch.cat([t, torch.full_like(t[:, :7], 3.0)], dim=1)
        for t in (x, f, context.need("basis", "this test"))
    ]
    mask = (torch.arange(127) < 120).expand(2, -1)
    u = model(padded[0], padded[1], Context(basis=padded[2], mask=mask))
    torch.testing.assert_close(u[:, :120], model(x, f, context), rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", ["fno", "f-fno", "f-fno-linear", "lsm"])
def test_a_grid_model_refuses_what_is_no_full_grid_of_two_axes(name: str) -> None:
    model = SMALL[name]().eval()
    x, f, context = sample()
    with pytest.raises(LrsaError, match=r"needs Context\.grid"):
        model(x, f, Context())
    with pytest.raises(LrsaError, match="two axes"):
        model(x, f, Context(grid=(6, 2, 10)))
    with pytest.raises(LrsaError, match="takes full grids: 120 points do not fill 12 x 11"):
        model(x, f, Context(grid=(12, 11)))
    with pytest.raises(LrsaError, match="padded"):
        model(x, f, Context(grid=GRID, mask=torch.ones(2, 120, dtype=torch.bool)))
    with pytest.raises(LrsaError, match="2 coordinates and 1 features per point, not 2 and 0"):
        model(x, None, context)


def test_norm_refuses_what_it_cannot_use() -> None:
    with pytest.raises(LrsaError, match="no features"):
        NORM(2, 0, 1)
    x, f, context = sample(modes=19)
    model = NORM(2, 1, 1, width=8, modes=20)
    with pytest.raises(LrsaError, match=r"needs Context\.basis"):
        model(x, f, Context())
    with pytest.raises(LrsaError, match="20 eigenfunctions, and the data has 19"):
        model(x, f, context)
    with pytest.raises(LrsaError, match="features per point, not 0"):
        model(x, None, context)
    with pytest.raises(LrsaError, match="fewer modes"):
        model(x, f, Context(basis=torch.zeros(2, 120, 20)))


def test_lsm_says_when_a_grid_is_too_coarse_to_normalise() -> None:
    x, f, context = sample(batch=1)
    with pytest.raises(LrsaError, match="finer grid"):
        LSM(2, 1, 1, width=8)(x, f, context)
    assert LSM(2, 1, 1, width=8).eval()(x, f, context).isfinite().all()
    with pytest.raises(LrsaError, match="not a multiple of heads"):
        LSM(2, 1, 1, width=12)


def test_half_of_the_eigenfunctions_of_the_box_are_odd() -> None:
    """cos(πk(1 - t)) = (-1)ᵏ cos(πkt): the basis of a grid read backwards is the basis up to signs."""
    basis = box_eigenfunctions(GRID, 20)[1]
    ratio = basis[::-1] / np.where(np.abs(basis) > 1e-12, basis, np.nan)
    assert np.allclose(np.nanmax(ratio, axis=0), np.nanmin(ratio, axis=0))
