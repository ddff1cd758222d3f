"""Drop-in for differentiable-robot-model: the same names, arguments and results.

    from costate.compat import differentiable_robot_model     # instead of: import differentiable_robot_model

Modules `robot_model`, `rigid_body_params`, `data_utils`, `spatial_vector_algebra`, `se3_so3_util` and `utils` are where they were.
docs/learnable.md says what differs.
"""

from costate.compat.differentiable_robot_model.robot_model import (
    DifferentiableFrankaPanda,
    DifferentiableKUKAiiwa,
    DifferentiableRobotModel,
    DifferentiableTrifingerEdu,
    DifferentiableTwoLinkRobot,
)

__all__ = [
    "DifferentiableFrankaPanda",
    "DifferentiableKUKAiiwa",
    "DifferentiableRobotModel",
    "DifferentiableTrifingerEdu",
    "DifferentiableTwoLinkRobot",
]
