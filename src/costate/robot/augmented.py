"""Functions of a robot with the forces of networks: which of them feel those forces, and how."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import casadi as ca
from casadi import SX

from costate.augment.inputs import Motion
from costate.augment.wired import Wired
from costate.model import Model
from costate.physics import Parameters

NEEDED = {"inverse_dynamics": "tau", "bias_forces": "h"}
"""Functions that return torques -> their output, which is less by what networks push."""
DRIVEN = {"forward_dynamics": "tau"}
"""Functions of torques -> their input, to which the push of networks is added."""


@dataclass(frozen=True, eq=False)
class Pushed:
    """A function of a robot that networks push."""

    function: str
    inputs: Mapping[str, SX]
    force: SX
    """Generalised forces of all networks, (nv,)."""

    @staticmethod
    def of(model: Model, params: Parameters, function: str, inputs: Mapping[str, SX], wired: Wired) -> Pushed | None:
        """Return the function with the forces of networks; None where it does not feel them."""
        if not wired.pairs or function not in (*NEEDED, *DRIVEN):
            return None
        force = wired.forces(Motion(model, params, inputs["q"], inputs["v"]))
        return None if force is None else Pushed(function, inputs, ca.densify(force))

    def outputs(self, plain: dict[str, SX]) -> dict[str, SX]:
        """Return the outputs with the forces, from those without."""
        if self.function in NEEDED:
            key = NEEDED[self.function]
            return {**plain, key: plain[key] - self.force}
        return {key: self._driven(value) for key, value in plain.items()}

    def gradients(self, known: Mapping[str, SX], plain: dict[str, SX]) -> dict[str, SX]:
        """Return the gradients of a function that has its own, with the forces: what torques get, networks hand on to what they see
        and to their weights. known: symbols by name, other ones than those of the outputs."""
        own = [known[key] for key in self.inputs]
        (force,) = ca.substitute([self.force], list(self.inputs.values()), own)
        here = replace(self, inputs={key: known[key] for key in self.inputs}, force=force)
        seen = {key: here._driven(value) for key, value in plain.items()}
        seed, found = seen[f"bar:{DRIVEN[self.function]}"], {}
        for key, value in seen.items():
            x = known[key.removeprefix("bar:")]
            more = ca.jtimes(force, ca.vec(x), seed, True) if ca.depends_on(force, x) else SX(*value.shape)
            found[key] = ca.densify(value + ca.reshape(more, *value.shape))
        return found

    def _driven(self, value: SX) -> SX:
        tau = self.inputs[DRIVEN[self.function]]
        return ca.substitute(value, tau, tau + self.force)
