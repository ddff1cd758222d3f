"""Tosses in MuJoCo: with its defaults, and with numbers fitted by its own least squares (the optimiser of its sysid tool)."""

# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import mujoco
import numpy as np
import torch
from mujoco import minimize, rollout

from costate.identify.tosses import Thrown
from costate.identify.tosses.turns import rotated, turn_between

SCENE = """<mujoco><option timestep="{step}" cone="elliptic"/><worldbody>
<geom name="floor" type="plane" size="5 5 1"/>
<body name="cube"><freejoint/><inertial pos="0 0 0" mass="{mass}" diaginertia="{i} {i} {i}"/>
<geom name="cube" type="box" size="{half} {half} {half}"/></body></worldbody></mujoco>"""
NAMES = [
    "friction",
    "timeconst",
    "dampratio",
    *(f"{k} {a}" for k in ("com", "I", "size", "place") for a in "xyz"),
    "g",
    "floor",
]
LARGE, STEP = 0.05, 1e-2
"""Error in widths from which on it counts by its size, not its square; step of the differences, long enough to see past kinks of
contact: 1 % of friction, 0.1 mm."""
SPREAD = 1.5
"""Bounds of the raw numbers: mostly logarithms, or tenths of a width."""


class Scene:
    """A box over a floor in MuJoCo, with numbers that may be set."""

    def __init__(self, thrown: Thrown, inertia: float, dt: float, substeps: int, friction: float | None):
        self.thrown, self.substeps, self.width = thrown, substeps, thrown.length
        text = SCENE.format(step=dt / substeps, mass=thrown.mass, i=inertia, half=self.width / 2)
        self.model = mujoco.MjModel.from_xml_string(text)
        if friction is not None:
            self.model.geom_friction[:, 0] = friction
        m = self.model
        m.body_sameframe[:], m.geom_sameframe[:] = 0, 0  # else MuJoCo leaves out offsets that the file does not have
        self.start = [m.geom_friction.copy(), m.geom_solref.copy(), m.body_inertia.copy(), m.geom_size.copy()]

    def set(self, x: np.ndarray) -> None:
        """Set the numbers: logarithms of ratios, and lengths in tenths of the width, in the order of NAMES."""
        m, (friction, solref, inertia, size) = self.model, self.start
        m.geom_friction[:, 0] = friction[:, 0] * np.exp(x[0])
        m.geom_solref[:] = solref * np.exp(x[1:3])
        m.body_ipos[1] = 0.1 * self.width * x[3:6]
        m.body_inertia[1] = inertia[1] * np.exp(x[6:9])
        m.geom_size[1] = size[1] * np.exp(0.1 * x[9:12])
        m.geom_rbound[1] = np.linalg.norm(m.geom_size[1])
        m.geom_aabb[1, 3:] = m.geom_size[1]
        m.geom_pos[1] = 0.1 * self.width * x[12:15]
        m.opt.gravity[2] = -9.81 + x[15]
        m.geom_pos[0, 2] = 0.1 * self.width * x[16]

    def states(self, start: torch.Tensor, steps: int) -> torch.Tensor:
        """Return states (steps + 1, n, 13) in Costate's order from starts (n, 13); velocities are left at zero."""
        turn = start[:, 3:7]
        q = torch.cat([start[:, :3], turn[:, [3, 0, 1, 2]]], 1)
        v = torch.cat([rotated(turn, start[:, 7:10]), start[:, 10:]], 1)
        begin = torch.cat([torch.zeros(len(start), 1, dtype=q.dtype), q, v], 1).numpy()
        after, _ = rollout.rollout(self.model, mujoco.MjData(self.model), begin, nstep=steps * self.substeps)
        poses = torch.tensor(np.asarray(after)[:, self.substeps - 1 :: self.substeps, 1:8]).movedim(0, 1)
        poses = torch.cat([q[None], poses])
        return torch.cat([poses[..., :3], poses[..., [4, 5, 6, 3]], torch.zeros(*poses.shape[:2], 6)], -1)

    def fit(self, start: torch.Tensor, rows: torch.Tensor, iterations: int) -> np.ndarray:
        """Return the numbers that explain stretches best: errors count by their size (as in Costate's fit), differences as J."""

        def residual(points: np.ndarray) -> np.ndarray:
            columns = []
            for x in points.T:
                self.set(x)
                states = self.states(start, len(rows) - 1)
                away = torch.cat(
                    [
                        (states[..., :3] - rows[..., :3]) / self.width,
                        turn_between(rows[..., 3:7], states[..., 3:7]) / 2,
                    ],
                    -1,
                )
                size = away.unflatten(-1, (2, 3)).norm(dim=-1, keepdim=True)
                # Squares add up to sizes where these are large, so that single tosses that went another way do not rule.
                columns.append((away.unflatten(-1, (2, 3)) / (1 + (size / LARGE) ** 2) ** 0.25).flatten().numpy())
            return np.stack(columns, 1)

        low = -SPREAD * np.ones(len(NAMES))
        found, _ = minimize.least_squares(
            np.zeros(len(NAMES)), residual, [low, -low], eps=STEP, max_iter=iterations, verbose=0
        )
        self.set(found)
        return found
