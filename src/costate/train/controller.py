"""A trained controller without the task and the simulator: two small matrices, in NumPy."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from costate.train.run import Run

POLICY, NOTE = "policy.safetensors", "policy.json"


class Controller:
    """command = offset + scale tanh(W2 tanh(W1 observation + b1) + b2), in float64.

    Observations (..., 19) as `Insertion.observe` makes them; commands (..., 6): joint velocities [rad/s], or torques [N m] if the
    task was trained with them. Arrays, tensors and lists are answered by their like.
    """

    def __init__(self, tensors: dict[str, np.ndarray], note: dict[str, Any]):
        t = {name: np.ascontiguousarray(value, dtype=np.float64) for name, value in tensors.items()}
        self.note = note
        """policy.json: what the numbers mean."""
        self._inner, self._inner_bias = np.ascontiguousarray(t["inner.weight"].T), t["inner.bias"]
        self._outer, self._outer_bias = t["outer.weight"].T, t["outer.bias"]
        self._offset, self._scale = t["action.offset"], t["action.scale"]
        self._matrix, self._zero = t["observation.matrix"], t["observation.offset"]
        self._horizon = int(note["horizon"])

    def __call__(self, observation: Any) -> Any:
        """The command for an observation."""
        if type(observation) is not np.ndarray:
            return _like(observation, self(_array(observation)))
        hidden = observation @ self._inner
        hidden += self._inner_bias
        np.tanh(hidden, hidden)
        command = hidden @ self._outer
        command += self._outer_bias
        np.tanh(command, command)
        command *= self._scale
        command += self._offset
        return command

    def action(self, state: Any, step: int) -> Any:
        """The command for a state (..., 18): q of arm and socket, v of arm and socket; `step` control steps after the start."""
        if type(state) is not np.ndarray:
            return _like(state, self.action(_array(state), step))
        observation = state @ self._matrix
        observation += self._zero
        observation[..., -1] += min(step / self._horizon, 1.0)
        return self(observation)


def load_policy(run: str | Path) -> Controller:
    """The controller in a run folder (or any folder with its policy.safetensors and policy.json)."""
    from costate.core.files import read_json
    from costate.core.tensors import read_tensors

    folder = Path(run)
    for name in (POLICY, NOTE):
        if not (folder / name).is_file():
            raise ValueError(
                f"{folder} has no {name}: it is not a run folder, or its training has not finished "
                f"(continue it with `costate train insertion --resume {folder}`)"
            )
    try:
        tensors, _ = read_tensors(folder / POLICY)
        return Controller({name: t.numpy() for name, t in tensors.items()}, read_json(folder / NOTE))
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{folder / POLICY} or {NOTE} is damaged: {error}") from error


def save_policy(run: Run) -> None:
    """Write the run's latest weights as its controller."""
    from costate.core.files import write_json
    from costate.core.tensors import write_tensors

    matrix, zero = run.task.features
    offset, scale = run.task.action_scale
    tensors = dict(run.policy.state_dict())
    tensors |= {
        "observation.matrix": matrix,
        "observation.offset": zero,
        "action.offset": offset,
        "action.scale": scale,
    }
    o = run.options.task
    note = {
        "task": "insertion",
        "network": "action = tanh(outer.weight tanh(inner.weight observation + inner.bias) + outer.bias)",
        "observation": "state observation.matrix + observation.offset + (0, ..., 0, min(step / horizon, 1))",
        "state": "q of 6 arm joints and socket x, y, angle; v of the same [rad, m, rad/s, m/s]",
        "command": "action.offset + action.scale action",
        "command_unit": "rad/s" if o.actuation == "velocity" else "N m",
        "joints": [j.name for j in run.task.arm.model.joints if j.nv],
        "horizon": o.horizon,
        "period": o.dt,
    }
    write_json(run.path / NOTE, note)
    write_tensors(run.path / POLICY, tensors)


def _array(value: Any) -> np.ndarray:
    return value.detach().cpu().numpy() if hasattr(value, "detach") else np.asarray(value, dtype=np.float64)


def _like(value: Any, result: np.ndarray) -> Any:
    if hasattr(value, "detach"):
        import torch

        return torch.from_numpy(result).to(value.dtype)
    return result.tolist()
