"""Triangles to pixels: a depth buffer and the nearest face of each pixel."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from costate.core.arrays import Array
from costate.draw.compiled.faces import fill


class Buffers:
    """Depth and nearest face of each pixel, into which triangles are drawn."""

    def __init__(self, width: int, height: int):
        self.width, self.height = width, height
        self.depth = np.full((height, width), np.inf, np.float32)
        self.face: NDArray[np.int32] = np.full((height, width), -1, np.int32)

    def draw(
        self, screen: Array, faces: Array, owner: Array, alpha: Array, *, first: int = 0, two_sided: bool = False
    ) -> None:
        """Draw faces (faces, 3) from number `first` on.

        screen: pixel x, pixel y and depth of each corner, linear on the screen, float32, (corners, 3). Pixel (0, 0) has its
        middle at (0.5, 0.5). Faces with a corner that is not a number are left out.
        owner, alpha: the owner of each corner, and the opacity of each owner.
        """
        fill(
            corners=screen,
            faces=faces,
            owner=owner,
            alpha=alpha,
            first=first,
            end=len(faces),
            two_sided=two_sided,
            width=self.width,
            height=self.height,
            depth=self.depth,
            face=self.face,
        )


def rasterize(corners: Array, width: int, height: int) -> tuple[Array, NDArray[np.int32]]:
    """Return depth (height, width), inf where there is nothing, and index of the nearest face, -1 where there is none.

    corners: pixel x, pixel y and depth of each corner, shape (faces, 3, 3).
    """
    screen = np.ascontiguousarray(corners, np.float32).reshape(-1, 3)
    screen = np.where(np.isfinite(screen).all(1, keepdims=True), screen, np.float32(np.nan))
    faces = np.arange(len(screen), dtype=np.int32).reshape(-1, 3)
    found = Buffers(width, height)
    found.draw(screen, faces, np.zeros(len(screen), np.int32), np.ones(1, np.float32), two_sided=True)
    return found.depth, found.face
