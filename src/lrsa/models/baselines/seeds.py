"""Layers that earlier versions made and replaced: drawn still, so that a seed keeps its initial weights.

For the same reason the parts of a model are written in the order of their draws.
"""

from torch import nn

from lrsa.models.attention import FFN


def unused_lift(inputs: int, width: int) -> None:
    """Take the random numbers of the lift of LRSA."""
    FFN(inputs, 2 * width, width)


def unused_head(width: int, outputs: int) -> None:
    """Take the random numbers of the head of LRSA."""
    nn.Linear(width, outputs)
