"""Cloth, the shapes around it and the robots that handle it, as a recording: what viewers, reports and films show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from costate.continuum.cloth.model import ClothModel
from costate.core.arrays import Array
from costate.draw.cloth.surface import COLORS, frames_of, surface
from costate.draw.drawing import draw_links, model_of
from costate.draw.poses import Kinematics, Motion
from costate.draw.recording import Recording
from costate.draw.surfaces import Surface
from costate.model import Inertia, Link, Shape
from costate.sim.world import World

GREY = (0.62, 0.62, 0.66, 1.0)
"""Colour of shapes."""


def record_cloth(
    model: ClothModel,
    times: Any,
    x: Any,
    *,
    robot: tuple[World, Tensor] | None = None,
    poses: Tensor | None = None,
    drawn: Mapping[str, Sequence[Shape]] | None = None,
) -> Recording:
    """Return a motion of cloth and ropes with everything around them, for `cs.view`, `Report.recording` and `render_recording`.

    Args:
        model: Model of the cloth.
        times: Times of the frames (frames,) [s].
        x: Positions in every frame (frames, points, 3) [m].
        robot: World of the robots and its states (frames, nx).
        poses: Poses of the shapes that move without a link (frames, shapes, 12), as `ClothModel.run` takes them.
        drawn: Shapes to draw for a collider that is none itself, such as a union: by its name, in its frame.
    """
    frames, moments = frames_of(x), np.asarray(times, float)
    if len(moments) != len(frames):
        raise ValueError(f"there are {len(moments)} times for {len(frames)} frames; give one for each")
    links, placed = _robots(robot, len(frames))
    still: list[Shape] = []
    moving = 0
    for collider in model.colliders:
        found = list((drawn or {}).get(collider.name, []))
        found = found or ([collider.shape] if isinstance(collider.shape, Shape) else [])
        if collider.link:
            continue
        if not collider.moves:
            still += found
            continue
        if poses is not None:
            links.append(_link(collider.name, found))
            placed.append(_matrices(poses[:, moving]))
        moving += 1
    # The first link may hold planes: a horizontal one is the ground.
    links.insert(0, _link("shapes", still))
    placed.insert(0, np.broadcast_to(np.eye(4)[:3], (len(frames), 3, 4)))
    every = [surface(model, f) for f in frames]
    surfaces = tuple(
        Surface(body.name, every[0][k][1], np.stack([e[k][0] for e in every]), COLORS[k % len(COLORS)])
        for k, body in enumerate(model.bodies)
    )
    motion = Motion(
        draw_links(links), np.stack(placed, 1)[:, None], moments, np.zeros((1, 3)), surfaces=surfaces
    )  # fmt: skip
    return Recording(motion)


def _link(name: str, shapes: Sequence[Shape]) -> Link:
    from dataclasses import replace

    painted = tuple(s if s.color else replace(s, color=GREY) for s in shapes)
    return Link(name, Inertia(0.0, np.zeros(3), np.zeros((3, 3))), painted)


def _robots(robot: tuple[World, Tensor] | None, frames: int) -> tuple[list[Link], list[Array]]:
    """Return the links of the robots, and their poses (frames, 3, 4) each."""
    if robot is None:
        return [], []
    world, states = robot
    if len(states) != frames:
        raise ValueError(f"there are {len(states)} states of the robots for {frames} frames; give one for each")
    model = model_of(world)
    poses = Kinematics(model)(torch.as_tensor(states)[:, : model.nq])
    return list(model.links), list(poses.swapaxes(0, 1))


def _matrices(poses: Tensor) -> Array:
    rows = np.asarray(poses.detach(), float)
    return np.concatenate([rows[:, 3:].reshape(-1, 3, 3), rows[:, :3, None]], -1)
