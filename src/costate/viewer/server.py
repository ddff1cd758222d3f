"""The page's server: on this machine only, on a port that is free."""

from __future__ import annotations

import io
import socket
from contextlib import redirect_stdout
from typing import TYPE_CHECKING

import numpy as np

from costate.core.arrays import Array as Floats
from costate.core.extras import needs
from costate.draw.camera import framing_points
from costate.draw.shadow import SUN
from costate.viewer.limits import bound
from costate.viewer.origin import only_from_here

if TYPE_CHECKING:
    import viser

HOST = "127.0.0.1"
PORT = 8080
PANEL = 0.35
"""Width of the panel, by the height of a window."""
ROOM = 0.25
"""Distance that the camera steps back, as a part of the least one: robots move."""
TRIES = 100
"""Number of ports after a taken one that are tried."""


def free_port(port: int = PORT) -> int:
    """Return the port, or the next one that is free, which is then said."""
    for tried in range(port, min(port + TRIES, 65536)):
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, tried))
            except OSError:
                continue
        if tried != port:
            print(f"port {port} is taken; using {tried}", flush=True)
        return tried
    raise OSError(f"no port from {port} to {port + TRIES - 1} is free; name another one")


def start(port: int = PORT, label: str = "costate", dark: bool = False) -> viser.ViserServer:
    """Return a server with an empty, lit scene. label: title of the page and of its panel."""
    try:
        import viser
    except ImportError as error:
        raise ImportError(needs("the viewer", "viser", "view")) from error
    port = free_port(port)
    with redirect_stdout(io.StringIO()), only_from_here(port, label):  # its own greeting
        server = viser.ViserServer(host=HOST, port=port, label=label, verbose=False)
    bound(server)
    server.gui.configure_theme(dark_mode=dark, show_logo=False, show_share_button=False, brand_color=(42, 99, 184))
    server.scene.set_up_direction("+z")
    _light(server)
    return server


def _light(server: viser.ViserServer) -> None:
    """Add the light of the pictures: a sun with shadows, and a sky."""
    server.scene.configure_environment_map(None)
    server.scene.configure_default_lights(enabled=False)
    server.scene.add_light_hemisphere("/sky", sky_color=(235, 245, 255), ground_color=(150, 148, 145), intensity=1.9)
    sun = tuple(float(10 * x) for x in SUN)
    server.scene.add_light_directional(
        "/sun",
        color=(255, 248, 236),
        intensity=2.0,
        cast_shadow=True,
        position=sun,  # pyright: ignore
    )


def add_ground(server: viser.ViserServer, height: float, extent: float, dark: bool = False) -> None:
    """Add a grid that fades, with squares that fit what stands on it."""
    step = 10.0 ** np.floor(np.log10(max(extent, 1e-3)))
    plane, line, section = (
        ((38, 43, 50), (58, 66, 76), (84, 95, 109)) if dark else ((238, 240, 242), (216, 220, 226), (176, 184, 194))
    )
    server.scene.add_grid(
        "/ground",
        infinite_grid=True,
        cell_size=step / 5,
        section_size=step,
        cell_color=line,
        section_color=section,
        fade_distance=8 * extent,
        shadow_opacity=0.35,
        plane_color=plane,
        plane_opacity=1.0,
        position=(0.0, 0.0, height - 1e-3),
    )


def look(server: viser.ViserServer, points: Floats, azimuth: float = -55.0) -> None:
    """Set the camera of new tabs: they see all points (n, 3), beside the panel, which covers the right of the page."""
    camera = framing_points(points, 1.0, azimuth)
    far = camera.position + ROOM * (camera.position - camera.target)
    right, _, _ = camera.axes()
    distance = float(np.linalg.norm(far - camera.target))
    aside = PANEL * distance * np.tan(camera.fov / 2) * right
    server.initial_camera.position = tuple(map(float, far + aside))  # pyright: ignore[reportAttributeAccessIssue]
    server.initial_camera.look_at = tuple(map(float, camera.target + aside))  # pyright: ignore[reportAttributeAccessIssue]
    server.initial_camera.fov = float(camera.fov)
