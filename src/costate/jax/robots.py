"""Robots as functions of JAX arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax.numpy as jnp
import torch

from costate.core.names import unknown
from costate.jax.function import function
from costate.kernel import Kernel
from costate.physics import FUNCTIONS
from costate.robot import Robot

MATRICES = ("jacobian", "jacobian_dot", "com_jacobian", "mass_matrix", "momentum_matrix")
"""Functions that return a matrix (..., rows, nv)."""


class JaxPose(NamedTuple):
    """The pose of a link, world axes."""

    position: Any
    """Position of its origin (..., 3) [m]."""
    rotation: Any
    """Rotation matrix (..., 3, 3)."""


class JaxRobot:
    """A robot whose functions take and return JAX arrays, with the names of `cs.Robot`.

        r = costate.jax.robot(cs.load_robot("ur5"))
        a = r.forward_dynamics(q, v, tau)                       # (..., nv)
        J = jax.jacobian(lambda q: r.forward_kinematics(q, link="tool0").position)(q)

    Learnable parameters of the robot are further arguments, by name; without them the values are those it has now.
    """

    def __init__(self, robot: Robot):
        self.robot = robot

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_") or name not in FUNCTIONS:
            raise AttributeError(unknown("function of a robot", name, FUNCTIONS))

        def run(*arrays: Any, link: str | None = None, **named: Any) -> Any:
            options = {} if link is None else {"link": self.robot._known(link)}
            kernel = self.robot.kernel(name, **options)
            found = function(kernel)(*arrays, **self._learnt(kernel, len(arrays), named))
            return self._shaped(name, link, found)

        run.__name__ = run.__qualname__ = name
        run.__doc__ = f"Compute `{name}` as `cs.Robot.{name}` does, of JAX arrays."
        return run

    def _shaped(self, name: str, link: str | None, found: Any) -> Any:
        """Return what a kernel gives in the form that a robot gives it."""
        if name == "forward_kinematics":
            poses = [JaxPose(*found[2 * k : 2 * k + 2]) for k in range(len(found) // 2)]
            return poses[0] if link is not None else dict(zip(self.robot.link_names, poses, strict=True))
        if name in ("link_velocity", "link_acceleration"):
            return jnp.concatenate(found, -1)
        if name in ("kinetic_energy", "potential_energy"):
            return found[..., 0]
        if FUNCTIONS[name].is_derivative and self.robot.nv == 1:
            return type(found)(*(x if field == "a" else x[..., None] for field, x in found._asdict().items()))
        return found[..., None] if name in MATRICES and self.robot.nv == 1 else found

    def _learnt(self, kernel: Kernel, given: int, named: Mapping[str, Any]) -> dict[str, Any]:
        """Return arguments by name: those given, and the present values of other learnable parameters that a kernel takes."""
        wanted = [s for s in kernel.signature.inputs[given:] if ":" in s.name and s.name not in named]
        if not wanted:
            return dict(named)
        if any(entry.wants for entry in self.robot.learnable()):
            raise ValueError(
                f"robot '{self.robot.name}' learns parameters that depend on its state, by modules of torch; give their values: "
                f"{', '.join(s.name for s in wanted)}"
            )
        q, v = (torch.zeros(n, dtype=torch.float64) for n in (self.robot.nq, self.robot.nv))
        values = self.robot.learnt.values(wanted, q, v)
        return {s.name: jnp.asarray(x.detach().numpy()) for s, x in zip(wanted, values, strict=True)} | dict(named)


def robot(robot: Robot) -> JaxRobot:
    """Return a robot whose functions take and return JAX arrays."""
    return JaxRobot(robot)
