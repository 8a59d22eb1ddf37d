"""Proper orthogonal decomposition with regression: the classical surrogate of fields on one mesh.

a = ā + Ψ α        input fields of a case: coordinates and features at its points
u = ū + Φ c        its targets, in all frames
c ≈ R([g, α])      g the parameters of the case, R radial basis functions or ridge regression

Nothing is trained step by step: `fit` solves for all of it, and leaves out one case after the other to
choose how many α there are and what R is. All sums are in double precision.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Literal, get_type_hints

import torch
from torch import Tensor, nn

from lrsa.context import Context, Needs
from lrsa.errors import LrsaError
from lrsa.models.kernel_regression import Fit, design, fitted, kernel_matrix

TAIL = 1e-10
"""Share of the energy (the mean square) that modes may leave out: 1e-5 of the fields."""
BLOCK = 2**16
"""Columns that are worked on at a time, in double precision."""
SAME = 1e-3
"""What a point of a mesh that never moved may be away from its place, of half the extent of the domain."""

Regression = Literal["auto", "rbf", "ridge"]


class Found(nn.Module):
    """Whose buffers are found in the data: a file says how large they are."""

    def _load_from_state_dict(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, state_dict: Mapping[str, Tensor], prefix: str, *others: Any
    ) -> None:
        for name in list(self._buffers):
            if f"{prefix}{name}" in state_dict:
                self._buffers[name] = torch.empty_like(state_dict[f"{prefix}{name}"])
        super()._load_from_state_dict(state_dict, prefix, *others)  # pyright: ignore[reportArgumentType]


class FittedModel(Found, ABC):
    """A model that is fitted to all cases at once, not step by step."""

    @abstractmethod
    def fit(
        self, x: Tensor, f: Tensor | None, parameters: Tensor | None, u: Tensor, times: Tensor | None
    ) -> None:
        """x (S, N, p), f (S, N, c), parameters (S, g), u (S, N, o) or (S, T, N, o), times (T,)."""

    @abstractmethod
    def check(self, x: Tensor) -> None:
        """Refuse points (B, N, p) that the fit knows nothing of."""

    @property
    @abstractmethod
    def about(self) -> str:
        """What was fitted, in a few words."""

    @property
    @abstractmethod
    def error(self) -> float:
        """Of the normalised fields, with each case left out in turn."""


class PodRegression(Found):
    """From the parameters (S, g) and input fields (S, K) of cases to their fields (S, M)."""

    g_shift: Tensor
    g_scale: Tensor
    a_mean: Tensor
    a_modes: Tensor
    a_scale: Tensor
    u_mean: Tensor
    u_modes: Tensor
    centres: Tensor
    weights: Tensor
    kernel: Tensor
    error: Tensor
    """With each case left out in turn, relative to the fields."""

    def __init__(self, most: int = 128, regression: Regression = "auto") -> None:
        super().__init__()
        self.most, self.regression = most, regression
        for name in get_type_hints(PodRegression):
            if name not in get_type_hints(nn.Module):
                self.register_buffer(name, torch.zeros(0, dtype=torch.float64))

    def fit(self, parameters: Tensor, inputs: Tensor, targets: Tensor) -> None:
        """Solve for everything."""
        g = parameters.double()
        self.g_shift = g.mean(0)
        deviation = (g - self.g_shift).square().mean(0).sqrt()
        varies = deviation > 1e-12 * g.abs().amax(0)
        self.g_scale = torch.where(varies, 1 / deviation.clamp(min=torch.finfo(g.dtype).tiny), 0.0)
        self.a_mean, modes, alpha = decomposition(inputs, self.most)
        self.u_mean, self.u_modes, c = decomposition(targets, self.most)
        # One scale for all α: that some vary less than others is what the modes are about.
        self.a_scale = 1 / alpha[:, 0].square().mean().sqrt() if alpha.shape[1] else g.new_ones(())
        # Errors are told relative to the fields, as far as the modes that are there can.
        norm = (c.square().sum() / c.shape[0] + self.u_mean.square().sum()).sqrt()
        best = fitted((g - self.g_shift) * self.g_scale, alpha * self.a_scale, c, self.regression)
        self.a_modes = modes[: best.inputs].contiguous()
        self.centres, self.weights, self.kernel = best.centres, best.weights, torch.tensor(best.kernel)
        self.error = best.error / norm if norm > 0 else best.error.new_zeros(())

    def forward(self, parameters: Tensor, inputs: Tensor) -> Tensor:
        """parameters (B, g), inputs (B, K) -> (B, M) in double precision."""
        g = (parameters.double() - self.g_shift) * self.g_scale
        alpha = (inputs.double() - self.a_mean) @ self.a_modes.double().T * self.a_scale
        d = torch.cat([g, alpha], dim=1)
        near = kernel_matrix(d, self.centres, int(self.kernel)) if len(self.centres) else d[:, :0]
        c = torch.cat([near, design(d)], dim=1) @ self.weights
        return self.u_mean + c @ self.u_modes.double()

    @property
    def about(self) -> str:
        """`cubic radial basis functions of 2 parameters, 37 modes`."""
        known = [f"{int((self.g_scale > 0).sum())} parameters"] if (self.g_scale > 0).any() else []
        known += [f"{len(self.a_modes)} modes of the inputs"] if len(self.a_modes) else []
        words = f"{Fit.KERNELS[int(self.kernel)]} of {' and '.join(known)}" if known else "the mean field"
        return f"{words}, {len(self.u_modes)} modes of the fields"


class PodRbf(FittedModel):
    """POD with regression as a model: cases of one mesh, whose points may move from case to case.

    Args:
        coord_dim: Coordinates p per point.
        in_features: Input features c per point.
        out_features: Output fields o per point.
        time: Whether cases have frames; between the times of the training it is linear.
        modes: The most modes of inputs and of targets.
        regression: rbf (radial basis functions), ridge (regularised linear), or auto: which is better when
            each case is left out in turn.
    """

    def __init__(
        self,
        coord_dim: int,
        in_features: int,
        out_features: int,
        time: bool = False,
        modes: int = 128,
        regression: Regression = "auto",
    ) -> None:
        super().__init__()
        self.out_features = out_features
        self.needs = Needs(globals=True, time=time)
        self.pod = PodRegression(modes, regression)
        self.register_buffer("places", torch.zeros(0, coord_dim))
        self.register_buffer("times", torch.zeros(0))

    def fit(
        self, x: Tensor, f: Tensor | None, parameters: Tensor | None, u: Tensor, times: Tensor | None
    ) -> None:
        self.places = x[0].clone() if (x - x[:1]).abs().max() < SAME else x.new_zeros(0, x.shape[-1])
        self.times = x.new_zeros(0) if times is None else times.clone()
        self.pod.fit(_parameters(parameters, x), _inputs(x, f), u.flatten(1))
        self.pod.u_modes = self.pod.u_modes.float()
        self.pod.a_modes = self.pod.a_modes.float()

    def forward(self, x: Tensor, f: Tensor | None = None, context: Context | None = None) -> Tensor:
        """x (B, N, p), f (B, N, c) -> u (B, N, o)."""
        context = context or Context()
        u = self.pod(_parameters(context.globals, x), _inputs(x, f)).to(x.dtype)
        shape = (*x.shape[:2], self.out_features)
        if not self.needs.time:
            return u.view(shape)
        time = context.need("time", "pod-rbf")
        frames = u.view(len(x), -1, *shape[1:])
        if len(self.times) == 1:
            return frames[:, 0]
        right = torch.searchsorted(self.times, time.contiguous()).clamp(1, len(self.times) - 1)
        before, after = self.times[right - 1], self.times[right]
        share = ((time - before) / (after - before)).view(-1, 1, 1)
        each = torch.arange(len(x), device=x.device)
        return (1 - share) * frames[each, right - 1] + share * frames[each, right]

    def check(self, x: Tensor) -> None:
        frames, fields = max(len(self.times), 1), len(self.pod.u_mean)
        points = fields // (frames * self.out_features)
        if x.shape[1] != points:
            raise LrsaError(
                f"pod-rbf holds for its mesh of {points} points alone, but {x.shape[1]} are given"
            )
        if len(self.places) and (x - self.places).abs().max() > 10 * SAME:
            raise LrsaError(
                "pod-rbf was fitted to cases of the same points, and these are others, or in another order."
                " Predict at those, or train another model"
            )

    @property
    def about(self) -> str:
        return self.pod.about

    @property
    def error(self) -> float:
        return float(self.pod.error)


def decomposition(rows: Tensor, most: int) -> tuple[Tensor, Tensor, Tensor]:
    """rows (S, M) -> mean (M,), orthonormal modes (m, M), coefficients (S, m), by the method of snapshots."""
    mean = torch.cat([block.double().mean(0) for block in rows.split(BLOCK, dim=1)])
    parts = [(block, mean[i * BLOCK :][: block.shape[1]]) for i, block in enumerate(rows.split(BLOCK, dim=1))]
    gram = torch.zeros(len(rows), len(rows), dtype=torch.float64)
    for block, middle in parts:
        centred = block.double() - middle
        gram += centred @ centred.T
    energy, vectors = torch.linalg.eigh(gram)
    energy, vectors = energy.flip(0).clamp(min=0), vectors.flip(1)
    # Energies below the rounding of single precision, in which the fields are, are noise.
    floor = torch.finfo(torch.float32).eps ** 2 * (energy.sum() + len(rows) * mean.square().sum())
    left = energy.sum() - energy.cumsum(0) + energy
    count = min(most, int(((left > TAIL * energy.sum()) & (energy > floor)).sum()))
    root = energy[:count].sqrt()
    modes = [(vectors[:, :count] / root).T @ (block.double() - middle) for block, middle in parts]
    return mean, torch.cat(modes, dim=1), vectors[:, :count] * root


def _inputs(x: Tensor, f: Tensor | None) -> Tensor:
    return (x if f is None else torch.cat([x, f], dim=-1)).flatten(1)


def _parameters(parameters: Tensor | None, x: Tensor) -> Tensor:
    return x.new_zeros(len(x), 0) if parameters is None else parameters
