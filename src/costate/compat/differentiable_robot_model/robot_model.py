"""Robot models with the interface of `differentiable_robot_model.robot_model`."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from costate.compat.differentiable_robot_model.bodies import Body, rotation_of
from costate.compat.differentiable_robot_model.description import Description
from costate.compat.differentiable_robot_model.pose import pose_kernel
from costate.compat.differentiable_robot_model.spatial_vector_algebra import (
    CoordinateTransform,
    SpatialForceVec,
    SpatialMotionVec,
)
from costate.core.eager import eager
from costate.model import Model
from costate.model.urdf import Faulty
from costate.physics import Passive
from costate.robot import Robot
from costate.robot.kernels import folded_kernel
from costate.robot.learnable import Learnables

PARAMETERS: dict[str, tuple[str, Callable[[nn.Module], nn.Module] | None]] = {
    "trans": ("translation", None),
    "rot_angles": ("rotation", rotation_of),
    "joint_damping": ("damping", None),
    "mass": ("mass", None),
    "inertia_mat": ("inertia", None),
    "com": ("com", None),
}
"""Our parameter, and what wraps its module, by the name there."""

DAMPED = Passive(damping=True, friction=False, springs=False)
UNDAMPED = Passive(damping=False, friction=False, springs=False)


@eager
class DifferentiableRobotModel(nn.Module):
    """A robot on a fixed base. Tensors have any number of leading dimensions, float32 or float64.

    q, qd, ... are ordered as the links of the file. Links without <inertial> get mass 1 and inertia 1, with a warning, as in the
    original; `unit_inertia=False` leaves them massless. Mimic joints are joints like any other, as in the original; `mimic=True`
    lets them follow the joint that the file says. Inertias that no body can have are kept, with a warning; `inertia` says what else
    to do with them, as for `cs.load_robot`. Models of the same file share what has been read and compiled.
    """

    _weightless: Robot
    _learnt: Learnables

    def __init__(
        self,
        urdf_path: str | Path,
        name: str = "",
        device: Any = None,
        unit_inertia: bool = True,
        mimic: bool = False,
        inertia: Faulty = "keep",
    ):
        super().__init__()
        self.name = name
        self._device = torch.device("cpu" if device is None else device)
        if self._device.type != "cpu":
            raise ValueError(f"device {self._device}: kernels run on the processor; pass device='cpu' or leave it out")
        rows = Description.read(urdf_path, unit_inertia, mimic, inertia)
        if unit_inertia:
            for link in rows.without_inertia:
                warnings.warn(
                    f"no dynamics information for link {link}: its mass and inertia are set to 1", stacklevel=2
                )
        model = rows.model
        if several := [j.name for j in model.joints if j.nv > 1]:
            raise ValueError(
                f"{urdf_path}: joint {several[0]} has several degrees of freedom; here a joint has one, as in the original: "
                "cs.load_robot takes all kinds of joints"
            )
        self._robot = Robot(model)
        # Shares the learnable modules, not a submodule of its own: parameters are counted once.
        object.__setattr__(self, "_weightless", Robot(rows.weightless))
        # Not a second submodule: only a shorter way to the robot's.
        object.__setattr__(self, "_learnt", self._robot.learnt)
        # Shared with all models of the file until something is learnable.
        self._poses, self._kernels = rows.poses, rows.kernels
        joint_of = {j.child: j for j in model.joints}
        moving = [i for i, link in enumerate(rows.links) if link in joint_of and joint_of[link].nv]
        self._controlled_joints = moving
        self._n_dofs = len(moving)
        self._name_to_idx_map = {link: i for i, link in enumerate(rows.links)}
        ours = [model.v_index[model.joints.index(joint_of[rows.links[i]])] for i in moving]
        # Column k there is column _order[k] here.
        self._order = None if ours == list(range(len(ours))) else torch.tensor(ours)
        self._back = None if self._order is None else torch.argsort(self._order)
        dof = {rows.links[i]: k for k, i in enumerate(moving)}
        self._bodies = [Body(self._robot, rows, link, i, dof.get(link)) for i, link in enumerate(rows.links)]
        body_of = {body.name: body for body in self._bodies}
        # Every body after its parent, whatever the order of the file.
        parents = {joint.child: body_of[joint.parent] for joint in model.joints}
        self._chain = [(body_of[x], parents.get(x)) for x in _from_root(model)]

    # --- kinematics -----------------------------------------------------------------------------------------------

    def update_kinematic_state(self, q: Tensor, qd: Tensor) -> None:
        """Set the joint state, pose and velocity of every entry of `_bodies`. q, qd: (n_dofs,) or (batch, n_dofs)."""
        q, qd = (x.reshape(-1, self._n_dofs) for x in (q, qd))
        for body in self._bodies:
            k = body.joint_idx
            state = (q.new_zeros(1, 1),) * 2 if k is None else (q[:, k : k + 1], qd[:, k : k + 1])
            body.update_joint_state(*state)
        for body, parent in self._chain:
            if parent is None:
                body.pose = CoordinateTransform(torch.eye(3, dtype=q.dtype), torch.zeros(3, dtype=q.dtype))
                body.vel = SpatialMotionVec(q.new_zeros(len(q), 3), q.new_zeros(len(q), 3))
            else:
                body.pose = parent.pose.multiply_transform(body.joint_pose)
                body.vel = body.joint_vel.add_motion_vec(parent.vel.transform(body.joint_pose.inverse()))

    def iterative_newton_euler(self, base_acc: SpatialMotionVec) -> None:
        """Set the acceleration and force of every entry of `_bodies`.

        They belong to the state of `update_kinematic_state` and the joint accelerations given to each by `update_joint_acc`.
        base_acc: acceleration of the base; gravity is a base that accelerates upwards.
        """
        for body, parent in self._chain:
            if parent is None:
                body.acc = base_acc
            else:
                carried = parent.acc.transform(body.joint_pose.inverse())
                body.acc = carried.add_motion_vec(body.joint_acc).add_motion_vec(
                    body.vel.cross_motion_vec(body.joint_vel)
                )
            body.force = SpatialForceVec(torch.zeros_like(body.acc.lin), torch.zeros_like(body.acc.ang))
        for body, parent in reversed(self._chain[1:]):
            momentum = body.inertia.multiply_motion_vec(body.vel)
            own = body.inertia.multiply_motion_vec(body.acc).add_force_vec(body.vel.cross_force_vec(momentum))
            body.force = body.force.add_force_vec(own)
            if parent is not None:
                parent.force = parent.force.add_force_vec(body.force.transform(body.joint_pose))

    def compute_forward_kinematics_all_links(self, q: Tensor) -> dict[str, tuple[Tensor, Tensor]]:
        """Return position [m] (..., 3) and quaternion xyzw (..., 4) by link."""
        return {link: self.compute_forward_kinematics(q, link) for link in self.get_link_names()}

    def compute_forward_kinematics(self, q: Tensor, link_name: str, recursive: bool = False) -> tuple[Tensor, Tensor]:
        """Return position [m] (..., 3) and quaternion xyzw (..., 4) of a link. `recursive` changes nothing: there is no state."""
        kernel = self._poses.get(link_name)
        if kernel is None:
            kernel = pose_kernel(self._robot, self._robot._known(link_name))
            kernel = self._poses.setdefault(link_name, kernel)
        x = self._in(q)
        position, quaternion = kernel.apply([x, *self._learnt.values(kernel.signature.inputs[1:], x, None)])
        return position, quaternion

    def compute_endeffector_jacobian(self, q: Tensor, link_name: str) -> tuple[Tensor, Tensor]:
        """Return the linear and the angular Jacobian, each (..., 3, n_dofs)."""
        J = self._matrix("jacobian", q, link=self._robot._known(link_name))
        J = J if self._order is None else J[..., self._order]
        return J[..., :3, :], J[..., 3:, :]

    # --- dynamics -------------------------------------------------------------------------------------------------

    def compute_inverse_dynamics(
        self,
        q: Tensor,
        qd: Tensor,
        qdd_des: Tensor,
        include_gravity: bool | None = True,
        use_damping: bool | None = True,
    ) -> Tensor:
        """Return the joint torques (..., n_dofs)."""
        inputs = [self._in(q), self._in(qd), self._in(qdd_des)]
        return self._out(self._call("inverse_dynamics", inputs, include_gravity, use_damping))

    def compute_non_linear_effects(
        self, q: Tensor, qd: Tensor, include_gravity: bool | None = True, use_damping: bool | None = True
    ) -> Tensor:
        """Return the torques at zero acceleration (..., n_dofs)."""
        return self._out(self._call("bias_forces", [self._in(q), self._in(qd)], include_gravity, use_damping))

    def compute_lagrangian_inertia_matrix(
        self, q: Tensor, include_gravity: bool | None = True, use_damping: bool | None = True
    ) -> Tensor:
        """Return the mass matrix (..., n_dofs, n_dofs); the flags have no influence on it."""
        M = self._matrix("mass_matrix", q)
        return M if self._order is None else M[..., self._order, :][..., self._order]

    def compute_forward_dynamics(
        self, q: Tensor, qd: Tensor, f: Tensor, include_gravity: bool | None = True, use_damping: bool | None = False
    ) -> Tensor:
        """Return the joint accelerations (..., n_dofs) under torques f, without damping unless it is asked for, as there."""
        inputs = [self._in(q), self._in(qd), self._in(f)]
        return self._out(self._call("forward_dynamics", inputs, include_gravity, use_damping))

    def compute_forward_dynamics_old(
        self, q: Tensor, qd: Tensor, f: Tensor, include_gravity: bool | None = True, use_damping: bool | None = True
    ) -> Tensor:
        """Return the same accelerations, by solving with the mass matrix."""
        bias = self.compute_non_linear_effects(q, qd, include_gravity, use_damping)
        return torch.linalg.solve(self.compute_lagrangian_inertia_matrix(q), f - bias)

    def _call(self, function: str, inputs: list[Tensor], gravity: bool | None, damping: bool | None) -> Tensor:
        key = function, bool(gravity), bool(damping)
        kernel = self._kernels.get(key)
        if kernel is None:
            robot: Robot = self._robot if gravity else self._weightless
            passive = DAMPED if damping else UNDAMPED
            kernel = folded_kernel(robot.model, function, robot.learnable(), passive=passive)
            kernel = self._kernels.setdefault(key, kernel)
        wanted = kernel.signature.inputs[len(inputs) :]
        return kernel.apply([*inputs, *self._learnt.values(wanted, inputs[0], inputs[1])] if wanted else inputs)[0]

    def _matrix(self, function: str, q: Tensor, **options: Any) -> Tensor:
        """Return a matrix (..., rows, n_dofs) that depends on q alone, in our order."""
        x = self._in(q)
        key = function, *options.items()
        kernel = self._kernels.get(key)
        if kernel is None:
            kernel = folded_kernel(self._robot.model, function, self._robot.learnable(), **options)
            kernel = self._kernels.setdefault(key, kernel)
        wanted = kernel.signature.inputs[1:]
        values = self._learnt.values(wanted, x, x.new_zeros(self._n_dofs)) if wanted else []
        return self._robot._columns(kernel.apply([x, *values])[0])

    # --- learning -------------------------------------------------------------------------------------------------

    def make_link_param_learnable(self, link_name: str, parameter_name: str, parametrization: nn.Module) -> None:
        """Make a parameter learnable: trans, rot_angles, joint_damping (of the link's joint), mass, inertia_mat or com."""
        name, wrapper = self._parameter(parameter_name)
        module = parametrization if wrapper is None else wrapper(parametrization)
        for robot in (self._robot, self._weightless):
            robot.learn(link_name, name, module)
        self._poses, self._kernels = {}, {}  # its own from now on

    def freeze_learnable_link_param(self, link_name: str, parameter_name: str) -> None:
        self._robot.freeze(link_name, self._parameter(parameter_name)[0])

    def unfreeze_learnable_link_param(self, link_name: str, parameter_name: str) -> None:
        self._robot.unfreeze(link_name, self._parameter(parameter_name)[0])

    def _parameter(self, name: str) -> tuple[str, Callable[[nn.Module], nn.Module] | None]:
        if name not in PARAMETERS:
            raise AttributeError(
                f"Invalid parameter name {name!r}. Accepted parameter names are: {', '.join(PARAMETERS)}"
            )
        return PARAMETERS[name]

    # --- information ----------------------------------------------------------------------------------------------

    def get_joint_limits(self) -> list[dict[str, float]]:
        """Return effort, lower, upper and velocity per degree of freedom, as the file's <limit> says for any kind of joint.

        As in the original, an end that <limit> leaves out is zero. A joint without <limit> has none: they are infinite.
        """
        return [x for body in self._bodies if body.joint_idx is not None and (x := body.get_joint_limits())]

    def get_link_names(self) -> list[str]:
        return [body.name for body in self._bodies]

    def print_link_names(self) -> None:
        for name in self.get_link_names():
            print(name)

    def print_learnable_params(self) -> None:
        for name, parameter in self.named_parameters():
            print(f"{name}: {parameter}")

    # --- order ----------------------------------------------------------------------------------------------------

    def _in(self, x: Tensor) -> Tensor:
        if x.shape[-1] != self._n_dofs:
            raise ValueError(f"got shape {tuple(x.shape)}, expected (..., {self._n_dofs}), one per moving joint")
        return x if self._back is None else x[..., self._back]

    def _out(self, x: Tensor) -> Tensor:
        return x if self._order is None else x[..., self._order]


def _from_root(model: Model) -> list[str]:
    """Return the links, each after its parent."""
    depth = {model.links[0].name: 0}
    for joint in model.joints:  # parents come first
        depth[joint.child] = depth[joint.parent] + 1
    return sorted((link.name for link in model.links), key=depth.__getitem__)


class _Shipped(DifferentiableRobotModel):
    """A robot of the package diff_robot_data."""

    path: str
    title: str

    def __init__(self, device: Any = None):
        spec = find_spec("diff_robot_data")
        if spec is None or not spec.submodule_search_locations:
            raise ImportError(
                f"{type(self).__name__} reads {self.path} from the package diff_robot_data, which comes with "
                "differentiable-robot-model; install that, or give DifferentiableRobotModel the path of a URDF"
            )
        self.urdf_path = str(Path(spec.submodule_search_locations[0]) / self.path)
        super().__init__(self.urdf_path, self.title, device=device)


class DifferentiableKUKAiiwa(_Shipped):
    path, title = "kuka_iiwa/urdf/iiwa7.urdf", "differentiable_kuka_iiwa"


class DifferentiableFrankaPanda(_Shipped):
    path, title = "panda_description/urdf/panda_no_gripper.urdf", "differentiable_franka_panda"


class DifferentiableTwoLinkRobot(_Shipped):
    path, title = "2link_robot.urdf", "diff_2d_robot"


class DifferentiableTrifingerEdu(_Shipped):
    path, title = "trifinger_edu_description/trifinger_edu.urdf", "trifinger_edu"
