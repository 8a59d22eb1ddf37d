"""Neural operators by low-rank spatial attention.

    model = lrsa.LRSA(coord_dim=2, in_features=1, out_features=1)   the operator of the paper
    surrogate = lrsa.fit("my.h5"); surrogate.predict(x, f)          a trained surrogate of a solver

Names are imported when first used, so that a program pays only for what it needs.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lrsa.attention import LowRankSpatialAttention as LowRankSpatialAttention
    from lrsa.context import Context as Context
    from lrsa.data.pointset import Names as Names
    from lrsa.data.pointset import PointSet as PointSet
    from lrsa.data.store import open_dataset as open_dataset
    from lrsa.data.writing import write_dataset as write_dataset
    from lrsa.errors import LrsaError as LrsaError
    from lrsa.operator import LRSA as LRSA
    from lrsa.operator import NeuralOperator as NeuralOperator
    from lrsa.registry import create_model as create_model
    from lrsa.registry import list_models as list_models
    from lrsa.registry import register as register
    from lrsa.streaming import stream as stream
    from lrsa.template import LowRankMix as LowRankMix
    from lrsa.template import Partial as Partial
    from lrsa.training.fit import fit as fit
    from lrsa.training.surrogate import Surrogate as Surrogate
    from lrsa.training.surrogate import load as load

__version__ = "0.1.0"

_HOMES = {
    "LowRankSpatialAttention": "attention",
    "Context": "context",
    "Names": "data.pointset",
    "PointSet": "data.pointset",
    "open_dataset": "data.store",
    "write_dataset": "data.writing",
    "LrsaError": "errors",
    "LRSA": "operator",
    "NeuralOperator": "operator",
    "create_model": "registry",
    "list_models": "registry",
    "register": "registry",
    "stream": "streaming",
    "Surrogate": "training.surrogate",
    "load": "training.surrogate",
    "LowRankMix": "template",
    "Partial": "template",
    "fit": "training.fit",
}

__all__ = ["__version__", *_HOMES]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'lrsa' has no attribute {name!r}")
    return getattr(importlib.import_module(f"lrsa.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
