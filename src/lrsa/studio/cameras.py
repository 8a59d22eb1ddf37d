"""Where the eye is: a camera that shows all of a field, and the ray behind a place of its picture.

The picture itself is drawn in the browser; both share these numbers.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

ANGLE = 30.0
"""Degrees between the lower and the upper edge of a picture in perspective."""
EYE = (1.0, -1.5, 0.9)
"""From where bodies in space are looked at; z is up."""
MARGIN = 1.08


@dataclass(frozen=True)
class Camera:
    """An eye, what it looks at, and how much of it is seen."""

    position: tuple[float, ...]
    focal_point: tuple[float, ...]
    view_up: tuple[float, ...]
    parallel_projection: bool
    parallel_scale: float
    """Half the height of what is seen, in parallel projection."""
    view_angle: float = ANGLE

    @staticmethod
    def fitted(bounds: np.ndarray, aspect: float, flat: bool, foot: float = 0.0) -> "Camera":
        """All of the box (3, 2) in the picture, from above where it is flat.

        Args:
            bounds: From where to where it goes along each axis.
            aspect: Width by height of the picture.
            flat: Whether the box has no depth.
            foot: Share of the height, at the lower edge, that stays free.
        """
        middle, size = bounds.mean(axis=1), np.ptp(bounds, axis=1)
        room = 1 - min(max(foot, 0.0), 0.5)
        if flat:
            half = MARGIN * max(size[1] / room, size[0] / aspect, 1e-12 + 1e-6 * size.max()) / 2
            eye, up, sight = np.array([0, 0, 4 * half]), np.array([0.0, 1.0, 0.0]), half
        else:
            radius = max(float(np.linalg.norm(size)) / 2, 1e-12)
            opening = np.arctan(np.tan(np.radians(ANGLE) / 2) * min(room, aspect))
            eye, up = (
                np.array(EYE) / np.linalg.norm(EYE) * radius / np.sin(opening),
                np.array([0.0, 0.0, 1.0]),
            )
            half, sight = radius, float(np.linalg.norm(eye) * np.tan(np.radians(ANGLE) / 2))
        side = np.cross(up, eye)
        above = np.cross(eye, side) / max(float(np.linalg.norm(np.cross(eye, side))), 1e-300)
        target = middle - above * sight * (1 - room)
        return Camera(tuple(target + eye), tuple(target), tuple(up), flat, float(half))

    def ray(self, across: float, up: float, aspect: float) -> tuple[np.ndarray, np.ndarray]:
        """(3,) a place before all that is seen and (3,) the unit direction at a place of the picture.

        `across` and `up` go from -1 to 1.
        """
        eye, target = np.array(self.position), np.array(self.focal_point)
        along = (target - eye) / np.linalg.norm(target - eye)
        right = np.cross(along, self.view_up)
        right /= np.linalg.norm(right)
        above = np.cross(right, along)
        if self.parallel_projection:
            return eye + self.parallel_scale * (aspect * across * right + up * above), along
        half = np.tan(np.radians(self.view_angle) / 2)
        direction = along + half * (aspect * across * right + up * above)
        return eye, direction / np.linalg.norm(direction)

    def to_browser(self) -> dict[str, Any]:
        """As vtk.js calls it."""
        return {
            "position": list(self.position),
            "focalPoint": list(self.focal_point),
            "viewUp": list(self.view_up),
            "parallelProjection": self.parallel_projection,
            "parallelScale": self.parallel_scale,
            "viewAngle": self.view_angle,
            "centerOfRotation": list(self.focal_point),
        }

    @staticmethod
    def from_browser(values: Mapping[str, Any]) -> "Camera":
        """What vtk.js says of its camera."""
        position, focal_point, view_up = (
            tuple(float(v) for v in values[name][:3]) for name in ("position", "focalPoint", "viewUp")
        )
        scale, angle = float(values["parallelScale"]), float(values["viewAngle"])
        return Camera(position, focal_point, view_up, bool(values["parallelProjection"]), scale, angle)
