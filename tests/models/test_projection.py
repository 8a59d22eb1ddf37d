"""Models of a grid on any points, by a projection to a latent grid."""

from collections.abc import Callable

import pytest
import torch
from torch import nn

import lrsa
from lrsa.context import Context, needs_of
from lrsa.errors import LrsaError
from lrsa.models.baselines.f_fno import FFNO
from lrsa.models.baselines.lsm import LSM
from lrsa.models.baselines.projection import GridProjection
from lrsa.problems.catalogue import get
from lrsa.training.choose import for_problem

SMALL: dict[str, Callable[[], nn.Module]] = {
    "f-fno": lambda: FFNO(2, 1, 1, width=8, depth=2, modes=(4, 4), padding=0, latent_grid=(16, 16)),
    "lsm": lambda: LSM(2, 1, 1, width=8, heads=2, tokens=2, bases=4, latent_grid=(32, 32)),
}
small = pytest.mark.parametrize("make", SMALL.values(), ids=SMALL.keys())


def points(count: int = 30) -> tuple[torch.Tensor, torch.Tensor]:
    return 2 * torch.rand(2, count, 2) - 1, torch.randn(2, count, 1)


@small
def test_points_need_no_grid_and_have_no_order(make: Callable[[], nn.Module]) -> None:
    model, (x, f) = make().eval(), points()
    assert not needs_of(model).grid
    order = torch.randperm(x.shape[1])
    torch.testing.assert_close(model(x[:, order], f[:, order]), model(x, f)[:, order], rtol=1e-4, atol=1e-5)


@small
def test_points_that_are_padded_change_nothing(make: Callable[[], nn.Module]) -> None:
    model, (x, f) = make().eval(), points()
    mask = torch.arange(30).expand(2, -1) < 20
    padded = model(x, f, Context(mask=mask))[:, :20]
    torch.testing.assert_close(padded, model(x[:, :20], f[:, :20]), rtol=1e-4, atol=1e-5)


@small
def test_every_weight_learns(make: Callable[[], nn.Module]) -> None:
    model, (x, f) = make(), points()
    model(x, f).square().sum().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in model.parameters())


def test_low_waves_come_back_from_the_grid() -> None:
    """With unit weights and no deformation, points to grid to points is the projection on the kept modes."""
    projection = GridProjection(2, 1, (16, 16), (4, 4)).double()
    nn.init.zeros_(projection.deformation.last.weight)
    nn.init.zeros_(projection.deformation.last.bias)
    nn.init.zeros_(projection.bias.weight)
    nn.init.zeros_(projection.bias.bias)
    with torch.no_grad():
        for weight in (projection.inwards, projection.outwards):
            weight.copy_(torch.tensor([1.0, 0.0], dtype=torch.float64).expand_as(weight))
    side = torch.arange(16, dtype=torch.float64) / 16
    x = 2 * torch.cartesian_prod(side, side)[None] - 1
    h = torch.cos(2 * torch.pi * (x[..., :1] + 1) / 2) + torch.sin(4 * torch.pi * (x[..., 1:] + 1) / 2)
    back = projection.to_points(projection.to_grid(h, x, Context()), x).detach()
    scale = (back * h).sum() / (h * h).sum()
    torch.testing.assert_close(back, scale * h, rtol=0, atol=1e-9 * float(scale))


def test_the_presets_of_elasticity_take_points() -> None:
    for name in ("f-fno", "lsm"):
        with torch.device("meta"):
            model = lrsa.create_model(name, preset="elasticity")
        assert not needs_of(model).grid
        elasticity = get("elasticity")
        grids = [
            for_problem(elasticity, elasticity.scale(s), name).model["latent_grid"] for s in ("demo", "paper")
        ]
        assert grids == [(32, 32), (96, 96)]
    with pytest.raises(LrsaError, match="grid"):
        FFNO(2, 1, 1, width=8, depth=1, modes=(4, 4))(*points())
