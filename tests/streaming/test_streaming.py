"""Partial sums over some of the points, and the streaming that rests on them: chunked equals whole."""

import random
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
import torch
from conftest import KINDS, ablations, assert_same, features, make_mixer, make_operator, make_points
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

import lrsa
from lrsa.context import Context
from lrsa.errors import LrsaError
from lrsa.models.attention import Attention, SoftmaxPartial
from lrsa.streaming.chunks import Chunked, cut
from lrsa.streaming.stream import encode_streamed


@ablations
@pytest.mark.parametrize("kind", KINDS)
def test_the_partial_of_all_points_finishes_as_the_compression(options: dict[str, bool], kind: str) -> None:
    mixer, points = make_mixer(**options), make_points(3, 13)
    h, context = features(points), points.context(kind)
    assert_same(mixer.partial(h, points.x, context).finish(), mixer.compress(h, points.x, context))


@given(
    count=st.integers(1, 30), pieces=st.integers(1, 8), kind=st.sampled_from(KINDS), seed=st.integers(0, 999)
)
def test_partials_of_chunks_merge_to_the_whole_in_any_order(
    count: int, pieces: int, kind: str, seed: int
) -> None:
    """Any partition of the points, any permutation of the chunks, any bracketing of the merges."""
    rng = random.Random(seed)
    points, mixer = make_points(2, count, seed=seed), make_mixer()
    h, context = features(points), points.context(kind)
    order = torch.tensor(rng.sample(range(count), count))
    cuts = sorted({0, count, *(rng.randrange(count + 1) for _ in range(pieces - 1))})
    chunks = [order[a:b] for a, b in pairwise(cuts)]
    partials = [mixer.partial(h[:, c], points.x[:, c], pick(context, c)) for c in chunks]
    merged = merge_at_random(partials, rng)
    assert_same(merged.finish(), mixer.compress(h, points.x, context))


def test_chunks_of_padding_only_add_nothing() -> None:
    mixer, points = make_mixer(), make_points(1, 9)
    h = features(points)
    real = mixer.partial(h, points.x, Context())
    padding = mixer.partial(h + 5, points.x, Context(mask=torch.zeros(1, 9, dtype=torch.bool)))
    expected = mixer.compress(h, points.x, Context())
    for merged in (real.merge(padding), padding.merge(real), padding.merge(padding).merge(real)):
        assert_same(merged.finish(), expected)
    only = padding.merge(padding)
    assert float(only.total.detach().abs().max()) == 0
    assert_same(only.finish(), mixer.compress(h, points.x, Context(mask=torch.zeros(1, 9, dtype=torch.bool))))


@given(seed=st.integers(0, 999), size=st.sampled_from([1, 10, 200]))
def test_merging_stays_exact_in_fp32_for_logits_beyond_ten_thousand(seed: int, size: int) -> None:
    """Integer queries and keys: the logits, up to 2 · size², are exact, so only the log-sum-exp is tested."""
    rng = random.Random(seed)
    generator = torch.Generator().manual_seed(seed)
    attention = identity_attention(4)
    target = torch.randint(-size, size + 1, (1, 3, 4), generator=generator).float()
    source = torch.randint(-size, size + 1, (1, 24, 4), generator=generator).float()
    mask = torch.rand(1, 24, generator=generator) < 0.7
    mask[:, 0], mask[:, 16:] = True, False  # the last two chunks are nothing but padding
    bias = Context(mask=mask).log_measure(torch.float32)
    assert bias is not None
    cut = [slice(i, i + 4) for i in range(0, 24, 4)]
    partials = [attention.partial(target, source[:, c], bias[..., c]) for c in cut]
    actual = merge_at_random(partials, rng).finish()
    scores = target.double() @ source.double().mT / 2 + bias[:, 0].double()
    expected = scores.softmax(-1) @ source.double()
    assert size < 200 or float(scores.abs().nan_to_num(posinf=0).amax()) > 1e4
    assert_same(actual.double(), expected, 1e-6)
    assert_same(attention(target, source, bias).double(), expected, 1e-6)


@given(
    batch=st.integers(1, 3),
    count=st.integers(1, 40),
    chunk=st.integers(1, 45),
    kind=st.sampled_from(KINDS),
    seed=st.integers(0, 999),
)
def test_streaming_equals_the_whole_for_any_chunk(
    batch: int, count: int, chunk: int, kind: str, seed: int
) -> None:
    model, points = make_operator(frequencies=2), make_points(batch, count, seed=seed)
    arguments = (points.x, points.f, points.context(kind))
    whole, chunked = model(*arguments), lrsa.stream(model, *arguments, chunk=chunk)
    real = points.mask if "mask" in kind else torch.ones_like(points.mask)
    assert_same(chunked[real], whole[real])


@ablations
def test_streaming_equals_the_whole_in_every_variant(options: dict[str, bool]) -> None:
    model, points = make_operator(**options), make_points(2, 17)
    assert_same(lrsa.stream(model, points.x, points.f, chunk=4), model(points.x, points.f))


def test_streaming_takes_time_and_geometry_without_features() -> None:
    model, points = make_operator(in_features=0, time=True), make_points(2, 17)
    context = Context(time=torch.tensor([0.3, 2.0], dtype=torch.float64))
    assert_same(lrsa.stream(model, points.x, None, context, chunk=4), model(points.x, None, context))


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_through_streaming_are_those_of_the_whole(kind: str) -> None:
    """With respect to every parameter, the coordinates, the features and the weights."""
    model, points = make_operator(), make_points(3, 11)

    def gradients(chunk: int | None) -> dict[str, Tensor]:
        given = points.leaves()
        arguments = (given.x, given.f, given.context(kind))
        u = model(*arguments) if chunk is None else lrsa.stream(model, *arguments, chunk=chunk)
        loss = (u * u.detach().cos())[points.mask].sum()
        inputs = {"x": given.x, "f": given.f} | ({"weights": given.weights} if kind == "weights" else {})
        leaves = dict(model.named_parameters()) | inputs
        return dict(zip(leaves, torch.autograd.grad(loss, list(leaves.values())), strict=True))

    whole = gradients(None)
    for chunk in (1, 4):
        for name, gradient in gradients(chunk).items():
            assert_same(gradient, whole[name], 1e-11)


def test_streaming_in_fp32_is_right_to_rounding() -> None:
    model, points = make_operator().float(), make_points(1, 3000)
    x, f = points.x.float(), points.f.float()
    with torch.no_grad():
        whole = model(x, f)
        streamed = lrsa.stream(model, x, f, chunk=700)
    assert float((streamed - whole).norm() / whole.norm()) < 1e-5


def test_without_gradients_the_features_are_held_once() -> None:
    """Every block writes over those of the block before, in memory taken at the start."""
    model, points = make_operator(depth=3), make_points(2, 17)
    with torch.no_grad():
        walk = Chunked(model, cut(points.x, points.f, None, 4))
        places = [[h.data_ptr() for h in walk.h] for _ in walk.blocks()]
        assert places[0] == places[1] == places[2] == [h.data_ptr() for h in walk.h]
        assert_same(model.project(torch.cat(walk.h, dim=1)), model(points.x, points.f))


@pytest.mark.parametrize("kind", KINDS)
def test_points_that_one_chunk_holds_meet_at_once(kind: str) -> None:
    """On the fast path of the forward pass: the same to the bit."""
    model, points = make_operator(), make_points(2, 17)
    arguments = (points.x, points.f, points.context(kind))
    with torch.no_grad():
        assert torch.equal(lrsa.stream(model, *arguments, chunk=17), model(*arguments))
        assert not torch.equal(lrsa.stream(model, *arguments, chunk=16), model(*arguments))


@pytest.mark.parametrize("chunk", [4, 100])
def test_encoding_in_chunks_is_that_of_the_whole(chunk: int) -> None:
    model, points = make_operator(depth=3), make_points(2, 17)
    context = points.context("mask and weights")
    whole = model.encode(points.x, points.f, context)
    streamed = encode_streamed(model, points.x, points.f, context, chunk)
    for ours, theirs in zip(streamed.latents, whole.latents, strict=True):
        assert_same(ours, theirs)
    assert streamed.context == whole.context


@pytest.mark.parametrize("chunk", [0, -3])
def test_a_chunk_of_no_points_is_refused(chunk: int) -> None:
    points = make_points(1, 12)
    with pytest.raises(LrsaError, match="at least one point"):
        lrsa.stream(make_operator(), points.x, points.f, chunk=chunk)


@pytest.mark.parametrize(("points", "features"), [(0, 0), (12, 3)])
def test_no_points_or_features_of_others_are_refused(points: int, features: int) -> None:
    given = make_points(1, 12)
    with pytest.raises(LrsaError, match="not the same points, or none"):
        lrsa.stream(make_operator(), given.x[:, :points], given.f[:, :features], chunk=4)


@pytest.mark.parametrize("name", ["mask", "weights", "basis"])
@pytest.mark.parametrize("count", [8, 13, 24])
def test_a_context_of_other_points_is_refused(name: str, count: int) -> None:
    given = make_points(1, 12)
    other = torch.ones(1, count, dtype=torch.bool if name == "mask" else torch.float64)
    with pytest.raises(LrsaError, match=rf"{name} of \(1, {count}\): not the same points"):
        lrsa.stream(make_operator(), given.x, given.f, Context(**{name: other}), chunk=4)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("local", ["depthwise", "conv"])
def test_a_model_with_a_convolution_refuses_to_stream(local: Any) -> None:
    model, points = make_operator(local=local), make_points(1, 12)
    with pytest.raises(LrsaError, match=r"cannot stream: the 3x3 convolution.*local=pointwise"):
        lrsa.stream(model, points.x, points.f, Context(grid=(3, 4)), chunk=6)


def merge_at_random(partials: list[SoftmaxPartial], rng: random.Random) -> SoftmaxPartial:
    partials = list(partials)
    while len(partials) > 1:
        a, b = (partials.pop(rng.randrange(len(partials))) for _ in range(2))
        partials.append(a.merge(b))
    return partials[0]


def pick(context: Context, points: Tensor) -> Context:
    mask, weights = context.mask, context.weights
    return replace(
        context,
        mask=None if mask is None else mask[:, points],
        weights=None if weights is None else weights[:, points],
    )


def identity_attention(width: int) -> Attention:
    """One head in fp32 whose projections do nothing: logits are q · k / √width."""
    attention = Attention(width, heads=1)
    assert attention.query is not None
    with torch.no_grad():
        attention.key_value.weight.copy_(torch.eye(width).repeat(2, 1))
        for linear in (attention.query, attention.output):
            linear.weight.copy_(torch.eye(width))
        for linear in (attention.query, attention.key_value, attention.output):
            linear.bias.zero_()
    return attention
