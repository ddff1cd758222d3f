"""Direct optimal control: collocation or multiple shooting, solved by IPOPT on the same symbolic physics.

The states and controls at all times are unknowns, and the dynamics are constraints between them. Bounds, final states and a free
duration are easy to state in this form, so it yields time-optimal motions and lower bounds with which policies can be compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np
import torch
from torch import Tensor

from costate.core.names import unknown
from costate.core.numbers import promoted
from costate.optimise.cost import Cost
from costate.optimise.feedback import control_box
from costate.optimise.solution import OptimiserOptions, Run, Solution
from costate.optimise.transcription import METHODS, Limit, Transcription, input_columns, total
from costate.sim import World


@dataclass(frozen=True, kw_only=True)
class DirectOptions(OptimiserOptions):
    """Options of direct optimal control: the transcription of the motion and the solution by IPOPT."""

    iterations: int = 500
    """Largest number of iterations."""
    method: str = "collocation"
    """Transcription method:
    "collocation": continuous dynamics, cubic states (Hermite-Simpson), constant controls in each interval.
    "shooting": the world's own step.
    "inverse": constant accelerations; the controls and torques they need keep to their bounds in the middle of each interval.
    It is for joints with Torque or VelocityServo.
    "kinematic": no dynamics; joints move at constant speed in each interval, as fast as state_bounds allow."""
    minimum_time: bool = False
    """Switch that adds the duration [s] to the objective; not with shooting."""
    duration: float | None = None
    """Duration of the motion [s], or its guess with minimum_time. Default: steps times the world's dt. Not with shooting."""
    duration_bounds: tuple[Any, Any] = (1e-3, 1e3)
    """Shortest and longest duration with minimum_time [s]: one number for all phases, or one for each."""
    phases: tuple[int, ...] | None = None
    """Steps of each phase of the motion; with minimum_time every phase has a duration of its own. Default: one phase."""
    bounds: tuple[Any, Any] | None = None
    """Lowest and highest controls, each (nu,) or a number. The effort limits of torque actuators hold in addition."""
    state_bounds: tuple[Any, Any] | None = None
    """Lowest and highest states, each (nx,) or a number; infinite for no bound."""
    acceleration_limit: float | None = None
    """Largest acceleration of any joint [rad/s^2 or m/s^2]; only with method "inverse"."""
    jerk_limit: float | None = None
    """Largest change of an acceleration, between the middles of intervals [rad/s^3 or m/s^3]; only with method "inverse"."""
    tolerance: float = 1e-8
    """Tolerance of IPOPT."""
    ipopt: Mapping[str, Any] | None = None
    """Further options of IPOPT."""


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
    limits: Sequence[Limit] = (),
) -> Solution:
    """Minimise a cost, the duration, or their sum, for one motion of a smooth world (no contact, or `Compliant`).

    The x of the solution are the controls (T, nu). Its extra holds "states" (T + 1, nx), "times" (T + 1,) [s] and "duration" [s].

    Args:
        cost: Cost, with the same sum over T steps as for ilqr; None to minimise the duration alone (minimum_time).
        state0: Initial state, (nx,).
        controls0: Guess of the controls, (T, nu).
        final_state: State to be reached exactly, (nx,); entries that are NaN are free.
        states0: Guess of the states, (T + 1, nx). Default: a straight line from state0 to final_state, or standing still.
        inputs: Inputs of the cost and of the limits, name -> (n,) or (T + 1, n).
        limits: Pairs (term, times): a function of a point of the motion (see `Cost`) that returns a column, none of whose entries
            may be positive at the given times, some of 0 ... T. The point has no control, but the further input "time" [s].
    """
    state0, controls0 = promoted([state0, controls0], world.dtype)
    _check(world, state0, controls0)
    sizes = {name: value.shape[-1] for name, value in (inputs or {}).items()}
    program = Direct(world, cost, controls0.shape[0], options, limits, sizes)
    return program.solve(state0, controls0, final_state=final_state, states0=states0, inputs=inputs)


class Direct:
    """An optimal control problem that is built once and solved for many starts. Arguments are those of `direct`.

    sizes: Sizes of the inputs by name.
    """

    def __init__(
        self,
        world: World,
        cost: Cost | None,
        steps: int,
        options: DirectOptions,
        limits: Sequence[Limit] = (),
        sizes: Mapping[str, int] | None = None,
    ):
        _check_options(cost, steps, options)
        self._world, self._options = world, options
        rates = options.acceleration_limit or np.inf, options.jerk_limit or np.inf
        phases = options.phases or (steps,)
        self._program = program = Transcription(world, options.method, phases, limits, sizes or {}, rates)
        objective = program.duration if options.minimum_time else ca.MX(0)
        if cost is not None:
            objective = objective + total(cost, program)
        self._watch = Watch("watch", program)
        given = ca.veccat(*program.inputs.values())
        nlp = {"x": program.unknowns, "f": objective, "g": program.rows, "p": given}
        self._solver = ca.nlpsol("direct", "ipopt", nlp, _settings(options, self._watch))
        self._box = control_box(world, options.bounds, torch.float64)

    def solve(
        self,
        state0: Tensor,
        controls0: Tensor,
        *,
        final_state: Tensor | None = None,
        states0: Tensor | None = None,
        inputs: Mapping[str, Tensor] | None = None,
    ) -> Solution:
        """Solve the problem for one start; arguments as for `direct`."""
        options, program = self._options, self._program
        state0, controls0 = promoted([state0, controls0], self._world.dtype)
        seconds = options.duration or program.steps * self._world.dt
        durations = [seconds * n / program.steps for n in program.phases]
        bounds = options.duration_bounds if options.minimum_time else (durations, durations)
        shortest, longest = (np.broadcast_to(b, len(durations)).tolist() for b in bounds)
        guess = _line(state0, final_state, program.steps) if states0 is None else states0.numpy()
        low, high = program.unknown_bounds((shortest, longest), self._states(state0, final_state), self._box)
        low_row, high_row = program.row_bounds(self._box)
        with Run("direct", options) as run:
            self._watch.run = run
            found = self._solver(
                x0=program.guess(durations, guess, controls0.numpy()), p=input_columns(inputs or {}, program),
                lbx=low, ubx=high, lbg=low_row, ubg=high_row,
            )  # fmt: skip
        return _solution(run, program, found, self._solver.stats(), state0.dtype)

    def _states(self, state0: Tensor, final_state: Tensor | None) -> np.ndarray:
        """Return the lowest and highest states, (2, T + 1, nx)."""
        nq, states = self._world.nq, np.empty((2, self._program.steps + 1, self._world.nx))
        for side, limit in zip(states, self._options.state_bounds or (-np.inf, np.inf), strict=True):
            side[:] = np.asarray(limit)
        known = nq if self._options.method == "kinematic" else None  # velocities may jump at the start
        states[:, 0, :known] = state0.numpy()[:known]
        if final_state is not None:
            wanted = final_state.numpy()
            states[:, -1] = np.where(np.isnan(wanted), states[:, -1], wanted)
        return states


def _line(state0: Tensor, final_state: Tensor | None, steps: int) -> np.ndarray:
    start = state0.numpy()
    end = start if final_state is None else np.where(np.isnan(final_state.numpy()), start, final_state.numpy())
    return start + np.linspace(0, 1, steps + 1)[:, None] * (end - start)


class Watch(ca.Callback):
    """Callback of IPOPT, called after each iteration."""

    run: Run
    """Run that is under way."""

    def __init__(self, name: str, program: Transcription):
        super().__init__()
        self._sizes = program.unknowns.numel(), program.rows.numel(), program.defects.numel()
        self._given = sum(m.numel() for m in program.inputs.values())
        self.construct(name, {})

    def get_n_in(self) -> int:
        return ca.nlpsol_n_out()

    def get_n_out(self) -> int:
        return 1

    def get_sparsity_in(self, i: int) -> ca.Sparsity:
        n, m, _ = self._sizes
        rows = {"f": 1, "x": n, "lam_x": n, "g": m, "lam_g": m, "lam_p": self._given}.get(ca.nlpsol_out(i), 0)
        return ca.Sparsity.dense(rows) if rows else ca.Sparsity(0, 0)

    def eval(self, arg: Any) -> list[float]:
        self.run.evaluations += 1
        violation = float(ca.norm_inf(arg[ca.nlpsol_out().index("g")][: self._sizes[2]]))
        loss = torch.tensor(float(arg[ca.nlpsol_out().index("f")]), dtype=torch.float64)
        # Reaching the target is no reason to stop: an early iterate may have a low cost because it is not a motion yet.
        self.run.note(loss, None, defect=violation)
        limit = self.run.options.time_limit
        return [float(limit is not None and self.run.seconds >= limit)]


def _settings(options: DirectOptions, watch: Watch) -> dict[str, Any]:
    own = {"max_iter": options.iterations, "tol": options.tolerance, "print_level": 0, "sb": "yes"}
    return {"ipopt": own | dict(options.ipopt or {}), "print_time": False, "iteration_callback": watch}


def _solution(run: Run, program: Transcription, found, stats: Mapping[str, Any], dtype: torch.dtype) -> Solution:
    times, states, controls = (torch.tensor(v, dtype=dtype) for v in program.split(found["x"]))
    run.reason = f"IPOPT: {stats['return_status'].replace('_', ' ').lower()}"
    solved = torch.tensor(bool(stats["success"]))
    extra = {"states": states, "times": times, "duration": float(times[-1])}
    return run.solution(controls, torch.tensor(float(found["f"]), dtype=torch.float64), solved, **extra)


def _check_options(cost: Cost | None, steps: int, options: DirectOptions) -> None:
    if options.method not in METHODS:
        raise ValueError(unknown("method", options.method, METHODS))
    if options.method == "shooting" and (options.minimum_time or options.duration):
        raise ValueError(
            "shooting takes steps of the world's own length: use method='collocation' to choose the duration"
        )
    if options.method != "inverse" and (options.acceleration_limit, options.jerk_limit) != (None, None):
        raise ValueError(f"method '{options.method}' knows no limits of acceleration and jerk: use method='inverse'")
    if cost is None and not options.minimum_time:
        raise ValueError("there is nothing to minimise: give a cost, or minimum_time=True")
    if options.phases is not None and (sum(options.phases) != steps or min(options.phases) < 1):
        raise ValueError(f"phases are {options.phases}; expected positive numbers that add up to {steps} steps")


def _check(world: World, state0: Tensor, controls0: Tensor) -> None:
    if world.na:
        raise ValueError(
            f"this world has {world.na} activations of actuators, which direct methods do not know: use ilqr or gradient"
        )
    if state0.shape != (world.nx,) or controls0.dim() != 2 or controls0.shape[1] != world.nu:
        raise ValueError(
            f"state0 has shape {tuple(state0.shape)}, controls0 {tuple(controls0.shape)}; "
            f"expected ({world.nx},) and (T, {world.nu})"
        )
