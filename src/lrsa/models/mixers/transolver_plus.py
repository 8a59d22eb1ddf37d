"""Physics attention of Transolver++: every point has its own temperature (Luo et al. 2025)."""

import torch
from torch import Tensor, nn

from lrsa.context import Context
from lrsa.errors import LrsaError
from lrsa.models.attention import head_width, split_heads
from lrsa.models.mixers.transolver import SlicePartial, SliceTokens
from lrsa.models.template import LowRankMix


class EideticAttention(LowRankMix[SlicePartial]):
    """Physics attention with one projection and sharpened slice weights, per head of d_h channels.

    values       v = H W_x, which also decides the slices
    temperature  τ_n = max(τ₀ + GELU(W₂ GELU(W₁ v_n)), 0.01)          one per point and head
    slice        w = softmax over slices of (W_s v + g) / τ,  g Gumbel noise

    and gather, attention among slices and scatter of `lrsa.models.mixers.transolver`.

    The noise g is drawn from torch's global generator in the forward pass of training mode only. (The
    reference draws it at evaluation too; a prediction of ours is deterministic.) The single steps of the
    template, and with them streaming and encoding, never draw it: a point would need the same draw in
    `compress` and in `reconstruct`.

    Args:
        width: Channels d.
        heads: Heads; all maps but W_x and W_O are shared by them, τ₀ is not.
        rank: Slices M.
    """

    def __init__(self, width: int, heads: int, rank: int) -> None:
        super().__init__()
        self.project = nn.Linear(width, width)
        self.slices = AdaptiveSoftmax(width, heads, rank)
        self.tokens = SliceTokens(width, heads)

    def forward(self, h: Tensor, x: Tensor, context: Context) -> Tensor:
        """As in the template, with the slice weights computed once; noisy in training mode."""
        values = self.project(h)
        return self.tokens(self.slices(values, noise=self.training), values, context.measure())

    def compress(self, h: Tensor, x: Tensor, context: Context) -> Tensor:
        """(B, N, d) points -> (B, M, d) slice tokens."""
        return self.partial(h, x, context).finish()

    def partial(self, h: Tensor, x: Tensor, context: Context) -> SlicePartial:
        """Weighted sums and weights over some of the points; without noise, so not in training mode."""
        if self.training:
            raise LrsaError(
                "Transolver++ draws noise at all points in training, and cannot go by some of them."
                " Call model.eval() first, or train without --train.chunk"
            )
        values = self.project(h)
        return self.tokens.gather(self.slices(values), values, context.measure())

    def process(self, latents: Tensor) -> Tensor:
        """(B, M, d) -> (B, M, d): attention among the tokens of each head."""
        return self.tokens.attend(latents)

    def reconstruct(self, h: Tensor, x: Tensor, context: Context, latents: Tensor) -> Tensor:
        """(B, M, d) tokens -> (B, N, d), by the slice weights of each point."""
        return self.tokens.scatter(self.slices(self.project(h)), latents)


class AdaptiveSoftmax(nn.Module):
    """softmax over M of (W_s v + g) / τ(v) at every point and head."""

    def __init__(self, width: int, heads: int, rank: int) -> None:
        super().__init__()
        self.heads, inner = heads, head_width(width, heads)
        self.linear = nn.Linear(inner, rank)
        self.sharpness = nn.Sequential(nn.Linear(inner, rank), nn.GELU(), nn.Linear(rank, 1), nn.GELU())
        self.temperature = nn.Parameter(torch.full((heads, 1, 1), 0.5))

    def forward(self, values: Tensor, noise: bool = False) -> Tensor:
        """(B, N, d) -> (B, h, N, M)."""
        points = split_heads(values, self.heads).contiguous()
        temperature = (self.temperature + self.sharpness(points)).clamp(min=0.01)  # (B, h, N, 1)
        scores = self.linear(points)
        return ((scores + gumbel(scores) if noise else scores) / temperature).softmax(-1)


def gumbel(like: Tensor) -> Tensor:
    """Standard Gumbel noise: -log of an exponential variable."""
    exponential = torch.empty_like(like).exponential_()
    return -exponential.clamp(min=torch.finfo(like.dtype).tiny).log()
