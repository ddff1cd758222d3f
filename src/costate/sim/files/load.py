"""Worlds from files: MJCF with all that it describes, URDF with a ground, and worlds that `World.save` wrote."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from costate.model import Model, Shape
from costate.robot import Robot, load_robot
from costate.sim.arguments import named_robots
from costate.sim.contact.builtin import Newton
from costate.sim.files.save import is_saved, read_world
from costate.sim.scene.parts import Static
from costate.sim.scene.shapes import plane
from costate.sim.world import World

Robots = Sequence[Robot] | Mapping[str, Robot]


def load_world(
    source: str | Path,
    *,
    ground: bool | None = None,
    floating_base: bool | None = None,
    package_dirs: Sequence[str | Path] = (),
    inertia: Literal["refuse", "keep", "repair"] = "refuse",
    **options: Any,
) -> World:
    """Return the world of a file.

        world = cs.load_world("hopper.xml")                       # MJCF: moves as in MuJoCo
        world = cs.load_world("robot.urdf", ground=True)          # URDF, or a built-in name: a robot on a plane
        world = cs.load_world("world.json")                       # written by world.save("world.json")
        world = cs.load_world("hopper.xml", contact=cs.Hard(), substeps=4)

    An MJCF file gives everything: bodies, the geoms of its world, actuators, what may touch, contact (`Newton`), integrator, time
    step, gravity and keyframes (`world.initial_state(keyframe=...)`). What of it is not followed is named in a warning. The robot
    has the name of the model, and scenery that of its geom.

    Args:
        source: Path of an MJCF or URDF file, name of a built-in robot, or what `World.save` wrote.
        ground: True puts a URDF robot on the plane z = 0; None: where its base floats.
        floating_base: True lets the base of a robot move freely, False fixes it; None: as the file says.
        package_dirs: Folders in which meshes named package://... are looked for.
        inertia: What to do with negative principal moments in a URDF: "refuse", "keep" or "repair".
        options: Arguments of `World`. bodies, scenery, robots, constraints and tendons are added to those of the file; others take
            the place of what it says.
    """
    if is_saved(source):
        return _of_file(Path(source), options)
    robot = load_robot(source, floating_base, package_dirs=package_dirs, inertia=inertia)
    if robot.model.physics is None:
        return _made(_of_robot(robot, robot.model.floating_base if ground is None else ground), options)
    if ground:
        raise ValueError(
            f"{source} is MJCF, which has its own ground: add one with scenery=[cs.Static(...)] if it has none"
        )
    return _made(_of_mjcf(robot, options), options)


def _of_file(path: Path, options: Mapping[str, Any]) -> World:
    """Return a world that was saved. Values of the right types may still be no world: then the error names the file, too."""
    found, dtype, networks = read_world(path)
    try:
        world = _made(found, options)
        if networks is not None:
            world.load_networks(networks)
    except (ValueError, TypeError, KeyError, AttributeError, ArithmeticError) as error:
        raise error if str(path) in str(error) else ValueError(f"{path}: {error}") from error
    return world if dtype is None else world.to(dtype)


def _of_robot(robot: Robot, ground: bool) -> dict[str, Any]:
    scenery = [Static("ground", plane())] if ground else []
    return {"robots": [robot], "scenery": scenery, "actuators": "file" if robot.model.actuators else None}


def _of_mjcf(robot: Robot, options: Mapping[str, Any]) -> dict[str, Any]:
    assert robot.model.physics is not None
    return {
        "robots": [robot],
        "scenery": list(_scenery(robot.model)),
        "actuators": "file",
        "contact": Newton(),
        "self_collision": True,
        "dt": options.get("substeps", 1) * robot.model.physics.timestep,
    }


def _scenery(model: Model) -> Iterator[Static]:
    """Yield the shapes of the world body. Those that are only drawn come with a robot that is fixed to it."""
    root = model.links[0]
    only_drawn = [s for s in root.visuals if not _is_in(s, root.collisions)] if model.floating_base else []
    taken = {model.name}
    for k, shape in enumerate((*root.collisions, *only_drawn)):
        name = shape.name or f"geom{k}"
        while name in taken:
            name += "_"
        taken.add(name)
        yield Static(name, shape, visible=_is_in(shape, root.visuals))


def _is_in(shape: Shape, shapes: Sequence[Shape]) -> bool:
    return any(shape is s for s in shapes)


def _made(found: Mapping[str, Any], options: Mapping[str, Any]) -> World:
    """Return the world of arguments that a file gives, and of those given."""
    given = {**found, **options}
    if "robots" in options:
        given["robots"] = _with_more(found["robots"], options["robots"])
    for name in ("bodies", "scenery", "constraints", "tendons"):
        given[name] = [*found.get(name, ()), *options.get(name, ())]
    return World(**given)


def _with_more(first: Robots, more: Robots) -> dict[str, Robot]:
    """Return name -> robot of both; those that are added get a number where their name is taken."""
    robots = named_robots(first)
    for name, robot in named_robots(more).items():
        free, k = name, 2
        while free in robots:
            free, k = f"{name}_{k}", k + 1
        robots[free] = robot
    return robots
