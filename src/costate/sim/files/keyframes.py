"""Keyframes: states and controls that the files of a world's robots name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from costate.core.arrays import Array
from costate.core.names import unknown
from costate.model import GeneralActuator, Joint, Transform
from costate.model.base import float_in_world
from costate.model.model import Keyframe
from costate.robot import Robot
from costate.sim.setup import Setup


def keyframe_names(robots: Mapping[str, Robot]) -> list[str]:
    """Return the names of all keyframes of the robots' files, each once."""
    return list(dict.fromkeys(k.name for r in robots.values() for k in r.model.keyframes))


def keyframe_state(
    setup: Setup, robots: Mapping[str, Robot], poses: Mapping[str, Transform], name: str, start: Array
) -> Array:
    """Return a state (nx,) in which the robots whose files have the keyframe are there, and all else is as in start (nx,).

    Keyframes move with the poses of their robots. Activations are set where those of the world are the files' own.
    """
    state = start.copy()
    at = [poses.get(name, Transform()) for name in robots]
    counts = [_activations(r) for r in robots.values()]
    q, v, act = 0, setup.nq, setup.nq + setup.nv  # robots come first, one after the other
    for (robot, key), pose, count in zip(_found(robots, name), at, counts, strict=True):
        if key is not None:
            state[q : q + robot.nq], state[v : v + robot.nv] = _placed(robot, key.q, pose), key.v
            if sum(counts) == setup.na:
                state[act : act + count] = key.activations
        q, v, act = q + robot.nq, v + robot.nv, act + count
    return state


def keyframe_control(setup: Setup, robots: Mapping[str, Robot], name: str) -> Array:
    """Return the controls (nu,) of a keyframe, zero for robots that have none of that name."""
    found = [np.zeros(len(r.model.actuators)) if k is None else k.controls for r, k in _found(robots, name)]
    control = np.concatenate([np.zeros(0), *found])
    if control.size != setup.nu:
        raise ValueError(
            f"keyframe '{name}' has controls for the {control.size} actuators of the files, but this world has {setup.nu}: "
            'use actuators="file"'
        )
    return control


def _found(robots: Mapping[str, Robot], name: str) -> Iterator[tuple[Robot, Keyframe | None]]:
    names = keyframe_names(robots)
    if name not in names:
        raise ValueError(
            unknown("keyframe", name, names) if names else f"no keyframe '{name}': the robots' files have none"
        )
    for robot in robots.values():
        yield robot, next((k for k in robot.model.keyframes if k.name == name), None)


def _placed(robot: Robot, q: Array, pose: Transform) -> Array:
    """Return a configuration (nq,) of a robot whose root is at a pose: what floats has its pose in the world."""
    root = robot.model.links[0].name
    base = Joint("", "fixed", "", root, pose)
    found = float_in_world("", (base, *robot.model.joints), q)[1]
    return q if found is None else found


def _activations(robot: Robot) -> int:
    return sum(isinstance(a, GeneralActuator) and a.dynamics != "none" for a in robot.model.actuators)
