"""Audit of a robot: every function, in every input and in a parameter of every kind."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from costate.audit.audit import Audit
from costate.audit.check import Check, GradientReport, Tolerances
from costate.audit.gradcheck import gradcheck
from costate.kernel import Kernel
from costate.model import Model, write_urdf
from costate.model.document import parse
from costate.physics import FUNCTIONS, Parameters
from costate.physics.integrate import neutral
from costate.physics.params import KINDS, Key
from costate.robot import Robot
from costate.robot.kernels import robot_kernel

Tensor = torch.Tensor
Values = Callable[[dict[str, np.ndarray], str], dict[str, np.ndarray]]
"""(state, link) -> quantities by name, of one sample."""

ENGINE = 1e-9
"""Value against another engine: both round differently in some thousand operations."""
POSES = ("position", "rotation")


def audit_robot(
    robot: Robot,
    source: str | Path | None = None,
    functions: Sequence[str] = (),
    second_order: bool = True,
    float32: bool = True,
    batch: int = 2,
) -> Audit:
    """Check the functions of a robot (default: all) at random states.

    source: File it was read from; None: MuJoCo is left out and Pinocchio reads a URDF written here.
    """
    if unknown := set(functions) - set(FUNCTIONS):
        raise ValueError(f"no robot function {', '.join(sorted(unknown))}; there are {', '.join(FUNCTIONS)}")
    model = robot.identified_model()
    link, x = tip(model), random_inputs(model, batch)
    engines, notes = references(model, source)
    rows = {}
    for name in functions or FUNCTIONS:
        kernel = robot_kernel(model, name, parameters(model, link), **_options(name, link))
        report = check_kernel(kernel, model, x, second_order, float32)
        values = {
            spec.name: y
            for spec, y in zip(kernel.signature.outputs, kernel.apply(_inputs(kernel, model, x)), strict=True)
        }
        report.checks.extend(_against(engines, name, values, x, link))
        rows[name] = report
    return Audit(f"costate gradcheck {model.name}: link {link}", rows, notes)


def check_kernel(
    kernel: Kernel, model: Model, x: dict[str, Tensor], second_order=True, float32=True, **options: Any
) -> GradientReport:
    """A robot function as kernel, in all its inputs, parameters among them."""
    names = [spec.name for spec in kernel.signature.inputs]
    inputs = _inputs(kernel, model, x)
    tolerances = options.pop("tolerances", Tolerances())
    options = {"second_order": second_order, "float32": float32, "directions": 1, **options}
    return gradcheck(lambda *t: kernel.apply(list(t)), inputs, names=names, tolerances=tolerances, **options)


def _inputs(kernel: Kernel, model: Model, x: dict[str, Tensor]) -> list[Tensor]:
    """Parts of the state, and parameters "kind:owner" as the model has them."""
    constants = Parameters.of(model)
    found = []
    for spec in kernel.signature.inputs:
        kind, _, owner = spec.name.partition(":")
        found.append(x[kind] if kind in x else torch.as_tensor(constants.number((kind, owner))).reshape(spec.shape))
    return found


def _options(name: str, link: str) -> dict[str, Any]:
    return {"link": link} if "link" in FUNCTIONS[name].options else {}


def tip(model: Model) -> str:
    """The last link that moves with a joint."""
    return [j.child for j in model.joints if j.kind != "fixed"][-1] if model.nv else model.links[-1].name


def parameters(model: Model, link: str) -> list[Key]:
    """One of every kind: of a joint half-way to a link, and of what that joint carries."""
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
    """Inputs of all functions, (batch, n): joints within +-1.2, orientations anywhere, speeds away from zero."""
    rng = np.random.default_rng(seed)
    robot = Robot(model)
    start = torch.tensor(neutral(model)).expand(batch, -1)

    def away(low: float, high: float) -> Tensor:
        """Entries of either sign, of a size within bounds."""
        return torch.tensor(rng.choice([-1, 1], (batch, model.nv)) * rng.uniform(low, high, (batch, model.nv)))

    q, v = robot.integrate(start, away(0.1, 1.2)), away(0.3, 1.0)
    x = {"q": q, "v": v, "a": away(0.3, 1.0), "tau": away(0.3, 1.0), "q0": q, "q1": robot.integrate(q, away(0.2, 0.7))}
    return {**x, "dt": torch.full((batch, 1), 0.3, dtype=torch.float64)}


# --- other engines ------------------------------------------------------------------------------------------------------


def references(model: Model, source: str | Path | None) -> tuple[dict[str, Values], list[str]]:
    """Engine -> what it says about the robot, of those that are installed; and what stood in the way of others."""
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
            notes.append(f"values are not compared with {engine}: it is not installed")
        except (ValueError, RuntimeError) as error:
            notes.append(f"values are not compared with {engine}: {error}")
    return found, notes


def _mujoco(model: Model, path: str) -> Values:
    from costate.audit.mujoco_reference import Reference

    return Reference(model, path)


def _pinocchio(model: Model, path: Path | None) -> Values:
    """Pinocchio reads the file, or one written for it; what URDFs cannot say it gets joint by joint."""
    from costate.audit.pinocchio_reference import Reference

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
    """Outputs of a function one after the other: linear before angular."""
    return np.concatenate([y[sample].numpy().ravel() for y in values.values()])
