"""Costs of motions, written once as symbolic functions: value, gradient and Hessian in the tangent space are compiled."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import casadi as ca
from casadi import SX
from torch import Tensor

from costate.kernel import Kernel
from costate.model import Model
from costate.physics import Parameters
from costate.physics.integrate import difference, integrate
from costate.physics.kinematics import link_poses, link_velocities
from costate.sim import World


@dataclass(frozen=True, eq=False)
class Point:
    """A point of a motion in symbols, the argument of stage and final costs."""

    model: Model
    q: SX
    """Configuration of everything in the world, (nq,)."""
    v: SX
    """Velocity of everything in the world, (nv,)."""
    u: SX
    """Control, (nu,); empty at the end of the motion."""
    inputs: Mapping[str, SX]
    """Inputs of the cost by name."""
    act: SX = field(default_factory=lambda: SX(0, 1))
    """Activations of actuators, (na,)."""

    def __getitem__(self, name: str) -> SX:
        """Return an input of the cost."""
        if name not in self.inputs:
            raise KeyError(
                f"the cost has no input '{name}'; it has {', '.join(self.inputs) or 'none'}: see Cost(inputs=)"
            )
        return self.inputs[name]

    def position(self, link: str) -> SX:
        """Return the position of a link's origin in the world [m], (3,). Names are "robot/link", or "NAME/body"."""
        return self._pose(link)[1]

    def rotation(self, link: str) -> SX:
        """Return the rotation of a link in the world, (3, 3)."""
        return self._pose(link)[0]

    def velocity(self, link: str) -> SX:
        """Return the velocity of a link's origin [m/s] and its angular velocity [rad/s], world axes, (6,)."""
        return ca.vertcat(*link_velocities(self.model, Parameters.of(self.model), self.q, self.v, [link])[link])

    def away(self, q: SX | Tensor) -> SX:
        """Return the difference of the configuration from another one q (nq,), in the tangent space, (nv,)."""
        goal = SX(ca.DM(q.tolist())) if isinstance(q, Tensor) else SX(q)
        return difference(self.model, goal, self.q)

    def _pose(self, link: str) -> tuple[SX, SX]:
        return link_poses(self.model, Parameters.of(self.model), self.q, [link])[link]


Term = Callable[[Point], SX]


class Cost:
    """Cost of a motion of a world: a sum over its steps, plus a cost of its last state.

        def stage(s):       # s.q, s.v, s.u, s.position("robot/link"), s.rotation(...), s.velocity(...), s.away(q), s["goal"]
            return casadi.vertcat(0.1 * s.v, 0.01 * s.u)
        def final(s):
            return 10 * (s.position("ur5/tool0") - s["goal"])
        cost = Cost(world, stage, final, inputs={"goal": 3})

    Args:
        stage: Function of a point of the motion that returns a column of residuals. The cost is half their squared norm, and its
            Hessian is approximated as in Gauss-Newton.
        final: The same function for the last state, which has no control; None for no cost.
        inputs: Sizes of further inputs by name; their values are given to the optimiser as tensors (n,), (B, n) or (T + 1, B, n).
        least_squares: False if stage and final return costs (scalars) instead of residuals. Their exact Hessian is then used.
    """

    def __init__(
        self,
        world: World,
        stage: Term,
        final: Term | None = None,
        inputs: Mapping[str, int] | None = None,
        least_squares: bool = True,
    ):
        self.world, self.inputs = world, dict(inputs or {})
        last = final or (lambda s: SX.zeros(1))
        self.stage = CostTerm(world, "stage", stage, self.inputs, least_squares, world.nu)
        self.final = CostTerm(world, "final", last, self.inputs, least_squares, 0)

    def value(self, states: Tensor, controls: Tensor, inputs: Mapping[str, Tensor]) -> Tensor:
        """Return the cost (...) of motions: states (..., T + 1, nx), controls (..., T, nu), inputs (n,) or (..., 1 or T + 1, n)."""
        steps = self.stage.value([states[..., :-1, :], controls, *self.rows(inputs, slice(0, -1))])
        last = self.final.value([states[..., -1, :], *(x[..., 0, :] for x in self.rows(inputs, slice(-1, None)))])
        return steps.sum(-1) + last

    def rows(self, inputs: Mapping[str, Tensor], which: slice) -> list[Tensor]:
        """Return the inputs in order, at some of the T + 1 times."""
        if set(inputs) != set(self.inputs):
            raise ValueError(
                f"inputs of the cost: given {', '.join(inputs) or 'none'}, expected {', '.join(self.inputs) or 'none'}"
            )
        found = []
        for name, size in self.inputs.items():
            x = inputs[name]
            if x.shape[-1] != size:
                raise ValueError(f"input '{name}' of the cost has shape {tuple(x.shape)}; expected (..., {size})")
            found.append(x[None] if x.dim() == 1 else x if x.shape[-2] == 1 else x[..., which, :])
        return found


class CostTerm:
    """The stage or the final term of a cost: kernels for its value and its second-order expansion in (dq, dv, du)."""

    def __init__(
        self, world: World, name: str, term: Term, inputs: Mapping[str, int], least_squares: bool, controls: int
    ):
        model = world.setup.scene.model
        self.name = name
        x, u = SX.sym("x", world.nx), SX.sym("u", controls)
        given = {k: SX.sym(k, n) for k, n in inputs.items()}
        self._inputs = {"state": x} | ({"control": u} if controls else {}) | {f"input:{k}": s for k, s in given.items()}
        self._d = SX.sym("d", world.ndx + controls)
        moved = x[world.nq :] + self._d[world.nv : world.ndx]
        q, v, act = integrate(model, x[: world.nq], self._d[: world.nv]), moved[: world.nv], moved[world.nv :]
        found = term(Point(model, q, v, u + self._d[world.ndx :], given, act))
        found = found if isinstance(found, SX) else SX(found)
        if found.shape[1] != 1 or (not least_squares and found.shape[0] != 1):
            wanted = "a column of residuals" if least_squares else "one cost, as least_squares is False"
            raise ValueError(f"the {name} cost has shape {found.shape}; expected {wanted}")
        self._found, self._least_squares = found, least_squares

    def _at_zero(self, *values: SX) -> list[SX]:
        return ca.substitute(list(values), [self._d], [SX.zeros(self._d.numel())])

    @property
    def cost(self) -> SX:
        """Value of the term as an expression of `symbols`."""
        total = ca.sumsqr(self._found) / 2 if self._least_squares else self._found
        return self._at_zero(total)[0]

    @property
    def symbols(self) -> list[SX]:
        """Symbols of the state, the control if there is one, and the inputs."""
        return list(self._inputs.values())

    @cached_property
    def _value(self) -> Kernel:
        return Kernel(f"cost.{self.name}", self._inputs, {"cost": self.cost})

    @cached_property
    def _expansion(self) -> Kernel:
        if self._least_squares:
            r, J = self._at_zero(self._found, ca.jacobian(self._found, self._d))
            g, H = J.T @ r, J.T @ J
        else:
            H, g = ca.hessian(self._found, self._d)
            g, H = self._at_zero(g, H)
        return Kernel(
            f"cost.{self.name}.expansion", self._inputs, {"gradient": ca.densify(g), "hessian": ca.densify(H)}
        )

    def value(self, arguments: list[Tensor]) -> Tensor:
        """Return the cost (...) of states, controls and inputs."""
        return self._value.apply(arguments)[0].squeeze(-1)

    def expansion(self, arguments: list[Tensor]) -> tuple[Tensor, Tensor]:
        """Return the gradient (..., n) and the Hessian (..., n, n) in (dq, dv, du)."""
        gradient, hessian = self._expansion.apply(arguments)
        return gradient, hessian
