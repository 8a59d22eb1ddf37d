"""Where the panels stand: beside each other or in rows, how high they are, and the camera that fits."""

from dataclasses import dataclass

import numpy as np

from lrsa.studio.cameras import Camera

NARROW = 700
"""Pixels of width below which panels always stand above each other."""
FOOT, HEAD = 66, 34
"""Pixels of a panel that its scale and its title take."""
LOWEST, HIGHEST = 200, 360
"""Pixels of a panel's height on a narrow page."""
LEAST = 380
"""Pixels of all of them on a wide one."""
BETTER = 1.15
"""Rows are taken where they show everything so much larger."""


@dataclass(frozen=True)
class Stage:
    """The panels of a picture, all of one size."""

    width: float
    height: float
    """Pixels of all panels together."""
    rows: bool = False
    panels: int = 1

    @staticmethod
    def arranged(width: float, room: float, panels: int, extent: tuple[float, float]) -> "Stage":
        """Panels for something of this width and height, as large as a page of this room allows."""
        ratio = extent[1] / extent[0] if min(extent) > 0 else 1.0
        if width < NARROW:
            each = float(np.clip(width * ratio + FOOT + HEAD, LOWEST, HIGHEST))
            return Stage(width, round(each * panels), panels > 1, panels)
        most = max(room, LEAST)
        made = []
        for rows in (False, True) if panels > 1 else (False,):
            across, down = (1, panels) if rows else (panels, 1)
            wanted = down * (width / across * ratio + FOOT + HEAD)
            made.append(Stage(width, round(float(np.clip(wanted, LEAST, most))), rows, panels))
        return max(made, key=lambda one: one._scale(ratio) * (1 if one.rows else BETTER))

    @property
    def panel(self) -> tuple[float, float]:
        """Width and height of one."""
        count = max(self.panels, 1)
        return (self.width, self.height / count) if self.rows else (self.width / count, self.height)

    @property
    def aspect(self) -> float:
        """Width by height of one."""
        width, height = self.panel
        return width / max(height, 1.0)

    def camera(self, bounds: np.ndarray, flat: bool, up: int) -> Camera:
        """All of the box (3, 2) in every panel, between its title and its scale."""
        _, height = self.panel
        return Camera.fitted(bounds, self.aspect, flat, FOOT / height, self._head / height, up)

    @property
    def _head(self) -> float:
        """Pixels that the title takes: none in a wide row, where it stands beside."""
        return 0 if self.rows and self.width >= NARROW else HEAD

    def _scale(self, ratio: float) -> float:
        """How large something of this height by width is in a panel."""
        width, height = self.panel
        return min(width, (height - FOOT - self._head) / max(ratio, 1e-6))
