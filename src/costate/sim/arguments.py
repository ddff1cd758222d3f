"""Checks of arguments: errors in the user's words, before something fails deep inside."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
import torch

from costate.collision.shapes import Solid
from costate.core.constants import constant
from costate.core.names import unknown
from costate.core.numbers import Typed, alike, promoted
from costate.model import Model, Shape, Transform
from costate.model.model import EARTH
from costate.model.transform import Placement, as_transform
from costate.robot import Robot
from costate.sim.integrate.table import INTEGRATORS


def check_robots(robots: Any) -> None:
    """Raise an error unless robots are a sequence of robots, or names and robots."""
    if isinstance(robots, Robot | str | Model):
        raise TypeError(f"robots is {_given(robots)}; expected a list of robots: {_as_robot(robots, '[{}]')}")
    for robot in robots.values() if isinstance(robots, Mapping) else robots:
        if not isinstance(robot, Robot):
            raise TypeError(f"robots has {_given(robot)} in it; expected a robot: {_as_robot(robot, '{}')}")


def check_parts(parts: Any, kind: type, name: str) -> None:
    """Raise an error unless parts are bodies (or static geometry)."""
    if not isinstance(parts, Iterable):
        raise TypeError(f"{name} is {_given(parts)}; expected a list of cs.{kind.__name__}")
    for part in parts:
        if not isinstance(part, kind):
            hint = f': cs.{kind.__name__}("name", shape, ...)' if isinstance(part, Solid | Shape) else ""
            raise TypeError(f"{name} has {_given(part)} in it; expected a cs.{kind.__name__}{hint}")


Poses = Mapping[str, Placement] | Sequence[Placement]
"""Poses of robots by name, or one for each in their order."""


def robot_poses(poses: Poses, robots: Mapping[str, Robot]) -> dict[str, Transform]:
    """Return name of a robot -> pose of its root."""
    if not isinstance(poses, Mapping):
        if len(poses) != len(robots) or any(isinstance(p, Real) for p in poses):
            raise ValueError(
                f"poses is {poses!r}; expected robot -> pose, or a list of {len(robots)}: one for each robot"
            )
        poses = dict(zip(robots, poses, strict=True))
    found = {}
    for name, pose in poses.items():
        if name not in robots:
            raise ValueError(f"poses names '{name}'; robots are {', '.join(robots) or 'none'}")
        floats = robots[name].model.floating_base
        instead = into_state(name) if floats else f"translation:{name}/base"
        found[name] = as_transform(pose, f"the pose of '{name}'", instead)
    return found


def into_state(name: str) -> str:
    """Return what to do with a pose that requires a gradient, where the pose is part of the state."""
    return f"write it into the state, state[..., world.coordinates('{name}')[0]], whose first 7 numbers are a pose in the world"


def check_gravity(gravity: Any) -> np.ndarray:
    found = np.asarray(constant(gravity, "gravity", "gravity"), float)
    if found.shape != (3,):
        raise ValueError(f"gravity is {gravity!r}; expected a vector of 3 numbers [m/s^2], such as (0, 0, -9.81)")
    return found


def world_gravity(robots: Mapping[str, Robot], given: Sequence[float] | None) -> Sequence[float]:
    """Return the gravity of a world: the one given, or else that of the robots, or of the earth without any."""
    if given is not None:
        return given
    told = {tuple(r.model.gravity.tolist()) for r in robots.values()} or {tuple(EARTH.tolist())}
    if len(told) > 1:
        raise ValueError(f"the robots' files have gravity {sorted(told)}: choose one with World(gravity=...)")
    return told.pop()


def check_actuators(actuators: Any) -> None:
    given = actuators.values() if isinstance(actuators, Mapping) else [actuators]
    for one in given:
        if isinstance(one, type):
            raise TypeError(f"actuators has the class {one.__name__}; make one of it: {one.__name__}()")


def as_numbers(given: Mapping[str, Any], maker: Typed) -> list[torch.Tensor]:
    """Return values as tensors of one number type, name -> tensor, array or list. maker: knows the type where no value has one."""
    values = list(given.values())
    if alike(values):
        return values
    found = promoted(values, maker.dtype)
    for name, value in zip(given, found, strict=True):
        if not isinstance(value, torch.Tensor):
            raise TypeError(f"{name} is {_given(value)}; expected a torch tensor, or an array or list of numbers")
    if isinstance(state := given.get("state"), torch.Tensor) and not state.is_floating_point():
        kind = found[list(given).index("state")].dtype
        warnings.warn(
            f"the state is of {state.dtype} and computed in {kind}: give it as such a number type", stacklevel=3
        )
    return found


def check_controls(state: torch.Tensor, controls: torch.Tensor, nu: int) -> None:
    """Raise an error unless controls fit a roll-out from these states."""
    if controls.dim() < 2 or controls.shape[-1] != nu:
        raise ValueError(f"controls have shape {tuple(controls.shape)}; expected (T, ..., {nu})")
    batch = state.shape[:-1]
    if batch and controls.shape[:1] == batch != controls.shape[1:-1] and controls.dim() == 3 and controls.shape[1] != 1:
        raise ValueError(
            f"controls have shape {tuple(controls.shape)} for a batch of {batch[0]} states; time comes first, (T, {batch[0]}, "
            f"{nu}): pass controls.movedim(0, 1) if they are (batch, T, nu)"
        )


def whole_steps(steps: Any) -> int:
    """Return a number of steps; raise an error unless it is a whole number that is not negative."""
    if not isinstance(steps, Integral) or isinstance(steps, bool):
        raise TypeError(f"steps is {steps!r}; expected a whole number")
    if steps < 0:
        raise ValueError(f"steps is {steps}; expected a number of steps that is not negative")
    return int(steps)


def of_state_and_time(policy: Callable[..., Any]) -> Callable[[Any, int], Any]:
    """Return a policy as a function of the state and the number of the step, which it may do without."""
    called = policy.forward if isinstance(policy, torch.nn.Module) else policy
    try:
        taken = inspect.signature(called).parameters.values()
    except (TypeError, ValueError):  # built in: nothing is known about it
        return policy
    places = [p for p in taken if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD, p.VAR_POSITIONAL)]
    alone = len(places) == 1 and places[0].kind is not places[0].VAR_POSITIONAL
    return (lambda state, t: policy(state)) if alone else policy


def named_robots(robots: Sequence[Robot] | Mapping[str, Robot]) -> dict[str, Robot]:
    """Return name -> robot; robots of the same name get a number."""
    if isinstance(robots, Mapping):
        return dict(robots)
    named: dict[str, Robot] = {}
    for r in robots:
        name, k = r.name, 2
        while name in named:
            name, k = f"{r.name}_{k}", k + 1
        named[name] = r
    return named


def check_options(integrator: str, substeps: int, dt: float) -> None:
    """Raise an error unless these are an integrator, a number of substeps and a control step."""
    if integrator not in INTEGRATORS:
        raise ValueError(unknown("integrator", integrator, INTEGRATORS))
    if not isinstance(substeps, Integral) or not isinstance(dt, Real):
        raise TypeError(f"substeps is {substeps!r} and dt is {dt!r}; expected a whole number, and a number of seconds")
    if substeps < 1 or not dt > 0:
        raise ValueError(f"dt must be positive and substeps at least 1, got dt={dt}, substeps={substeps}")


def _given(value: Any) -> str:
    if isinstance(value, str):
        return f"the name '{value}'"
    kind = type(value).__name__
    return f"{'an' if kind[:1] in 'AEIOUaeiou' else 'a'} {kind}"


def _as_robot(value: Any, form: str) -> str:
    if isinstance(value, str):
        return form.format(f'cs.load_robot("{value}")')
    if isinstance(value, Model):
        return form.format("cs.Robot(model)")
    return form.format("robot") if isinstance(value, Robot) else "cs.load_robot(...) makes one"
