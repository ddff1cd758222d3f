"""The course of a printing process: elements and faces that are there in each step, and the place of the laser."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from costate.continuum.faces import Faces
from costate.continuum.mesh import HexMesh
from costate.continuum.toolpath import ToolPath


@dataclass(frozen=True, eq=False)
class FaceSet:
    """Faces in the order of their births, and those that may be exposed in each step."""

    nodes: np.ndarray
    """Nodes (F, 4)."""
    steps: np.ndarray
    """First step in which each is exposed, and the first in which it no longer is (F, 2): whole numbers, which
    are exact in float32, where two times may be rounded to the same number."""
    between: np.ndarray
    """First face and the one behind the last that may be exposed (steps, 2)."""

    @staticmethod
    def of(faces: Faces, chosen: np.ndarray, times: np.ndarray) -> FaceSet:
        """Return some of the faces in the order of their births."""
        index = np.flatnonzero(chosen)
        index = index[np.argsort(faces.birth[index], kind="stable")]
        birth, death = faces.birth[index], faces.death[index]
        born = np.searchsorted(birth, times, side="right")
        # Faces before the first one that still lives are dead for ever: the greatest death up to a face never falls.
        gone = np.searchsorted(np.maximum.accumulate(death), times, side="right") if len(index) else 0 * born
        steps = np.searchsorted(times, np.stack([birth, death], axis=1))
        between = np.stack([gone, np.maximum(born, gone)], axis=1)
        return FaceSet(faces.faces[index], steps.astype(float), between.astype(float))


@dataclass(frozen=True, eq=False)
class Timeline:
    """Steps of equal length."""

    times: np.ndarray
    """Times at which the steps begin (steps,) [s]."""
    dt: float
    """Length of a step [s]."""
    alive: np.ndarray
    """Number of elements that are there in each step (steps,)."""
    spots: np.ndarray
    """Mean positions of the laser in each step while it is on, or else those in the middle of the step (steps, 3) [m]."""
    on: np.ndarray
    """Share of each step in which the laser is on (steps,)."""
    lasting: FaceSet
    """Faces that stay exposed once they are."""
    passing: FaceSet
    """Faces that are covered later."""

    @staticmethod
    def of(mesh: HexMesh, path: ToolPath, dt: float, duration: float) -> Timeline:
        """Return the steps of a printing process."""
        steps = int(np.ceil(duration / dt - 1e-9))
        times = path.times[0] + dt * np.arange(steps)
        alive = np.searchsorted(mesh.birth, times, side="right")
        on, spots = _light(path, times, dt)
        faces = mesh.faces()
        stays = np.isinf(faces.death)
        return Timeline(
            times,
            dt,
            alive.astype(float),
            spots,
            on,
            FaceSet.of(faces, stays, times),
            FaceSet.of(faces, ~stays, times),
        )


def _light(path: ToolPath, times: np.ndarray, dt: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the share of each step in which the laser is on, and its mean position while it is, or else in the middle of it."""
    length, on = np.diff(path.times), path.on[1:]
    x = path.positions
    lit = np.concatenate([[0.0], np.cumsum(length * on)])
    moment = np.concatenate([np.zeros((1, 3)), np.cumsum((length * on)[:, None] * (x[1:] + x[:-1]) / 2, axis=0)])

    def so_far(t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the time for which it was on until t [s], and the integral of its position over that time [m s]."""
        k = np.clip(np.searchsorted(path.times, t, side="right") - 1, 0, len(length))
        more = np.append(on, False)[k] * np.clip(t - path.times[k], 0, None)
        return lit[k] + more, moment[k] + more[:, None] * (x[k] + path.at(t)[0]) / 2

    time, moments = (b - a for a, b in zip(so_far(times), so_far(times + dt), strict=True))
    lights = time > 1e-12 * dt
    mean = moments / np.where(lights, time, 1.0)[:, None]
    return np.where(lights, time, 0.0) / dt, np.where(lights[:, None], mean, path.at(times + dt / 2)[0])
