"""The same scene in MuJoCo, an independent engine, in which a policy can be tried as it is.

What is the same: inertias, joints, limits, the law of the servos, control period and friction. What is MuJoCo's own: kinematics and
dynamics, collision detection, and contact, which is soft there; its penetration is judged as ours is. The socket is made of prisms.
Needs mujoco (extra "mjcf").
"""

# pyright: reportAttributeAccessIssue=false
# (mujoco is a compiled module without types)
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import torch
from torch import Tensor

from costate.core.extras import needs
from costate.model import Shape, Transform
from costate.model.mjcf.writer import add_body, add_geom, numbers, pose
from costate.model.rotation import about_axis
from costate.sim.forces.actuators import Torque
from costate.tasks.insertion.episode import Episodes, run
from costate.tasks.insertion.scene import (
    ARM_Q,
    ARM_V,
    BOTTLE_MASS,
    BOTTLE_RADIUS,
    CARRIAGE_MASS,
    DEPTH,
    FLOOR,
    MOUTH_HEIGHT,
    SOCKET_V,
    SOCKET_XY,
    WALL,
    arm_with_bottle,
)
from costate.tasks.insertion.task import Insertion
from costate.train.episode import Controller, Trajectory

FACETS = 96
"""Number of facets of the bore."""
SEEN, TOUCHED = {"contype": "0", "conaffinity": "0", "group": "1"}, {"contype": "0", "conaffinity": "1"}
GREY = "0.72 0.73 0.77 1"


def mjcf(task: Insertion, substeps: int | None = None, facets: int = FACETS) -> str:
    """Return the scene as MJCF: arm with gripper and bottle, the socket on a carriage with two slides, a table to look at."""
    dt = task.options.dt / (substeps or task.options.substeps)
    root = ET.Element("mujoco", model="insertion")
    ET.SubElement(root, "compiler", angle="radian", autolimits="true", inertiafromgeom="false")
    option = ET.SubElement(root, "option", timestep=repr(dt), integrator="Euler", cone="elliptic", iterations="100")
    ET.SubElement(option, "flag", eulerdamp="disable", multiccd="enable")
    # As hard as the step allows: twice its length is the shortest time constant MuJoCo takes. Contact sets in gradually, over
    # 0.1 mm of overlap: a bottle nearly as wide as the bore overlaps with facets all along an arc, and if each of them repelled it
    # in full it would be thrown across.
    friction = numbers((task.options.friction, 0.005, 1e-4))
    hard = {"solref": f"{2 * dt!r} 1", "solimp": "0 0.999 0.0001", "friction": friction}
    ET.SubElement(ET.SubElement(root, "default"), "geom", hard)
    world = ET.SubElement(root, "worldbody")
    ET.SubElement(world, "light", pos="0 0 2")
    ET.SubElement(world, "geom", {"type": "box", "size": "0.6 0.6 0.01", "pos": "0.3 0 -0.01", "rgba": GREY} | SEEN)
    _add_arm(world)
    _add_socket(root, world, facets, *task.room)
    return ET.tostring(root, encoding="unicode")


def _add_arm(world: ET.Element) -> None:
    model = arm_with_bottle()
    elements = {model.links[0].name: world}
    for joint, link in zip(model.joints, model.links[1:], strict=True):
        elements[link.name] = add_body(elements[joint.parent], joint, link)
    for link in model.links:
        touched = {"contype": "1", "name": "bottle"} if link.name == "bottle" else SEEN
        for shape in link.visuals:
            color = {"rgba": numbers(shape.color)} if shape.color else {}
            add_geom(elements[link.name], shape, shape.pose, **(touched | color))


def _add_socket(root: ET.Element, world: ET.Element, facets: int, clearance: float, chamfer: float) -> None:
    """Add a floor and a ring of prisms whose inner faces touch the bore, and a chamfer, from outside: it is nowhere narrower.

    A prism with its chamfer is convex, so it is one shape: a bottle would catch on edges between several.
    """
    bore = BOTTLE_RADIUS + clearance
    corners = [(bore, -DEPTH), (bore, -chamfer), (bore + chamfer, 0.0), (bore + WALL, 0.0), (bore + WALL, -DEPTH)]
    # As wide as their outer faces need to meet; what overlaps further in lies behind the neighbours' inner faces.
    side = (bore + WALL) * np.tan(np.pi / facets)
    points = [(x, y, z) for x, z in dict.fromkeys(corners) for y in (-side, side)]
    ET.SubElement(ET.SubElement(root, "asset"), "mesh", name="wall", vertex=numbers(np.ravel(points)))
    carriage = ET.SubElement(world, "body", name="socket", pos=numbers((0, 0, MOUTH_HEIGHT)))
    for name, axis in (("socket_x", "1 0 0"), ("socket_y", "0 1 0")):
        ET.SubElement(carriage, "joint", name=name, type="slide", axis=axis)
    heavy = repr(CARRIAGE_MASS)
    ET.SubElement(carriage, "inertial", pos="0 0 0", mass=heavy, diaginertia=f"{heavy} {heavy} {heavy}")
    for angle in 2 * np.pi * np.arange(facets) / facets:
        turned = pose(Transform(about_axis((0, 0, 1), float(angle)), np.zeros(3)))
        ET.SubElement(carriage, "geom", {"type": "mesh", "mesh": "wall", "rgba": GREY} | TOUCHED | turned)
    floor = Shape("cylinder", np.array([bore + WALL, FLOOR]))
    below = Transform(np.eye(3), np.array([0.0, 0.0, -DEPTH - FLOOR / 2]))
    add_geom(carriage, floor, below, rgba=GREY, **TOUCHED)


class MujocoScene:
    """The task in MuJoCo, with the face of a world: `run(task, scene, ...)` takes it in place of one.

    substeps: physics steps per control period; None: as many as the task has. explicit: servos give the torque that follows from
    the velocity they measure, as a drive does, instead of that which they lead to.
    """

    def __init__(self, task: Insertion, substeps: int | None = None, facets: int = FACETS, explicit: bool = False):
        try:
            import mujoco
        except ImportError as error:
            raise ImportError(needs("the insertion in MuJoCo", "mujoco", "mjcf")) from error
        self._mj: Any = mujoco
        self.setup = task.world.setup
        self.substeps, self._explicit = substeps or task.options.substeps, explicit
        self.model = mujoco.MjModel.from_xml_string(mjcf(task, self.substeps, facets))
        self.data = mujoco.MjData(self.model)
        self._root = self.model.body("shoulder_link").id
        self._bottle = self.model.body("bottle").id
        drives = self.setup.drives
        self._gain, self._limit = (np.array([getattr(d, k) for d in drives]) for k in ("damping", "limit"))
        self._is_torque = isinstance(drives[0].actuator, Torque)
        self._usual = {name: torch.as_tensor(self.setup.default(name)) for name in self.setup.parameters}
        self._M, self._J = np.zeros((self.model.nv,) * 2), np.zeros((3, self.model.nv))

    # --- the face of a world --------------------------------------------------------------------------------------

    def step(self, state: Tensor, control: Tensor, params: Mapping[str, Tensor] | None = None) -> Tensor:
        """Return the states (B, 18) after one control period, one after the other."""
        after = np.zeros((state.shape[0], 18))
        controls = control.detach().double().numpy()
        given = {k: v.double().expand(state.shape[0], 1).numpy() for k, v in (self._usual | dict(params or {})).items()}
        for k, x in enumerate(state.detach().double().numpy()):
            self._set_params({name: float(value[k, 0]) for name, value in given.items()})
            self._set(x)
            for _ in range(self.substeps):
                self._substep(controls[k])
            after[k] = self._get()
        return torch.from_numpy(after).to(state.dtype)

    def penetration(self, states: Tensor) -> Tensor:
        """Return the deepest overlap of bottle and socket that MuJoCo finds at any of states (T, B, 18), (B,) [m]."""
        flat = states.detach().double().flatten(0, -2).numpy()
        deepest = torch.tensor([self._overlap(x) for x in flat], dtype=states.dtype)
        return deepest.reshape(states.shape[:-1]).amax(0)

    # --- one sample -----------------------------------------------------------------------------------------------

    def _substep(self, u: np.ndarray) -> None:
        self._mj.mj_step1(self.model, self.data)
        self.data.qfrc_applied[:6] = self._torques(u)
        self._mj.mj_step2(self.model, self.data)

    def _torques(self, u: np.ndarray) -> np.ndarray:
        """Return the torques of `VelocityServo`: gain (u - v') + gravity compensation, clamped; v' is the velocity they lead to."""
        if self._is_torque:
            return np.clip(u, -self._limit, self._limit)
        d, dt = self.data, self.model.opt.timestep
        pull = self._gain * u + self._weight()
        if self._explicit:
            return np.clip(pull - self._gain * d.qvel[:6], -self._limit, self._limit)
        v, force = d.qvel[:6], pull - self._gain * d.qvel[:6] - d.qfrc_bias[:6]
        ahead = v + dt * np.linalg.solve(self._mass_matrix() + dt * np.diag(self._gain), force)
        return np.clip(pull - self._gain * ahead, -self._limit, self._limit)

    def _weight(self) -> np.ndarray:
        """Return the torques that carry the arm and a bottle of the usual mass, whatever it weighs now, (6,)."""
        m, d, g = self.model, self.data, self.model.opt.gravity
        self._mj.mj_jacSubtreeCom(m, d, self._J, self._root)
        weight = -m.body_subtreemass[self._root] * (g @ self._J)
        more = m.body_mass[self._bottle] - BOTTLE_MASS
        if more:
            self._mj.mj_jacBodyCom(m, d, self._J, None, self._bottle)
            weight += more * (g @ self._J)
        return weight[:6]

    def _mass_matrix(self) -> np.ndarray:
        """Return the arm's mass matrix, (6, 6)."""
        try:
            self._mj.mj_fullM(self.model, self.data, self._M)
        except TypeError:  # before MuJoCo 4
            self._mj.mj_fullM(self.model, self._M, self.data.qM)
        return self._M[:6, :6]

    def _overlap(self, x: np.ndarray) -> float:
        self._set(x)
        self._mj.mj_fwdPosition(self.model, self.data)
        return max(0.0, -float(self.data.contact.dist.min())) if self.data.ncon else 0.0

    def _set_params(self, params: Mapping[str, float]) -> None:
        """Set payload and friction of the episode at hand."""
        self.model.geom_friction[:, 0] = params["friction"]
        if self.model.body_mass[self._bottle] != params["mass:ur5/bottle"]:
            self.model.body_mass[self._bottle] = params["mass:ur5/bottle"]
            self._mj.mj_setConst(self.model, self.data)

    def _set(self, x: np.ndarray) -> None:
        """Set the state; nothing is left of what happened before: not even where the solver starts."""
        d = self.data
        d.qpos[:6], d.qpos[6:] = x[ARM_Q], x[SOCKET_XY]
        d.qvel[:6], d.qvel[6:] = x[ARM_V], x[SOCKET_V]
        d.qacc_warmstart[:] = 0

    def _get(self) -> np.ndarray:
        """Return the state; the socket's angle, on slides, stays zero."""
        d = self.data
        return np.concatenate([d.qpos, [0.0], d.qvel, [0.0]])


def run_in_mujoco(task: Insertion, scene: MujocoScene, controller: Controller, episodes: Episodes) -> Trajectory:
    """Run the controller in these episodes, in MuJoCo; overlaps are those MuJoCo measures."""
    with torch.no_grad():
        trajectory = run(task, scene, controller, episodes)
    return replace(trajectory, measured={"penetration": scene.penetration(trajectory.states)})
