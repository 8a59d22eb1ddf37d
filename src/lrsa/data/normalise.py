"""Normalisation by training statistics, kept with the weights."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

from lrsa.context import Coordinates
from lrsa.data.store import Selection
from lrsa.errors import LrsaError
from lrsa.pointset import PointSet

StatisticsOf = Literal["channel", "point"]
"""Of what features and targets have their mean and deviation: of each `channel` over all points, or of each
`point` of one mesh over all cases."""

SMALLEST = 1e-8
"""What varies less, relative to its size, is constant: units do not matter."""
OPTIONAL = ("x_log", "nodes", "u_last", "frames")
"""Buffers that only some runs have."""
SOME = 1000
"""Points of a case that tell where its points are dense, about."""
NEAR = 0.1
"""Share of the points within the radius in which a logarithmic map is still straight."""


class Moments:
    """Mean and standard deviation per channel, accumulated case by case (Chan's update)."""

    def __init__(self) -> None:
        self.count = self.mean = self.square = np.zeros(0)

    def add(self, values: np.ndarray, known: np.ndarray | None = None) -> None:
        """values (n, channels), of which `known` (n, channels) count."""
        known = np.ones(values.shape, bool) if known is None else known
        if not len(self.count):
            self.count = self.mean = self.square = np.zeros(values.shape[1])
        fresh = known.sum(0)
        mean = values.sum(0, dtype=np.float64, where=known) / np.maximum(fresh, 1)
        square = np.square(values - mean).sum(0, where=known)
        count = np.maximum(self.count + fresh, 1)
        delta = mean - self.mean
        self.square = self.square + square + delta**2 * self.count * fresh / count
        self.mean = self.mean + delta * fresh / count
        self.count = self.count + fresh

    def shift_scale(self, constant: float = 1.0) -> np.ndarray:
        """(2, channels): mean and deviation; the scale of a constant channel is `constant`."""
        deviation = np.sqrt(self.square / np.maximum(self.count, 1))
        varies = deviation > np.maximum(SMALLEST * np.abs(self.mean), np.finfo(np.float32).tiny)
        return np.stack([self.mean, np.where(varies, deviation, constant)])


class Normaliser(nn.Module):
    """Coordinates, features, globals and targets to about unit size, and targets back.

    Features, globals and targets: (v - mean) / deviation per channel; a target that is constant in training
    is predicted as it. Coordinates, unless a run says otherwise: one isotropic map of the training bounding
    box to [-1, 1] along its longest side, so that shapes stay shapes; axes on which all training points agree
    are dropped. Times: the training times to [0, 1], whatever their unit. An input that is not known counts
    as its mean.

    With statistics of each point, the shifts and scales of features and targets are (N, ·), and hold for that
    mesh of N points alone. What a run may ask for besides, each None where it does not: coordinates by a
    logarithm of the distance (`x_log`), the places of the nodes relative to their training places (`nodes`),
    targets relative to the frame before (`u_last`), all frames at once (`frames`).
    """

    x_axes: Tensor
    x_shift: Tensor
    x_scale: Tensor
    f_shift: Tensor
    f_scale: Tensor
    g_shift: Tensor
    g_scale: Tensor
    u_shift: Tensor
    u_scale: Tensor
    t_shift: Tensor
    t_scale: Tensor
    x_log: Tensor | None
    nodes: Tensor | None
    """(2, N, p'): mean and deviation of each node of a set of one topology."""
    u_last: Tensor | None
    frames: Tensor | None
    """(T,): the times of every training case, where time is an axis of the model."""

    def __init__(
        self,
        coords: int,
        features: int,
        global_features: int,
        targets: int,
        axes: int,
        points: int | None = None,
    ) -> None:
        super().__init__()
        self.register_buffer("x_axes", torch.arange(axes))
        each = () if points is None else (points,)
        sizes = {"x": (coords,), "f": (*each, features), "g": (global_features,), "u": (*each, targets)}
        for name, size in {**sizes, "t": (1,)}.items():
            self.register_buffer(f"{name}_shift", torch.zeros(size))
            self.register_buffer(f"{name}_scale", torch.ones(size))
        for name in OPTIONAL:
            self.register_buffer(name, None)

    @staticmethod
    def of(
        cases: Selection, history: int = 0, coordinates: Coordinates = "box", of: StatisticsOf = "channel"
    ) -> "Normaliser":
        """The normalisation of these training cases."""
        statistics = Statistics(of)
        for i, case in enumerate(cases):
            case.check_finite(cases.label(i))
            statistics.add(case)
        return statistics.normaliser(history, coordinates)

    @staticmethod
    def holding(tensors: Mapping[str, Tensor]) -> "Normaliser":
        """Of the state of another one."""
        x, f, g, u = (tensors[f"{name}_shift"].shape[-1:].numel() for name in "xfgu")
        each = tensors["u_shift"].shape[:-1]
        made = Normaliser(x, f, g, u, len(tensors["x_axes"]), each[0] if each else None)
        for name in OPTIONAL:
            setattr(made, name, tensors.get(name))
        made.load_state_dict(tensors)
        return made

    def at_nodes(self, nodes: np.ndarray) -> "Normaliser":
        """The statistics of some nodes of its mesh, where each has its own."""
        each = ["nodes"] if self.u_shift.ndim == 1 else ["nodes", "f_shift", "f_scale", "u_shift", "u_scale"]
        known = self.state_dict()
        some = {name: known[name][..., nodes, :] for name in each if name in known}
        return Normaliser.holding(known | some)

    @property
    def points(self) -> int | None:
        """Those of the mesh, each of which has statistics of its own; None where it may be any mesh."""
        if self.nodes is not None:
            return self.nodes.shape[1]
        return len(self.u_shift) if self.u_shift.ndim == 2 else None

    @property
    def features_per_point(self) -> int:
        """Channels of what `features` gives."""
        return self.f_shift.shape[-1] + (0 if self.nodes is None else self.nodes.shape[-1])

    def coordinates(self, x: Tensor) -> Tensor:
        """(B, N, p) physical -> (B, N, p') normalised, without constant axes."""
        x = ((x - self.x_shift) / self.x_scale)[..., self.x_axes]
        if self.x_log is None:
            return x
        # x log(1 + r) / r, r = |x|: the identity near the centre, the logarithm far from it.
        r = x.norm(dim=-1, keepdim=True).clamp(min=torch.finfo(x.dtype).tiny)
        return x * (r.log1p() / r)

    def filled(self, case: PointSet) -> PointSet:
        """The case with the mean, which becomes 0, where an input is not known."""
        if case.f is None or case.f_mask is None:
            return case
        mean = self.f_shift[..., : case.f.shape[1]].cpu().numpy()  # frames of the target come behind
        if mean.shape[-1] != case.f.shape[1] or self.points not in (None, len(case)):
            return case  # refused with its reason where the model is applied
        return replace(case, f=np.where(case.f_mask, case.f, mean), f_mask=None)

    def features(self, x: Tensor, f: Tensor | None) -> Tensor | None:
        """x (B, N, p), f (B, N, c) physical -> what is known at each point, normalised."""
        self.check_mesh(x.shape[-2])
        known = None if f is None else (f - self.f_shift) / self.f_scale
        if self.nodes is None:
            return known
        moved = (x[..., self.x_axes] - self.nodes[0]) / self.nodes[1]
        return moved if known is None else torch.cat([known, moved], dim=-1)

    def parameters_of_case(self, g: Tensor) -> Tensor:
        return (g - self.g_shift) / self.g_scale

    def time(self, t: Tensor) -> Tensor:
        return (t - self.t_shift) / self.t_scale

    def targets(self, u: Tensor, f: Tensor | None = None) -> Tensor:
        """Normalised (B, N, o) -> physical; of the change of a frame, with the features f (B, N, c)."""
        self.check_mesh(u.shape[-2])
        u = u * self.u_scale + self.u_shift
        if self.u_last is None:
            return u
        assert f is not None
        return f[..., -u.shape[-1] :] + u

    def check_mesh(self, points: int) -> None:
        """Refuse another number of points where each has statistics of its own."""
        if self.points is not None and points != self.points:
            raise LrsaError(
                f"the surrogate was trained with statistics of each of {self.points} points and holds for"
                f" that mesh alone, but {points} are given. Train without --train.deviations and with"
                " --train.statistics channel for others"
            )

    def set(self, name: str, shift: np.ndarray, scale: np.ndarray) -> None:
        """Of the channels `name`: x, f, g, u or t."""
        getattr(self, f"{name}_shift").copy_(torch.as_tensor(shift))
        getattr(self, f"{name}_scale").copy_(torch.as_tensor(scale))


class Statistics:
    """What normalisation needs to know of the training cases, accumulated in one pass over them.

    Args:
        of: Of what features and targets have their mean and deviation.
        deviations: Also of the place of each node, over cases of one topology.
        change: Also of the change from frame to frame.
    """

    def __init__(
        self, of: StatisticsOf = "channel", *, deviations: bool = False, change: bool = False
    ) -> None:
        self.of, self.mesh, self.fixed = of, 0, deviations or of == "point"
        self.nodes = Moments() if deviations else None
        self.changes = Moments() if change else None
        self.some: list[np.ndarray] = []
        self.points, self.features, self.targets, self.parameters = (Moments() for _ in range(4))
        self.low, self.high = np.array(np.inf), np.array(-np.inf)
        self.times: list[float] = []

    def add(self, case: PointSet) -> None:
        """One more case."""
        if self.fixed and self.mesh not in (0, len(case)):
            cure = "--train.statistics channel" if self.of == "point" else "--train.no-deviations"
            raise LrsaError(
                f"statistics of each point need one mesh for all cases, and they have {self.mesh} and"
                f" {len(case)} points. Use {cure}"
            )
        self.mesh = len(case)
        self.low, self.high = np.minimum(self.low, case.x.min(0)), np.maximum(self.high, case.x.max(0))
        self.points.add(case.x)
        self.some.append(case.x[:: max(1, len(case) // SOME)])
        self.times += [] if case.times is None else [case.times.min(), case.times.max()]
        if case.f is not None:
            self._add(self.features, case.f, case.f_mask)
        if case.globals is not None:
            self.parameters.add(case.globals[None])
        if case.u is not None:
            self._add(self.targets, case.u, case.u_mask)
        if self.nodes is not None:
            self.nodes.add(case.x.reshape(1, -1))
        if self.changes is not None:
            if case.times is None or case.u is None:
                raise LrsaError("--train.change needs frames in time, and the cases have none")
            self._add(self.changes, np.diff(case.u, axis=0), case.u_mask)

    def normaliser(self, history: int = 0, coordinates: Coordinates = "box") -> Normaliser:
        """`history` frames of the target count as further features."""
        low, high = np.asarray(self.low, float), np.asarray(self.high, float)
        sides = high - low
        axes = np.flatnonzero(sides > SMALLEST * np.maximum(sides.max(), np.abs([low, high]).max(0)))
        f, u = (self._shaped(moments.shift_scale()) for moments in (self.features, self.targets))
        f, g = np.concatenate([f, np.tile(u, history)], axis=-1), self.parameters.shift_scale()
        points = self.mesh if self.of == "point" else None
        made = Normaliser(len(low), f.shape[-1], g.shape[1], u.shape[-1], len(axes), points)
        made.set("x", *self._map(coordinates, low, high))
        made.set("f", *f)
        made.set("g", *g)
        made.set("u", *self._shaped((self.changes or self.targets).shift_scale(constant=0.0)))
        made.x_log = torch.ones(1) if coordinates == "log" else None
        made.u_last = torch.ones(1) if self.changes else None
        if self.nodes is not None:
            places = self.nodes.shift_scale().reshape(2, -1, len(low))[..., axes]
            made.nodes = torch.as_tensor(places, dtype=torch.get_default_dtype())
        if self.times:
            first, last = min(self.times), max(self.times)
            made.set("t", np.array([first]), np.array([last - first if last > first else 1.0]))
        made.x_axes.copy_(torch.as_tensor(axes))
        return made

    def _add(self, moments: Moments, values: np.ndarray, known: np.ndarray | None) -> None:
        """values (N, k) or (T, N, k), of which `known` (N, k) count."""
        columns = values.shape[-1] * (values.shape[-2] if self.of == "point" else 1)
        known = np.broadcast_to(True if known is None else known, values.shape)
        moments.add(values.reshape(-1, columns), known.reshape(-1, columns))

    def _shaped(self, statistics: np.ndarray) -> np.ndarray:
        """(2, k), or (2, N, k) of each point."""
        return statistics.reshape(2, self.mesh, -1) if self.of == "point" else statistics

    def _map(self, how: Coordinates, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """(2, p): shift and scale of every coordinate."""
        if how == "axis":
            return self.points.shift_scale()
        if how == "raw":
            return np.stack([np.zeros(len(low)), np.ones(len(low))])
        if how == "log":
            # Medians: where the points are dense, however far the domain reaches.
            some = np.concatenate(self.some).astype(float)
            middle = np.median(some, axis=0)
            near = np.quantile(np.linalg.norm(some - middle, axis=1), NEAR)
            return np.stack([middle, np.full(len(low), near or 1.0)])
        extent = float((high - low).max()) / 2 or 1.0
        return np.stack([(low + high) / 2, np.full(len(low), extent)])
