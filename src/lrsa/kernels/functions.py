"""The kernels of `block.cpp` as differentiable functions of tensors."""

import ctypes
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from lrsa.kernels.build import library


class Stage(NamedTuple):
    """A LayerNorm, and the linear layers behind it: of queries and output, or of an FFN."""

    norm: nn.LayerNorm
    first_weight: Tensor
    first_bias: Tensor
    second_weight: Tensor
    second_bias: Tensor

    def tensors(self) -> list[Tensor]:
        return [self.norm.weight, self.norm.bias, *self[1:]]


def compress(
    h: Tensor, query: Tensor, bias: Tensor | None, heads: int, norm: nn.LayerNorm, key_value: nn.Linear
) -> tuple[Tensor, Tensor, Tensor]:
    """Attention of latents over points, as the maximum, sum and weighted sum of a `SoftmaxPartial`.

    Args:
        h: (B, N, d) features, before the norm.
        query: (M, d) of the latents.
        bias: (B, N) added to all scores of a point, not differentiated; None: none.
        heads: Attention heads.
        norm: In front of the projection.
        key_value: d -> 2 d, the projection to keys and values.
    """
    parameters = [norm.weight, norm.bias, key_value.weight, key_value.bias]
    tensors = [h.contiguous(), query.contiguous(), None if bias is None else bias.contiguous(), *parameters]
    return _run(_Compress, heads, norm.eps, tensors)


def update(h: Tensor, key_value: Tensor, heads: int, read: Stage | None, feed: Stage | None) -> Tensor:
    """The block at its points, each by itself: h + attention over latents, then + FFN. One may be left out.

    Args:
        h: (B, N, d) features.
        key_value: (B, M, 2 d) keys and values of the latents.
        heads: Attention heads.
        read: The attention.
        feed: The FFN; its norm has the same eps.
    """
    given = read or feed
    assert given is not None
    parameters = [tensor for stage in (read, feed) for tensor in (stage.tensors() if stage else [None] * 6)]
    return _run(_Update, heads, given.norm.eps, [h.contiguous(), key_value.contiguous(), *parameters])


HIDDEN = 8
"""Where the first layer of the FFN is among the parameters of an update."""

Tensors = Sequence[Tensor | None]


class _Compress(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, heads: int, eps: float, *tensors: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        h = tensors[0]
        assert h is not None
        kept = h.new_empty(*h.shape[:-1], 2 * h.shape[-1])
        made = _Compress.compute(heads, eps, tensors, kept)
        ctx.heads, ctx.eps = heads, eps
        ctx.mark_non_differentiable(made[0])
        ctx.save_for_backward(made[0], kept, *tensors)
        return made

    @staticmethod
    def compute(
        heads: int, eps: float, tensors: Tensors, kept: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        h, query, bias, *parameters = tensors
        assert h is not None
        assert query is not None
        shape = (h.shape[0], heads, query.shape[0])
        maximum, total = h.new_empty(*shape, 1), h.new_empty(*shape, 1)
        weighted = h.new_empty(*shape, h.shape[-1] // heads)
        sizes = _sizes(h, query, heads, 0, eps)
        _call("compress", sizes, h, bias, *parameters, query, maximum, total, weighted, kept)
        return maximum, total, weighted

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        maximum, kept, h, query, bias, *parameters = ctx.saved_tensors
        norm_weight, norm_bias, weight, _ = parameters
        given = [gradient.contiguous() for gradient in gradients[1:]]
        made = [torch.empty_like(t) for t in (h, *parameters, query)]
        sizes = _sizes(h, query, ctx.heads, 0, ctx.eps)
        inputs = (h, bias, norm_weight, norm_bias, weight, query, kept, maximum, *given)
        _call("compress_gradient", sizes, *inputs, *made)
        return None, None, made[0], made[-1], None, *made[1:-1]


class _Update(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, heads: int, eps: float, *tensors: Tensor | None) -> Tensor:
        h, _, *parameters = tensors
        assert h is not None
        reads, first = parameters[0] is not None, parameters[HIDDEN]
        kept: list[Tensor | None] = [torch.empty_like(h) if reads else None for _ in range(3)]
        kept.append(None if first is None else h.new_empty(*h.shape[:-1], len(first)))
        out = _Update.compute(heads, eps, tensors, kept)
        ctx.heads, ctx.eps = heads, eps
        ctx.save_for_backward(*kept, *tensors)
        return out

    @staticmethod
    def compute(heads: int, eps: float, tensors: Tensors, kept: Tensors = (None,) * 4) -> Tensor:
        h, key_value, *parameters = tensors
        assert h is not None
        assert key_value is not None
        first, out = parameters[HIDDEN], torch.empty_like(h)
        sizes = _sizes(h, key_value, heads, 0 if first is None else len(first), eps)
        _call("update", sizes, h, key_value, parameters, kept, out)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        *kept, h, key_value = ctx.saved_tensors[:6]
        parameters = ctx.saved_tensors[6:]
        first = parameters[HIDDEN]
        sizes = _sizes(h, key_value, ctx.heads, 0 if first is None else len(first), ctx.eps)
        dh, dkv = torch.empty_like(h), torch.zeros_like(key_value)
        made = [None if t is None else torch.empty_like(t) for t in parameters]
        out = gradients[0].contiguous()
        _call("update_gradient", sizes, h, key_value, parameters, kept, out, dh, dkv, made)
        return None, None, dh, dkv, *made


def _run(function: Any, heads: int, eps: float, tensors: Tensors) -> Any:
    """With a graph where gradients are asked for; without, nothing is kept."""
    if torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in tensors):
        return function.apply(heads, eps, *tensors)
    return function.compute(heads, eps, tensors)


class _Sizes(ctypes.Structure):
    _fields_ = [
        ("samples", ctypes.c_long),
        ("points", ctypes.c_long),
        ("latents", ctypes.c_long),
        ("heads", ctypes.c_long),
        ("width", ctypes.c_long),
        ("hidden", ctypes.c_long),
        ("threads", ctypes.c_long),
        ("eps", ctypes.c_float),
    ]


def _sizes(h: Tensor, latents: Tensor, heads: int, hidden: int, eps: float) -> _Sizes:
    samples, points, width = h.shape
    return _Sizes(samples, points, latents.shape[-2], heads, width, hidden, torch.get_num_threads(), eps)


def _call(name: str, sizes: _Sizes, *arguments: Tensor | Tensors | None) -> None:
    """The function of that name; a list of tensors is a structure of pointers."""
    pointers = [
        (ctypes.c_void_p * len(a))(*map(_address, a)) if isinstance(a, list | tuple) else _address(a)
        for a in arguments
    ]
    getattr(library(), name)(ctypes.byref(sizes), *pointers)


def _address(tensor: Any) -> ctypes.c_void_p:
    assert tensor is None or tensor.is_contiguous()
    return ctypes.c_void_p(None if tensor is None else tensor.data_ptr())
