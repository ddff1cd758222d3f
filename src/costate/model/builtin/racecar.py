"""The MIT racecar: four wheels, the front two steered, floating base."""

from __future__ import annotations

from math import pi

from costate.model.builtin.parts import BLUE, DARK, GREY, INF, box, cylinder, floating, joint, link, robot, sphere
from costate.model.model import Link, Model

SOURCE = (
    "MIT racecar, as shipped in pybullet_data: racecar.urdf; there only the left steering hinge is limited, here both "
    "are. Wheels are touched as spheres of the same radius, so that they roll on one point"
)

WHEEL_RADIUS = 0.05
WHEEL_WIDTH = 0.045
_BODY = (0.010609, 0.050409, 0.05865)
_SPIN = (-INF, INF, 100.0, 10.0)
_STEER = (-1.0, 1.0, 100.0, 10.0)


def _wheel(name: str, side: int) -> Link:
    """A wheel turning about z, its middle half its width outside of the joint; side +1 is left."""
    middle = (0, 0, -side * WHEEL_WIDTH / 2)
    seen = cylinder(WHEEL_RADIUS, (0, 0, 0), (0, 0, -side * WHEEL_WIDTH), DARK, name)
    touched = sphere(WHEEL_RADIUS, middle, DARK, name)
    return link(name, 0.34055, middle, (0.00026046, 0.00026046, 0.00041226), [touched], [seen])


def racecar() -> Model:
    world, base_joint = floating("base_link")
    hull = [
        box((0.46, 0.16, 0.06), (0.165, 0, 0.01), BLUE, "hull"),
        box((0.14, 0.12, 0.07), (0.08, 0, 0.07), GREY, "computer"),
    ]
    links = [
        world,
        link("base_link", 0.1, inertia=_BODY),
        link("chassis", 0.1, inertia=_BODY, shapes=hull),
        link("chassis_inertia", 4.0, (0.1477, 0, 0), _BODY),
        link("laser", 0.13, inertia=4e-06, shapes=[cylinder(0.025, (0, 0, -0.035), (0, 0, 0.035), DARK, "laser")]),
        link("zed_camera_link", 1e-05, inertia=1e-06, shapes=[box((0.033, 0.175, 0.03), color=DARK, name="camera")]),
        link("camera_link", 1e-05, inertia=1e-06),
        link("zed_camera_right_link", 1e-05, inertia=1e-06),
    ]
    joints = [
        base_joint,
        joint("base_link_joint", "fixed", "base_link", "chassis", (0, 0, 0.05)),
        joint("chassis_inertia_joint", "fixed", "chassis", "chassis_inertia"),
    ]
    spin, out = (0.0, 0.0, -1.0), (pi / 2, 0, 0)
    for name, side in (("left", 1), ("right", -1)):
        links.append(_wheel(f"{name}_rear_wheel", side))
        end = f"{name}_rear_wheel"
        joints.append(joint(f"{end}_joint", "continuous", "chassis", end, (0, side * 0.1, 0), out, spin, _SPIN))
    for name, side in (("left", 1), ("right", -1)):
        hinge, end = f"{name}_steering_hinge", f"{name}_front_wheel"
        links += [link(hinge, 0.1, inertia=4e-06), _wheel(end, side)]
        at, axis = (0.325, side * 0.1, 0), (-1.0, 0.0, 0.0)
        joints.append(joint(f"{hinge}_joint", "revolute", "chassis", hinge, at, (0, pi / 2, 0), axis, _STEER))
        joints.append(joint(f"{end}_joint", "continuous", hinge, end, rpy=out, axis=spin, limits=_SPIN))
    joints += [
        joint("hokuyo_joint", "fixed", "chassis", "laser", (0.265, 0, 0.075)),
        joint("zed_camera_joint", "fixed", "chassis", "zed_camera_link", (0.39, 0, 0.04)),
        joint("zed_camera_left_joint", "fixed", "zed_camera_link", "camera_link", (0, 0.06, 0)),
        joint("zed_camera_right_joint", "fixed", "zed_camera_link", "zed_camera_right_link", (0, -0.06, 0)),
    ]
    return robot("racecar", links, joints, SOURCE, home=(0, 0, 0, 0, 0, 0, 1, *[0.0] * 6))
