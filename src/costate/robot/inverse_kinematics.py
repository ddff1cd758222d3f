"""Inverse kinematics: Levenberg-Marquardt on the pose error, all problems of a batch at once, within joint limits.

    minimise  |e(q)|^2,   e = (position error [m], orientation error [rad], scaled),   lower <= q <= upper

The story has three parts. `pose_solver.py` writes one compiled loop that improves every sample of a batch until it has
converged or given up. Here that loop is run from the start that was given; problems that it does not solve are tried again from
random starts, because a pose may lie behind a joint limit or a local minimum. At the end the loop runs once more from the best
configurations, where nothing is left to do: this call records the derivatives, which are those of the solution, by the implicit
function theorem, whatever the iterations did.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from costate.core.names import unknown
from costate.core.numbers import promoted
from costate.kernel import Kernel
from costate.model import Model
from costate.robot.pose import Pose
from costate.robot.pose_solver import pose_kernel

if TYPE_CHECKING:
    from costate.robot.robot import Robot


@dataclass(frozen=True)
class InverseKinematicsOptions:
    """Options of inverse kinematics."""

    iterations: int = 60
    """Number of iterations per attempt."""
    tolerance: float = 1e-9
    """Norm of the error at which a problem is solved, [m] and [rad] alike."""
    length: float = 1.0
    """Length [m] that counts as much as one radian."""
    attempts: int = 60
    """Number of random starts for problems that the given start does not solve; 1 in 1,000 poses of a UR5 needs more than 20."""
    seed: int = 0
    """Seed of the random starts."""


def inverse_kinematics(
    robot: Robot, pose: Pose | Tensor | Sequence[float], link: str, q0: Tensor | None = None, **options: float
) -> Tensor:
    """Return configurations (..., nq) within limits that bring a link to a pose, or its origin to a position; differentiable.

    Problems that a start does not solve are tried again from random starts; one that has no solution gets the configuration
    with the smallest error found: compare `robot.forward_kinematics` with the pose if that matters.

    Args:
        pose: Wanted pose, position (..., 3) and rotation (..., 3, 3); or a position (..., 3) alone, in any orientation.
        q0: Start (..., nq); default the neutral configuration.
        options: Fields of InverseKinematicsOptions.
    """
    chosen = _options(options)
    wanted, start = _numbers(robot, pose, q0)
    kernel = _kernel(robot, link, chosen, turns=len(wanted) > 1)
    batch = np.broadcast_shapes(
        *(x.shape[:-k] for k, x in enumerate(wanted, 1)), start.shape[:-1]
    )  # torch's imports sympy
    start = start.detach().expand(*batch, robot.nq)
    precision = _precision(chosen, start.dtype)
    fixed = [x.detach().expand(*batch, *x.shape[-k:]) for k, x in enumerate(wanted, 1)]
    best, error = (x.clone() for x in kernel.apply([start, *fixed, precision]))
    _retry(robot, kernel, chosen, best, error[..., 0], fixed)
    polished, _ = kernel.apply([best, *wanted, precision])  # nothing left to do: this records the gradient
    return polished


def _numbers(robot: Robot, pose: Any, q0: Any) -> tuple[list[Tensor], Tensor]:
    """Return the position, and the rotation if there is one; and the start; all of one number type."""
    parts = list(pose) if isinstance(pose, Pose) else [pose]
    *wanted, start = promoted([*parts, robot.neutral().tolist() if q0 is None else q0], robot.dtype)
    shapes = [x.shape[-k:] if isinstance(x, Tensor) else None for k, x in enumerate(wanted, 1)]
    if shapes not in ([(3,)], [(3,), (3, 3)]):
        told = f" of shape {tuple(wanted[0].shape)}" if isinstance(wanted[0], Tensor) and len(wanted) == 1 else ""
        raise TypeError(
            f"inverse kinematics of '{robot.name}': the pose is a {type(pose).__name__}{told}; expected a "
            "cs.Pose(position, rotation) with shapes (..., 3) and (..., 3, 3), or a position (..., 3)"
        )
    if not isinstance(start, Tensor) or start.shape[-1:] != (robot.nq,):
        told = f"has shape {tuple(start.shape)}" if isinstance(start, Tensor) else f"is a {type(start).__name__}"
        raise ValueError(f"inverse kinematics of '{robot.name}': q0 {told}; expected (..., {robot.nq})")
    return wanted, start


def _options(options: dict[str, float]) -> InverseKinematicsOptions:
    known = [f.name for f in fields(InverseKinematicsOptions)]
    for name in options:
        if name not in known:
            raise TypeError(f"inverse kinematics: {unknown('option', name, known)}")
    return InverseKinematicsOptions(**options)  # type: ignore[arg-type]


def _retry(robot, kernel, options, best, error, pose) -> None:
    """Try random starts for what is not solved yet, in place."""
    generator = torch.Generator().manual_seed(options.seed)
    precision = _precision(options, best.dtype)
    enough = 10 * float(precision[0])
    for _ in range(options.attempts):
        open_ = error > enough
        if not bool(open_.any()):
            return
        start = robot.random_configuration(int(open_.sum()), generator=generator, dtype=best.dtype)
        q, e = kernel.apply([start, *(x[open_] for x in pose), precision])
        better = e[..., 0] < error[open_]
        best[open_] = torch.where(better[..., None], q, best[open_])
        error[open_] = torch.where(better, e[..., 0], error[open_])


def _precision(options: InverseKinematicsOptions, dtype: torch.dtype) -> Tensor:
    """Return the tolerance that the number type allows, and the least damping with which J^T J can be factored, (2,)."""
    eps = torch.finfo(dtype).eps
    return torch.tensor([max(options.tolerance, 3 * eps), 8 * eps], dtype=dtype)


def _kernel(robot: Robot, link: str, options: InverseKinematicsOptions, turns: bool) -> Kernel:
    model = robot.identified_model() if robot.learnt else robot.model
    key = (
        "inverse_kinematics",
        link,
        turns,
        options.iterations,
        options.length,
        _geometry(model) if robot.learnt else b"",
    )
    if key not in robot._kernels:
        robot._kernels[key] = pose_kernel(model, link, options.length, options.iterations, turns)
    return robot._kernels[key]


def _geometry(model: Model) -> bytes:
    """Return all numbers of the kinematics. Learnt ones are folded in as they are now, and compiled anew when they change."""
    parts = [np.concatenate([j.origin.rotation.ravel(), j.origin.translation, j.axis]) for j in model.joints]
    return np.concatenate(parts).tobytes()
