"""Time as an axis: what a model sees that predicts all frames of a case at once, and which of them are asked.

Such a model holds for the times of its training. It is always shown all of them; of its frames those are
taken whose times are asked for.
"""

import torch
from torch import Tensor

from lrsa.context import Context
from lrsa.errors import LrsaError

SAME = 1e-4
"""Of the span of the frames, how far a time may be from one of them."""
SHOWN = 4
"""Frames that a refusal names."""


def along_time(
    x: Tensor, f: Tensor | None, context: Context, times: Tensor
) -> tuple[Tensor, Tensor | None, Context]:
    """Every point at every time (T,), which is the last coordinate, and the last axis of the grid.

    x (B, N, p) -> (B, N T, p + 1), f (B, N, c) -> (B, N T, c); grid (H, W) -> (H, W, T).
    """

    def repeated(values: Tensor) -> Tensor:
        return values.repeat_interleave(len(times), dim=1)

    clock = times.to(x.dtype).repeat(x.shape[1])[:, None].expand(len(x), -1, -1)
    x = torch.cat([repeated(x), clock], dim=-1)
    grid = None if context.grid is None else (*context.grid, len(times))
    own = Context(mask=context.mask, grid=grid, globals=context.globals)
    return x, None if f is None else repeated(f), own


def at_times(u: Tensor, frames: Tensor, asked: Tensor) -> Tensor:
    """Of (B, N T, o) the frames at the times asked for: (B, N, o) at (B,), (B, K, N, o) at (B, K)."""
    u = u.unflatten(1, (-1, len(frames))).transpose(1, 2)  # (B, T, N, o)
    nearest = (asked[..., None] - frames).abs().argmin(-1).view(len(u), -1)
    chosen = u.take_along_dim(nearest[:, :, None, None], dim=1)
    return chosen if asked.ndim == 2 else chosen[:, 0]


def check_times(asked: Tensor, frames: Tensor) -> None:
    """Refuse a time that is not one of the frames."""
    away = (asked[..., None].to(frames) - frames).abs().amin(-1)
    if (away > SAME * (frames.max() - frames.min())).any():
        wrong = float(asked.flatten()[int(away.flatten().argmax())])
        some = [f"{float(t):.6g}" for t in frames[:SHOWN]]
        listed = ", ".join([*some, *(["..."] if len(frames) > SHOWN else [])])
        raise LrsaError(
            f"time is an axis of this model, which knows its {len(frames)} frames alone ({listed}), and"
            f" {wrong:.6g} is none of them. Ask for one, or train with --model.time-axis False"
        )
