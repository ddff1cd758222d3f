"""Networks of a robot: how they come into its dynamics, and how they are kept."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, overload

import torch
from torch import nn

from costate.augment.files import load_networks, save_networks
from costate.augment.network import Network
from costate.augment.wiring import Known, Plan, Wiring, names_of, wire
from costate.model import Model
from costate.robot.residual import Residuals


class Augmented(nn.Module):
    """A robot, as far as networks are concerned."""

    model: Model
    wirings: tuple[Wiring, ...]
    """Networks that are compiled into the dynamics, and what they act on."""

    @property
    def dtype(self) -> torch.dtype:
        """Number type of new networks."""
        raise NotImplementedError

    def _begin_networks(self) -> None:
        self.residuals = Residuals()
        self.wirings = ()
        self.augmented = nn.ModuleList()

    @overload
    def augment(
        self,
        quantity: str,
        on: str | Sequence[str] | None = ...,
        inputs: str | Sequence[str] | None = ...,
        replace: bool = ...,
        name: str | None = ...,
        **network: Any,
    ) -> Network: ...
    @overload
    def augment(self, quantity: nn.Module) -> nn.Module: ...
    def augment(
        self,
        quantity: str | nn.Module,
        on: str | Sequence[str] | None = None,
        inputs: str | Sequence[str] | None = None,
        replace: bool = False,
        name: str | None = None,
        **network: Any,
    ) -> nn.Module:
        """Put a network into the dynamics, and return it.

            robot.augment("joint_torque", on="elbow_joint", inputs=["speed"], constraints="odd")     # compiled
            robot.augment(cs.residual.JointFriction(robot.nv))                                       # run by torch

        Args:
            quantity: What it acts on: joint_torque, drag, drag_torque (`costate.augment.quantities.QUANTITIES`). The network is
                compiled into forward and inverse dynamics and bias forces, and into the step of worlds that are made of the robot.
                Or a module that gives torques to add, tau = M a + h + module(q, v): its forward takes any of q, v and a by these
                names and returns torques (..., nv), positive along v like damping; `cs.residual` has some. One that asks for a
                serves inverse dynamics only, and worlds do not see it.
            on: Joints or links, which share the network's weights.
            inputs: Rows of `costate.augment.inputs.INPUTS`, of the owner itself ("speed") or another one ("speed:elbow_joint").
            replace: True to take the place of the quantity, False to add to it.
            name: Name among `networks`.
            network: hidden, activation, constraints, scale, input_scales, seed: see `costate.augment.network.Network`.
        """
        if not isinstance(quantity, str):
            return self.residuals.add(quantity)
        plan = Plan(quantity, names_of(on), names_of(inputs), replace, name or "", network=network)
        return self._wire(wire(plan, self._names, [w.name for w in self.wirings])).to(self.dtype)

    @property
    def networks(self) -> dict[str, Network]:
        """Networks that are compiled into the dynamics, by name."""
        return {w.name: w.network for w in self.wirings}

    def save_networks(self, path: str | Path) -> None:
        """Write all networks of `networks` to PATH.json, what they do, and PATH.safetensors, their weights."""
        save_networks(path, self.wirings)

    def load_networks(self, path: str | Path) -> dict[str, Network]:
        """Put the networks of files that `save_networks` wrote into the dynamics, and return them by name."""
        found = load_networks(path, self._names, [w.name for w in self.wirings])
        return {w.name: self._wire(w) for w in found}

    @property
    def _names(self) -> Known:
        joints = [j.name for j in self.model.joints if j.nv == 1 and not j.mimic]
        links = [link.name for link in self.model.links]
        return Known(f"robot '{self.model.name}'", {"joint": joints, "link": links[1:] or links})

    def _wire(self, w: Wiring) -> Network:
        self.wirings = (*self.wirings, w)
        self.augmented.append(w.network)
        return w.network
