"""One run tried out: cases, files, parameters, frames, and what is drawn of them."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cylinder import cylinder
from small import OPTIONS, frames, grid_cases, quick, write

import lrsa
from lrsa.errors import LrsaError
from lrsa.mesh.writing import write_mesh
from lrsa.studio.cameras import Camera
from lrsa.studio.downloads import write_points, write_prediction
from lrsa.studio.drawing import GAP, View, draw, stretch_of, vectors_of
from lrsa.studio.exploring import Exploration
from lrsa.studio.probes import along, picked, probe
from lrsa.studio.shapes import VALUE, Clip, Shape

pytest_plugins = ["studio_runs"]


def mesh_file(path: Path, case: lrsa.PointSet, **fields: np.ndarray) -> Path:
    mesh = Shape(case).mesh.copy()
    return write_mesh(mesh, path, fields, "point")


def test_what_is_predicted_is_what_the_surrogate_predicts(exploration: Exploration, runs: Path):
    assert exploration.opened is not None
    case = exploration.opened.case
    made = exploration.predict(exploration.start())
    assert np.array_equal(made.u, lrsa.load(runs / "flow").predict(case))
    assert made.truth is not None
    assert case.u is not None
    assert np.array_equal(made.truth, case.u)


def test_a_parameter_that_moved_changes_the_prediction_and_has_no_truth(exploration: Exploration):
    here, (speed, circulation) = exploration.predict(exploration.start()), exploration.start()
    there = exploration.predict((speed + 0.3, circulation))
    assert there.truth is None
    assert not np.allclose(there.u, here.u)
    again = exploration.predict(exploration.start())
    assert np.array_equal(again.u, here.u)


def test_what_lies_outside_the_training_range_is_said(exploration: Exploration):
    speed, circulation = exploration.parameters
    assert (speed.name, speed.unit) == ("speed", "m/s")
    middle = [(p.low + p.high) / 2 for p in exploration.parameters]
    assert not exploration.warnings(middle)
    beyond = [speed.high + (speed.high - speed.low), middle[1]]
    (line,) = exploration.warnings(beyond)
    assert "parameter speed" in line
    assert "1 ranges outside" in line
    assert speed.outside(beyond[0])
    assert not circulation.outside(circulation.high)


def test_truth_and_prediction_have_one_scale_that_only_grows(exploration: Exploration):
    start = tuple(exploration.start())
    first = draw(exploration, View("p", start))
    titles = {panel.title: panel for panel in first.panels}
    assert list(titles) == ["prediction", "truth", "|error|"]
    assert (titles["truth"].low, titles["truth"].high) == (
        titles["prediction"].low,
        titles["prediction"].high,
    )
    assert titles["|error|"].low == 0
    moved = draw(exploration, View("p", (start[0] * 2, start[1])))
    (alone,) = moved.panels
    assert not moved.has_truth
    assert alone.low <= titles["truth"].low
    assert alone.high >= titles["truth"].high


def test_the_error_that_is_drawn_is_that_of_the_fields(exploration: Exploration):
    drawn = draw(exploration, View("u", tuple(exploration.start()), mode="error"))
    (surface,) = drawn.panels[0].surfaces
    truth = drawn.prediction.truth
    assert truth is not None
    error = np.abs(drawn.prediction.u - truth)[:, 0]
    assert surface[VALUE].max() == pytest.approx(error.max())
    assert drawn.panels[0].high == pytest.approx(error.max())


def test_a_threshold_of_the_field_chooses_the_error_that_is_drawn(exploration: Exploration):
    start = tuple(exploration.start())
    low, high = np.quantile(draw(exploration, View("u", start)).prediction.u[:, 0], [0.3, 0.9])
    kept = draw(exploration, View("u", start, threshold=(float(low), float(high)))).panels
    assert kept[2].title == "|error|"
    assert kept[2].surfaces[0].n_points == kept[0].surfaces[0].n_points > 0


def test_the_slider_shows_truth_on_its_left_and_prediction_on_its_right(exploration: Exploration):
    start = tuple(exploration.start())
    whole = draw(exploration, View("u", start)).panels
    left, right = draw(exploration, View("u", start, mode="slider", divide=0.3)).panels[0].surfaces
    place, gap = -5 + 0.3 * 10, GAP * 10 / 2
    assert (left.bounds[1], right.bounds[0]) == pytest.approx((place - gap, place + gap), abs=1e-4)
    for part, panel in ((left, whole[1]), (right, whole[0])):
        at = part.find_closest_point((part.bounds[0], 0, 0))
        there = panel.surfaces[0].find_closest_point(part.points[at])
        if np.allclose(panel.surfaces[0].points[there], part.points[at], atol=1e-5):
            assert part[VALUE][at] == pytest.approx(panel.surfaces[0][VALUE][there], abs=1e-5)


def test_warp_moves_points_by_the_vector(exploration: Exploration):
    assert exploration.opened is not None
    assert vectors_of(exploration, exploration.opened) == {"uv": (0, 1)}
    view = View("u", tuple(exploration.start()), mode="prediction", warp="uv", factor=0.5)
    drawn = draw(exploration, view)
    moved = drawn.panels[0].points
    assert moved is not None
    expected = exploration.opened.shape.points[:, :2] + 0.5 * drawn.prediction.u[:, :2]
    assert np.allclose(moved[:, :2], expected, atol=1e-6)
    tiny = replace(drawn.prediction, u=1e-6 * drawn.prediction.u)
    assert stretch_of(exploration, exploration.opened, drawn.prediction, "uv") == 1
    assert 1e4 < stretch_of(exploration, exploration.opened, tiny, "uv") < 1e7
    cut = draw(exploration, replace(view, warp="", clip=Clip(1, 0.0)))
    assert cut.panels[0].surfaces[0].bounds[3] == pytest.approx(0)


def test_a_click_gives_the_values_of_the_point_that_is_seen_there(exploration: Exploration):
    opened, drawn = exploration.opened, draw(exploration, View("u", tuple(exploration.start())))
    assert opened is not None
    camera = Camera.fitted(opened.shape.bounds(), 1.0, True)
    wanted = opened.shape.points[37]
    across, up = wanted[:2] / camera.parallel_scale
    place = picked(drawn.panels[0].surfaces[0], camera, float(across) * 0.999, float(up) * 0.999, 1.0)
    assert place is not None
    assert np.linalg.norm(place - wanted) < 0.02
    found = probe(exploration, opened, drawn.prediction, place)
    assert found["point"] == 37
    assert found["rows"][0]["prediction"] == f"{drawn.prediction.u[37, 0]:.5g}"
    assert found["rows"][0]["field"] == "u [m/s]"
    assert picked(drawn.panels[0].surfaces[0], camera, 0.0, 0.0, 1.0) is None  # inside the cylinder


def test_a_line_has_the_values_that_lie_on_it(exploration: Exploration):
    """Through points of the mesh it has their values, and none inside the cylinder."""
    opened, made = exploration.opened, exploration.predict(exploration.start())
    assert opened is not None
    assert opened.case.surface is not None
    spokes = int(opened.case.surface.sum())
    ends = opened.shape.points[[-spokes, -spokes // 2]].astype(float)  # from one side to the other
    sampled = along(opened, made, 0, *ends)
    assert sampled["prediction"][0] == pytest.approx(made.u[-spokes, 0], rel=1e-3)
    assert sampled["prediction"][-1] == pytest.approx(made.u[-spokes // 2, 0], rel=1e-3)
    assert np.isnan(sampled["truth"][len(sampled["truth"]) // 2])
    assert sampled["distance"][-1] == pytest.approx(10, rel=1e-3)


def test_a_dropped_mesh_is_predicted_and_comes_back_with_the_fields(exploration: Exploration, tmp_path: Path):
    """At parameters that the page chose first; the arrays that it had stay."""
    other = cylinder(1.0, 0.5, 5, 12)
    assert other.u is not None
    source = mesh_file(tmp_path / "007.vtu", other, mine=np.arange(60.0), u=other.u[:, 0])
    opened = exploration.drop(source)
    assert [p.low < v < p.high for p, v in zip(exploration.parameters, exploration.start(), strict=True)]
    assert np.allclose(opened.case.x, other.x, atol=1e-6)
    made = exploration.predict((1.0, 0.5))
    assert made.truth is None
    made = exploration.predict(exploration.start())
    assert made.truth is not None
    assert np.allclose(made.truth[:, 0], other.u[:, 0], atol=1e-5)
    assert np.isnan(made.truth[:, 1]).all()
    import pyvista

    back: Any = pyvista.read(write_prediction(exploration, opened, made, 0, tmp_path / "o.vtu"))
    assert np.array_equal(back["mine"], np.arange(60))
    assert np.allclose(back["v_predicted"], made.u[:, 1])
    assert "u_error" in back.point_data


def test_a_dropped_npz_takes_the_parameters_of_the_page(exploration: Exploration, tmp_path: Path):
    case = cylinder(1.0, 0.5, 5, 12)
    np.savez(tmp_path / "case.npz", x=case.x)
    assert len(exploration.drop(tmp_path / "case.npz").case) == 60
    assert exploration.predict(exploration.start()).u.shape == (60, 3)


def test_a_dropped_file_that_does_not_fit_is_refused_by_name(exploration: Exploration, tmp_path: Path):
    before = exploration.opened
    (tmp_path / "wing.vtu").write_text("no mesh")
    with pytest.raises(LrsaError, match=r"wing\.vtu"):
        exploration.drop(tmp_path / "wing.vtu")
    assert exploration.opened is before


def test_the_points_of_a_test_case_as_files(exploration: Exploration, tmp_path: Path):
    import pyvista

    opened, made = exploration.opened, exploration.predict(exploration.start())
    assert opened is not None
    mesh: Any = pyvista.read(write_prediction(exploration, opened, made, 0, tmp_path / "case.vtu"))
    assert mesh.n_points == len(opened.case)
    assert np.allclose(mesh["p_error"], mesh["p_predicted"] - mesh["p"], atol=1e-6)
    lines = write_points(exploration, opened, made, tmp_path / "case.csv").read_text().splitlines()
    assert lines[0].split(",")[:3] == ["x", "y", "u_predicted"]
    assert len(lines) == len(opened.case) + 1


@pytest.mark.parametrize("protocol", ["autoregressive", "time-conditioned"])
def test_every_frame_is_that_of_the_whole_prediction(protocol: str, tmp_path: Path):
    count = 12 if protocol == "autoregressive" else 3
    cases = [frames(case, count) for case in grid_cases(6, side=4)]
    data = write(tmp_path / "small.h5", cases[2:], cases[:2], protocol)
    surrogate = quick(data, tmp_path / "run", options=OPTIONS, epochs=1)
    made = Exploration(tmp_path / "run")
    case = made.choose(1).case
    assert case.times is not None
    whole = surrogate.predict(case)
    assert made.frames() == pytest.approx(case.times[-len(whole) :])
    for frame in (1, 0, len(whole) - 1):
        found = made.predict((), frame)
        assert np.allclose(found.u, whole[frame], atol=1e-6)
        assert found.truth is not None
        assert case.u is not None
        scale = draw(made, View(made.fields[0], frame=frame)).panels[0]
        assert scale.high >= case.u[-len(whole) :, :, 0].max()  # that of all frames, from the first on
        assert np.array_equal(found.truth, case.u[len(case.u) - len(whole) + frame])


def test_a_run_whose_data_is_gone_takes_files_only(own: Path, tmp_path: Path):
    config = own / "flow" / "config.json"
    config.write_text(config.read_text().replace("cylinder.h5", "gone.h5"))
    made = Exploration(own / "flow")
    assert made.names == []
    assert "gone.h5 does not exist" in made.missing
    assert len(made.drop(mesh_file(tmp_path / "new.vtu", cylinder(1, 1, 3, 8))).case) == 24
