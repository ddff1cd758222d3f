"""Models of a pendulum that predict from four frames: physics, a network, and physics with a network's torque."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
import torch
from torch import Tensor, nn

import costate as cs
from costate.model import Inertia, Joint, Link, Model, Transform
from costate.robot import Robot

GAUSS_NEWTON = 4
"""Number of steps with which a start is found."""


def chain(lengths: tuple[float, ...]) -> Model:
    """Return arms in a row along x, which turn about z."""
    links, joints = [Link("base")], []
    for k in range(len(lengths)):
        links.append(Link(f"l{k}", Inertia(1.0, np.array([0.5, 0, 0]), 0.1 * np.eye(3))))
        at = Transform(translation=np.array([lengths[k - 1] if k else 0.0, 0, 0]))
        joints.append(Joint(f"j{k}", "continuous", links[k].name, f"l{k}", at, damping=0.01, friction=0.01))
    return Model("pendulum", tuple(links), tuple(joints))


class Pendulum(ABC, nn.Module):
    """A model of n arms with angles from the direction of gravity."""

    def __init__(self, arms: int, dt: float):
        super().__init__()
        self.arms, self.dt = arms, dt

    @abstractmethod
    def roll(self, angles: Tensor, rates: Tensor, steps: int) -> tuple[Tensor, Tensor]:
        """Return angles and rates (steps + 1, B, n) from a start (B, n)."""

    def start(self, frames: Tensor) -> tuple[Tensor, Tensor]:
        """Return angles and rates at the last of four frames (4, B, n): the motion of the model that passes nearest to all four,
        by Gauss-Newton with the Jacobian of a free motion."""
        t = self.dt * torch.arange(4.0, dtype=frames.dtype)
        fit = torch.linalg.pinv(torch.stack([torch.ones_like(t), t], 1))
        with torch.no_grad():
            angles, rates = torch.einsum("kt,tbn->kbn", fit, frames)
            for _ in range(GAUSS_NEWTON):
                places, _ = self.roll(angles, rates, 3)
                by = torch.einsum("kt,tbn->kbn", fit, frames - places)
                angles, rates = angles + by[0], rates + by[1]
            places, speeds = self.roll(angles, rates, 3)
        return places[-1], speeds[-1]

    def predict(self, frames: Tensor, steps: int) -> Tensor:
        """Return the angles (steps, B, n) that follow four frames."""
        return self.roll(*self.start(frames), steps)[0][1:]


class Physics(Pendulum):
    """Arms as rigid bodies with damping and friction in their joints; a network may add torques."""

    def __init__(
        self, arms: int, dt: float, lengths: tuple[float, ...], gravity: float, network: nn.Module | None = None
    ):
        super().__init__(arms, dt)
        robot = Robot(chain(lengths))
        own = [f"{kind}:pendulum/l{k}" for k in range(arms) for kind in ("mass", "com", "inertia")]
        joints = [f"{kind}:pendulum/j{k}" for k in range(arms) for kind in ("damping", "friction")]
        self.world = cs.World([robot], contact=None, integrator="rk4", dt=dt, parameters=["gravity", *own, *joints])
        self.gravity, self.network = gravity, network
        self.raw = nn.Parameter(torch.zeros(2 + 6 * arms, dtype=torch.float64))
        self.raw.data[4::6] = -0.5  # rods are lighter at their ends than the guess

    def params(self) -> dict[str, Tensor]:
        """Return the world's parameters: the first arm has mass 1 and length 1."""
        turn, size = 0.1 * self.raw[0], self.gravity * self.raw[1].exp()
        found = {"gravity": torch.stack([size * turn.cos(), size * turn.sin(), 0 * size])}
        for k in range(self.arms):
            mass, along, across, inertia, damping, friction = self.raw[2 + 6 * k : 8 + 6 * k]
            mass, inertia = (0.0 * mass if k == 0 else mass).exp(), 0.1 * inertia.exp()
            found[f"mass:pendulum/l{k}"] = mass[None]
            found[f"com:pendulum/l{k}"] = torch.stack([0.5 + 0.3 * along, 0.1 * across, 0 * along])
            found[f"inertia:pendulum/l{k}"] = (inertia * mass * torch.eye(3, dtype=mass.dtype)).reshape(-1)
            found[f"damping:pendulum/j{k}"] = 0.05 * damping.exp()[None]
            found[f"friction:pendulum/j{k}"] = 0.05 * friction.exp()[None]
        return found

    def roll(self, angles: Tensor, rates: Tensor, steps: int) -> tuple[Tensor, Tensor]:
        start = torch.cat([_relative(angles), _relative(rates)], -1)
        params = self.params()
        if self.network is None:
            states = self.world.rollout(start, steps=steps, params=params)
        else:
            states = self.world.rollout(start, lambda x, _: self._torque(x), steps, params)
        return states[..., : self.arms].cumsum(-1), states[..., self.arms :].cumsum(-1)

    def _torque(self, x: Tensor) -> Tensor:
        assert self.network is not None
        return self.network(_features(x[..., : self.arms].cumsum(-1), x[..., self.arms :].cumsum(-1)))


class Network(Pendulum):
    """A network of angles and rates as the accelerations of all arms, integrated as the world is (but semi-implicitly)."""

    def __init__(self, arms: int, dt: float, network: nn.Module):
        super().__init__(arms, dt)
        self.network = network

    def roll(self, angles: Tensor, rates: Tensor, steps: int) -> tuple[Tensor, Tensor]:
        places, speeds = [angles], [rates]
        for _ in range(steps):
            middle = places[-1] + self.dt / 2 * speeds[-1]
            speeds.append(speeds[-1] + self.dt * self.acceleration(middle, speeds[-1]))
            places.append(middle + self.dt / 2 * speeds[-1])
        return torch.stack(places), torch.stack(speeds)

    def acceleration(self, angles: Tensor, rates: Tensor) -> Tensor:
        """Return the accelerations (..., n) [rad/s^2]."""
        return self.network(_features(angles, rates))


class Scaled(nn.Module):
    """A network of two hidden layers with scales for its inputs and outputs, whose last layer starts at zero."""

    def __init__(self, arms: int, speed: float, size: float, width: int, seed: int = 0):
        super().__init__()
        torch.manual_seed(seed)
        layers = [nn.Linear(3 * arms, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, arms)]
        self.layers = nn.Sequential(*layers).double()
        nn.init.zeros_(layers[-1].weight)
        nn.init.zeros_(layers[-1].bias)
        self.arms, self.speed, self.size = arms, speed, size

    def forward(self, x: Tensor) -> Tensor:
        n = 2 * self.arms
        return self.size * self.layers(torch.cat([x[..., :n], x[..., n:] / self.speed], -1))


def _relative(x: Tensor) -> Tensor:
    return torch.cat([x[..., :1], x[..., 1:] - x[..., :-1]], -1)


def _features(angles: Tensor, rates: Tensor) -> Tensor:
    """Return cosine and sine of each angle, the later ones relative to the first, and rates."""
    turns = torch.cat([angles[..., :1], angles[..., 1:] - angles[..., :1]], -1)
    return torch.cat([turns.cos(), turns.sin(), rates], -1)
