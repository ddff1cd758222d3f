"""Direct optimal control: collocation or multiple shooting, solved by IPOPT on the same symbolic physics.

States and controls of all times are unknowns, the motion is a constraint. Bounds, end states and a free duration are easily
said this way: it gives lower bounds and time-optimal motions to compare policies with.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np
import torch

from costate.learn.cost import Cost
from costate.learn.feedback import control_box
from costate.learn.solution import Options, Run, Solution
from costate.learn.symbolic import slope_function, step_function
from costate.sim import World

Tensor = torch.Tensor


@dataclass(frozen=True, kw_only=True)
class DirectOptions(Options):
    """How to transcribe and solve."""

    iterations: int = 500
    method: str = "collocation"
    """"collocation": continuous dynamics, cubic states (Hermite-Simpson), constant controls in each interval; "shooting": the
    world's own step."""
    minimum_time: bool = False
    """Also minimise the duration [s]; only with collocation."""
    duration: float | None = None
    """Of the motion [s], or its guess with minimum_time. Default: steps times the world's dt. With collocation only."""
    duration_bounds: tuple[float, float] = (1e-3, 1e3)
    """With minimum_time [s]."""
    bounds: tuple[Any, Any] | None = None
    """Lowest and highest controls, each (nu,) or a number. Effort limits of torque actuators hold anyway."""
    state_bounds: tuple[Any, Any] | None = None
    """Lowest and highest states, each (nx,) or a number; infinite for none."""
    tolerance: float = 1e-8
    """Of IPOPT."""
    ipopt: Mapping[str, Any] | None = None
    """More options of IPOPT."""


def direct(
    world: World,
    cost: Cost | None,
    state0: Tensor,
    controls0: Tensor,
    options: DirectOptions = DirectOptions(),  # noqa: B008
    *,
    final_state: Tensor | None = None,
    states0: Tensor | None = None,
    inputs: Mapping[str, Tensor] | None = None,
) -> Solution:
    """Minimise a cost, the duration, or their sum, for one motion of a smooth world (no contact, or `Compliant`).

    x of the solution: controls (T, nu). extra: "states" (T + 1, nx), "times" (T + 1,) [s], "duration" [s].

    Args:
        cost: None with minimum_time: the duration alone. The same sum over T steps as for ilqr.
        state0: (nx,).
        controls0: Guess, (T, nu).
        final_state: (nx,) to be reached exactly; entries that are NaN are free.
        states0: Guess, (T + 1, nx). Default: on a straight line from state0 to final_state, or standing still.
        inputs: Those of the cost, name -> (n,) or (T + 1, n).
    """
    _check(world, cost, state0, controls0, options)
    steps = controls0.shape[0]
    program = Transcription(world, steps, options)
    with Run("direct", options) as run:
        objective = program.duration if options.minimum_time else ca.MX(0)
        if cost is not None:
            objective = objective + _total(cost, program.x, program.u, inputs or {})
        watch = Watch("watch", program, run)
        nlp = {"x": program.unknowns, "f": objective, "g": program.defects}
        solver = ca.nlpsol("direct", "ipopt", nlp, _settings(options, watch))
        low, high = program.limits(state0, final_state)
        found = solver(x0=program.guess(state0, final_state, controls0, states0), lbx=low, ubx=high, lbg=0, ubg=0)
    return _solution(run, program, found, solver.stats(), state0.dtype)


class Transcription:
    """Unknowns, and how far they are from a motion: duration, states (nx, T + 1), controls (nu, T)."""

    def __init__(self, world: World, steps: int, options: DirectOptions):
        self._world, self._options, self.steps = world, options, steps
        self.duration, self.x = ca.MX.sym("duration"), ca.MX.sym("x", world.nx, steps + 1)
        self.u = ca.MX.sym("u", world.nu, steps)
        self.unknowns = ca.veccat(self.duration, self.x, self.u)
        h = self.duration / steps
        before, after = self.x[:, :-1], self.x[:, 1:]
        if options.method == "shooting":
            defects = step_function(world).map(steps)(before, self.u) - after
        else:
            defects = _hermite_simpson(world).map(steps)(before, after, self.u, ca.repmat(h, 1, steps))
        self.defects = ca.vec(defects)

    def limits(self, state0: Tensor, final_state: Tensor | None) -> tuple[np.ndarray, np.ndarray]:
        world, steps = self._world, self.steps
        states = np.empty((2, steps + 1, world.nx))
        for side, limit in zip(states, self._options.state_bounds or (-np.inf, np.inf), strict=True):
            side[:] = np.asarray(limit)
        states[:, 0] = state0.numpy()
        if final_state is not None:
            wanted = final_state.numpy()
            states[:, -1] = np.where(np.isnan(wanted), states[:, -1], wanted)
        box = control_box(world, self._options.bounds, torch.float64)
        controls = [np.broadcast_to(b.numpy(), (steps, world.nu)) for b in box]
        nominal = self.seconds()
        spans = self._options.duration_bounds if self._options.minimum_time else (nominal, nominal)
        low, high = (
            np.concatenate([[d], x.ravel(), u.ravel()]) for d, x, u in zip(spans, states, controls, strict=True)
        )
        return low, high

    def guess(self, state0, final_state, controls0, states0) -> np.ndarray:
        start = state0.numpy()
        if states0 is not None:
            x = states0.numpy()
        else:
            end = start if final_state is None else np.where(np.isnan(final_state.numpy()), start, final_state.numpy())
            x = start + np.linspace(0, 1, self.steps + 1)[:, None] * (end - start)
        return np.concatenate([[self.seconds()], x.ravel(), controls0.numpy().ravel()])

    def seconds(self) -> float:
        return self._options.duration or self.steps * self._world.dt

    def split(self, unknowns: ca.DM) -> tuple[float, np.ndarray, np.ndarray]:
        flat = np.asarray(unknowns).ravel()
        n = (self.steps + 1) * self._world.nx
        x = flat[1 : 1 + n].reshape(self.steps + 1, -1)
        return float(flat[0]), x, flat[1 + n :].reshape(self.steps, -1)


def _hermite_simpson(world: World) -> ca.Function:
    """(x0, x1, u, h) -> how far the cubic through both states with their slopes is from the slope in the middle (Hargraves and
    Paris 1987), in the form of Simpson's rule."""
    slope = slope_function(world)
    x0, x1, u, h = ca.SX.sym("x0", world.nx), ca.SX.sym("x1", world.nx), ca.SX.sym("u", world.nu), ca.SX.sym("h")
    f0, f1 = slope(x0, u), slope(x1, u)
    middle = slope((x0 + x1) / 2 + h / 8 * (f0 - f1), u)
    return ca.Function("defect", [x0, x1, u, h], [x0 + h / 6 * (f0 + 4 * middle + f1) - x1])


def _total(cost: Cost, x: ca.MX, u: ca.MX, inputs: Mapping[str, Tensor]) -> ca.MX:
    steps = u.shape[1]
    named = {k: v[None] if v.dim() == 2 else v for k, v in inputs.items()}

    def columns(which: slice, count: int) -> list[np.ndarray]:
        rows = [r.reshape(-1, r.shape[-1]).numpy() for r in cost.rows(named, which)]
        return [np.broadcast_to(r, (count, r.shape[1])).T for r in rows]

    stage = ca.Function("stage", cost.stage.symbols, [cost.stage.cost])
    final = ca.Function("final", cost.final.symbols, [cost.final.cost])
    running = stage.map(steps)(x[:, :-1], u, *columns(slice(0, -1), steps))
    return ca.sum2(running) + final(x[:, -1], *columns(slice(-1, None), 1))


class Watch(ca.Callback):
    """Called by IPOPT after each iteration."""

    def __init__(self, name: str, program: Transcription, run: Run):
        super().__init__()
        self._sizes = program.unknowns.numel(), program.defects.numel()
        self._run = run
        self.construct(name, {})

    def get_n_in(self) -> int:
        return ca.nlpsol_n_out()

    def get_n_out(self) -> int:
        return 1

    def get_sparsity_in(self, i: int) -> ca.Sparsity:
        n, m = self._sizes
        rows = {"f": 1, "x": n, "lam_x": n, "g": m, "lam_g": m}.get(ca.nlpsol_out(i), 0)
        return ca.Sparsity.dense(rows) if rows else ca.Sparsity(0, 0)

    def eval(self, arg: Any) -> list[float]:
        self._run.evaluations += 1
        violation = float(ca.norm_inf(arg[ca.nlpsol_out().index("g")]))
        loss = torch.tensor(float(arg[ca.nlpsol_out().index("f")]), dtype=torch.float64)
        # The target is no reason to stop: an early iterate is cheap because it is not a motion yet.
        self._run.note(loss, None, defect=violation)
        limit = self._run.options.time_limit
        return [float(limit is not None and self._run.seconds >= limit)]


def _settings(options: DirectOptions, watch: Watch) -> dict[str, Any]:
    own = {"max_iter": options.iterations, "tol": options.tolerance, "print_level": 0, "sb": "yes"}
    return {"ipopt": own | dict(options.ipopt or {}), "print_time": False, "iteration_callback": watch}


def _solution(run: Run, program: Transcription, found, stats: Mapping[str, Any], dtype: torch.dtype) -> Solution:
    duration, x, u = program.split(found["x"])
    states, controls = torch.tensor(x, dtype=dtype), torch.tensor(u, dtype=dtype)
    run.reason = f"IPOPT: {stats['return_status'].replace('_', ' ').lower()}"
    solved = torch.tensor(bool(stats["success"]))
    extra = {
        "states": states,
        "times": torch.linspace(0, duration, program.steps + 1, dtype=dtype),
        "duration": duration,
    }
    return run.solution(controls, torch.tensor(float(found["f"]), dtype=torch.float64), solved, **extra)


def _check(world: World, cost: Cost | None, state0: Tensor, controls0: Tensor, options: DirectOptions) -> None:
    if options.method not in ("collocation", "shooting"):
        raise ValueError(f"unknown method '{options.method}': use collocation or shooting")
    if options.method == "shooting" and (options.minimum_time or options.duration):
        raise ValueError(
            "shooting takes steps of the world's own length: use method='collocation' to choose the duration"
        )
    if cost is None and not options.minimum_time:
        raise ValueError("there is nothing to minimise: give a cost, or minimum_time=True")
    if state0.shape != (world.nx,) or controls0.dim() != 2 or controls0.shape[1] != world.nu:
        raise ValueError(
            f"state0 has shape {tuple(state0.shape)}, controls0 {tuple(controls0.shape)}; "
            f"expected ({world.nx},) and (T, {world.nu})"
        )
