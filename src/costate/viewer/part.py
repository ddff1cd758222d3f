"""`view_part`: a part that grows, with a colour for a number at every node, on a page with a time slider."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from costate.continuum.mesh import HexMesh
from costate.continuum.toolpath import ToolPath
from costate.core.display import number
from costate.core.extras import needs
from costate.draw.part.colors import table
from costate.draw.part.growth import Growth, growth_of
from costate.viewer.playback import Playback
from costate.viewer.server import PORT, add_ground, look, start
from costate.viewer.view import Page

if TYPE_CHECKING:
    import viser

SPEEDS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
SECONDS = 15.0
"""Time that playing takes at most at the speed chosen first, if there is one that is fast enough [s]."""
GLOW = 0.12
"""Share of the colours that does not depend on light."""


class PartPlayer(Playback):
    """Plays the history of a part on a page."""

    def __init__(self, server: viser.ViserServer, growth: Growth, title: str, dark: bool = False):
        super().__init__(server, growth.times)
        self.growth = growth
        duration = float(growth.times[-1] - growth.times[0])
        self.speed = next((s for s in SPEEDS if duration / s <= SECONDS), SPEEDS[-1])
        add_ground(server, growth.metre * float(growth.box[0][2]), growth.metre * growth.size, dark)
        look(server, growth.metre * growth.outline)
        with server.gui.add_folder("history"):
            self.controls(SPEEDS)
            _scale(server, growth, title)
        self._part: Any = None
        self._laser: Any = None
        self.start()

    def draw(self, frame: int) -> None:
        self._draw_part(frame)
        spots, on = self.growth.spots
        if self._laser is None:
            self._laser = self.server.scene.add_icosphere(
                "/laser", 0.012 * self.growth.metre * self.growth.size, (255, 60, 40)
            )
        self._laser.position = tuple(map(float, self.growth.metre * spots[frame]))
        self._laser.visible = bool(on[frame])

    def _draw_part(self, frame: int) -> None:
        """Send the faces that are seen; their corners name places on the scale of colours."""
        from trimesh import Trimesh
        from trimesh.visual import TextureVisuals

        growth = self.growth
        quads = growth.mesh.surface(growth.times[frame])
        corners = growth.metre * growth.mesh.nodes[quads]
        normals = np.cross(corners[:, 2] - corners[:, 0], corners[:, 3] - corners[:, 1])
        low, high = growth.limits
        share = np.clip((growth.values[frame][quads.ravel()] - low) / (high - low), 0.0, 1.0)
        place = np.stack([(0.5 + (len(table()) - 1) * share) / len(table()), np.full(len(share), 0.5)], 1)
        solid = Trimesh(
            corners.reshape(-1, 3),
            (4 * np.arange(len(quads))[:, None] + np.array([[0, 1, 2, 0, 2, 3]])).reshape(-1, 3),
            vertex_normals=np.repeat(normals / np.linalg.norm(normals, axis=1, keepdims=True), 4, 0),
            visual=TextureVisuals(place, material=self._material),
            process=False,
        )
        data: Any = solid.export(file_type="glb", include_normals=True)
        if self._part is None:
            self._part = self.server.scene.add_glb("/part", data, receive_shadow=False)
        else:
            self._part.glb_data = data

    @cached_property
    def _material(self) -> Any:
        """Colours that shine a little of their own: they are numbers here, which light should not change much."""
        from PIL import Image
        from trimesh.visual.material import PBRMaterial

        colors = Image.fromarray(table()[None].copy())
        own = [GLOW] * 3
        return PBRMaterial(
            baseColorTexture=colors, emissiveTexture=colors, emissiveFactor=own, metallicFactor=0.0, roughnessFactor=1.0
        )


def view_part(
    mesh: HexMesh,
    times: Any,
    values: Any,
    *,
    title: str = "temperature",
    unit: str = "K",
    limits: tuple[float, float] | None = None,
    path: ToolPath | None = None,
    port: int = PORT,
    dark: bool = False,
    block: bool | None = None,
) -> Page:
    """Look at a part that grows in the browser, on this machine.

    Args:
        mesh: Elements in the order of their births.
        times: Times of the frames (K,) [s].
        values: Numbers at the nodes (K, N).
        title: What the numbers are.
        unit: Unit of the numbers.
        limits: Numbers at the ends of the scale of colours; None: the least and the greatest of nodes that are born.
        path: Path of the laser, whose spot is drawn where it is on.
        port: The next free one is taken, and said, if it is not free.
        dark: Whether the page is dark.
        block: Wait until interrupted; None: unless Python is interactive.
    """
    try:
        import trimesh  # noqa: F401
    except ImportError as error:
        raise ImportError(needs("the viewer", "trimesh", "view")) from error
    growth = growth_of(mesh, times, values, unit=unit, limits=limits, path=path)
    server = start(port, f"costate: {title} of a part", dark)
    try:
        content = PartPlayer(server, growth, title, dark)
    except BaseException:
        server.stop()
        raise
    return Page(server, content)._greet(block)


def _scale(server: viser.ViserServer, growth: Growth, title: str) -> None:
    """Add the scale of colours, from its lower to its upper end."""
    low, high = growth.limits
    server.gui.add_image(np.repeat(np.repeat(table()[None], 14, 0), 2, 1), format="png")
    server.gui.add_markdown(f"{title}: {number(low, 4)} to {number(high, 4)} {growth.unit}")
