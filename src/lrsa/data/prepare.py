"""From cases to the batch that a model takes: with its eigenfunctions or edges, where it needs them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import nn

from lrsa.data.batch import Batch, collate, pad
from lrsa.data.eigenbasis import eigenbasis
from lrsa.data.graph import batch_edges, case_edges, default_connection
from lrsa.data.pointset import PointSet


@dataclass(frozen=True)
class Collator:
    """Makes batches for one model. Bases and graphs are computed once per geometry and kept on disk."""

    weights: bool = False
    eigenfunctions: int = 0
    edges: bool = False

    @staticmethod
    def of(model: nn.Module, weights: bool) -> "Collator":
        """What `model` declares: `requires`, and the eigenfunctions that its layers use."""
        wanted = max(int(getattr(module, "eigenfunctions", 0)) for module in model.modules())
        return Collator(weights, wanted, "edges" in getattr(model, "requires", ()))

    def __call__(self, cases: Sequence[PointSet]) -> Batch:
        batch = collate(cases, self.weights)
        context, padded = batch.context, batch.x.shape[1]
        if self.eigenfunctions:
            bases = [pad(eigenbasis(case, self.eigenfunctions), padded, 0) for case in cases]
            context = replace(context, basis=torch.from_numpy(np.stack(bases)))
        if self.edges:
            graphs = [case_edges(case, default_connection(case)) for case in cases]
            context = replace(context, edges=torch.from_numpy(batch_edges(graphs, padded)))
        return replace(batch, context=context)
