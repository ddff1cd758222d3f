"""Iterative LQR: optimal controls of a world, with feedback gains; batched over initial states.

`Motions` holds the current motion of every problem, states x and controls u over time. One iteration, `Motions.improve`, is:

1. `_expand`: linearise all steps at once (`World.linearize`), and expand the cost to second order around the motion.
2. `_backward`: solve this linear-quadratic problem backwards in time (riccati.py). The result is a change of the controls k_t,
   feedback gains K_t, and the change of the cost that the model predicts.
3. `_forward`: roll the world out under u_t + part k_t + K_t (x - x_t) (feedback.py): first with part = 1, and if this does not
   lower the cost enough, with all shorter steps at once. Each problem takes the longest step that does.
4. `_adapt`: lower the regularisation of problems that took a step, raise that of the others.

A guess of the states need not be a motion (multiple shooting). It then has gaps between the end of each step and the next state. A
step with part = 1 closes them all, a shorter one closes that part of them, and the merit function adds a penalty on the gaps to
the cost, so that closing gaps is worth an increase of the cost.

All four parts are compiled and run for all problems side by side; masks (active, solved, failed) say which of them still change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from costate.core.numbers import as_tensor, promoted
from costate.optimise.cost import Cost
from costate.optimise.feedback import Feedback, control_box
from costate.optimise.riccati import riccati_kernel
from costate.optimise.solution import OptimiserOptions, Run, Solution
from costate.sim import World

FEW = 2
"""Number of problems up to which the backward pass uses the shortest vectors; with longer ones unused lanes fill the cache."""


@dataclass(frozen=True, kw_only=True)
class ILQROptions(OptimiserOptions):
    """Options of `ilqr`."""

    tolerance: float = 1e-6
    """Expected relative decrease of the cost at which a problem is solved, provided that no gap is left."""
    bounds: tuple[Any, Any] | None = None
    """Lowest and highest controls, each (nu,) or a number. The effort limits of torque actuators hold in addition."""
    regularization: float = 1e-6
    """Regularisation of the first backward pass, added to the Hessian of the controls."""
    max_regularization: float = 1e10
    """Regularisation beyond which a problem has failed."""
    line_search: tuple[float, ...] = (1.0, 0.5, 0.25, 0.125, 0.0625, 0.03125, 0.015625, 0.0078125)
    """Step lengths that are tried: the first one, and if it fails all others at once."""
    accept: float = 1e-4
    """Least ratio of actual to expected decrease at which a step is taken."""


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

    The x of the solution are the controls (T, ..., nu). Its extra holds "states" (T + 1, ..., nx); "gains" (T, ..., nu, ndx) for
    the feedback u = u_t + K_t (x - x_t), with the difference in the tangent space; and "gap", the largest entry of any gap that is
    left, (...). It computes in float64, and returns the number type of what it is given.

    Args:
        state0: Initial state, (nx,) for one problem or (B, nx) for B problems solved side by side.
        controls0: Guess of the controls, (T, nu) or (T, B, nu).
        states0: Guess of the states, (T + 1, nx) or (T + 1, B, nx), which need not follow from the controls (multiple shooting);
            the gaps between steps close as steps are taken. None: the states of a roll-out (single shooting).
        inputs: Inputs of the cost, name -> (n,), (B, n) or (T + 1, B, n); for one problem (n,) or (T + 1, n).
        params: Parameters of the world (see World.step).
    """
    state0, controls0, *guesses = promoted([state0, controls0, *([] if states0 is None else [states0])], world.dtype)
    one, kind = state0.dim() == 1, state0.dtype
    _check(world, state0, controls0, guesses[0] if guesses else None)
    state, u, *guesses = (x.double() for x in (state0, controls0, *guesses))
    if one:
        state, u, *guesses = state[None], u[:, None], *(x[:, None] for x in guesses)
    with torch.no_grad(), Run("ilqr", options) as run:
        given = {k: as_tensor(p) for k, p in (params or {}).items()}
        motion = Motions(world, cost, state, u, next(iter(guesses), None), placed(inputs or {}, one), given, options)
        run.evaluations += 1
        ended = run.note(_shaped(motion.cost, one))
        while not ended and len(run.history) <= options.iterations:
            run.evaluations += motion.improve(run.met(motion.cost))
            detail = {"regularization": float(motion.damping.mean()), "gap": float(motion.gap_size().max())}
            ended = run.note(_shaped(motion.cost, one), _shaped(motion.solved, one), **detail)
            if not ended and bool((motion.solved | motion.failed | run.met(motion.cost)).all()):
                run.reason, ended = "no step lowers the cost any more", True
        return motion.solution(run, one, kind)


class Motions:
    """The motions that are being improved, one per problem; the first dimension is the batch, the second is time."""

    def __init__(self, world, cost, state, controls, guess, inputs, params, options: ILQROptions):
        self._world, self._cost, self._options, self._inputs = world, cost, options, inputs
        self._feedback = Feedback(world, params)
        problems, m = state.shape[0], world.nu
        like = {"dtype": state.dtype}
        self._box = control_box(world, options.bounds, state.dtype)
        self._bounded = not bool(torch.isinf(torch.cat(self._box)).all())
        u = controls.movedim(0, 1).expand(problems, -1, m).clamp(*self._box).contiguous()
        steps = u.shape[1]
        self._no_gap = torch.zeros(steps, world.ndx, **like)
        if guess is None:
            zero_K = torch.zeros(steps, world.ndx * m, **like)
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
        """Do one iteration of the problems that are not done, solved or failed. Return the number of forward passes."""
        if self._model is None:  # otherwise no motion has changed since the last expansion
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
        kernel = riccati_kernel(self._world.ndx, self._world.nu, self._bounded)
        kernel = (kernel.narrow if len(self.x) <= FEW else kernel).sized(self.u.shape[1])
        k, K_T, change = kernel.apply([J, g, H, self.gap, *box, g1, H1, self.damping[:, None]])
        return k, K_T, change[:, 0]

    def _raise_penalty(self, change: Tensor, gap: Tensor) -> None:
        """Raise the penalty of the merit cost + penalty |gap|_1 until a full step lowers it.

        Nocedal and Wright, Numerical Optimization, 18.36.
        """
        least = 2 * change / gap.clamp(min=1e-300)
        self.penalty = torch.where((gap > 0) & (least > self.penalty), least, self.penalty)

    def _forward(self, k, K_T, gap, expected, active) -> tuple[int, Tensor]:
        """Try steps, the longest first. Return the number of roll-outs, and which problems took a step."""
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

    def solution(self, run: Run, one: bool, kind: torch.dtype) -> Solution:
        n, m = self._world.ndx, self._world.nu
        K_T = self.u.new_zeros(*self.u.shape[:2], n * m) if self.K_T is None else self.K_T
        gains = K_T.unflatten(-1, (n, m)).mT
        x, states, gains = (_shaped(t.movedim(1, 0), one, 1).to(kind) for t in (self.u, self.x, gains))
        extra = {"states": states, "gains": gains, "gap": _shaped(self.gap_size(), one)}
        return run.solution(x, _shaped(self.cost, one), _shaped(self.solved, one), **extra)


def _shaped(x: Tensor, one: bool, at: int = 0) -> Tensor:
    return x.select(at, 0) if one else x


def placed(inputs: Mapping[str, Tensor], one: bool) -> dict[str, Tensor]:
    """Bring the inputs to shapes (n,) or (B, 1 or T + 1, n)."""
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
