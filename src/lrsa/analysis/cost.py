"""Where the work of one forward pass goes: operations by formula from shapes, and seconds by the clock.

Two operations for each multiply-add of matrix products, convolutions and attention, eight where the numbers
are complex, and 5 n log₂ n for each transform of length n, as usual. torch's counter follows the calls, but
knows neither the attention kernel of the CPU nor complex numbers nor Fourier transforms.
"""

import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode, flop_registry

from lrsa.context import Context
from lrsa.models.operator import NeuralOperator
from lrsa.models.template import LowRankMix

Shape = Sequence[int]

REPEATS = 8
"""Passes by the clock; of each step the fastest counts, since what disturbs a step only makes it slower."""
STEPS = ("lift", "compress", "process", "reconstruct", "mix", "FFN", "head", "rest")
"""Parts of a pass, in order. `mix` is a mixing layer without latents; `rest` are norms and sums between."""


@dataclass(frozen=True)
class Cost:
    """One part of a forward pass, over all blocks."""

    step: str
    flops: int
    seconds: float


def cost_split(
    model: nn.Module, layers: list[nn.Module], x: Tensor, f: Tensor | None, context: Context
) -> list[Cost]:
    """What each part of `model(x, f, context)` costs; `layers` are its mixing layers.

    The parameters must not require gradients: the counter of operations follows those of a graph.
    Layers of the template are run in their three steps, even where they have a shortcut through them.
    """

    def run(read: Callable[[], float]) -> dict[str, float]:
        spent: dict[str, float] = defaultdict(float)
        with _metered(model, layers, read, spent):
            start = read()
            model(x, f, context)
            spent["rest"] = read() - start - sum(spent.values())
        return spent

    with torch.no_grad():
        with operations() as counter:
            flops = run(counter.get_total_flops)
        model(x, f, context)
        passes = [run(time.perf_counter) for _ in range(REPEATS)]
    seconds = {step: min(spent.get(step, 0.0) for spent in passes) for step in STEPS}
    return [Cost(step, int(flops.get(step, 0)), seconds[step]) for step in STEPS if seconds[step]]


def shares(values: list[float]) -> list[float]:
    """Of their sum, 0 where there is none."""
    total = math.fsum(values)
    return [value / total if total else 0.0 for value in values]


@contextmanager
def _metered(
    model: nn.Module, layers: list[nn.Module], read: Callable[[], float], spent: dict[str, float]
) -> Iterator[None]:
    """Every step of the model adds to `spent` what the meter `read` shows for it."""

    def wrapped(step: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def measured(*arguments: Any) -> Any:
            start = read()
            result = call(*arguments)
            spent[step] += read() - start
            return result

        return measured

    with ExitStack() as stack:
        for owner, name, step in _steps(model, layers):
            stack.enter_context(_replaced(owner, name, wrapped(step, getattr(owner, name))))
        for layer in set(layers):
            if isinstance(layer, LowRankMix):
                stack.enter_context(_replaced(layer, "forward", partial(LowRankMix.forward, layer)))
        yield


def _steps(model: nn.Module, layers: list[nn.Module]) -> Iterator[tuple[object, str, str]]:
    """(owner, method, step) of all that is measured; each once, also where layers are shared."""
    for layer in set(layers):
        if isinstance(layer, LowRankMix):
            yield from ((layer, step, step) for step in ("compress", "process", "reconstruct"))
        else:
            yield layer, "forward", "mix"
    if isinstance(model, NeuralOperator):
        yield model, "lift", "lift"
        yield model, "project", "head"
        yield from ((block.ffn, "forward", "FFN") for block in model.each_block())
    else:
        parts = ((getattr(model, name, None), name) for name in ("lift", "head"))
        yield from ((part, "forward", name) for part, name in parts if isinstance(part, nn.Module))


@contextmanager
def _replaced(owner: object, name: str, value: object) -> Iterator[None]:
    """An attribute of one instance, put over that of its class for a while."""
    vars(owner)[name] = value
    try:
        yield
    finally:
        del vars(owner)[name]


def operations() -> FlopCounterMode:
    """A counter of the operations of whatever runs inside it."""
    return FlopCounterMode(display=False, custom_mapping=_FORMULAE)


def attention_flops(query: Shape, key: Shape, value: Shape) -> int:
    """Scores and weighted sum: 2 B h Q K (d_qk + d_v)."""
    *batch, q, d = query
    return 2 * math.prod(batch) * q * key[-2] * (d + value[-1])


def fourier_flops(shape: Shape, axes: Sequence[int]) -> int:
    """5 n log₂ n for each of the transforms of length n, n the product of the axes."""
    n = math.prod(shape[axis] for axis in axes)
    return round(5 * math.prod(shape) * math.log2(n)) if n > 1 else 0


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
