"""Any trainable task as an environment for reinforcement learning. Needs gymnasium (extra "rl").

    env = Environment(ReachPosition())
    envs = VectorEnvironment(ReachPosition(), 256)      # for stable-baselines3

The observations, actions, world and success are those of the task; rewards are `Trainable.reward`.
"""

from __future__ import annotations
