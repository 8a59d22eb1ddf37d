"""One registry for LRSA and every baseline: any model, by name, in every command."""

import importlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import nn

from lrsa.errors import LrsaError, nearest
from lrsa.machine import check_fits
from lrsa.typed import conforms

DATA_ARGUMENTS = ("coord_dim", "in_features", "out_features")
"""What the data decides; every model's constructor takes them first."""
SIZES = ("width", "depth", "heads", "rank")
"""Options that mean the same in every model that has them."""
POSITIVE = (*SIZES, "ffn_hidden", "latent_ffn_hidden", "coord_dim", "out_features")
LARGEST, DEEPEST = 2**20, 1024
"""Of any size, and of a number of layers."""
MODEST = 2**28
"""About the parameters up to which nothing is counted."""

Kind = Literal["grid", "structured", "points", "mesh"]
KINDS: dict[Kind, str] = {
    "grid": "an index grid of two axes and equal spacing",
    "structured": "the same, curved",
    "points": "any set of points, those of a grid or a mesh among them",
    "mesh": "the cells of a mesh, where it has some",
}
"""What data there is. A model that names `points` takes all of it; what it names besides, it makes use of."""
_INDEX_GRID: tuple[Kind, ...] = ("grid", "structured")
_POINTS: tuple[Kind, ...] = ("points",)
_EITHER: tuple[Kind, ...] = ("structured", "points")
_GEOMETRY: tuple[Kind, ...] = ("structured", "points", "mesh")
Family = Literal["lrsa", "backbone", "published", "fitted", "registered"]
"""The paper's operator, another mixer in its backbone, a model as it was published, one that is fitted at
once instead of trained, a user's own."""


@dataclass(frozen=True)
class Entry:
    """A registered model: its class, or `module:Class` to import when asked for, and what is known of it."""

    target: str | Callable[..., nn.Module]
    presets: str | Mapping[str, Any] = field(default_factory=dict)
    """Published options by benchmark, or `module:NAME` of them."""
    paper: str = ""
    data: tuple[Kind, ...] = _POINTS
    """The kinds of data that it accepts."""
    family: Family = "registered"

    def build(self) -> Callable[..., nn.Module]:
        return _import(self.target) if isinstance(self.target, str) else self.target

    def all_presets(self) -> Mapping[str, Any]:
        return _import(self.presets) if isinstance(self.presets, str) else self.presets

    def preset(self, name: str) -> Mapping[str, Any]:
        rows = self.all_presets()
        if name not in rows:
            raise LrsaError(
                f'no preset "{name}".{nearest(name, rows)} There are: {", ".join(rows) or "none"}'
            )
        return getattr(rows[name], "model", rows[name])


def _baseline(
    module: str, name: str, paper: str, data: tuple[Kind, ...] = _POINTS, presets: str = "PRESETS"
) -> Entry:
    home = f"lrsa.models.baselines.{module}"
    return Entry(f"{home}:{name}", f"{home}:{presets}", paper, data, "published")


def _backbone(name: str, data: tuple[Kind, ...] = _EITHER) -> Entry:
    return Entry(f"lrsa.models.baselines.backbone:Backbone{name}", {}, "our backbone", data, "backbone")


_MODELS: dict[str, Entry] = {
    "lrsa": Entry(
        "lrsa.models.operator:LRSA", "lrsa.models.presets:PRESETS", "this paper, 2026", _EITHER, "lrsa"
    ),
    "lrsa-dilated": Entry(
        "lrsa.models.dilated_operator:LRSADilated", {}, "LRSA with dilated filters", _INDEX_GRID, "lrsa"
    ),
    "lrsa-fourier": Entry(
        "lrsa.models.fourier_operator:LRSAFourier", {}, "LRSA with Fourier filters", _INDEX_GRID, "lrsa"
    ),
    "transolver": _baseline("transolver", "Transolver", "Wu et al. 2024", _EITHER),
    "transolver-plus": _baseline("transolver_plus", "TransolverPlus", "Luo et al. 2025"),
    "linear-no": _baseline("linear_no", "LinearNO", "Hu et al. 2025", _EITHER),
    "hpm": _baseline("hpm", "HPM", "Yue et al. 2024", _GEOMETRY),
    "norm": _baseline("norm", "NORM", "Chen et al. 2024", _GEOMETRY),
    "fno": _baseline("fno", "FNO", "Li et al. 2020", _INDEX_GRID),
    "f-fno": _baseline("f_fno", "FFNO", "Tran et al. 2023", _INDEX_GRID),
    "f-fno-linear": _baseline("f_fno", "FFNOLinear", "as widely run, no FFN", _INDEX_GRID, "LINEAR_PRESETS"),
    "lsm": _baseline("lsm", "LSM", "Wu et al. 2023", _INDEX_GRID),
    "lno": _baseline("lno", "LNO", "Wang et al. 2024"),
    "flare": _baseline("flare", "FLARE", "Puri et al. 2025"),
    "galerkin": _baseline("galerkin", "GalerkinTransformer", "Cao 2021"),
    "factformer": _baseline("factformer", "FactFormer", "Li et al. 2023", _INDEX_GRID),
    "perceiver-io": _baseline("perceiver_io", "PerceiverIO", "Jaegle et al. 2021"),
    "graphsage": _baseline("graph_sage", "GraphSAGE", "Hamilton et al. 2017", _GEOMETRY),
    "graph-unet": _baseline("graph_unet", "GraphUNet", "Gao and Ji 2019", _GEOMETRY),
    "mesh-graph-net": _baseline("mesh_graph_net", "MeshGraphNet", "Pfaff et al. 2020", _GEOMETRY),
    "gno": _baseline("gno", "GNO", "Li et al. 2020", _GEOMETRY),
    "geo-fno": _baseline("geo_fno", "GeoFNO", "Li et al. 2022"),
    "deeponet": _baseline("deeponet", "DeepONet", "Lu et al. 2019"),
    "backbone-transolver": _backbone("Transolver"),
    "backbone-transolver-plus": _backbone("TransolverPlus"),
    "backbone-linear-no": _backbone("LinearNO"),
    "backbone-hpm": _backbone("HPM", _GEOMETRY),
    "backbone-norm": _backbone("NORM", _GEOMETRY),
    "backbone-fno": _backbone("FNO", _INDEX_GRID),
    "backbone-f-fno": _backbone("FFNO", _INDEX_GRID),
    "backbone-galerkin": _backbone("Galerkin"),
    "backbone-factformer": _backbone("FactFormer", _INDEX_GRID),
    "backbone-flare": _backbone("FLARE"),
    "pod-rbf": Entry("lrsa.models.pod:PodRbf", {}, "POD with regression", _POINTS, "fitted"),
}


def register(
    name: str, model: Callable[..., nn.Module], presets: Mapping[str, Mapping[str, Any]] | None = None
) -> None:
    """Make `model(coord_dim, in_features, out_features, ...)` known as `name` to every command.

    Its further arguments, annotated and with defaults, become its options; `presets` names sets of them.
    """
    missing = [word for word in DATA_ARGUMENTS if word not in inspect.signature(model).parameters]
    if missing:
        raise LrsaError(
            f'the model "{name}" must take {", ".join(DATA_ARGUMENTS)}; it lacks {", ".join(missing)}'
        )
    _MODELS[name] = Entry(model, presets or {})


def names() -> list[str]:
    """Of all models."""
    return sorted(_MODELS)


def networks() -> list[str]:
    """Of those that are trained."""
    return [name for name in names() if _MODELS[name].family != "fitted"]


def build(name: str, **options: Any) -> nn.Module:
    """The model `name` from all of its options that have no default; unknown ones are named."""
    make = get(name).build()
    known = inspect.signature(make).parameters
    for option, value in options.items():
        if option not in known:
            raise LrsaError(f'the model "{name}" has no option "{option}".{nearest(option, known)}')
        kind = known[option].annotation
        if kind is not inspect.Parameter.empty and not conforms(value, kind):
            wanted = inspect.formatannotation(kind)
            raise LrsaError(f'the model "{name}" takes {wanted} as {option}, not {value!r}')
    for word in DATA_ARGUMENTS:
        if word not in options:
            raise LrsaError(f'the model "{name}" needs {word}, or a preset')
    check_sizes(options)
    try:
        _check_memory(name, make, options)
        return make(**options)
    except (RuntimeError, ValueError, TypeError, ArithmeticError, MemoryError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise LrsaError(f'the model "{name}" cannot be made with these options: {reason}') from error


def check_sizes(options: Mapping[str, Any]) -> None:
    """Refuse sizes that are none, and such as nobody means: so many layers would take forever to make."""
    for name, value in options.items():
        if not isinstance(value, int):
            continue
        least = 1 if name in POSITIVE else 0 if name in ("in_features", "frequencies") else value
        largest = DEEPEST if name == "depth" or name.endswith("layers") else LARGEST
        for refused, bound in ((value < least, f"at least {least}"), (value > largest, f"at most {largest}")):
            if refused:
                raise LrsaError(f"--model.{name.replace('_', '-')} must be {bound}, not {value}")


def _check_memory(name: str, make: Callable[..., nn.Module], options: Mapping[str, Any]) -> None:
    """Refuse weights that the memory cannot hold. Only what might be large is counted: it takes a second."""
    sizes = [value for value in options.values() if isinstance(value, int)]
    if torch.get_default_device().type == "meta":  # nothing is filled with numbers there
        return
    if max(sizes) ** 2 * int(options.get("depth", 1)) > MODEST:
        with torch.device("meta"):
            count = sum(parameter.numel() for parameter in make(**options).parameters())
        check_fits(4 * count, f'the model "{name}" of {count:.3g} parameters')


def get(name: str) -> Entry:
    """The entry of a model, or a line that names the nearest one."""
    if name not in _MODELS:
        raise LrsaError(f'no model "{name}".{nearest(name, _MODELS)} There are: {", ".join(names())}')
    return _MODELS[name]


def model_options(name: str) -> dict[str, inspect.Parameter]:
    """The options of a model beyond what the data decides."""
    parameters = inspect.signature(get(name).build()).parameters
    return {key: value for key, value in parameters.items() if key not in DATA_ARGUMENTS}


def _import(target: str) -> Any:
    module, _, name = target.partition(":")
    return getattr(importlib.import_module(module), name)
