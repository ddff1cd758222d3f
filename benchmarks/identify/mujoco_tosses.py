"""Tosses in MuJoCo: with its defaults, and with numbers fitted by its own sysid tool (pip install 'mujoco[sysid]')."""

# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import mujoco
import numpy as np
import torch
from mujoco import rollout, sysid

from costate.identify.tosses import Thrown
from costate.identify.tosses.thrown import UNKNOWNS, usual_unknowns
from costate.identify.tosses.turns import rotated, turn_between

SCENE = """<mujoco><option timestep="{step}" cone="elliptic"/><worldbody>
<geom name="floor" type="plane" size="5 5 1"/>
<body name="cube"><freejoint/><inertial pos="0 0 0" mass="{mass}" diaginertia="{i} {i} {i}"/>
<geom name="cube" type="box" size="{half} {half} {half}"/></body></worldbody></mujoco>"""
LARGE, STEP = 0.05, 1e-2
"""Error in widths from which on it counts by its size, not its square; step of the differences, long enough to see past kinks of
contact: 1 % of friction, 0.1 mm."""
SPREAD = 1.5
"""Bounds of the raw numbers: mostly logarithms, or tenths of a width."""


class Scene:
    """A box over a floor in MuJoCo, with numbers that may be set: the unknowns that Costate finds with `Newton`."""

    def __init__(self, thrown: Thrown, inertia: float, dt: float, substeps: int, friction: float | None):
        self.thrown, self.substeps, self.width = thrown, substeps, thrown.length
        text = SCENE.format(step=dt / substeps, mass=thrown.mass, i=inertia, half=self.width / 2)
        self.model = m = mujoco.MjModel.from_xml_string(text)
        if friction is not None:
            m.geom_friction[:, 0] = friction
        m.body_sameframe[:], m.geom_sameframe[:] = 0, 0  # else MuJoCo leaves out offsets that the file does not have
        given = {
            "friction": m.geom_friction[1, :1],
            "solref": m.geom_solref[1],
            "solimp": m.geom_solimp[1],
            "size": 2 * m.geom_size[1],
            "position": np.zeros(3),
            "com": np.zeros(3),
            "inertia": np.diag(m.body_inertia[1]).ravel(),
            "gravity": m.opt.gravity,
            "floor": np.zeros(3),
        }
        self.start = {name: torch.tensor(np.array(x)) for name, x in given.items()}
        self.counts = {n: UNKNOWNS[n].count or len(self.start[n]) for n in usual_unknowns("newton", thrown.shape)}

    def set(self, raw: np.ndarray) -> None:
        """Set the numbers from raw ones, which mean what they mean in Costate's fit."""
        parts = torch.tensor(np.asarray(raw, float)).split(list(self.counts.values()))
        x = {
            name: UNKNOWNS[name].value(part, self.start[name], self.width).numpy()
            for name, part in zip(self.counts, parts, strict=True)
        }
        m = self.model
        m.geom_friction[:, 0], m.geom_solref[:], m.geom_solimp[:] = x["friction"], x["solref"], x["solimp"]
        m.geom_size[1], m.geom_pos[1], m.geom_pos[0] = x["size"] / 2, x["position"], x["floor"]
        m.geom_rbound[1], m.geom_aabb[1, 3:] = np.linalg.norm(m.geom_size[1]), m.geom_size[1]
        m.opt.gravity[:], m.body_ipos[1] = x["gravity"], x["com"]
        m.body_inertia[1], axes = np.linalg.eigh(x["inertia"].reshape(3, 3))
        mujoco.mju_mat2Quat(m.body_iquat[1], (axes * np.linalg.det(axes)).ravel())

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
        if not hasattr(sysid, "optimize"):
            raise ImportError("MuJoCo's sysid tool needs more packages: pip install 'mujoco[sysid]'")

        def residual(points: np.ndarray, _: object) -> tuple[list[np.ndarray], None, None]:
            columns = []
            for x in points.reshape(len(points), -1).T:
                self.set(x)
                states = self.states(start, len(rows) - 1)
                shift = (states[..., :3] - rows[..., :3]) / self.width
                away = torch.stack([shift, turn_between(rows[..., 3:7], states[..., 3:7]) / 2], -2)
                size = away.norm(dim=-1, keepdim=True)
                # Squares add up to sizes where these are large, so that single tosses that went another way do not rule.
                columns.append((away / (1 + (size / LARGE) ** 2) ** 0.25).flatten().numpy())
            return [np.stack(columns, 1)], None, None

        unknowns = {
            name: sysid.Parameter(name, np.zeros(n), -SPREAD * np.ones(n), SPREAD * np.ones(n))
            for name, n in self.counts.items()
        }
        found, _ = sysid.optimize(
            sysid.ParameterDict(unknowns), residual, verbose=False, eps=STEP, max_iters=iterations
        )
        self.set(found.as_vector())
        return found.as_vector()
