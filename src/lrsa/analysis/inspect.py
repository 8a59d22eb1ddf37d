"""What a trained run does inside: effective rank per layer, maps of its latents, and where the cost goes.

All definitions are those of `lrsa.analysis.lowrank`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from lrsa.analysis.cost import Cost, cost_split
from lrsa.analysis.factors import factors
from lrsa.analysis.lowrank import Factors, OnGrid, effective_rank, jacobian
from lrsa.console import Advance
from lrsa.context import Context, needs_of
from lrsa.data.store import Selection
from lrsa.errors import LrsaError
from lrsa.evaluation.evaluate import case_names
from lrsa.models.mixers.factorised_fourier import FactorisedConvolution
from lrsa.models.mixers.fourier import SpectralConvolution
from lrsa.models.template import GlobalMix, LowRankMix
from lrsa.pointset import PointSet
from lrsa.surrogate.surrogate import WHOLE, load
from lrsa.training.config import RunConfig

MAPS = 6
"""Latents of a layer that are shown."""
WORK = 1e11
"""Operations up to which the Jacobian of a layer is taken: some seconds."""


@dataclass(frozen=True)
class LatentMap:
    """Where one latent of one head takes from, and where it is read."""

    head: int
    latent: int
    write: np.ndarray
    """(N,) the weight of a point in the latent, without its quadrature weight; 1 is a plain mean."""
    read: np.ndarray
    """(N,) the share of the latent in what each point reads."""


@dataclass(frozen=True)
class LayerView:
    """One mixing layer at one case."""

    mixer: str
    latents: int
    linear: bool
    """Whether the layer is linear in its values, its routing fixed; if not, G is linearised."""
    singular_values: np.ndarray
    """(heads, K) of K = U G Vᵀ, descending; no columns where they could not be afforded."""
    effective_rank: np.ndarray
    """(heads,)."""
    jacobian_rank: float | None
    """Effective rank of the Jacobian by the point features, routing included; None: not affordable."""
    maps: list[LatentMap]


@dataclass(frozen=True)
class Inspection:
    """What `lrsa inspect` shows."""

    run: Path
    name: str
    case: PointSet
    layers: list[LayerView]
    cost: list[Cost]
    notes: list[str] = field(default_factory=list)


def inspect_run(
    run: Path, case: int = 0, stride: int | None = None, progress: Advance | None = None
) -> Inspection:
    """Look into a run at one of its test cases.

    Args:
        run: The run folder.
        case: The number of the test case.
        stride: Every so-many-th point along each axis (default: as in training).
        progress: Called with (done, total, words).
    """
    config, surrogate = RunConfig.load(run), load(run).requires_grad_(False)
    if needs_of(surrogate.model).time_axis:
        raise LrsaError(f"{run} has time as an axis, and what is inspected are layers on the points of space")
    surrogate.kernels = False  # which do not call the layers that are looked at
    tests = config.dataset("test")
    if not 0 <= case < len(tests):
        raise LrsaError(f"no test case {case}: {tests.path} has {len(tests)}, counted from 0")
    chosen = Selection(tests, [case], config.data.stride if stride is None else stride)[0]
    if len(chosen) > WHOLE:
        raise LrsaError(f"the case has {len(chosen)} points, more than {WHOLE}. Take fewer with --stride")
    with _captured(surrogate.model) as seen:
        surrogate.predict(chosen)
    if not seen.calls:
        raise LrsaError(f'the model "{config.model}" has no global mixing layer that could be inspected')
    notes: list[str] = []
    views = []
    for i, call in enumerate(seen.calls):
        views.append(_view(call, chosen, notes))
        if progress is not None:
            progress(i + 1, len(seen.calls), "layers")
    cost = cost_split(surrogate.model, [call.module for call in seen.calls], *seen.inputs)
    if any(isinstance(call.layer, OnGrid) or "Fourier" in type(call.layer).__name__ for call in seen.calls):
        notes.append("Fourier transforms are in the time and not in the operations")
    names = case_names(tests, len(tests))
    return Inspection(run, names[case], chosen, views, cost, list(dict.fromkeys(notes)))


@dataclass(frozen=True)
class _Call:
    """A mixing layer and what it was given."""

    module: nn.Module
    layer: GlobalMix
    h: Tensor
    x: Tensor
    context: Context


class _Seen:
    """The first pass of a model: what it was given, and what each of its mixing layers was given."""

    def __init__(self) -> None:
        self.calls: list[_Call] = []
        self.inputs: Any = None
        self.closed = False

    def model(self, module: nn.Module, arguments: Any) -> None:
        if not self.closed:
            self.inputs = arguments

    def layer(self, module: nn.Module, arguments: Any) -> None:
        if self.closed:
            return
        if isinstance(module, GlobalMix):
            h, x, context = arguments
            self.calls.append(_Call(module, module, h, x, context))
        else:
            (image,) = arguments
            h = image.flatten(1, 2)
            layer = OnGrid(module)
            self.calls.append(_Call(module, layer, h, h, Context(grid=tuple(image.shape[1:3]))))

    def close(self, module: nn.Module, arguments: Any, output: Tensor) -> None:
        self.closed = True


@contextmanager
def _captured(model: nn.Module) -> Iterator[_Seen]:
    seen = _Seen()
    hooks = [model.register_forward_pre_hook(seen.model), model.register_forward_hook(seen.close)]
    mixers = [module for module in model.modules() if isinstance(module, GlobalMix)]
    inside = {id(part) for mixer in mixers for part in mixer.modules()}
    for module in model.modules():
        image_layer = isinstance(module, SpectralConvolution | FactorisedConvolution)
        if isinstance(module, GlobalMix) or (image_layer and id(module) not in inside):
            hooks.append(module.register_forward_pre_hook(seen.layer))
    try:
        yield seen
    finally:
        for hook in hooks:
            hook.remove()


def _view(call: _Call, case: PointSet, notes: list[str]) -> LayerView:
    """In double precision: small singular values are what the effective rank is about."""
    layer = deepcopy(call.layer).double().requires_grad_(False)
    given = (call.h.double(), call.x.double(), _double(call.context))
    made = factors(layer, *given)
    try:
        sigma, mixing = made.singular_values(), made.mixing()
        ranks = effective_rank(sigma)
    except LrsaError as error:
        notes.append(f"no effective rank: {error}")
        heads, _, latents = made.u.shape
        sigma, ranks = torch.zeros(heads, 0), torch.full((heads,), torch.nan)
        mixing = torch.eye(latents, dtype=made.u.dtype).expand(heads, -1, -1)
    return LayerView(
        type(call.module).__name__,
        made.u.shape[-1],
        made.linear,
        sigma.numpy(),
        ranks.numpy(),
        _jacobian_rank(call, notes),
        _maps(made, mixing, call.context, case),
    )


def _jacobian_rank(call: _Call, notes: list[str]) -> float | None:
    layer, h = deepcopy(call.layer).requires_grad_(False), call.h.clone()
    given = (h, call.x.clone(), _cloned(call.context))
    try:
        if isinstance(layer, LowRankMix):
            with torch.no_grad():
                directions = layer.compress(*given).numel()
        else:
            directions = h.numel()
        if 2.0 * h.shape[1] * h.numel() * directions > WORK:
            raise LrsaError("it would take minutes. Take fewer points with --stride")
        return float(effective_rank(torch.linalg.svdvals(jacobian(layer, *given).interaction)))
    except LrsaError as error:
        notes.append(f"no Jacobian: {error}")
        return None


def _maps(made: Factors, mixing: Tensor, context: Context, case: PointSet) -> list[LatentMap]:
    """The latents that say most beyond those chosen before: greedy, by what is left of their write maps."""
    heads, points, latents = made.u.shape
    measure = context.measure()
    density = made.v if measure is None else made.v / measure[0, :, None].clamp(min=1e-12)
    strength = torch.linalg.vector_norm(made.u @ mixing.to(made.u.dtype), dim=1)  # (C, M)
    left = density.real if density.is_complex() else density
    # By the root of its strength: a layer of low rank would else be shown as one map, six times.
    left = (left - left.mean(1, keepdim=True)) * strength[:, None].sqrt()
    left = left.transpose(0, 1).flatten(1)  # (N, C M)
    inside = _inside(context, case)
    chosen = []
    for _ in range(min(MAPS, heads * latents)):
        best = int(torch.linalg.vector_norm(left, dim=0).argmax())
        head, latent = divmod(best, latents)
        write, read = density[head, :, latent], made.u[head, :, latent]
        chosen.append(LatentMap(head, latent, _array(write * points)[inside], _array(read)[inside]))
        unit = left[:, best] / torch.linalg.vector_norm(left[:, best]).clamp(min=1e-300)
        left = left - torch.outer(unit, unit @ left)
    return chosen


def _inside(context: Context, case: PointSet) -> np.ndarray:
    """The points of the case among those of the layer, whose grid may have been padded."""
    if context.grid is None or case.grid is None or context.grid == case.grid:
        return np.arange(len(case))
    index = np.arange(int(np.prod(context.grid))).reshape(context.grid)
    return index[tuple(slice(size) for size in case.grid)].ravel()


def _array(values: Tensor) -> np.ndarray:
    return (values.real if values.is_complex() else values).numpy()


def _double(context: Context) -> Context:
    cast = {
        k: v.double() for k, v in vars(context).items() if isinstance(v, Tensor) and v.is_floating_point()
    }
    return replace(context, **cast)


def _cloned(context: Context) -> Context:
    """Tensors made in inference mode take no part in derivatives; their copies do."""
    return replace(context, **{k: v.clone() for k, v in vars(context).items() if isinstance(v, Tensor)})
