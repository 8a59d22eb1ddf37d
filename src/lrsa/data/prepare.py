"""From cases to the batch that a model takes: with its eigenfunctions or edges, where it needs them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import nn

from lrsa.context import Context, Needs, needs_of
from lrsa.data.batch import Batch, collate, pad
from lrsa.data.normalise import Normaliser
from lrsa.errors import LrsaError
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
        batch = collate(
            [self.normaliser.filled(c) for c in cases] if self.normaliser else cases, self.weights
        )
        return replace(batch, context=self.with_geometry(batch.context, cases, batch.x.shape[1]))

    def with_geometry(self, context: Context, cases: Sequence[PointSet], padded: int) -> Context:
        """The context of these cases, each of them filled up to `padded` points, with bases and edges."""
        if self.needs.domains:
            inputs = np.stack([pad(inputs_of(case), padded, 0) for case in cases])
            context = replace(context, inputs=torch.from_numpy(inputs))
        if self.needs.eigenfunctions:
            make = domain_bases if self.needs.domains else eigenbasis
            bases = [pad(make(case, self.needs.eigenfunctions), padded, 0) for case in cases]
            context = replace(context, basis=torch.from_numpy(np.stack(bases)))
        if edges := self.needs.edges:
            graphs = [case_edges(case, connection(case, edges.radius, edges.self_loops)) for case in cases]
            context = replace(context, edges=torch.from_numpy(batch_edges(graphs, padded)))
        return context


def inputs_of(case: PointSet) -> np.ndarray:
    """(N,) True at the points that give inputs, that is, where all of them are known."""
    given = np.ones(len(case), bool) if case.f_mask is None else np.all(case.f_mask, axis=1)
    if given.all() or not given.any():
        raise LrsaError(
            "a model of two domains needs cases in which some points give inputs and others only ask for"
            " fields (f_mask), and these are no such. Use --model.domain-change 0 (DeepONet: --model.domains"
            " False)"
        )
    return given


def domain_bases(case: PointSet, modes: int) -> np.ndarray:
    """(N, modes) at the points that give inputs the eigenfunctions of their domain, at the others of theirs.

    A domain has the cells of which all points are its own; without any it is a cloud.
    """
    given, basis = inputs_of(case), np.empty((len(case), modes), np.float32)
    for domain in (given, ~given):
        cells, types, numbers = case.cells, case.cell_types, np.cumsum(domain) - 1
        if cells is not None and types is not None:
            kept = (domain[cells] | (cells < 0)).all(axis=1)
            cells, types = np.where(cells < 0, -1, numbers[cells])[kept], types[kept]
        meshed = cells is not None and len(cells) > 0
        part = PointSet(case.x[domain], cells=cells if meshed else None, cell_types=types if meshed else None)
        basis[domain] = eigenbasis(part, modes)
    return basis
