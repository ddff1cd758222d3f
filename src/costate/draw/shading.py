"""Light: a sun with soft shadows, a sky, and a ground with a grid that fades into the background."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from costate.core.arrays import Array
from costate.draw.camera import Camera
from costate.draw.raster import barycentric, rasterize
from costate.draw.triangles import Triangles

SHADOW_BLUR = 0.006
"""Half-width of the edge of a shadow on the ground, as a part of the shadow map's width."""


@dataclass(frozen=True)
class Theme:
    """Colours of a picture, sRGB in [0, 1]."""

    sky: tuple[float, float, float]
    """Colour at the top of the picture."""
    horizon: tuple[float, float, float]
    ground: tuple[float, float, float]
    line: tuple[float, float, float]
    """Colour of the grid."""
    shadow: float = 0.55
    """Brightness of the ground in full shadow: 0 black, 1 as in the light."""


THEMES: dict[str, Theme] = {
    "light": Theme((0.80, 0.86, 0.93), (0.96, 0.97, 0.98), (0.90, 0.91, 0.92), (0.72, 0.75, 0.79)),
    "dark": Theme((0.07, 0.09, 0.12), (0.13, 0.15, 0.18), (0.16, 0.18, 0.21), (0.28, 0.32, 0.37), 0.45),
}

SUN = np.array([0.35, -0.45, 0.82]) / np.linalg.norm([0.35, -0.45, 0.82])
"""Towards the sun."""


SAMPLES = 2
"""Samples per pixel and direction."""


def picture(
    soup: Triangles,
    camera: Camera,
    size: tuple[int, int],
    ground: float | None,
    theme: Theme,
    above: Triangles | None = None,
) -> Array:
    """Return linear RGB, shape (height, width, 3), of size (width, height). Triangles `above` are drawn over everything else."""
    shadow = _shadow_map(soup, ground, int(np.clip(max(size), 256, 1024)))
    # The grid smooths its own lines and the shadow is soft: one sample per pixel is enough behind the robots.
    image = _backdrop(camera, camera.rays(*size), ground, theme, shadow).repeat(SAMPLES, 0).repeat(SAMPLES, 1)
    _paint(image, soup, camera, ground, shadow)
    if above is not None:
        _paint(image, above, camera, ground, shadow)
    return image.reshape(size[1], SAMPLES, size[0], SAMPLES, 3).mean((1, 3))


def _paint(image: Array, soup: Triangles, camera: Camera, ground: float | None, shadow: _Shadow) -> None:
    """Draw triangles into an image (height, width, 3)."""
    height, width = image.shape[:2]
    screen = camera.project(soup.corners, width, height)
    shown = np.flatnonzero(_front(screen) & (screen[..., 2] > 0.01).all(1))
    _, face = rasterize(
        np.stack([*np.moveaxis(screen[shown, :, :2], -1, 0), -1 / screen[shown, :, 2]], -1), width, height
    )
    rows, columns = np.nonzero(face >= 0)
    tri = shown[face[rows, columns]]
    here = _surface(soup, screen, tri, columns + 0.5, rows + 0.5)
    if ground is not None and camera.position[2] > ground:
        over = here.points[:, 2] >= ground - 1e-3
        rows, columns, tri, here = rows[over], columns[over], tri[over], here.where(over)
    lit = _shade(here, soup.colors[tri, :3], camera, shadow)
    # Glass is a screen of holes finer than a final pixel: four levels with two by two samples per pixel.
    solid = ((columns % 2) + 2 * ((rows + columns) % 2) + 0.5) / 4 < soup.colors[tri, 3]
    image[rows[solid], columns[solid]] = lit[solid]


def _front(screen: Array) -> np.ndarray:
    a, b, c = screen[:, 0, :2], screen[:, 1, :2], screen[:, 2, :2]
    # Counter-clockwise from outside is clockwise in pixels, whose y points down.
    return (b[:, 0] - a[:, 0]) * (c[:, 1] - a[:, 1]) - (c[:, 0] - a[:, 0]) * (b[:, 1] - a[:, 1]) < 0


@dataclass(frozen=True, eq=False)
class _Surface:
    points: Array
    normals: Array

    def where(self, mask: np.ndarray) -> _Surface:
        return _Surface(self.points[mask], self.normals[mask])


def _surface(soup: Triangles, screen: Array, tri: np.ndarray, x: Array, y: Array) -> _Surface:
    """Return points and normals under pixels."""
    weights = (
        barycentric(screen[tri].astype(np.float32), x, y) / screen[tri, :, 2]
    )  # straight in space, not on the screen
    weights /= weights.sum(1, keepdims=True)
    points = np.einsum("nc,nci->ni", weights, soup.corners[tri])
    normals = np.einsum("nc,nci->ni", weights, soup.normals[tri])
    normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-9)
    return _Surface(points, normals)


def _shade(here: _Surface, colors: Array, camera: Camera, shadow: _Shadow) -> Array:
    view = camera.position - here.points
    view /= np.linalg.norm(view, axis=1, keepdims=True)
    n = here.normals
    facing = np.clip(n @ SUN, 0, 1)
    light = np.where(facing > 0, shadow.lit(here.points + 0.004 * n), 0.0) * facing
    sky = 0.5 + 0.5 * n[:, 2]
    half = view + SUN
    half /= np.linalg.norm(half, axis=1, keepdims=True)
    gloss = np.clip(np.einsum("ni,ni->n", n, half), 0, 1) ** 40 * light
    rim = (1 - np.clip(np.einsum("ni,ni->n", n, view), 0, 1)) ** 3
    base = linear(colors)
    diffuse = 0.78 * light[:, None] * np.array([1.0, 0.97, 0.92])
    ambient = (0.16 + 0.28 * sky)[:, None] * np.array([0.92, 0.97, 1.05])
    return base * (diffuse + ambient) + 0.18 * gloss[:, None] + 0.06 * (rim * sky)[:, None]


# The ground.


def _backdrop(camera: Camera, rays: Array, ground: float | None, theme: Theme, shadow: _Shadow) -> Array:
    height, width = rays.shape[:2]
    up = np.linspace(1, 0, height, dtype=np.float32)[:, None, None]
    image = np.broadcast_to(linear(theme.horizon) * (1 - up) + linear(theme.sky) * up, (height, width, 3)).copy()
    if ground is None or camera.position[2] <= ground:
        return image
    down = rays[..., 2] < -1e-3
    ray = rays[down]
    reach = np.float32(ground - camera.position[2]) / ray[:, 2]
    points = np.asarray(camera.position, np.float32) + reach[:, None] * ray
    far = float(np.linalg.norm(camera.position - camera.target))
    fog = np.exp(-((reach / np.float32(3.5 * far)) ** 2))
    pixel = reach * np.float32(2 * np.tan(camera.fov / 2) / height)
    line = _grid(points, pixel, ray, far)[:, None]
    dark = 1 - np.float32(1 - theme.shadow) * (1 - shadow.ground_light(points))
    color = (linear(theme.ground) * (1 - line) + linear(theme.line) * line) * dark[:, None]
    image[down] += fog[:, None] * (color - image[down])
    return image


def _grid(points: Array, pixel: Array, ray: Array, far: float) -> Array:
    """Return how much of a pixel is covered by a line; there is one every step, and fainter ones between.

    pixel: its width where its ray meets the ground [m]. far: distance of the camera from what it looks at [m].
    """
    step = np.float32(10.0 ** np.floor(np.log10(far * 0.6)))
    slant = np.abs(ray[:, 2]) / np.linalg.norm(ray, axis=1)
    thickness = np.float32(0.0009 * far)
    width = np.maximum(thickness, np.float32(0.6) * pixel / np.maximum(slant, np.float32(0.05)))
    covered = np.zeros(len(points), np.float32)
    for spacing, strength in ((step, np.float32(0.9)), (step / 5, np.float32(0.25))):
        thin = strength * np.minimum(1, 2 * thickness / width) * np.clip(np.float32(1.5) - 4 * width / spacing, 0, 1)
        for axis in (0, 1):
            turn = points[:, axis] / spacing
            off = np.abs(turn - np.round(turn)) * spacing
            np.maximum(covered, np.clip(np.float32(1.2) - off / width, 0, 1) * thin, out=covered)
    return covered


# Shadows.


@dataclass(frozen=True, eq=False)
class _Shadow:
    """Depth of the scene seen from the sun, and its blurred outline for the ground."""

    axes: Array
    """Right, up and away from the sun, as rows."""
    middle: Array
    scale: float
    """Pixels per metre."""
    depth: Array
    """Square."""
    outline: Array

    @property
    def pixels(self) -> int:
        return len(self.depth)

    def _pixels(self, points: Array) -> Array:
        turn = np.diag([self.scale, self.scale, 1.0]) @ self.axes
        shift = np.array([self.pixels / 2, self.pixels / 2, 0.0]) - turn @ self.middle
        return points.astype(np.float32) @ turn.T.astype(np.float32) + shift.astype(np.float32)

    def lit(self, points: Array) -> Array:
        """Return how much of the sun points (n, 3) see, in [0, 1], by nine samples around each."""
        at = self._pixels(points)
        seen = np.zeros(len(points), np.float32)
        bias = 2.5 / self.scale
        for dx in (-1.3, 0.0, 1.3):
            for dy in (-1.3, 0.0, 1.3):
                x = np.clip(at[:, 0] + dx, 0, self.pixels - 1).astype(np.int32)
                y = np.clip(at[:, 1] + dy, 0, self.pixels - 1).astype(np.int32)
                seen += at[:, 2] < self.depth[y, x] + bias
        return seen / 9

    def ground_light(self, points: Array) -> Array:
        """Return how much of the sun points on the ground see."""
        at = self._pixels(points)
        x = np.clip(at[:, 0] - 0.5, 0, self.pixels - 1.001)
        y = np.clip(at[:, 1] - 0.5, 0, self.pixels - 1.001)
        i, j = x.astype(np.int32), y.astype(np.int32)
        u, v = x - i, y - j
        o = self.outline
        top = o[j, i] * (1 - u) + o[j, i + 1] * u
        return 1 - (top * (1 - v) + (o[j + 1, i] * (1 - u) + o[j + 1, i + 1] * u) * v)


def _shadow_map(soup: Triangles, ground: float | None, pixels: int) -> _Shadow:
    axes = Camera(SUN, np.zeros(3)).axes()
    opaque = soup.corners[soup.colors[:, 3] > 0.5]
    if ground is not None:
        opaque = opaque[opaque[:, :, 2].max(1) > ground]
    points = opaque.reshape(-1, 3) if len(opaque) else np.zeros((1, 3))
    flat = points @ axes.T
    low, high = flat.min(0), flat.max(0)
    middle = axes.T @ ((low + high) / 2)
    reach = max(float((high - low)[:2].max()) * 0.56, 0.05)
    scale = pixels / (2 * reach)
    local = (opaque - middle) @ axes.T
    local[..., :2] = pixels / 2 + scale * local[..., :2]
    depth, _ = rasterize(local, pixels, pixels)
    return _Shadow(axes, middle, scale, depth, _blur(np.isfinite(depth).astype(np.float32)))


def _blur(image: Array) -> Array:
    """Smooth an image by three passes of a running mean, which is nearly a Gaussian."""
    r = max(1, round(SHADOW_BLUR * len(image)))
    for axis in (0, 1):
        for _ in range(3):
            padding = [(r + 1, r) if k == axis else (0, 0) for k in range(2)]
            total = np.cumsum(np.pad(image, padding), axis=axis, dtype=np.float64)
            upper = np.take(total, np.arange(2 * r + 1, total.shape[axis]), axis)
            image = (upper - np.take(total, np.arange(total.shape[axis] - 2 * r - 1), axis)) / (2 * r + 1)
    return image.astype(np.float32)


# Colour spaces.


def linear(srgb: object) -> Array:
    """Convert sRGB in [0, 1] to linear light."""
    c = np.asarray(srgb, np.float32)
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4).astype(np.float32)


def encoded(light: Array) -> np.ndarray:
    """Convert linear light to sRGB bytes."""
    c = np.clip(light, 0, 1)
    return np.round(255 * np.where(c <= 0.0031308, 12.92 * c, 1.055 * c ** (1 / 2.4) - 0.055)).astype(np.uint8)
