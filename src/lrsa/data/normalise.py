"""Normalisation by training statistics, kept with the weights."""

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor, nn

from lrsa.context import Coordinates
from lrsa.data.store import Selection
from lrsa.errors import LrsaError
from lrsa.pointset import PointSet

SMALLEST = 1e-8
"""What varies less, relative to its size, is constant: units do not matter."""
OPTIONAL = ("x_log", "nodes", "u_last")
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
    are dropped. Times: the training times to [0, 1], whatever their unit.

    What a run may ask for besides, each None where it does not: coordinates by a logarithm of the distance
    (`x_log`), the places of the nodes relative to their training places (`nodes`), targets relative to the
    frame before (`u_last`).
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

    def __init__(self, coords: int, features: int, global_features: int, targets: int, axes: int) -> None:
        super().__init__()
        self.register_buffer("x_axes", torch.arange(axes))
        for name, size in (("x", coords), ("f", features), ("g", global_features), ("u", targets), ("t", 1)):
            self.register_buffer(f"{name}_shift", torch.zeros(size))
            self.register_buffer(f"{name}_scale", torch.ones(size))
        for name in OPTIONAL:
            self.register_buffer(name, None)

    @staticmethod
    def of(cases: Selection, history: int = 0, coordinates: Coordinates = "box") -> "Normaliser":
        """The normalisation of these training cases."""
        statistics = Statistics()
        for i, case in enumerate(cases):
            case.check_finite(cases.label(i))
            statistics.add(case)
        return statistics.normaliser(history, coordinates)

    @staticmethod
    def holding(tensors: Mapping[str, Tensor]) -> "Normaliser":
        """Of the state of another one."""
        sizes = (len(tensors[name]) for name in ("x_shift", "f_shift", "g_shift", "u_shift", "x_axes"))
        made = Normaliser(*sizes)
        for name in OPTIONAL:
            setattr(made, name, tensors.get(name))
        made.load_state_dict(tensors)
        return made

    @property
    def features_per_point(self) -> int:
        """Channels of what `features` gives."""
        return len(self.f_shift) + (0 if self.nodes is None else self.nodes.shape[-1])

    def coordinates(self, x: Tensor) -> Tensor:
        """(B, N, p) physical -> (B, N, p') normalised, without constant axes."""
        x = ((x - self.x_shift) / self.x_scale)[..., self.x_axes]
        if self.x_log is None:
            return x
        # x log(1 + r) / r, r = |x|: the identity near the centre, the logarithm far from it.
        r = x.norm(dim=-1, keepdim=True).clamp(min=torch.finfo(x.dtype).tiny)
        return x * (r.log1p() / r)

    def features(self, x: Tensor, f: Tensor | None) -> Tensor | None:
        """x (B, N, p), f (B, N, c) physical -> what is known at each point, normalised."""
        known = None if f is None else (f - self.f_shift) / self.f_scale
        if self.nodes is None:
            return known
        if x.shape[1] != self.nodes.shape[1]:
            raise LrsaError(
                f"the surrogate knows the training places of {self.nodes.shape[1]} nodes"
                f" (--train.deviations), and the case has {x.shape[1]} points"
            )
        moved = (x[..., self.x_axes] - self.nodes[0]) / self.nodes[1]
        return moved if known is None else torch.cat([known, moved], dim=-1)

    def parameters_of_case(self, g: Tensor) -> Tensor:
        return (g - self.g_shift) / self.g_scale

    def time(self, t: Tensor) -> Tensor:
        return (t - self.t_shift) / self.t_scale

    def targets(self, u: Tensor, f: Tensor | None = None) -> Tensor:
        """Normalised (B, N, o) -> physical; of the change of a frame, with the features f (B, N, c)."""
        u = u * self.u_scale + self.u_shift
        if self.u_last is None:
            return u
        assert f is not None
        return f[..., -u.shape[-1] :] + u

    def set(self, name: str, shift: np.ndarray, scale: np.ndarray) -> None:
        """Of the channels `name`: x, f, g, u or t."""
        getattr(self, f"{name}_shift").copy_(torch.as_tensor(shift))
        getattr(self, f"{name}_scale").copy_(torch.as_tensor(scale))


class Statistics:
    """What normalisation needs to know of the training cases, accumulated in one pass over them.

    Args:
        deviations: Also of each node, over cases of one topology.
        change: Also of the change from frame to frame.
    """

    def __init__(self, deviations: bool = False, change: bool = False) -> None:
        self.points, self.features, self.targets, self.parameters = (Moments() for _ in range(4))
        self.low, self.high = np.array(np.inf), np.array(-np.inf)
        self.times: list[float] = []
        self.some: list[np.ndarray] = []
        self.nodes = Moments() if deviations else None
        self.changes = Moments() if change else None

    def add(self, case: PointSet) -> None:
        """One more case."""
        self.low, self.high = np.minimum(self.low, case.x.min(0)), np.maximum(self.high, case.x.max(0))
        self.points.add(case.x)
        self.some.append(case.x[:: max(1, len(case) // SOME)])
        self.times += [] if case.times is None else [case.times.min(), case.times.max()]
        if case.f is not None:
            self.features.add(case.f)
        if case.globals is not None:
            self.parameters.add(case.globals[None])
        if case.u is not None:
            known = True if case.u_mask is None else case.u_mask
            channels = case.u.shape[-1]
            self.targets.add(
                case.u.reshape(-1, channels), np.broadcast_to(known, case.u.shape).reshape(-1, channels)
            )
        self._add_options(case)

    def _add_options(self, case: PointSet) -> None:
        if self.nodes is not None:
            if len(self.nodes.count) not in (0, case.x.size):
                raise LrsaError("--train.deviations needs cases of one topology, and theirs differ in points")
            self.nodes.add(case.x.reshape(1, -1))
        if self.changes is not None:
            if case.times is None or case.u is None:
                raise LrsaError("--train.change needs frames in time, and the cases have none")
            self.changes.add(np.diff(case.u, axis=0).reshape(-1, case.u.shape[-1]))

    def normaliser(self, history: int = 0, coordinates: Coordinates = "box") -> Normaliser:
        """`history` frames of the target count as further features."""
        low, high = np.asarray(self.low, float), np.asarray(self.high, float)
        sides = high - low
        axes = np.flatnonzero(sides > SMALLEST * np.maximum(sides.max(), np.abs([low, high]).max(0)))
        f, g, u = (m.shift_scale() for m in (self.features, self.parameters, self.targets))
        f = np.concatenate([f, np.tile(u, history)], axis=1)
        made = Normaliser(len(low), f.shape[1], g.shape[1], u.shape[1], len(axes))
        made.set("x", *self._map(coordinates, low, high))
        made.set("f", *f)
        made.set("g", *g)
        made.set("u", *(self.changes or self.targets).shift_scale(constant=0.0))
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
