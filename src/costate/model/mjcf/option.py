"""Options of MJCF: how a file wants its model simulated, and what surrounds it."""

from __future__ import annotations

from typing import Any

import numpy as np

from costate.model.drag import Drag, equivalent_box
from costate.model.errors import Assumptions
from costate.model.mjcf.flags import is_off
from costate.model.rotation import from_wxyz
from costate.model.surface import Physics
from costate.model.transform import Transform

_CONES = {0: "pyramidal", 1: "elliptic"}
_INTEGRATORS = {0: "Euler", 1: "RK4", 2: "implicit", 3: "implicitfast"}
_LEAST_MASS = 1e-15


def read_physics(mj: Any, assumed: Assumptions) -> Physics:
    """Return the settings of the simulation."""
    option = mj.opt
    integrator = _INTEGRATORS.get(int(option.integrator), "other")
    if integrator == "other":
        assumed.note("an integrator in place of which Newton takes Euler", f"number {int(option.integrator)}")
    if option.noslip_iterations:
        assumed.note("options that are not followed", "noslip_iterations")
    return Physics(
        cone=_CONES[int(option.cone)],
        impratio=float(option.impratio),
        timestep=float(option.timestep),
        integrator=integrator,
        implicit_damping=not is_off(mj, "eulerdamp"),
        implicit_coriolis=integrator == "implicit",
        neighbours_touch=is_off(mj, "filterparent"),
    )


def read_drag(mj: Any, b: int) -> Drag | None:
    """Return the fluid around a body, if there is any. MuJoCo takes a box with the body's inertia for its shape."""
    option, mass = mj.opt, float(mj.body_mass[b])
    if not (option.density or option.viscosity) or mass < _LEAST_MASS:
        return None
    return Drag(
        sides=equivalent_box(mass, np.array(mj.body_inertia[b])),
        pose=Transform(from_wxyz(mj.body_iquat[b]), np.array(mj.body_ipos[b])),
        density=float(option.density),
        viscosity=float(option.viscosity),
        wind=np.array(option.wind),
    )
