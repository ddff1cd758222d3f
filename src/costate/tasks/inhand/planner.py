"""Model-predictive control: at every step a short plan of commands, found by Gauss-Newton steps through the prediction.

A plan is improved as by `ilqr`: linearise all steps at once, solve the linear-quadratic problem backwards in time within the limits
of the commands (riccati.py), and roll the prediction out under the gains found, for several step lengths side by side. Few such
iterations are made, from the plan of the step before, moved on by one step. Some further plans start from others; the best one
counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import casadi as ca
import numpy as np
from casadi import SX

from costate.core.fork import cached_property
from costate.kernel import Kernel, ProgramBuilder
from costate.optimise.riccati import riccati_kernel
from costate.physics.algebra import quaternion
from costate.tasks.inhand.hand import hand_named
from costate.tasks.inhand.predict import OBJECT, Prediction

TERMS = ("position", "turn", "tilt", "tips", "posture", "command")
"""Blocks of residuals, in the order of their weights."""

FAR, PROGRESS = np.radians(20.0), np.radians(3.0)
"""Angle to the goal from which a lack of progress matters, and the least progress that is one [rad]."""
FINE = np.radians(5.0)
"""Angle to the goal below which its weight grows no more [rad]."""


@dataclass(frozen=True)
class Weights:
    """Weights of squared residuals: half of each counts."""

    position: float = 0.0
    """Distance of the object from its place [1/m^2]."""
    turn: float = 0.0
    """Angle between the object and its goal [1/rad^2]."""
    tilt: float = 0.0
    """Difference between the third axes of object and goal."""
    tips: float = 0.0
    """Distances of fingertips from the middle of the object [1/m^2]."""
    posture: float = 0.0
    """Distances of joints from where they wait [1/rad^2]."""
    command: float = 0.0
    """Commands [1/rad^2]."""

    @property
    def array(self) -> np.ndarray:
        """The weights in the order of TERMS."""
        return np.array([getattr(self, name) for name in TERMS])


@dataclass(frozen=True)
class PlannerOptions:
    """Options of the planner."""

    horizon: int = 5
    """Steps of a plan."""
    iterations: int = 2
    """Gauss-Newton steps of a plan."""
    candidates: int = 3
    """Number of plans that are improved side by side; the best one counts."""
    reach: float = 0.15
    """Largest command [rad]."""
    spread: float = 0.1
    """Standard deviation of the noise with which further plans start [rad]."""
    damping: float = 1e-3
    """Damping of the Gauss-Newton steps."""
    lengths: tuple[tuple[float, ...], ...] = ((1.0, 0.4), (0.2, 0.08))
    """Lengths of steps that are tried side by side; the next ones only if some plan got no better."""
    stage: Weights = Weights(position=4e3, turn=2.0, tilt=5.0, tips=4.0, posture=0.01, command=2.0)
    """Weights of all steps but the last."""
    final: Weights = Weights(position=4e4, turn=25.0, tilt=25.0)
    """Weights of the end of a plan."""
    near: float = 60.0
    """Angle to the goal below which the weights of the angle grow, so that the pull towards the goal stays as it is there
    [degrees]."""
    patience: int = 12
    """Steps without progress after which the fingers let go and try anew."""
    release: int = 5
    """Steps for which they let go."""
    let_go: Weights = Weights(position=1000.0, tilt=5.0, posture=2.0, command=0.4)
    """Weights of all steps while they let go."""
    seed: int = 0
    """Seed of the noise."""


OPTIONS = {"allegro": PlannerOptions(), "shadow": PlannerOptions(reach=0.2)}
"""Name of a hand -> options that suit it."""


@dataclass(frozen=True, eq=False)
class Plan:
    """A plan: commands (T, nu) [rad], states (T + 1, nx), and its cost."""

    commands: np.ndarray
    states: np.ndarray
    cost: float


class Planner:
    """Plans commands for a hand that moves a box to a goal: `planner.plan(state, goal, thing)`."""

    def __init__(self, prediction: Prediction, options: PlannerOptions = PlannerOptions()):  # noqa: B008
        self.prediction, self.options = prediction, options
        model = prediction.hand.model
        self._lower, self._upper = np.asarray(model.lower, float), np.asarray(model.upper, float)
        self.reset()

    def reset(self) -> None:
        """Forget the plan of the step before."""
        self._known = np.zeros((self.options.horizon, self.prediction.nu))
        self._angles: list[float] = []
        self._free = 0
        self._random = np.random.default_rng(self.options.seed)

    def plan(self, state: np.ndarray, goal: np.ndarray, thing: np.ndarray) -> Plan:
        """Return the best plan found.

        Args:
            state: Position and quaternion xyzw of the object, joints, (nx,).
            goal: Position [m] and quaternion xyzw wanted of the object, (7,).
            thing: Edges [m], mass [kg] and friction of the object, (5,).
        """
        o = self.options
        u = self._starts()
        wanted = np.concatenate([goal, self.prediction.hand.home])
        given = [thing, wanted, *(w.array for w in self._weights(state, goal))]
        T, nothing = o.horizon, np.zeros((len(u), o.horizon, self.prediction.n * self.prediction.nu))
        still = np.broadcast_to(state, (len(u), T, len(state)))
        x, u, w, cost = self._roll(state, still, u, u * 0, nothing, np.zeros(1), given)
        for _ in range(o.iterations):
            k, K = self._improvement(x, u, w, given)
            known, before = (x[:, :-1], u, k, K), cost
            for lengths in o.lengths:
                tried = self._roll(state, *known, np.array(lengths)[:, None, None], given)
                every = [np.concatenate([old[None], new]) for old, new in zip((x, u, w, cost), tried, strict=True)]
                best = np.argmin(np.where(np.isfinite(every[3]), every[3], np.inf), 0)
                x, u, w, cost = (a[best, np.arange(len(best))] for a in every)
                if (cost < before).all():
                    break
        best = int(np.argmin(cost))
        self._known = np.concatenate([u[best, 1:], u[best, -1:]])
        return Plan(u[best], x[best], float(cost[best]))

    def _weights(self, state: np.ndarray, goal: np.ndarray) -> tuple[Weights, Weights]:
        """Return the weights of stages and end. After a while without progress, far from the goal, the fingers let go for some
        steps."""
        o = self.options
        angle = 2 * np.arccos(min(abs(float(state[3:7] @ goal[3:7])), 1.0))
        self._angles = [*self._angles[-o.patience :], angle]
        waited = len(self._angles) > o.patience
        if waited and angle > FAR and angle > self._angles[0] - PROGRESS:
            self._angles, self._free = [], o.release
        left, self._free = self._free, max(self._free - 1, 0)
        if left:
            return o.let_go, o.let_go
        more = max(np.radians(o.near) / max(angle, FINE), 1.0)
        return replace(o.stage, turn=more * o.stage.turn), replace(o.final, turn=more * o.final.turn)

    def _starts(self) -> np.ndarray:
        """Return the commands that plans start from: the plan before, none at all, and noisy ones."""
        o = self.options
        noise = self._random.normal(0.0, o.spread, (o.candidates, *self._known.shape))
        noise[:1] = 0
        starts = self._known + noise
        if o.candidates > 1:
            starts[1] = 0
        return np.clip(starts, -o.reach, o.reach)

    def _roll(
        self, state: np.ndarray, x: np.ndarray, u: np.ndarray, k: np.ndarray, K: np.ndarray, part: np.ndarray,
        given: Sequence[np.ndarray],
    ) -> tuple[np.ndarray, ...]:  # fmt: skip
        """Return states, commands, motions and costs of plans under feedback."""
        found = self._rollout.numpy(
            **dict(zip(("state", "states", "commands", "k", "K_T", "part"), (state, x, u, k, K, part), strict=True)),
            **dict(zip(("object", "goal", "stage", "final"), given, strict=True)),
        )
        return found.after, found.taken, found.motions, found.cost[..., 0]

    def _improvement(self, x: np.ndarray, u: np.ndarray, w: np.ndarray, given: Sequence[np.ndarray]):
        """Return changes of commands, and gains, of one Gauss-Newton step."""
        o, p = self.options, self.prediction
        thing, goal, stage, final = given
        at = self._expand.numpy(state=x[:, :-1], command=u, motion=w, object=thing, goal=goal, weights=stage)
        end = self._end.numpy(state=x[:, -1], goal=goal, weights=final)
        q = x[:, :-1, 7:]
        low, high = np.maximum(-o.reach, self._lower - q), np.minimum(o.reach, self._upper - q)
        low, high = np.minimum(low, high) - u, np.maximum(low, high) - u
        kernel = riccati_kernel(p.n, p.nu, True).sized(o.horizon)
        found = kernel.numpy(
            J=at.J, gradient=at.gradient, hessian=at.hessian, gap=np.zeros((o.horizon, p.n)), low=low, high=high,
            last_gradient=end.gradient, last_hessian=end.hessian, damping=np.array([o.damping]),
        )  # fmt: skip
        return np.nan_to_num(found.k), np.nan_to_num(found.K_T)

    # --- kernels --------------------------------------------------------------------------------------------------

    def residuals(self, x: SX, u: SX, goal: SX, weights: SX) -> SX:
        """Return all residuals, each times the root of its weight. goal: pose wanted of the object, and joints at rest, (nx,)."""
        p = x[:3]
        turn = quaternion.log(quaternion.product(x[3:7], quaternion.conjugate(goal[3:7])))
        balls = zip(self.prediction.balls(x[7:]), self.prediction.hand.balls, strict=True)
        blocks = {
            "position": p - goal[:3],
            "turn": turn,
            "tilt": quaternion.to_rotation(x[3:7])[:, 2] - quaternion.to_rotation(goal[3:7])[:, 2],
            "tips": ca.vertcat(*(c - p for (c, _), ball in balls if ball.tip)),
            "posture": x[7:] - goal[7:],
            "command": u,
        }
        return ca.vertcat(*(ca.sqrt(weights[k]) * blocks[name] for k, name in enumerate(TERMS)))

    def _cost(self, x: SX, u: SX, goal: SX, weights: SX) -> SX:
        return ca.sumsqr(self.residuals(x, u, goal, weights)) / 2

    def _expansion(self, x: SX, u: SX, goal: SX, weights: SX) -> tuple[SX, SX]:
        """Return gradient and Gauss-Newton Hessian of the cost by the tangent of the state and, if it is a symbol, the command."""
        n, more = self.prediction.n, 0 if u.is_constant() else self.prediction.nu
        z = SX.sym("z", n + more)
        command = u + z[n:] if more else u
        r = self.residuals(self.prediction.moved(x, z[:n]), command, goal, weights)
        r, J = (ca.substitute(e, z, SX.zeros(z.numel())) for e in (r, ca.jacobian(r, z)))
        return ca.densify(J.T @ r), ca.densify(J.T @ J)

    @cached_property
    def _expand(self) -> Kernel:
        p = self.prediction
        x, u, w = SX.sym("x", p.nx), SX.sym("u", p.nu), SX.sym("w", p.n)
        thing, goal, weights = SX.sym("o", OBJECT), SX.sym("g", p.nx), SX.sym("s", len(TERMS))
        gradient, hessian = self._expansion(x, u, goal, weights)
        inputs = {"state": x, "command": u, "motion": w, "object": thing, "goal": goal, "weights": weights}
        J = ca.densify(p.linearized(x, u, thing, w))
        outputs = {"J": ca.vec(J.T), "gradient": gradient, "hessian": ca.vec(hessian)}
        return Kernel("inhand_expand", inputs, outputs)

    @cached_property
    def _end(self) -> Kernel:
        p = self.prediction
        x, goal, weights = SX.sym("x", p.nx), SX.sym("g", p.nx), SX.sym("s", len(TERMS))
        gradient, hessian = self._expansion(x, SX.zeros(p.nu), goal, weights)
        outputs = {"gradient": gradient, "hessian": ca.vec(hessian)}
        return Kernel("inhand_end", {"state": x, "goal": goal, "weights": weights}, outputs)

    @cached_property
    def _rollout(self) -> Kernel:
        p, T = self.prediction, self.options.horizon
        b = ProgramBuilder("inhand_rollout")
        x = b.input("state", p.nx)
        rows = {"states": p.nx, "commands": p.nu, "k": p.nu, "K_T": p.n * p.nu}
        sequences = [b.input(name, (T, size)) for name, size in rows.items()]
        part, thing, goal = b.inputs(part=1, object=OBJECT, goal=p.nx)
        stage, final = b.inputs(stage=len(TERMS), final=len(TERMS))
        (end, cost), (taken, motions), (after, _) = b.scan(
            self._followed, T, [x, b.constant([0.0])], sequences, [part, thing, goal, stage], keep=True
        )
        cost = b.add(cost, b.trace(lambda x, *given: self._cost(x, SX.zeros(p.nu), *given), end, goal, final))
        b.output("after", after, (T + 1, p.nx))
        b.output("taken", taken, (T, p.nu))
        b.output("motions", motions, (T, p.n))
        b.output("cost", cost)
        return b.kernel()

    @cached_property
    def _followed(self):
        """Program (x, cost, known x, known u, k, K_T, part, object, goal, weights) -> (x, cost, u, w) of one step."""
        p, reach = self.prediction, self.options.reach

        def command(x: SX, known: SX, u: SX, k: SX, K_T: SX, part: SX) -> SX:
            u = u + part * k + ca.if_else(part > 0, 1, 0) * (K_T.T @ p.apart(known, x))
            q = x[7:]
            low = ca.fmin(ca.fmax(SX(ca.DM(self._lower)) - q, -reach), 0)
            high = ca.fmax(ca.fmin(SX(ca.DM(self._upper)) - q, reach), 0)
            return ca.fmin(ca.fmax(u, low), high)

        b = ProgramBuilder("followed")
        x, cost, known, u, k, K_T = b.inputs(p.nx, 1, p.nx, p.nu, p.nu, p.n * p.nu)
        part, thing, goal, weights = b.inputs(1, OBJECT, p.nx, len(TERMS))
        taken = b.trace(command, x, known, u, k, (K_T, (p.n, p.nu)), part)
        more = b.trace(self._cost, x, taken, goal, weights)
        after, w = b.call(p.program, x, taken, thing)
        return b.program(after, b.add(cost, more), taken, w)


def planner_for(hand: str, **changes: Any) -> Planner:
    """Return a planner for a hand by name, with its options, of which some may be changed."""
    return Planner(Prediction(hand_named(hand)), replace(OPTIONS[hand], **changes))
