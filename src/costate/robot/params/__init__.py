"""Parametrisations: modules that turn free numbers into physical parameters that make sense.

    robot.learn("forearm_link", "mass", cs.params.Positive())

An optimiser may move numbers anywhere, but a mass must stay positive, an inertia must belong to some body, and a rotation
matrix must stay one. A parametrisation is a map f from all numbers onto the values that are allowed: value = f(raw). Its only
parameter is `raw`, which is unconstrained, and it starts from the robot's own value unless `init` gives another one.

Each map is written twice: as `value` on tensors, which PyTorch differentiates, and as `symbolic` on CasADi expressions, which
`costate.robot.folding` compiles into the kernels of the robot, so that the way from raw numbers to parameters costs no torch
operation. Those without `symbolic`, and any other `nn.Module` whose `forward` returns a tensor, are called as modules.
"""

from costate.robot.params.inertia import Inertial, PhysicalInertia, PositiveDefinite
from costate.robot.params.parametrisation import Bounded, OfState, Parametrisation, Positive, Unconstrained
from costate.robot.params.rotation import RollPitchYaw, Rotation, rpy_matrix, skew, symbolic_rpy_matrix

__all__ = [
    "Bounded",
    "Inertial",
    "OfState",
    "Parametrisation",
    "PhysicalInertia",
    "Positive",
    "PositiveDefinite",
    "RollPitchYaw",
    "Rotation",
    "Unconstrained",
    "rpy_matrix",
    "skew",
    "symbolic_rpy_matrix",
]
