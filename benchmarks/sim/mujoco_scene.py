"""A world in MuJoCo: the same bodies, joints, inertias, shapes and motors, and states there and back."""

# pyright: reportAttributeAccessIssue=false
# (mujoco is a compiled module without types)
from __future__ import annotations

from dataclasses import dataclass
from xml.etree import ElementTree as ET

import mujoco
import numpy as np
from scipy.spatial.transform import Rotation

from costate.model import Shape
from costate.model.mjcf.writer import add_body, add_geom, numbers
from costate.sim import World
from costate.sim.scene.scene import Collider


@dataclass(frozen=True)
class Options:
    """Options of a simulation by MuJoCo."""

    solver: str = "Newton"
    iterations: int = 100
    tolerance: float = 0.0
    """Tolerance at which its solver stops early; 0: never."""
    cone: str = "elliptic"
    friction: float = 0.8
    solref: float | None = None
    """Time constant of contacts [s], at least two steps; the shorter, the harder. None: MuJoCo's own, 20 ms."""
    limits: bool = True
    """Enforce joint limits."""
    joint_friction: bool = True
    """Simulate Coulomb friction of joints."""
    implicit_damping: bool = False
    """MuJoCo's Euler method treats joint damping implicitly unless told not to."""


def mjcf(world: World, options: Options = Options()) -> str:  # noqa: B008  (frozen)
    """The world as MJCF. Only shapes that may touch something are there."""
    scene, setup = world.setup.scene, world.setup
    model = scene.model
    root = ET.Element("mujoco")
    ET.SubElement(root, "compiler", angle="radian", autolimits="true", boundmass="0", boundinertia="0")
    option = ET.SubElement(
        root,
        "option",
        timestep=repr(setup.dt),
        gravity=numbers(model.gravity),
        integrator="Euler",
        solver=options.solver,
        iterations=str(options.iterations),
        tolerance=repr(options.tolerance),
        cone=options.cone,
    )
    ET.SubElement(option, "flag", eulerdamp="enable" if options.implicit_damping else "disable")
    elements = {model.links[0].name: ET.SubElement(root, "worldbody")}
    for joint, link in zip(model.joints, model.links[1:], strict=True):
        elements[link.name] = add_body(elements[joint.parent], joint, link, options.limits, options.joint_friction)
    for k in sorted({k for pair in scene.pairs for k in pair}):
        _geom(elements[scene.colliders[k].link], scene.colliders[k])
    motors = ET.SubElement(root, "actuator")
    for d in setup.drives:
        limit = {} if d.limit == float("inf") else {"ctrlrange": f"{-d.limit!r} {d.limit!r}"}
        ET.SubElement(motors, "motor", {"joint": d.joint} | limit)
    contact = ET.SubElement(root, "contact")
    for i, j in scene.pairs:
        own = [c.friction for c in (scene.colliders[i], scene.colliders[j]) if c.friction is not None]
        mu = max(own) if own else options.friction
        names = {"geom1": scene.colliders[i].name, "geom2": scene.colliders[j].name}
        friction = {"condim": "3", "friction": numbers((mu, mu, 0.005, 1e-4, 1e-4))} if mu else {"condim": "1"}
        hard = {"solref": f"{options.solref!r} 1"} if options.solref else {}
        ET.SubElement(contact, "pair", names | friction | hard)
    return ET.tostring(root, encoding="unicode")


def _geom(body: ET.Element, collider: Collider) -> None:
    if not isinstance(collider.shape, Shape):
        raise ValueError(f"MuJoCo has no shape for '{collider.name}', {collider.shape!r}")
    add_geom(body, collider.shape, collider.pose, name=collider.name)


class MujocoWorld:
    """The world, compiled by MuJoCo."""

    def __init__(self, world: World, options: Options = Options()):  # noqa: B008  (frozen)
        self.ours = world.setup.scene.model
        self.model = mujoco.MjModel.from_xml_string(mjcf(world, options))
        self.data = mujoco.MjData(self.model)

    def to_theirs(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(qpos, qvel) of a state. Free joints have their linear velocity in world axes; quaternions are ordered w, x, y, z."""
        return self._convert(x, np.zeros(self.model.nq), np.zeros(self.model.nv), back=False)

    def to_ours(self, qpos: np.ndarray, qvel: np.ndarray) -> np.ndarray:
        """The state (nx,)."""
        q, v = np.zeros(self.ours.nq), np.zeros(self.ours.nv)
        self._convert(np.concatenate([q, v]), qpos, qvel, back=True, out=(q, v))
        return np.concatenate([q, v])

    def _convert(self, x, qpos, qvel, back: bool, out=None):
        q, v = (x[: self.ours.nq], x[self.ours.nq :]) if out is None else out
        for joint, qi, vi in zip(self.ours.joints, self.ours.q_index, self.ours.v_index, strict=True):
            if joint.kind == "fixed":
                continue
            index = self.model.joint(joint.name)
            to, at = int(index.qposadr[0]), int(index.dofadr[0])
            ours, theirs = slice(qi, qi + joint.nq), slice(to, to + joint.nq)
            ours_v, theirs_v = slice(vi, vi + joint.nv), slice(at, at + joint.nv)
            if joint.kind == "floating" and back:
                q[ours] = qpos[theirs][[0, 1, 2, 4, 5, 6, 3]]
                v[ours_v] = qvel[theirs_v]
                v[vi : vi + 3] = Rotation.from_quat(q[qi + 3 : qi + 7]).as_matrix().T @ qvel[at : at + 3]
            elif joint.kind == "floating":
                qpos[theirs] = q[ours][[0, 1, 2, 6, 3, 4, 5]]
                qvel[theirs_v] = v[ours_v]
                qvel[at : at + 3] = Rotation.from_quat(q[qi + 3 : qi + 7]).as_matrix() @ v[vi : vi + 3]
            elif back:
                q[ours], v[ours_v] = qpos[theirs], qvel[theirs_v]
            else:
                qpos[theirs], qvel[theirs_v] = q[ours], v[ours_v]
        return qpos, qvel

    def full_physics_state(self, x: np.ndarray) -> np.ndarray:
        """Return the state that mujoco.rollout starts from."""
        mujoco.mj_resetData(self.model, self.data)
        self.data.qpos[:], self.data.qvel[:] = self.to_theirs(x)
        state = np.zeros(mujoco.mj_stateSize(self.model, mujoco.mjtState.mjSTATE_FULLPHYSICS))
        mujoco.mj_getState(self.model, self.data, state, mujoco.mjtState.mjSTATE_FULLPHYSICS)
        return state

    def run(self, x: np.ndarray, controls: np.ndarray) -> np.ndarray:
        """States (T + 1, nx) under controls (T, nu)."""
        mujoco.mj_resetData(self.model, self.data)
        self.data.qpos[:], self.data.qvel[:] = self.to_theirs(x)
        states = [x]
        for u in controls:
            self.data.ctrl[:] = u
            mujoco.mj_step(self.model, self.data)
            states.append(self.to_ours(self.data.qpos, self.data.qvel))
        return np.array(states)

    def ground_force(self) -> float:
        """Sum of the vertical contact forces at the last state [N], which are forces on what lies above."""
        mujoco.mj_forward(self.model, self.data)
        total, wrench = 0.0, np.zeros(6)
        for k in range(self.data.ncon):
            mujoco.mj_contactForce(self.model, self.data, k, wrench)
            total += abs(float(self.data.contact[k].frame.reshape(3, 3)[0] @ [0, 0, 1]) * wrench[0])
        return total
