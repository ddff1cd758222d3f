"""Environments by name: the built-in ones, and a user's own."""

from __future__ import annotations

from typing import Any

from costate.envs.gym import gymnasium

ENVIRONMENTS: dict[str, tuple[str, dict[str, Any]]] = {
    "costate/Ant-v0": ("ant", {}),
    "costate/Ant-v5": ("ant_v5", {}),
    "costate/Cartpole-v0": ("cartpole", {}),
    "costate/HalfCheetah-v0": ("half_cheetah", {}),
    "costate/HalfCheetah-v5": ("half_cheetah_v5", {}),
    "costate/Hopper-v0": ("hopper", {}),
    "costate/Hopper-v5": ("hopper_v5", {}),
    "costate/Humanoid-v0": ("humanoid", {}),
    "costate/Humanoid-v5": ("humanoid_v5", {}),
    "costate/Insertion-v0": ("insertion", {}),
    "costate/InsertionMoving-v0": ("insertion", {"moving": True}),
    **{f"costate/LinkPendulum{n}-v0": ("link_pendulum", {"links": n}) for n in range(1, 8)},
    "costate/Reach-v0": ("reach", {}),
    "costate/Walker-v0": ("walker", {}),
    "costate/Walker2d-v5": ("walker2d_v5", {}),
}
"""Name -> task (see `costate.train.registry`), and options of it that are changed."""


def register(id: str, task: Any, **options: Any) -> None:
    """Let `gymnasium.make(id)` and `gymnasium.make_vec(id, num_envs)` make environments of a task.

    Args:
        id: Name, such as "me/Hold-v0".
        task: A trainable task, its class or its name.
        options: Options of the task to be changed, by name; `gymnasium.make(id, ...)` may change more.
    """

    def one(**given: Any) -> Any:
        from costate.envs.environment import Environment

        return Environment(task, **(options | given))

    def many(**given: Any) -> Any:
        from costate.envs.vector import VectorEnvironment

        return VectorEnvironment(task, **(options | given))

    if isinstance(task, str):  # by name: the specification can be written to a file
        points = "costate.envs.environment:Environment", "costate.envs.vector:VectorEnvironment"
        gymnasium.register(id, *points[:1], vector_entry_point=points[1], kwargs={"task": task, **options})
    else:
        gymnasium.register(id, one, vector_entry_point=many)


def register_all() -> None:
    """Register the ENVIRONMENTS."""
    for id, (task, options) in ENVIRONMENTS.items():
        if id not in gymnasium.registry:
            register(id, task, **options)
