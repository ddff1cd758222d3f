"""The judge: hand and object in MuJoCo, which knows nothing of plans.

All shapes of the hand may touch the object and each other, but for links next to each other and those that meet at rest.
Joints have position servos with the hand's stiffness, damping and largest torque; the weight of the hand is carried by the servos
(gravity compensation). The object falls off if it leaves the palm. Needs mujoco (extra "mjcf").
"""

# pyright: reportAttributeAccessIssue=false
# (mujoco is a compiled module without types)
from __future__ import annotations

from typing import Any
from xml.etree import ElementTree as ET

import numpy as np

from costate.core.extras import needs
from costate.model.mjcf.writer import add_body, add_geom, numbers
from costate.tasks.inhand.hand import Hand

TIMESTEP = 0.002
"""Length of a step of the simulation [s]."""
FILMED = 10
"""Steps of the simulation between the states that are kept."""
OBJECT = "object"
FREE = [3, 0, 1, 2]
"""Order of a quaternion wxyz in one xyzw."""


def mjcf(hand: Hand, thing: np.ndarray) -> str:
    """Return the scene as MJCF. thing: edges of the box [m], mass [kg] and friction, (5,)."""
    root = ET.Element("mujoco", model=hand.model.name)
    ET.SubElement(root, "compiler", angle="radian", autolimits="true", inertiafromgeom="false")
    option = {"timestep": repr(TIMESTEP), "cone": "elliptic", "impratio": "10", "integrator": "implicitfast"}
    ET.SubElement(root, "option", option | {"gravity": numbers(9.81 * hand.down)})
    world = ET.SubElement(root, "worldbody")
    base = hand.base
    pose = {"pos": numbers(base.translation), "quat": numbers(base.quaternion[FREE])}
    first = ET.SubElement(world, "body", {"name": hand.model.links[0].name} | pose)
    elements = {hand.model.links[0].name: first}
    for joint, link in zip(hand.model.joints, hand.model.links[1:], strict=True):
        elements[link.name] = add_body(elements[joint.parent], joint, link)
        elements[link.name].set("gravcomp", "1")
    friction = {"friction": numbers((thing[4], 0.005, 1e-4)), "contype": "1", "conaffinity": "1"}
    for link in hand.model.links:
        for shape in link.collisions:
            add_geom(elements[link.name], shape, shape.pose, **friction)
    body = ET.SubElement(world, "body", name=OBJECT)
    ET.SubElement(body, "freejoint", name=OBJECT)
    edges, mass = thing[:3], float(thing[3])
    inertia = mass / 12 * (np.sum(edges**2) - edges**2)
    ET.SubElement(body, "inertial", pos="0 0 0", mass=repr(mass), diaginertia=numbers(inertia))
    ET.SubElement(body, "geom", {"type": "box", "size": numbers(edges / 2)} | friction)
    _add_servos(root, hand)
    contact = ET.SubElement(root, "contact")
    for one, other in hand.apart:
        ET.SubElement(contact, "exclude", body1=one, body2=other)
    return ET.tostring(root, encoding="unicode")


def _add_servos(root: ET.Element, hand: Hand) -> None:
    servos = ET.SubElement(root, "actuator")
    limit = numbers((-hand.effort, hand.effort))
    for joint in (j for j in hand.model.joints if j.nv):
        gains = {"kp": repr(hand.stiffness), "kv": repr(max(hand.damping - float(joint.damping), 0.0))}
        bounds = {"ctrlrange": numbers((joint.lower[0], joint.upper[0])), "forcerange": limit}
        ET.SubElement(servos, "position", {"joint": joint.name} | gains | bounds)


class Judge:
    """A hand and a box in MuJoCo: `state` is that of a prediction, `step` holds targets of the joints for a while."""

    def __init__(self, hand: Hand, thing: np.ndarray):
        try:
            import mujoco
        except ImportError as error:
            raise ImportError(needs("the judge of in-hand manipulation", "mujoco", "mjcf")) from error
        self._mj: Any = mujoco
        self.model = mujoco.MjModel.from_xml_string(mjcf(hand, thing))
        self.data = mujoco.MjData(self.model)
        self._n = len(hand.joints)

    def reset(self, state: np.ndarray) -> None:
        """Start at rest from a state."""
        self._mj.mj_resetData(self.model, self.data)
        self.data.qpos[:] = np.concatenate([state[7:], state[:3], state[3:7][FREE]])
        self.data.ctrl[:] = state[7:]
        self._mj.mj_forward(self.model, self.data)

    @property
    def state(self) -> np.ndarray:
        """Position and quaternion xyzw of the object, joints, (nx,)."""
        q, n = self.data.qpos, self._n
        return np.concatenate([q[n : n + 3], q[n + 4 : n + 7], q[n + 3 : n + 4], q[:n]])

    def step(self, targets: np.ndarray, seconds: float) -> list[np.ndarray]:
        """Hold the joints' targets [rad] for some time. Return the states on the way, FILMED steps apart, the last one included."""
        self.data.ctrl[:] = targets
        states = []
        for k in range(1, round(seconds / TIMESTEP) + 1):
            self._mj.mj_step(self.model, self.data)
            if k % FILMED == 0:
                states.append(self.state)
        return states
