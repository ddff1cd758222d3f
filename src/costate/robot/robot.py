"""Robots: kinematics and dynamics as batched, differentiable functions of tensors."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn

from costate.core.eager import eager
from costate.core.guesses import LOAD_ROBOT, ROBOT
from costate.core.names import did_you_mean, missing, with_suggestions
from costate.core.numbers import KINDS, alike, checked_dtype, promoted
from costate.kernel import Kernel
from costate.model import Model, load_model, write_urdf
from costate.physics import FUNCTIONS
from costate.physics.integrate import neutral
from costate.robot.described import described
from costate.robot.dynamics_jacobians import ForwardDynamicsJacobians, InverseDynamicsJacobians
from costate.robot.identified import impossible_links
from costate.robot.kernels import folded_kernel, robot_kernel
from costate.robot.learnable import Learnable, Learnables
from costate.robot.networks import Augmented
from costate.robot.params import Unconstrained
from costate.robot.pose import Pose


@eager
@with_suggestions(LOAD_ROBOT)
def load_robot(
    source: str | Path,
    floating_base: bool | None = None,
    gravity: Sequence[float] | None = None,
    package_dirs: Sequence[str | Path] = (),
    inertia: Literal["refuse", "keep", "repair"] = "refuse",
) -> Robot:
    """Return a robot by built-in name ("ur5"), or from a URDF or MJCF file.

    Args:
        source: Name or path.
        floating_base: True lets the base move freely, False fixes it; None: as the file or the built-in robot says.
        gravity: Gravity in world axes [m/s^2], instead of the model's own.
        package_dirs: Folders in which meshes named package://... are looked for.
        inertia: What to do with negative principal moments: "refuse" the file, "keep" them, or "repair" all inertias that no
            body can have. MuJoCo, which reads MJCF, keeps none of them.
    """
    model = load_model(source, floating_base=floating_base, package_dirs=package_dirs, inertia=inertia)
    return Robot(model if gravity is None else model.with_gravity(gravity))


@eager
class Robot(Augmented):
    """A robot whose kinematics and dynamics are functions of tensors.

    Every function takes any number of leading batch dimensions and any number types, which are promoted as torch promotes them,
    and is differentiable in every argument. Tensors that the robot makes itself are of torch's default type, or of the one that
    `robot.double()`, `.float()` or `.to(dtype)` has moved it to. Functions are compiled when they are first called, and found on
    disk from then on. docs/conventions.md describes number types, the layout of q and v, frames and units.
    """

    def __init__(self, model: Model):
        super().__init__()
        if not isinstance(model, Model):
            given = repr(model) if isinstance(model, str) else f"a {type(model).__name__}"
            raise TypeError(f"cs.Robot takes a model, not {given}: cs.load_robot(...) makes one of a name or a file")
        self.model = model
        self.learnt = Learnables(model)
        self._begin_networks()
        # Also where Python looks first: every call of a function asks for them.
        self.__dict__.update(learnt=self.learnt, residuals=self.residuals)
        self._kernels: dict[Any, Kernel] = {}
        self._moved: torch.dtype | None = None

    # --- structure ------------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        return self.model.name

    @property
    def nq(self) -> int:
        """Number of configuration coordinates."""
        return self.model.nq

    @property
    def nv(self) -> int:
        """Number of velocity coordinates."""
        return self.model.nv

    @property
    def joint_names(self) -> list[str]:
        """Joints with coordinates of their own, in the order of q."""
        return [j.name for j in self.model.joints if j.nv]

    @property
    def link_names(self) -> list[str]:
        return [link.name for link in self.model.links]

    @property
    def lower(self) -> Tensor:
        """Lower position limits [rad or m], -inf where there is none, shape (nv,)."""
        return torch.tensor(self.model.lower, dtype=self.dtype)

    @property
    def upper(self) -> Tensor:
        """Upper position limits, likewise."""
        return torch.tensor(self.model.upper, dtype=self.dtype)

    @property
    def max_velocity(self) -> Tensor:
        """Largest speeds [rad/s or m/s], shape (nv,)."""
        return torch.tensor(self.model.max_velocity, dtype=self.dtype)

    @property
    def max_effort(self) -> Tensor:
        """Largest torques or forces [N m or N], shape (nv,)."""
        return torch.tensor(self.model.max_effort, dtype=self.dtype)

    @property
    def dtype(self) -> torch.dtype:
        """Number type of the tensors that the robot makes: torch's default type, unless the robot was moved to another."""
        return torch.get_default_dtype() if self._moved is None else self._moved

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Robot:
        """Move the learnable parameters, and note the number type if this is `double`, `float` or `to(dtype)`."""
        kinds = {fn(torch.zeros((), dtype=kind)).dtype for kind in KINDS}
        if len(kinds) == 1:
            (kind,) = kinds
            self._moved = checked_dtype(kind)
        return super()._apply(fn, recurse)

    def neutral(self, *batch: int, dtype: torch.dtype | None = None) -> Tensor:
        """Return the configuration with all joints at zero and identity orientations, shape (*batch, nq)."""
        return torch.as_tensor(neutral(self.model), dtype=dtype or self.dtype).expand(*batch, self.nq).clone()

    def random_configuration(
        self,
        *batch: int,
        generator: torch.Generator | None = None,
        seed: int | None = None,
        dtype: torch.dtype | None = None,
    ) -> Tensor:
        """Return random configurations, uniform within limits (within +-pi where there are none), shape (*batch, nq).

        seed: makes them the same in every call; `generator` takes them from a sequence of random numbers.
        """
        if seed is not None:
            if generator is not None:
                raise ValueError("random_configuration was given seed and generator; give one of them")
            generator = torch.Generator().manual_seed(seed)
        # Always drawn in float64: the same numbers in every type, but for their rounding.
        u = torch.rand(*batch, self.nv, dtype=torch.float64, generator=generator)
        low, high = (torch.tensor(x) for x in (self.model.lower, self.model.upper))
        low, high = torch.where(low.isinf(), -torch.pi, low), torch.where(high.isinf(), torch.pi, high)
        q = self.integrate(self.neutral(*batch, dtype=torch.float64), low + u * (high - low))
        return q.to(dtype or self.dtype)

    # --- kinematics -----------------------------------------------------------------------------------------------

    def forward_kinematics(self, q: Tensor, link: str | None = None) -> Any:
        """Return the pose of a link, or of all links as a dict by name. q: (..., nq)."""
        if link is not None:
            return Pose(*self._call("forward_kinematics", [q], link=self._known(link)))
        found = self._call("forward_kinematics", [q])
        return {name: Pose(found[2 * k], found[2 * k + 1]) for k, name in enumerate(self.link_names)}

    def jacobian(self, q: Tensor, link: str) -> Tensor:
        """Return the geometric Jacobian (..., 6, nv): linear rows, then angular; world axes, at the link's origin."""
        return self._columns(self._call("jacobian", [q], link=self._known(link))[0])

    def jacobian_dot(self, q: Tensor, v: Tensor, link: str) -> Tensor:
        """Return the time derivative of the Jacobian along v, (..., 6, nv)."""
        return self._columns(self._call("jacobian_dot", [q, v], link=self._known(link))[0])

    def link_velocity(self, q: Tensor, v: Tensor, link: str) -> Tensor:
        """Return the velocity of a link's origin [m/s] and its angular velocity [rad/s], world axes, (..., 6)."""
        return torch.cat(list(self._call("link_velocity", [q, v], link=self._known(link))), -1)

    def link_acceleration(self, q: Tensor, v: Tensor, a: Tensor, link: str) -> Tensor:
        """Return the acceleration of a link's origin [m/s^2] and its angular acceleration [rad/s^2], world axes, (..., 6)."""
        return torch.cat(list(self._call("link_acceleration", [q, v, a], link=self._known(link))), -1)

    def center_of_mass(self, q: Tensor) -> Tensor:
        """Return the centre of mass [m], world axes, (..., 3)."""
        return self._call("center_of_mass", [q])[0]

    def com_jacobian(self, q: Tensor) -> Tensor:
        """Return the Jacobian of the centre of mass (..., 3, nv)."""
        return self._columns(self._call("com_jacobian", [q])[0])

    def inverse_kinematics(
        self, pose: Pose | Tensor | Sequence[float], link: str, q0: Tensor | None = None, **options: Any
    ) -> Tensor:
        """Return configurations (..., nq) within limits that bring a link to a pose, or to a position (..., 3) in any orientation.

        options: fields of `costate.robot.inverse_kinematics.InverseKinematicsOptions`.
        """
        from costate.robot.inverse_kinematics import inverse_kinematics

        return inverse_kinematics(self, pose, self._known(link), q0, **options)

    # --- dynamics -------------------------------------------------------------------------------------------------

    def mass_matrix(self, q: Tensor) -> Tensor:
        """Return the mass matrix M(q) (..., nv, nv), armature included."""
        return self._columns(self._call("mass_matrix", [q])[0])

    def inverse_dynamics(self, q: Tensor, v: Tensor, a: Tensor, wrenches: Mapping[str, Tensor] | None = None) -> Tensor:
        """Return the joint torques [N m or N] (..., nv) that give accelerations a.

        wrenches: link -> (..., 6), the force [N] at the link's origin and the torque [N m], world axes.
        """
        if not self.residuals._modules:
            return self._call("inverse_dynamics", [q, v, a], wrenches)[0]
        q, v, a = promoted([q, v, a], self.dtype)
        return self._call("inverse_dynamics", [q, v, a], wrenches)[0] + self.residuals.torque(self.nv, q, v, a)

    def forward_dynamics(
        self, q: Tensor, v: Tensor, tau: Tensor, wrenches: Mapping[str, Tensor] | None = None
    ) -> Tensor:
        """Return the joint accelerations (..., nv) under joint torques tau."""
        if self.residuals._modules:  # quicker to ask than its length
            q, v, tau = promoted([q, v, tau], self.dtype)
            tau = tau - self.residuals.torque(self.nv, q, v, None)
        return self._call("forward_dynamics", [q, v, tau], wrenches)[0]

    def inverse_dynamics_jacobians(
        self, q: Tensor, v: Tensor, a: Tensor, wrenches: Mapping[str, Tensor] | None = None
    ) -> InverseDynamicsJacobians:
        """Return d tau/d q, d tau/d v and d tau/d a (the mass matrix) of inverse dynamics, each (..., nv, nv).

        Columns of q are in the tangent space: those of `lambda dv: inverse_dynamics(integrate(q, dv), v, a)` at zero.
        """
        self._without_networks("inverse_dynamics_jacobians")
        found = self._call("inverse_dynamics_jacobians", [q, v, a], wrenches, narrow=self._is_one(q, v, a))
        return InverseDynamicsJacobians(*map(self._columns, found))

    def forward_dynamics_jacobians(
        self, q: Tensor, v: Tensor, tau: Tensor, wrenches: Mapping[str, Tensor] | None = None
    ) -> ForwardDynamicsJacobians:
        """Return the accelerations a (..., nv), and d a/d q, d a/d v and d a/d tau, each (..., nv, nv).

        Columns of q are in the tangent space: those of `lambda dv: forward_dynamics(integrate(q, dv), v, tau)` at zero. One
        factorisation of the mass matrix serves all of them, so this is the quick way to linearise a robot.
        """
        self._without_networks("forward_dynamics_jacobians")
        a, *found = self._call("forward_dynamics_jacobians", [q, v, tau], wrenches, narrow=self._is_one(q, v, tau))
        return ForwardDynamicsJacobians(a, *map(self._columns, found))

    def bias_forces(self, q: Tensor, v: Tensor) -> Tensor:
        """Return Coriolis, centrifugal, gravity and passive forces h(q, v) (..., nv): tau at zero acceleration."""
        if not self.residuals:
            return self._call("bias_forces", [q, v], None)[0]
        q, v = promoted([q, v], self.dtype)
        return self._call("bias_forces", [q, v], None)[0] + self.residuals.torque(self.nv, q, v, torch.zeros_like(v))

    def gravity_torques(self, q: Tensor) -> Tensor:
        """Return the torques that hold the robot still, (..., nv)."""
        return self._call("gravity_torques", [q])[0]

    def kinetic_energy(self, q: Tensor, v: Tensor) -> Tensor:
        """Return the kinetic energy [J], shape (...)."""
        return self._call("kinetic_energy", [q, v])[0].squeeze(-1)

    def potential_energy(self, q: Tensor) -> Tensor:
        """Return the potential energy of gravity and springs [J], shape (...)."""
        return self._call("potential_energy", [q])[0].squeeze(-1)

    def momentum(self, q: Tensor, v: Tensor) -> Tensor:
        """Return the linear momentum, and the angular one about the centre of mass, world axes, (..., 6)."""
        return self._call("momentum", [q, v])[0]

    def momentum_matrix(self, q: Tensor) -> Tensor:
        """Return the matrix A with momentum = A v, (..., 6, nv)."""
        return self._columns(self._call("momentum_matrix", [q])[0])

    # --- configurations -------------------------------------------------------------------------------------------

    def integrate(self, q: Tensor, v: Tensor, dt: float | Tensor = 1.0) -> Tensor:
        """Return the configuration reached by velocity v (held in the moving frame) during dt [s], (..., nq)."""
        q, v, seconds = promoted([q, v, dt], self.dtype)
        return self._call("integrate", [q, v, seconds.unsqueeze(-1)])[0]

    def difference(self, q0: Tensor, q1: Tensor) -> Tensor:
        """Return the velocity (..., nv) that leads from q0 to q1 in one second."""
        return self._call("difference", [q0, q1])[0]

    # --- learning -------------------------------------------------------------------------------------------------

    def learn(self, name: str | None, parameter: str, module: nn.Module | None = None) -> nn.Module:
        """Make a physical parameter learnable: from now on it is what the module returns. Returns the module.

            robot.learn("forearm_link", "mass", cs.params.Positive())
            robot.learn("elbow_joint", "friction", cs.params.OfState(network))    # depends on q and v
            robot.learn("wrist_link", "inertial", cs.params.PhysicalInertia())    # mass, com and inertia together

        Args:
            name: Link (mass, com, inertia, inertial) or joint (translation, rotation, origin, axis, damping, friction, armature,
                stiffness, rest); a joint may be named by the link it moves. None for gravity.
            module: One of `cs.params`, which start at the present value, or any nn.Module. Its forward takes nothing, or q and v
                by these names, and returns the parameter's shape, with leading batch dimensions if it differs per sample.
                Functions without v in their arguments run it at v = 0. Default: Unconstrained.
        """
        return self.learnt.add(name, parameter, Unconstrained() if module is None else module, self.dtype).module

    def unlearn(self, name: str | None, parameter: str) -> None:
        """Go back to the model's own value."""
        self.learnt.remove(name, parameter)

    def freeze(self, name: str | None, parameter: str) -> None:
        """Stop gradients into a learnable parameter; it keeps its present value."""
        self.learnt.find(name, parameter).module.requires_grad_(False)

    def unfreeze(self, name: str | None, parameter: str) -> None:
        """Let gradients into a learnable parameter again."""
        self.learnt.find(name, parameter).module.requires_grad_(True)

    def learnable(self) -> list[Learnable]:
        """Return what is learnable: owner, parameter, module, frozen or not."""
        return self.learnt.list()

    def identified_model(self) -> Model:
        """Return the model with all learnable parameters at their present values."""
        return self.learnt.model()

    def save_urdf(self, path: str | Path) -> None:
        """Write the robot with its present parameters. Reading it again gives the same robot."""
        model = self.identified_model()
        owners = {e.owner for e in self.learnable() if e.owner in self.link_names}
        if bad := impossible_links(model, owners):
            warnings.warn(
                f"no distribution of mass has the learnt inertia of {', '.join(sorted(bad))}; learn it as "
                "'inertial' with cs.params.PhysicalInertia() to rule that out",
                stacklevel=2,
            )
        if self.residuals or self.wirings:
            how = "robot.save_networks(path)" if self.wirings else "robot.state_dict()"
            warnings.warn(f"the robot's networks are not in the file: save {how} too", stacklevel=2)
        write_urdf(model, path)

    # --- kernels --------------------------------------------------------------------------------------------------

    def kernel(self, function: str, **options: Any) -> Kernel:
        """Return the kernel of a function, for NumPy calls and bound buffers: robot.kernel("forward_dynamics").numpy(...).

        Learnable parameters are inputs.
        """
        keys = self.learnt.keys()
        key = function, keys, self.wirings, tuple(sorted(options.items()))
        if key not in self._kernels:
            self._kernels[key] = robot_kernel(self.model, function, keys, self.wirings, **options)
        return self._kernels[key]

    def _call(
        self,
        function: str,
        inputs: list[Tensor],
        wrenches: Mapping[str, Tensor] | None = None,
        narrow: bool = False,
        **options: Any,
    ) -> Sequence[Tensor]:
        """Call the kernel of a function. narrow: with the shortest vectors, which suits large kernels and single samples."""
        if wrenches is not None:
            if not isinstance(wrenches, Mapping):
                raise TypeError(
                    f"wrenches is a {type(wrenches).__name__}; expected link -> wrench: {{'{self.link_names[-1]}': wrench}}"
                )
            if wrenches:
                options["wrenches"] = tuple(self._known(link) for link in wrenches)
                inputs = [*inputs, *wrenches.values()]
        key: Any = function, self.learnt.version, len(self.wirings), narrow
        if options:
            key += tuple(options.items())
        kernel = self._kernels.get(key)
        if kernel is not None:
            found = kernel.planned(inputs)
            if found is not None:
                return found
        else:
            entries = self.learnt.list()
            made = (
                folded_kernel(self.model, function, entries, networks=self.wirings, **options)
                if entries
                else self.kernel(function, **options)
            )
            kernel = self._kernels[key] = made.narrow if narrow else made
        if not alike(inputs):
            inputs = promoted(inputs, self.dtype)
            kernel.signature.check_tensors(inputs)
        wanted = kernel.signature.inputs[len(inputs) :]
        if not wanted:
            return kernel.apply(inputs)
        named = dict(zip(FUNCTIONS[function].inputs, inputs, strict=False))
        vectors = {w.parameter: w.network.vector() for w in self.wirings}
        own = [vectors[spec.name] for spec in wanted if spec.name in vectors]
        learnt = self.learnt.values(wanted[: len(wanted) - len(own)], *self._state(named))
        return kernel.apply(promoted([*inputs, *learnt, *own]) if own else [*inputs, *learnt])

    def _is_one(self, *inputs: Any) -> bool:
        """Return whether tensors of q and v are a single sample."""
        return all(isinstance(x, Tensor) and x.numel() <= self.nq for x in inputs)

    def _without_networks(self, function: str) -> None:
        moving = [str(e) for e in self.learnt.list() if e.wants]
        if self.residuals or self.wirings or moving:
            what = (
                f"how the {', '.join(moving)} depends on the state" if moving else "the networks that `augment` added"
            )
            raise ValueError(f"{function} does not know {what}: use torch.func.jacrev of the function itself")

    def _state(self, named: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Return q and v among the arguments of a function; v = 0 for functions without it."""
        q = named["q"]
        return q, named["v"] if "v" in named else q.new_zeros(self.nv)

    def _columns(self, matrix: Tensor) -> Tensor:
        """Return a matrix (..., rows, nv): to a kernel a matrix of one column is a vector."""
        return matrix.unsqueeze(-1) if self.nv == 1 else matrix

    def _known(self, link: str) -> str:
        if link not in self.link_names:
            hint = did_you_mean(str(link), self.link_names) or f"it has {', '.join(self.link_names)}"
            raise ValueError(f"robot '{self.name}' has no link '{link}'; {hint}")
        return link

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            raise missing(self, name, ROBOT) from None

    def __repr__(self) -> str:
        return described(self)

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        return import_module("costate.report.notebook").robot_html(self)
