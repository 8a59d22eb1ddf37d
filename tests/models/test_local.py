"""Filters in front of the point FFN, on grids that end and on grids that close on themselves."""

import pytest
import torch
from torch import Tensor, nn

from lrsa.context import Context
from lrsa.errors import LrsaError
from lrsa.models.block import DilatedFFN, DilatedFilter, FourierFFN, GridFilter, LocalFFN, reaches
from lrsa.models.dilated_operator import LRSADilated
from lrsa.models.fourier_operator import LRSAFourier
from lrsa.models.mixers.fourier import SpectralConvolution, SpectralFilter
from lrsa.models.operator import LRSA

GRID = (8, 9)


def moved(h: Tensor, rows: int, columns: int) -> Tensor:
    """(B, N, d) on the grid, shifted along both axes with what leaves coming in on the other side."""
    return h.unflatten(1, GRID).roll((rows, columns), dims=(1, 2)).flatten(1, 2)


def filters(periodic: bool) -> list[nn.Module]:
    torch.manual_seed(0)
    made = [
        LocalFFN(8, 12, periodic=periodic),
        LocalFFN(8, 12, dense=True, periodic=periodic),
        FourierFFN(8, 12, 3, periodic),
        DilatedFFN(8, 12, 2, periodic),
    ]
    return [ffn.double() for ffn in made]


@pytest.mark.parametrize("which", range(4), ids=["depthwise", "conv", "fourier", "dilated"])
def test_a_filter_of_a_torus_moves_with_it(which: int) -> None:
    ffn, h = filters(periodic=True)[which], torch.rand(2, 72, 8, dtype=torch.double)
    context = Context(grid=GRID)
    torch.testing.assert_close(ffn(moved(h, 2, 5), context), moved(ffn(h, context), 2, 5))


@pytest.mark.parametrize("which", range(4), ids=["depthwise", "conv", "fourier", "dilated"])
def test_a_filter_of_a_grid_that_ends_feels_its_edge_and_nothing_else(which: int) -> None:
    h, context = torch.rand(2, 72, 8, dtype=torch.double), Context(grid=GRID)
    ends, torus = (filters(periodic)[which](h, context).unflatten(1, GRID) for periodic in (False, True))
    reach = 2 if which == 3 else 1
    inside = slice(reach, -reach)
    torch.testing.assert_close(ends[:, inside, inside], torus[:, inside, inside])
    assert not torch.allclose(ends[:, 0], torus[:, 0])


def test_a_filter_is_a_spectral_convolution_by_diagonal_matrices() -> None:
    alone, mixing = SpectralFilter(4, 3), SpectralConvolution(4, 3)
    with torch.no_grad():
        mixing.weight.copy_(torch.diag_embed(alone.weight.movedim(-1, 0)).movedim(0, -1))
    h = torch.rand(2, 7, 10, 4)
    torch.testing.assert_close(alone(h), mixing(h))


def test_the_filter_reaches_all_of_the_grid() -> None:
    """Where the 3x3 filters of two blocks end, those in Fourier space do not; without latents to mix by."""
    h, context = torch.zeros(1, 72, 8, dtype=torch.double), Context(grid=GRID)
    local, _, fourier, _ = filters(periodic=True)
    touched = h.clone()
    touched[0, 0, 0] = 1
    far = GRID[1] // 2 + GRID[1] * (GRID[0] // 2)
    assert torch.equal(local(h, context)[0, far], local(touched, context)[0, far])
    assert not torch.equal(fourier(h, context)[0, far], fourier(touched, context)[0, far])


def test_each_share_of_the_channels_sees_neighbours_at_its_own_reach() -> None:
    """And has the weights of the filter whose neighbours are all next to each other, in number."""
    near, dilated = GridFilter(8, dense=False, periodic=True), DilatedFilter(8, 3, periodic=True)
    assert sum(p.numel() for p in dilated.parameters()) == sum(p.numel() for p in near.parameters())
    image = torch.zeros(1, 16, 36, 8)
    touched = image.clone()
    touched[0, 0, 0] = 1
    seen = (dilated(touched) != dilated(image))[0]
    for row, column, channels in ((1, 1, range(3)), (2, 3, range(3, 6)), (4, 9, range(6, 8))):
        expected = {(i, j) for i in (-row % 16, 0, row) for j in (-column % 36, 0, column)}
        for channel in channels:
            assert {tuple(place) for place in seen[..., channel].nonzero().tolist()} == expected


def test_reaches_grow_by_one_factor_from_the_next_point_to_a_quarter_of_the_axis() -> None:
    assert reaches(32, 4) == [1, 2, 4, 8]
    assert reaches(256, 4) == [1, 4, 16, 64]
    assert reaches(111, 4) == [1, 3, 9, 28]
    assert reaches(3, 4) == [1, 1, 1, 1]


def test_lrsa_on_a_torus_depends_on_place_through_the_coordinates_alone() -> None:
    """Shifted inputs give shifted outputs where all points are told the same place."""
    x, f, context = torch.zeros(2, 72, 2), torch.rand(2, 72, 1), Context(grid=GRID)
    for make in (
        lambda: LRSA(2, 1, 1, width=8, depth=2, heads=2, rank=4, local="depthwise", periodic=True),
        lambda: LRSAFourier(2, 1, 1, width=8, depth=2, heads=2, rank=4, modes=3, periodic=True),
        lambda: LRSADilated(2, 1, 1, width=8, depth=2, heads=2, rank=4, periodic=True),
    ):
        torch.manual_seed(0)
        model = make().double()
        given = f.double()
        shifted = model(x.double(), moved(given, 3, 4), context)
        torch.testing.assert_close(shifted, moved(model(x.double(), given, context), 3, 4))


def test_without_a_grid_each_model_names_the_one_that_needs_none() -> None:
    x, f = torch.rand(1, 72, 2), torch.rand(1, 72, 1)
    for model, cure in (
        (LRSA(2, 1, 1, width=8, depth=1, heads=2, rank=4, local="depthwise"), "local=pointwise"),
        (LRSAFourier(2, 1, 1, width=8, depth=1, heads=2, rank=4), "Train lrsa with local=pointwise"),
        (LRSADilated(2, 1, 1, width=8, depth=1, heads=2, rank=4), "Train lrsa with local=pointwise"),
    ):
        with pytest.raises(LrsaError, match=f"takes a full grid of two axes.*{cure}"):
            model(x, f, Context(grid=(3, 3)))
        with pytest.raises(LrsaError, match=f"cannot encode.*{cure}"):
            model.encode(x, f)
