"""What finite elements share: sums of their matrices against dense ones, slopes against known functions."""

import numpy as np
import pytest

from lrsa.errors import LrsaError
from lrsa.numerics.elements import GAUSS, WEIGHTS, Assembly, in_place, pairs
from lrsa.numerics.taylor_hood import TaylorHood, reference


def grid(count: int, width: int) -> np.ndarray:
    """(E, width) unknowns of elements in a row, each sharing its last one with the next."""
    start = (width - 1) * np.arange(count)[:, None]
    return start + np.arange(width)


@pytest.mark.parametrize("given", [[], [0, 5, 6], list(range(12))], ids=["none", "some", "a whole element"])
@pytest.mark.parametrize("width", [4, 3])
def test_the_sparse_matrix_is_the_sum_of_the_elements(given: list[int], width: int) -> None:
    """Of all their unknowns, or of the first only; rows and columns of what is given are left out."""
    dofs, rng = grid(5, 4), np.random.default_rng(0)
    known = np.isin(np.arange(dofs.max() + 1), given)
    sums = Assembly(dofs, known, pivot=0.0)
    parts, dense = rng.standard_normal((5, width, width)), np.zeros((len(known),) * 2)
    for element, part in zip(dofs[:, :width], parts, strict=True):
        dense[np.ix_(element, element)] += part
    assert sorted(sums.free) == sorted(np.flatnonzero(~known))
    made = sums.matrix(sums.assemble(parts)).toarray()
    np.testing.assert_allclose(made, dense[np.ix_(sums.free, sums.free)], rtol=0, atol=1e-14)


def test_vectors_are_summed_over_the_elements() -> None:
    dofs = grid(3, 4)
    total = Assembly(dofs, np.zeros(10, bool), pivot=0.0).add(np.ones((3, 4)))
    np.testing.assert_array_equal(total, [1, 1, 1, 2, 1, 1, 2, 1, 1, 1])


def test_the_order_of_elimination_fills_little() -> None:
    """Nested: on a grid of m × m elements the factors of the natural order grow as m³."""
    held = np.zeros((33, 33), bool)
    held[0], held[:, 0], held[:, -1] = True, True, True
    space, rng = TaylorHood(held), np.random.default_rng(0)
    matrix = space.matrix(space.assemble(np.eye(22) * 30 + rng.standard_normal((256, 22, 22))))
    back = np.argsort(space.free)
    natural = matrix[back][:, back].tocsc()
    ours, theirs = (space.factor(m) for m in (matrix, natural))
    assert ours.L.nnz + ours.U.nnz < 0.7 * (theirs.L.nnz + theirs.U.nnz)


def test_slopes_and_areas_of_a_curved_element_are_exact() -> None:
    """x = ξ + ¼ η², y = η: a nine-node element holds it, its area is 4, and so it does x and y."""
    _, local, _ = reference()
    xi, eta = (v.ravel() for v in np.meshgrid([-1.0, 0, 1], [-1.0, 0, 1], indexing="ij"))
    nodes = np.stack([xi + eta**2 / 4, eta], axis=-1)[None]
    measure, slopes = in_place(np.einsum("kng,eni->ikeg", local, nodes), local)
    assert measure.sum() == pytest.approx(4, rel=1e-14)
    gradient = np.einsum("eni,enkg->eikg", nodes, slopes.reshape(1, 9, 2, 9))
    np.testing.assert_allclose(gradient, np.eye(2)[None, :, :, None] * np.ones(9), atol=1e-14)
    with pytest.raises(LrsaError, match="inside out"):
        in_place(np.einsum("kng,eni->ikeg", local, nodes * [-1, 1]), local)


def test_three_gauss_points_integrate_polynomials_of_degree_five() -> None:
    for degree in range(6):
        exact = 0 if degree % 2 else 2 / (degree + 1)
        assert WEIGHTS @ GAUSS**degree == pytest.approx(exact, abs=1e-15)


def test_components_of_a_node_are_neighbours() -> None:
    np.testing.assert_array_equal(pairs(np.array([[3, 0]])), [[6, 7, 0, 1]])
