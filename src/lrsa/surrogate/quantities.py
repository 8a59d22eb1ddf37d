"""Named quantities on the cases of a run: the language of `objectives.quantities`, and what meshes say."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TypeVar

import numpy as np

from lrsa.mesh.derive import body_facets, point_measures
from lrsa.objectives.named import OF_QUANTITIES, Metric, Quantity, check_metrics
from lrsa.objectives.quantities import Definition, Facets, Geometry, definitions
from lrsa.objectives.words import labels
from lrsa.pointset import PointSet
from lrsa.problems.catalogue import quantities_of

Made = TypeVar("Made")


def user_quantities(text: str, case: PointSet | None = None) -> dict[str, Quantity]:
    """By name, what can be asked of cases like this one; refused where it cannot."""
    geometry = Geometry(_last(_facets), _last(_measures))
    named = {each.name: each for each in definitions(text)}
    if case is not None:
        for each in named.values():
            each.check(_labelled(case, 0 if case.u is None else case.u.shape[-1]), geometry)
    return {name: partial(_of, each, geometry) for name, each in named.items()}


def keyed_quantities(text: str) -> dict[str, Quantity]:
    """The same by definition: a name may stand for another quantity tomorrow."""
    made = user_quantities(text)
    return {str(each): made[each.name] for each in definitions(text)}


def problem_quantities(problem: str, metrics: str) -> dict[str, Quantity]:
    """Those of a problem that metrics name, such as spearman:drag; their name is their definition."""
    words = [Metric(word, {}) for word in check_metrics(metrics)]
    named = {metric.quantity.name for metric in words if metric.word.name in OF_QUANTITIES}
    return {name: quantity for name, quantity in quantities_of(problem).items() if name in named}


def all_quantities(problem: str, text: str, case: PointSet | None = None) -> Mapping[str, Quantity]:
    """Those of the problem of that name, where it is one, and those that the user names."""
    return {**quantities_of(problem), **user_quantities(text, case)}


def _of(definition: Definition, geometry: Geometry, case: PointSet, u: np.ndarray) -> float:
    return definition.of(_labelled(case, u.shape[-1]), u, geometry)


def _labelled(case: PointSet, channels: int) -> PointSet:
    if case.names.targets or not channels:
        return case
    return replace(case, names=replace(case.names, targets=tuple(labels((), channels))))


def _facets(case: PointSet) -> Facets | None:
    found = body_facets(case)
    return None if found is None else Facets(*found)


def _measures(case: PointSet) -> np.ndarray | None:
    if case.weights is not None:
        return case.weights.astype(float)
    if case.cells is None and (case.grid is None or len(case.grid) not in (2, 3)):
        return None
    return point_measures(case).astype(float)


def _last(function: Callable[[PointSet], Made]) -> Callable[[PointSet], Made]:
    """Keeps the answer for the last case: truth, prediction and every member ask about the same mesh."""
    kept: list[tuple[np.ndarray, Made]] = []

    def answer(case: PointSet) -> Made:
        if not kept or kept[0][0] is not case.x:
            kept[:] = [(case.x, function(case))]
        return kept[0][1]

    return answer
