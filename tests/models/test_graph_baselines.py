"""Graph networks, Geo-FNO and DeepONet: symmetries, batches, refusals, counts, and learning in space."""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from lrsa.context import Context, Needs
from lrsa.errors import LrsaError
from lrsa.geometry.graphs import batch_edges
from lrsa.geometry.neighbours import near_edges
from lrsa.models.baselines import deeponet, geo_fno, gno, graph_sage, graph_unet, mesh_graph_net
from lrsa.models.baselines.deeponet import DeepONet
from lrsa.models.baselines.geo_fno import GeoFNO
from lrsa.models.baselines.gno import GNO
from lrsa.models.baselines.graph import BatchLayout, Graph
from lrsa.models.baselines.graph_sage import GraphSAGE
from lrsa.models.baselines.graph_unet import GraphUNet
from lrsa.models.baselines.mesh_graph_net import MeshGraphNet

Make = Callable[[int, int, int], nn.Module]
M = TypeVar("M", bound=nn.Module)

GRAPH_MODELS: dict[str, Make] = {
    "graphsage": lambda p, c, o: GraphSAGE(p, c, o, width=24),
    "graph-unet": lambda p, c, o: GraphUNet(p, c, o, width=12, radii=(0.5, 1.0)),
    "mesh-graph-net": lambda p, c, o: MeshGraphNet(p, c, o, width=16, depth=2),
    "gno": lambda p, c, o: GNO(p, c, o, width=12, kernel_width=24, depth=2),
}
ALL_MODELS: dict[str, Make] = GRAPH_MODELS | {
    "geo-fno": lambda p, c, o: GeoFNO(p, c, o, width=12, modes=(3,) * p, grid=(8,) * p),
    "deeponet": lambda p, c, o: DeepONet(p, c, o, width=64, branch_depth=3, trunk_depth=3),
}
graph_models = pytest.mark.parametrize("make", GRAPH_MODELS.values(), ids=GRAPH_MODELS)
all_models = pytest.mark.parametrize("make", ALL_MODELS.values(), ids=ALL_MODELS)


def cloud(points: int, seed: int, p: int = 2) -> tuple[Tensor, Tensor, np.ndarray]:
    """Coordinates (n, p), features (n, 1) and directed edges (2, E), some of them left out."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (points, p))
    edges = near_edges(x, 6, 0.5)
    edges = edges[:, rng.random(edges.shape[1]) < 0.8]
    return torch.from_numpy(x), torch.from_numpy(rng.standard_normal((points, 1))), edges


def build(make: Make, p: int = 2, c: int = 1, o: int = 2) -> nn.Module:
    torch.manual_seed(0)
    return make(p, c, o).double()


def close(a: Tensor, b: Tensor) -> bool:
    return bool(torch.allclose(a, b, rtol=1e-9, atol=1e-10 * float(b.detach().abs().max())))


@all_models
def test_points_in_another_order_give_the_same_fields(make: Make) -> None:
    x, f, edges = cloud(60, 0)
    order = torch.randperm(60, generator=torch.Generator().manual_seed(1))
    model, relabel = build(make), torch.argsort(order)
    u = model(x[None], f[None], Context(edges=torch.from_numpy(edges)))
    moved = model(x[order][None], f[order][None], Context(edges=relabel[torch.from_numpy(edges)]))
    assert close(moved, u[:, order])


@graph_models
def test_edges_in_another_order_give_the_same_fields(make: Make) -> None:
    x, f, edges = cloud(60, 0)
    shuffled = np.random.default_rng(0).permutation(edges.T).T.copy()
    model = build(make)
    u = model(x[None], f[None], Context(edges=torch.from_numpy(edges)))
    assert close(model(x[None], f[None], Context(edges=torch.from_numpy(shuffled))), u)


@graph_models
def test_weights_do_not_enter_a_sum_over_neighbours(make: Make) -> None:
    x, f, edges = cloud(60, 0)
    model, context = build(make), Context(edges=torch.from_numpy(edges))
    uneven = replace(context, weights=torch.linspace(0.1, 2, 60)[None].double())
    assert torch.equal(model(x[None], f[None], uneven), model(x[None], f[None], context))


@graph_models
def test_the_direction_of_the_edges_matters(make: Make) -> None:
    x, f, edges = cloud(60, 0)
    model = build(make)
    u = model(x[None], f[None], Context(edges=torch.from_numpy(edges)))
    reverse = model(x[None], f[None], Context(edges=torch.from_numpy(edges[::-1].copy())))
    assert not torch.allclose(u, reverse, rtol=1e-3)


@all_models
@pytest.mark.parametrize("counts", [(40, 40), (40, 25), (1, 30, 40)])
def test_a_batch_equals_its_cases_one_by_one(make: Make, counts: tuple[int, ...]) -> None:
    """Also when they are padded to the longest, with rubbish in the padding; gradients included."""
    cases = [cloud(n, seed) for seed, n in enumerate(counts)]
    model, longest = build(make), max(counts)
    alone = [model(x[None], f[None], Context(edges=torch.from_numpy(e)))[0] for x, f, e in cases]
    torch.cat(alone).square().sum().backward()
    gradients = [p.grad.clone() for p in model.parameters() if p.grad is not None]
    model.zero_grad()
    x, f = (
        torch.full((len(cases), longest, 2), 7.0).double(),
        torch.full((len(cases), longest, 1), 9.0).double(),
    )
    for b, case in enumerate(cases):
        x[b, : counts[b]], f[b, : counts[b]] = case[0], case[1]
    mask = torch.arange(longest) < torch.tensor(counts)[:, None]
    edges = torch.from_numpy(batch_edges([e for _, _, e in cases], longest))
    u = model(x, f, Context(mask=None if mask.all() else mask, edges=edges))
    for b, expected in enumerate(alone):
        assert close(u[b, : counts[b]], expected)
    u[mask].square().sum().backward()
    for parameter, expected in zip(model.parameters(), gradients, strict=True):
        assert parameter.grad is not None
        assert torch.allclose(
            parameter.grad, expected, rtol=1e-7, atol=1e-9 * float(expected.abs().max()) + 1e-12
        )


@pytest.mark.parametrize("name", ["gno", "mesh-graph-net", "geo-fno"])
def test_chunks_change_neither_fields_nor_gradients(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x, f, edges = cloud(60, 0)
    model, context, results = build(ALL_MODELS[name]), Context(edges=torch.from_numpy(edges)), []
    for chunk in (2**24, 1000):
        for module in (gno, mesh_graph_net, geo_fno):
            monkeypatch.setattr(module, "CHUNK", chunk)
        model.zero_grad()
        u = model(x[None], f[None], context)
        u.square().sum().backward()
        results.append([u, *(p.grad.clone() for p in model.parameters() if p.grad is not None)])
    assert all(close(a, b) for a, b in zip(*results, strict=True))


def test_a_graph_too_large_to_train_on_is_refused_with_the_number(monkeypatch: pytest.MonkeyPatch) -> None:
    x, f, edges = cloud(60, 0)
    model, context = build(GRAPH_MODELS["mesh-graph-net"]), Context(edges=torch.from_numpy(edges))
    kept = 4 * 3 * edges.shape[1] * 16 * 8  # two steps and the encoder, width 16, double precision
    monkeypatch.setattr("lrsa.models.baselines.graph.memory", lambda: kept)
    assert model(x[None], f[None], context).requires_grad
    monkeypatch.setattr("lrsa.models.baselines.graph.memory", lambda: kept - 1)
    with pytest.raises(LrsaError, match=rf"{edges.shape[1]} edges in training take at least .* GB"):
        model(x[None], f[None], context)
    with torch.no_grad():
        model(x[None], f[None], context)


def test_neighbour_sums_are_the_adjacency_matrix_and_their_gradients_its_transpose() -> None:
    edges = torch.from_numpy(cloud(30, 0)[2])
    edges = edges[:, (edges[1] != 3) & (edges[0] != 5)]  # a point that gets nothing, one that gives nothing
    graph, h = Graph(edges.flip(1), 30), torch.randn(30, 4, dtype=torch.float64, requires_grad=True)
    matrix = torch.zeros(30, 30, dtype=torch.float64).index_put_(
        (edges[1], edges[0]), torch.tensor(1.0).double()
    )
    assert torch.allclose(graph.sum(h), matrix @ h)
    assert torch.allclose(graph.mean(h), matrix @ h / matrix.sum(1, keepdim=True).clamp(min=1))
    assert torch.autograd.gradcheck(graph.sum, h)
    assert torch.allclose(graph.collect(h[graph.source]), matrix @ h)
    assert torch.autograd.gradcheck(lambda h: graph.collect(h[graph.source]), h)


def test_a_graph_without_edges_is_a_set_of_points() -> None:
    x, f, _ = cloud(10, 0)
    empty = Context(edges=torch.zeros(2, 0, dtype=torch.long))
    for make in GRAPH_MODELS.values():
        assert build(make)(x[None], f[None], empty).isfinite().all()


@graph_models
def test_data_without_edges_is_refused(make: Make) -> None:
    x, f, _ = cloud(10, 0)
    with pytest.raises(LrsaError, match=r"needs Context\.edges"):
        build(make)(x[None], f[None])


@all_models
def test_other_channels_than_the_model_was_made_for_are_refused(make: Make) -> None:
    x, f, edges = cloud(10, 0)
    with pytest.raises(LrsaError, match="2 coordinates and 1 features"):
        build(make)(x[None], torch.cat([f, f], dim=1)[None], Context(edges=torch.from_numpy(edges)))


def test_edges_of_another_batch_are_refused() -> None:
    x = torch.zeros(2, 5, 2)
    for edges, words in (
        (torch.zeros(7, 2, dtype=torch.long), r"not of shape \(7, 2\)"),
        (torch.zeros(3, 7, dtype=torch.long), r"not of shape \(3, 7\)"),
        (torch.tensor([[4], [5]]), "joins two cases"),
    ):
        with pytest.raises(LrsaError, match=words):
            GraphSAGE(2, 0, 1)(x, None, Context(edges=edges))
    with pytest.raises(LrsaError, match="leaves the 10 points"):
        BatchLayout.of(x, Context()).graph(Context(edges=torch.tensor([[0], [10]])), "it")
    context = Context(mask=torch.arange(5).expand(2, 5) < 4, edges=torch.tensor([[0], [4]]))
    with pytest.raises(LrsaError, match="padded point"):
        BatchLayout.of(x, context).graph(context, "it")


def test_geo_fno_needs_its_shape_code_and_a_mode_number_for_every_axis() -> None:
    x = torch.rand(2, 20, 2)
    model = GeoFNO(2, 0, 1, width=4, modes=(2, 2), grid=(6, 6), code_dim=3)
    assert model.needs == Needs(globals=True, coordinates="box")
    with pytest.raises(LrsaError, match="shape code"):
        model(x)
    with pytest.raises(LrsaError, match="3 numbers, not 5"):
        model(x, None, Context(globals=torch.rand(2, 5)))
    assert model(x, None, Context(globals=torch.rand(2, 3))).shape == (2, 20, 1)
    with pytest.raises(LrsaError, match="3 coordinates"):
        GeoFNO(3, 0, 1)
    with pytest.raises(LrsaError, match="two points for each"):
        GeoFNO(2, 0, 1, modes=(12, 12), grid=(20, 40))


def test_a_point_of_deeponet_split_in_two_halves_changes_nothing() -> None:
    """Quadrature weights: the mean over points stands for an integral."""
    x, f, _ = cloud(30, 0)
    weights = torch.rand(1, 30, dtype=torch.float64) + 0.5
    halves = torch.cat([weights, weights[:, :1] / 2], dim=1)
    halves[:, 0] /= 2
    model = build(ALL_MODELS["deeponet"])
    u = model(x[None], f[None], Context(weights=weights))
    split = model(torch.cat([x, x[:1]])[None], torch.cat([f, f[:1]])[None], Context(weights=halves))
    assert close(split[:, :30], u)


def test_equal_weights_of_any_scale_leave_geo_fno_as_published() -> None:
    x, f, _ = cloud(30, 0)
    model = build(ALL_MODELS["geo-fno"])
    u = model(x[None], f[None])
    assert close(model(x[None], f[None], Context(weights=torch.full((1, 30), 3.0).double())), u)
    uneven = Context(weights=torch.linspace(1, 2, 30)[None].double())
    assert not torch.allclose(model(x[None], f[None], uneven), u, rtol=1e-3)


def test_deeponet_with_fixed_sensors_refuses_other_counts() -> None:
    model = DeepONet(2, 1, 3, width=8, sensors=20)
    assert model(torch.rand(2, 20, 2), torch.rand(2, 20, 1)).shape == (2, 20, 3)
    with pytest.raises(LrsaError, match="20 fixed sensors, and this data has 21 points"):
        model(torch.rand(2, 21, 2), torch.rand(2, 21, 1))
    mask = torch.arange(20).expand(2, 20) < 19
    with pytest.raises(LrsaError, match="different sizes"):
        model(torch.rand(2, 20, 2), torch.rand(2, 20, 1), Context(mask=mask))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: GraphUNet(2, 1, 1, pool_ratio=0.0), "pool_ratio 0.0"),
        (lambda: GraphUNet(2, 1, 1, radii=()), "radii"),
        (lambda: GeoFNO(2, 1, 1, modes=(0, 12)), "modes"),
        (lambda: GeoFNO(2, 1, 1, box=(1.0, 1.0)), "box"),
        (lambda: DeepONet(2, 1, 1, trunk_depth=0), "trunk_depth 0"),
        (lambda: DeepONet(2, 1, 1, sensors=-5), "sensors -5"),
    ],
)
def test_options_that_make_no_model_are_refused(make: Callable[[], nn.Module], words: str) -> None:
    with pytest.raises(LrsaError, match=words):
        make()


@all_models
def test_it_overfits_two_cases_in_space(make: Make) -> None:
    torch.manual_seed(0)
    assert overfit(make(3, 1, 1), 3) < 0.05


def test_deeponet_with_fixed_sensors_overfits_two_cases() -> None:
    torch.manual_seed(0)
    assert overfit(DeepONet(2, 1, 1, width=64, branch_depth=3, trunk_depth=3, sensors=48), 2) < 0.05


def overfit(model: nn.Module, p: int) -> float:
    """Relative L2 after some hundred steps on two cases, which differ in the feature of every second point.

    The others must hear of it: a model in which the points do not meet cannot fit both.
    """
    x = cloud(48, 0, p)[0].float().expand(2, -1, -1)
    edges = batch_edges([near_edges(case.numpy(), 6) for case in x], 48)
    context = Context(edges=torch.from_numpy(edges))
    case = torch.tensor([0.5, -0.5])[:, None, None]
    f = case * (torch.arange(48) % 2)[:, None]
    u = torch.sin(2 * x[..., :1]) + case * x[..., 1:2]
    steps = 300
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-2)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 1e-2, total_steps=steps)
    relative = 1.0
    for _ in range(steps):
        optimiser.zero_grad()
        loss = (model(x, f, context) - u).norm() / u.norm()
        relative = float(loss.detach())
        if relative < 0.05:
            break
        loss.backward()
        optimiser.step()
        schedule.step()
    return relative


def create(make: Callable[..., M], preset: dict[str, object]) -> M:
    return make(**preset)


def count(make: Callable[..., nn.Module], preset: dict[str, object]) -> int:
    return numbers(create(make, preset))


def numbers(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def test_published_parameter_counts() -> None:
    """AirfRANS; Neural-Solver-Library on cars, which reads 7 features (Graph U-Net: these only); Geo-FNO."""
    assert count(GraphSAGE, graph_sage.PRESETS["airfrans"]) == 29_204
    assert count(GraphUNet, graph_unet.PRESETS["airfrans"]) == 65_820
    assert count(GraphSAGE, graph_sage.PRESETS["shapenet-car"] | {"in_features": 7}) == 367_876
    assert count(GraphUNet, graph_unet.PRESETS["shapenet-car"]) == 221_780
    assert count(GNO, gno.PRESETS["elasticity"]) == 571_617
    assert count(DeepONet, deeponet.PRESETS["elasticity"]) == 1_025_025


def test_published_parameter_counts_of_geo_fno() -> None:
    """The published 47,234 of the deformation hold its dead layer for data without a code: 96 x 128 + 128."""
    model = create(GeoFNO, geo_fno.PRESETS["elasticity"] | {"code_dim": 42})
    deformation, complex_twice = numbers(model.deformation), sum(p.numel() // 2 for p in model.spectral)
    assert deformation + 96 * 128 + 128 == 47_234
    assert numbers(model) - deformation - complex_twice == 1_482_657


def test_graph_unet_remembers_levels_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    pooling = graph_unet.Pooling(0.5, (0.5, 1.0), 64)
    clouds = [cloud(40, seed)[0].numpy() for seed in range(3)]
    first = pooling(clouds, torch.device("cpu"))[0]
    monkeypatch.setattr(graph_unet, "pooling_levels", lambda *_: pytest.fail("searched again"))
    again = pooling(clouds, torch.device("cpu"))[0]
    assert all(torch.equal(a.edges, b.edges) for a, b in zip(first, again, strict=True))
    monkeypatch.undo()
    monkeypatch.setattr(graph_unet, "REMEMBERED", 1)
    pooling([cloud(40, 3)[0].numpy()], torch.device("cpu"))
    assert len(pooling._memory) == 1
