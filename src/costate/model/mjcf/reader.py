"""Reads MJCF files, as compiled by MuJoCo: defaults, includes and the inertias of geoms are its work.

A body with several joints becomes a chain of massless links, one per joint but the last. Where a joint is not anchored
at the body's origin, a fixed joint leads from the anchor to the link that bears the body's name. Coordinates mean the
same as in MuJoCo (`ref` included), but for the order of quaternions and the axes of velocities (docs/conventions.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from costate.core.arrays import Array
from costate.model.base import WORLD, with_floating_base
from costate.model.document import parse
from costate.model.errors import Assumptions
from costate.model.joint import JOINT_SIZES, Joint
from costate.model.mjcf.actuator import read_actuators
from costate.model.mjcf.compiled import compile_mjcf
from costate.model.mjcf.contact import listed_geoms, read_excluded, read_listed
from costate.model.mjcf.equality import read_constraints
from costate.model.mjcf.fields import note_fields
from costate.model.mjcf.flags import follow_flags
from costate.model.mjcf.geom import read_geoms, softness
from costate.model.mjcf.limits import check_mjcf
from costate.model.mjcf.option import read_drag, read_physics
from costate.model.mjcf.tendon import read_tendons
from costate.model.model import Inertia, Keyframe, Link, Model
from costate.model.rotation import about_axis, from_wxyz
from costate.model.surface import Bounds
from costate.model.transform import Transform
from costate.model.tree import note_massless
from costate.model.urdf.inertia import Faulty, check_answer

# mjtJoint -> our kind. Plain integers: since MuJoCo 3.12 its enums no longer compare equal to the arrays' integers.
_KINDS = {0: "floating", 1: "spherical", 2: "prismatic", 3: "revolute"}


def read_mjcf(path: str | Path, floating_base: bool | None = None, inertia: Faulty = "refuse") -> Model:
    """Return the robot, or all the bodies, in an MJCF file; link 0 is "world" and has the geoms of the world body.

    floating_base: True frees a single body that is fixed to the world, False fixes one that is free, None keeps it.
    inertia: "repair" takes the nearest inertia that a body can have for those that MuJoCo would refuse.
    Raises ModelError for a faulty file; warns with ModelWarning of what is left out. Needs mujoco (extra "mjcf").
    """
    path = Path(path)
    root = parse(path)
    if root.tag != "mujoco":
        root.fail("is not MJCF; the root element of an MJCF file is <mujoco>")
    check_answer(inertia)
    assumed = Assumptions(str(path))
    mj = compile_mjcf(path, check_mjcf(root, path), inertia, assumed)
    follow_flags(mj, assumed)
    links, joints = _links_and_joints(mj, assumed)
    _note_left_out(mj, assumed)
    note_fields(mj, assumed)
    note_massless(links, joints, assumed)
    joint = partial(_joint_name, mj)
    model = Model(
        name=root.element.get("model") or path.stem,
        links=links,
        joints=joints,
        gravity=np.array(mj.opt.gravity),
        source=str(path),
        actuators=read_actuators(mj, names(mj), joint, assumed),
        physics=read_physics(mj, assumed),
        constraints=read_constraints(mj, names(mj), joint, assumed),
        tendons=read_tendons(mj, names(mj), joint, assumed),
        listed=read_listed(mj, assumed),
        excluded=read_excluded(mj, names(mj)),
    )
    assumed.warn()
    home = _coordinates(mj, mj.qpos0)
    return with_floating_base(replace(model, home=home, keyframes=_keyframes(mj)), floating_base)


def names(mj: Any) -> list[str]:
    """Return the names of the links that stand for the bodies."""
    return [mj.body(b).name or f"body{b}" for b in range(mj.nbody)]


def _links_and_joints(mj: Any, assumed: Assumptions) -> tuple[tuple[Link, ...], tuple[Joint, ...]]:
    called, listed = names(mj), listed_geoms(mj)
    links, joints = [Link(WORLD, Inertia(), *read_geoms(mj, 0, listed, assumed))], []
    for b in range(1, mj.nbody):
        for joint in _body_joints(mj, b, called[b], called[mj.body_parentid[b]]):
            joints.append(joint)
            links.append(Link(joint.child))
        shapes, carried = read_geoms(mj, b, listed, assumed), float(mj.body_gravcomp[b])
        links[-1] = Link(called[b], _inertia(mj, b), *shapes, read_drag(mj, b), carried)
    return tuple(links), tuple(joints)


def _body_joints(mj: Any, b: int, body: str, parent: str) -> Iterator[Joint]:
    """Yield the joints from the parent body to a body, in the order in which MuJoCo applies them."""
    frame = Transform(from_wxyz(mj.body_quat[b]), np.array(mj.body_pos[b]))  # of the body, in the link reached so far
    first, count = int(mj.body_jntadr[b]), int(mj.body_jntnum[b])
    if not count:
        yield Joint(f"{body}_fixed", "fixed", parent, body, frame)
    for j in range(first, first + count):
        kind = _KINDS[int(mj.jnt_type[j])]
        anchor = Transform(translation=np.zeros(3) if kind == "floating" else np.array(mj.jnt_pos[j]))
        at_body = not np.any(anchor.translation)
        last = j == first + count - 1
        child = body if last and at_body else f"{body}/{_joint_name(mj, j)}"
        # The coordinates of a free joint are the pose in the world itself: the body's pose is only where it starts.
        origin = Transform() if kind == "floating" else frame @ anchor @ _reference(mj, j, kind)
        yield _joint(mj, j, kind, parent, child, origin)
        parent, frame = child, anchor.inverse()
        if last and not at_body:
            yield Joint(f"{body}_fixed", "fixed", parent, body, frame)


def _reference(mj: Any, j: int, kind: str) -> Transform:
    """Return the inverse of the motion that takes q = 0 to MuJoCo's reference configuration q = ref."""
    axis, ref = mj.jnt_axis[j], float(mj.qpos0[mj.jnt_qposadr[j]])
    if kind == "revolute":
        return Transform(rotation=about_axis(axis, -ref))
    return Transform(translation=-ref * axis) if kind == "prismatic" else Transform()


def _joint(mj: Any, j: int, kind: str, parent: str, child: str, origin: Transform) -> Joint:
    name, dof = _joint_name(mj, j), int(mj.jnt_dofadr[j])
    scalar = kind in ("revolute", "prismatic")
    lower, upper = mj.jnt_range[j] if scalar and mj.jnt_limited[j] else (-np.inf, np.inf)
    return Joint(
        name=name,
        kind=kind,
        parent=parent,
        child=child,
        origin=origin,
        axis=np.array(mj.jnt_axis[j]) if scalar else np.array([0.0, 0.0, 1.0]),
        lower=np.array([lower]),
        upper=np.array([upper]),
        max_effort=np.array([np.abs(mj.jnt_actfrcrange[j]).max() if mj.jnt_actfrclimited[j] else np.inf]),
        carries=bool(mj.jnt_actgravcomp[j]),
        efforts=(float(mj.jnt_actfrcrange[j, 0]), float(mj.jnt_actfrcrange[j, 1])) if mj.jnt_actfrclimited[j] else None,
        damping=float(mj.dof_damping[dof]),
        friction=float(mj.dof_frictionloss[dof]),
        armature=float(mj.dof_armature[dof]),
        stiffness=float(mj.jnt_stiffness[j]),
        rest=float(mj.qpos_spring[mj.jnt_qposadr[j]]) if scalar else 0.0,
        rest_at=_joint_coordinates(mj, j, mj.qpos_spring) if mj.jnt_stiffness[j] and not scalar else None,
        max_angle=float(mj.jnt_range[j].max()) if kind == "spherical" and mj.jnt_limited[j] else np.inf,
        bounds=Bounds(
            softness(mj.jnt_solref[j], mj.jnt_solimp[j]),
            softness(mj.dof_solref[dof], mj.dof_solimp[dof]),
            float(mj.jnt_margin[j]),
        ),
    )


def _joint_name(mj: Any, j: int) -> str:
    return mj.joint(j).name or f"joint{j}"


def _inertia(mj: Any, b: int) -> Inertia:
    R = from_wxyz(mj.body_iquat[b])
    return Inertia(float(mj.body_mass[b]), np.array(mj.body_ipos[b]), R @ np.diag(mj.body_inertia[b]) @ R.T)


def _note_left_out(mj: Any, assumed: Assumptions) -> None:
    if mj.nflex:
        what = f"{mj.nflex} deformable bodies"
        assumed.note("parts of the file that a tree of rigid bodies cannot hold, left out", what)


# --- states ------------------------------------------------------------------------------------------------------------


def _keyframes(mj: Any) -> tuple[Keyframe, ...]:
    """Return the states that a file names; one without a name is called by its number."""
    return tuple(_keyframe(mj, k) for k in range(mj.nkey))


def _coordinates(mj: Any, qpos: Array) -> Array:
    """Return all coordinates (nq,) from MuJoCo's."""
    return np.concatenate([np.zeros(0), *(_joint_coordinates(mj, j, qpos) for j in range(mj.njnt))])


def _joint_coordinates(mj: Any, j: int, qpos: Array) -> Array:
    """Return the coordinates of a joint among all, with a quaternion as x, y, z, w."""
    start = int(mj.jnt_qposadr[j])
    q = np.array(qpos[start : start + JOINT_SIZES[_KINDS[int(mj.jnt_type[j])]][0]])
    return q if len(q) == 1 else np.concatenate([q[:-4], q[-3:], q[-4:-3]])


def _keyframe(mj: Any, k: int) -> Keyframe:
    q, v = _coordinates(mj, mj.key_qpos[k]), np.array(mj.key_qvel[k])
    for j in range(mj.njnt):
        if _KINDS[int(mj.jnt_type[j])] == "floating":  # MuJoCo has the velocity of a free body's origin in world axes
            at, dof = int(mj.jnt_qposadr[j]), int(mj.jnt_dofadr[j])
            v[dof : dof + 3] = from_wxyz(mj.key_qpos[k][at + 3 : at + 7]).T @ v[dof : dof + 3]
    return Keyframe(mj.key(k).name or str(k), q, v, np.array(mj.key_act[k]), np.array(mj.key_ctrl[k]))
