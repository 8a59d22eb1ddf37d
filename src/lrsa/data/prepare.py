"""From cases to the batch that a model takes: with its eigenfunctions or edges, where it needs them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import nn

from lrsa.context import Context
from lrsa.data.batch import Batch, collate, pad
from lrsa.geometry.eigenbasis import eigenbasis
from lrsa.geometry.graphs import batch_edges, case_edges, connection
from lrsa.pointset import PointSet


@dataclass(frozen=True)
class Collator:
    """Makes batches for one model. Bases and graphs are computed once per geometry and kept on disk."""

    weights: bool = False
    eigenfunctions: int = 0
    edges: bool = False
    radius: float | None = None
    """Of the neighbourhoods that are joined, instead of the mesh."""
    self_loops: bool = True

    @staticmethod
    def of(model: nn.Module, weights: bool) -> "Collator":
        """What `model` declares: `requires`, which edges, and the eigenfunctions that its layers use."""
        wanted = max(int(getattr(module, "eigenfunctions", 0)) for module in model.modules())
        edges = "edges" in getattr(model, "requires", ())
        return Collator(
            weights, wanted, edges, getattr(model, "radius", None), getattr(model, "self_loops", True)
        )

    def __call__(self, cases: Sequence[PointSet]) -> Batch:
        batch = collate(cases, self.weights)
        return replace(batch, context=self.with_geometry(batch.context, cases, batch.x.shape[1]))

    def with_geometry(self, context: Context, cases: Sequence[PointSet], padded: int) -> Context:
        """The context of these cases, each of them filled up to `padded` points, with bases and edges."""
        if self.eigenfunctions:
            bases = [pad(eigenbasis(case, self.eigenfunctions), padded, 0) for case in cases]
            context = replace(context, basis=torch.from_numpy(np.stack(bases)))
        if self.edges:
            graphs = [case_edges(case, connection(case, self.radius, self.self_loops)) for case in cases]
            context = replace(context, edges=torch.from_numpy(batch_edges(graphs, padded)))
        return context
