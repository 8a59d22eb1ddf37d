"""The report and the data card of meshes: complete, self-contained, and drawn on the mesh that is there."""

import html
import re
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from scipy.spatial import Delaunay

import lrsa
from lrsa.data.store import Dataset, Schema
from lrsa.data.writing import write_dataset
from lrsa.evaluation.evaluate import evaluate
from lrsa.evaluation.null import DEFINITIONS as NULLS
from lrsa.objectives.metrics import DEFINITIONS, SELF_CONSISTENCY
from lrsa.pointset import Names, PointSet
from lrsa.report import pictures
from lrsa.report.datacard import card, draw
from lrsa.report.figures import comparison
from lrsa.report.pictures import ERROR, FIELD, Picture, draw_pictures
from lrsa.report.render import UNKNOWN, Surface, render_surfaces
from lrsa.report.report import write_report
from lrsa.report.triangles import triangles_of

NAMES = Names(("x", "y", "z"), ("a",), ("stress", "heat"), ("load",), {"stress": "Pa", "load": "N"})
FILES = [f"part_{i}.vtu" for i in range(8)]
GREY = tuple(int(UNKNOWN[i : i + 2], 16) for i in (1, 3, 5))


def plate(seed: int) -> PointSet:
    """Triangles in space with z = 0, one field known on the left half only."""
    rng = np.random.default_rng(seed)
    n, load = int(rng.integers(30, 60)), rng.uniform(1, 2)
    x = np.concatenate([[[0, 0], [1, 0], [0, 1], [1, 1]], rng.random((n, 2))])
    cells = Delaunay(x).simplices
    u = np.column_stack([load * np.sin(3 * x[:, 0]), x[:, 1] ** 2])
    known = np.column_stack([np.ones(len(x), bool), x[:, 0] < 0.6])
    values = {"x": np.column_stack([x, 0 * x[:, 0]]), "f": x[:, :1], "u": u, "globals": np.array([load])}
    values["weights"] = np.full(len(x), 1 / len(x))
    return PointSet(
        **{k: v.astype(np.float32) for k, v in values.items()}, u_mask=known, cells=cells, names=NAMES
    )


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("plates")
    cases = [plate(i) for i in range(8)]
    provenance = {"source": "a folder & more", "cases": {"train": FILES[:5], "test": FILES[5:]}}
    schema = Schema("plates", names=NAMES, provenance=provenance)
    write_dataset(folder / "plates.h5", {"train": cases[:5], "test": cases[5:]}, schema)
    sizes = {"width": 8, "depth": 1, "heads": 2, "rank": 4}
    lrsa.fit(folder / "plates.h5", out=folder / "run", epochs=2, threads=1, options=sizes)
    return folder / "run"


@pytest.fixture(scope="module")
def page(run: Path) -> str:
    return write_report(run, evaluate(run, stride=(1, 2))).read_text()


def test_the_report_loads_nothing(page: str) -> None:
    words = re.sub(r"data:image/png;base64,[A-Za-z0-9+/=]+", "data:", page)
    for forbidden in ("http", "<script", "<link", "@import", "url("):
        assert forbidden not in words
    assert set(re.findall(r"src='([^']*)'", words)) == {"data:"}
    assert "width=device-width" in words


def test_every_number_of_the_report_is_defined(run: Path, page: str) -> None:
    nulls = [NULLS[name] for name in evaluate(run).nulls]
    for words in (*DEFINITIONS.values(), *nulls, SELF_CONSISTENCY):
        assert words in html.unescape(page)


def test_every_picture_says_what_it_shows(page: str) -> None:
    alts = re.findall(r"<img alt='([^']+)'", page)
    assert len(alts) == page.count("<img")
    for kind in ("truth", "prediction", "|error|"):
        for field in ("stress [Pa]", "heat"):
            assert sum(alt.startswith(f"{kind} of {field} on part_") for alt in alts) == 3


def test_the_report_says_how_good_on_what_and_how_it_was_made(run: Path, page: str) -> None:
    evaluation, plain = evaluate(run), page.replace("<wbr>", "")
    for words in (
        f"{evaluation.relative_l2:.4f}",
        *(f"{value:.4f}" for value in evaluation.nulls.values()),
        *(row.name for row in evaluation.table),
        "u_mask: heat (share)",
        "globals: load [N]",
        "lrsa.fit",
        "weight_decay",
        "torch",
        "a folder &amp; more",
    ):
        assert words in plain, words
    assert '{"' not in html.unescape(page)


def test_the_figures_are_kept_as_files(run: Path, page: str) -> None:
    there = {path.stem for path in (run / "figures").glob("*.png")}
    wanted = {"training", "errors", "samplings", "cases-0", "cases-1", "scatter-0", "scatter-1"}
    assert wanted <= there


def test_truth_and_prediction_share_a_scale_and_the_error_starts_at_zero() -> None:
    case = plate(0)
    assert case.u is not None
    u = case.u[:, 1]
    truth, prediction, error = comparison(case, u, u + 5, 1)
    known = case.arrays()["u_mask"][:, 1]
    assert (truth.low, truth.high) == (prediction.low, prediction.high) == (u[known].min(), u[known].max())
    assert (truth.cmap, prediction.cmap, error.cmap) == (FIELD, FIELD, ERROR)
    assert (error.low, error.high) == (0, pytest.approx(5, rel=1e-6))


def test_where_a_target_is_unknown_the_mesh_is_grey() -> None:
    case = plate(0)
    known = case.arrays()["u_mask"][:, 1]
    whole, part = draw_pictures(
        [Picture(case, case.x[:, 0], 0, 1), Picture(case, case.x[:, 0], 0, 1, known=known)]
    )
    grey = [
        (np.abs(image[..., :3].astype(int) - GREY).max(-1) < 4) & (image[..., 3] > 250)
        for image in (whole, part)
    ]
    x, cells = case.x[:, :2].astype(float), case.arrays()["cells"]
    unknown = area(x, cells[~known[cells].all(1)])
    assert grey[0].mean() < 0.01
    assert grey[1].mean() == pytest.approx(unknown, abs=0.03)
    assert 0.2 < unknown < 0.8


def area(x: np.ndarray, triangles: np.ndarray) -> float:
    a, b, c = (np.pad(x, ((0, 0), (0, 3 - x.shape[1])))[triangles[:, i]] for i in range(3))
    return float(np.linalg.norm(np.cross(b - a, c - a), axis=1).sum() / 2)


def box(n: int) -> tuple[np.ndarray, np.ndarray]:
    """The unit cube in (n - 1)³ hexahedra."""
    x = np.stack(np.meshgrid(*[np.linspace(0, 1, n)] * 3, indexing="ij"), -1).reshape(-1, 3)
    i = np.arange(n**3).reshape(n, n, n)
    corners = [(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0), (0, 0, 1), (1, 0, 1), (1, 1, 1), (0, 1, 1)]
    cells = [i[tuple(slice(o, n - 1 + o) for o in corner)].ravel() for corner in corners]
    return x, np.stack(cells, axis=1)


SQUARE = np.array([[0, 0], [1, 0], [1, 1], [0, 1], [2, 0], [2, 1], [0.5, 0], [1, 0.5], [0.5, 1], [0, 0.5]])
PLANE = {
    "triangles and quadrilaterals": ([[0, 1, 2, 3], [1, 4, 5, -1], [1, 5, 2, -1]], 2.0),
    "quadratic triangle": ([[0, 1, 2, 6, 7, 3]], None),
    "quadratic quadrilateral": ([[0, 1, 2, 3, 6, 7, 8, 9]], 1.0),
    "hexagon": ([[0, 1, 4, 5, 2, 3]], 2.0),
}
TYPES = {"quadratic triangle": 22, "quadratic quadrilateral": 23}


@pytest.mark.parametrize("name", PLANE)
def test_plane_cells_are_covered_by_triangles(name: str) -> None:
    cells, expected = PLANE[name]
    types = np.array([TYPES[name]]) if name in TYPES else None
    x = SQUARE.copy()
    if expected is None:  # the middle of the third edge
        x[3], expected = (0.5, 0.5), 0.5
    made = triangles_of(PointSet(x, cells=np.array(cells), cell_types=types))
    assert made is not None
    assert not made.boundary
    assert area(x, made.points) == pytest.approx(expected)


def test_of_a_volume_the_surface_is_seen() -> None:
    x, cells = box(4)
    made = triangles_of(PointSet(x, cells=cells))
    assert made is not None
    assert made.boundary
    assert area(x, made.points) == pytest.approx(6)
    assert not ((x[made.points.ravel()] > 0) & (x[made.points.ravel()] < 1)).all(1).any()
    cloud = np.concatenate([x[(x == x.round()).all(1)], np.random.default_rng(0).random((30, 3))])
    solid = triangles_of(PointSet(cloud, cells=Delaunay(cloud).simplices))
    assert solid is not None
    assert area(cloud, solid.points) == pytest.approx(6)


def test_quadrilaterals_in_space_are_a_surface() -> None:
    x, cells = box(3)
    top = cells[:, 4:][x[cells[:, 4:], 2].min(1) == 1]
    bent = x + 0.1 * np.sin(3 * x[:, [1, 2, 0]])
    made = triangles_of(PointSet(bent, cells=top))
    assert made is not None
    assert not made.boundary
    assert len(made.points) == 2 * len(top)


def test_cases_of_every_kind_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without VTK too: volume, volume with a body, cloud in space, plane cloud, grid, line."""
    monkeypatch.setattr(pictures, "render_surfaces", lambda _: None)
    x, cells = box(4)
    inside = x[:, 0] < 0.5
    grid = x[x[:, 2] == 0][:, :2]
    kinds = [
        (PointSet(x, cells=cells), None),
        (PointSet(x, cells=cells), inside),
        (PointSet(x, cells=cells, surface=inside), None),
        (PointSet(x), inside),
        (PointSet(x, surface=inside), None),
        (PointSet(grid), None),
        (PointSet(grid, grid=(4, 4)), None),
        (PointSet(grid, grid=(4, 4)), grid[:, 0] < 0.5),
        (PointSet(x[:, :1]), None),
        (PointSet(x, cells=cells, cell_types=np.full(len(cells), 42)), None),
        (PointSet(x, cells=cells), np.zeros(len(x), bool)),
    ]
    images = draw_pictures([Picture(case, case.x[:, 0], 0, 1, known=known) for case, known in kinds])
    for image in images[:-1]:
        assert image.shape[-1] == 4
        assert len(np.unique(image[image[..., 3] > 250][:, :3], axis=0)) > 1


def test_vtk_draws_a_surface_without_a_display() -> None:
    pytest.importorskip("pyvista")
    x, cells = box(4)
    made = triangles_of(PointSet(x, cells=cells))
    assert made is not None
    drawn = render_surfaces([Surface(x, made.points, x[:, 0], FIELD, 0.0, 1.0)])
    if drawn is None:
        pytest.skip("VTK cannot draw on this machine")
    seen = drawn[0][drawn[0][..., 3] > 250]
    assert 0.2 < len(seen) / drawn[0][..., 3].size < 0.9
    assert len(np.unique(seen[:, :3], axis=0)) > 50


def test_the_card_of_a_ragged_set(run: Path, tmp_path: Path) -> None:
    data = Dataset(run.parent / "plates.h5", "train")
    console = Console(width=160)
    with console.capture() as said:
        console.print(card(data))
    sizes = [len(case) for case in data]
    share = np.mean([case.arrays()["u_mask"][:, 1].mean() for case in data])
    for words in (
        f"5 train + 3 test cases of {min(sizes)} to {max(sizes)} points",
        f"{min(sizes)} to {max(sizes)} x 2",
        f"{share:.0%}",
        "u: stress [Pa]",
        "globals: load [N]",
        "cells (triangles)",
        "weights",
        "part_0.vtu",
    ):
        assert words in said.get(), words
    assert draw(data, tmp_path / "cases.png").stat().st_size > 10_000
