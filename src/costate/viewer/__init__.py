"""The 3D viewer in the browser: robots with sliders, motions to play, worlds that run while they are pushed."""

from costate.viewer.live import Live
from costate.viewer.player import Player
from costate.viewer.robots import Robots
from costate.viewer.view import view

__all__ = ["Live", "Player", "Robots", "view"]
