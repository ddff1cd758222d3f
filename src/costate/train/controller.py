"""A trained controller without the task and the simulator: its network, in NumPy."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from costate.train.network import Network

if TYPE_CHECKING:
    from torch import Tensor

    from costate.train.run import Run

POLICY, NOTE = "policy.safetensors", "policy.json"


class Controller:
    """A function from observations (..., n), as the task's `observe` makes them, to commands (..., m), in float64.

    Commands are controls of the task's world. Arrays, tensors and lists are answered by their like.
    """

    def __init__(self, network: Network, note: dict[str, Any], features: tuple[np.ndarray, np.ndarray] | None = None):
        self.network, self.note = network, note
        self._memory = network.memory
        self._features = features
        self._horizon = int(note["horizon"]) if "horizon" in note else 0

    def begin(self) -> None:
        """Begin an episode: a controller with memory forgets the one before."""
        self._memory = self.network.memory

    def __call__(self, observation: Any) -> Any:
        """Return the command for an observation. A controller with memory remembers it until `begin()`."""
        if type(observation) is not np.ndarray:
            return _like(observation, self(_array(observation)))
        command, self._memory = self.network.step(observation, self._memory)
        return command

    def action(self, state: Any, step: int) -> Any:
        """Return the command for a state (..., nx), `step` control steps after the start.

        Only for tasks whose observation is linear in the state, see `Trainable.features`.
        """
        if self._features is None:
            raise ValueError(
                f"the observation of task {self.note.get('task')!r} is computed by the task: call controller(observation) with it"
            )
        if type(state) is not np.ndarray:
            return _like(state, self.action(_array(state), step))
        observation = state @ self._features[0]
        observation += self._features[1]
        if self._horizon:
            observation[..., -1] += min(step / self._horizon, 1.0)
        return self(observation)


def load_policy(run: str | Path) -> Controller:
    """Return the controller in a run folder (or any folder with its policy.safetensors and policy.json)."""
    from costate.core.readers.text import read_json
    from costate.core.tensors import read_tensors

    folder = Path(run)
    for name in (POLICY, NOTE):
        if not (folder / name).is_file():
            raise ValueError(
                f"{folder} has no {name}: it is not a run folder, its training has not finished (continue it with "
                f"`costate train TASK --resume {folder}`), or its policy has layers that no file can hold"
            )
    try:
        tensors, _ = read_tensors(folder / POLICY)
        note = read_json(folder / NOTE)
        if not isinstance(note, dict) or not isinstance(note.get("graph"), dict):
            raise ValueError("it has no network")
        network = Network.read(tensors, note)
        return Controller(network, note, _features(tensors, len(network.inputs)))
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
        raise ValueError(f"{folder / POLICY} or {NOTE} is damaged: {error}") from error


def _features(tensors: Mapping[str, Tensor], inputs: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the matrix (nx, inputs) and offset (inputs,) of an observation that is linear in the state, None if it is not."""
    if "observation.matrix" not in tensors:
        return None
    matrix, offset = (tensors[f"observation.{part}"].double().numpy() for part in ("matrix", "offset"))
    if matrix.ndim != 2 or matrix.shape[1] != inputs or offset.shape != (inputs,):
        raise ValueError(f"observations of the shapes {matrix.shape} and {offset.shape}; expected (nx, {inputs})")
    return matrix, offset


def save_policy(run: Run) -> bool:
    """Write the run's latest weights as its controller; returns False if no network has the layers of its policy."""
    from costate.core.files import write_json
    from costate.core.tensors import write_tensors

    try:
        network = run.task.network(run.policy)
    except ValueError as error:
        print(f"no {POLICY}: {error}")
        return False
    tensors = network.tensors()
    if (features := run.task.features) is not None:
        tensors |= {"observation.matrix": features[0], "observation.offset": features[1]}
    write_json(run.path / NOTE, {"task": run.task.name} | run.task.note() | network.note())
    write_tensors(run.path / POLICY, tensors)
    return True


def _array(value: Any) -> np.ndarray:
    return value.detach().cpu().double().numpy() if hasattr(value, "detach") else np.asarray(value, dtype=np.float64)


def _like(value: Any, result: np.ndarray) -> Any:
    if hasattr(value, "detach"):
        import torch

        return torch.from_numpy(result).to(value.dtype)
    return result.tolist()
