"""`view_particles`: particles over time, with a colour for a number of each, on a page with a time slider."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from costate.core.display import number
from costate.draw.part.colors import table
from costate.draw.particles.cloud import Cloud, cloud_of
from costate.viewer.playback import Playback
from costate.viewer.server import PORT, add_ground, look, start
from costate.viewer.view import Page

if TYPE_CHECKING:
    import viser


class ParticlePlayer(Playback):
    """Plays the motion of particles on a page."""

    def __init__(self, server: viser.ViserServer, cloud: Cloud, title: str, dark: bool = False):
        super().__init__(server, cloud.times)
        self.cloud = cloud
        add_ground(server, cloud.metre * float(cloud.box[0][2]), cloud.metre * cloud.size, dark)
        look(server, cloud.metre * cloud.corners)
        with server.gui.add_folder("motion"):
            self.controls()
            if not cloud.plain:
                low, high = cloud.limits
                server.gui.add_image(np.repeat(np.repeat(table()[None], 14, 0), 2, 1), format="png")
                server.gui.add_markdown(f"{title}: {number(low, 4)} to {number(high, 4)} {cloud.unit}")
        self._points: Any = None
        self.start()

    def draw(self, frame: int) -> None:
        """Send the points, and their colours if they change."""
        cloud = self.cloud
        points = (cloud.metre * cloud.at(frame)).astype(np.float32)
        if self._points is None:
            size = 2 * cloud.metre * cloud.radius
            self._points = self.server.scene.add_point_cloud(
                "/particles", points, cloud.colors(frame), point_size=size, point_shape="circle", precision="float32"
            )
            return
        self._points.points = points
        if len(cloud.values) > 1:
            self._points.colors = cloud.colors(frame)


def view_particles(
    times: Any,
    positions: Any,
    values: Any = None,
    *,
    title: str = "",
    unit: str = "",
    limits: tuple[float, float] | None = None,
    radius: float | None = None,
    port: int = PORT,
    dark: bool = False,
    block: bool | None = None,
) -> Page:
    """Look at particles over time in the browser, on this machine.

    Args:
        times: Times of the frames (K,) [s].
        positions: Positions (K, N, 2) or (K, N, 3) [m]; the second axis of flat ones points upwards.
        values: Numbers or kinds (N,) or (K, N); None: all particles have the same colour.
        title: What the numbers are.
        unit: Unit of the numbers.
        limits: Numbers at the ends of the scale of colours; None: the least and the greatest.
        radius: Radius of a particle [m]; None: one with which they fill the box around them at the beginning.
        port: The next free one is taken, and said, if it is not free.
        dark: Whether the page is dark.
        block: Wait until interrupted; None: unless Python is interactive.
    """
    cloud = cloud_of(times, positions, values, radius=radius, unit=unit, limits=limits)
    server = start(port, f"costate: {cloud.count} particles", dark)
    try:
        content = ParticlePlayer(server, cloud, title, dark)
    except BaseException:
        server.stop()
        raise
    return Page(server, content)._greet(block)
