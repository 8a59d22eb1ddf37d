"""The partial sums of every low-rank mixer under bf16 autocast: kept in fp32, for any number of chunks."""

import importlib
import pkgutil
from collections.abc import Callable
from functools import reduce
from typing import Any

import pytest
import torch
from conftest import unsettle
from torch import Tensor

import lrsa.models.baselines
import lrsa.models.mixers
from lrsa.context import Context
from lrsa.models.attention import LowRankSpatialAttention
from lrsa.models.baselines.lno import TiedLatents
from lrsa.models.baselines.perceiver_io import LatentBackbone
from lrsa.models.domains import DomainMix
from lrsa.models.mixers.eigenbasis import EigenbasisMix
from lrsa.models.mixers.eigenbasis_gated import GatedEigenbasis, PlainEigenbasis
from lrsa.models.mixers.flare import FlareAttention
from lrsa.models.mixers.galerkin import GalerkinAttention
from lrsa.models.mixers.linear_no import LinearAttention
from lrsa.models.mixers.transolver import PhysicsAttention
from lrsa.models.mixers.transolver_plus import EideticAttention
from lrsa.models.template import LowRankMix

WIDTH, HEADS, RANK = 16, 4, 6
ROUNDING = 2**-9
"""Of bf16, relative."""
MAKERS: list[Callable[[], LowRankMix[Any]]] = [
    lambda: LowRankSpatialAttention(WIDTH, HEADS, RANK, WIDTH),
    lambda: FlareAttention(WIDTH, HEADS, RANK),
    lambda: LinearAttention(WIDTH, HEADS, RANK, temperature=(0.01, 1.0)),
    lambda: PhysicsAttention(WIDTH, HEADS, RANK),
    lambda: EideticAttention(WIDTH, HEADS, RANK),
    lambda: GalerkinAttention(WIDTH, HEADS, coord_dim=2),
    lambda: EigenbasisMix(WIDTH, RANK),
    lambda: GatedEigenbasis(WIDTH, HEADS, RANK),
    lambda: PlainEigenbasis(WIDTH, HEADS, RANK),
    lambda: TiedLatents(WIDTH, 1, HEADS, RANK),
    lambda: LatentBackbone(WIDTH, 1, HEADS, RANK, WIDTH),
]
MIXERS = {type(make()): make for make in MAKERS}
SOFTMAX = (LowRankSpatialAttention, FlareAttention, LinearAttention, TiedLatents, LatentBackbone)
every_mixer = pytest.mark.parametrize("kind", MIXERS, ids=lambda kind: kind.__name__)
Sample = tuple[Tensor, Tensor, Context]


def test_every_low_rank_mixer_is_tested_here() -> None:
    for package in (lrsa.models.mixers, lrsa.models.baselines):
        for module in pkgutil.iter_modules(package.__path__):
            importlib.import_module(f"{package.__name__}.{module.name}")
    known = [kind for kind in LowRankMix.__subclasses__() if kind.__module__.startswith("lrsa.")]
    # A layer of one of two domains has the partials of the layer that it wraps.
    assert set(known) - {DomainMix} == set(MIXERS)


@every_mixer
@pytest.mark.parametrize("weighted", [False, True])
def test_chunks_merge_to_the_whole_within_the_rounding_of_bf16(kind: type, weighted: bool) -> None:
    """The error is that of the products, and the same for 1 chunk and for 64: the sums add none."""
    mixer, sample = make(kind), points(kind, 1600, weighted)
    exact = mixer.double().compress(*double(sample)).detach()
    mixer = mixer.float()
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        whole = distance(mixer.compress(*sample), exact)
        one, many = (distance(merged(parts(mixer, sample, n)).finish(), exact) for n in (1, 64))
    assert max(whole, one, many) < 4 * ROUNDING
    assert many < max(1.5 * one, ROUNDING)


@every_mixer
def test_sums_are_kept_in_fp32(kind: type) -> None:
    mixer, sample = make(kind), points(kind, 32)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        one, two = parts(mixer, sample, 2)
        for partial in (one, two, one.merge(two)):
            tensors = [t for t in vars(partial).values() if isinstance(t, Tensor)]
            assert {t.dtype for t in tensors} == {torch.float32}


@every_mixer
def test_a_hundred_thousand_points_do_not_stall_the_sums(kind: type) -> None:
    """The same hundred points a thousand times: means and projections stay, plain sums grow as often."""
    mixer, (h, x, context) = make(kind), points(kind, 100)
    factor, basis = 1000 if kind in (GatedEigenbasis, PlainEigenbasis) else 1, context.basis
    assert basis is not None
    repeated = (h.repeat(1, 1000, 1), x.repeat(1, 1000, 1), Context(basis=basis.repeat(1, 1000, 1)))
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        partial = mixer.partial(h, x, context)
        expected = factor * partial.finish()
        # The latents of attention pass its output layer in bf16.
        exact = expected.dtype == torch.float32
        assert distance(merged([partial] * 1000).finish(), expected) < (1e-4 if exact else ROUNDING)
        assert distance(mixer.partial(*repeated).finish(), expected) < 2 * ROUNDING


@pytest.mark.parametrize("kind", SOFTMAX, ids=lambda kind: kind.__name__)
def test_exponentials_are_counted_to_the_last(kind: type) -> None:
    """Equal points have the weight exp(0) = 1 each: a sum in bf16 would end at 256."""
    mixer, (h, x, _) = make(kind), points(kind, 1)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        total = merged([mixer.partial(h.repeat(1, 1000, 1), x.repeat(1, 1000, 1), Context())] * 100).total
    assert torch.equal(total, torch.full_like(total, 1e5))


def make(kind: type) -> LowRankMix[Any]:
    """A mixer in fp32, off its initial values."""
    torch.manual_seed(0)
    mixer = MIXERS[kind]().eval()
    unsettle(mixer, gain=1)
    return mixer


def points(kind: type, count: int, weighted: bool = False) -> Sample:
    """Features as the mixer takes them, coordinates, and a basis for those that need one."""
    generator = torch.Generator().manual_seed(1)
    width = WIDTH + RANK if kind is TiedLatents else WIDTH
    h, basis = (torch.randn(1, count, d, generator=generator) for d in (width, RANK))
    x, weights = torch.rand(1, count, 2, generator=generator), torch.rand(1, count, generator=generator) + 0.1
    return h, x, Context(weights=weights if weighted else None, basis=basis).normalised()


def double(sample: Sample) -> Sample:
    h, x, context = sample
    assert context.basis is not None
    weights = None if context.weights is None else context.weights.double()
    return h.double(), x.double(), Context(weights=weights, basis=context.basis.double())


def parts(mixer: LowRankMix[Any], sample: Sample, count: int) -> list[Any]:
    """The partials of so many chunks."""
    h, x, context = sample
    size = h.shape[1] // count
    slices = [slice(start, start + size) for start in range(0, h.shape[1], size)]
    return [mixer.partial(h[:, s], x[:, s], context.at(s)) for s in slices]


def merged(partials: list[Any]) -> Any:
    return reduce(lambda a, b: a.merge(b), partials)


def distance(a: Tensor, b: Tensor) -> float:
    return float((a.double() - b.double()).norm() / b.double().norm())
