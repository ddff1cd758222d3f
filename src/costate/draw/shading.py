"""Pictures: bodies in the light of a sun and a sky, on a ground with a grid that fades into the background."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from costate.core.arrays import Array
from costate.draw.backdrop import Backdrop, Theme, backdrop
from costate.draw.camera import Camera
from costate.draw.color import ENCODED, linear
from costate.draw.compiled.corners import project
from costate.draw.compiled.light import SAMPLES, shade
from costate.draw.raster import Buffers
from costate.draw.shadow import shadow_map
from costate.draw.triangles import Triangles, joined


@dataclass(frozen=True, eq=False)
class Painter:
    """Draws pictures from one camera: what they have in common is computed once."""

    camera: Camera
    size: tuple[int, int]
    """Width and height [pixels]."""
    ground: float | None
    """Height of the ground [m]; None: there is none."""
    theme: Theme
    behind: Backdrop

    def picture(self, soup: Triangles, above: Triangles | None = None) -> np.ndarray:
        """Return RGB bytes (height, width, 3). Triangles `above` are drawn over everything else, and cast no shadow."""
        width, height = self.size
        shadow = shadow_map(soup, self.ground, 2 * (int(np.clip(max(self.size), 256, 1024)) // 2))
        first = len(soup.faces)
        every = joined([soup, above]) if above is not None and len(above.faces) else soup
        screen = self._project(every.points, SAMPLES * width, SAMPLES * height)
        samples = Buffers(SAMPLES * width, SAMPLES * height)
        alpha = np.ascontiguousarray(every.colors[:, 3])
        samples.draw(screen, every.faces[:first], every.owner, alpha)
        if first < len(every.faces):
            samples.depth.fill(np.inf)
            samples.draw(screen, every.faces, every.owner, alpha, first=first)
        image = np.empty((height, width, 3), np.uint8)
        shade(
            face=samples.face,
            faces=every.faces,
            owner=every.owner,
            screen=screen,
            points=every.points,
            normals=every.normals,
            colors=np.concatenate([linear(every.colors[:, :3]), every.colors[:, 3:]], 1),
            behind=self.behind.behind,
            floor=self.behind.floor,
            place=self.behind.place,
            depth=shadow.depth,
            outline=shadow.outline,
            sun=shadow.sun,
            setting=self._setting(),
            table=ENCODED,
            width=width,
            height=height,
            pixels=len(shadow.depth),
            image=image,
        )
        return image

    def _project(self, points: Array, width: int, height: int) -> Array:
        right, up, forward = self.camera.axes()
        focal = height / 2 / np.tan(self.camera.fov / 2)
        camera = np.stack([focal * right, focal * up, forward, np.asarray(self.camera.position, float)])
        screen = np.empty_like(points)
        project(points=points, camera=camera, count=len(points), middle_x=width / 2, middle_y=height / 2, screen=screen)
        return screen

    def _setting(self) -> Array:
        """Return position of the camera, height below which bodies are hidden, and brightness of shadows."""
        position = np.asarray(self.camera.position, float)
        hides = self.ground is not None and position[2] > self.ground
        return np.array([*position, self.ground if hides else -np.inf, self.theme.shadow], np.float32)


def painter(camera: Camera, size: tuple[int, int], ground: float | None, theme: Theme) -> Painter:
    """Return a painter of pictures of a size (width, height)."""
    return Painter(camera, size, ground, theme, backdrop(camera, size, ground, theme))
