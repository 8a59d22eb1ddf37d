"""Batches: nothing but padding is added, nothing is lost, and the reading thread always ends."""

import threading
import time
from dataclasses import replace

import numpy as np
import pytest
import torch
from cases import OPTIONAL, case_lists, make_case
from hypothesis import given
from hypothesis import strategies as st

from lrsa.context import Context
from lrsa.data.batch import AHEAD, TOGETHER, Batch, collate, order, prefetch
from lrsa.pointset import PointSet


@given(cases=case_lists(), weights=st.booleans())
def test_a_batch_is_its_cases_and_zeros_behind_them(cases: list[PointSet], weights: bool) -> None:
    batch = collate(cases, weights)
    longest = max(len(case) for case in cases)
    assert len(batch) == len(cases)
    assert batch.x.shape == (len(cases), longest, 2)
    tensors = {"x": batch.x, "f": batch.f, "u": batch.u, "weights": batch.context.weights}
    tensors |= {"globals": batch.context.globals, "time": batch.context.time, "times": batch.times}
    for i, case in enumerate(cases):
        for name, tensor in tensors.items():
            value = case.arrays().get(name)
            if name == "weights" and tensor is None:
                continue
            assert (tensor is None) == (value is None), name
            if tensor is None or value is None:
                continue
            assert tensor.dtype == torch.float32
            rows = tensor[i].movedim(-2, 0) if name == "u" else tensor[i]
            mine = np.moveaxis(value, -2, 0) if name == "u" else value
            if name in ("x", "f", "u", "weights"):
                assert not rows[len(case) :].any()
                rows = rows[: len(case)]
            assert np.array_equal(rows.numpy(), mine), name


@given(cases=case_lists())
def test_a_mask_is_there_only_where_something_is_padded(cases: list[PointSet]) -> None:
    batch = collate(cases)
    sizes = [len(case) for case in cases]
    if len(set(sizes)) == 1:
        assert batch.context.mask is None
        assert (batch.known is None) == (cases[0].u_mask is None)
    else:
        assert batch.context.mask is not None
        assert batch.context.mask.sum(1).tolist() == sizes
    for i, case in enumerate(cases):
        mask = np.ones((len(case), 2), bool) if case.u_mask is None else case.u_mask
        if batch.known is not None:
            assert np.array_equal(batch.known[i, : len(case)].numpy(), mask)
            assert not batch.known[i, len(case) :].any()


def test_weights_go_along_only_where_they_are_wanted_and_differ() -> None:
    even = [make_case(i, 5, weights=np.full(5, 0.1 * (i + 1))) for i in range(2)]
    uneven = make_case(7, 5, ["f", "weights"])
    assert collate(even, weights=True).context.weights is None
    assert collate([uneven], weights=False).context.weights is None
    assert collate([make_case(0, 5)], weights=True).context.weights is None
    batch = collate([even[1], uneven], weights=True)
    assert batch.context.weights is not None
    assert np.allclose(batch.context.weights[0], 0.2)


def test_the_grid_goes_along_where_all_cases_have_the_same() -> None:
    one, other = make_case(0, 6, grid=(2, 3)), make_case(1, 6, grid=(3, 2))
    assert collate([one, replace(other, grid=(2, 3))]).context.grid == (2, 3)
    assert collate([one, other]).context.grid is None


def test_a_batch_moves_with_all_it_has() -> None:
    batch = collate([make_case(i, 4 + i, OPTIONAL) for i in range(2)], weights=True)
    moved = batch.to("meta")
    tensors = [*vars(moved).values(), *vars(moved.context).values()]
    devices = {value.device.type for value in tensors if isinstance(value, torch.Tensor)}
    assert devices == {"meta"}
    assert {k for k, v in vars(moved).items() if v is None} == {
        k for k, v in vars(batch).items() if v is None
    }


@given(count=st.integers(0, 50), seed=st.integers(0, 9), epoch=st.integers(0, 9))
def test_the_order_is_a_permutation_that_only_seed_and_epoch_decide(
    count: int, seed: int, epoch: int
) -> None:
    np.random.seed(count)  # noqa: NPY002 - the global generator must not matter
    drawn = order(count, seed, epoch)
    assert sorted(drawn) == list(range(count))
    assert np.array_equal(drawn, order(count, seed, epoch))


def test_each_epoch_and_each_seed_has_an_order_of_its_own() -> None:
    drawn = {tuple(order(20, seed, epoch)) for seed in range(5) for epoch in range(5)}
    assert len(drawn) == 25


def numbered(key: int) -> Batch:
    return Batch(torch.full((1, 1, 1), float(key)), None, None, None, Context())


def threads() -> set[threading.Thread]:
    return set(threading.enumerate())


@pytest.mark.parametrize("count", [0, 1, AHEAD, 5 * AHEAD])
def test_batches_come_in_order_and_none_is_lost(count: int) -> None:
    before = threads()
    seen = [int(batch.x.item()) for batch in prefetch(numbered, range(count))]
    assert seen == list(range(count))
    assert threads() == before


@pytest.mark.parametrize("taken", [0, 1, TOGETHER - 1, TOGETHER, 3 * TOGETHER])
def test_batches_are_made_ahead_of_the_consumer_in_bursts_and_not_without_end(taken: int) -> None:
    made: list[int] = []

    def make(key: int) -> Batch:
        made.append(key)
        return numbered(key)

    batches = prefetch(make, range(100))
    for _ in range(taken):
        next(batches)
    expected = AHEAD + taken // TOGETHER * TOGETHER
    end = time.monotonic() + 10
    while len(made) < expected and time.monotonic() < end:
        time.sleep(0.001)
    time.sleep(0.05)
    assert len(made) == expected
    batches.close()


@pytest.mark.parametrize("taken", [0, 1, 3])
@pytest.mark.parametrize("leave", ["close", "forget"])
def test_the_thread_ends_when_the_consumer_leaves_early(taken: int, leave: str) -> None:
    before = threads()
    batches = prefetch(numbered, range(1000))
    for _ in range(taken):
        next(batches)
    if leave == "close":
        batches.close()
    del batches
    assert threads() == before


@pytest.mark.parametrize("at", [0, 2, 7])
def test_an_exception_reaches_the_consumer_after_the_batches_before_it(at: int) -> None:
    def make(key: int) -> Batch:
        if key == at:
            raise ValueError(f"case {key}")
        return numbered(key)

    before, seen = threads(), []
    with pytest.raises(ValueError, match=f"^case {at}$"):
        seen.extend(int(batch.x.item()) for batch in prefetch(make, range(20)))
    assert seen == list(range(at))
    assert threads() == before


def test_an_exception_in_the_consumer_ends_the_thread_too() -> None:
    before = threads()

    def consume() -> None:
        for _ in prefetch(numbered, range(1000)):
            raise KeyError

    with pytest.raises(KeyError):
        consume()
    assert threads() == before
