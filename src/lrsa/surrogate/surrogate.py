"""A trained surrogate: physical units in, physical units out."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import ArrayLike
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from lrsa.context import Context, needs_of
from lrsa.data.batch import Batch
from lrsa.data.normalise import Normaliser
from lrsa.data.prepare import Collator
from lrsa.data.store import Schema
from lrsa.errors import Failure, LrsaError
from lrsa.mesh.derive import point_measures
from lrsa.models.create import create_model
from lrsa.models.operator import NeuralOperator
from lrsa.models.pod import FittedModel
from lrsa.models.template import Others
from lrsa.objectives.protocols import Protocol, protocol
from lrsa.pointset import PointSet
from lrsa.streaming.stream import apply_whole, share, stream
from lrsa.surrogate.ensemble import mean_of, member_folder
from lrsa.surrogate.precision import Precision, autocast
from lrsa.surrogate.ranges import Ranges
from lrsa.surrogate.record import Record
from lrsa.surrogate.shipped import located
from lrsa.surrogate.time_axis import along_time, at_times, check_times

Epoch = Literal["best", "last"]
WHOLE = 65536
"""Points up to which a case is predicted in one piece."""


class Surrogate(nn.Module):
    """A model between its normalisations.

    Parameters of the whole case and the time become features of every point, unless the model takes them
    from the context.
    """

    def __init__(
        self,
        model: nn.Module,
        normaliser: Normaliser,
        schema: Schema,
        weighted: bool | None = None,
        precision: Precision = "fp32",
        ranges: Ranges | None = None,
    ) -> None:
        super().__init__()
        self.model, self.normaliser, self.schema = model, normaliser, schema
        self.weighted = weighted
        """True: it needs quadrature weights. None: it takes them where they are given. False: it does not."""
        self.precision: Precision = precision
        self.ranges = ranges
        """Those of the training cases, where they are known."""
        self.chunk: int | None = None
        """Points at a time in training; None: all."""
        self.kernels = False
        """Whether kernels compute its blocks, where there are any here."""
        self.sharing: Others | None = None
        """Processes that hold the rest of the points of every case."""
        self.others: tuple[Surrogate, ...] = ()
        """The further members of an ensemble. A tuple: the weights of a run are those of its first member."""

    @property
    def protocol(self) -> Protocol:
        """How it was taught, and how whole cases are predicted."""
        return protocol(self.schema.protocol, needs_of(self.model))

    def at_nodes(self, nodes: np.ndarray) -> "Surrogate":
        """The same weights on some nodes of its mesh, where it has statistics of each."""
        normaliser = self.normaliser.at_nodes(nodes)
        made = Surrogate(self.model, normaliser, self.schema, self.weighted, self.precision, self.ranges)
        made.chunk, made.kernels = self.chunk, self.kernels
        made.others = tuple(member.at_nodes(nodes) for member in self.others)
        return made.train(self.training)

    def forward(self, x: Tensor, f: Tensor | None = None, context: Context | None = None) -> Tensor:
        """x (B, N, p), f (B, N, c) -> u (B, N, o), in physical units; (B, T, N, o) at T times at once."""
        context = context or Context()
        u = self._walk(*self.normalise(x, f, context))
        if self.normaliser.frames is not None:
            u = at_times(u, self.normaliser.frames, context.need("time", "the model"))
        return self.normaliser.targets(u, f)

    def _walk(self, x: Tensor, f: Tensor | None, context: Context) -> Tensor:
        if self.chunk is not None:
            return stream(self.model, x, f, context, self.chunk, self.sharing, self.kernels)
        if self.sharing is not None:
            return share(self.model, x, f, context, self.sharing, self.kernels)
        return apply_whole(self.model, x, f, context, self.kernels)

    def normalise(
        self, x: Tensor, f: Tensor | None, context: Context
    ) -> tuple[Tensor, Tensor | None, Context]:
        """What the model sees: all of it normalised, and the features side by side."""
        known = self.normaliser.features(x, f)
        parts = [] if known is None else [known]
        needs = needs_of(self.model)
        if context.globals is not None:
            g = self.normaliser.parameters_of_case(context.globals)
            context = replace(context, globals=g)
            parts += [g[:, None].expand(-1, x.shape[1], -1)] if not needs.globals else []
        if context.time is not None and not needs.time_axis:
            t = self.normaliser.time(context.time)
            context = replace(context, time=t)
            parts += [t[:, None, None].expand(-1, x.shape[1], 1)] if not needs.time else []
        inputs = self.normaliser.coordinates(x), torch.cat(parts, dim=-1) if parts else None, context
        if self.normaliser.frames is not None:
            return along_time(*inputs, self.normaliser.time(self.normaliser.frames))
        return inputs

    def predict(
        self,
        x: PointSet | ArrayLike,
        f: ArrayLike | None = None,
        *,
        weights: ArrayLike | None = None,
        globals: ArrayLike | None = None,
        time: ArrayLike | None = None,
        grid: tuple[int, ...] | None = None,
        cells: ArrayLike | None = None,
        cell_types: ArrayLike | None = None,
    ) -> np.ndarray:
        """The fields (N, o) of a case, or (T, N, o) where it has times: a `PointSet`, or its arrays.

        >>> surrogate.predict(case)
        >>> surrogate.predict(x, f)

        Args:
            x: The case; or coordinates (N, p), with the arrays below; (B, N, ·) for a batch.
            f: (N, c) input features, if the surrogate was trained with any.
            weights: (N,) measure of every point, if it was trained with weights.
            globals: (g,) parameters of the case, if it was trained with any.
            time: () the time asked for, if it depends on one.
            grid: Index shape of a structured mesh, for models that need it.
            cells: (C, k) connectivity of the mesh, for models that use it; the same for a whole batch.
            cell_types: (C,) VTK's type of each cell; without, the rule `cell_types_of` says what they are.
        """
        if isinstance(x, PointSet):
            return self.predict_cases([x])[0]
        per_case = {"x": x, "f": f, "weights": weights, "globals": globals, "times": time}
        with np.errstate(over="ignore"):  # what overflows is infinite, and refused as such
            arrays = {k: np.asarray(v, np.float32) for k, v in per_case.items() if v is not None}
        if arrays["x"].ndim not in (2, 3):
            raise LrsaError("x must be (points, coordinates), or (cases, points, coordinates) for a batch")
        if f is not None and np.shape(f)[:-1] != np.shape(x)[:-1]:
            raise LrsaError(f"x is of shape {np.shape(x)} and f of {np.shape(f)}: not the same points")
        if arrays["x"].ndim == 2:
            arrays = {name: value[None] for name, value in arrays.items()}
        for name, value in arrays.items():
            if value.shape[:1] != arrays["x"].shape[:1]:
                raise LrsaError(f"x has {len(arrays['x'])} cases, but {name} is of shape {value.shape}")
        if time is not None:
            arrays["times"] = arrays["times"][:, None]
        mesh, types = (None if given is None else np.asarray(given) for given in (cells, cell_types))
        rows = [{name: value[i] for name, value in arrays.items()} for i in range(len(arrays["x"]))]
        names = self.schema.names
        cases = [PointSet(**row, grid=grid, cells=mesh, cell_types=types, names=names) for row in rows]
        u = np.stack(self.predict_cases(cases))
        u = u if time is None else u[:, 0]
        return u[0] if np.ndim(x) == 2 else u

    def predict_cases(self, cases: Sequence[PointSet]) -> list[np.ndarray]:
        """The predictions for cases, in one batch, each in the shape of its target; of members their mean."""
        return [mean_of(every) for every in self.answers(cases)]

    def answers(self, cases: Sequence[PointSet]) -> list[np.ndarray]:
        """Of each case (K, ..., N, o): what every member of the ensemble says; K = 1 where there is none."""
        every = zip(*(member._predict_cases(cases) for member in (self, *self.others)), strict=True)
        return [np.stack(answers) for answers in every]

    def _apply(self, fn: Callable[..., Any], recurse: bool = True) -> "Surrogate":
        for member in self.others:
            member._apply(fn, recurse)
        return super()._apply(fn, recurse)

    @torch.inference_mode()
    def _predict_cases(self, cases: Sequence[PointSet]) -> list[np.ndarray]:
        for i, case in enumerate(cases):
            seen = case if self.protocol.history else replace(case, u=None, u_mask=None)
            seen.check_finite(f"case {i}")
        device = self.normaliser.x_shift.device
        batch = self.collate(cases).to(device)
        # A case without frames gives those that the next one follows from as features: one step.
        step = self.protocol.history > 0 and batch.u is None
        with autocast(device.type, self.precision):
            if step:
                u = self.apply_streamed(batch.x, batch.f, batch.context)
            else:
                u = self.protocol.predict(self.apply_streamed, batch)
        u = u.float().cpu().numpy()
        return [u[i, ..., : len(case), :] for i, case in enumerate(cases)]

    def collate(self, cases: Sequence[PointSet]) -> Batch:
        """One batch with all that the model needs."""
        collator = Collator.of(self.model, self.weighted is not False, self.normaliser)
        return collator([self._with_axes(self.measured(case)) for case in cases])

    def _with_axes(self, case: PointSet) -> PointSet:
        """The case with the axes along which the training cases did not extend, where it leaves them out."""
        shift, seen = self.normaliser.x_shift.cpu().numpy(), self.normaliser.x_axes.tolist()
        if case.x.shape[1] != len(seen) or len(seen) == len(shift):
            return case
        x = np.tile(shift.astype(case.x.dtype), (len(case), 1))
        x[:, seen] = case.x
        return replace(case, x=x)

    def measured(self, case: PointSet) -> PointSet:
        """The case with the quadrature weights that the model was trained with."""
        if not self.weighted or case.weights is not None:
            return case
        if case.cells is None or case.f_mask is not None:
            raise LrsaError(
                "the surrogate was trained with quadrature weights, and the case has neither weights nor"
                " cells to compute them from. Give weights, the measure of every point"
                + (" that gives inputs, and 0 for the others" if case.f_mask is not None else "")
            )
        return replace(case, weights=point_measures(case))

    def apply_streamed(self, x: Tensor, f: Tensor | None, context: Context) -> Tensor:
        """`forward`, in chunks where there are many points and the model can."""
        self.check(x, f, context)
        device = self.normaliser.x_shift.device
        x, context = x.to(device), context.to(device)
        f = None if f is None else f.to(device)
        if x.shape[1] <= WHOLE or not streams(self.model):
            return finite(self(x, f, context))
        u = stream(self.model, *self.normalise(x, f, context), others=self.sharing, kernels=self.kernels)
        return finite(self.normaliser.targets(u, f))

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
            wanted, there = expected.shape[-1], 0 if given is None else given.shape[-1]
            if wanted != there:
                listed = f" ({', '.join(labels)})" if len(labels) == wanted > 0 else ""
                raise LrsaError(
                    f"the surrogate was trained with {wanted} {what}{listed}, but {there} are given"
                )
        if context is not None and normaliser.frames is not None:
            check_times(context.need("time", "the model"), normaliser.frames)
        if isinstance(self.model, FittedModel):
            self.model.check(normaliser.coordinates(x.to(normaliser.x_shift.device)))


def finite(u: Tensor) -> Tensor:
    """A prediction, if it is one."""
    if not torch.isfinite(u).all():
        raise Failure(
            "the prediction is NaN or infinite: the weights are damaged, or the case is far from all training"
        )
    return u


def streams(model: nn.Module) -> bool:
    """Whether the model can go through its points in chunks."""
    try:
        if not isinstance(model, NeuralOperator):
            return False
        model.check_pointwise("stream")
    except LrsaError:
        return False
    return True


def load(run: str | Path, epoch: Epoch = "best") -> Surrogate:
    """The trained surrogate of a run folder: its best epoch (by validation), or the `last`.

    Of those that come with the package the name is enough: `lrsa.load("darcy")`.
    """
    run = located(run)
    record = Record.load(run)
    surrogate = _load(run, record, epoch)
    folders = [member_folder(run, index) for index in range(1, record.ensemble)]
    for folder in folders:
        if not (folder / "last.safetensors").exists():
            raise LrsaError(f"{run} is an ensemble that is not finished. Go on with `lrsa resume {run}`")
    surrogate.others = tuple(_load(folder, Record.load(folder), epoch) for folder in folders)
    return surrogate


def _load(run: Path, record: Record, epoch: Epoch) -> Surrogate:
    path = run / ("model.safetensors" if epoch == "best" else "last.safetensors")
    if not path.exists():
        raise LrsaError(f"{run} has no finished weights ({path.name}). Go on with `lrsa resume {run}`")
    try:
        tensors = load_file(path)
    except (SafetensorError, OSError) as error:
        raise LrsaError(f"{path} is damaged: train again") from error
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not torch.isfinite(tensor).all():
            raise LrsaError(f"{path} is damaged, or its training failed: {name} is not finite. Train again")
    model = create_model(record.model, **record.options)
    prefix = "normaliser."
    try:
        normaliser = Normaliser.holding(
            {name.removeprefix(prefix): t for name, t in tensors.items() if name.startswith(prefix)}
        )
        surrogate = Surrogate(
            model, normaliser, record.schema, record.weighted, record.precision, Ranges.load(run)
        )
        surrogate.load_state_dict(tensors)
        surrogate.kernels = record.kernels
    except (KeyError, RuntimeError) as error:
        raise LrsaError(f"{path} does not belong to {run / 'config.json'}: train again") from error
    return surrogate.eval()
