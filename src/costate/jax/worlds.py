"""Worlds as functions of JAX arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from costate.core.names import unknown
from costate.jax.function import as_arrays
from costate.jax.primitive import call
from costate.jax.robots import JaxPose
from costate.kernel import Kernel
from costate.sim import World
from costate.sim.linearize import linearize
from costate.sim.looking import contact_kernel, energy_kernel, gap_kernel, pose_kernel
from costate.sim.rollout import rollout_kernel, step_kernel
from costate.sim.setup import Setup

Given = Mapping[str, Any] | None
"""Values by name."""


class JaxContacts(NamedTuple):
    """The contact points of a world and the forces of the next substep, in the order of `world.contacts(...).pairs`."""

    points: Any
    """Contact points, world axes (..., n, 3) [m]."""
    normals: Any
    """Normals from the second link to the first (..., n, 3)."""
    gaps: Any
    """Gaps (..., n) [m], negative where shapes overlap."""
    forces: Any
    """Normal forces (..., n) [N]."""
    friction: Any
    """Friction forces on the first link, world axes (..., n, 3) [N]."""
    torques: Any
    """Torques of friction on the first link, world axes (..., n, 3) [N m]."""
    residual: Any
    """Residual that the solver left (...)."""


class JaxWorld:
    """A world whose steps and roll-outs take and return JAX arrays, with the names of `cs.World`.

        w = costate.jax.world(world)
        after = w.step(state, control)                          # (..., nx)
        states = w.rollout(state, controls)                     # controls (T, ..., nu) -> (T + 1, ..., nx)

    Parameters of `World(parameters=...)` are given by name: params={"friction": 0.5}; wrenches by link: wrenches={"ball": w},
    (..., 6), force [N] at the link's origin and torque [N m], world axes. A state that is not finite is an error, as the world
    says (`World(check=...)`).
    """

    def __init__(self, world: World):
        if world._inputs.learnt():
            raise ValueError(
                "the world has robots with learnable parameters (robot.learn), which are modules of torch; name them in "
                "World(parameters=[...]) instead, and give their values as params="
            )
        self.world = world
        self._says = "costate: a state is not finite after '{}'; cs.diagnose(world, ...) finds the cause"

    def step(self, state: Any, control: Any = None, params: Given = None, wrenches: Given = None) -> Any:
        """Return the state (..., nx) after one control step. control: (..., nu), default zero; params: parameter -> (..., n);
        wrenches: link -> (..., 6)."""
        kernel = self._kernel("step", step_kernel, wrenches)
        return self._call(kernel, self._arguments(state, control, params, wrenches), checked=True)[0]

    def rollout(self, state: Any, controls: Any, params: Given = None, wrenches: Given = None) -> Any:
        """Return states (T + 1, ..., nx) under controls (T, ..., nu). wrenches: link -> (T, ..., 6)."""
        sequences = {"controls": (controls, self.world.nu)}
        sequences |= {f"wrenches of '{link}'": (w, 6) for link, w in (wrenches or {}).items()}
        rows = [_rows(name, *given) for name, given in sequences.items()]
        lengths = {name: x.shape[-2] for name, x in zip(sequences, rows, strict=True)}
        if len(set(lengths.values())) > 1:
            raise ValueError(
                f"a roll-out has one row for each step; {', '.join(f'{k}: {n}' for k, n in lengths.items())}"
            )
        kernel = self._kernel(("rollout", 1), lambda s: rollout_kernel(s, 1), wrenches).sized(lengths["controls"])
        given = [state, rows[0], *self._values(params), *rows[1:]]
        return jnp.moveaxis(self._call(kernel, given, checked=True)[0], -2, 0)

    def linearize(
        self, state: Any, control: Any = None, params: Given = None, wrenches: Given = None
    ) -> tuple[Any, Any]:
        """Return A (..., ndx, ndx) and B (..., ndx, nu) of the step in the tangent space: d x' = A d x + B d u."""
        kernel, ndx = self._kernel("linearize", linearize, wrenches), self.world.ndx
        J, _ = self._call(kernel, self._arguments(state, control, params, wrenches), checked=True)
        return J[..., :ndx], J[..., ndx:]

    def contacts(self, state: Any, control: Any = None, params: Given = None, wrenches: Given = None) -> JaxContacts:
        """Return all contact points, and the forces of the next substep."""
        self.world._some_contacts()
        kernel = self._kernel("contacts", contact_kernel, wrenches)
        found = JaxContacts(*self._call(kernel, self._arguments(state, control, params, wrenches)))
        return found._replace(residual=found.residual[..., 0])

    def gaps(self, state: Any, params: Given = None) -> Any:
        """Return distances of all contact points (..., n) [m], negative where shapes overlap."""
        self.world._some_contacts()
        return self._call(self._kernel("gaps", gap_kernel), [state, *self._values(params)])[0]

    def energy(self, state: Any, params: Given = None) -> Any:
        """Return kinetic and potential energy (...) [J]."""
        return self._call(self._kernel("energy", energy_kernel), [state, *self._values(params)])[0][..., 0]

    def link_pose(self, state: Any, link: str, params: Given = None) -> JaxPose:
        """Return the pose of a link or body in the world."""
        name = self.world._inputs.link(link)
        kernel = self._kernel(("link_pose", name), lambda s: pose_kernel(s, name))
        return JaxPose(*self._call(kernel, [state, *self._values(params)])[:2])

    def _kernel(self, kind: Any, make: Callable[[Setup], Kernel], wrenches: Given = None) -> Kernel:
        return self.world._kernel(kind, self.world._inputs.setup_for(dict(wrenches or {})), make)

    def _arguments(self, state: Any, control: Any, params: Given, wrenches: Given) -> list[Any]:
        control = np.zeros(self.world.nu, np.float32) if control is None else control
        return [state, control, *self._values(params), *(wrenches or {}).values()]

    def _values(self, params: Given) -> list[Any]:
        """Return the values of all parameters: those given, and the world's own."""
        told, setup = dict(params or {}), self.world.setup
        values = [told.pop(name, None) for name in setup.parameters]
        if told:
            raise ValueError(unknown("parameter of the world", next(iter(told)), setup.parameters))
        return [
            np.asarray(setup.default(name), np.float32 if not _wide() else np.float64).reshape(-1) if x is None else x
            for name, x in zip(setup.parameters, values, strict=True)
        ]

    def _call(self, kernel: Kernel, given: list[Any], checked: bool = False) -> list[Any]:
        says = self._says.format(kernel.name) if checked and self.world.check else ""
        return call(kernel, as_arrays(kernel.signature, given), says)


def _rows(name: str, given: Any, size: int) -> Any:
    """Return a sequence (T, ..., n) as kernels take it, (..., T, n)."""
    given = jnp.asarray(given) if not isinstance(given, np.ndarray) else given
    if given.ndim < 2 or given.shape[-1] != size:
        raise ValueError(f"{name} have shape {given.shape}; expected (T, ..., {size})")
    return np.moveaxis(given, 0, -2) if isinstance(given, np.ndarray) else jnp.moveaxis(given, 0, -2)


def _wide() -> bool:
    return bool(jax.config.jax_enable_x64)  # pyright: ignore[reportAttributeAccessIssue]


def world(world: World) -> JaxWorld:
    """Return a world whose steps and roll-outs take and return JAX arrays."""
    return JaxWorld(world)
