"""The mixer of section 3.4: its formulas, its derivatives, its kernels."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import torch
from conftest import (
    HEADS,
    KINDS,
    RANK,
    WIDTH,
    ablations,
    assert_same,
    features,
    make_mixer,
    make_points,
    unsettle,
)
from literal import literal_mixer
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

import lrsa.models.attention
from lrsa.context import Context
from lrsa.models.attention import Attention, LowRankSpatialAttention

# --- the formulas of the paper ---------------------------------------------------------------------------


@ablations
@pytest.mark.parametrize("kind", ["plain", "mask and weights"])
def test_the_mixer_is_the_papers_formulas_computed_literally(options: dict[str, bool], kind: str) -> None:
    """Eqs. (lrsa-down), (latent-mix), (lrsa-up) in numpy, one query and one head at a time."""
    mixer, points = make_mixer(**options), make_points(2, 11)
    h, context = features(points), points.context(kind)
    actual = mixer(h, points.x, context)
    measure = context.measure()
    for b in range(len(h)):
        weights = np.ones(h.shape[1]) if measure is None else measure[b].numpy()
        expected = literal_mixer(mixer, h[b].numpy(), weights)
        assert_same(actual[b].detach(), torch.from_numpy(expected))


def test_without_latent_attention_the_latents_get_one_ffn_and_nothing_else() -> None:
    mixer = make_mixer(latent_attention=False)
    latents = torch.randn(2, RANK, WIDTH, dtype=torch.float64)
    assert_same(mixer.process(latents), latents + mixer.ffn_in(mixer.norm_in(latents)), 0)
    assert {name.split(".")[0] for name, _ in mixer.named_parameters()} == {
        "latents", "down", "norm_in", "ffn_in", "norm_up", "up"
    }  # fmt: skip


@pytest.mark.parametrize("qk_norm", [False, True])
def test_symmetric_points_read_where_they_write(qk_norm: bool) -> None:
    """W_Q↑ is W_K↓: one projection fewer, and moving W_K↓ moves the reading too."""
    tied, free = make_mixer(symmetric=True, qk_norm=qk_norm), make_mixer(qk_norm=qk_norm)
    query_norm = 2 * (WIDTH // HEADS) if qk_norm else 0
    assert count(free) - count(tied) == WIDTH * WIDTH + WIDTH + query_norm
    assert tied.up.query is None
    points = make_points(1, 7)
    h, latents = features(points), torch.randn(1, RANK, WIDTH, dtype=torch.float64)
    for mixer, moves in ((tied, True), (free, False)):
        before = mixer.reconstruct(h, points.x, Context(), latents)
        with torch.no_grad():
            mixer.down.key_value.weight[:WIDTH] += torch.randn(WIDTH, WIDTH, dtype=torch.float64)
        after = mixer.reconstruct(h, points.x, Context(), latents)
        assert (float((after - before).detach().abs().max()) > 1e-3) == moves


def test_the_symmetric_mixer_reads_as_an_untied_one_with_the_same_weights() -> None:
    tied, free = make_mixer(symmetric=True), make_mixer()
    free.load_state_dict(tied.state_dict(), strict=False)
    assert free.up.query is not None
    with torch.no_grad():
        free.up.query.weight.copy_(tied.down.key_value.weight[:WIDTH])
        free.up.query.bias.copy_(tied.down.key_value.bias[:WIDTH])
    points = make_points(2, 7)
    h = features(points)
    assert_same(tied(h, points.x, Context()), free(h, points.x, Context()))


def test_qk_norm_makes_the_scale_of_queries_and_keys_irrelevant() -> None:
    """Exact once the bias and the eps of the norms are out of the way; without qk_norm it does matter."""
    points = make_points(2, 9)
    h = features(points)
    for qk_norm in (True, False):
        mixer = make_mixer(qk_norm=qk_norm)
        with torch.no_grad():
            for attention in attentions(mixer):
                assert attention.query is not None
                attention.query.bias.zero_()
                attention.key_value.bias[:WIDTH] = 0
                for norm in (attention.norm_query, attention.norm_key):
                    if isinstance(norm, nn.LayerNorm):
                        norm.eps = 0
            before = mixer(h, points.x, Context())
            for attention in attentions(mixer):
                assert attention.query is not None
                attention.query.weight *= 7
                attention.key_value.weight[:WIDTH] *= 0.3
            after = mixer(h, points.x, Context())
        if qk_norm:
            assert_same(after, before)
        else:
            assert float((after - before).abs().max()) > 1e-2


@pytest.mark.parametrize("kind", KINDS)
def test_derivatives_are_those_of_finite_differences(kind: str) -> None:
    mixer = LowRankSpatialAttention(4, 2, 2, latent_ffn_hidden=3).double()
    unsettle(mixer)
    points = make_points(2, 3)
    h = torch.randn(2, 3, 4, dtype=torch.float64, requires_grad=True)
    names, values = zip(*mixer.named_parameters(), strict=True)
    context = points.context(kind)

    def whole(h: Tensor, *parameters: Tensor) -> Tensor:
        arguments = (h, points.x, context)
        return torch.func.functional_call(mixer, dict(zip(names, parameters, strict=True)), arguments)

    def latents(h: Tensor) -> Tensor:
        parts = [mixer.partial(h[:, s], points.x[:, s], context.at(s)) for s in (slice(0, 1), slice(1, 3))]
        return parts[0].merge(parts[1]).finish()

    assert torch.autograd.gradcheck(whole, (h, *values), fast_mode=True)
    assert torch.autograd.gradcheck(latents, (h,))


# --- weights ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_the_log_of_a_weight_is_finite_in_every_precision(dtype: torch.dtype) -> None:
    """Cells of a mesh differ in size by far more than the range of fp16; their logarithms do not."""
    weights = torch.tensor([[1e-9, 1.0, 1e6]])
    log = Context(weights=weights).log_measure(dtype)
    assert log is not None
    torch.testing.assert_close(log.flatten().double(), weights.double().log().flatten(), rtol=4e-3, atol=0)


# --- kernels ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [10, 1000])
def test_each_attention_is_one_fused_kernel_whatever_the_number_of_points(kind: str, count: int) -> None:
    mixer, points = make_mixer(), make_points(2, count)
    h = features(points)
    with CountOperations() as counted:
        mixer(h, points.x, points.context(kind))
    assert counted.calls["_scaled_dot_product_flash_attention_for_cpu"] == 3
    assert counted.calls["_softmax"] == counted.calls["bmm"] == 0


def test_keys_and_values_reach_the_kernel_as_views(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[Tensor, Tensor, Tensor]] = []
    kernel = lrsa.models.attention.scaled_dot_product_attention

    def spy(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None) -> Tensor:
        calls.append((query, key, value))
        return kernel(query, key, value, attn_mask=attn_mask)

    monkeypatch.setattr(lrsa.models.attention, "scaled_dot_product_attention", spy)
    mixer, points = make_mixer(), make_points(2, 9)
    mixer(features(points), points.x, Context())
    assert len(calls) == 3
    for query, key, value in calls:
        assert key.untyped_storage().data_ptr() == value.untyped_storage().data_ptr()
        assert key.untyped_storage().nbytes() == key.nbytes + value.nbytes
        assert query.untyped_storage().nbytes() == query.nbytes
        assert key.stride(-1) == value.stride(-1) == query.stride(-1) == 1


# --- helpers ---------------------------------------------------------------------------------------------


class CountOperations(TorchDispatchMode):
    """Counts the calls of every aten operation."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: Counter[str] = Counter()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        self.calls[func.overloadpacket.__name__] += 1
        return func(*args, **(kwargs or {}))


def attentions(mixer: LowRankSpatialAttention) -> list[Attention]:
    return [module for module in mixer.modules() if isinstance(module, Attention)]


def count(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())
