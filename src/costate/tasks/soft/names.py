"""The tasks by name."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from costate.core.names import unknown
from costate.tasks.soft.identify import MaterialTask
from costate.tasks.soft.plasticine.task import PlasticineTask
from costate.tasks.soft.reach import ReachTask
from costate.tasks.soft.robots.knead import KneadTask
from costate.tasks.soft.robots.lift import LiftTask
from costate.tasks.soft.robots.pour import PourTask
from costate.tasks.soft.robots.scoop import ScoopTask
from costate.tasks.soft.robots.task import RobotTask
from costate.tasks.soft.walkers import WalkerTask

SoftTask = WalkerTask | ReachTask | MaterialTask | PlasticineTask | RobotTask
SOFT_TASKS: dict[str, SoftTask] = {
    "soft_walker": WalkerTask(),
    "soft_crawler": WalkerTask(
        "a soft robot in 3D crawls as far as possible", "crawler", cells=32, dt=2e-3, steps=512, iterations=30
    ),
    "soft_worm": WalkerTask("a soft worm in 2D crawls as far as possible", "worm", cells=64, dt=2e-3, steps=512),
    "soft_rolling": WalkerTask(
        "a soft wheel in 2D rolls as far as possible", "wheel", cells=64, dt=2e-3, steps=768, knots=32
    ),
    "soft_finger": ReachTask(),
    "soft_arm": ReachTask(
        "a soft arm in 2D, hanging from the ceiling, brings its tip to a place and holds it there",
        hangs=True,
        pieces=4,
        length=0.48,
    ),
    "soft_arm_3d": ReachTask(
        "a soft arm in 3D, hanging from the ceiling, brings its tip to a place and holds it there",
        dim=3,
        hangs=True,
        length=0.4,
        width=0.125,
        cells=32,
        dt=4e-3,
        steps=320,
        iterations=50,
    ),
    "soft_codesign": WalkerTask(
        "stiffness and actuation of a walking soft robot, found together", cells=64, dt=2e-3, steps=512, codesign=True
    ),
    "soft_identify": MaterialTask(),
    "soft_identify_plasticine": MaterialTask(
        "Young's modulus and yield stress of plasticine from its fall, with intervals", "plasticine"
    ),
    "soft_identify_liquid": MaterialTask(
        "stiffness and viscosity of a liquid from its fall, with intervals", "liquid", steps=60
    ),
    "soft_knead": KneadTask(),
    "soft_lift": LiftTask(),
    "soft_scoop": ScoopTask(),
    "soft_pour": PourTask(),
    "plasticine_move": PlasticineTask("two fingers move a ball of plasticine to another place", "move"),
    "plasticine_triple_move": PlasticineTask("six fingers move three blocks to other places", "triple_move"),
    "plasticine_torus": PlasticineTask("a ring is pressed into a block at another place", "torus"),
    "plasticine_rope": PlasticineTask("two fingers bend a rope around a pillar", "rope"),
    "plasticine_writer": PlasticineTask("a pen writes two strokes into a block", "writer"),
    "plasticine_pinch": PlasticineTask("a finger presses two pits into a cube", "pinch"),
    "plasticine_rolling_pin": PlasticineTask("a rolling pin flattens a block", "rolling_pin"),
    "plasticine_chopsticks": PlasticineTask("chopsticks pick up a rope, lift it and turn it", "chopsticks"),
    "plasticine_assembly": PlasticineTask(
        "two fingers put a ball onto a stand", "assembly", shape=0.1, transport=100.0
    ),
    "plasticine_table": PlasticineTask("a finger pushes a leg of a table outwards", "table"),
}
"""Name -> task with its defaults."""


def soft_task(name: str, **changes: Any) -> SoftTask:
    """Return a task by name, with other options where they are given and not None."""
    if name not in SOFT_TASKS:
        raise ValueError(unknown("task", name, SOFT_TASKS))
    return replace(SOFT_TASKS[name], **{k: v for k, v in changes.items() if v is not None})
