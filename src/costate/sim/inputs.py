"""Inputs of a step beside state and control: parameters, learnable parameters of robots, and wrenches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import cache

import numpy as np
import torch
from torch import Tensor

from costate.augment.wiring import Known
from costate.core.names import did_you_mean, listed
from costate.core.numbers import as_tensor, number_type
from costate.robot import Robot
from costate.robot.learnable import Learnable, input_name
from costate.sim.setup import Setup

Params = Mapping[str, Tensor | float] | None
Wrenches = Mapping[str, Tensor] | None
_AS_COMPUTED: ContextVar[bool] = ContextVar("as_computed", default=False)


@contextmanager
def derivatives_as_computed() -> Iterator[None]:
    """Let derivatives of all worlds be those of the steps as they are computed, which tiny differences agree with: see
    ContactModel.as_computed."""
    before = _AS_COMPUTED.set(True)
    try:
        yield
    finally:
        _AS_COMPUTED.reset(before)


class Inputs:
    """Names and values of a world's further inputs.

    Whatever a robot learns (`robot.learn`) is an input of the world, without being asked for: its module is run at every call.
    """

    def __init__(self, setup: Setup, robots: Mapping[str, Robot]):
        self.setup = setup
        self.robots = robots
        self._default = cache(setup.default)

    def setup_for(self, wrenches: Wrenches) -> Setup:
        """Return the setup with learnable parameters and wrenches as inputs."""
        self._check_robots()
        learnt = tuple(p for p in self.learnt() if p not in self.setup.parameters)
        contact = self.setup.contact.as_computed() if _AS_COMPUTED.get() else self.setup.contact
        if not learnt and not wrenches and contact is self.setup.contact:
            return self.setup
        pushed = tuple(self.link(name) for name in wrenches or ())
        return replace(self.setup, parameters=self.setup.parameters + learnt, wrenches=pushed, contact=contact)

    def _check_robots(self) -> None:
        """Raise an error if a robot got a network after the world was made."""
        have = {id(w.network) for w in self.setup.networks}
        for name, robot in self.robots.items():
            for w in robot.wirings:
                if id(w.network) not in have:
                    raise ValueError(
                        f"robot '{name}' was augmented with '{w.name}' after this world was made of it: use world.augment(...), "
                        "or make the world anew"
                    )

    def learnt(self) -> dict[str, tuple[str, Learnable]]:
        """Return parameter of the world -> (robot, entry it comes from)."""
        found = {}
        for name, robot in self.robots.items():
            for entry in robot.learnable():
                for kind, owner in entry.keys:
                    found[self._parameter(name, robot, kind, owner)] = name, entry
        return found

    def _parameter(self, name: str, robot: Robot, kind: str, owner: str) -> str:
        if kind == "gravity":
            raise ValueError(f"robot '{name}' learns gravity; in a world name it in World(parameters=['gravity'])")
        joint = next((j for j in robot.model.joints if j.name == owner), None)
        if joint is not None and joint.kind == "floating":
            raise ValueError(f"robot '{name}' learns {kind} of its floating base; move its initial state instead")
        return f"{kind}:{name}/{owner}"

    def depend_on_state(self) -> bool:
        """Return whether learnable parameters differ from step to step."""
        return any(entry.wants for _, entry in self.learnt().values())

    def values(self, state: Tensor, params: Params, coordinates) -> list[Tensor]:
        """Return the values of all parameters, in the order of the setup: those given, those learnt, defaults. They are of the
        number type that state and values are promoted to. coordinates: where a robot's q and v are in a state."""
        learnt = self.learnt()
        if not (params or learnt or self.setup.parameters):
            return []
        given = dict(params or {})
        names = (*self.setup.parameters, *(p for p in learnt if p not in self.setup.parameters))
        found = self._run_modules({n: e for n, e in learnt.items() if n not in given}, state, coordinates)
        found |= {w.parameter: w.network.vector() for w in self.setup.networks if w.parameter not in given}
        told = {name: given.pop(name) if name in given else found.get(name) for name in names}
        if given:
            have = ", ".join(names) or "none"
            raise ValueError(
                f"parameter {', '.join(given)} is not an input of this world (inputs: {have}): name it in "
                "World(parameters=[...])"
            )
        kind = number_type([state, *told.values()]) if told else state.dtype
        return [self._tensor(name, value, kind) for name, value in told.items()]

    def _run_modules(
        self, wanted: Mapping[str, tuple[str, Learnable]], state: Tensor, coordinates
    ) -> dict[str, Tensor]:
        found: dict[str, Tensor] = {}
        for robot, entry in dict.fromkeys(wanted.values()):
            q, v = coordinates(robot)
            for key, value in entry.values(state[..., q], state[..., v]).items():
                kind, owner = next(k for k in entry.keys if input_name(k) == key)
                found[f"{kind}:{robot}/{owner}"] = value
        return found

    def _tensor(self, name: str, value: Tensor | float | None, dtype: torch.dtype) -> Tensor:
        """Return a value flat, as the step takes it: (..., n)."""
        default = self._default(name)
        if value is None:
            return torch.tensor(default, dtype=dtype)
        value = as_tensor(value)
        if not isinstance(value, Tensor):
            raise TypeError(f"parameter '{name}' is {value!r}; expected numbers, default {np.array2string(default)}")
        value = value.to(dtype)
        n = default.size
        if n == 1 and (value.dim() == 0 or value.shape[-1] != 1):
            return value.unsqueeze(-1)
        if n == 9 and value.shape[-2:] == (3, 3):
            return value.flatten(-2)
        if value.dim() == 0 or value.shape[-1] != n:
            shape = tuple(value.shape)
            raise ValueError(
                f"parameter '{name}' has shape {shape}; expected (..., {n}), default {np.array2string(default)}"
            )
        return value

    def link(self, name: str) -> str:
        """Return the full name of a link; a body also goes by its own name, and a link by its own where no other has it."""
        links = [link.name for link in self.setup.scene.model.links[1:]]
        for full in (name, f"{name}/body"):
            if full in links:
                return full
        own = [link for link in links if link.partition("/")[2] == name]
        if len(own) == 1:
            return own[0]
        short = [link.partition("/")[2] for link in links]
        hint = f"links of that name are {', '.join(own)}" if own else did_you_mean(str(name), [*links, *short])
        raise ValueError(f"the world has no link '{name}'; {hint or f'links are {listed(links)}'}")


def known_names(setup: Setup) -> Known:
    """Return the joints, links, actuators and shapes that networks may be wired to."""
    model = setup.scene.model
    used = sorted({k for pair in setup.scene.pairs for k in pair})
    touching = [setup.scene.colliders[k] for k in used]
    names = {
        "joint": [j.name for j in model.joints if j.nv == 1 and not j.mimic],
        "link": [link.name for link in model.links[1:]],
        "actuator": [d.joint for d in setup.drives],
        "contact": list(dict.fromkeys([*(c.link for c in touching), *(c.name for c in touching)])),
    }
    return Known("the world", names)
