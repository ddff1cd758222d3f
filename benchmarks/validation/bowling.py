"""Validation: a ball thrown into ten pins, by both engines, a thousand times.

Impacts magnify small differences, so engines need not agree on where a pin ends up. They must agree on how many fall, on average.

A pin is a capsule on a square foot that meets the floor alone: spheres, capsules and boxes on a plane are the pairs whose contact
points both engines place alike. (Cylinders touch each other in one point in MuJoCo, in up to four in ours.)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial.transform import Rotation

from benchmarks.validation.twins import Twins

SPACING = 0.305
"""Distance of neighbouring pins [m]."""
HEIGHT, BELLY, FOOT = 0.38, 0.045, 0.035
"""Height of a pin; radius of its capsule; half an edge of its foot [m]."""
BALL, BALL_MASS, PIN_MASS = 0.108, 6.0, 1.5
"""Radius [m], masses [kg]."""
START = -0.5
"""Start of the ball along the lane [m]; the first pin stands at 0."""
SECONDS = 2.0
TILTED = 0.7
"""A pin whose axis has a smaller vertical part is down."""
DT = 0.002
EVERY = 50
"""Steps between states that are kept; seconds are a multiple of so many."""


def spots(pins: int) -> np.ndarray:
    """Compute where pins stand, row by row [m], (pins, 2)."""
    rows = [(r * SPACING * np.sqrt(3) / 2, (k - r / 2) * SPACING) for r in range(4) for k in range(r + 1)]
    return np.array(rows[:pins])


def mjcf(pins: int) -> str:
    """The lane, the ball and the pins."""
    low, high = 0.015 + BELLY, HEIGHT - BELLY
    standing = "\n".join(
        f"""    <body name="pin{k}" pos="{x!r} {y!r} 0"><freejoint name="pin{k}"/>
      <inertial pos="0 0 {0.42 * HEIGHT!r}" mass="{PIN_MASS}" diaginertia="0.015 0.015 0.002"/>
      <geom name="foot{k}" type="box" size="{FOOT} {FOOT} 0.02" pos="0 0 0.02" contype="0" conaffinity="2"/>
      <geom name="belly{k}" type="capsule" size="{BELLY}" fromto="0 0 {low!r} 0 0 {high!r}"/></body>"""
        for k, (x, y) in enumerate(spots(pins).tolist())
    )
    return f"""<mujoco>
  <option timestep="{DT}" integrator="Euler"/>
  <default><geom friction="0.4 0.005 0.0001" condim="3"/></default>
  <worldbody>
    <geom name="floor" type="plane" size="20 20 1" friction="0.2 0.005 0.0001" contype="3" conaffinity="3"/>
    <body name="ball" pos="{START} 0 {BALL}"><freejoint name="ball"/><geom name="ball" size="{BALL}" mass="{BALL_MASS}"/></body>
{standing}
  </worldbody>
</mujoco>
"""


def alley(pins: int = 10) -> Twins:
    """The same file in both engines."""
    return Twins.of(mjcf(pins), self_collision=True)


def throws(twins: Twins, count: int, seed: int = 0, speed: tuple[float, float] = (4.0, 8.0)) -> np.ndarray:
    """MuJoCo's states (count, size): the ball rolls towards the pins at a random speed [m/s], aside and askew."""
    random = np.random.default_rng(seed)
    qpos = np.tile(twins.model.qpos0, (count, 1))
    qvel = np.zeros((count, twins.model.nv))
    qpos[:, 1] = random.uniform(-0.2, 0.2, count)
    fast, askew = random.uniform(*speed, count), random.normal(0.0, 0.03, count)
    qvel[:, 0], qvel[:, 1] = fast * np.cos(askew), fast * np.sin(askew)
    qvel[:, 3], qvel[:, 4] = -qvel[:, 1] / BALL, qvel[:, 0] / BALL  # it rolls
    return twins.states(qpos, qvel)


@dataclass(frozen=True)
class Outcome:
    """The outcome of many throws."""

    down: np.ndarray
    """Pins that fell, (n,)."""
    speed: np.ndarray
    """Speeds of the ball in the end [m/s], (n,)."""


def judge(twins: Twins, states: np.ndarray) -> Outcome:
    """States (n, nx), ours."""
    (_, v), *pins = twins.free_joints()
    upright = [Rotation.from_quat(states[:, q + 3 : q + 7]).as_matrix()[:, 2, 2] for q, _ in pins]
    down = (np.array(upright) < TILTED).sum(0)
    nq = twins.model.nq
    return Outcome(down, np.linalg.norm(states[:, nq + v : nq + v + 3], axis=-1))


def bowl(twins: Twins, start: np.ndarray, engine: str, seconds: float = SECONDS) -> Outcome:
    """engine: "ours" or "theirs"."""
    none = np.zeros((round(seconds / DT), len(start), 0))
    if engine == "ours":
        return judge(twins, twins.run_ours(start, none, EVERY)[-1])
    return judge(twins, twins.to_ours(twins.run_theirs(start, none, EVERY)[-1]))
