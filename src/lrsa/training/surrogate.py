"""A trained surrogate: physical units in, physical units out."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import ArrayLike
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from lrsa.context import Context
from lrsa.data.normalise import Normaliser
from lrsa.data.pointset import PointSet
from lrsa.data.prepare import Collator
from lrsa.data.store import Schema
from lrsa.errors import LrsaError
from lrsa.registry import create_model
from lrsa.streaming import check_streams, stream
from lrsa.training.config import RunConfig

WHOLE = 65536
"""Points up to which a case is predicted in one piece."""


class Surrogate(nn.Module):
    """A model between its normalisations.

    Parameters of the whole case and the time become features of every point, unless the model takes them
    from the context.
    """

    def __init__(self, model: nn.Module, normaliser: Normaliser, schema: Schema) -> None:
        super().__init__()
        self.model, self.normaliser, self.schema = model, normaliser, schema
        self.chunk: int | None = None
        """Points at a time in training; None: all."""

    def forward(self, x: Tensor, f: Tensor | None = None, context: Context | None = None) -> Tensor:
        """x (B, N, p), f (B, N, c) -> u (B, N, o), in physical units."""
        inputs = self.normalise(x, f, context or Context())
        u = self.model(*inputs) if self.chunk is None else stream(self.model, *inputs, self.chunk)
        return self.normaliser.targets(u)

    def normalise(
        self, x: Tensor, f: Tensor | None, context: Context
    ) -> tuple[Tensor, Tensor | None, Context]:
        """What the model sees: all of it normalised, and the features side by side."""
        parts = [] if f is None else [self.normaliser.features(f)]
        needs = requirements(self.model)
        if context.globals is not None:
            g = self.normaliser.parameters_of_case(context.globals)
            context = replace(context, globals=g)
            parts += [g[:, None].expand(-1, x.shape[1], -1)] if "globals" not in needs else []
        if context.time is not None:
            t = self.normaliser.time(context.time)
            context = replace(context, time=t)
            parts += [t[:, None, None].expand(-1, x.shape[1], 1)] if "time" not in needs else []
        return self.normaliser.coordinates(x), torch.cat(parts, dim=-1) if parts else None, context

    @torch.inference_mode()
    def predict(
        self,
        x: ArrayLike,
        f: ArrayLike | None = None,
        *,
        weights: ArrayLike | None = None,
        globals: ArrayLike | None = None,
        time: ArrayLike | None = None,
        grid: tuple[int, ...] | None = None,
        cells: ArrayLike | None = None,
    ) -> np.ndarray:
        """The fields (N, o) at points x (N, p) with features f (N, c), in numpy; (B, N, ·) for a batch.

        Args:
            x: Coordinates.
            f: Input features, if the surrogate was trained with any.
            weights: (N,) measure of every point, if it was trained with weights.
            globals: (g,) parameters of the case, if it was trained with any.
            time: () the time asked for, if it depends on one.
            grid: Index shape of a structured mesh, for models that need it.
            cells: (C, k) connectivity of the mesh, for models that use it; the same for a whole batch.
        """
        single = np.ndim(x) == 2

        def tensor(value: ArrayLike | None) -> Tensor | None:
            if value is None:
                return None
            made = torch.from_numpy(np.array(value, np.float32))
            return made[None] if single else made

        points = tensor(x)
        assert points is not None
        context = Context(weights=tensor(weights), globals=tensor(globals), time=tensor(time), grid=grid)
        if points.ndim == 3:
            mesh = None if cells is None else np.asarray(cells)
            cases = [PointSet(case, grid=grid, cells=mesh) for case in points.numpy()]
            context = Collator.of(self.model, False).with_geometry(context, cases, points.shape[1])
        u = self.apply_streamed(points, tensor(f), context).cpu().numpy()
        return u[0] if single else u

    def apply_streamed(self, x: Tensor, f: Tensor | None, context: Context) -> Tensor:
        """`forward`, in chunks where there are many points and the model can."""
        self.check(x, f, context)
        device = self.normaliser.x_shift.device
        x, context = x.to(device), context.to(device)
        f = None if f is None else f.to(device)
        if x.shape[1] <= WHOLE or not streams(self.model):
            return self(x, f, context)
        return self.normaliser.targets(stream(self.model, *self.normalise(x, f, context)))

    def check(self, x: Tensor, f: Tensor | None, context: Context | None = None) -> None:
        """Refuse points that do not fit, saying what differs."""
        names, normaliser = self.schema.names, self.normaliser
        if x.ndim != 3:
            raise LrsaError("x must be (points, coordinates), or (cases, points, coordinates) for a batch")
        channels = [
            ("coordinates", names.coords, normaliser.x_shift, x),
            ("input features", names.inputs, normaliser.f_shift, f),
        ]
        if context is not None:
            channels.append(("globals", names.globals, normaliser.g_shift, context.globals))
        for what, labels, expected, given in channels:
            wanted, there = len(expected), 0 if given is None else given.shape[-1]
            if wanted != there:
                listed = f" ({', '.join(labels)})" if len(labels) == wanted > 0 else ""
                raise LrsaError(
                    f"the surrogate was trained with {wanted} {what}{listed}, but {there} are given"
                )
        if f is not None and f.shape[:-1] != x.shape[:-1]:
            raise LrsaError(f"x is of shape {tuple(x.shape)} and f of {tuple(f.shape)}: not the same points")


def requirements(model: nn.Module) -> frozenset[str]:
    """The fields of `Context` that a model takes for itself."""
    return frozenset(getattr(model, "requires", frozenset()))


def streams(model: nn.Module) -> bool:
    """Whether the model can go through its points in chunks."""
    try:
        check_streams(model)
    except LrsaError:
        return False
    return True


def load(run: str | Path, weights: str = "best") -> Surrogate:
    """The trained surrogate of a run folder: its best epoch (by validation), or the `last`."""
    run = Path(run)
    config = RunConfig.load(run)
    path = run / ("model.safetensors" if weights == "best" else "last.safetensors")
    if not path.exists():
        raise LrsaError(f"{run} has no finished weights ({path.name}). Go on with `lrsa resume {run}`")
    try:
        tensors = load_file(path)
    except (SafetensorError, OSError) as error:
        raise LrsaError(f"{path} is damaged: train again") from error
    model = create_model(config.model, **config.options)
    names = ("x_shift", "f_shift", "g_shift", "u_shift", "x_axes")
    try:
        normaliser = Normaliser(*(len(tensors[f"normaliser.{name}"]) for name in names))
        surrogate = Surrogate(model, normaliser, config.schema)
        surrogate.load_state_dict(tensors)
    except (KeyError, RuntimeError) as error:
        raise LrsaError(f"{path} does not belong to {run / 'config.json'}: train again") from error
    return surrogate.eval()
