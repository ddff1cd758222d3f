"""Worlds: robots, free bodies and scenery, stepped together, with gradients of everything."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from costate.core.constants import constant
from costate.core.eager import eager
from costate.core.fork import COMPILING, cached_property
from costate.core.guesses import MAKE_WORLD, WORLD
from costate.core.names import did_you_mean, missing, with_suggestions
from costate.core.numbers import promoted
from costate.kernel import Kernel
from costate.model import ModelWarning
from costate.model.constraint import Constraint
from costate.model.tendon import Tendon
from costate.physics.integrate import neutral
from costate.robot import Pose, Robot
from costate.sim.arguments import (
    Poses,
    as_numbers,
    check_actuators,
    check_controls,
    check_options,
    check_robots,
    named_robots,
    of_state_and_time,
    robot_poses,
    whole_steps,
    world_gravity,
)
from costate.sim.augmented import Augmented
from costate.sim.contact.builtin import DEFAULT, contact_model
from costate.sim.contact.detect import Contact
from costate.sim.contact.model import ContactModel
from costate.sim.contacts import Contacts
from costate.sim.divergence import SimulationError, check_state, check_states, turns_fast
from costate.sim.files.keyframes import keyframe_control, keyframe_names, keyframe_state
from costate.sim.files.parts import Parts, self_collisions
from costate.sim.forces.drives import Actuators, drives, shares, with_rotors
from costate.sim.forces.equality import resolve
from costate.sim.forces.tendons import resolve_tendons
from costate.sim.inputs import Inputs, Params, Wrenches
from costate.sim.linearize import linearize
from costate.sim.looking import contact_kernel, described, energy_kernel, gap_kernel, pose_kernel, summary
from costate.sim.rollout import check_checkpoint, rollout_kernel, step_kernel, stretches
from costate.sim.scene.parts import Body, Static
from costate.sim.scene.scene import Collide, make_scene
from costate.sim.scene.unused import unused
from costate.sim.setup import Setup, Symbols, moved_shapes

Policy = Callable[[Tensor, int], Tensor]
"""A policy maps (state (..., nx), number of the step) -> control (..., nu)."""


@eager
class World(Augmented):
    """A simulated world.

        ground = cs.Static("ground", cs.shapes.plane())
        world = cs.World(robots=[cs.load_robot("laikago")], scenery=[ground], dt=0.01, substeps=4)
        state = world.initial_state(batch=64)               # (64, nx): all q, then all v
        states = world.rollout(state, controls)             # (T, 64, nu) -> (T + 1, 64, nx)

    Learnable parameters of robots (`robot.learn`) are inputs of the world: gradients reach them, and new values count from the next
    call on.

    Args:
        robots: Robots, or name -> robot. They stand at `poses`, or start there if they float.
        bodies: Free rigid bodies.
        scenery: Static geometry: shapes that do not move.
        actuators: One for all joints, or name of a joint ("robot/joint", or "joint"), tendon, robot or body -> actuator; joints
            without one are free. None: torques on all joints of the robots. "file": those that the robots' files list.
        contact: Hard(), PGS(), Compliant(), Newton(), a ContactModel of your own, or None: no contact, no joint limits.
        integrator: "semi_implicit", "implicit" (in damping and springs), "explicit", "euler" (MuJoCo's), "rk4" (smooth worlds, and
            Newton). None: with Newton that of the robots' MJCF, else "semi_implicit".
        substeps: Physics steps per control step.
        dt: Control step [s]; None: with Newton the timestep of the robots' MJCF times the substeps, else 0.01.
        gravity: [m/s^2]; None: that of the robots, else (0, 0, -9.81).
        poses: Robot name -> pose of the frame in which its file places it, in any form of docs/placing.md: (x, y, z), (position,
            rpy), ... Or a list of poses in the order of the robots.
        self_collision: True, or names of robots whose own links may touch.
        collide: Rule (link, link) -> whether they may touch, or the pairs of names that may, and no others.
        constraints: Weld, Connect, Couple, Distance: equality constraints, in addition to those of the robots' files.
        tendons: FixedTendon over joints, SpatialTendon through space, in addition to those of the robots' files.
        parameters: Further inputs of every step, given as params=: "friction", "mass:LINK", "size:SHAPE", "actuator_gain", ...
        check: Raise an error when a state is not finite or diverges.
    """

    _warned = False

    @with_suggestions(MAKE_WORLD)
    def __init__(
        self,
        robots: Sequence[Robot] | Mapping[str, Robot] = (),
        bodies: Sequence[Body] = (),
        scenery: Sequence[Static] = (),
        actuators: Actuators = None,
        contact: ContactModel | None = DEFAULT,
        integrator: str | None = None,
        substeps: int = 1,
        dt: float | None = None,
        gravity: Sequence[float] | None = None,
        poses: Poses | None = None,
        self_collision: bool | Iterable[str] = False,
        collide: Collide | None = None,
        parameters: Sequence[str] = (),
        check: bool = True,
        constraints: Sequence[Constraint] = (),
        tendons: Sequence[Tendon] = (),
    ):
        check_robots(robots)
        check_actuators(actuators)
        dt, substeps = constant(dt, "dt"), constant(substeps, "substeps")
        named = named_robots(robots)
        model = contact_model(contact)
        files = [r.model.physics for r in named.values() if r.model.physics is not None]
        if dt is None:
            step = model.default_timestep(files)
            dt = 0.01 if step is None else substeps * step
        integrator = integrator or model.default_integrator(files) or "semi_implicit"
        check_options(integrator, substeps, dt)
        model.check(integrator)
        own, at = self_collisions(self_collision), robot_poses(poses or {}, named)
        scene = make_scene(
            named, at, bodies, scenery, world_gravity(named, gravity), own, collide, moved_shapes(parameters)
        )
        told = bool(scenery) or collide is not None or not model.acts
        for note in (*model.notes(scene), *unused(scene, named, not told, actuators is None)):
            warnings.warn(note, ModelWarning, stacklevel=3)  # beyond what checks the arguments
        chosen = collide is not None
        self._parts = Parts(bodies, scenery, actuators, at, own, chosen, constraints, tendons)
        self.dt, self.check = dt, check
        cables = resolve_tendons(scene.model, (*scene.model.tendons, *tendons))
        driven = tuple(drives(scene.model, named, cables, actuators))
        scene = replace(scene, model=with_rotors(scene.model, driven))
        self.setup = Setup(scene, driven, model, integrator, dt / substeps, substeps, tuple(parameters))
        ties = resolve(scene.model, (*scene.model.constraints, *constraints), cables)
        limits = shares(scene.model, cables, actuators)
        self.setup = replace(self.setup, constraints=ties, tendons=cables, shares=limits)
        if isinstance(parameters, str):
            raise TypeError(f"parameters is the name '{parameters}'; expected a list of names: ['{parameters}']")
        for p in parameters:
            self.setup.default(p)  # raises for unknown names
        self._inputs = Inputs(self.setup, named)
        for name, robot in named.items():
            self._wire(w.of_robot(name) for w in robot.wirings)
        self._kernels: dict[Any, Kernel] = {}

    def __getstate__(self) -> dict[str, Any]:
        # Kernels are found on disk again; expressions and caches stay behind.
        hidden = ("_kernels", "_inputs", "_contacts")
        return {k: v for k, v in self.__dict__.items() if k not in hidden} | {"robots": self._inputs.robots}

    def __setstate__(self, state: dict[str, Any]) -> None:
        robots = state.pop("robots")
        self.__dict__.update(state, _inputs=Inputs(state["setup"], robots), _kernels={})

    if not TYPE_CHECKING:  # a type checker would take any name for an attribute

        def __getattr__(self, name: str) -> Any:
            raise missing(self, name, WORLD)

    # --- structure ------------------------------------------------------------------------------------------------

    @property
    def nq(self) -> int:
        return self.setup.nq

    @property
    def nv(self) -> int:
        return self.setup.nv

    @property
    def nx(self) -> int:
        """Size of a state: all q, then all v, then the activations of actuators that have one."""
        return self.setup.nx

    @property
    def na(self) -> int:
        """Number of activations of actuators."""
        return self.setup.na

    @property
    def ndx(self) -> int:
        """Size of a change of a state in the tangent space: nv, nv and na numbers."""
        return self.setup.ndx

    @property
    def nu(self) -> int:
        """Size of a control: one per actuator, in the order of `actuated`."""
        return self.setup.nu

    @property
    def actuated(self) -> list[str]:
        """Joints and tendons the controls act on."""
        return [d.joint for d in self.setup.drives]

    @property
    def activated(self) -> list[str]:
        """Names in `actuated` of the actuators whose activations end a state, in their order."""
        return [d.joint for d in self.setup.drives if d.activation is not None]

    @property
    def link_names(self) -> list[str]:
        return [link.name for link in self.setup.scene.model.links]

    @property
    def shape_names(self) -> list[str]:
        """Shapes that may touch others: "LINK/NUMBER", or the name of scenery."""
        return [c.name for c in self.setup.scene.colliders]

    def coordinates(self, name: str) -> tuple[slice, slice]:
        """Return the slices of a state that hold q and v of a robot or body."""
        model = self.setup.scene.model
        own = [k for k, j in enumerate(model.joints) if j.name.split("/")[0] == name and j.nv]
        if not own:
            names = sorted({j.name.split("/")[0] for j in model.joints})
            raise ValueError(f"the world has no robot or body '{name}' that moves; it has {', '.join(names)}")
        nq, nv = sum(model.joints[k].nq for k in own), sum(model.joints[k].nv for k in own)
        q, v = model.q_index[own[0]], self.nq + model.v_index[own[0]]
        return slice(q, q + nq), slice(v, v + nv)

    def initial_state(
        self,
        batch: int | Sequence[int] | None = None,
        dtype: torch.dtype | None = None,
        keyframe: str | None = None,
    ) -> Tensor:
        """Return a state with robots at home and bodies at their poses, all at rest and not activated, shape (*batch, nx).

        The coordinates of floating bodies and robots are their poses in the world. keyframe: one of `keyframes`, which the robots
        take instead.
        """
        dtype = dtype or self.dtype
        model = self.setup.scene.model
        q = neutral(model) if model.home is None else model.home
        start = np.concatenate([q, np.zeros(self.nv + self.na)])
        if keyframe is not None:
            start = keyframe_state(self.setup, self._inputs.robots, self._parts.poses, keyframe, start)
        state = torch.tensor(start, dtype=dtype)
        if isinstance(batch, float):
            raise TypeError(f"batch is {batch}; expected a whole number, or several")
        shape = () if batch is None else (batch,) if isinstance(batch, int) else tuple(batch)
        return state.expand(*shape, self.nx).clone()

    @property
    def keyframes(self) -> list[str]:
        """Return the names of the states that the robots' files list: initial_state(keyframe=NAME)."""
        return keyframe_names(self._inputs.robots)

    def keyframe_control(self, keyframe: str, dtype: torch.dtype | None = None) -> Tensor:
        """Return the controls (nu,) that go with a keyframe, for worlds with the files' actuators."""
        found = keyframe_control(self.setup, self._inputs.robots, keyframe)
        return torch.tensor(found, dtype=dtype or self.dtype)

    def __repr__(self) -> str:
        return summary(self.setup, self._inputs.robots, self._parts)

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        return import_module("costate.report.notebook").world_html(self)

    def save(self, path: str | Path) -> None:
        """Write the world to a file, world.json, or into a folder, without any code: cs.load_world(path) reads it back.

        Robots, bodies, shapes, actuators, contact model, options and the pairs that may touch are kept, mesh files copied next to
        it. A class of your own cannot be written, nor a learnable parameter: an error says so.
        """
        from costate.sim.files.save import save_world

        save_world(self, Path(path))

    # --- motion ---------------------------------------------------------------------------------------------------

    def step(
        self, state: Tensor, control: Tensor | None = None, params: Params = None, wrenches: Wrenches = None
    ) -> Tensor:
        """Return the state (..., nx) after one control step.

        control: (..., nu), default zero. params: parameter -> (..., n). wrenches: link or body -> (..., 6), force [N] at the link's
        origin and torque [N m], world axes.
        """
        (after,) = self._call("step", step_kernel, state, control, params, wrenches)
        self._look_at(after, first_step=1, depth=1)
        return after

    def rollout(
        self,
        state: Tensor,
        controls: Tensor | Policy | None = None,
        steps: int | None = None,
        params: Params = None,
        wrenches: Wrenches = None,
        checkpoint: int = 1,
    ) -> Tensor:
        """Return states (T + 1, ..., nx) under controls (T, ..., nu), or for `steps` steps: under a policy called as
        policy(state, t), or policy(state) if it takes one argument, or without any under controls of zero.

        With given controls only the states are kept for the backward pass; it recomputes each step.

        Args:
            wrenches: Link or body -> (T, ..., 6), one per step.
            checkpoint: Keep and return every k-th state only, and the last one: those after 0, k, 2 k, ..., T steps. The backward
                pass then runs every stretch of k steps twice.
        """
        if callable(controls):
            if steps is None:
                raise ValueError("a rollout under a policy needs steps=")
            policy = of_state_and_time(controls)
            return self._closed_loop(state, policy, whole_steps(steps), params, wrenches, checkpoint)
        if controls is None:
            if steps is None:
                raise ValueError(
                    "a rollout needs controls (T, ..., nu), a policy, or steps= to go on under zero controls"
                )
            controls = torch.zeros(whole_steps(steps), self.nu, dtype=as_numbers({"state": state}, self)[0].dtype)
        if isinstance(controls, int):
            raise TypeError(
                f"controls is an int; expected (T, ..., {self.nu}), or steps={controls} for controls of zero"
            )
        state, controls = as_numbers({"state": state, "controls": controls}, self)
        check_controls(state, controls, self.nu)
        length = controls.shape[0]
        if steps not in (None, length):
            raise ValueError(f"steps={steps}, but there are controls for {length} steps")
        if self._inputs.depend_on_state():  # such parameters change in every step
            return self._closed_loop(state, lambda _, t: controls[t], length, params, wrenches, checkpoint)
        return self._open_loop(state, controls, params, wrenches, checkpoint)

    def _closed_loop(self, state, policy: Policy, steps: int, params, wrenches, every: int) -> Tensor:
        check_checkpoint(every)
        (state,) = as_numbers({"state": state}, self)
        states = [state]
        for t in range(steps):
            now = {link: w[t] for link, w in (wrenches or {}).items()}
            state = self._numbered_step(state, policy(state, t), params, now, t + 1)
            if (t + 1) % every == 0 or t + 1 == steps:
                states.append(state)
        return torch.stack(torch.broadcast_tensors(*promoted(states)))

    def _numbered_step(self, state, control, params, wrenches, number: int) -> Tensor:
        (after,) = self._call("step", step_kernel, state, control, params, wrenches)
        self._look_at(after, first_step=number, depth=3)
        return after

    def _open_loop(self, state, controls, params, wrenches, every: int, done: int = 0) -> Tensor:
        """Return states under given controls. done: steps before these, for errors."""
        steps = controls.shape[0]
        check_checkpoint(every)
        setup, every = self._inputs.setup_for(wrenches), min(every, max(steps, 1))
        state, controls, *pushes = as_numbers({"state": state, "controls": controls, **_named(wrenches)}, self)
        for link, w in zip(setup.wrenches, pushes, strict=True):
            if w.dim() < 2 or w.shape[0] != steps or w.shape[-1] != 6:
                raise ValueError(f"wrenches of '{link}' have shape {tuple(w.shape)}; expected ({steps}, ..., 6)")
        if rest := steps % every:  # whole stretches first, then a shorter one
            now, then = (
                {n: w[part] for n, w in zip(wrenches or (), pushes, strict=True)}
                for part in (slice(-rest), slice(-rest, None))
            )
            first = self._open_loop(state, controls[:-rest], params, now, every)
            last = self._open_loop(first[-1], controls[-rest:], params, then, rest, steps - rest)
            return torch.cat([first, last[1:]])
        kernel = self._kernel(("rollout", every), setup, lambda s: rollout_kernel(s, every)).sized(steps // every)
        rows = [stretches(x, every) for x in (controls, *pushes)]
        values = self._inputs.values(state, params, self.coordinates)
        states = kernel.apply([state, rows[0], *values, *rows[1:]])[0].movedim(-2, 0)
        self._look_at(states, first_step=done, depth=2, every=every)
        return states

    def _look_at(self, states: Tensor, first_step: int, depth: int, every: int | None = None) -> None:
        """Raise if the state (..., nx) after a step diverges, or any of states (T, ..., nx) that are `every` steps apart; warn once
        if bodies turn too fast for the step. depth: calls since the user's."""
        if not self.check:
            return
        model = self.setup.scene.model
        if every is None:
            largest = check_state(model, states, first_step)
        else:
            largest = check_states(model, states, first_step, every)
        note = None if self._warned else turns_fast(self.setup, states, largest)
        if note:
            self._warned = True
            warnings.warn(note, ModelWarning, stacklevel=2 + depth)

    def linearize(
        self, state: Tensor, control: Tensor | None = None, params: Params = None, wrenches: Wrenches = None
    ) -> tuple[Tensor, Tensor]:
        """Return A (..., ndx, ndx) and B (..., ndx, nu) of the step in the tangent space: d x' = A d x + B d u."""
        J, after = self._call("linearize", linearize, state, control, params, wrenches)
        if self.check:
            check_state(self.setup.scene.model, after, 1)
        A, B = J.split_with_sizes((self.ndx, self.nu), -1)
        return A, B

    # --- looking --------------------------------------------------------------------------------------------------

    def energy(self, state: Tensor, params: Params = None) -> Tensor:
        """Return kinetic and potential energy [J], shape (...)."""
        kernel = self._kernel("energy", self._inputs.setup_for(None), energy_kernel)
        (state,) = as_numbers({"state": state}, self)
        values = self._inputs.values(state, params, self.coordinates)
        return kernel.apply([state, *values])[0].squeeze(-1)

    def link_pose(self, state: Tensor, link: str, params: Params = None) -> Pose:
        """Return the pose of a link in the world: position (..., 3) [m], rotation (..., 3, 3), quaternion (..., 4) x, y, z, w.

        link: "robot/link", "link" if no other robot has one of that name, or the name of a body.
        """
        name = self._inputs.link(link)
        kernel = self._kernel(("link_pose", name), self._inputs.setup_for(None), lambda s: pose_kernel(s, name))
        (state,) = as_numbers({"state": state}, self)
        return Pose(*kernel.apply([state, *self._inputs.values(state, params, self.coordinates)]))

    def body_pose(self, state: Tensor, body: str, params: Params = None) -> Pose:
        """Return the pose of a free body in the world, as `link_pose` does."""
        bodies = [name.removesuffix("/body") for name in self.link_names if name.endswith("/body")]
        if body not in bodies:
            hint = did_you_mean(body, bodies) or f"bodies are {', '.join(bodies) or 'none'}"
            raise ValueError(f"the world has no body '{body}'; {hint}; for a link of a robot use world.link_pose")
        return self.link_pose(state, body, params)

    def contacts(
        self, state: Tensor, control: Tensor | None = None, params: Params = None, wrenches: Wrenches = None
    ) -> Contacts:
        """Return all contact points, and the forces of the next substep."""
        contacts = self._some_contacts()
        found = self._call("contacts", contact_kernel, state, control, params, wrenches)
        points, normals, gaps, forces, friction, torques, residual = found
        links, shapes = [(c.link_a, c.link_b) for c in contacts], [c.shapes for c in contacts]
        return Contacts(links, shapes, points, normals, gaps, forces, friction, torques, residual.squeeze(-1))

    def gaps(self, state: Tensor, params: Params = None) -> Tensor:
        """Return distances of all contact points [m], negative where shapes overlap, (..., n); differentiable, also when apart."""
        self._some_contacts()
        kernel = self._kernel("gaps", self._inputs.setup_for(None), gap_kernel)
        (state,) = as_numbers({"state": state}, self)
        return kernel.apply([state, *self._inputs.values(state, params, self.coordinates)])[0]

    def report(self) -> str:
        """Return what the world is made of and what a step costs, in words."""
        step = self._kernel("step", self._inputs.setup_for(None), step_kernel)
        return f"{described(self.setup, self._contacts)}\n{step.report()}"

    # --- inputs ---------------------------------------------------------------------------------------------------

    @cached_property
    def _contacts(self) -> list[Contact]:
        """Contacts with symbols of their own: for names and counts."""
        with COMPILING:
            return Symbols(self.setup).contacts()

    def _some_contacts(self) -> list[Contact]:
        if not self._contacts:
            raise ValueError("no shapes of this world can touch each other")
        return self._contacts

    def _kernel(self, kind: Any, setup: Setup, make: Callable[[Setup], Kernel]) -> Kernel:
        key = kind, setup.parameters, setup.wrenches, setup.networks, setup.contact is self.setup.contact
        if key not in self._kernels:
            with COMPILING:
                self._kernels[key] = make(setup)
        return self._kernels[key]

    def _call(self, kind: str, make: Callable[[Setup], Kernel], state, control, params, wrenches) -> Sequence[Tensor]:
        kernel = self._kernel(kind, self._inputs.setup_for(wrenches), make)
        return kernel.apply(self._arguments(state, control, params, wrenches))

    def _arguments(self, state, control, params, wrenches) -> list[Tensor]:
        told = {"state": state} if control is None else {"state": state, "control": control}
        state, *others = as_numbers(told | _named(wrenches), self)
        u = torch.zeros(self.nu, dtype=state.dtype) if control is None else others.pop(0)
        return [state, u, *self._inputs.values(state, params, self.coordinates), *others]


def _named(wrenches: Wrenches) -> dict[str, Tensor]:
    return {f"the wrench of '{link}'": w for link, w in (wrenches or {}).items()}


__all__ = ["Contacts", "SimulationError", "World"]
