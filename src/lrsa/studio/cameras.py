"""Where the eye is: a camera that shows all of a field, and the ray behind a place of its picture.

The picture itself is drawn in the browser; both share these numbers.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

ANGLE = 30.0
"""Degrees between the lower and the upper edge of a picture in perspective."""
EYE = (1.0, -1.5, 0.9)
"""From where bodies in space are looked at: along, across, up."""
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
    def fitted(
        bounds: np.ndarray, aspect: float, flat: bool, foot: float = 0.0, head: float = 0.0, up: int = 2
    ) -> "Camera":
        """All of the box (3, 2) in the picture, from above where it is flat.

        Args:
            bounds: From where to where it goes along each axis.
            aspect: Width by height of the picture.
            flat: Whether the box has no depth.
            foot: Share of the height, at the lower edge, that stays free.
            head: Share of it at the upper edge.
            up: The axis that points upwards, of what is not flat.
        """
        middle, size = bounds.mean(axis=1), np.ptp(bounds, axis=1)
        foot, head = min(max(foot, 0.0), 0.5), min(max(head, 0.0), 0.3)
        room = 1 - foot - head
        least = 1e-12 + 1e-6 * float(size.max())
        right, above, near = _frame(flat, up)
        across, height, depth = np.abs(np.stack([right, above, near])) @ size / 2
        if flat:
            distance = half = MARGIN * max(height / room, across / aspect, least)
        else:
            corners = (np.array(list(product((-1, 1), repeat=3))) * size / 2) @ np.stack(
                [right, above, near], 1
            )
            slope = np.tan(np.radians(ANGLE) / 2) / MARGIN
            beside = np.abs(corners[:, 0]) / aspect, np.abs(corners[:, 1]) / room
            distance = max(float((np.maximum(*beside) / slope + corners[:, 2]).max()), depth + least)
            half = distance * slope * MARGIN
        target = middle - above * half * (foot - head)
        distance = 4 * distance if flat else distance
        return Camera(
            tuple(target + near * distance), tuple(target), tuple(np.eye(3)[1 if flat else up]), flat, half
        )

    @staticmethod
    def extent(bounds: np.ndarray, flat: bool, up: int = 2) -> tuple[float, float]:
        """Width and height of the box (3, 2) as it is looked at first, from far away."""
        width, height = np.abs(np.stack(_frame(flat, up)[:2])) @ np.ptp(bounds, axis=1)
        return float(width), float(height)

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


def _frame(flat: bool, up: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(3,) unit vectors to the right, upwards in the picture, and towards the eye."""
    if flat:
        right, above, near = np.eye(3)
        return right, above, near
    eye = np.zeros(3)
    eye[[(up + 1) % 3, (up + 2) % 3, up]] = EYE
    near = eye / np.linalg.norm(eye)
    right = np.cross(np.eye(3)[up], near)
    right /= np.linalg.norm(right)
    return right, np.cross(near, right), near
