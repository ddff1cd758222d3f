"""Worlds: robots, free bodies and scenery, stepped together, with gradients of everything."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from costate.kernel import Kernel
from costate.model import Transform
from costate.physics.integrate import neutral
from costate.robot import Robot
from costate.sim.actuators import Actuator, PositionServo, Torque, VelocityServo
from costate.sim.contact_models import PGS, Compliant, ContactModel
from costate.sim.scene import Body, PairRule, Static, make_scene
from costate.sim.setup import INTEGRATORS, Drive, Setup, Symbols
from costate.sim.step import contact_kernel, energy_kernel, linearization_kernel, rollout_kernel, step_kernel

Tensor = torch.Tensor


class SimulationError(RuntimeError):
    """A state that is not finite."""


@dataclass(frozen=True)
class Contacts:
    """Where shapes may touch, for a batch of states."""

    pairs: list[tuple[str, str]]
    """Links, or names of scenery, of each candidate."""
    points: Tensor
    """World axes [m], (..., n, 3)."""
    normals: Tensor
    """From the second link to the first, (..., n, 3)."""
    gaps: Tensor
    """[m], (..., n)."""
    forces: Tensor
    """Normal forces [N] during the next substep, (..., n)."""


class World:
    """A simulated world.

        world = World(robots=[cs.load_robot("laikago")], scenery=[ground()], dt=0.01, substeps=4)
        state = world.initial_state(batch=64)               # (64, nx): all q, then all v
        states = world.rollout(state, controls)             # (T, 64, nu) -> (T + 1, 64, nx)

    Args:
        robots: Robots, or name -> robot. Fixed-base robots stand at `poses`.
        bodies: Free rigid bodies.
        scenery: Shapes that do not move.
        actuators: One for all joints, or joint name ("robot/joint", or "joint" with one robot) -> actuator; joints without one are
            free. None: torques on all joints of the robots.
        contact: PGS(), Compliant(), or None for no contact and no joint limits.
        integrator: "semi_implicit", "explicit", "implicit" (in joint damping), "rk4" (smooth worlds).
        substeps: Physics steps per control step.
        dt: Control step [s].
        gravity: [m/s^2].
        poses: Robot name -> pose of its root.
        self_collision: True, or names of robots whose own links may touch.
        collide: Rule (link, link) -> whether they may touch.
        parameters: What else is an input of every step, given as params=: "friction", "restitution", "mass:LINK", "size:SHAPE", ...
        check: Raise an error when a state is not finite.
    """

    def __init__(
        self,
        robots: Sequence[Robot] | Mapping[str, Robot] = (),
        bodies: Sequence[Body] = (),
        scenery: Sequence[Static] = (),
        actuators: Actuator | Mapping[str, Actuator] | None = None,
        contact: ContactModel | None = PGS(),  # noqa: B008  (frozen)
        integrator: str = "semi_implicit",
        substeps: int = 1,
        dt: float = 0.01,
        gravity: Sequence[float] = (0.0, 0.0, -9.81),
        poses: Mapping[str, Transform] | None = None,
        self_collision: bool | Iterable[str] = False,
        collide: PairRule | None = None,
        parameters: Sequence[str] = (),
        check: bool = True,
    ):
        named = _named(robots)
        _check_options(integrator, contact, substeps, dt)
        scene = make_scene(named, poses or {}, bodies, scenery, gravity, self_collision, collide)
        self.dt, self.check = dt, check
        bare = Setup(scene, (), contact, integrator, dt / substeps, substeps, tuple(parameters))
        for p in parameters:
            bare.default(p)  # raises for unknown names
        self.setup = replace(bare, drives=tuple(_drives(scene, named, actuators)))
        self._kernels: dict[Any, Kernel] = {}

    # --- structure ------------------------------------------------------------------------------------------------

    @property
    def nq(self) -> int:
        return self.setup.nq

    @property
    def nv(self) -> int:
        return self.setup.nv

    @property
    def nx(self) -> int:
        """Size of a state: all q, then all v."""
        return self.setup.nx

    @property
    def nu(self) -> int:
        """Size of a control: one per actuator, in the order of `actuated`."""
        return self.setup.nu

    @property
    def actuated(self) -> list[str]:
        """Joints the controls act on."""
        return [d.joint for d in self.setup.drives]

    @property
    def link_names(self) -> list[str]:
        return [link.name for link in self.setup.scene.model.links]

    def coordinates(self, name: str) -> tuple[slice, slice]:
        """Where a robot's or body's q and v are in a state."""
        model = self.setup.scene.model
        own = [k for k, j in enumerate(model.joints) if j.name.split("/")[0] == name and not j.mimic]
        if not own:
            names = sorted({j.name.split("/")[0] for j in model.joints})
            raise ValueError(f"the world has no robot or body '{name}'; it has {', '.join(names)}")
        nq, nv = sum(model.joints[k].nq for k in own), sum(model.joints[k].nv for k in own)
        q, v = model.q_index[own[0]], self.nq + model.v_index[own[0]]
        return slice(q, q + nq), slice(v, v + nv)

    def initial_state(self, batch: int | Sequence[int] | None = None, dtype: torch.dtype = torch.float64) -> Tensor:
        """Robots at home, bodies at their poses, all at rest, shape (*batch, nx)."""
        model = self.setup.scene.model
        q = neutral(model) if model.home is None else model.home
        state = torch.cat([torch.tensor(q, dtype=dtype), torch.zeros(self.nv, dtype=dtype)])
        shape = () if batch is None else (batch,) if isinstance(batch, int) else tuple(batch)
        return state.expand(*shape, self.nx).clone()

    # --- motion ---------------------------------------------------------------------------------------------------

    def step(
        self,
        state: Tensor,
        control: Tensor | None = None,
        params: Mapping[str, Tensor] | None = None,
        wrenches: Mapping[str, Tensor] | None = None,
    ) -> Tensor:
        """State (..., nx) after one control step.

        control: (..., nu), default zero. wrenches: link -> (..., 6), force and torque at the link's origin, world axes.
        """
        setup = self._with(wrenches)
        kernel = self._kernel("step", setup, step_kernel)
        after = kernel.apply([state, self._control(state, control), *self._values(state, params, wrenches)])[0]
        if self.check:
            self._check_finite(after[None], first_step=1)
        return after

    def rollout(
        self,
        state: Tensor,
        controls: Tensor | Callable[[Tensor, int], Tensor],
        steps: int | None = None,
        params: Mapping[str, Tensor] | None = None,
        wrenches: Mapping[str, Tensor] | None = None,
    ) -> Tensor:
        """States (T + 1, ..., nx) under controls (T, ..., nu), or under a policy called as policy(state, t) for `steps` steps.

        With given controls only the states are kept for the backward pass; it recomputes each step.
        """
        if callable(controls):
            if steps is None:
                raise ValueError("a rollout under a policy needs steps=")
            states = [state]
            for t in range(steps):
                states.append(self.step(states[-1], controls(states[-1], t), params, wrenches))
            return torch.stack(states)
        return self._open_loop(state, controls, params, wrenches)

    def _open_loop(self, state, controls, params, wrenches) -> Tensor:
        if controls.dim() < 2 or controls.shape[-1] != self.nu:
            raise ValueError(f"controls have shape {tuple(controls.shape)}; expected (T, ..., {self.nu})")
        steps = controls.shape[0]
        setup = self._with(wrenches)
        kernel = self._kernel("rollout", setup, rollout_kernel).sized(steps)
        states = kernel.apply([state, controls.movedim(0, -2), *self._values(state, params, wrenches)])[0].movedim(
            -2, 0
        )
        if self.check:
            self._check_finite(states, first_step=0)
        return states

    def linearize(
        self, state: Tensor, control: Tensor | None = None, params: Mapping[str, Tensor] | None = None
    ) -> tuple[Tensor, Tensor]:
        """A (..., 2nv, 2nv) and B (..., 2nv, nu) of the step in the tangent space: d x' = A d x + B d u."""
        u = self._control(state, control)
        kernel = self._kernel("linearize", self.setup, linearization_kernel)
        after = self.step(state, control, params)
        zero = torch.zeros(2 * self.nv + self.nu, dtype=state.dtype)
        inputs = {"state": state, "control": u, "next": after, "delta": zero}
        values = dict(zip(self.setup.parameters, self._values(state, params, None), strict=True))
        J = kernel.jacobian("change", "delta")(**inputs, **values)
        return J[..., : 2 * self.nv], J[..., 2 * self.nv :]

    # --- looking --------------------------------------------------------------------------------------------------

    def energy(self, state: Tensor, params: Mapping[str, Tensor] | None = None) -> Tensor:
        """Kinetic and potential energy [J], shape (...)."""
        kernel = self._kernel("energy", self.setup, energy_kernel)
        return kernel.apply([state, *self._values(state, params, None)])[0].squeeze(-1)

    def contacts(
        self, state: Tensor, control: Tensor | None = None, params: Mapping[str, Tensor] | None = None
    ) -> Contacts:
        """Where shapes may touch, and the normal forces of the next substep."""
        symbols = Symbols(self.setup)
        touches = symbols.contacts(symbols.q)
        if not touches:
            raise ValueError("no shapes of this world can touch each other")
        kernel = self._kernel("contacts", self.setup, contact_kernel)
        points, normals, gaps, impulses = kernel.apply(
            [state, self._control(state, control), *self._values(state, params, None)]
        )
        rows, at = [], 0
        for t in touches:
            rows.append(at)
            at += 1 if t.friction.is_constant() and float(t.friction) == 0 else 3
        forces = impulses[..., rows] / self.setup.dt
        return Contacts([(t.link_a, t.link_b) for t in touches], points, normals, gaps, forces)

    def report(self) -> str:
        """What the world is made of and what a step costs."""
        scene = self.setup.scene
        step = self._kernel("step", self.setup, step_kernel)
        rows = 0 if self.setup.contact is None else _row_count(self.setup)
        bodies = len([j for j in scene.model.joints if j.nv])
        return (
            f"world: {bodies} joints, {self.nq} coordinates, {self.nv} velocities, {self.nu} controls\n"
            f"  {len(scene.pairs)} pairs of shapes may touch: {rows} constraint rows\n"
            f"  {self.setup.substeps} substeps of {1e3 * self.setup.dt:g} ms, {type(self.setup.contact).__name__}\n{step.report()}"
        )

    # --- inputs ---------------------------------------------------------------------------------------------------

    def _with(self, wrenches: Mapping[str, Tensor] | None) -> Setup:
        if not wrenches:
            return self.setup
        for link in wrenches:
            if link not in self.link_names:
                raise ValueError(f"no link '{link}' to push; links are {', '.join(self.link_names)}")
        return replace(self.setup, wrenches=tuple(wrenches))

    def _kernel(self, kind: Any, setup: Setup, make: Callable[[Setup], Kernel]) -> Kernel:
        key = kind, setup.wrenches
        if key not in self._kernels:
            self._kernels[key] = make(setup)
        return self._kernels[key]

    def _control(self, state: Tensor, control: Tensor | None) -> Tensor:
        return torch.zeros(self.nu, dtype=state.dtype) if control is None else control

    def _values(self, state: Tensor, params, wrenches) -> list[Tensor]:
        given = dict(params or {})
        values = []
        for p in self.setup.parameters:
            default = self.setup.default(p)
            value = given.pop(p, None)
            value = (
                torch.tensor(default, dtype=state.dtype) if value is None else torch.as_tensor(value, dtype=state.dtype)
            )
            values.append(value.reshape(1) if value.dim() == 0 else value)
        if given:
            have = ", ".join(self.setup.parameters) or "none"
            raise ValueError(
                f"parameter {', '.join(given)} is not an input of this world (inputs: {have}): name it in World(parameters=[...])"
            )
        return values + [torch.as_tensor(w, dtype=state.dtype) for w in (wrenches or {}).values()]

    def _check_finite(self, states: Tensor, first_step: int) -> None:
        """states (T, ..., nx)."""
        if bool(torch.isfinite(states.detach().sum())):
            return
        bad = ~torch.isfinite(states.detach())
        if not bool(bad.any()):
            return
        step = int(bad.flatten(1).any(1).nonzero()[0])
        where = bad[step].nonzero()[0].tolist()
        *sample, element = where
        raise SimulationError(
            f"the state is not finite after step {step + first_step}, sample {tuple(sample)}, at {self._name_of(element)}: "
            f"reduce dt, raise substeps, or soften gains and contact; World(check=False) turns this check off"
        )

    def _name_of(self, element: int) -> str:
        model = self.setup.scene.model
        index, sizes, at = (
            (model.q_index, "nq", element) if element < self.nq else (model.v_index, "nv", element - self.nq)
        )
        for j, start in zip(model.joints, index, strict=True):
            if not j.mimic and start <= at < start + getattr(j, sizes):
                return f"joint '{j.name}'"
        return f"element {element}"


def _named(robots: Sequence[Robot] | Mapping[str, Robot]) -> dict[str, Robot]:
    if isinstance(robots, Mapping):
        return dict(robots)
    named: dict[str, Robot] = {}
    for r in robots:
        name, k = r.name, 2
        while name in named:
            name, k = f"{r.name}_{k}", k + 1
        named[name] = r
    return named


def _check_options(integrator: str, contact: ContactModel | None, substeps: int, dt: float) -> None:
    if integrator not in INTEGRATORS:
        raise ValueError(f"unknown integrator '{integrator}': use one of {', '.join(INTEGRATORS)}")
    if integrator == "rk4" and isinstance(contact, PGS):
        raise ValueError(
            "rk4 needs smooth forces: use contact=Compliant() or None with it, or another integrator with PGS"
        )
    if substeps < 1 or not dt > 0:
        raise ValueError(f"dt must be positive and substeps at least 1, got dt={dt}, substeps={substeps}")
    if contact is not None and not isinstance(contact, PGS | Compliant):
        raise TypeError(f"contact must be PGS(...), Compliant(...) or None, not {contact!r}")


def _drives(scene, robots: Mapping[str, Robot], actuators) -> Iterable[Drive]:
    """One per actuated joint, in the order of the joints."""
    model = scene.model
    choice = _actuator_of(model, robots, actuators)
    inertia = None
    for j, iq, iv in zip(model.joints, model.q_index, model.v_index, strict=True):
        actuator = choice(j)
        if actuator is None:
            continue
        limit = float(j.max_effort[0]) if actuator.limit is None else actuator.limit
        if isinstance(actuator, Torque):
            yield Drive(j.name, iq, iv, actuator, 0.0, 0.0, limit)
            continue
        if inertia is None:
            home = torch.tensor(model.home)
            inertia = Robot(model).mass_matrix(home).diagonal()
        m, t = float(inertia[iv]), actuator.time_constant
        if isinstance(actuator, VelocityServo):
            yield Drive(j.name, iq, iv, actuator, 0.0, m / t if actuator.gain is None else actuator.gain, limit)
        elif isinstance(actuator, PositionServo):
            k = m / t**2 if actuator.stiffness is None else actuator.stiffness
            d = 2 * m / t if actuator.damping is None else actuator.damping
            yield Drive(j.name, iq, iv, actuator, k, d, limit)


def _actuator_of(model, robots: Mapping[str, Robot], actuators):
    """Joint -> actuator or None."""
    possible = [j for j in model.joints if j.nv == 1 and j.name.split("/")[0] in robots]
    if actuators is None or not isinstance(actuators, Mapping):
        actuator = Torque() if actuators is None else actuators
        names = {j.name for j in possible}
        return lambda j: actuator if j.name in names else None
    by_name: dict[str, Actuator] = {}
    every = [j for j in model.joints if j.nv == 1]
    for name, actuator in actuators.items():
        found = [j.name for j in every if name in (j.name, j.name.partition("/")[2], j.name.split("/")[0])]
        if not found:
            raise ValueError(f"no joint '{name}' to actuate; joints are {', '.join(j.name for j in every)}")
        by_name |= dict.fromkeys(found, actuator)
    return lambda j: by_name.get(j.name)


def _row_count(setup: Setup) -> int:
    from costate.sim.constraints import constraint_rows

    s = Symbols(setup)
    return len(constraint_rows(s, s.q, s.contacts(s.q), setup.dt))


__all__ = ["Contacts", "SimulationError", "World"]
