"""Transcription of a motion into a non-linear program: unknowns, constraints and bounds, which direct.py gives to IPOPT.

The unknowns are the duration of each phase, the states at the T + 1 times, and for each of the T intervals the numbers that move
the world. Which numbers these are depends on the method, a row of METHODS: controls (collocation, shooting), accelerations
(inverse) or none (kinematic). The `Moves` of a method hold one function for an interval. It returns the defect, which is zero if
the states at both ends belong to one motion; if the unknowns are not controls, it also returns the controls and torques that the
motion needs, so that they can be bounded.

`Transcription` maps that function over all intervals, adds the user's limits, and lays everything out in vectors:

    unknowns = [durations, states, moves]        rows = [defects = 0, low <= controls <= high, |torques| <= effort, limits <= 0]

`guess`, `unknown_bounds` and `row_bounds` write numbers in that layout, `split` reads them back, and `total` is the cost of a
motion as an expression of the unknowns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np
from casadi import SX
from torch import Tensor

from costate.optimise.cost import Cost, Point
from costate.optimise.symbolic import inverse_function, slope_function, step_function
from costate.sim import World

Limit = tuple[Callable[[Point], SX], range]
"""Limit on a motion: a function of a point that returns a column, which must not be positive, and the times of 0 ... T at which it
holds. The point has no control; point["time"] is the time [s]."""


@dataclass(frozen=True, eq=False)
class Moves:
    """The unknowns and equations of one interval, as a method defines them."""

    unknowns: int
    """Number of unknowns per interval, beside the states at its ends."""
    step: ca.Function
    """Function (x0, x1, unknowns, h) -> (defect, controls, torques). If the unknowns are not controls, the last two are the nu
    controls and torques that they need; otherwise these are empty."""
    drives: bool = False
    """True if the unknowns are the controls."""


def _collocation(world: World) -> Moves:
    """Return Hermite-Simpson collocation (Hargraves and Paris 1987).

    A cubic goes through both states with their slopes; the defect is that of Simpson's rule with the slope in the middle.
    """
    slope = slope_function(world)
    x0, x1, u, h = _symbols(world, world.nu)
    f0, f1 = slope(x0, u), slope(x1, u)
    middle = slope((x0 + x1) / 2 + h / 8 * (f0 - f1), u)
    return Moves(world.nu, _function(x0, x1, u, h, x0 + h / 6 * (f0 + 4 * middle + f1) - x1), drives=True)


def _shooting(world: World) -> Moves:
    x0, x1, u, h = _symbols(world, world.nu)
    return Moves(world.nu, _function(x0, x1, u, h, step_function(world)(x0, u) - x1), drives=True)


def _inverse(world: World) -> Moves:
    """Return moves of constant acceleration, for which motions are exact and linear in the unknowns.

    The controls are bounded in the middle of the interval. There they equal, to second order, the mean over the interval; at its
    ends they may exceed their bounds.
    """
    inverse = inverse_function(world)
    x0, x1, a, h = _symbols(world, world.nv)

    def after(time: SX) -> SX:
        q, v = x0[: world.nq], x0[world.nq :]
        return ca.vertcat(q + time * v + time**2 / 2 * a, v + time * a)

    return Moves(world.nv, _function(x0, x1, a, h, after(h) - x1, *inverse(after(h / 2), a)))


def _kinematic(world: World) -> Moves:
    """Return moves at constant speed from each configuration to the next; velocities may jump within their bounds."""
    _one_by_one(world)
    x0, x1, none, h = _symbols(world, 0)
    return Moves(0, _function(x0, x1, none, h, x0[: world.nq] + h * x0[world.nq :] - x1[: world.nq]))


METHODS: Mapping[str, Callable[[World], Moves]] = {
    "collocation": _collocation,
    "shooting": _shooting,
    "inverse": _inverse,
    "kinematic": _kinematic,
}


def _symbols(world: World, unknowns: int) -> tuple[SX, SX, SX, SX]:
    return SX.sym("x0", world.nx), SX.sym("x1", world.nx), SX.sym("u", unknowns), SX.sym("h")


def _function(x0: SX, x1: SX, u: SX, h: SX, defect: SX, *needed: SX) -> ca.Function:
    controls, torques = needed or (SX(0, 1), SX(0, 1))
    return ca.Function("moves", [x0, x1, u, h], [ca.densify(defect), controls, torques])


def _one_by_one(world: World) -> None:
    if world.nq != world.nv:
        raise ValueError(
            f"this method is for joints of one degree of freedom each, but the world has {world.nq} coordinates for "
            f"{world.nv} velocities: use method='collocation'"
        )


class Transcription:
    """The unknowns of a whole motion and the rows that constrain them.

    Unknowns are the durations of the phases, the states (nx, T + 1) and the moves (n, T).
    """

    def __init__(
        self,
        world: World,
        method: str,
        phases: Sequence[int],
        limits: Sequence[Limit],
        sizes: Mapping[str, int],
        rates: tuple[float, float] = (np.inf, np.inf),
    ):
        self.rates = rates
        """Largest acceleration, and largest change of it in a second."""
        self.world, self.phases, self.steps = world, tuple(phases), sum(phases)
        self.method, self.moves = method, METHODS[method](world)
        self.durations = ca.MX.sym("durations", len(phases))
        self.x = ca.MX.sym("x", world.nx, self.steps + 1)
        self.u = ca.MX.sym("u", self.moves.unknowns, self.steps)
        self.inputs = {k: ca.MX.sym(k, n, self.steps + 1) for k, n in sizes.items()}
        self.unknowns = ca.veccat(self.durations, self.x, self.u)
        h = ca.horzcat(*(ca.repmat(self.durations[k] / n, 1, n) for k, n in enumerate(self.phases)))
        self._times = ca.horzcat(ca.MX(0), ca.cumsum(h, 1))
        found = self.moves.step.map(self.steps)(self.x[:, :-1], self.x[:, 1:], self.u, h)
        self.defects, self._controls, self._torques = (ca.vec(rows) for rows in found)
        self._limited = ca.veccat(*(self._limit(term, times) for term, times in limits), *self._jerks(h))
        self.rows = ca.veccat(self.defects, self._controls, self._torques, self._limited)

    @property
    def duration(self) -> ca.MX:
        """Duration of the whole motion [s]."""
        return ca.sum1(self.durations)

    def _limit(self, term: Callable[[Point], SX], times: range) -> ca.MX:
        world, at = self.world, list(times)
        if not at or min(at) < 0 or max(at) > self.steps:
            raise ValueError(f"a limit holds at times {times}; expected some from 0 to {self.steps}")
        x = SX.sym("x", world.nx)
        given = {k: SX.sym(k, m.shape[0]) for k, m in self.inputs.items()} | {"time": SX.sym("time")}
        found = term(Point(world.setup.scene.model, x[: world.nq], x[world.nq :], SX(0, 1), given))
        limit = ca.Function("limit", [x, *given.values()], [ca.densify(SX(found))])
        columns = [self.x[:, at], *(m[:, at] for m in self.inputs.values()), self._times[:, at]]
        return limit.map(len(at))(*columns)

    def _jerks(self, h: ca.MX) -> list[ca.MX]:
        """Return what is positive where accelerations change too quickly from the middle of an interval to that of the next."""
        if not np.isfinite(self.rates[1]) or self.steps < 2:
            return []
        allowed = self.rates[1] * (h[:, :-1] + h[:, 1:]) / 2
        change = (self.u[:, 1:] - self.u[:, :-1]) / ca.repmat(allowed, self.u.shape[0], 1)
        return [change - 1, -change - 1]

    def row_bounds(self, box: tuple[Tensor, Tensor]) -> tuple[np.ndarray, np.ndarray]:
        """Return the lowest and highest values of `rows`."""
        still, limited = np.zeros(self.defects.numel()), np.zeros(self._limited.numel())
        times = self._controls.numel() // max(self.world.nu, 1)  # none, or one per step
        low, high = (np.tile(b.numpy(), times) for b in box)
        effort = np.tile([d.limit for d in self.world.setup.drives], times)
        return np.concatenate([still, low, -effort, limited - np.inf]), np.concatenate([still, high, effort, limited])

    def unknown_bounds(
        self, spans: tuple[Sequence[float], Sequence[float]], states: np.ndarray, box: tuple[Tensor, Tensor]
    ) -> list[np.ndarray]:
        """Return the lowest and highest unknowns.

        spans: Shortest and longest durations of the phases [s].
        states: Lowest and highest states, (2, T + 1, nx).
        """
        shape = self.steps, self.moves.unknowns
        sides = [b.numpy() for b in box] if self.moves.drives else [-self.rates[0], self.rates[0]]
        moves = [np.broadcast_to(side, shape).ravel() for side in sides]
        return [np.concatenate([d, x.ravel(), u]) for d, x, u in zip(spans, states, moves, strict=True)]

    def guess(self, durations: Sequence[float], states: np.ndarray, controls: np.ndarray) -> np.ndarray:
        """Return the unknowns to start from: the controls if they are unknowns, otherwise the moves that the states need."""
        if self.moves.drives:
            moves = controls
        else:
            h = np.repeat(np.divide(durations, self.phases), self.phases)[:, None]
            moves = (
                np.diff(states[:, self.world.nq :], axis=0) / h if self.moves.unknowns else np.zeros((self.steps, 0))
            )
        return np.concatenate([durations, states.ravel(), moves.ravel()])

    def split(self, unknowns: ca.DM) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return times (T + 1,) [s], states (T + 1, nx) and controls (T, nu), which are zero if the method has none."""
        flat = np.asarray(unknowns).ravel()
        durations, x, u = np.split(flat, [len(self.phases), len(self.phases) + self.x.numel()])
        steps = np.repeat(durations / self.phases, self.phases)
        x, u = x.reshape(self.steps + 1, -1), u.reshape(self.steps, self.moves.unknowns)
        if not self.moves.drives:
            found = self.moves.step.map(self.steps)(x[:-1].T, x[1:].T, u.T, steps[None])[1]
            u = np.asarray(found).T if found.numel() else np.zeros((self.steps, self.world.nu))
        return np.concatenate([[0.0], np.cumsum(steps)]), x, u


def total(cost: Cost, program: Transcription) -> ca.MX:
    """Return the cost of a motion, the same sum over steps as for iLQR."""
    if not program.moves.drives:
        raise ValueError(
            f"method '{program.method}' minimises the duration alone: leave out the cost, or use 'collocation'"
        )
    stage = ca.Function("stage", cost.stage.symbols, [cost.stage.cost])
    final = ca.Function("final", cost.final.symbols, [cost.final.cost])
    given = [program.inputs[k] for k in cost.inputs]
    running = stage.map(program.steps)(program.x[:, :-1], program.u, *(m[:, :-1] for m in given))
    return ca.sum2(running) + final(program.x[:, -1], *(m[:, -1] for m in given))


def input_columns(inputs: Mapping[str, Tensor], program: Transcription) -> ca.DM:
    """Return the values of the inputs, (n,) or (T + 1, n) each, in the order of the program's inputs."""
    if set(inputs) != set(program.inputs):
        raise ValueError(f"inputs: given {', '.join(inputs) or 'none'}, expected {', '.join(program.inputs) or 'none'}")
    columns = []
    for name, symbol in program.inputs.items():
        value = inputs[name].double().numpy()
        if value.shape not in {(symbol.shape[0],), (symbol.shape[1], symbol.shape[0])}:
            raise ValueError(
                f"input '{name}' has shape {value.shape}; expected ({symbol.shape[0]},) or {symbol.shape[::-1]}"
            )
        columns.append(np.broadcast_to(value, symbol.shape[::-1]).ravel())
    return ca.DM(np.concatenate(columns)) if columns else ca.DM(0, 1)
