"""One explicit step of heat in a growing part, as a program over fields."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np

from costate.continuum.heat.bodies import PAIRS, corner_volumes, face_flow, face_points, hex_flow, pair_conductances
from costate.continuum.heat.implicit import ImplicitConduction
from costate.continuum.heat.laws import Curve, conductivity
from costate.continuum.heat.process import Laser
from costate.continuum.heat.timeline import FaceSet, Timeline
from costate.continuum.materials import Material
from costate.continuum.mesh import HexMesh
from costate.kernel.fields import OWN, Entities, Field, FieldBuilder
from costate.kernel.ir.program import Program, Var

PARAMETERS = (
    "conductivity",
    "specific_heat",
    "latent_heat",
    "density",
    "absorptivity",
    "convection",
    "emissivity",
    "ambient",
    "radius",
)
"""Numbers a gradient can be taken of: factors of the material's tables (the first four), share of the power that is taken up, heat
transfer [W/(m^2 K)], emissivity, temperature of the air [K], radius of the spot [m]."""
Observer = Callable[[ca.SX, ca.SX], ca.SX]
"""Function (temperature of a node [K], parameters of the observer) -> numbers that are integrated over time."""


@dataclass(frozen=True, eq=False)
class HeatStep:
    """The step of a part, a material and a laser."""

    mesh: HexMesh
    material: Material
    laser: Laser
    timeline: Timeline
    sensors: np.ndarray
    """Nodes and weights of each sensor: (S, 8), (S, 8)."""
    weights: np.ndarray
    observer: Observer | None = None
    observed: int = 0
    """Numbers per node that the observer returns."""
    n_settings: int = 0
    """Parameters of the observer."""
    implicit: bool = False
    """Conduction by the temperatures at the end of the step."""

    def sets(self, f: FieldBuilder) -> dict[str, Entities]:
        """Return the entities of the problem."""
        counts = {
            "nodes": len(self.mesh.nodes),
            "elements": len(self.mesh.elements),
            "lasting faces": len(self.timeline.lasting.nodes),
            "passing faces": len(self.timeline.passing.nodes),
            "sensors": len(self.sensors),
        }
        return {name: f.entities(name, count) for name, count in counts.items() if count}

    def program(self) -> Program:
        """Return the step: (enthalpy, integrals), (elements and faces there, number and length of the step, spot, power), (what
        does not change) -> (enthalpy, integrals), readings of the sensors."""
        f = FieldBuilder("heat step")
        sets = self.sets(f)
        nodes, curve = sets["nodes"], self.curve
        h = f.carried(nodes)
        integrals = f.carried(nodes, self.observed) if self.observed else None
        between, clock, _, _ = rows = f.inputs(5, 2, 3, 1)
        free, shares = f.carried(nodes), f.carried(nodes, 2 * self.degree)
        pairs = f.carried(sets["elements"], len(PAIRS))
        faces = {name: f.carried(sets[name], 22) for name in ("lasting faces", "passing faces") if name in sets}
        weights = f.carried(sets["sensors"], 8) if "sensors" in sets else None
        p, settings = f.inputs(len(PARAMETERS), max(self.n_settings, 1))

        (T,) = f.for_each(nodes, lambda h, p: curve.temperature(h, p[1], p[2]), [h, p], [OWN])
        flows = [self._surface(f, sets, name, field, T, rows, p) for name, field in faces.items()]
        status: list[Var] = []
        if self.implicit:
            (surface,) = f.for_each(nodes, lambda *flows: sum(flows), flows, [OWN])
            reads = [shares, free, between, p]
            (own,) = f.for_each(nodes, lambda *each: ca.vertcat(*self.mass(*each)), reads, [OWN])
            args = [T, h, surface, own, pairs, between, clock, p]
            inner, solved = ImplicitConduction(self, f, sets).solve(f, args)
            flows, status = [surface, inner], [solved]
        else:
            flows.append(self._conduction(f, sets, T, pairs, between, p))
        (after,) = f.for_each(nodes, self._update, [h, shares, free, between, clock, p, *flows], [OWN])
        outs: list[Var] = [after.var]
        if integrals is not None:
            outs.append(self._observe(f, nodes, integrals, T, clock, settings).var)
        if weights is not None:
            outs.append(self._read(f, sets, weights, T).var)
        return f.program(*outs, *status)

    @cached_property
    def curve(self) -> Curve:
        """Enthalpy of the material."""
        return Curve.of(self.material)

    @property
    def heat_capacity(self) -> float:
        """Heat that a mean node takes up per kelvin [J/K]: the scale of equations of nodes that do nothing."""
        return self.material.density * self.curve.least_heat * float(self.mesh.volumes.mean())

    @cached_property
    def pairs(self) -> np.ndarray:
        """Conductances of the elements (E, 28) [m]."""
        return pair_conductances(self.mesh.nodes, self.mesh.elements)

    @cached_property
    def shares(self) -> np.ndarray:
        """Elements of each node, and the volume [m^3] that each gives it (N, 2 D): an element that is not there counts nothing."""
        corner = self.mesh.elements.ravel()
        order = np.argsort(corner, kind="stable")
        count = np.bincount(corner, minlength=len(self.mesh.nodes))
        rank = np.arange(len(corner)) - np.repeat(np.cumsum(count) - count, count)
        found = np.zeros((len(self.mesh.nodes), 2, int(count.max())))
        found[:, 0] = 1e9
        found[corner[order], 0, rank] = order // 8
        found[corner[order], 1, rank] = corner_volumes(self.mesh.nodes, self.mesh.elements).ravel()[order]
        return found.reshape(len(found), -1)

    @property
    def degree(self) -> int:
        """Largest number of elements that a node has."""
        return self.shares.shape[1] // 2

    def _update(
        self, h: ca.SX, shares: ca.SX, free: ca.SX, between: ca.SX, clock: ca.SX, p: ca.SX, *flows: ca.SX
    ) -> ca.SX:
        """Return the enthalpy after a step. Nodes without mass are not there yet, and nodes that are held keep theirs."""
        mass, there = self.mass(shares, free, between, p)
        return h + there * clock[1] * sum(flows) / ca.fmax(mass, 1e-30)

    def mass(self, shares: ca.SX, free: ca.SX, between: ca.SX, p: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Return the mass of a node [kg], and 1 if it is there and may change, else 0."""
        d = self.degree
        volume = ca.dot(shares[:d] < between[0], shares[d:])
        return self.material.density * p[3] * volume, free * (volume > 0)

    def _conduction(
        self, f: FieldBuilder, sets: dict[str, Entities], T: Field, pairs: Field, between: Var, p: Var
    ) -> Field:
        elements, material = sets["elements"], self.material
        corners = f.table(elements, sets["nodes"], self.mesh.elements)
        alive = f.trace(lambda b: ca.vertcat(0, b[0]), between)

        def body(T: ca.SX, pairs: ca.SX, p: ca.SX) -> ca.SX:
            return hex_flow(T, pairs, p[0] * conductivity(material, ca.sum1(T) / 8))

        return f.for_each(elements, body, [T[corners], pairs, p], [corners], between=alive)[0]

    def _surface(self, f, sets: dict[str, Entities], name: str, own: Field, T: Field, rows, p: Var) -> Field:
        between, clock, spot, power = rows
        corners = f.table(sets[name], sets["nodes"], self.faces(name).nodes)
        first = 1 if name.startswith("lasting") else 3
        there = f.trace(lambda b: b[first : first + 2], between)
        laser = self.laser

        def body(T: ca.SX, own: ca.SX, clock: ca.SX, spot: ca.SX, power: ca.SX, p: ca.SX) -> ca.SX:
            exposed = ca.logic_and(own[0] <= clock[0], clock[0] < own[1])
            place, surface = ca.vertcat(spot, p[8]), ca.vertcat(p[7], p[5], p[6])
            return exposed * face_flow(T, own[2:], place, power * p[4], surface, laser.factor, laser.shape == "ball")

        return f.for_each(sets[name], body, [T[corners], own, clock, spot, power, p], [corners], between=there)[0]

    def faces(self, name: str) -> FaceSet:
        """Return the lasting or the passing faces."""
        return getattr(self.timeline, name.split()[0])

    def face_data(self, name: str) -> np.ndarray:
        """Return the steps in which faces are exposed, and their Gauss points (F, 22)."""
        faces = self.faces(name)
        return np.concatenate([faces.steps, face_points(self.mesh.nodes, faces.nodes)], axis=1)

    def _observe(self, f, nodes: Entities, integrals: Field, T: Field, clock: Var, settings: Var) -> Field:
        observer = self.observer
        assert observer is not None

        def body(sums: ca.SX, T: ca.SX, clock: ca.SX, settings: ca.SX) -> ca.SX:
            return sums + clock[1] * observer(T, settings)

        return f.for_each(nodes, body, [integrals, T, clock, settings], [OWN])[0]

    def _read(self, f, sets: dict[str, Entities], weights: Field, T: Field) -> Field:
        corners = f.table(sets["sensors"], sets["nodes"], self.sensors)
        return f.for_each(sets["sensors"], lambda T, w: ca.dot(T, w), [T[corners], weights], [OWN])[0]
