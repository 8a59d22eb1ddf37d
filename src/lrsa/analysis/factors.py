"""The factors of any layer: every family has registered its own with `factors_of`."""

import torch
from torch import Tensor

from lrsa.analysis import factors_attention as factors_attention
from lrsa.analysis import factors_spectral as factors_spectral
from lrsa.analysis.lowrank import Factors, check_single, factors_of
from lrsa.context import Context
from lrsa.models.template import GlobalMix


@torch.no_grad()
def factors(layer: GlobalMix, h: Tensor, x: Tensor, context: Context) -> Factors:
    """U, G, V of a layer at one sample: h (1, N, d), x (1, N, p)."""
    check_single(h)
    return factors_of(layer, h, x, context)
