"""The scene for the browser: every panel in its place, and nothing that the browser would lose."""

from typing import Any

import numpy as np
import pytest
from cylinder import cylinder
from small import ragged_cases

from lrsa.studio.drawing import Panel
from lrsa.studio.shapes import Look, Shape
from lrsa.studio.window import Window, marks_at

CASES = {"mesh": cylinder(1, 1, 6, 16), "cloud": ragged_cases(1)[0]}


def panel(title: str, case: str = "mesh") -> Panel:
    shape = Shape(CASES[case])
    return Panel(title, [shape.drawn(shape.points[:, 0], Look())], "viridis", -1.0, 1.0)


def actors_of(renderer: Any) -> list[Any]:
    return list(renderer.GetActors())


def three() -> list[Panel]:
    return [panel(title) for title in ("prediction", "truth", "|error|")]


@pytest.mark.parametrize(("rows", "place"), [(False, (0.5, 0.2)), (True, (0.2, 0.5))])
def test_a_place_of_the_picture_is_that_of_the_panel_there(rows: bool, place: tuple[float, float]):
    window = Window()
    window.show(three(), rows, False, True, None)
    assert [p.title for p in window.shown()] == ["truth", "prediction", "|error|"]
    found = window.at(*place)
    assert found is not None
    assert found[0].title == "prediction"
    assert found[1:] == pytest.approx((0, -0.6) if not rows else (-0.6, 0))


def test_the_scene_keeps_every_actor_whatever_is_shown():
    """The browser forgets the colours of what is taken out; it is never asked to draw more than is shown."""
    window = Window()
    shows = [three(), [panel("prediction")], [panel("prediction", "cloud")], three()]
    for panels in shows:
        window.show(panels, False, True, True, marks_at(np.zeros(3), np.zeros(3), np.ones(3)))
        for i, renderer in enumerate(window.renderers):
            actors = actors_of(renderer)
            assert len(actors) == 3
            faces = [actor.GetMapper().GetInput() for actor in actors]
            assert all(data.GetNumberOfCells() for data in faces)
            largest = max(data.GetNumberOfPoints() for data in faces)
            assert (largest > 3) == (i < len(panels))


def test_a_mapper_is_only_ever_told_of_one_kind_of_cells():
    """Else the faces of a mesh would stay between the points of a cloud."""
    window = Window()
    kinds: dict[object, set[tuple[bool, ...]]] = {}
    for case in ("mesh", "cloud", "mesh"):
        for marks in (None, marks_at(np.zeros(3), None, None), marks_at(None, np.zeros(3), np.ones(3))):
            window.show([panel("prediction", case)], False, False, True, marks)
            for actor in actors_of(window.renderers[0]):
                data = actor.GetMapper().GetInput()
                cells = (data.GetVerts(), data.GetLines(), data.GetPolys())
                seen = tuple(bool(part.GetNumberOfCells()) for part in cells)
                kinds.setdefault(actor.GetMapper(), set()).add(seen)
    assert all(len(seen) == 1 for seen in kinds.values())
    assert len({next(iter(seen)) for seen in kinds.values()}) > 1


def test_all_panels_have_one_camera():
    window = Window()
    assert len({renderer.GetActiveCamera() for renderer in window.renderers}) == 1
