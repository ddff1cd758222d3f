"""Implicit conduction: temperatures at the end of a step, of any length, by Newton's method.

What flows between nodes is that of the temperatures at the end of the step, with the conductivity of those at its beginning;
surfaces give off and take in what they do at its beginning. So conduction is stable whatever the length of a step, the error of
first order in it, and the Jacobian symmetric: nodes that are held, or not there, keep their temperature in the equations of the
others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import casadi as ca

from costate.continuum.heat.bodies import PAIRS, hex_flow
from costate.continuum.heat.laws import conductivity
from costate.kernel.fields import OWN, Entities, Field, FieldBuilder
from costate.kernel.ir.program import Var

if TYPE_CHECKING:
    from costate.continuum.heat.step import HeatStep

TOLERANCE = 1e-12
"""Share of the first residual that may be left."""


class ImplicitConduction:
    """The equation of a step.

    Fields and vectors that it depends on: temperature and enthalpy at the beginning, heat through faces [W], mass and whether a
    node may change, conductances of the elements, number of elements, time and length of the step, parameters.
    """

    def __init__(self, step: HeatStep, f: FieldBuilder, sets: dict[str, Entities]):
        self.step, self.nodes, self.elements = step, sets["nodes"], sets["elements"]
        self.corners = f.table(self.elements, self.nodes, step.mesh.elements)

    def solve(self, f: FieldBuilder, args: list[Field | Var]) -> tuple[Field, Var]:
        """Return the heat that conduction brings to the nodes in the course of a step [W], and the status of the solve."""
        before = args[0]
        assert isinstance(before, Field)
        found = f.solve(self.residual, before, args, self.diagonal, tolerance=TOLERANCE, steps=60, limit=500)
        return self.flow(f, found.value, args), found.status

    def residual(self, g: FieldBuilder, T: Field, *args: Field | Var) -> Field:
        """Return what the heat balance of every node lacks [J]."""
        before, h, surface, own, _, _, clock, p = args
        curve, scale = self.step.curve, self.step.heat_capacity
        (moved,) = g.for_each(self.nodes, lambda T, t, own: own[1] * T + (1 - own[1]) * t, [T, before, own], [OWN])
        flow = self.flow(g, moved, list(args))

        def balance(T: ca.SX, t: ca.SX, h: ca.SX, flow: ca.SX, own: ca.SX, clock: ca.SX, p: ca.SX) -> ca.SX:
            missing = own[0] * (curve.enthalpy(T, p[1], p[2]) - h) - clock[1] * flow
            return own[1] * missing + (1 - own[1]) * scale * (T - t)

        (every,) = g.for_each(self.nodes, lambda a, b: a + b, [flow, surface], [OWN])
        return g.for_each(self.nodes, balance, [T, before, h, every, own, clock, p], [OWN])[0]

    def flow(self, g: FieldBuilder, T: Field, args: list[Field | Var]) -> Field:
        """Return what conduction brings to the nodes [W] at temperatures T, with the conductivity of those at the beginning."""
        before, _, _, _, pairs, between, _, p = args
        assert isinstance(before, Field)
        reads = [T[self.corners], before[self.corners], pairs, p]
        return g.for_each(self.elements, self._conduct, reads, [self.corners], between=_alive(g, between))[0]

    def _conduct(self, T: ca.SX, before: ca.SX, pairs: ca.SX, p: ca.SX) -> ca.SX:
        return hex_flow(T, pairs, self._conductivity(before, p))

    def _conductivity(self, T: ca.SX, p: ca.SX) -> ca.SX:
        return p[0] * conductivity(self.step.material, ca.sum1(T) / 8)

    def diagonal(self, g: FieldBuilder, T: Field, *args: Field | Var) -> Field:
        """Return the diagonal of the Jacobian, made positive."""
        before, _, _, own, pairs, between, clock, p = args
        assert isinstance(before, Field)
        curve, scale = self.step.curve, self.step.heat_capacity

        def sums(before: ca.SX, pairs: ca.SX, p: ca.SX) -> ca.SX:
            each = [sum(pairs[m] for m, pair in enumerate(PAIRS) if i in pair) for i in range(8)]
            return self._conductivity(before, p) * ca.vertcat(*each)

        reads = [before[self.corners], pairs, p]
        (total,) = g.for_each(self.elements, sums, reads, [self.corners], between=_alive(g, between))

        def body(T: ca.SX, total: ca.SX, own: ca.SX, clock: ca.SX, p: ca.SX) -> ca.SX:
            full = own[0] * curve.slope_at(T, p[1], p[2]) + clock[1] * ca.fmax(total, 0)
            return own[1] * full + (1 - own[1]) * scale

        return g.for_each(self.nodes, body, [T, total, own, clock, p], [OWN])[0]


def _alive(g: FieldBuilder, between: Field | Var) -> Var:
    assert isinstance(between, Var)
    return g.trace(lambda b: ca.vertcat(0, b[0]), between)
