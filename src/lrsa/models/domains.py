"""Two domains: the points that give inputs, and those at which fields are asked for (`Context.inputs`).

A mixing layer of one domain compresses the points of that domain alone. One that crosses from the inputs to
the outputs compresses the inputs, and what it says at the outputs is all that these know of them. Every other
step of an operator acts on each point by itself, so that the union of both goes through it as one set.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

from torch import Tensor, nn

from lrsa.context import Context, Needs
from lrsa.models.block import Block
from lrsa.models.template import LowRankMix, Partial

Domain = Literal["inputs", "outputs"]


class DomainMix(LowRankMix[Partial]):
    """A mixing layer that compresses one domain. Points count alike: the weights of a case are of its inputs.

    Args:
        mix: The layer.
        domain: What it compresses.
    """

    def __init__(self, mix: LowRankMix[Any], domain: Domain) -> None:
        super().__init__()
        self.mix: LowRankMix[Any] = mix
        self.domain = domain
        self.needs = mix.needs | Needs(domains=True)

    def compress(self, h: Tensor, x: Tensor, context: Context) -> Tensor:
        """(B, N, d) points of both domains -> (B, M, d) latents of one."""
        return self.mix.compress(h, x, self._of_domain(context))

    def partial(self, h: Tensor, x: Tensor, context: Context) -> Partial:
        return self.mix.partial(h, x, self._of_domain(context))

    def process(self, latents: Tensor) -> Tensor:
        return self.mix.process(latents)

    def reconstruct(self, h: Tensor, x: Tensor, context: Context, latents: Tensor) -> Tensor:
        return self.mix.reconstruct(h, x, context, latents)

    def _of_domain(self, context: Context) -> Context:
        mask = context.need("inputs", "a layer of two domains")
        mask = mask if self.domain == "inputs" else ~mask
        return replace(context, mask=mask if context.mask is None else mask & context.mask, weights=None)


class CrossingBlock(Block):
    """h' = act(GlobalMix(Norm(h))): nothing of the point itself goes on, and there is no FFN."""

    def __init__(
        self,
        width: int,
        mix: DomainMix,
        norm: Callable[[int], nn.Module],
        act: Callable[[Tensor], Tensor] = lambda h: h,
    ) -> None:
        super().__init__(width, mix, nn.Identity(), norm=norm)
        self.norm_ffn = nn.Identity()
        self.act = act

    def join(self, h: Tensor, mixed: Tensor, context: Context) -> Tensor:
        return self.act(mixed)


def domain_of(block: int, change: int) -> Domain:
    """What a block compresses, of which block number `change` crosses."""
    return "inputs" if block <= change else "outputs"
