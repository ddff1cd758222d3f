"""A configuration of a world as expressions, and what lengths need of it: points, axes and their Jacobians."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np
from casadi import SX

from costate.model.transform import Transform
from costate.physics.jacobian import point_jacobian
from costate.physics.kinematics import body_poses, link_pose
from costate.physics.tree import ROOT, Pose, Tree

if TYPE_CHECKING:
    from costate.sim.contact.detect import Contact


@dataclass(frozen=True, eq=False)
class Configuration:
    """The coordinates q of a tree; poses are found once."""

    tree: Tree
    q: SX
    contacts: Callable[[], Sequence[Contact]] = tuple
    """Contacts between the links, for forces that act along them."""

    _known: dict[object, tuple[SX, SX]] = field(default_factory=dict)

    def known(self, length: object, find: Callable[[Configuration], tuple[SX, SX]]) -> tuple[SX, SX]:
        """Return a length and its Jacobian, found once: several forces may act along one."""
        if length not in self._known:
            self._known[length] = find(self)
        return self._known[length]

    @cached_property
    def bodies(self) -> list[Pose]:
        return body_poses(self.tree, self.q)

    def frame(self, link: str, pose: Transform) -> Pose:
        """Return rotation (3, 3) and position (3,) of a frame that is fixed to a link, in the world."""
        R, p = link_pose(self.tree, self.bodies, link)
        return R @ SX(ca.sparsify(ca.DM(pose.rotation))), self.point(link, pose.translation, (R, p))

    def point(self, link: str, point: Sequence[float] | np.ndarray, pose: Pose | None = None) -> SX:
        """Return the position of a point of a link in the world (3,)."""
        R, p = pose or link_pose(self.tree, self.bodies, link)
        return p + R @ SX(ca.sparsify(ca.DM(np.asarray(point, float))))

    def jacobian(self, link: str, point: SX) -> SX:
        """Return the Jacobian (6, nv) of a point (world axes) that moves with a link: linear rows, then angular ones."""
        body = self.tree.links[link][0]
        return SX(6, self.tree.nv) if body == ROOT else point_jacobian(self.tree, self.bodies, body, point)

    def chain(self, link: str) -> set[int]:
        """Return the velocity coordinates that move a link."""
        return self.chain_of(self.tree.links[link][0])

    def chain_of(self, i: int) -> set[int]:
        """Return the velocity coordinates that move a body of the tree, by its number."""
        found: set[int] = set()
        while i != ROOT:
            own = self.tree.bodies[i]
            found |= set(range(own.v_start, own.v_start + own.kind.nv))
            i = own.parent
        return found

    def is_rigid(self, a: str, b: str) -> bool:
        """Return whether two links move as one."""
        return self.tree.links[a][0] == self.tree.links[b][0]
