"""Poses of all links along a trajectory, for several samples side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch

from costate.core.arrays import Array
from costate.draw.drawing import Drawing, draw_model, model_of
from costate.model import Model
from costate.robot import Robot


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
        some = self.links[:: max(1, self.frames // 20)]
        placed = self.drawing.place(some)
        # As boxes around each instance: the reach of a mesh along its axes, turned into the world.
        reach = np.array([self._reach(i) for i in range(len(self.drawing.instances))]).reshape(-1, 3)
        spread = np.einsum("...nij,nj->...ni", np.abs(placed[..., :3]), reach)
        low = (placed[..., 3] - spread).reshape(-1, 3)
        high = (placed[..., 3] + spread).reshape(-1, 3)
        if not len(low):
            return np.full(3, -0.5), np.full(3, 0.5)
        return low.min(0), high.max(0)

    def _reach(self, instance: int) -> Array:
        part = self.drawing.instances[instance]
        return np.abs(self.drawing.meshes[part.mesh].vertices).max(0) * part.scale


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
    """Return offsets of the samples on a square grid on the ground, centred, shape (samples, 3)."""
    low, high = motion.bounds
    size = (high - low)[:2]
    gap = np.full(2, spacing) if spacing is not None else np.maximum(1.15 * size, 0.3 * size.max())
    columns = int(np.ceil(np.sqrt(motion.samples)))
    index = np.arange(motion.samples)
    cell = np.stack([index // columns, index % columns], -1).astype(float)
    cell -= (cell.max(0)) / 2
    return np.concatenate([cell * gap, np.zeros((motion.samples, 1))], 1)
