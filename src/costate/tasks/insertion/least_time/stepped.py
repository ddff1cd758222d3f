"""The fastest insertions in whole control steps: what no controller that gives one command per step can beat.

The motion is made of the simulator's own physics steps, without contact, and each command acts for a whole control step, as in the
task. For a number of control steps the program looks for the motion that needs least of the limits of acceleration and jerk, both
judged as in the task, on differences of joint velocities between control steps. Its part of them, `share`, is above 1 where no
motion is so short. The bottle stays seated, at rest, for all `hold` steps. Bottle and socket may overlap by what success allows in
every physics step on the way; as in `bound.py`, a few points tell.

Which physics step is the first with the foot in the socket is tried out, since the constraints change there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np
import torch
from torch import Tensor

from costate.optimise.cost import Point
from costate.optimise.symbolic import step_function
from costate.sim import World
from costate.tasks.insertion.judge import MAX_PENETRATION
from costate.tasks.insertion.least_time import bound
from costate.tasks.insertion.scene import ARM_Q, BOTTLE_RADIUS, DEPTH, SOCKET_XY

FREE = 4
"""Control steps at the start in which the bottle cannot get to the socket."""
WITHIN = 6.5
"""Control steps from the mouth to the seat that are tried first."""
PASSING = 1
"""Physics steps from where the lowest point of the foot passes the mouth until its middle does."""
LONGEST = 4.0
"""Largest share that is looked for."""
SETTINGS = {"max_iter": 150, "tol": 1e-5, "acceptable_tol": 1e-3, "acceptable_iter": 5, "mu_strategy": "adaptive"}
"""Settings of IPOPT."""


@dataclass(frozen=True)
class Stepped:
    """A motion of whole control steps."""

    share: float
    """Part of the limits of acceleration and jerk that it needs; above 1: there is none within them."""
    found: bool
    """True if IPOPT converged. A local minimum."""
    entry: int
    """Physics step in which the foot is in the socket for the first time."""
    states: Tensor
    """States of the arm after every physics step up to the third control step after the horizon, (n + 1, 12)."""
    commands: Tensor
    """Joint velocities that are commanded [rad/s], (horizon + hold, 6)."""
    unknowns: np.ndarray
    """Unknowns of the program, to begin another one with."""


class StepProgram:
    """The program for insertions into a socket that stands still, within `horizon` control steps."""

    fine = 3
    """Control steps after the horizon that are still looked at in physics steps."""

    def __init__(self, task: bound.InsertionBound, horizon: int):
        self.task, self.horizon, o = task, horizon, task.options
        if o.actuation != "velocity" or task.task.options.moving:
            raise ValueError("this bound is for velocity servos and a socket that stands still")
        fine = min(self.fine, o.hold)
        self.sub, self.commands, self.steps = o.substeps, horizon + o.hold, (horizon + fine) * o.substeps
        n, rest = self.steps, o.hold - fine
        x, y, u = ca.MX.sym("x", 12, n + 1), ca.MX.sym("y", 12, rest), ca.MX.sym("u", 6, self.commands)
        share, self._socket = ca.MX.sym("share"), ca.MX.sym("socket", 2)
        later = ca.horzcat(x[:, -1], y)
        held = [u[:, k // self.sub] for k in range(n)]
        defects = [self._step(1).map(n)(x[:, :-1], ca.horzcat(*held)) - x[:, 1:]]
        defects += [self._step(self.sub).map(rest)(later[:, :-1], u[:, horizon + fine :]) - y] if rest else []
        v = ca.horzcat(x[6:, :: self.sub], y[6:, :])
        self._rows: list[tuple[str, int, np.ndarray]] = []
        rows = [*defects, *self._rates(v, share)]
        last = [k * self.sub for k in range(horizon, horizon + fine + 1)]
        way = list(range(FREE * self.sub, horizon * self.sub + 1))
        for name, term, at in (
            ("above", bound.above_the_mouth, way),
            ("over", bound.over_the_bore, way),
            ("in", bound.in_the_bore, way),
        ):
            rows.append(self._limit(name, term, x[:, at], at))
        for term in (bound.off_the_seat, bound.in_the_bore, _above_the_floor):
            rows.append(self._limit("", term, ca.horzcat(x[:, last], y), [*last, *range(rest)]))
        rows.append(self._limit("", bound.too_fast, ca.horzcat(x[:, last[1:]], y), [*last[1:], *range(rest)]))
        self._defects = sum(d.numel() for d in defects)
        self._solver = _solver(ca.veccat(share, x, y, u), share, rows, len(defects), self._socket)
        self._later = rest

    def _step(self, substeps: int) -> ca.Function:
        o = self.task.options
        dt = o.dt / o.substeps * substeps
        arm = World(
            robots={"ur5": self.task.task.arm}, actuators=self.task.actuator, contact=None, dt=dt, substeps=substeps
        )
        return step_function(arm)

    def _rates(self, v: ca.MX, share: ca.MX) -> list[ca.MX]:
        """Return what is positive where accelerations and jerks between control steps are above their shares."""
        o = self.task.options
        change = (v[:, 1:] - v[:, :-1]) / (o.acceleration_limit * o.dt)
        jerk = (change[:, 1:] - change[:, :-1]) * (o.acceleration_limit / (o.jerk_limit * o.dt))
        rows = [change - share, -change - share, jerk - share, -jerk - share]
        self._rows += [("", row.numel(), np.zeros(row.numel())) for row in rows]
        return rows

    def _limit(self, name: str, term: Callable[[Any], ca.SX], states: ca.MX, at: Sequence[int]) -> ca.MX:
        x, socket = ca.SX.sym("x", 12), ca.SX.sym("socket", 2)
        given = {"socket": ca.vertcat(socket, 0, 0), "time": ca.SX(0)}
        point = Point(self.task.arm.setup.scene.model, x[:6], x[6:], ca.SX(0, 1), given)
        limit = ca.Function("limit", [x, socket], [ca.densify(term(point))])
        row = limit.map(len(at))(states, ca.repmat(self._socket, 1, len(at)))
        self._rows.append((name, row.numel(), np.repeat(np.array(at), row.shape[0])))
        return row

    def _row_bounds(self, entry: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the lowest and highest rows if the foot is in the socket from a physics step on."""
        low, high = [np.zeros(self._defects)], [np.zeros(self._defects)]
        for name, count, at in self._rows:
            holds = {"above": at < entry - PASSING, "over": (at >= entry - PASSING) & (at < entry), "in": at >= entry}
            low.append(np.full(count, -np.inf))
            high.append(np.where(holds.get(name, True), np.zeros(count), np.inf))
        return np.concatenate(low), np.concatenate(high)

    def solve(self, start: Tensor, entry: int, near: Stepped | None = None) -> Stepped:
        """Return the motion from a state (18,) with the foot in the socket from physics step `entry` on."""
        robot, fast = self.task.task, bound.VELOCITY_SLACK * self.task.task.max_velocity.double()
        lower, upper = torch.cat([robot.arm.lower, -fast]), torch.cat([robot.arm.upper, fast])
        begun = torch.cat([start[ARM_Q], torch.zeros(6, dtype=torch.float64)]).numpy()
        count, most = self.steps + self._later, robot.action_scale[1].numpy()
        low, high = (
            np.concatenate([[top], begun, np.tile(side.numpy(), count), np.tile(sign * most, self.commands)])
            for top, side, sign in ((0.0, lower, -1), (LONGEST, upper, 1))
        )
        low_row, high_row = self._row_bounds(entry)
        guess = self._guess(start, entry) if near is None else near.unknowns
        result = self._solver(
            x0=guess, p=start[SOCKET_XY].numpy(), lbx=low, ubx=high, lbg=low_row, ubg=high_row
        )  # fmt: skip
        found = np.asarray(result["x"]).ravel()
        x, u = found[1 : 1 + 12 * (self.steps + 1)], found[-6 * self.commands :]
        return Stepped(
            float(found[0]),
            bool(self._solver.stats()["success"]),
            entry,
            torch.tensor(x.reshape(-1, 12)),
            torch.tensor(u.reshape(-1, 6)),
            found,
        )

    def _guess(self, start: Tensor, entry: int) -> np.ndarray:
        """Return unknowns to start from: straight over the mouth, then straight down."""
        o, seats = self.task.options, self.task.task.seats
        times = np.arange(self.steps + self._later * self.sub + 1)
        knots = torch.stack([start[ARM_Q], seats(start[SOCKET_XY], DEPTH), seats(start[SOCKET_XY])], -1).numpy()
        q = np.stack([np.interp(times, [0, entry, self.horizon * self.sub], joint) for joint in knots], 1)
        v = np.gradient(q, o.dt / self.sub, axis=0)
        v[0] = 0.0
        states = np.concatenate([q, v], 1)
        kept = np.concatenate([states[: self.steps + 1], states[self.steps + self.sub :: self.sub]])
        return np.concatenate([[1.0], kept.ravel(), v[self.sub :: self.sub].ravel()])

    def least(self, start: Tensor, enough: float = 0.0) -> Stepped:
        """Return the motion of the least share over the physics steps of entry: downhill from one that is usual.

        enough: a share that ends the search.
        """
        best = self.solve(start, round((self.horizon - WITHIN) * self.sub))
        for side in (-1, 1):
            moved = False
            while best.share > enough:
                other = self.solve(start, best.entry + side, best)
                if not other.found or (best.found and other.share >= best.share):
                    break
                best, moved = other, True
            if moved:
                break
        return best


def _above_the_floor(s: Any) -> ca.SX:
    """Return what is positive if the foot is deeper in the floor than success allows."""
    foot, axis = bound.foot_and_axis(s)
    tilted = ca.sqrt(ca.sumsqr(axis[:2]) + bound.LEAST_TILT**2) - bound.LEAST_TILT
    return -1e3 * (foot[2] - BOTTLE_RADIUS * tilted + MAX_PENETRATION)


def _solver(unknowns: ca.MX, share: ca.MX, rows: list[ca.MX], defects: int, socket: ca.MX) -> ca.Function:
    """Return IPOPT for the program. Its Hessian leaves the dynamics out: they are nearly linear over so short a motion."""
    columns = [ca.vec(row) for row in rows]
    g, first = ca.vertcat(*columns), sum(c.numel() for c in columns[:defects])
    scale, duals = ca.MX.sym("scale"), ca.MX.sym("duals", g.numel())
    hessian = ca.triu(ca.hessian(scale * share + ca.dot(duals[first:], g[first:]), unknowns)[0])
    names = ["x", "p", "lam_f", "lam_g"], ["triu_hess_gamma_x_x"]
    exact = ca.Function("nlp_hess_l", [unknowns, socket, scale, duals], [hessian], *names)
    options = {"ipopt": SETTINGS | {"print_level": 0, "sb": "yes"}, "print_time": False, "hess_lag": exact}
    return ca.nlpsol("stepped", "ipopt", {"x": unknowns, "f": share, "g": g, "p": socket}, options)
