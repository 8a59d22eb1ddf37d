"""Neural operators by low-rank spatial attention.

    model = lrsa.LRSA(coord_dim=2, in_features=1, out_features=1)   the operator of the paper
    surrogate = lrsa.fit("my.h5"); surrogate.predict(x, f)          a trained surrogate of a solver

Names are imported when first used, so that a program pays only for what it needs.
"""

import importlib
from typing import TYPE_CHECKING, Any

from lrsa.version import __version__ as __version__

if TYPE_CHECKING:
    from lrsa.context import Context as Context
    from lrsa.data.writing import write_dataset as write_dataset
    from lrsa.errors import LrsaError as LrsaError
    from lrsa.models.attention import LowRankSpatialAttention as LowRankSpatialAttention
    from lrsa.models.create import create_model as create_model
    from lrsa.models.listing import list_models as list_models
    from lrsa.models.operator import LRSA as LRSA
    from lrsa.models.operator import Backbone as Backbone
    from lrsa.models.operator import NeuralOperator as NeuralOperator
    from lrsa.models.registry import register as register
    from lrsa.models.template import LowRankMix as LowRankMix
    from lrsa.models.template import Partial as Partial
    from lrsa.pointset import Names as Names
    from lrsa.pointset import PointSet as PointSet
    from lrsa.problems.catalogue import open_dataset as open_dataset
    from lrsa.streaming.stream import stream as stream
    from lrsa.surrogate.surrogate import Surrogate as Surrogate
    from lrsa.surrogate.surrogate import load as load
    from lrsa.training.fit import fit as fit

_HOMES = {
    "LowRankSpatialAttention": "models.attention",
    "Context": "context",
    "Names": "pointset",
    "PointSet": "pointset",
    "open_dataset": "problems.catalogue",
    "write_dataset": "data.writing",
    "LrsaError": "errors",
    "LRSA": "models.operator",
    "Backbone": "models.operator",
    "NeuralOperator": "models.operator",
    "create_model": "models.create",
    "list_models": "models.listing",
    "register": "models.registry",
    "stream": "streaming.stream",
    "Surrogate": "surrogate.surrogate",
    "load": "surrogate.surrogate",
    "LowRankMix": "models.template",
    "Partial": "models.template",
    "fit": "training.fit",
}

__all__ = ["__version__", *_HOMES]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'lrsa' has no attribute {name!r}")
    return getattr(importlib.import_module(f"lrsa.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
