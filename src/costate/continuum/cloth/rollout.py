"""Kernels of roll-outs of cloth.

There are two for every number of steps. The first finds the positions at the ends of the steps. The second is given them, so that
every solve of it ends at once: gradients are its, by the implicit function theorem, and no step is solved twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import casadi as ca
import numpy as np

from costate.continuum.cloth.contact import POSE
from costate.continuum.cloth.step import TOLD, ClothStep, Stepped
from costate.kernel import Kernel
from costate.kernel.fields import Entities, Field, FieldBuilder
from costate.kernel.ir.program import Program, Var

FAST = 1e-3
"""Speed [m/s] that is added to that of the air through a triangle: drag has a derivative in still air, too."""


@dataclass(frozen=True, eq=False)
class ClothRollOut:
    """Kernels of some steps."""

    step: ClothStep
    pins: tuple[int, ...]
    """Points that are held."""
    held: tuple[int, ...]
    """Points that are tied to places by springs."""
    memory: float | None = None
    kernels: dict[tuple[int, bool], Kernel] = field(default_factory=dict)

    def kernel(self, steps: int, given: bool) -> Kernel:
        """Return the kernel of some steps, made once. given: True if it is told the positions at their ends."""
        key = steps, given
        if key not in self.kernels:
            self.kernels[key] = self._make(steps, given)
        return self.kernels[key]

    # --- inputs of a step -----------------------------------------------------------------------------------------

    def sequences(self, given: bool) -> list[tuple[str, Entities | None, int]]:
        """Return what changes from step to step: name, entities (None for a vector), numbers of each."""
        found: list[tuple[str, Entities | None, int]] = [("gravity", None, 3)]
        if given:
            found.append(("ends", self.step.points, 3))
        if self.pins:
            found.append(("pins", Entities("pins", len(self.pins)), 3))
        if self.held:
            found.append(("ties", Entities("ties", len(self.held)), 4))
        if self.step.windy:
            found.append(("wind", None, 3))
        if self.step.contacts.moving:
            found.append(("poses", None, 2 * POSE * self.step.contacts.moving))
        return found

    def shared(self) -> list[tuple[str, Entities | None, int]]:
        """Return what all steps share."""
        found: list[tuple[str, Entities | None, int]] = [("own", self.step.points, 2)]
        groups = self.step.scene.groups
        found += [(f"fixed_{g.name}", g.entities, g.element.n_fixed) for g in groups]
        if self.step.contacts.colliders:
            found.append(("friction", None, len(self.step.contacts.colliders)))
        if self.step.windy:
            found.append(("air", None, 1))
        if self.step.pairs:
            found += [*self.step.pairs.inputs(), ("self_friction", None, 1)]
        return found

    # --- programs -------------------------------------------------------------------------------------------------

    def prepare(self) -> Kernel:
        """Return the kernel (rest, free, materials) -> (own, numbers of the elements)."""
        f, step = FieldBuilder("cloth elements"), self.step
        rest, free = f.field("rest", step.points, 3), f.field("free", step.points)
        materials = {}
        for group in step.scene.groups:
            name = group.material
            if name not in materials:
                n = {"triangles": 9, "segments": 3, "seams": 1}[name]
                count = int(group.owners.max()) + 1 if name != "triangles" else len(step.scene.triangles)
                materials[name] = f.field(name, Entities(name, count), n)
        given = step.prepare(f, rest, free, materials)
        f.field_output("own", given.own, flat=False)
        for group, numbers in zip(step.scene.groups, given.fixed, strict=True):
            f.field_output(f"fixed_{group.name}", numbers, flat=False)
        return f.kernel()

    def advance(self, f: FieldBuilder, x: Field, v: Field, row: dict[str, Any], fixed: dict[str, Any]):
        """Add one step; return positions and velocities at its end, numbers about the solve, and forces on shapes that move."""
        step = self.step
        own, numbers, h = fixed["own"], [fixed[f"fixed_{g.name}"] for g in step.scene.groups], step.h
        assert isinstance(own, Field)
        drift = self._drift(f, x, v, own, row)
        touched, more = self._contact(f, x, own, row, fixed), []
        contact = touched
        if step.windy:
            more.append(self._air(f, x, v, row["wind"], fixed["air"]))
        if step.pairs:
            fields = [fixed[name] for name, _, _ in step.pairs.inputs()]
            contact = [*contact, x, *step.pairs.prepare(f, x, own, fixed["self_friction"], fields)]
        if "ends" in row:
            start = row["ends"]
        else:  # as if the acceleration were that of the last step

            def guess(x, v, a, o, d):
                return o[1] * (x + h * v + h * h * a) + (1 - o[1]) * d

            (start,) = f.for_each(step.points, guess, [x, v, row["a"], own, drift])
            start = step.contacts.start(f, x, start, own, touched)
        found = step.solve(f, start, drift, self._hold(f, row), [*more, *contact], Stepped(own, numbers))
        (new,) = f.for_each(step.points, lambda y, x: (y - x) / h, [found.value, x])
        rate = f.for_each(step.points, lambda w, v: (w - v) / h, [new, v]) if "a" in row else []
        return [found.value, new, *rate], found.status, step.contacts.reactions(f, found.value, own, touched)

    def _drift(self, f: FieldBuilder, x: Field, v: Field, own: Field, row: dict) -> Field:
        h = self.step.h

        def fall(x, v, g):
            return x + h * v + h * h * g

        if not self.pins:
            return f.for_each(self.step.points, fall, [x, v, row["gravity"]])[0]
        pins = row["pins"]
        table = f.table(pins.of, self.step.points, _column(self.pins))
        (target,) = f.for_each(pins.of, lambda p: p, [pins], [table])

        def body(x, v, o, t, g):
            return o[1] * fall(x, v, g) + (1 - o[1]) * t

        return f.for_each(self.step.points, body, [x, v, own, target, row["gravity"]])[0]

    def _hold(self, f: FieldBuilder, row: dict) -> Field | None:
        if not self.held:
            return None
        ties = row["ties"]
        table = f.table(ties.of, self.step.points, _column(self.held))
        return f.for_each(ties.of, lambda t: ca.vertcat(t[0], t[0] * t[1:]), [ties], [table])[0]

    def _contact(self, f: FieldBuilder, x: Field, own: Field, row: dict, fixed: dict) -> list[Field | Var]:
        contacts = self.step.contacts
        if not contacts.colliders:
            return []
        poses: list[Var] = []
        if n := contacts.moving:
            poses = [f.slice(row["poses"], POSE * k, POSE) for k in range(2 * n)]
        return contacts.prepare(f, x, own, fixed["friction"], poses[: len(poses) // 2], poses[len(poses) // 2 :])

    def _air(self, f: FieldBuilder, x: Field, v: Field, wind: Var, air: Var) -> Field:
        """Return for every triangle the vector a and the number b of `ClothStep.blown`."""
        h, group = self.step.h, self.step.scene.groups[0]
        table = f.table(group.entities, self.step.points, group.table)

        def body(x: ca.SX, v: ca.SX, wind: ca.SX, air: ca.SX) -> ca.SX:
            cross = ca.cross((x[1, :] - x[0, :]).T, (x[2, :] - x[0, :]).T)
            double = ca.norm_2(cross)
            n = cross / double
            through = ca.dot(wind - ca.sum1(v).T / 3, n)
            drag = air / 2 * double / 2 * ca.sqrt(through**2 + FAST**2)
            size = ca.sqrt(drag / (9 * h))
            return ca.vertcat(size * n, drag / 3 * (ca.dot(wind, n) + ca.dot(n, ca.sum1(x).T) / (3 * h)) / size)

        return f.for_each(group.entities, body, [x[table], v[table], wind, air])[0]

    def body(self, given: bool) -> Program:
        """Return the program of a step: (x, v), sequences; shared -> (x, v), x, numbers about the solve."""
        f = FieldBuilder("cloth step")
        carried = [f.carried(self.step.points, 3) for _ in self.carries(given)]
        row, fixed = (
            {n: self._carried(f, of, k) for n, of, k in rows} for rows in (self.sequences(given), self.shared())
        )
        row |= dict(zip(self.carries(given)[2:], carried[2:], strict=True))
        new, status, _ = self.advance(f, carried[0], carried[1], row, fixed)
        return f.program(*(n.var for n in new), status, new[0].var)

    def carries(self, given: bool) -> list[str]:
        """Return what is carried from step to step; the acceleration only where steps are solved, which begin with it."""
        return ["x", "v"] if given else ["x", "v", "a"]

    def _carried(self, f: FieldBuilder, of: Entities | None, n: int) -> Field | Var:
        return f.inputs(n)[0] if of is None else f.carried(of, n)

    def _make(self, steps: int, given: bool) -> Kernel:
        f = FieldBuilder("cloth")
        points = self.step.points
        names = self.carries(given)
        state = [f.field(n, points, 3).var for n in names]
        rows = [
            f.input(n, (steps, k)) if of is None else f.field(n, of, k, frames=steps).var
            for n, of, k in self.sequences(given)
        ]
        fixed = [f.input(n, k) if of is None else f.field(n, of, k).var for n, of, k in self.shared()]
        final, results, _ = f.scan(self.body(given), steps, state, rows, fixed, memory=self.memory if given else None)
        for name, var in zip(names, final, strict=True):
            f.field_output(name, f.as_field(var, points, 3), flat=False)
        f.output("told", results[0], (steps, TOLD))
        f.field_output("path" if given else "ends", f.as_field(results[1], points, 3), frames=steps, flat=False)
        return f.kernel()


def _column(rows: Sequence[int]) -> np.ndarray:
    return np.asarray(rows, np.int64)[:, None]
