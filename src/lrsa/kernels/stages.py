"""The one place where torch or kernels are chosen: the stages of a block, by whichever computes them.

A `Block` reads as the paper has it, and torch computes it. A `KernelBlock` has the same stages; those that
the kernels do are theirs, the others are left to the block.
"""

import logging
from typing import Any

import torch
from torch import Tensor, nn

from lrsa.context import Context
from lrsa.kernels.build import Unavailable, library
from lrsa.kernels.functions import Stage, compress, update
from lrsa.models.attention import FFN, LowRankSpatialAttention, SoftmaxPartial
from lrsa.models.block import Block
from lrsa.models.operator import NeuralOperator
from lrsa.models.template import LowRankMix, Partial

log = logging.getLogger(__name__)


def why_torch(model: nn.Module, device: str = "cpu", precision: str = "fp32") -> str | None:
    """Why kernels do not compute this model in this way; None: they do."""
    if torch.device(device).type != "cpu" or precision != "fp32":
        return f"the kernels are for fp32 on a CPU, not {precision} on {device}"
    if not isinstance(model, NeuralOperator) or not all(map(suits, model.each_block())):
        return f"the kernels are for LRSA, not {type(model).__name__}"
    try:
        library()
    except Unavailable as error:
        return str(error)
    return None


def stages_of(model: NeuralOperator, kernels: bool) -> "list[Block | KernelBlock]":
    """The blocks of a model in order; where wanted, those by kernels that are suited to it."""
    return [KernelBlock(block) if kernels and suits(block) else block for block in model.each_block()]


def suits(block: Block) -> bool:
    """Whether it is built of parts that the kernels know."""
    norms = (block.norm_mix, block.norm_ffn)
    known = type(block) is Block and type(block.mix) is LowRankSpatialAttention
    return known and all(type(norm) is nn.LayerNorm and norm.bias is not None for norm in norms)


class KernelBlock:
    """The stages of a block of LRSA, by kernels where these can."""

    def __init__(self, block: Block) -> None:
        assert isinstance(block.mix, LowRankSpatialAttention)
        self.block, self.mix = block, block.mix

    @property
    def low_rank(self) -> LowRankMix[Any]:
        """The mixing layer."""
        return self.mix

    def latents(self, h: Tensor, x: Tensor, context: Context) -> Tensor:
        """As `Block.latents`."""
        if not self._attends(h, context):
            return self.block.latents(h, x, context)
        return self.mix.process(self.partial(h, x, context).finish())

    def partial(self, h: Tensor, x: Tensor, context: Context) -> Partial:
        """As `Block.partial`."""
        if not self._attends(h, context):
            return self.block.partial(h, x, context)
        down, bias = self.mix.down, context.log_measure(h.dtype)
        assert down.query is not None
        bias = None if bias is None else bias[:, 0, 0]
        parts = compress(h, down.query(self.mix.latents), bias, down.heads, self._norm, down.key_value)
        return SoftmaxPartial(*parts, down.join)

    def update(self, h: Tensor, x: Tensor, context: Context, latents: Tensor) -> Tensor:
        """As `Block.update`."""
        if not fits(h, context):
            return self.block.update(h, x, context, latents)
        up, feed = self.mix.up, self._feed()
        if self._attends(h, context):
            read = Stage(self._norm, *self._query(), up.output.weight, up.output.bias)
            h = update(h, up.key_value(self.mix.norm_up(latents)), up.heads, read, feed)
            # What is left to the block adds nothing more to h before its FFN.
            return h if feed else self.block.join(h, h.new_zeros(()), context)
        mixed = self.mix.reconstruct(self.block.norm_mix(h), x, context, latents)
        if feed is None:
            return self.block.join(h, mixed, context)
        unread = h.new_zeros(len(h), 1, 2 * h.shape[-1])
        return update(h + mixed, unread, up.heads, None, feed)

    def _attends(self, h: Tensor, context: Context) -> bool:
        """Attention is theirs unless queries and keys are normalised."""
        return isinstance(self.mix.down.norm_key, nn.Identity) and fits(h, context)

    def _query(self) -> tuple[Tensor, Tensor]:
        """Weight and bias of the projection by which points ask; tied to that of their keys, or its own."""
        query, down, width = self.mix.up.query, self.mix.down.key_value, self.mix.up.output.in_features
        return (down.weight[:width], down.bias[:width]) if query is None else (query.weight, query.bias)

    def _feed(self) -> Stage | None:
        """The FFN; None where it has a convolution, or is another."""
        if type(self.block.ffn) is not FFN:
            return None
        first, gelu, second = self.block.ffn
        norm = self.block.norm_ffn
        assert isinstance(norm, nn.LayerNorm)
        exact = isinstance(gelu, nn.GELU) and gelu.approximate == "none" and norm.eps == self._norm.eps
        return Stage(norm, first.weight, first.bias, second.weight, second.bias) if exact else None  # pyright: ignore[reportArgumentType]

    @property
    def _norm(self) -> nn.LayerNorm:
        assert isinstance(self.block.norm_mix, nn.LayerNorm)
        return self.block.norm_mix


def fits(h: Tensor, context: Context) -> bool:
    """Whether kernels compute at these points now; weights whose gradient is asked for are torch's."""
    if torch.compiler.is_compiling() or torch.is_autocast_enabled(h.device.type):
        return False
    weighted = context.weights is not None and context.weights.requires_grad
    if weighted or h.device.type != "cpu" or h.dtype != torch.float32 or not h.numel():
        return False
    try:
        library()
    except Unavailable as error:
        log.debug("blocks by torch: %s", error)
        return False
    return True
