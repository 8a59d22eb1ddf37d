"""DeepONet: the dot product of a branch of the input function and a trunk of the query (Lu et al. 2021)."""

from dataclasses import replace
from itertools import pairwise
from typing import ClassVar

import torch
from torch import Tensor, nn

from lrsa.context import Context, Needs
from lrsa.errors import LrsaError
from lrsa.models.baselines.graph import mlp, point_features
from lrsa.models.hidden import Declared, whole


class DeepONet(nn.Module):
    """u_o(x) = ⟨branch_o(case), trunk(x)⟩ + bias_o.

    The trunk is an MLP of the coordinates with ReLU after every layer. The branch is one of two:

    sensors > 0   an MLP of the values at all points in their order: the features, or the coordinates where
                  there are none. Every case must have that many points. Parity with the elasticity script of
                  github.com/neuraloperator/Geo-FNO.
    sensors = 0   a set encoder for varying point sets, ρ(mean_n w_n φ([x_n, f_n])): φ the branch MLP with
                  ReLU after every layer, ρ a hidden layer and the output; w the quadrature weights, equal if
                  there are none. Our reading; it does not depend on the order of the points.

    Where some points give inputs and others ask for fields, the branch reads the former only (`domains`).

    Lu, Jin, Pang, Zhang, Karniadakis, Nature Machine Intelligence 2021. With several outputs the branch has a
    part for each and the trunk is shared.

    Args:
        coord_dim: Coordinates p per point.
        in_features: Input features c per point.
        out_features: Output fields o per point.
        width: Channels of branch and trunk.
        branch_depth: Linear layers of the branch.
        trunk_depth: Linear layers of the trunk.
        sensors: Points of every case, for the branch with fixed sensors; 0 for the set encoder.
        domains: The branch reads only the points that give inputs; `sensors` are then their number.
    """

    matrices: ClassVar[Declared] = {
        "*.0.weight": None,  # the layers that see the data
        "points.*.weight": whole,
        "branch.*.weight": whole,
        "trunk.*.weight": whole,
    }

    def __init__(
        self,
        coord_dim: int,
        in_features: int,
        out_features: int,
        width: int = 256,
        branch_depth: int = 5,
        trunk_depth: int = 5,
        sensors: int = 0,
        domains: bool = False,
    ) -> None:
        super().__init__()
        if branch_depth < 1 or trunk_depth < 1 or sensors < 0:
            raise LrsaError(
                f"branch_depth {branch_depth} and trunk_depth {trunk_depth} must be at least 1,"
                f" sensors {sensors} at least 0"
            )
        self.coord_dim, self.in_features, self.out_features = coord_dim, in_features, out_features
        self.width, self.needs = width, Needs(sensors=sensors, domains=domains)
        hidden = [width] * (branch_depth - 1)
        if sensors:
            self.branch = mlp(sensors * (in_features or coord_dim), *hidden, out_features * width)
        else:
            self.points = _relu_layers(coord_dim + in_features, *hidden, width)
            self.branch = mlp(width, width, out_features * width)
        self.trunk = _relu_layers(coord_dim, *[width] * trunk_depth)
        self.bias = nn.Parameter(torch.zeros(out_features))

    def forward(self, x: Tensor, f: Tensor | None = None, context: Context | None = None) -> Tensor:
        """x (B, N, p), f (B, N, c) or None -> u (B, N, o)."""
        context = (context or Context()).normalised()
        if self.needs.domains:
            inputs = context.need("inputs", "DeepONet of two domains")
            context = replace(context, mask=inputs if context.mask is None else inputs & context.mask)
        features = point_features(x, f, self.coord_dim, self.in_features)
        code = self._sensed(x, f, context) if self.needs.sensors else self._pooled(features, context)
        coefficients = self.branch(code).unflatten(1, (self.out_features, self.width))  # (B, o, w)
        return self.trunk(x) @ coefficients.transpose(1, 2) + self.bias

    def _sensed(self, x: Tensor, f: Tensor | None, context: Context) -> Tensor:
        """(B, sensors · values): what all points that count say, in their order."""
        values, sensors, said = x if f is None else f, self.needs.sensors, ""
        if self.needs.domains:
            assert context.mask is not None  # the inputs
            if (counts := set(context.mask.sum(1).tolist())) != {sensors}:
                said = f"{min(counts)} points that give inputs"
            else:
                values = values[context.mask].view(x.shape[0], -1)
        elif context.mask is not None and not bool(context.mask.all()):
            said = "cases of different sizes"
        elif x.shape[1] != sensors:
            said = f"{x.shape[1]} points"
        if said:
            raise LrsaError(f"DeepONet has {sensors} fixed sensors, and this data has {said}. Use sensors=0")
        return values.flatten(1)

    def _pooled(self, features: Tensor, context: Context) -> Tensor:
        """(B, w): the mean over the real points."""
        h = self.points(features)
        measure = context.measure()
        if measure is None:
            return h.mean(1)
        weight = measure.to(h.dtype)
        return torch.einsum("bn,bnw->bw", weight / weight.sum(1, keepdim=True), h)


def _relu_layers(*widths: int) -> nn.Sequential:
    return nn.Sequential(*(part for a, b in pairwise(widths) for part in (nn.Linear(a, b), nn.ReLU())))


PRESETS: dict[str, dict[str, object]] = {
    "elasticity": {"coord_dim": 2, "in_features": 0, "out_features": 1, "sensors": 972},
    "heat-transfer": {"coord_dim": 3, "in_features": 1, "out_features": 1, "sensors": 186, "domains": True},
}
"""The elasticity script of Geo-FNO, and its sizes for the inputs and outputs of Heat Transfer."""
