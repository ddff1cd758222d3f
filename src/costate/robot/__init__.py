"""Robots: the PyTorch face of models and physics."""

from costate.robot.pose import Pose
from costate.robot.robot import Robot, load_robot

__all__ = ["Pose", "Robot", "load_robot"]
