"""The losses, in physical units."""

import torch
from torch import Tensor
from torch.nn.functional import pad

from lrsa.errors import LrsaError


def relative_l2(prediction: Tensor, truth: Tensor, known: Tensor | None = None) -> Tensor:
    """‖û - u‖₂ / ‖u‖₂ of each case, over points, channels and frames: (B, ..., o) -> (B,).

    `known` (B, N, o) says which targets count.
    """
    if known is not None:
        known = known if truth.ndim == known.ndim else known[:, None]
        prediction, truth = prediction * known, truth * known
    error = (prediction - truth).flatten(1).norm(dim=1)
    return error / truth.flatten(1).norm(dim=1).clamp(min=torch.finfo(truth.dtype).tiny)


def gradient_error(prediction: Tensor, truth: Tensor, grid: tuple[int, ...] | None) -> Tensor:
    """The spatial-gradient term of Darcy: relative L2 of ∂/∂x plus that of ∂/∂y, (B, N, 1) -> (B,).

    As in the reference code: central differences at every point of the grid with zeros outside it, and the
    outermost ring of the prediction set to its boundary value 0. The step cancels in the relative norm.
    """
    if grid is None or len(grid) != 2:
        raise LrsaError(
            "the gradient term needs a structured grid of two axes. Set --train.gradient-weight 0"
        )
    fields = [u.transpose(1, 2).unflatten(2, grid) for u in (prediction, truth)]  # (B, o, H, W)
    fields[0] = pad(fields[0][..., 1:-1, 1:-1], (1, 1, 1, 1))
    (px, py), (tx, ty) = ([_difference(u, axis) for axis in (2, 3)] for u in fields)
    return relative_l2(px, tx) + relative_l2(py, ty)


def _difference(u: Tensor, axis: int) -> Tensor:
    padded = pad(u, (0, 0, 1, 1) if axis == 2 else (1, 1, 0, 0))
    size = u.shape[axis]
    return padded.narrow(axis, 2, size) - padded.narrow(axis, 0, size)
