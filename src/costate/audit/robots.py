"""Audit of a robot: every function is checked in every input, and in a parameter of every kind."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from costate.audit.audit import Audit, Watch, silent
from costate.audit.budget import ALL, BUDGET, Checks, left_out, plan
from costate.audit.check import Check, GradientReport
from costate.audit.gradcheck import gradcheck
from costate.audit.zeros import NO_STIFFNESS
from costate.core.extras import needs
from costate.kernel import Kernel
from costate.model import Model, write_urdf
from costate.model.document import parse
from costate.physics import FUNCTIONS, Parameters
from costate.physics.integrate import neutral
from costate.physics.params import KINDS, Key
from costate.robot import Robot
from costate.robot.kernels import robot_kernel

Values = Callable[[dict[str, np.ndarray], str], dict[str, np.ndarray]]
"""Engine: a function of (state, link) that gives quantities of one sample by name."""

ENGINE = 1e-9
"""Largest relative difference of values from another engine: both round differently in some thousand operations."""
PACKAGES = {"MuJoCo": ("mujoco", "mjcf"), "Pinocchio": ("pin", "peers")}
"""Engine: its package, and the extra that has it."""
POSES = ("position", "rotation")
CROSS = -torch.tensor(
    np.array([[[(i - j) * (j - k) * (k - i) / 2 for k in range(3)] for j in range(3)] for i in range(3)])
)
"""Tensor (3, 3, 3) that makes the matrix of a cross product: CROSS @ w is the matrix of w x."""


def audit_robot(
    robot: Robot,
    source: str | Path | None = None,
    functions: Sequence[str] = (),
    wanted: Checks = ALL,
    budget: float = BUDGET,
    batch: int = 2,
    watch: Watch = silent,
) -> Audit:
    """Check the functions of a robot (default: all) at random states.

    Args:
        source: File from which the robot was read; without it MuJoCo is left out, and Pinocchio reads a URDF that is written here.
        functions: Names of functions; default: all but those that are derivatives of others.
        wanted: Checks beyond value and gradient; the budget may not allow all of them.
        budget: Largest number of operations to compile; see budget.py.
        batch: Number of states.
    """
    if unknown := set(functions) - set(FUNCTIONS):
        raise ValueError(f"no robot function {', '.join(sorted(unknown))}; there are {', '.join(FUNCTIONS)}")
    model = robot.identified_model()
    link, x = tip(model), random_inputs(model, batch)
    engines, notes = references(model, source)
    rows: dict[str, GradientReport] = {}
    kernels = {}
    usual = tuple(name for name, row in FUNCTIONS.items() if not row.is_derivative)
    for name in watch(functions or usual, "tracing"):
        kernels[name] = robot_kernel(model, name, parameters(model, link), **_options(name, link))
    chosen = plan(kernels, wanted, budget)
    for name in watch(tuple(kernels), "checking"):
        kernel = kernels.pop(name)
        rows[name] = check_function(kernel, name, model, x, engines, link, chosen[name])
    return Audit(f"costate gradcheck {model.name}: link {link}", rows, [*notes, *left_out(chosen, wanted)])


def check_function(
    kernel: Kernel, name: str, model: Model, x: dict[str, Tensor], engines: dict[str, Values], link: str, checks: Checks
) -> GradientReport:
    """Check a function: its derivatives, and its value against other engines."""
    # The rate of a Jacobian may vanish, as that of a pendulum does: terms cancel that are its unit columns times velocities.
    scale = float(x["v"].abs().max()) if name == "jacobian_dot" else 0.0
    report = check_kernel(kernel, model, x, scale=scale, **asdict(checks))
    for wrt in report.zeros:
        report.zeros[wrt] = NO_STIFFNESS if wrt.startswith("rest:") else ""
    outputs = zip(kernel.signature.outputs, kernel.apply(_inputs(kernel, model, x)), strict=True)
    report.checks.extend(_against(engines, name, {spec.name: y for spec, y in outputs}, x, link))
    return report


def check_kernel(kernel: Kernel, model: Model, x: dict[str, Tensor], **options: Any) -> GradientReport:
    """Check the kernel of a robot function in all its inputs, parameters included. Options are those of gradcheck.

    Inputs on a manifold are moved along it: nothing is promised about quaternions that are not unit, rotations that are not
    orthogonal, inertias that are not symmetric.
    """
    names = [spec.name for spec in kernel.signature.inputs]
    charts = [_chart(name, value, model) for name, value in zip(names, _inputs(kernel, model, x), strict=True)]

    def of_local(*local: Tensor) -> Sequence[Tensor]:
        return kernel.apply([place(d) for d, (_, place) in zip(local, charts, strict=True)])

    return gradcheck(of_local, [start for start, _ in charts], names=names, **{"directions": 1, **options})


def _chart(name: str, value: Tensor, model: Model) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
    """Return local coordinates of an input: their value at the input, and the function that gives the input at others."""
    kind = name.partition(":")[0]
    if kind in ("q", "q0", "q1") and model.nq != model.nv:
        robot = Robot(model)
        return value.new_zeros(*value.shape[:-1], model.nv), lambda d: robot.integrate(value.to(d.dtype), d)
    if kind == "rotation":
        return value.new_zeros(3), lambda d: value.to(d.dtype) @ torch.linalg.matrix_exp(CROSS.to(d.dtype) @ d)
    if kind == "inertia":
        return value.new_zeros(3, 3), lambda d: value.to(d.dtype) + (d + d.mT) / 2
    return value, lambda d: d


def _inputs(kernel: Kernel, model: Model, x: dict[str, Tensor]) -> list[Tensor]:
    """Return the inputs of a kernel: parts of the state, and parameters "kind:owner" as the model has them."""
    constants = Parameters.of(model)
    found = []
    for spec in kernel.signature.inputs:
        kind, _, owner = spec.name.partition(":")
        found.append(x[kind] if kind in x else torch.as_tensor(constants.number((kind, owner))).reshape(spec.shape))
    return found


def _options(name: str, link: str) -> dict[str, Any]:
    return {"link": link} if "link" in FUNCTIONS[name].options else {}


def tip(model: Model) -> str:
    """Return the last link that has a mass and moves with a joint."""
    still = {model.links[0].name}
    for j in model.joints:
        if j.kind == "fixed" and j.parent in still:
            still.add(j.child)
    moving = [link for link in model.links if link.name not in still]
    return ([link.name for link in moving if link.inertia.mass] or [link.name for link in model.links])[-1]


def parameters(model: Model, link: str) -> list[Key]:
    """Choose a parameter of every kind: of a joint half-way to a link, and of the link that this joint carries."""
    chain, at = [], link
    by_child = {j.child: j for j in model.joints}
    while at in by_child:
        chain.append(by_child[at])
        at = by_child[at].parent
    moving = [j for j in chain if j.nv == 1] or [j for j in chain if j.nv] or chain
    if not moving:
        return [("gravity", "")]
    joint = moving[len(moving) // 2]
    owners = {"link": joint.child, "joint": joint.name, "model": ""}
    return [(kind, owners[what]) for kind, (what, _) in KINDS.items()]


def random_inputs(model: Model, batch: int, seed: int = 0) -> dict[str, Tensor]:
    """Draw inputs of all functions, (batch, n): joints within +-1.2, any orientations, speeds away from zero."""
    rng = np.random.default_rng(seed)
    robot = Robot(model)
    start = torch.tensor(neutral(model)).expand(batch, -1)

    def away(low: float, high: float) -> Tensor:
        """Draw entries of either sign whose size is within bounds."""
        return torch.tensor(rng.choice([-1, 1], (batch, model.nv)) * rng.uniform(low, high, (batch, model.nv)))

    q, v = robot.integrate(start, away(0.1, 1.2)), away(0.3, 1.0)
    x = {"q": q, "v": v, "a": away(0.3, 1.0), "tau": away(0.3, 1.0), "q0": q, "q1": robot.integrate(q, away(0.2, 0.7))}
    return {**x, "dt": torch.full((batch, 1), 0.3, dtype=torch.float64)}


# --- other engines ------------------------------------------------------------------------------------------------------


def references(model: Model, source: str | Path | None) -> tuple[dict[str, Values], list[str]]:
    """Load the robot into every engine that is installed; return the engines by name, and notes on those that could not be used."""
    found: dict[str, Values] = {}
    notes: list[str] = []
    kind = parse(Path(source)).tag if source is not None and Path(source).is_file() else ""
    tries: dict[str, Callable[[], Values]] = {}
    if kind == "mujoco":
        tries["MuJoCo"] = lambda: _mujoco(model, str(source))
    tries["Pinocchio"] = lambda: _pinocchio(model, Path(str(source)) if kind == "robot" else None)
    for engine, load in tries.items():
        try:
            found[engine] = load()
            notes.append(f"values are compared with {engine}")
        except ImportError:
            notes.append(needs(f"a comparison of values with {engine}", *PACKAGES[engine]))
        except (ValueError, RuntimeError) as error:
            notes.append(f"values are not compared with {engine}: {error}")
    return found, notes


def _mujoco(model: Model, path: str) -> Values:
    from costate.audit.mujoco_reference import Reference

    return Reference(model, path)


def _pinocchio(model: Model, path: Path | None) -> Values:
    """Load the robot into Pinocchio from its file, from one written here, or joint by joint where a URDF cannot describe it."""
    from costate.audit.pinocchio_reference import Reference

    if path is None and any(j.kind in ("planar", "spherical") for j in model.joints):
        return Reference(model)  # its reader would complain on the terminal
    with tempfile.TemporaryDirectory() as folder:
        try:
            if path is None:
                path = Path(folder) / "robot.urdf"
                bare = tuple(replace(link, visuals=(), collisions=()) for link in model.links)  # it warns of capsules
                write_urdf(replace(model, links=bare), path)
            return Reference(model, path)
        except (ValueError, RuntimeError):
            return Reference(model)


def _against(engines: dict[str, Values], name: str, values: dict[str, Tensor], x: dict[str, Tensor], link: str):
    for engine, reference in engines.items():
        for k in range(len(x["q"])):
            expected = reference({key: v[k].numpy() for key, v in x.items()}, link)
            wanted = POSES if name == "forward_kinematics" else (name,)
            if not set(wanted) <= set(expected):
                break
            found = {w: values[w][k].numpy() for w in POSES} if wanted is POSES else {name: _joined(values, k)}
            for key, y in found.items():
                theirs = np.asarray(expected[key], float)
                scale = max(np.abs(theirs).max(initial=0.0), 1e-3)
                error = float(np.abs(y.ravel() - theirs.ravel()).max(initial=0.0) / scale)
                yield Check("value", f"{key} against {engine}", error, ENGINE, f"{y.ravel()[:4]}, {theirs.ravel()[:4]}")


def _joined(values: dict[str, Tensor], sample: int) -> np.ndarray:
    """Concatenate the outputs of a function, linear before angular."""
    return np.concatenate([y[sample].numpy().ravel() for y in values.values()])
