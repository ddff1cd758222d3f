"""Robots and worlds as functions of JAX arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import torch

from costate.core.names import unknown
from costate.jax.function import as_arrays, function
from costate.jax.primitive import call
from costate.kernel import Kernel
from costate.physics import FUNCTIONS
from costate.robot import Robot
from costate.sim import World
from costate.sim.rollout import rollout_kernel, step_kernel

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


class JaxWorld:
    """A world whose steps and roll-outs take and return JAX arrays.

        w = costate.jax.world(world)
        after = w.step(state, control)                          # (..., nx)
        states = w.rollout(state, controls)                     # controls (T, ..., nu) -> (T + 1, ..., nx)

    Parameters of `World(parameters=...)` are given by name: params={"friction": 0.5}. A state that is not finite is an error, as
    the world says (`World(check=...)`).
    """

    def __init__(self, world: World):
        if world._inputs.learnt():
            raise ValueError(
                "the world has robots with learnable parameters (robot.learn), which are modules of torch; name them in "
                "World(parameters=[...]) instead, and give their values as params="
            )
        self.world = world
        self._says = "costate: a state is not finite after '{}'; cs.diagnose(world, ...) finds the cause"

    def step(self, state: Any, control: Any = None, params: Mapping[str, Any] | None = None) -> Any:
        """Return the state (..., nx) after one control step. control: (..., nu), default zero; params: parameter -> (..., n)."""
        kernel = self.world._kernel("step", self.world.setup, step_kernel)
        control = np.zeros(self.world.nu, np.float32) if control is None else control
        return self._call(kernel, [state, control], params)

    def rollout(self, state: Any, controls: Any, params: Mapping[str, Any] | None = None) -> Any:
        """Return states (T + 1, ..., nx) under controls (T, ..., nu)."""
        controls = jnp.asarray(controls) if not isinstance(controls, np.ndarray) else controls
        if controls.ndim < 2 or controls.shape[-1] != self.world.nu:
            raise ValueError(f"controls have shape {controls.shape}; expected (T, ..., {self.world.nu})")
        kernel = self.world._kernel(("rollout", 1), self.world.setup, lambda s: rollout_kernel(s, 1))
        rows = np.moveaxis(controls, 0, -2) if isinstance(controls, np.ndarray) else jnp.moveaxis(controls, 0, -2)
        return jnp.moveaxis(self._call(kernel.sized(len(controls)), [state, rows], params), -2, 0)

    def _call(self, kernel: Kernel, given: list[Any], params: Mapping[str, Any] | None) -> Any:
        told, setup = dict(params or {}), self.world.setup
        values = [told.pop(name, None) for name in setup.parameters]
        if told:
            raise ValueError(unknown("parameter of the world", next(iter(told)), setup.parameters))
        values = [
            np.asarray(setup.default(name), np.float32 if not _wide() else np.float64).reshape(-1) if x is None else x
            for name, x in zip(setup.parameters, values, strict=True)
        ]
        says = self._says.format(kernel.name) if self.world.check else ""
        return call(kernel, as_arrays(kernel.signature, [*given, *values]), says)[0]


def _wide() -> bool:
    return bool(jax.config.jax_enable_x64)  # pyright: ignore[reportAttributeAccessIssue]


def robot(robot: Robot) -> JaxRobot:
    """Return a robot whose functions take and return JAX arrays."""
    return JaxRobot(robot)


def world(world: World) -> JaxWorld:
    """Return a world whose steps and roll-outs take and return JAX arrays."""
    return JaxWorld(world)
