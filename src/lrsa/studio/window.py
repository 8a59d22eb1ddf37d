"""The scene that the browser draws: a window of VTK that is never rendered here.

Every panel is a renderer; all of them have one camera, so that what turns in one turns in all.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from lrsa.studio.cameras import Camera
from lrsa.studio.drawing import Panel
from lrsa.studio.shapes import VALUE

ORDER = ("truth", "prediction", "|error|")
"""From left to right, or from top to bottom."""
PANELS = 3
PAPER, INK = (1.0, 1.0, 1.0), (0.11, 0.15, 0.19)


class Window:
    """Holds what is drawn, and knows which panel is where."""

    def __init__(self) -> None:
        import pyvista
        from vtkmodules.vtkRenderingCore import vtkRenderer
        from vtkmodules.vtkRenderingOpenGL2 import vtkGenericOpenGLRenderWindow

        # The one kind of window that asks for no display and no driver.
        self.vtk = vtkGenericOpenGLRenderWindow()
        self.renderers = [vtkRenderer() for _ in range(PANELS)]
        self.camera = self.renderers[0].MakeCamera()
        for renderer in self.renderers:
            renderer.SetBackground(*PAPER)
            renderer.SetActiveCamera(self.camera)
            self.vtk.AddRenderer(renderer)
        self.panels: list[Panel] = []
        self.rows = False
        self._tables: dict[str, Any] = {}
        self._lookup = pyvista.LookupTable

    def show(self, panels: Sequence[Panel], rows: bool, lines: bool, flat: bool, marks: Any) -> None:
        """Draw these panels beside each other, or in rows; `marks` are points and lines of the user's."""
        self.panels, self.rows = list(panels), rows
        for i, renderer in enumerate(self.renderers):
            renderer.RemoveAllViewProps()
            if i < len(panels):
                renderer.SetViewport(*self._place(panels[i]))
                for surface in panels[i].surfaces:
                    renderer.AddActor(self._actor(panels[i], surface, lines, flat))
                if marks is not None:
                    renderer.AddActor(_mark(marks))

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

    def aspect(self, width: float, height: float) -> float:
        """Width by height of one panel."""
        count = max(len(self.panels), 1)
        return width / max(height, 1) * (count if self.rows else 1 / count)

    def _place(self, panel: Panel) -> tuple[float, float, float, float]:
        index, count = self.shown().index(panel), len(self.panels)
        if self.rows:
            return 0.0, 1 - (index + 1) / count, 1.0, 1 - index / count
        return index / count, 0.0, (index + 1) / count, 1.0

    def _actor(self, panel: Panel, surface: Any, lines: bool, flat: bool) -> Any:
        from vtkmodules.vtkRenderingCore import vtkActor, vtkPolyDataMapper

        mapper = vtkPolyDataMapper()
        mapper.SetInputData(surface)
        mapper.SetLookupTable(self._table(panel.colours))
        mapper.SetScalarRange(panel.low, panel.high)
        mapper.SetScalarModeToUsePointFieldData()
        mapper.SelectColorArray(VALUE)
        mapper.SetInterpolateScalarsBeforeMapping(True)
        actor = vtkActor()
        actor.SetMapper(mapper)
        look = actor.GetProperty()
        look.SetLighting(not flat)
        look.SetEdgeVisibility(lines)
        look.SetEdgeColor(*INK)
        look.SetPointSize(float(np.clip(600 / max(surface.n_points, 1) ** 0.5, 2, 10)))
        look.SetLineWidth(3)
        return actor

    def _table(self, colours: str) -> Any:
        if colours not in self._tables:
            self._tables[colours] = self._lookup(colours, n_values=256)
        return self._tables[colours]


def marks_at(point: np.ndarray | None, start: np.ndarray | None, end: np.ndarray | None) -> Any:
    """A point, and a line with its ends; None where there is nothing to mark."""
    import pyvista

    places = [place for place in (point, start, end) if place is not None]
    if not places:
        return None
    marks = pyvista.PolyData(np.array(places, np.float32))
    if start is not None and end is not None:
        marks.lines = [2, len(places) - 2, len(places) - 1]
    return marks


def _mark(marks: Any) -> Any:
    from vtkmodules.vtkRenderingCore import vtkActor, vtkPolyDataMapper

    mapper = vtkPolyDataMapper()
    mapper.SetInputData(marks)
    mapper.ScalarVisibilityOff()
    actor = vtkActor()
    actor.SetMapper(mapper)
    actor.GetProperty().SetColor(0.85, 0.1, 0.35)
    actor.GetProperty().SetPointSize(9)
    actor.GetProperty().SetLineWidth(2)
    actor.GetProperty().SetLighting(False)
    return actor
