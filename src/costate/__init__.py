"""Costate: exact, checked gradients of robot physics, compiled.

Importing this package imports nothing else. Each public name is loaded on first use, so that the worker processes of
the compiler and `costate --help` start without waiting for torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from costate import continuum as continuum
    from costate import envs as envs
    from costate import export as export
    from costate import kernel as kernel
    from costate import learn as learn
    from costate import model as model
    from costate import optimise as optimise
    from costate.audit.gradcheck import gradcheck as gradcheck
    from costate.audit.smoothness import diagnose as diagnose
    from costate.draw.render import render as render
    from costate.identify import identify as identify
    from costate.identify.excite import excite as excite
    from costate.model import Transform as Transform
    from costate.robot import Pose as Pose
    from costate.robot import Robot as Robot
    from costate.robot import load_robot as load_robot
    from costate.robot import params as params
    from costate.robot import residual as residual
    from costate.sim import PGS as PGS
    from costate.sim import Affine as Affine
    from costate.sim import Body as Body
    from costate.sim import Compliant as Compliant
    from costate.sim import Connect as Connect
    from costate.sim import ContactModel as ContactModel
    from costate.sim import Couple as Couple
    from costate.sim import DCMotor as DCMotor
    from costate.sim import Distance as Distance
    from costate.sim import FixedTendon as FixedTendon
    from costate.sim import General as General
    from costate.sim import Hard as Hard
    from costate.sim import Lag as Lag
    from costate.sim import Latency as Latency
    from costate.sim import Motor as Motor
    from costate.sim import Muscle as Muscle
    from costate.sim import Newton as Newton
    from costate.sim import PositionServo as PositionServo
    from costate.sim import Pulley as Pulley
    from costate.sim import SmoothContact as SmoothContact
    from costate.sim import SpatialTendon as SpatialTendon
    from costate.sim import Static as Static
    from costate.sim import Torque as Torque
    from costate.sim import VelocityServo as VelocityServo
    from costate.sim import Via as Via
    from costate.sim import Weld as Weld
    from costate.sim import World as World
    from costate.sim import Wrap as Wrap
    from costate.sim import sensors as sensors
    from costate.sim.files.load import load_world as load_world
    from costate.sim.scene import shapes as shapes
    from costate.train.controller import load_policy as load_policy
    from costate.viewer.view import view as view

__version__ = "0.1.0"

# Public name -> where it lives: "package" for the package itself, "package:attribute" for something in it. A row here
# goes with a line under TYPE_CHECKING above, which is how type checkers and editors see the same name.
_LAZY: dict[str, str] = {
    "continuum": "costate.continuum",
    "envs": "costate.envs",
    "export": "costate.export",
    "kernel": "costate.kernel",
    "learn": "costate.learn",
    "optimise": "costate.optimise",
    "model": "costate.model",
    "render": "costate.draw.render:render",
    "gradcheck": "costate.audit.gradcheck:gradcheck",
    "diagnose": "costate.audit.smoothness:diagnose",
    "Pose": "costate.robot:Pose",
    "Robot": "costate.robot:Robot",
    "load_robot": "costate.robot:load_robot",
    "load_world": "costate.sim.files.load:load_world",
    "PGS": "costate.sim:PGS",
    "Hard": "costate.sim:Hard",
    "Affine": "costate.sim:Affine",
    "Body": "costate.sim:Body",
    "Compliant": "costate.sim:Compliant",
    "Connect": "costate.sim:Connect",
    "ContactModel": "costate.sim:ContactModel",
    "Couple": "costate.sim:Couple",
    "Distance": "costate.sim:Distance",
    "DCMotor": "costate.sim:DCMotor",
    "FixedTendon": "costate.sim:FixedTendon",
    "Lag": "costate.sim:Lag",
    "Latency": "costate.sim:Latency",
    "Motor": "costate.sim:Motor",
    "Newton": "costate.sim:Newton",
    "PositionServo": "costate.sim:PositionServo",
    "SmoothContact": "costate.sim:SmoothContact",
    "Static": "costate.sim:Static",
    "Torque": "costate.sim:Torque",
    "Transform": "costate.model:Transform",
    "VelocityServo": "costate.sim:VelocityServo",
    "Weld": "costate.sim:Weld",
    "World": "costate.sim:World",
    "General": "costate.sim:General",
    "Muscle": "costate.sim:Muscle",
    "Pulley": "costate.sim:Pulley",
    "SpatialTendon": "costate.sim:SpatialTendon",
    "Via": "costate.sim:Via",
    "Wrap": "costate.sim:Wrap",
    "sensors": "costate.sim.sensors",
    "shapes": "costate.sim.scene.shapes",
    "load_policy": "costate.train.controller:load_policy",
    "excite": "costate.identify.excite:excite",
    "identify": "costate.identify:identify",
    "params": "costate.robot.params",
    "residual": "costate.robot.residual",
    "view": "costate.viewer.view:view",
}

__all__ = ["__version__", *_LAZY]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> object:
    if name not in _LAZY:
        from costate.core.guesses import COSTATE
        from costate.core.names import MissingAttributeError

        raise MissingAttributeError("module 'costate'", name, COSTATE, __all__)
    module, _, attribute = _LAZY[name].partition(":")
    value = import_module(module)
    if attribute:
        value = getattr(value, attribute)
    globals()[name] = value  # the next access does not come here
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
