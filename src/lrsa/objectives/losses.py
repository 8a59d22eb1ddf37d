"""The losses. Each compares a prediction with the truth, both in physical units, case by case."""

from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor
from torch.nn.functional import pad

from lrsa.data.batch import Batch
from lrsa.errors import LrsaError
from lrsa.objectives.protocols import Loss
from lrsa.objectives.words import Word, terms

Total = Callable[[Tensor], Tensor]
"""The sum over all who hold points of the same cases, all of whom go on alike."""
TINY = 1e-30
"""Below every square that counts; its root has a gradient."""


def relative_l2(
    prediction: Tensor, truth: Tensor, known: Tensor | None = None, total: Total | None = None
) -> Tensor:
    """‖û - u‖₂ / ‖u‖₂ of each case, over points, channels and frames: (B, ..., o) -> (B,).

    `known` (B, N, o) says which targets count, `total` sums over those who hold other points.
    """
    if known is not None:
        known = _of_frames(known, truth)
        prediction, truth = prediction * known, truth * known
    unit = _unit(truth, total)
    error, size = ((values.flatten(1) * unit).norm(dim=1) for values in (prediction - truth, truth))
    if total is not None:
        error, size = (total(norm.square()).clamp(min=TINY).sqrt() for norm in (error, size))
    return error / size.clamp(min=torch.finfo(truth.dtype).tiny)


def _unit(truth: Tensor, total: Total | None) -> Tensor:
    """(B, 1) for each case the power of two in which its values are near 1.

    It changes no digit, and the squares of fields of any unit fit into single precision.
    """
    size = truth.flatten(1).abs().sum(1)
    size = (size if total is None else total(size)).clamp(max=torch.finfo(size.dtype).max)
    exponent = torch.frexp(size).exponent.clamp(min=-125)  # 2¹²⁶ is still a number of single precision
    return torch.ldexp(torch.ones_like(size), -exponent)[:, None]


def _of_frames(known: Tensor, values: Tensor) -> Tensor:
    """What is known (B, N, o) of values (B, N, o), or of those of all frames (B, T, N, o)."""
    return (known if values.ndim == known.ndim else known[:, None]).expand_as(values)


def mean_square(
    prediction: Tensor, truth: Tensor, known: Tensor | None, scale: Tensor, total: Total | None = None
) -> Tensor:
    """The mean of ((û - u) / σ)² over the known targets of each case: (B, ..., o) -> (B,).

    σ (o,) is the deviation by which targets are normalised, so that it is the error of normalised targets. A
    target that is constant in training (σ = 0) keeps its unit. Where nothing is known, it is 0.
    """
    square = ((prediction - truth) / torch.where(scale > 0, scale, 1)).square()
    if known is None and total is None:
        return square.flatten(1).mean(1)
    known = torch.ones_like(square, dtype=torch.bool) if known is None else _of_frames(known, square)
    error, count = (square * known).flatten(1).sum(1), known.flatten(1).sum(1)
    if total is not None:
        error, count = total(error), total(count.to(error.dtype))
    return error / count.clamp(min=1)


def gradient_error(prediction: Tensor, truth: Tensor, grid: tuple[int, ...] | None) -> Tensor:
    """The spatial-gradient term of Darcy: relative L2 of ∂/∂x plus that of ∂/∂y, (B, ..., N, o) -> (B,).

    As in the reference code: central differences at every point of the grid with zeros outside it, and the
    outermost ring of the prediction set to its boundary value 0. The step cancels in the relative norm.
    """
    if grid is None or len(grid) != 2:
        raise LrsaError(
            "the gradient term needs a structured grid of two axes. Set --train.gradient-weight 0"
        )
    fields = [u.transpose(-1, -2).unflatten(-1, grid) for u in (prediction, truth)]  # (B, ..., o, H, W)
    fields[0] = pad(fields[0][..., 1:-1, 1:-1], (1, 1, 1, 1))
    (px, py), (tx, ty) = ([_difference(u, axis) for axis in (-2, -1)] for u in fields)
    return relative_l2(px, tx) + relative_l2(py, ty)


def _difference(u: Tensor, axis: int) -> Tensor:
    padded = pad(u, (0, 0, 1, 1) if axis == -2 else (1, 1, 0, 0))
    size = u.shape[axis]
    return padded.narrow(axis, 2, size) - padded.narrow(axis, 0, size)


LOSSES: dict[str, Callable[[Tensor, Tensor, Tensor | None, Tensor, Total | None], Tensor]] = {
    "relative-l2": lambda prediction, truth, known, scale, total: relative_l2(
        prediction, truth, known, total
    ),
    "mse": mean_square,
}
"""(prediction, truth, known, deviations of the targets, sum over other points) -> one number per case."""


def check_loss(text: str) -> None:
    """Refuse what is no loss, whatever the data."""
    terms(text, LOSSES)


def loss_of(text: str, targets: Sequence[str], scale: Tensor) -> Loss:
    """The loss that is spelled so, of the fields `targets` with deviations `scale` (o,)."""
    sum_of = terms(text, LOSSES)

    def loss(prediction: Tensor, truth: Tensor, batch: Batch) -> Tensor:
        def part(word: Word) -> Tensor:
            array = partial(torch.tensor, device=prediction.device)
            known = word.counted(targets, batch.known, batch.surface, array)
            return LOSSES[word.name](prediction, truth, known, scale, batch.total)

        return torch.stack([weight * part(word) for weight, word in sum_of]).sum(0)

    return loss
