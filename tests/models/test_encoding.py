"""Encodings of position and time."""

import math

import pytest
import torch

from lrsa.context import Context
from lrsa.models.encoding import PositionalEncoding, TimeEncoding
from lrsa.models.operator import LRSA


def test_without_frequencies_the_encoding_is_the_coordinate() -> None:
    x = torch.rand(2, 5, 3)
    encoding = PositionalEncoding(3)
    assert encoding.features == 3
    assert torch.equal(encoding(x), x)


@pytest.mark.parametrize(("frequencies", "powers"), [(1, [0]), (4, [-2, -1, 0, 1]), (9, range(-4, 5))])
def test_frequencies_are_powers_of_two_around_one_half_turn(frequencies: int, powers: list[int]) -> None:
    """x, then sin(2ᵏ π x) for every axis and k, then the cosines."""
    x = torch.rand(1, 1, 2, dtype=torch.float64)
    encoding = PositionalEncoding(2, frequencies).double()
    a, b = x.flatten().tolist()
    angles = [2.0**k * math.pi * value for value in (a, b) for k in powers]
    expected = [a, b, *map(math.sin, angles), *map(math.cos, angles)]
    assert encoding.features == len(expected)
    assert encoding(x).flatten().tolist() == pytest.approx(expected, abs=1e-5)  # π is kept in fp32


def test_the_time_encoding_tells_near_and_far_times_apart() -> None:
    encoding = TimeEncoding(16).double()
    times = torch.tensor([0.0, 0.05, 1.0, 20.0, 400.0], dtype=torch.float64)
    codes = encoding(times)
    assert codes.shape == (5, 1, 16)
    distance = torch.cdist(codes[:, 0], codes[:, 0]) + torch.eye(5, dtype=torch.float64)
    assert float(distance.detach().min()) > 1e-3


@pytest.mark.parametrize(
    "time", [torch.tensor([1, 2]), torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.0]).double()]
)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_the_time_may_be_of_any_type(time: torch.Tensor, dtype: torch.dtype) -> None:
    """Like the weights and the mask: what belongs to the sample need not have the precision of the model."""
    model = LRSA(2, 0, 1, width=8, depth=1, heads=2, rank=3, time=True).to(dtype)
    assert model(torch.rand(2, 5, 2, dtype=dtype), None, Context(time=time)).dtype == dtype
