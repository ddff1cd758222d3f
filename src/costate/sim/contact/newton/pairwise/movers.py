"""Bodies whose shapes may touch, and the axes of the joints that move them.

Motions and forces are spatial vectors (linear, angular) in world axes, at one point that all bodies share (`Movers.middle`). So a
contact knows two bodies and nothing of the joints between them:

    twists       velocities or accelerations of joints -> those of the bodies     sum of axis * rate from the root to the body
    generalised  wrenches on the bodies -> forces of the joints                   its transpose
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca
from casadi import SX

from costate.core.fork import cached_property
from costate.physics.algebra.spatial import cross
from costate.physics.tree import ROOT, Pose, Tree

SIX = 6
"""Numbers of a spatial vector."""


@dataclass(frozen=True)
class Axis:
    """A direction of motion of a joint."""

    body: int
    """Body that the joint moves."""
    direction: int
    """Axis of the body's frame."""
    turns: bool
    coordinate: int
    """Velocity coordinate."""


@dataclass(frozen=True, eq=False)
class Movers:
    """Bodies of a tree in the order of a vector that has six numbers for each, and six zeros for what does not move."""

    tree: Tree
    bodies: tuple[int, ...]
    """Bodies that shapes belong to; ROOT is not one of them."""

    @staticmethod
    def of(tree: Tree, links: Sequence[str]) -> Movers:
        return Movers(tree, tuple(sorted({tree.links[x][0] for x in links} - {ROOT})))

    @property
    def size(self) -> int:
        """Numbers of the vector."""
        return SIX * (len(self.bodies) + 1)

    def slot(self, link: str) -> int:
        """Return the place of the body of a link."""
        body = self.tree.links[link][0]
        return len(self.bodies) if body == ROOT else self.bodies.index(body)

    @cached_property
    def carriers(self) -> tuple[int, ...]:
        """Bodies, and those that carry them, from the root to the tips."""
        found: set[int] = set()
        for i in self.bodies:
            while i != ROOT:
                found.add(i)
                i = self.tree.bodies[i].parent
        return tuple(sorted(found))

    @cached_property
    def axes(self) -> tuple[Axis, ...]:
        found = []
        for i in self.carriers:
            own = self.tree.bodies[i]
            moves = [(k, False) for k in own.kind.linear] + [(k, True) for k in own.kind.angular]
            found += [Axis(i, k, turns, own.v_start + n) for n, (k, turns) in enumerate(moves)]
        return tuple(found)

    def chain(self, slot: int) -> list[int]:
        """Return the numbers of the axes that move a body, given by its place."""
        i = ROOT if slot == len(self.bodies) else self.bodies[slot]
        above = set()
        while i != ROOT:
            above.add(i)
            i = self.tree.bodies[i].parent
        return [n for n, axis in enumerate(self.axes) if axis.body in above]

    # --- expressions ----------------------------------------------------------------------------------------------

    def middle(self, poses: Sequence[Pose]) -> SX:
        """Return the point of all spatial vectors [m]: the mean of the bodies' origins, so that arms are short."""
        return sum((poses[i][1] for i in self.bodies), SX.zeros(3)) / max(len(self.bodies), 1)

    def axis_numbers(self, poses: Sequence[Pose], middle: SX) -> SX:
        """Return the axes (6 * axes,)."""
        found = []
        for axis in self.axes:
            R, p = poses[axis.body]
            d = R[:, axis.direction]
            found.append(ca.vertcat(cross(d, middle - p), d) if axis.turns else ca.vertcat(d, SX.zeros(3)))
        return ca.densify(ca.vertcat(SX(0, 1), *found))

    def twists(self, axes: SX, rates: SX) -> SX:
        """Return the motion of all bodies, then zeros; rates: velocities or accelerations (nv,)."""
        moving: dict[int, SX] = {}
        for n, axis in enumerate(self.axes):
            if axis.body not in moving:
                moving[axis.body] = moving.get(self.tree.bodies[axis.body].parent, SX.zeros(SIX))
            moving[axis.body] = moving[axis.body] + axes[SIX * n : SIX * (n + 1)] * rates[axis.coordinate]
        return ca.vertcat(*(moving[i] for i in self.bodies), SX.zeros(SIX))

    def generalised(self, axes: SX, wrenches: SX) -> SX:
        """Return the forces of the joints (nv,) from the wrenches on all bodies."""
        total = {i: SX.zeros(SIX) for i in self.carriers}
        for n, i in enumerate(self.bodies):
            total[i] = wrenches[SIX * n : SIX * (n + 1)]
        for i in reversed(self.carriers):
            parent = self.tree.bodies[i].parent
            if parent != ROOT:
                total[parent] = total[parent] + total[i]
        forces = SX.zeros(self.tree.nv)
        for n, axis in enumerate(self.axes):
            forces[axis.coordinate] = ca.dot(axes[SIX * n : SIX * (n + 1)], total[axis.body])
        return forces
