"""Tasks as environments for reinforcement learning. Needs gymnasium (extra "rl").

    import gymnasium, costate.envs
    env = gymnasium.make("costate/Reach-v0", render_mode="rgb_array")
    envs = gymnasium.make_vec("costate/Reach-v0", num_envs=1024)      # one call of the batched world per step
    envs = costate.envs.VectorEnvironment(MyTask(), 1024)                 # any trainable task

Observations, actions, worlds and success are those of the task; rewards are `Trainable.reward`. Importing this package registers
the built-in environments.
"""

from costate.envs.batch import Batch, Outcome
from costate.envs.environment import Environment
from costate.envs.registry import ENVIRONMENTS, register, register_all
from costate.envs.vector import VectorEnvironment

__all__ = ["ENVIRONMENTS", "Batch", "Environment", "Outcome", "VectorEnvironment", "register"]

register_all()
