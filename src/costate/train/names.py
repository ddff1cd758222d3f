"""The trainable tasks that come with the package, by name. Importing this loads nothing else."""

from __future__ import annotations

from typing import NamedTuple


class Row(NamedTuple):
    """A task in the table."""

    target: str
    """Place of its class, module:class."""
    summary: str
    """Line that says what is to be done."""


TASKS: dict[str, Row] = {
    "ant": Row("costate.tasks.locomotion.ant:Ant", "an ant of 182 kg runs along x"),
    "cartpole": Row("costate.tasks.cartpole:Cartpole", "a cart swings a pole up and balances it"),
    "half_cheetah": Row("costate.tasks.locomotion.planar:HalfCheetah", "a two-legged robot runs along x"),
    "hopper": Row("costate.tasks.locomotion.planar:Hopper", "a one-legged robot hops along x"),
    "humanoid": Row("costate.tasks.locomotion.humanoid:Humanoid", "a humanoid of 41 kg runs along x"),
    "insertion": Row("costate.tasks.insertion:Insertion", "a UR5 puts a bottle into a socket"),
    "reach": Row("costate.tasks.reach_position:ReachPosition", "a UR5 brings its tool to a random position"),
    "walker": Row("costate.tasks.locomotion.planar:Walker", "a two-legged robot walks along x"),
}
"""Name -> task. Modules are loaded when they are asked for."""
