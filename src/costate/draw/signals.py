"""Arrows per frame: contact forces, and the way in which a loss falls."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from costate.core.arrays import Array
from costate.draw.marks import ramp
from costate.draw.poses import Motion
from costate.model import Model
from costate.robot import Robot

LONGEST = 0.2
"""Length of the longest arrow of a motion, as a part of the scene's size."""
SHORTEST = 0.02
"""Arrows shorter than this part of the longest are left out."""


def contact_vectors(world: Any, states: Any, motion: Motion) -> list[Array]:
    """Return, per frame, start and vector of each contact force [m], shape (contacts, 6), as it acts on what moves."""
    if not hasattr(world, "contacts"):
        raise ValueError(f"contacts are drawn for worlds; {type(world).__name__} given")
    x = torch.as_tensor(states, dtype=torch.float64).detach()
    if x.shape[-1] != world.nx:
        raise ValueError(f"contact forces need whole states (..., {world.nx}); configurations alone were given")
    x = x.reshape(motion.frames, -1, x.shape[-1])[:, list(motion.chosen)]
    touch = world.contacts(x)
    force = touch.normals * touch.forces.unsqueeze(-1) + touch.friction
    side = torch.tensor([-1.0 if first == "world" else 1.0 for first, _ in touch.pairs], dtype=force.dtype)
    vectors = (force * side[:, None]).numpy()
    starts = touch.points.numpy() + motion.offsets[None, :, None]
    return [_scaled(s, v, vectors, motion)[0] for s, v in zip(starts, vectors, strict=True)]


def gradient_vectors(motion: Motion, gradient: Any, joints: tuple[str, ...] = ()) -> list[Array]:
    """Return, per frame, start, vector and colour of arrows that show a gradient, shape (arrows, 9).

    gradient: by states (nx) or configurations (nq): where each link would move if the configuration followed the negative
    gradient. By controls, one for each of `joints`: along the joint's axis, the way in which the control should change.
    (T, n) or (T, B, n), with a T of as many steps as there are states, or controls between them.
    """
    g = torch.as_tensor(gradient, dtype=torch.float64).detach()
    g = g.unsqueeze(1) if g.dim() == 2 else g
    g = g[:, list(motion.chosen)] if g.shape[1] > max(motion.chosen, default=0) else g.expand(-1, motion.samples, -1)
    if by_state(motion, len(g), g.shape[-1]):
        starts, vectors = _descent(motion, g[..., : motion.model.nq])
    elif g.shape[-1] == len(joints) and len(g) <= motion.frames:
        starts, vectors = _axes(motion, g, joints)
    else:
        model, T = motion.model, motion.frames
        raise ValueError(
            f"a gradient along this motion has shape ({T}, {model.nq + model.nv}) by states, ({T}, {model.nq}) by "
            f"configurations or ({T - 1}, {len(joints)}) by controls; ({len(g)}, {g.shape[-1]}) given"
        )
    frames = []
    for s, v in zip(starts, vectors, strict=True):
        arrows, size = _scaled(s, v, vectors, motion)
        frames.append(np.concatenate([arrows, ramp(size)], 1))
    return frames + [np.zeros((0, 9))] * (motion.frames - len(frames))


def by_state(motion: Motion, steps: int, size: int) -> bool:
    """Return whether a gradient of that shape is one by states or configurations: it has a row for every frame."""
    return steps == motion.frames and size in (motion.model.nq, motion.model.nq + motion.model.nv)


def _scaled(starts: Array, vectors: Array, all_vectors: Array, motion: Motion) -> tuple[Array, Array]:
    """Return arrows of one frame (n, 6) with the longest of the motion at LONGEST, and their sizes in [0, 1]."""
    longest = float(np.linalg.norm(all_vectors, axis=-1).max(initial=0.0))
    size = np.linalg.norm(vectors, axis=-1) / (longest or 1.0)
    keep = size > SHORTEST
    scale = LONGEST * motion.extent / (longest or 1.0)
    return np.concatenate([starts[keep], vectors[keep] * scale], -1).reshape(-1, 6), size[keep]


def _descent(motion: Motion, g: torch.Tensor) -> tuple[Array, Array]:
    """Return origins of the links that move, and their velocity under dq = -gradient."""
    model = motion.model
    q = motion.configurations[: len(g)]
    kernel = Robot(model).kernel("forward_kinematics")

    def origins(x: torch.Tensor) -> torch.Tensor:
        return torch.stack(list(kernel.apply([x])[0::2]), -2)

    velocity = torch.func.jvp(origins, (q,), (-_tangent(model, q, g),))[1]
    ends = _own_frames(model)
    starts = motion.links[: len(g), :, :, :, 3][:, :, ends]
    return starts, velocity[..., ends, :].numpy()


def _tangent(model: Model, q: torch.Tensor, g: torch.Tensor) -> torch.Tensor:
    """Remove the part of a gradient that would change the length of a quaternion."""
    g = g.clone()
    for joint, k in zip(model.joints, model.q_index, strict=True):
        if joint.kind in ("floating", "spherical"):
            part = slice(k + joint.nq - 4, k + joint.nq)
            x = q[..., part]
            g[..., part] -= x * (x * g[..., part]).sum(-1, keepdim=True)
    return g


def _own_frames(model: Model) -> list[int]:
    """Return one link per moving body, the last that is rigidly part of it: its tip rather than its joint."""
    last: dict[int, int] = {}
    body = {0: -1}
    for i, joint in enumerate(model.joints):
        parent = model.parents[i] + 1
        body[i + 1] = body[parent] if joint.kind == "fixed" else i
        if body[i + 1] >= 0:
            last[body[i + 1]] = i + 1
    return sorted(last.values())


def _axes(motion: Motion, g: torch.Tensor, joints: tuple[str, ...]) -> tuple[Array, Array]:
    index = [[j.name for j in motion.model.joints].index(name) for name in joints]
    axes = np.array([motion.model.joints[i].axis for i in index])
    poses = motion.links[: len(g), :, [i + 1 for i in index]]
    vectors = np.einsum("...nij,nj->...ni", poses[..., :3], axes) * -g.numpy()[..., None]
    return poses[..., 3], vectors
