"""Hidden matrices: what a model says of its weights to optimisers that treat those by themselves (Muon).

Hidden is what maps features to features inside a model. Where data comes in or goes out (lift, head), and
what is no map at all (norms, biases, learned queries, temperatures), is not.

By default these are the weights of the linear layers inside the repeated layers, each one matrix. A module
class says what else is so, what is not, and how a weight holds its matrices:

    matrices: ClassVar[Declared] = {"key_value.weight": stacked(2), "root": whole, "first.*": None}

Names are relative to the module and may be patterns. The first that fits decides, and an outer module before
its parts, since it knows what they are for. Spectral weights and convolutions are hidden matrices too
(`per_mode`, `whole`), but no model says so: on small grids and a CPU, what Muon gained on them per epoch did
not pay for its time (results/optimiser-weights.md).
"""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

Matrices = Callable[[Tensor], Tensor]
"""A weight -> a view of it (n, rows, columns), real or complex: the n matrices that it holds."""
Declared = Mapping[str, Matrices | None]
"""What a module class says of its weights; None: no hidden matrix."""


def whole(weight: Tensor) -> Tensor:
    """(rows, columns, ...) as one matrix: of a convolution, all taps of all inputs side by side."""
    return weight.flatten(1)[None]


def stacked(parts: int) -> Matrices:
    """Several maps of one input in one product, one below the other: (parts · rows, columns, ...)."""
    return lambda weight: weight.unflatten(0, (parts, -1)).flatten(2)


def per_mode(weight: Tensor) -> Tensor:
    """(modes ..., rows, columns, 2) of real and imaginary parts: one complex matrix for every mode."""
    return torch.view_as_complex(weight).flatten(0, -3)
