"""The network that is exported: the policy with all scaling inside, from measurements in SI units to commands in SI units."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from costate.tasks.insertion import ACTION, OBSERVATION, Insertion, Policy

Floats = np.ndarray


@dataclass(frozen=True, eq=False)
class Network:
    """command = offset + scale * tanh(W2 tanh(W1 z + b1) + b2),  z = (min(x, top) - middle) * gain.

    Weights are those of the policy, float32; the scaling is float64.
    """

    W1: Floats
    """(hidden, inputs)."""
    b1: Floats
    W2: Floats
    """(outputs, hidden)."""
    b2: Floats
    middle: Floats
    """Of each input, in its unit, (inputs,)."""
    gain: Floats
    """Per unit; zero where an input is ignored, (inputs,)."""
    top: Floats
    """Highest value of each input that makes a difference; infinite but for the time index, (inputs,)."""
    offset: Floats
    """(outputs,)."""
    scale: Floats
    """(outputs,)."""
    inputs: tuple[tuple[str, str], ...]
    """Name and unit of each input."""
    outputs: tuple[tuple[str, str], ...]
    """Name and unit of each output."""
    about: str
    """One line for the reader of a file."""

    @property
    def hidden(self) -> int:
        return len(self.b1)

    def __call__(self, x: Floats) -> Floats:
        """Commands (..., outputs) of measurements (..., inputs), in float64: what exports are compared with."""
        z = (np.minimum(x, self.top) - self.middle) * self.gain
        hidden = np.tanh(z @ self.W1.T.astype(float) + self.b1)
        return self.offset + self.scale * np.tanh(hidden @ self.W2.T.astype(float) + self.b2)

    def samples(self, count: int, seed: int = 0) -> Floats:
        """Random measurements (count, inputs) around those the policy was made for, float32 numbers."""
        z = 2 * np.random.default_rng(seed).uniform(-1, 1, (count, len(self.gain)))
        known = self.gain != 0
        x = np.where(known, self.middle + z / np.where(known, self.gain, 1.0), z)
        return x.astype(np.float32).astype(float)


def network_of(policy: Policy, task: Insertion) -> Network:
    """The exported network of an insertion policy."""
    matrix, offset = (x.numpy() for x in task.features)
    gain = matrix.sum(0)  # one measurement per observation
    middle = 0.0 - np.divide(offset, gain, out=np.zeros(OBSERVATION), where=gain != 0)
    gain[-1], top = 1 / task.options.horizon, np.full(OBSERVATION, np.inf)
    top[-1] = task.options.horizon
    zero, scale = (x.numpy() for x in task.action_scale)
    W1, b1, W2, b2 = (p.detach().to(torch.float32).numpy() for p in policy.parameters())
    o = task.options
    belt = f"riding at up to {o.belt_speed:g} m/s" if o.moving else "standing still"
    about = f"UR5 puts a bottle into a socket {belt}, in {o.seconds:g} s; one action every {1e3 * o.dt:g} ms"
    return Network(W1, b1, W2, b2, middle, gain, top, zero, scale, _inputs(task), _outputs(task), about)


def raw_observation(state: torch.Tensor, step: int) -> torch.Tensor:
    """What an exported network takes, (..., 19), of states (..., 18); the ignored height and its rate are zero."""
    zero = torch.zeros_like(state[..., :1])
    return torch.cat(
        [state[..., :6], state[..., 9:15], state[..., 6:8], zero, state[..., 15:17], zero, zero + step], -1
    )


def _inputs(task: Insertion) -> tuple[tuple[str, str], ...]:
    joints = _joints(task)
    return (
        *((f"position of {j}", "rad") for j in joints),
        *((f"velocity of {j}", "rad/s") for j in joints),
        *((f"socket {axis}, in the frame of the arm's base", "m") for axis in "xy"),
        ("socket z (ignored: its height is part of the task)", "m"),
        *((f"velocity of the socket, {axis}", "m/s") for axis in "xy"),
        ("velocity of the socket, z (ignored)", "m/s"),
        ("time index: control steps since the start, 0, 1, 2, ...", "steps"),
    )


def _outputs(task: Insertion) -> tuple[tuple[str, str], ...]:
    what, unit = ("velocity", "rad/s") if task.options.actuation == "velocity" else ("torque", "N m")
    found = tuple((f"{what} of {j}", unit) for j in _joints(task))
    assert len(found) == ACTION
    return found


def _joints(task: Insertion) -> list[str]:
    return [j.name for j in task.arm.model.joints if j.nv]
