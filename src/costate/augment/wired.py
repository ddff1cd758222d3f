"""Networks in an expression: what quantities become of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import casadi as ca
from casadi import SX

from costate.augment.inputs import Motion
from costate.augment.wiring import Wiring
from costate.physics import Parameters

REPLACED = ("damping", "friction", "stiffness")
"""Parameters of a joint whose torque a network may take the place of."""


class Wired:
    """The networks of a step, or of a function of a robot, with symbols for their weights."""

    def __init__(self, wirings: Sequence[Wiring], vectors: Sequence[SX], known: Mapping[str, SX] | None = None):
        """Keep networks with their symbols. known: inputs by name that are known everywhere, such as controls."""
        self.pairs = list(zip(wirings, vectors, strict=True))
        self.known = dict(known or {})

    def of(self, quantity: str, *names: str) -> list[tuple[Wiring, SX]]:
        """Return the networks that act on a quantity of an owner, which may go by several names."""
        return [(w, x) for w, x in self.pairs if w.quantity == quantity and w.acts_on(*names)]

    def has(self, *quantities: str) -> bool:
        """Return whether any network acts on one of these quantities."""
        return any(w.quantity in quantities for w, _ in self.pairs)

    def replaced(self, quantity: str) -> set[str]:
        """Return the owners whose quantity a network takes the place of."""
        return {owner for w, _ in self.pairs if w.quantity == quantity and w.plan.replace for owner in w.owners}

    def change(
        self,
        quantity: str,
        names: Sequence[str],
        value: SX,
        motion: Motion,
        known: Mapping[str, SX],
        gate: Callable[[Wiring], SX] | None = None,
    ) -> SX:
        """Return a quantity of an owner after its networks: replaced, or with what they add. Without any it is the same expression.

        known: inputs that the owner knows, by name; gate: factor of what a network gives.
        """
        for w, vector in self.of(quantity, *names):
            own = w.output(vector, motion, names[0], {**self.known, **known})
            own = own if gate is None else gate(w) * own
            value = own if w.plan.replace else value + own
            value = value if w.row.least is None else ca.fmax(value, w.row.least)
            value = value if w.row.most is None else ca.fmin(value, w.row.most)
        return value

    def forces(self, motion: Motion) -> SX | None:
        """Return the generalised forces of networks on joints and links, (nv,); None where there are none."""
        total: SX | None = None
        for w, vector in self.pairs:
            for owner in w.owners if w.row.of_robots else ():
                force = w.output(vector, motion, owner, self.known)
                own = _generalised(motion, w.quantity, owner, force)
                total = own if total is None else total + own
        return total

    def without_replaced(self, params: Parameters) -> Parameters:
        """Return parameters in which joints whose torque is replaced have neither damping, friction nor spring."""
        joints = self.replaced("joint_torque")
        return params.replace({(kind, name): SX(1, 1) for name in joints for kind in REPLACED}) if joints else params


def _generalised(motion: Motion, quantity: str, owner: str, force: SX) -> SX:
    """Return a force on a joint or link as generalised forces, (nv,)."""
    if quantity == "joint_torque":
        total = SX(motion.model.nv, 1)
        total[motion.joint(owner)[1]] = force
        return total
    J = motion.jacobian(owner)
    return (J[:3, :] if quantity == "drag" else J[3:, :]).T @ force
