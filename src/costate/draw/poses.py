"""Poses of all links along a trajectory, for several samples side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np
import torch

from costate.core.arrays import Array
from costate.draw.drawing import Drawing, draw_model, model_of
from costate.draw.surfaces import Surface
from costate.model import Model
from costate.robot import Robot

ALONE = 4.0
"""Size of a scene by that of what moves in it, above which a camera looks only at what moves."""


class Kinematics:
    """Poses of all links of a model, batched."""

    def __init__(self, model: Model):
        self.model = model
        self._kernel = Robot(model).kernel("forward_kinematics")

    def __call__(self, q: Any) -> Array:
        """Return poses [R | p] in the world, (..., links, 3, 4), at q (..., nq)."""
        q = torch.as_tensor(q, dtype=torch.float64).detach()
        if not self.model.nq:
            q = q.new_zeros(*q.shape[:-1], 0)
        found = self._kernel.apply([q[..., : self.model.nq]])
        position = torch.stack(list(found[0::2]), -2)
        rotation = torch.stack(list(found[1::2]), -3)
        return torch.cat([rotation, position.unsqueeze(-1)], -1).numpy()


@dataclass(frozen=True, eq=False)
class Motion:
    """A drawing and where its links are, frame by frame, for each sample."""

    drawing: Drawing
    links: Array
    """World poses of the links, offsets of the samples included, shape (frames, samples, links, 3, 4)."""
    times: Array
    """Times [s], shape (frames,)."""
    offsets: Array
    """Position at which each sample is drawn [m], shape (samples, 3)."""
    chosen: tuple[int, ...] = (0,)
    """Numbers of the samples in their batch."""
    source: Model | None = None
    """Model that moves; None for a motion that was read from a file."""
    q: torch.Tensor | None = None
    """Configurations, shape (frames, samples, nq); None for a motion that was read from a file."""
    surfaces: tuple[Surface, ...] = ()
    """Surfaces that change their shape, such as cloth, of one sample."""

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        return import_module("costate.report.notebook").motion_html(self)

    @property
    def model(self) -> Model:
        if self.source is None:
            raise ValueError("this motion was read from a file, which holds poses but no model")
        return self.source

    @property
    def configurations(self) -> torch.Tensor:
        if self.q is None:
            raise ValueError("this motion was read from a file, which holds poses but no configurations")
        return self.q

    @property
    def frames(self) -> int:
        return self.links.shape[0]

    @property
    def samples(self) -> int:
        return self.links.shape[1]

    def instances(self, frame: int) -> Array:
        """Return world poses of all instances of all samples in a frame, shape (samples, instances, 3, 4)."""
        return self.drawing.place(self.links[frame])

    @property
    def extent(self) -> float:
        """Diagonal of the bounds [m]."""
        low, high = self.bounds
        return float(np.linalg.norm(high - low))

    @cached_property
    def bounds(self) -> tuple[Array, Array]:
        """Lowest and highest corner of what moves or stands around, over all frames [m]."""
        corners = self._corners(np.arange(len(self.drawing.instances)))
        return corners.min(0), corners.max(0)

    @cached_property
    def outline(self) -> Array:
        """Points around everything, over all frames [m], shape (n, 3): a camera that sees them sees all.

        Where things stand around that are much larger than the motion, they are what moves.
        """
        corners = self._corners(np.arange(len(self.drawing.instances)))
        travel = np.ptp(self.links, axis=0).max((0, 2, 3)) if self.frames > 1 else np.zeros(len(self.drawing.links))
        moving = np.flatnonzero(travel[self.drawing.link_index] > 1e-6)
        if len(moving) or self.surfaces:
            own = self._corners(moving)
            corners = (
                own
                if np.linalg.norm(np.ptp(corners, axis=0)) > ALONE * np.linalg.norm(np.ptp(own, axis=0))
                else corners
            )
        k = np.arange(200) + 0.5  # directions, evenly over the sphere
        z, turn = 1 - 2 * k / len(k), k * np.pi * (1 + 5**0.5)
        d = np.stack([np.sqrt(1 - z**2) * np.cos(turn), np.sqrt(1 - z**2) * np.sin(turn), z], -1)
        return corners[np.unique((corners @ d.T).argmax(0))]

    def _corners(self, instances: np.ndarray) -> Array:
        """Return the corners of the boxes around instances, and points of surfaces, in up to 60 frames, the last one included,
        shape (n, 3)."""
        few = np.unique(np.linspace(0, self.frames - 1, min(self.frames, 60)).round().astype(int))
        points = [s.points[few].reshape(-1, 3) for s in self.surfaces]
        if not len(instances):
            return np.concatenate(points) if points else np.array([np.full(3, -0.5), np.full(3, 0.5)])
        placed = self.drawing.place(self.links[few])[..., instances, :, :]
        boxes = np.array([self._box(i) for i in instances])  # (n, 8, 3)
        turned = np.einsum("...nij,nkj->...nki", placed[..., :3], boxes)
        return np.concatenate([(turned + placed[..., None, :, 3]).reshape(-1, 3), *points])

    def _box(self, instance: int) -> Array:
        """Return the eight corners of the box around an instance, in its own frame."""
        part = self.drawing.instances[instance]
        vertices = self.drawing.meshes[part.mesh].vertices
        ends = np.stack([vertices.min(0), vertices.max(0)]) * part.scale
        return np.array([[ends[(k >> i) & 1][i] for i in range(3)] for k in range(8)])


def motion_of(
    source: Any,
    states: Any,
    dt: float | None = None,
    samples: Sequence[int] | int | None = None,
    spacing: float | None = None,
    collisions: bool = False,
) -> Motion:
    """Return the motion of a world, robot or model through states or configurations.

    Args:
        states: (T, nx), (T, B, nx) or (nx,): states, or configurations (nq) alone.
        dt: Time between states [s]; None: the world's, or 1/60.
        samples: Which of the batch, or how many of the first; None: at most 16.
        spacing: Distance between samples [m]; None: from their size.
        collisions: Collision shapes instead of visual ones.
    """
    model = model_of(source)
    x = _as_batch(states, model)
    count = x.shape[1]
    chosen = list(range(min(16 if samples is None else samples, count))) if _counts(samples) else list(samples)  # pyright: ignore
    if bad := [s for s in chosen if not 0 <= s < count]:
        raise ValueError(f"sample {bad[0]} was asked for; the batch has {count}")
    links = Kinematics(model)(x[:, chosen])
    drawing = draw_model(model, collisions)
    step = getattr(source, "dt", 1 / 60) if dt is None else dt
    times = np.arange(len(x)) * float(step)
    offsets = np.zeros((len(chosen), 3))
    q = x[:, chosen, : model.nq].contiguous()
    motion = Motion(drawing, links, times, offsets, tuple(chosen), model, q)
    if len(chosen) > 1 and spacing != 0:
        offsets = side_by_side(motion, spacing)
        links = links.copy()
        links[..., 3] += offsets[None, :, None]
        motion = Motion(drawing, links, times, offsets, tuple(chosen), model, q)
    return motion


def _counts(samples: Sequence[int] | int | None) -> bool:
    return samples is None or isinstance(samples, int)


def _as_batch(states: Any, model: Model) -> torch.Tensor:
    x = torch.as_tensor(states).detach().to(torch.float64)
    size = x.shape[-1] if x.dim() else 0
    if size not in (model.nq, model.nq + model.nv):
        raise ValueError(
            f"states have shape {tuple(x.shape)}; the last dimension must be nq + nv = {model.nq + model.nv} (a state) "
            f"or nq = {model.nq} (a configuration) of {model.name!r}"
        )
    if x.dim() > 3:
        raise ValueError(f"states have shape {tuple(x.shape)}; (T, nx), (T, B, nx) or (nx,) is expected")
    if not bool(torch.isfinite(x).all()):
        raise ValueError("some states are not finite, so there is nothing to draw at them")
    return x.reshape(1, 1, -1) if x.dim() == 1 else x.unsqueeze(1) if x.dim() == 2 else x


def side_by_side(motion: Motion, spacing: float | None = None) -> Array:
    """Return offsets of the samples, centred, shape (samples, 3): a row of up to three, else a square grid on the ground."""
    low, high = motion.bounds
    size = (high - low)[:2]
    gap = np.full(2, spacing) if spacing is not None else np.maximum(1.15 * size, 0.3 * size.max())
    columns = int(np.ceil(np.sqrt(motion.samples))) if motion.samples > 3 else motion.samples
    index = np.arange(motion.samples)
    cell = np.stack([index // columns, index % columns], -1).astype(float)
    cell = cell if motion.samples > 3 or gap[1] <= gap[0] else cell[:, ::-1]  # a row along the shorter side
    cell -= (cell.max(0)) / 2
    return np.concatenate([cell * gap, np.zeros((motion.samples, 1))], 1)
