"""From cases to the batch that a model takes: with its eigenfunctions or edges, where it needs them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import nn

from lrsa.context import Context, Needs, needs_of
from lrsa.data.batch import Batch, collate, pad
from lrsa.data.normalise import Normaliser
from lrsa.geometry.eigenbasis import eigenbasis
from lrsa.geometry.graphs import batch_edges, case_edges, connection
from lrsa.pointset import PointSet


@dataclass(frozen=True)
class Collator:
    """Makes batches for one model. Bases and graphs are computed once per geometry and kept on disk."""

    weights: bool
    needs: Needs
    normaliser: Normaliser | None = None
    """Knows what stands for an input that is not known."""

    @staticmethod
    def of(model: nn.Module, weights: bool, normaliser: Normaliser | None = None) -> "Collator":
        """For what `model` declares."""
        return Collator(weights, needs_of(model), normaliser)

    def __call__(self, cases: Sequence[PointSet]) -> Batch:
        cases = [self.normaliser.filled(case) for case in cases] if self.normaliser else cases
        batch = collate(cases, self.weights)
        return replace(batch, context=self.with_geometry(batch.context, cases, batch.x.shape[1]))

    def with_geometry(self, context: Context, cases: Sequence[PointSet], padded: int) -> Context:
        """The context of these cases, each of them filled up to `padded` points, with bases and edges."""
        if self.needs.eigenfunctions:
            bases = [pad(eigenbasis(case, self.needs.eigenfunctions), padded, 0) for case in cases]
            context = replace(context, basis=torch.from_numpy(np.stack(bases)))
        if edges := self.needs.edges:
            graphs = [case_edges(case, connection(case, edges.radius, edges.self_loops)) for case in cases]
            context = replace(context, edges=torch.from_numpy(batch_edges(graphs, padded)))
        return context
