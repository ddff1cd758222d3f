"""Iterative LQR: optimal controls of a world, with feedback gains; batched over initial states.

An iteration linearises all steps at once (`World.linearize`), expands the cost, goes backwards in time for gains (riccati.py), and
forwards under them (feedback.py) with steps of several lengths. All four are compiled, and run for all problems side by side.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from costate.optimise.cost import Cost
from costate.optimise.feedback import Feedback, control_box
from costate.optimise.riccati import riccati_kernel
from costate.optimise.solution import Options, Run, Solution
from costate.sim import World

Tensor = torch.Tensor

FEW = 2
"""So few problems go backwards in the shortest vectors: the matrices of lanes that nobody uses would fill the cache."""


@dataclass(frozen=True, kw_only=True)
class ILQROptions(Options):
    """How to iterate."""

    tolerance: float = 1e-6
    """A problem is solved when its cost is expected to fall by at most this part, and no gap is left."""
    bounds: tuple[Any, Any] | None = None
    """Lowest and highest controls, each (nu,) or a number. Effort limits of torque actuators hold anyway."""
    regularization: float = 1e-6
    """Of the first backward pass: added to the Hessian of the controls."""
    max_regularization: float = 1e10
    """A problem that needs more has failed."""
    line_search: tuple[float, ...] = (1.0, 0.5, 0.25, 0.125, 0.0625, 0.03125, 0.015625, 0.0078125)
    """Parts of the step that are tried: the first one, and where it fails all others at once."""
    accept: float = 1e-4
    """Least ratio of actual to expected decrease."""


def ilqr(
    world: World,
    cost: Cost,
    state0: Tensor,
    controls0: Tensor,
    options: ILQROptions = ILQROptions(),  # noqa: B008
    *,
    states0: Tensor | None = None,
    inputs: Mapping[str, Tensor] | None = None,
    params: Mapping[str, Tensor] | None = None,
) -> Solution:
    """Minimise a cost over the controls of a world.

    x of the solution: controls (T, ..., nu). extra: "states" (T + 1, ..., nx); "gains" (T, ..., nu, 2nv) for the feedback
    u = u_t + K_t (x - x_t), with the difference in the tangent space; "gap", the largest entry of any gap left, (...).

    Args:
        state0: (nx,) for one problem, (B, nx) for B problems solved side by side.
        controls0: Guess, (T, nu) or (T, B, nu).
        states0: Guess of the states, (T + 1, nx) or (T + 1, B, nx), which need not follow from the controls: multiple
            shooting, whose gaps close as steps are taken. None: single shooting from a rollout.
        inputs: Those of the cost: name -> (n,), (B, n) or (T + 1, B, n); for one problem (n,) or (T + 1, n).
        params: Of the world (see World.step).
    """
    one = state0.dim() == 1
    _check(world, state0, controls0, states0)
    state, u = (state0[None], controls0[:, None]) if one else (state0, controls0)
    guess = None if states0 is None else states0[:, None] if one else states0
    with torch.no_grad(), Run("ilqr", options) as run:
        motion = Motions(world, cost, state, u, guess, _placed(inputs or {}, one), params, options)
        run.evaluations += 1
        ended = run.note(_shaped(motion.cost, one))
        while not ended and len(run.history) <= options.iterations:
            run.evaluations += motion.improve(run.met(motion.cost))
            detail = {"regularization": float(motion.damping.mean()), "gap": float(motion.gap_size().max())}
            ended = run.note(_shaped(motion.cost, one), _shaped(motion.solved, one), **detail)
            if not ended and bool((motion.solved | motion.failed | run.met(motion.cost)).all()):
                run.reason, ended = "no step lowers the cost any more", True
        return motion.solution(run, one)


class Motions:
    """Motions that are being improved, one per problem; the batch comes first, time second."""

    def __init__(self, world, cost, state, controls, guess, inputs, params, options: ILQROptions):
        self._world, self._cost, self._options, self._inputs = world, cost, options, inputs
        self._feedback = Feedback(world, params)
        problems, m = state.shape[0], world.nu
        like = {"dtype": state.dtype}
        self._box = control_box(world, options.bounds, state.dtype)
        self._bounded = not bool(torch.isinf(torch.cat(self._box)).all())
        u = controls.movedim(0, 1).expand(problems, -1, m).clamp(*self._box).contiguous()
        steps = u.shape[1]
        self._no_gap = torch.zeros(steps, 2 * world.nv, **like)
        if guess is None:
            zero_K = torch.zeros(steps, 2 * world.nv * m, **like)
            still = state[:, None].expand(-1, steps, -1)
            x, u = self._feedback.rollout(
                state, (still, u), u * 0, zero_K, self._no_gap, torch.ones(1, **like), self._box
            )
            self.gap = self._no_gap.expand(problems, -1, -1)
        else:
            x = guess.movedim(0, 1).expand(problems, -1, -1).clone()
            x[:, 0] = state
            self.gap = self._feedback.gaps(x, u)
        self.x, self.u = x, u
        self.cost = cost.value(x, u, inputs)
        self.damping = torch.full((problems,), options.regularization, **like)
        self.penalty = torch.zeros(problems, **like)
        self.solved = torch.zeros(problems, dtype=torch.bool)
        self.failed = ~torch.isfinite(self.cost)
        self.K_T: Tensor | None = None
        self._model: tuple[Tensor, ...] | None = None

    # --- one iteration --------------------------------------------------------------------------------------------

    def improve(self, done: Tensor) -> int:
        """One iteration of the problems that are not done, solved or failed. Returns the number of forward passes."""
        if self._model is None:  # else nothing has moved since
            self._model = self._expand()
        k, K_T, change = self._backward(*self._model)
        usable = torch.isfinite(change)
        self.K_T = K_T if self.K_T is None else torch.where(usable[:, None, None], K_T, self.K_T)
        gap = self.gap.abs().sum((1, 2))
        self._raise_penalty(change, gap)
        expected = self.penalty * gap - change
        scale = self._options.tolerance * (self.cost.abs() + 1e-9)
        closed = self.gap_size() <= 1e-9
        active = ~(done | self.solved | self.failed)
        self.solved = self.solved | (active & usable & closed & (expected <= scale))
        active = active & ~self.solved & usable
        passes, taken = self._forward(k, K_T, gap, expected, active) if bool(active.any()) else (0, active)
        self._adapt(taken, ~(taken | self.solved | done))
        return passes

    def _expand(self) -> tuple[Tensor, ...]:
        rows = self._cost.rows
        J = self._feedback.linearize(self.x, self.u)
        g, H = self._cost.stage.expansion([self.x[:, :-1], self.u, *rows(self._inputs, slice(0, -1))])
        last = [x[..., 0, :] for x in rows(self._inputs, slice(-1, None))]
        g1, H1 = self._cost.final.expansion([self.x[:, -1], *last])
        return J.flatten(2), g, H.flatten(2), g1, H1.flatten(1)

    def _backward(self, J, g, H, g1, H1) -> tuple[Tensor, Tensor, Tensor]:
        box = [b - self.u for b in self._box] if self._bounded else []
        kernel = riccati_kernel(2 * self._world.nv, self._world.nu, self._bounded)
        kernel = (kernel.narrow if len(self.x) <= FEW else kernel).sized(self.u.shape[1])
        k, K_T, change = kernel.apply([J, g, H, self.gap, *box, g1, H1, self.damping[:, None]])
        return k, K_T, change[:, 0]

    def _raise_penalty(self, change: Tensor, gap: Tensor) -> None:
        """The merit is cost + penalty |gap|_1; the penalty must be large enough for a full step to lower it (Nocedal and Wright,
        Numerical Optimization, 18.36)."""
        least = 2 * change / gap.clamp(min=1e-300)
        self.penalty = torch.where((gap > 0) & (least > self.penalty), least, self.penalty)

    def _forward(self, k, K_T, gap, expected, active) -> tuple[int, Tensor]:
        """Try steps, longest first. Which problems took one."""
        parts = self._options.line_search
        taken = self._try(parts[:1], k, K_T, gap, expected, active)
        if len(parts) == 1 or bool((taken | ~active).all()):
            return 1, taken
        return 2, taken | self._try(parts[1:], k, K_T, gap, expected, active & ~taken)

    def _try(self, parts, k, K_T, gap, expected, active) -> Tensor:
        part = torch.tensor(parts, dtype=self.x.dtype)[:, None]
        known = self.x[:, :-1], self.u
        x, u = self._feedback.rollout(self.x[:, 0], known, k, K_T, self.gap, part[..., None], self._box)
        cost = self._cost.value(x, u, self._inputs)
        fallen = self.cost + self.penalty * gap - (cost + self.penalty * (1 - part) * gap)
        good = active & torch.isfinite(cost) & (fallen > self._options.accept * part * expected)
        taken, first = good.any(0), good.int().argmax(0)
        if bool(taken.any()):
            every = torch.arange(len(first))
            where = taken[:, None, None]
            self.x, self.u = torch.where(where, x[first, every], self.x), torch.where(where, u[first, every], self.u)
            self.cost = torch.where(taken, cost[first, every], self.cost)
            self.gap = torch.where(where, (1 - part[first])[..., None] * self.gap, self.gap)
            self._model = None
        return taken

    def _adapt(self, taken: Tensor, refused: Tensor) -> None:
        lower = (self.damping / 5).clamp(min=1e-12)
        higher = self.damping.clamp(min=1e-8) * 10
        self.damping = torch.where(taken, lower, torch.where(refused, higher, self.damping))
        self.failed = self.failed | (self.damping > self._options.max_regularization)

    # --- result ---------------------------------------------------------------------------------------------------

    def gap_size(self) -> Tensor:
        return self.gap.abs().amax((1, 2))

    def solution(self, run: Run, one: bool) -> Solution:
        n, m = 2 * self._world.nv, self._world.nu
        K_T = self.u.new_zeros(*self.u.shape[:2], n * m) if self.K_T is None else self.K_T
        gains = K_T.unflatten(-1, (n, m)).mT
        x, states, gains = (_shaped(t.movedim(1, 0), one, 1) for t in (self.u, self.x, gains))
        extra = {"states": states, "gains": gains, "gap": _shaped(self.gap_size(), one)}
        return run.solution(x, _shaped(self.cost, one), _shaped(self.solved, one), **extra)


def _shaped(x: Tensor, one: bool, at: int = 0) -> Tensor:
    return x.select(at, 0) if one else x


def _placed(inputs: Mapping[str, Tensor], one: bool) -> dict[str, Tensor]:
    """To (n,) or (B, 1 or T + 1, n)."""
    placed = {}
    for name, x in inputs.items():
        if x.dim() == 2:
            x = x[None] if one else x[:, None]
        elif x.dim() == 3:
            x = x.movedim(0, 1)
        placed[name] = x
    return placed


def _check(world: World, state0: Tensor, controls0: Tensor, states0: Tensor | None) -> None:
    if state0.dim() not in (1, 2) or state0.shape[-1] != world.nx:
        raise ValueError(f"state0 has shape {tuple(state0.shape)}; expected ({world.nx},) or (B, {world.nx})")
    if controls0.dim() != state0.dim() + 1 or controls0.shape[-1] != world.nu or not controls0.shape[0]:
        batch = "" if state0.dim() == 1 else "B, "
        raise ValueError(f"controls0 has shape {tuple(controls0.shape)}; expected (T, {batch}{world.nu}) with T > 0")
    if states0 is not None and states0.shape != (controls0.shape[0] + 1, *state0.shape):
        expected = (controls0.shape[0] + 1, *state0.shape)
        raise ValueError(f"states0 has shape {tuple(states0.shape)}; expected {expected}, one state more than controls")
