"""The scene that the browser draws: a window of VTK that is never rendered here.

Every panel is a renderer; all of them have one camera, so that what turns in one turns in all.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from lrsa.studio.cameras import Camera
from lrsa.studio.drawing import Panel
from lrsa.studio.shapes import VALUE

ORDER = ("truth", "prediction", "|error|")
"""From left to right, or from top to bottom."""
PANELS = 3
PARTS = 2
"""Surfaces of a panel: those on both sides of the slider."""
HIDDEN = (0.999, 0.999, 1.0, 1.0)
PAPER, LINES, MARK = (1.0, 1.0, 1.0), (0.35, 0.4, 0.45), (0.85, 0.1, 0.35)
AMBIENT, DIFFUSE = 0.45, 0.6
"""Light from everywhere and from the eye: shapes are seen, and colours stay near those of the scale."""
DOTS = 700
"""Pixels of a picture over which the points of a cloud are spread."""


class Window:
    """Holds what is drawn, and knows which panel is where.

    The actors stay, and so do their colours: the browser is told only what has changed, and what was taken
    out of a scene and put back would come back without what it had been told before.
    """

    def __init__(self) -> None:
        from vtkmodules.vtkRenderingCore import vtkRenderer
        from vtkmodules.vtkRenderingOpenGL2 import vtkGenericOpenGLRenderWindow

        # The one kind of window that asks for no display and no driver.
        self.vtk = vtkGenericOpenGLRenderWindow()
        self.renderers = [vtkRenderer() for _ in range(PANELS)]
        self.camera = self.renderers[0].MakeCamera()
        self.surfaces = [[_Part() for _ in range(PARTS)] for _ in range(PANELS)]
        self.marks = [_Part() for _ in range(PANELS)]
        for renderer, surfaces, mark in zip(self.renderers, self.surfaces, self.marks, strict=True):
            renderer.SetBackground(*PAPER)
            renderer.SetActiveCamera(self.camera)
            self.vtk.AddRenderer(renderer)
            for part in (*surfaces, mark):
                renderer.AddActor(part.actor)
        self.panels: list[Panel] = []
        self.rows = False

    def show(self, panels: Sequence[Panel], rows: bool, lines: bool, flat: bool, marks: Any) -> None:
        """Draw these panels beside each other, or in rows; `marks` are points and lines of the user's."""
        self.panels, self.rows = list(panels), rows
        centre = panels[0].surfaces[0].center if panels[0].surfaces else (0.0, 0.0, 0.0)
        for i, renderer in enumerate(self.renderers):
            panel = panels[i] if i < len(panels) else None
            renderer.SetViewport(*(HIDDEN if panel is None else self._place(panel)))
            for k, part in enumerate(self.surfaces[i]):
                if panel is not None and k < len(panel.surfaces) and panel.surfaces[k].n_points:
                    part.paint(panel, panel.surfaces[k], lines, flat)
                else:
                    part.hide(centre)
            if marks is None or panel is None:
                self.marks[i].hide(centre)
            else:
                self.marks[i].mark(marks)

    def look(self, camera: Camera) -> None:
        """Where a page that is opened later looks from."""
        self.camera.SetPosition(*camera.position)
        self.camera.SetFocalPoint(*camera.focal_point)
        self.camera.SetViewUp(*camera.view_up)

    def shown(self) -> list[Panel]:
        """The panels from left to right."""
        return sorted(self.panels, key=lambda p: ORDER.index(p.title) if p.title in ORDER else 0)

    def at(self, across: float, up: float) -> tuple[Panel, float, float] | None:
        """The panel at a place (0 to 1) of the picture, and the place (-1 to 1) in it."""
        for panel in self.panels:
            left, bottom, right, top = self._place(panel)
            if left <= across <= right and bottom <= up <= top:
                return panel, 2 * (across - left) / (right - left) - 1, 2 * (up - bottom) / (top - bottom) - 1
        return None

    def _place(self, panel: Panel) -> tuple[float, float, float, float]:
        index, count = self.shown().index(panel), len(self.panels)
        if self.rows:
            return 0.0, 1 - (index + 1) / count, 1.0, 1 - index / count
        return index / count, 0.0, (index + 1) / count, 1.0


class _Part:
    """An actor, and a mapper of its own for every kind of cells that it has shown.

    The browser keeps what a mapper is not told of: faces of before would stay between points of now.
    """

    def __init__(self) -> None:
        from vtkmodules.vtkRenderingCore import vtkActor

        self.actor = vtkActor()
        self._mappers: dict[tuple[bool, ...], Any] = {}
        self.hide((0.0, 0.0, 0.0))

    def paint(self, panel: Panel, surface: Any, lines: bool, flat: bool) -> None:
        """Show a surface in the colours of its panel."""
        mapper, look = self._mapper(surface), self.actor.GetProperty()
        mapper.SetLookupTable(_colours(panel.colours))
        mapper.SetScalarRange(panel.low, panel.high)
        look.SetLighting(not flat)
        look.SetAmbient(AMBIENT)
        look.SetDiffuse(DIFFUSE)
        look.SetEdgeVisibility(lines)
        look.SetEdgeColor(*LINES)
        look.SetLineWidth(1 if surface.n_lines < surface.n_cells else 3)
        look.SetPointSize(float(np.clip(DOTS / max(surface.n_points, 1) ** 0.5, 2, 8)))

    def mark(self, marks: Any) -> None:
        """Show points and lines, all in one colour."""
        self._mapper(marks).ScalarVisibilityOff()
        look = self.actor.GetProperty()
        look.SetColor(*MARK)
        look.SetLighting(False)
        look.SetPointSize(9)
        look.SetLineWidth(2)

    def hide(self, centre: Sequence[float]) -> None:
        """Show a triangle without area: an actor without cells would be taken out of the scene."""
        import pyvista

        empty = pyvista.PolyData(np.array([centre] * 3, np.float32), faces=[3, 0, 1, 2])
        empty.point_data[VALUE] = np.zeros(3, np.float32)
        self._mapper(empty)
        self.actor.GetProperty().SetEdgeVisibility(False)

    def _mapper(self, surface: Any) -> Any:
        from vtkmodules.vtkRenderingCore import vtkPolyDataMapper

        kinds = (surface.n_verts > 0, surface.n_lines > 0, surface.GetNumberOfPolys() > 0)
        if kinds not in self._mappers:
            mapper = self._mappers[kinds] = vtkPolyDataMapper()
            mapper.SetScalarModeToUsePointFieldData()
            mapper.SelectColorArray(VALUE)
            mapper.SetInterpolateScalarsBeforeMapping(True)
        self._mappers[kinds].SetInputData(surface)
        self.actor.SetMapper(self._mappers[kinds])
        return self._mappers[kinds]


@cache
def _colours(name: str) -> Any:
    import pyvista

    return pyvista.LookupTable(name, n_values=256)


def dots(points: np.ndarray) -> Any:
    """Points (n, 3) by themselves."""
    import pyvista

    return pyvista.PolyData(np.ascontiguousarray(points, np.float32))


def marks_at(point: np.ndarray | None, start: np.ndarray | None, end: np.ndarray | None) -> Any:
    """A point, and a line with its ends; None where there is nothing to mark."""
    places = [place for place in (point, start, end) if place is not None]
    if not places:
        return None
    marks = dots(np.array(places))
    if start is not None and end is not None:
        marks.lines = [2, len(places) - 2, len(places) - 1]
    return marks
