"""Compiled roll-outs under feedback: a world follows a known motion with gains, for several step lengths side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import casadi as ca
import torch
from casadi import SX
from torch import Tensor

from costate.kernel import Kernel, ProgramBuilder
from costate.kernel.ir.program import DYNAMIC, Program
from costate.physics.integrate import difference, integrate
from costate.sim import Torque, World
from costate.sim.setup import Setup
from costate.sim.step import step_program

INSIDE = 1 - 1e-9
"""Fraction of an effort limit that is used: at the limit itself the clamp has two one-sided derivatives, just inside only one."""


def control_box(world: World, bounds: tuple[Any, Any] | None, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Return the lowest and highest controls, (nu,) each: the bounds given, within the effort limits of torque actuators."""
    torques = [d.limit if isinstance(d.actuator, Torque) else float("inf") for d in world.setup.drives]
    limit = INSIDE * torch.tensor(torques, dtype=dtype)
    low, high = (torch.as_tensor(b, dtype=dtype).expand(world.nu) for b in bounds or (-limit, limit))
    if not bool((low <= high).all()):
        raise ValueError(f"bounds: the lowest controls, {low.tolist()}, are not all below the highest, {high.tolist()}")
    return torch.maximum(low, -limit), torch.minimum(high, limit)


class Feedback:
    """Steps of a world under the feedback u = u_t + part k_t + K_t (x - x_t), clamped between low and high.

    If the known motion has defects, x_{t+1} = step(x_t, u_t) - gap_t, a roll-out with part = 1 closes these gaps; a smaller
    part leaves (1 - part) of them.
    """

    def __init__(self, world: World, params: Mapping[str, Tensor] | None = None):
        self._world, self._params = world, params
        if world._inputs.depend_on_state():
            raise ValueError(
                "a robot of this world learns parameters that depend on the state; iLQR needs constant ones"
            )
        setup = world._inputs.setup_for(None)
        self._kernel = world._kernel("feedback", setup, _feedback_kernel)
        self._apart = world._kernel("difference", setup, _difference_kernel)

    def rollout(
        self, state: Tensor, known: tuple[Tensor, Tensor], k: Tensor, K_T: Tensor, gap: Tensor, part: Tensor, box
    ) -> tuple[Tensor, Tensor]:
        """Return the states (..., T + 1, nx) and controls (..., T, nu) of roll-outs. Leading dimensions broadcast.

        Args:
            state: Initial state (..., nx).
            known: States (..., T, nx) and controls (..., T, nu) of the known motion.
            k: Changes of the controls (..., T, nu).
            K_T: Gains K, transposed, (..., T, ndx nu).
            gap: Defects of the known motion (..., T, ndx).
            part: Length of the step (..., 1).
            box: Lowest and highest controls, (nu,) each.
        """
        values = self._world._inputs.values(state, self._params, self._world.coordinates)
        kernel = self._kernel.sized(k.shape[-2])
        states, controls = kernel.apply([state, *known, k, K_T, gap, part, *box, *values])
        return states, controls

    def gaps(self, states: Tensor, controls: Tensor) -> Tensor:
        """Return the differences between the end of each step and the next known state, (..., T, ndx)."""
        after = self._world.step(states[..., :-1, :], controls, self.per_step())
        return self.apart(states[..., 1:, :], after)

    def apart(self, known: Tensor, state: Tensor) -> Tensor:
        """Return state - known in the tangent space, (..., ndx)."""
        return self._apart.apply([known, state])[0]

    def linearize(self, states: Tensor, controls: Tensor) -> Tensor:
        """Return [A B] (..., ndx, ndx + nu) of all steps."""
        return torch.cat(self._world.linearize(states[..., :-1, :], controls, self.per_step()), -1)

    def per_step(self) -> dict[str, Tensor]:
        """Return the parameters with a dimension for the steps: those of a sample are the same in all of its steps."""
        return {k: p.unsqueeze(-2) if p.dim() > 1 else p for k, p in (self._params or {}).items()}


def _feedback_kernel(setup: Setup) -> Kernel:
    n, m, nx = setup.ndx, setup.nu, setup.nx
    b = ProgramBuilder("world.feedback")
    x = b.input("state", nx)
    rows = {"states": nx, "controls": m, "k": m, "K_T": n * m, "gap": n}
    sequences = [b.input(name, (DYNAMIC, size)) for name, size in rows.items()]
    shared = [b.input("part", 1), b.input("low", m), b.input("high", m)]
    shared += [b.input(p, setup.default(p).size) for p in setup.parameters]
    _, (controls,), (states,) = b.scan(_body(setup), DYNAMIC, x, sequences, shared, keep=True)
    b.output("states", states, (DYNAMIC + 1, nx))
    b.output("controls", controls, (DYNAMIC, m))
    return b.kernel()


def _body(setup: Setup) -> Program:
    """Build the program (x, known x, known u, k, K_T, gap, part, low, high, parameters) -> (x', u) of one step."""
    n, m, nq, nv = setup.ndx, setup.nu, setup.nq, setup.nv

    def control(x: SX, known: SX, u: SX, k: SX, K_T: SX, part: SX, low: SX, high: SX) -> SX:
        u = u + part * k + K_T.T @ _away(setup, known, x)
        return ca.fmin(ca.fmax(u, low), high)

    def shift(x: SX, gap: SX, part: SX) -> SX:
        back = (part - 1) * gap
        return ca.vertcat(integrate(setup.scene.model, x[:nq], back[:nv]), x[nq:] + back[nv:])

    b = ProgramBuilder("step")
    x, known, u, k = b.inputs(x=setup.nx, known=setup.nx, u=m, k=m)
    K_T, gap, part, low, high = b.inputs(K_T=n * m, gap=n, part=1, low=m, high=m)
    given = [b.input(p, setup.default(p).size) for p in setup.parameters]
    taken = b.trace(control, x, known, u, k, (K_T, (n, m)), part, low, high)
    (after,) = b.call(step_program(setup), x, taken, *given)
    b.output("x", b.trace(shift, after, gap, part))
    b.output("u", taken)
    return b.program()


def _away(setup: Setup, known: SX, x: SX) -> SX:
    return ca.vertcat(
        difference(setup.scene.model, known[: setup.nq], x[: setup.nq]), x[setup.nq :] - known[setup.nq :]
    )


def _difference_kernel(setup: Setup) -> Kernel:
    known, x = SX.sym("known", setup.nx), SX.sym("x", setup.nx)
    return Kernel("world.difference", {"known": known, "state": x}, {"away": ca.densify(_away(setup, known, x))})
