"""The trainable tasks and the algorithms that come with the package, by name. Importing this loads nothing else."""

from __future__ import annotations

from typing import NamedTuple


class Row(NamedTuple):
    """A task or an algorithm in its table."""

    target: str
    """Place of its class, module:class; of an algorithm, that of its options."""
    summary: str
    """Line that says what is to be done, or how."""


TASKS: dict[str, Row] = {
    "ant": Row("costate.tasks.locomotion.ant:Ant", "an ant of 182 kg runs along x"),
    "ant_v5": Row("costate.tasks.locomotion.v5.free:AntV5", "gymnasium's Ant-v5: a four-legged robot runs along x"),
    "cartpole": Row("costate.tasks.cartpole:Cartpole", "a cart swings a pole up and balances it"),
    "flip": Row(
        "costate.tasks.manipulation.motions.flip:Flip",
        "a Shadow hand on a UR5 turns a cube over, about its far edge",
    ),
    "grasp": Row(
        "costate.tasks.manipulation.kinds:Grasp", "a Shadow hand on a UR5 grasps a cube and lifts it by 0.1 m"
    ),
    "half_cheetah": Row("costate.tasks.locomotion.planar:HalfCheetah", "a two-legged robot runs along x"),
    "half_cheetah_v5": Row(
        "costate.tasks.locomotion.v5.planar:HalfCheetahV5",
        "gymnasium's HalfCheetah-v5: a two-legged robot runs along x",
    ),
    "hopper": Row("costate.tasks.locomotion.planar:Hopper", "a one-legged robot hops along x"),
    "hopper_v5": Row(
        "costate.tasks.locomotion.v5.planar:HopperV5", "gymnasium's Hopper-v5: a one-legged robot hops along x"
    ),
    "humanoid": Row("costate.tasks.locomotion.humanoid:Humanoid", "a humanoid of 41 kg runs along x"),
    "humanoid_v5": Row(
        "costate.tasks.locomotion.v5.free:HumanoidV5", "gymnasium's Humanoid-v5: a humanoid walks along x"
    ),
    "insertion": Row("costate.tasks.insertion:Insertion", "a UR5 puts a bottle into a socket"),
    "link_pendulum": Row(
        "costate.tasks.link_pendulum:LinkPendulum", "a pendulum of up to seven links swings its tip up"
    ),
    "push": Row("costate.tasks.manipulation.kinds:Slide", "a Shadow hand on a UR5 pushes a cube 0.1 m to its left"),
    "reach": Row("costate.tasks.reach_position:ReachPosition", "a UR5 brings its tool to a random position"),
    "turn": Row("costate.tasks.manipulation.kinds:Turn", "a Shadow hand turns a cylinder by half a turn"),
    "walker": Row("costate.tasks.locomotion.planar:Walker", "a two-legged robot walks along x"),
    "walker2d_v5": Row(
        "costate.tasks.locomotion.v5.planar:Walker2dV5", "gymnasium's Walker2d-v5: a two-legged robot walks along x"
    ),
    "wheel": Row(
        "costate.tasks.manipulation.motions.wheel:Wheel",
        "a Shadow hand on a UR5 turns a valve twice round, by regrasping",
    ),
}
"""Name -> task. Modules are loaded when they are asked for."""

_PLACE = "costate.train.reinforce"
ALGORITHMS: dict[str, Row] = {
    "shac": Row(f"{_PLACE}.shac:ShacOptions", "short-horizon actor-critic: gradients of a few steps, and a critic"),
    "ahac": Row(f"{_PLACE}.ahac:AhacOptions", "adaptive-horizon actor-critic: as many steps as their gradients bear"),
    "sapo": Row(f"{_PLACE}.sapo:SapoOptions", "soft analytic policy optimisation: as shac, with a reward for entropy"),
    "sac": Row(
        f"{_PLACE}.sac:SacOptions", "soft actor-critic: learns from a memory; may use gradients of single steps"
    ),
    "bptt": Row(f"{_PLACE}.bptt:BpttOptions", "back-propagation through whole episodes, without a critic"),
}
"""Name -> algorithm that learns any task with rewards."""
