"""Everything about a sample that is neither coordinates nor features, and what of it a model needs."""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

import torch
from torch import Tensor

from lrsa.errors import LrsaError

Coordinates = Literal["box", "axis", "raw", "log"]
"""How coordinates are normalised: `box` by one map for all axes, `axis` each by its mean and deviation, `raw`
not at all, `log` by the logarithm of the distance from where the points are dense."""


PER_POINT = ("mask", "weights", "basis", "inputs")
"""What of a context belongs to single points."""


@dataclass(frozen=True)
class Context:
    """What a model may need besides `x (B, N, p)` and `f (B, N, c)`. Every field is optional."""

    mask: Tensor | None = None
    """(B, N) bool, True at the real points of a padded batch."""
    weights: Tensor | None = None
    """(B, N) quadrature measures: how much of the domain each point stands for. Any positive scale. A point
    of weight 0 is not compressed: it only reads."""
    grid: tuple[int, ...] | None = None
    """Index shape of a structured mesh; the points are its row-major flattening."""
    edges: Tensor | None = None
    """(2, E) source and target of every edge, as indices into the B·N flattened points."""
    basis: Tensor | None = None
    """(B, N, K) eigenfunctions at the points."""
    inputs: Tensor | None = None
    """(B, N) bool, True at the points that give inputs, where others only ask for fields."""
    time: Tensor | None = None
    """(B,) the time that is asked for, or (B, T) those of all frames that are asked for at once."""
    globals: Tensor | None = None
    """(B, g) parameters of the whole sample."""

    def need(self, name: str, who: str) -> Any:
        """The field `name`, or a clear refusal on behalf of `who`."""
        value = getattr(self, name)
        if value is None:
            raise LrsaError(f"{who} needs Context.{name}, and this data has none")
        return value

    def check(self, x: Tensor) -> None:
        """Refuse points x that are not (B, N, p), and what belongs to other samples or points than these."""
        if x.ndim != 3:
            raise LrsaError(f"x is of shape {tuple(x.shape)}, not (B, N, p): samples, points, coordinates")
        for name in PER_POINT:
            given: Tensor | None = getattr(self, name)
            if given is None:
                continue
            if given.shape[:2] != x.shape[:2]:
                there = f"x is of shape {tuple(x.shape)} and {name} of {tuple(given.shape)}"
                raise LrsaError(f"{there}: not the same points")
            if name in ("mask", "inputs") and given.dtype != torch.bool:
                raise LrsaError(f"Context.{name} is of {given.dtype}, not of torch.bool")
        for name in ("time", "globals"):
            if (value := getattr(self, name)) is not None and value.shape[:1] != x.shape[:1]:
                raise LrsaError(f"x has {len(x)} samples, and {name} is of shape {tuple(value.shape)}")

    def measure(self) -> Tensor | None:
        """(B, N) weight of every point in a sum over points, 0 where padded; None where all are 1."""
        if self.mask is None:
            return self.weights
        return self.mask.to(torch.get_default_dtype()) if self.weights is None else self.weights * self.mask

    def log_measure(self, dtype: torch.dtype) -> Tensor | None:
        """(B, 1, 1, N) log of the measure: the bias that turns a softmax over points into a quadrature.

        exp(s + log w) = w exp(s), so the sum over points becomes the integral of Eq. (cont_attn).
        """
        if self.mask is None:
            log = None if self.weights is None else self.weights.log()
        else:
            # Padded weights are filled before the logarithm: log 0 would make every gradient NaN.
            weights = torch.ones_like(self.mask, dtype=dtype) if self.weights is None else self.weights
            log = weights.masked_fill(~self.mask, 1).log().masked_fill(~self.mask, -torch.inf)
        return None if log is None else log[:, None, None, :].to(dtype)

    def normalised(self, total: Callable[[Tensor], Tensor] = lambda values: values) -> "Context":
        """The same with weights of mean 1 over the real points of each sample.

        Where others hold the rest of the points, `total` sums (2, B) numbers over all of them.
        """
        if self.weights is None:
            return self
        real = torch.ones_like(self.weights) if self.mask is None else self.mask.to(self.weights.dtype)
        measure, count = total(torch.stack([(self.weights * real).sum(1), real.sum(1)]))
        return replace(self, weights=self.weights / (measure / count)[:, None])

    def at(self, points: slice) -> "Context":
        """The context of some of the points."""
        per_point = {
            name: None if value is None else value[:, points]
            for name in PER_POINT
            for value in (getattr(self, name),)
        }
        return replace(self, **per_point, grid=None, edges=None)

    def of_sample(self) -> "Context":
        """Only what belongs to the whole sample, for points other than those it was made for."""
        return Context(time=self.time, globals=self.globals)

    def to(self, device: torch.device | str) -> "Context":
        """The same on another device."""
        tensors = {k: v.to(device) for k, v in vars(self).items() if isinstance(v, Tensor)}
        return replace(self, **tensors)


@dataclass(frozen=True)
class Edges:
    """Which edges a model wants: of the mesh where there is one, else to the nearest points."""

    radius: float | None = None
    """In the units of the coordinates: to the points within it, instead of those of the mesh."""
    self_loops: bool = True


@dataclass(frozen=True)
class Needs:
    """What a model takes from `Context`, and what is prepared for it: its attribute `needs`.

    `a | b` is what a model of two parts needs.
    """

    grid: bool = False
    time: bool = False
    globals: bool = False
    """Time and globals become features of every point for a model that does not take them here."""
    edges: Edges | None = None
    eigenfunctions: int = 0
    """How many columns of `Context.basis`."""
    sensors: int = 0
    """The number of points of every case, where it is fixed; of those that give inputs, with `domains`."""
    coordinates: Coordinates | None = None
    """The normalisation without which the model has no meaning."""
    domains: bool = False
    """Which points give inputs, and eigenfunctions of either domain for itself."""
    time_axis: bool = False
    """All frames of a case at once: time is the last axis of its grid, and the last coordinate."""

    @property
    def geometry(self) -> bool:
        """Whether something is computed from the places of the points, and kept."""
        return self.edges is not None or self.eigenfunctions > 0

    def __or__(self, other: "Needs") -> "Needs":
        joined: dict[str, Any] = {"eigenfunctions": max(self.eigenfunctions, other.eigenfunctions)}
        for name in (field.name for field in fields(self) if field.name not in joined):
            mine, theirs = getattr(self, name), getattr(other, name)
            if mine and theirs and mine != theirs:
                raise LrsaError(f"parts of one model need different {name}: {mine} and {theirs}")
            joined[name] = mine or theirs
        return Needs(**joined)


def needs_of(model: object) -> Needs:
    """What a model declares, or its class whatever the options. One that declares nothing needs nothing."""
    needs = getattr(model, "needs", Needs())
    if isinstance(model, type) and isinstance(needs, property):
        return Needs()
    if not isinstance(needs, Needs):
        who = model.__name__ if isinstance(model, type) else type(model).__name__
        raise LrsaError(f"{who}.needs is {needs!r}, not `lrsa.context.Needs`, for example Needs(grid=True)")
    return needs
