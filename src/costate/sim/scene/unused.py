"""Parts of a robot's file that a world leaves aside: named in words, because a robot without its floor falls for ever."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from costate.model import Model, Shape
from costate.robot import Robot
from costate.sim.scene.scene import Scene

SHOWN = 3
"""Names that a note lists."""


def unused(scene: Scene, robots: Mapping[str, Robot], ground: bool, actuators: bool) -> list[str]:
    """Return notes on what the robots, or their files, have and the world does not use.

    ground, actuators: True if the world was to take them from somewhere, and was told nothing else.
    """
    notes = [
        f"{name}: its residual modules run in torch and do not act in a world; robot.augment('joint_torque', on=...) has networks "
        "that do"
        for name, robot in robots.items()
        if robot.residuals
    ]
    notes += _unused_geoms(scene, robots) if ground else ()
    return [*notes, *(_unused_actuators(robots) if actuators else ())]


def _unused_geoms(scene: Scene, robots: Mapping[str, Robot]) -> Iterator[str]:
    """Yield a note for each robot whose file has a ground, or other geoms of its world, that nothing in the scene touches."""
    touched = {id(scene.colliders[k].shape) for pair in scene.pairs for k in pair}
    for name, robot in robots.items():
        ground = _ground(robot.model)
        if ground and not any(id(s) in touched for s in ground):
            yield (
                f"{name}: its file has {_listed([s.name or s.kind for s in ground])} in its world, which nothing in this world can "
                "touch; cs.load_world(file) makes the world of the file, and scenery=[cs.Static(...)] adds shapes to this one"
            )


def _unused_actuators(robots: Mapping[str, Robot]) -> Iterator[str]:
    """Yield a note for each robot whose file lists actuators."""
    for name, robot in robots.items():
        if robot.model.actuators:
            names = [a.name for a in robot.model.actuators]
            yield (
                f"{name}: its file has the actuators {_listed(names)}, which this world does not use: controls are torques on all "
                'joints; choose actuators="file" (as cs.load_world does), or actuators=cs.Torque() for torques'
            )


def _ground(model: Model) -> list[Shape]:
    """Return the shapes of a file's world body that the file lets something else touch."""
    root, *links = model.links
    if model.physics is None:  # the root link of a URDF is a part of the robot
        return []
    listed = {name for pair in model.listed for name in pair.shapes}
    moving = [s for link in links for s in link.collisions]
    return [s for s in root.collisions if s.name in listed or any(_meet(s, other) for other in moving)]


def _meet(a: Shape, b: Shape) -> bool:
    return a.surface is not None and b.surface is not None and a.surface.meets(b.surface)


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(repr(n) for n in names[:SHOWN]) + more
