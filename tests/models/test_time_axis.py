"""Models of a grid with time as its third axis: F-FNO and LSM as published for Plasticity."""

import math
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import lrsa
from lrsa.context import Context, Needs, needs_of
from lrsa.errors import LrsaError
from lrsa.models.baselines.f_fno import FFNO
from lrsa.models.baselines.fno import index_grid, pad_grid
from lrsa.models.baselines.lsm import LSM, SpectralBlock
from lrsa.models.mixers.factorised_fourier import FactorisedConvolution
from lrsa.problems.catalogue import get
from lrsa.training.choose import for_problem

GRID = (9, 6, 5)


def small_lsm(**more: Any) -> LSM:
    return LSM(3, 1, 2, width=4, heads=2, tokens=2, bases=4, time_axis=True, **more)


SMALL: dict[str, Callable[..., nn.Module]] = {
    "f-fno": lambda **more: FFNO(
        3, 1, 2, width=8, depth=2, modes=(4, 3), time_modes=2, padding=2, time_axis=True, **more
    ),
    "lsm": small_lsm,
}
small = pytest.mark.parametrize("make", SMALL.values(), ids=SMALL.keys())


def sample(grid: tuple[int, ...] = GRID) -> tuple[Tensor, Tensor, Context]:
    x = index_grid(grid).float().expand(2, -1, -1)
    return x, torch.randn(2, x.shape[1], 1), Context(grid=grid)


def plain(layer: FactorisedConvolution, h: Tensor) -> Tensor:
    """The sum over the axes of irfft(W rfft(h)), by plain sums along one line after the other."""
    weights = [w for w in (layer.rows, layer.columns, layer.frames) if w is not None]
    made = np.zeros(h.shape)
    for axis, weight in enumerate(weights):
        n, matrices = h.shape[1 + axis], torch.view_as_complex(weight.detach()).numpy()
        waves = np.exp(-2j * math.pi * np.outer(np.arange(n), np.arange(min(len(matrices), n // 2 + 1))) / n)
        others = [range(size) for a, size in enumerate(h.shape[1:-1]) if a != axis]
        for sample_, *places in product(range(len(h)), *others):
            where: list[Any] = [sample_, *places]
            where.insert(1 + axis, slice(None))
            line = h[tuple(where)].numpy()  # (n, d)
            for k in range(waves.shape[1]):
                coefficient = waves[:, k] @ line @ matrices[k] / n
                twice = 1 if k == 0 or 2 * k == n else 2
                made[tuple(where)] += twice * np.real(np.outer(waves[:, k].conj(), coefficient))
    return torch.from_numpy(made)


@pytest.mark.parametrize(
    ("grid", "modes"), [((6, 5, 4), (3, 2, 2)), ((3, 4, 2), (4, 4, 4)), ((5, 4), (3, 2))]
)
def test_the_factorised_convolution_is_the_plain_sum_over_its_axes(
    grid: tuple[int, ...], modes: tuple[int, ...]
) -> None:
    """Including modes that the grid does not have: they count as zero."""
    layer = FactorisedConvolution(3, modes).double()
    h = torch.randn(2, *grid, 3, dtype=torch.float64)
    torch.testing.assert_close(layer(h), plain(layer, h), rtol=0, atol=1e-13)


def test_a_shift_of_the_periodic_grid_shifts_the_result() -> None:
    layer, h = FactorisedConvolution(4, (4, 3, 2)).double(), torch.randn(2, *GRID, 4, dtype=torch.float64)
    by, axes = (5, 2, 3), (1, 2, 3)
    torch.testing.assert_close(layer(h.roll(by, axes)), layer(h).roll(by, axes), rtol=0, atol=1e-13)


def test_without_waves_in_time_every_frame_is_filtered_by_itself() -> None:
    layer, flat = FactorisedConvolution(4, (4, 3, 2)).double(), FactorisedConvolution(4, (4, 3)).double()
    assert layer.frames is not None
    nn.init.zeros_(layer.frames)
    flat.load_state_dict({"rows": layer.rows, "columns": layer.columns})
    h = torch.randn(2, *GRID, 4, dtype=torch.float64)
    frames = torch.stack([flat(h[:, :, :, t]) for t in range(GRID[2])], dim=3)
    torch.testing.assert_close(layer(h), frames, rtol=0, atol=1e-13)


def test_lsm_exchanges_its_axes_with_those_of_the_data_and_of_its_kernels() -> None:
    grid, order = (33, 17, 5), (1, 2, 0)
    model, turned = (small_lsm().double().eval() for _ in range(2))
    state = model.state_dict()
    kernels = {k: v.permute(0, 1, *(2 + a for a in order)) for k, v in state.items() if v.ndim == 5}
    turned.load_state_dict({**state, **kernels})
    h = torch.randn(1, *grid, 4, dtype=torch.float64)
    axes = [1 + a for a in order]
    there = model._unet(h).permute(0, 1, *(1 + a for a in axes))
    torch.testing.assert_close(turned._unet(h.permute(0, *axes, 4)), there, rtol=0, atol=1e-10)


def test_a_patch_of_points_does_not_see_the_others() -> None:
    block = SpectralBlock(4, 2, 2, 4).double()
    h = torch.randn(1, 4, 4, 6, 4, dtype=torch.float64)
    changed = h.clone()
    changed[:, :, :2, 3:, 2:] += 1  # one patch of 2 x 3 x 2
    before, after = (block(values, (2, 3, 2)) for values in (h, changed))
    same = torch.ones(4, 6, 4, dtype=torch.bool)
    same[:2, 3:, 2:] = False
    assert torch.equal(before[..., same], after[..., same])
    assert (before[..., ~same] != after[..., ~same]).all()
    assert torch.equal(before, torch.cat([block(half, (2, 3, 2)) for half in h.chunk(2, 2)], 2))


def test_grids_are_filled_up_along_every_axis() -> None:
    filled = pad_grid(torch.ones(1, 17, 16, 20, 2))
    assert filled.shape == (1, 32, 16, 32, 2)
    assert filled.sum() == 17 * 16 * 20 * 2


@small
def test_the_grid_is_not_stored_and_all_frames_come_at_once(make: Callable[[], nn.Module]) -> None:
    model = make().eval()
    assert needs_of(model) == Needs(grid=True, time_axis=True)
    for grid in (GRID, (17, 4, 3)):
        x, f, context = sample(grid)
        assert model(x, f, context).shape == (2, math.prod(grid), 2)


@small
def test_a_frame_knows_of_the_others(make: Callable[[], nn.Module]) -> None:
    model, (x, f, context) = make().eval(), sample((17, 16, 20))
    changed = f.unflatten(1, (-1, 20)).clone()
    changed[:, :, 0] += 1
    last = [
        model(x, values, context).unflatten(1, (-1, 20))[:, :, -1] for values in (f, changed.flatten(1, 2))
    ]
    assert not torch.allclose(*last)


@small
def test_every_weight_learns_and_bfloat16_is_near(make: Callable[[], nn.Module]) -> None:
    model, (x, f, context) = make(), sample((17, 16, 20))
    u = model(x, f, context)
    u.square().sum().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in model.parameters())
    with torch.no_grad():
        exact = model(x, f, context)
        with torch.autocast("cpu", torch.bfloat16):
            rough = model(x, f, context)
    assert float((rough - exact).norm() / exact.norm()) < 0.05


@small
def test_what_is_no_full_grid_of_three_axes_is_refused(make: Callable[..., nn.Module]) -> None:
    model, (x, f, context) = make().eval(), sample()
    with pytest.raises(LrsaError, match="three axes, and this one has 2"):
        model(x, f, Context(grid=(54, 5)))
    with pytest.raises(LrsaError, match="padded"):
        model(x, f, Context(grid=GRID, mask=torch.ones(x.shape[:2], dtype=torch.bool)))
    with pytest.raises(LrsaError, match="3 coordinates and 1 features per point, not 2 and 1"):
        model(x[..., :2], f, context)
    with pytest.raises(LrsaError, match="leave out latent_grid"):
        make(latent_grid=(16, 16))


def test_time_is_an_axis_or_an_input() -> None:
    with pytest.raises(LrsaError, match="leave out time"):
        small_lsm(time=True)


def test_on_plasticity_both_have_their_published_form_at_every_scale() -> None:
    plasticity = get("plasticity")
    for name in ("f-fno", "lsm"):
        with torch.device("meta"):
            assert needs_of(lrsa.create_model(name, preset="plasticity")).time_axis
        for scale in ("demo", "cpu", "paper"):
            choice = for_problem(plasticity, plasticity.scale(scale), name)
            assert choice.model["time_axis"] is True
            assert choice.train["batch_size"] == 2
        assert "time_axis" not in for_problem(get("pipe"), get("pipe").scale("demo"), name).model
