"""Links of a world, which push soft bodies and are pushed back, and tools that move as they are told."""

from costate.continuum.mpm.robots.pusher import Pusher, Tool
from costate.continuum.mpm.robots.tools import SoftTools, tool_rows
from costate.continuum.mpm.robots.world import SoftMotion, SoftWorld

__all__ = ["Pusher", "SoftMotion", "SoftTools", "SoftWorld", "Tool", "tool_rows"]
