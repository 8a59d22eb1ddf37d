"""Mixers in our backbone: the lift, norms, FFN and head of LRSA around the global mixing of others.

A `backbone-X` differs from LRSA in its mixing layer alone; the model X as published is another thing.
"""

import inspect
import math
from collections.abc import Callable

from lrsa.models.block import Local, point_ffn
from lrsa.models.mixers.eigenbasis import EigenbasisMix
from lrsa.models.mixers.eigenbasis_gated import GatedEigenbasis
from lrsa.models.mixers.factformer import FactorisedAttention
from lrsa.models.mixers.factorised_fourier import FactorisedFourierMix
from lrsa.models.mixers.flare import FlareAttention
from lrsa.models.mixers.fourier import FourierMix
from lrsa.models.mixers.galerkin import GalerkinAttention
from lrsa.models.mixers.linear_no import LinearAttention
from lrsa.models.mixers.transolver import PhysicsAttention
from lrsa.models.mixers.transolver_plus import EideticAttention
from lrsa.models.operator import Backbone
from lrsa.models.template import GlobalMix


class MixerInBackbone(Backbone):
    """Args:
    coord_dim: Coordinates p per point.
    in_features: Input features c per point.
    out_features: Output fields o per point.
    width: Channels d.
    depth: Blocks L.
    heads: Attention heads, where the mixer has heads.
    rank: Latents, slices or eigenfunctions M of the mixer; Fourier mixers keep √M modes per axis.
    ffn_hidden: Hidden width of the point FFN (default: the width).
    local: The point FFN: pointwise, or with a 3x3 convolution in front of it (depthwise, conv).
    periodic: The grid closes on itself, for the convolution.
    frequencies: Frequencies of the positional encoding; 0 is the raw coordinate.
    time: Condition on the time of the sample.
    """

    mixer: Callable[[int, int, int], GlobalMix]
    """Makes the mixing layer of one block, of this width, heads and rank."""

    def __init__(
        self,
        coord_dim: int,
        in_features: int,
        out_features: int,
        width: int = 128,
        depth: int = 8,
        heads: int = 8,
        rank: int = 64,
        ffn_hidden: int | None = None,
        local: Local = "pointwise",
        periodic: bool = False,
        frequencies: int = 0,
        time: bool = False,
    ) -> None:
        super().__init__(
            coord_dim,
            in_features,
            out_features,
            lambda: self.mixer(width, heads, rank),
            width=width,
            depth=depth,
            ffn=lambda: point_ffn(width, ffn_hidden or width, local, periodic),
            frequencies=frequencies,
            time=time,
        )

    def __init_subclass__(cls) -> None:
        # The options are the same for all; each class says in one line what it is.
        words = (inspect.cleandoc(kind.__doc__ or "") for kind in (cls, MixerInBackbone))
        cls.__doc__ = "\n\n".join(words)


class BackboneTransolver(MixerInBackbone):
    """Our backbone with the physics attention of Transolver."""

    mixer = PhysicsAttention


class BackboneTransolverPlus(MixerInBackbone):
    """Our backbone with the eidetic attention of Transolver++."""

    mixer = EideticAttention


class BackboneLinearNO(MixerInBackbone):
    """Our backbone with the linear attention of LinearNO."""

    mixer = LinearAttention


class BackboneHPM(MixerInBackbone):
    """Our backbone with the gated eigenbasis of HPM."""

    mixer = GatedEigenbasis


class BackboneNORM(MixerInBackbone):
    """Our backbone with the eigenbasis of NORM."""

    mixer = staticmethod(lambda width, heads, rank: EigenbasisMix(width, rank))


class BackboneFNO(MixerInBackbone):
    """Our backbone with the truncated Fourier transform of FNO."""

    mixer = staticmethod(lambda width, heads, rank: FourierMix(width, modes_per_axis(rank)))


class BackboneFFNO(MixerInBackbone):
    """Our backbone with the factorised Fourier transform of F-FNO."""

    mixer = staticmethod(
        lambda width, heads, rank: FactorisedFourierMix(width, (modes_per_axis(rank), modes_per_axis(rank)))
    )


class BackboneGalerkin(MixerInBackbone):
    """Our backbone with Galerkin attention."""

    mixer = staticmethod(lambda width, heads, rank: GalerkinAttention(width, heads))


class BackboneFactFormer(MixerInBackbone):
    """Our backbone with the axial attention of FactFormer."""

    mixer = staticmethod(lambda width, heads, rank: FactorisedAttention(width, heads))


class BackboneFLARE(MixerInBackbone):
    """Our backbone with the tied attention of FLARE."""

    mixer = FlareAttention


def modes_per_axis(rank: int) -> int:
    """The side of a square of about M modes."""
    return max(1, round(math.sqrt(rank)))
