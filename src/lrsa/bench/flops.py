"""Operations of a forward pass, by formula from the shapes that every layer meets.

Two for each multiply-add of matrix products, convolutions and attention, eight where the numbers are complex,
and 5 n log₂ n for each transform of length n, as usual. torch's counter follows the calls, but knows neither
the attention kernel of the CPU nor complex numbers nor Fourier transforms. A training step counts three times
its forward pass: each product of the forward pass has two in the backward pass. What a kernel computes twice
to save memory does not count.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode, flop_registry

from lrsa.data.batch import Batch
from lrsa.surrogate.precision import Precision, autocast

Shape = Sequence[int]


def attention_flops(query: Shape, key: Shape, value: Shape) -> int:
    """Scores and weighted sum: 2 B h Q K (d_qk + d_v)."""
    *batch, q, d = query
    return 2 * math.prod(batch) * q * key[-2] * (d + value[-1])


def fourier_flops(shape: Shape, axes: Sequence[int]) -> int:
    """5 n log₂ n for each of the transforms of length n, n the product of the axes."""
    n = math.prod(shape[axis] for axis in axes)
    return round(5 * math.prod(shape) * math.log2(n)) if n > 1 else 0


def forward_flops(model: nn.Module, batch: Batch, precision: Precision = "fp32") -> tuple[int, list[str]]:
    """Operations of `model` on the batch, and the attention kernels that were taken."""
    counter = FlopCounterMode(display=False, custom_mapping=_FORMULAE)
    learned = [parameter for parameter in model.parameters() if parameter.requires_grad]
    model.requires_grad_(False)  # the counter would follow the graph, which is not made here
    with torch.no_grad(), autocast(batch.x.device.type, precision), counter:
        model(batch.x, batch.f, batch.context)
    for parameter in learned:
        parameter.requires_grad_()
    names = {getattr(op, "__name__", str(op)) for op in counter.get_flop_counts()["Global"]}
    return counter.get_total_flops(), sorted(name for name in names if "attention" in name)


def _attention(query: Shape, key: Shape, value: Shape, *_: Any, **__: Any) -> int:
    return attention_flops(query, key, value)


def _real(shape: Shape, axes: Sequence[int], *_: Any, **__: Any) -> int:
    return fourier_flops(shape, axes) // 2


def _back(shape: Shape, axes: Sequence[int], _normalisation: int, last: int, **__: Any) -> int:
    full = list(shape)
    full[axes[-1]] = last
    return fourier_flops(full, axes) // 2


def _complex(shape: Shape, axes: Sequence[int], *_: Any, **__: Any) -> int:
    return fourier_flops(shape, axes)


class _Product:
    """torch's own formula of a product, times four where the numbers are complex."""

    _get_raw = True  # the counter then gives tensors rather than their shapes

    def __init__(self, operation: Any) -> None:
        self.real = flop_registry[operation]

    def __call__(self, *tensors: Any, out_val: torch.Tensor, **options: Any) -> int:
        return (4 if out_val.is_complex() else 1) * self.real(*tensors, out_val=out_val, **options)


_PRODUCTS = (torch.ops.aten.mm, torch.ops.aten.addmm, torch.ops.aten.bmm, torch.ops.aten.baddbmm)
_FORMULAE: dict[Any, Callable[..., int]] = {
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu: _attention,
    torch.ops.aten._fft_r2c: _real,
    torch.ops.aten._fft_c2r: _back,
    torch.ops.aten._fft_c2c: _complex,
    **{operation: _Product(operation) for operation in _PRODUCTS},
}
